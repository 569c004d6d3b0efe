"""A study's numbers depend on its options and its trials alone: not on backends, jobs, kills or other methods."""

import contextlib
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from concurrent.futures import BrokenExecutor
from dataclasses import replace

import numpy as np
import pytest

import scikit
from ocelad.baselines import Euclid
from ocelad.data import Segment, blocks
from ocelad.studies import BACKENDS, Outcome, Store, StoreError, Study, Trial, run_study, run_trial
from ocelad.studies.methods import DEFAULT, METHODS, make, named
from ocelad.studies.trial import _Entrant
from running import posix

SEGMENTS = (Segment(150, "A", 0.0), Segment(100, "B", 0.05))
TINY = Study(methods=("ocelad", "COMID, high rate", "Euclid", "oracle"), segments=SEGMENTS, points=400)


def measures(store):
    return {outcome.trial: outcome.measures.tobytes() for outcome in store.outcomes()}


@pytest.fixture(scope="module", name="expected")
def fixture_expected():
    return {trial: run_trial(TINY, trial).measures.tobytes() for trial in range(6)}


def test_a_trial_is_the_stream_step_by_step_measured_by_scikit_learn():
    methods = ("ocelad", "paper's setting", "COMID, low rate", "Euclid")
    study = Study(methods=methods, segments=SEGMENTS)
    measures, (data, sample, rng) = run_trial(study, 3).measures, study.world(3)
    trackers = [METHODS[name]() for name in methods]
    for step in data.stream(rng, SEGMENTS):
        for tracker in trackers:
            tracker.partial_fit(step.pair[None], [step.y])
        if step.t in study.times:
            evaluation, points = study.times.index(step.t), data.points @ step.rotation.T
            for (error, nmi), tracker in zip(measures[:, evaluation], trackers, strict=True):
                Z = tracker.transform(points)[:, : None if isinstance(tracker, Euclid) else 3]
                assert error == scikit.knn_error(Z[sample], step.labels[sample])
                assert nmi == pytest.approx(scikit.cluster_nmi(Z, step.labels), abs=0.1)


def test_a_trial_under_way_is_one_of_a_shorter_study():
    trial = Trial(TINY, 2)
    for block in trial:
        part = TINY.until(trial.evaluated)
        assert (trial.levels[-1][0], part.times[-1]) == (block.t + 1, block.t)
        assert part.evaluated_segments == TINY.evaluated_segments[: trial.evaluated]
        np.testing.assert_array_equal(trial.outcome.measures, run_trial(part, 2).measures)
    assert trial.evaluated == len(TINY.times)


def test_a_method_does_not_depend_on_who_else_takes_part(expected):
    alone = run_trial(replace(TINY, methods=("oracle",)), 1).measures
    together = np.frombuffer(expected[1]).reshape(4, 5, 2)
    np.testing.assert_array_equal(alone[0], together[3])
    alone = run_trial(replace(TINY, methods=("ocelad",)), 1).measures
    np.testing.assert_array_equal(alone[0], together[0])


def test_the_oracle_sees_both_clusterings_and_noise_makes_labels_worse():
    found = run_trial(TINY, 0).measures
    assert (found[3, :, 0] < 0.02).all()
    assert (found[3, :, 1] > 0.9).all()
    noisy = run_trial(replace(TINY, label_noise=0.5), 0).measures
    assert noisy[0, 2, 0] > found[0, 2, 0] + 0.1
    more = run_trial(replace(TINY, pairs_per_step=8), 0).measures
    assert more[0, :3, 0].mean() < found[0, :3, 0].mean()


def test_the_batch_solution_is_lost_after_a_change_unless_it_is_refitted():
    study = replace(
        TINY, methods=("LMNN", "LMNN, refitted", "Euclid"), segments=(SEGMENTS[0], Segment(250, "B", 0.0))
    )
    (once, again, euclid) = run_trial(study, 0).measures[:, :, 0]
    before, after = slice(2, 3), slice(-1, None)
    assert once[before].mean() < euclid[before].mean()
    assert once[after].mean() > euclid[after].mean() > again[after].mean()


def test_all_are_judged_in_as_many_dimensions_as_there_are_clusters():
    study = replace(TINY, shares=(0.3, 0.2, 0.2, 0.15, 0.15), segments=(Segment(98, "A", 0.0),))
    data, _, rng = study.world(0)
    for block in blocks(data, rng, 98, study.segments):
        for name in ("ocelad", "oracle", "LMNN"):
            entrant = _Entrant(make(name), len(study.shares))
            entrant.learn(block)
            assert entrant.place(data.points, block.rotation, "A").shape == (400, 5)


@pytest.mark.parametrize("name", [*METHODS])
def test_every_method_can_take_part(name):
    outcome = run_trial(replace(TINY, methods=(name,), segments=(Segment(98, "A", 0.02),)), 0)
    assert np.isfinite(outcome.measures).all()
    assert (outcome.seconds >= 0).all()


@pytest.mark.parametrize(("backend", "jobs"), [("loky", 1), ("loky", 2), ("dask", 2)])
def test_backends_and_jobs_change_no_bit(backend, jobs, expected, tmp_path):
    if backend == "dask":
        pytest.importorskip("distributed", reason="distributed is not installed: no Dask cluster")
    with Store(tmp_path / "trials.sqlite", TINY) as store:
        run = run_study(TINY, range(6), store, BACKENDS[backend](jobs))
        assert sorted(outcome.trial for outcome in run) == list(range(6))
        assert measures(store) == expected


def test_only_what_is_missing_is_run(expected, tmp_path):
    with Store(tmp_path / "trials.sqlite", TINY) as store:
        for trial in (0, 2, 5):
            store.add(run_trial(TINY, trial))
    with Store(tmp_path / "trials.sqlite", TINY) as store:
        assert sorted(o.trial for o in run_study(TINY, range(6), store, BACKENDS["loky"](1))) == [1, 3, 4]
        assert measures(store) == expected


KILLED = """
import sys
from pathlib import Path
from ocelad.data import Segment
from ocelad.studies import BACKENDS, Store, Study, run_study
study = Study({methods!r}, {segments!r}, points=400)
with Store(Path({path!r}), study) as store:
    for _ in run_study(study, range({trials}), store, BACKENDS["loky"]({jobs})):
        print("one more", flush=True)
"""


def killed(path, trials, jobs):
    """A study under way in a process of its own, with a trial more than it began with."""
    code = KILLED.format(methods=TINY.methods, segments=SEGMENTS, path=str(path), trials=trials, jobs=jobs)
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, start_new_session=True)
    child.stdout.readline()
    return child


def test_ten_kills_change_no_bit(tmp_path):
    """kill -9 at random times: what is stored is whole, each time there is more of it, and the rest follows."""
    path, chance, before = tmp_path / "trials.sqlite", random.Random(), 0
    expected = {trial: run_trial(TINY, trial).measures.tobytes() for trial in range(60)}
    for _ in range(10):
        with killed(path, trials=60, jobs=1) as child:
            time.sleep(chance.uniform(0.0, 0.2))
            child.kill()
        with Store(path, TINY) as store:
            found = measures(store)
        assert found.items() <= expected.items()
        assert before < len(found) or len(found) == 60
        before = len(found)
    with Store(path, TINY) as store:
        for _ in run_study(TINY, range(60), store, BACKENDS["loky"](1)):
            pass
        assert measures(store) == expected


def somebody_is_left(session):
    try:
        os.killpg(session, 0)
    except ProcessLookupError:
        return False
    return True


@posix
def test_the_processes_of_a_killed_study_end_with_it(tmp_path):
    with killed(tmp_path / "trials.sqlite", trials=10_000, jobs=2) as child:
        try:
            child.kill()
            child.wait()
            deadline = time.monotonic() + 60
            while somebody_is_left(child.pid):
                assert time.monotonic() < deadline
                time.sleep(0.1)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)


def test_a_folder_is_of_one_study(tmp_path, monkeypatch):
    path = tmp_path / "trials.sqlite"
    with Store(path, TINY) as store:
        store.add(Outcome(0, np.zeros((4, 5, 2)), np.zeros(6)))
    with pytest.raises(StoreError, match=r"other options: noise 2.0, not 3.0. Use the same, or another folder"):
        Store(path, replace(TINY, noise=3.0))
    with pytest.raises(StoreError, match="methods"):
        Store(path, replace(TINY, methods=("ocelad@4", *TINY.methods[1:])))
    with Store(path) as store:  # to read it one need not know which
        assert store.study == TINY
        assert store.finished() == {0}
    monkeypatch.setattr("ocelad.studies.store.made_with", lambda: {"numpy": "0.1"})
    with pytest.raises(StoreError, match=r"other versions: numpy '\d.*', not '0.1'"):
        Store(path, TINY)


def test_stored_numbers_come_back_to_the_bit(tmp_path):
    rng = np.random.default_rng(0)
    outcome = Outcome(2**40, rng.normal(size=(4, 5, 2)), rng.random(6))
    outcome.measures[0, 0] = [np.nan, 5e-324]
    with Store(tmp_path / "trials.sqlite", TINY) as store:
        store.add(outcome)
        store.add(replace(outcome, measures=np.zeros((4, 5, 2))))  # the first stays
        (back,) = store.outcomes()
    assert back.trial == outcome.trial
    assert back.measures.tobytes() == outcome.measures.tobytes()
    assert back.seconds.tobytes() == outcome.seconds.tobytes()


@pytest.mark.parametrize("content", [b"", b"method,trial\n", b"SQLite format 3\0" + bytes(100)])
def test_a_file_of_no_study_is_refused(content, tmp_path):
    path = tmp_path / "trials.sqlite"
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"trials\.sqlite"):
        Store(path)


@pytest.fixture(name="stored")
def fixture_stored(tmp_path):
    """A file with 200 trials."""
    path = tmp_path / "trials.sqlite"
    with Store(path, TINY) as store:
        for trial in range(200):
            store.add(Outcome(trial, np.zeros((4, 5, 2)), np.zeros(6)))
    return path


def test_a_file_that_is_damaged_later_on_is_an_error_in_words(stored):
    data = stored.read_bytes()
    assert len(data) > 5 * 8192
    stored.write_bytes(data[:8192] + b"\xff" * (len(data) - 8192))
    for use in (Store.finished, lambda store: list(store.outcomes())):
        with Store(stored) as store, pytest.raises(StoreError, match=r"trials\.sqlite cannot be used"):
            use(store)


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("delete from study", "there is no 'options'"),
        ("update study set value = '{}' where key = 'options'", "there is no 'segments'"),
        ("update study set value = '[1]' where key = 'options'", "cannot be used"),
        ("update study set value = 'x' where key = 'options'", "cannot be used"),
        ("update study set value = '7' where key = 'made with'", "cannot be used"),
        ("update trials set measures = 7", "cannot be used"),
    ],
)
def test_tables_with_other_words_in_them_are_an_error_in_words(stored, statement, message):
    with contextlib.closing(sqlite3.connect(stored)) as connection, connection:
        connection.execute(statement)
    with pytest.raises(StoreError, match=rf"trials\.sqlite .*{message}"), Store(stored) as store:
        list(store.outcomes())


def test_tables_are_made_with_what_they_are_of_or_not_at_all(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("ocelad.studies.store.made_with", lambda: {"numpy": object()})  # no word of JSON
        with pytest.raises(StoreError, match="cannot be used"):
            Store(tmp_path / "trials.sqlite", TINY)
    with pytest.raises(StoreError, match="no such table"):
        Store(tmp_path / "trials.sqlite")
    with Store(tmp_path / "trials.sqlite", TINY) as store:
        assert store.finished() == set()


def test_a_number_too_large_for_the_file_is_an_error_in_words(stored):
    with Store(stored) as store, pytest.raises(StoreError, match="cannot be used"):
        store.add(Outcome(2**63, np.zeros((4, 5, 2)), np.zeros(6)))


def test_there_is_no_study(tmp_path):
    with pytest.raises(StoreError, match="there is no study at"):
        Store(tmp_path / "trials.sqlite")


def test_a_trial_of_another_shape_is_refused(tmp_path):
    path = tmp_path / "trials.sqlite"
    with Store(path, TINY) as store:
        pass
    connection = sqlite3.connect(path)
    connection.execute("insert into trials values (3, x'00', x'00')")
    connection.commit()
    connection.close()
    with Store(path) as store, pytest.raises(StoreError, match=r"trial 3 in .* is not of this study"):
        list(store.outcomes())


def test_a_study_is_the_same_after_json():
    study = replace(TINY, shares=(0.6, 0.4), label_noise=0.1)
    assert Study.from_json(study.to_json()) == study


def test_times_and_segments():
    assert Study().times[-1] == 5487
    assert len(Study().times) == 112
    assert Study().starts == (0, 1300, 2300, 3300, 4300)
    assert Study().jumps == (1, 4)
    data, _, rng = Study().world(0)
    steps = {step.t: step.segment for step in data.stream(rng, (*Study().segments[:1], Segment(60, "B", 0.05)))}
    own = [segment for t, segment in steps.items() if t in Study().times]
    assert list(Study().evaluated_segments)[: len(own)] == own


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"methods": ()}, "methods must be different names"),
        ({"methods": ("ocelad", "Euclid", "Euclid")}, "must be different names, got 'Euclid' more than once"),
        ({"methods": ("nobody",)}, "there is no method 'nobody'"),
        ({"methods": ("Euclid@3",)}, "Euclid takes no rate, got '3'"),
        ({"methods": ("ocelad@fast",)}, "the rate of ocelad must be positive and at most 1e.06, got 'fast'"),
        ({"methods": ("ocelad@-1",)}, "the rate of ocelad must be positive and at most 1e.06, got '-1'"),
        ({"methods": ("SAOL@nan",)}, "the rate of SAOL must be positive"),
        ({"methods": ("ocelad@1e200",)}, "the rate of ocelad must be positive and at most 1e.06, got '1e200'"),
        ({"segments": (Segment(0, "A", 0.0),)}, "segment 0 needs steps >= 1"),
        ({"segments": (Segment(90, "C", 0.0),)}, "segment 0 needs steps >= 1, A or B"),
        ({"segments": (Segment(90, "A", -1.0),)}, "a drift from 0 to 10"),
        ({"segments": ()}, "every must be from 1 to the steps of all segments"),
        ({"dimension": 5}, "dimension must be at least twice the number of shares"),
        ({"shares": (0.5, 0.3)}, "shares must be positive and add up to 1"),
        ({"shares": (0.5, float("nan"))}, "shares must be positive and add up to 1"),
        ({"shares": (float("nan"), 0.5)}, "shares must be positive and add up to 1"),
        ({"separation": 0.0}, "separation must be > 0"),
        ({"noise": float("nan")}, "noise >= 0"),
        ({"label_noise": 0.6}, r"label_noise must lie in \[0, 0.5\]"),
        ({"pairs_per_step": 0}, "pairs_per_step must be at least 1"),
        ({"sample": 401}, "sample must be from 10 to points"),
        ({"every": 251}, "every must be from 1 to the steps of all segments"),
    ],
)
def test_bad_options_are_named(wrong, words):
    with pytest.raises(ValueError, match=words):
        replace(TINY, **wrong)


def test_names_and_rates():
    assert named(["ocelad", "COMID-high-rate@0.5"]) == ("ocelad", "COMID, high rate@0.5")
    assert make("COMID, high rate@0.5").step.size == 0.5
    assert set(DEFAULT) < set(METHODS)
    with pytest.raises(ValueError, match=r"methods must be all, or among ocelad, .*, got 'nobody'"):
        named(["nobody"])


def test_a_method_that_leaves_the_finite_is_named(monkeypatch):
    class Explodes(Euclid):
        def transform(self, X):
            return np.full((len(X), 3), np.inf)

    monkeypatch.setattr("ocelad.studies.methods.METHODS", {"explodes": Explodes})
    with pytest.raises(FloatingPointError, match="explodes is not finite at step 48 of trial 7"):
        run_trial(replace(TINY, methods=("explodes",)), 7)


def test_a_dask_worker_that_is_killed_again_and_again_is_a_broken_executor(monkeypatch):
    """What Dask raises then; workers that really die upset it in ways that depend on the time."""
    distributed = pytest.importorskip("distributed", reason="distributed is not installed: no Dask cluster")

    class Killed(distributed.KilledWorker):
        def __init__(self):
            Exception.__init__(self)

        def __str__(self):
            return "killed four times"

    class Cluster(contextlib.nullcontext):
        cancelled = False

        def __init__(self, **_):
            super().__init__(self)

        def submit(self, function, *call, pure):  # noqa: ARG002
            return self

        def result(self):
            raise Killed

        def cancel(self, futures):
            Cluster.cancelled = len(futures) == 2

    monkeypatch.setattr(distributed, "Client", Cluster)
    monkeypatch.setattr(distributed, "as_completed", iter)
    with pytest.raises(BrokenExecutor, match="killed four times"):
        list(BACKENDS["dask"](1)(run_trial, [(TINY, 0), (TINY, 1)]))
    assert Cluster.cancelled


def test_the_dask_backend_says_what_it_needs(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ImportError, match=r'pip install "ocelad\[dask\]"'):
        BACKENDS["dask"](2)


def test_trials_draw_differently():
    """With one sequence of draws for all, the mean over trials would hide that it rests on a single one."""
    study = Study(methods=("SAOL", "Euclid"), segments=(Segment(490, "A", 0.0),))
    draws = [make("SAOL", seed=trial).weights.seed for trial in range(3)]
    assert draws == [0, 1, 2]
    first, other = run_trial(study, 0), run_trial(study, 1)
    assert not np.array_equal(first.measures[0], other.measures[0])
    np.testing.assert_array_equal(first.measures, run_trial(study, 0).measures)


def test_before_its_first_fit_a_batch_method_is_judged_as_euclid():
    study = Study(methods=("LMNN", "Euclid"), segments=(Segment(196, "A", 0.0),))
    lmnn, euclid = run_trial(study, 0).measures
    np.testing.assert_array_equal(lmnn[0], euclid[0])
    assert not np.array_equal(lmnn[1], euclid[1])
