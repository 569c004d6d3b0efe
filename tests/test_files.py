"""Files: save, load, continue is the uninterrupted run, bit for bit, and a write happens whole or not at all."""

import copy
import io
import json
import math
import os
import pickle
import stat
import struct
import zlib

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import ocelad
from forge import file_of
from ocelad import (
    L1,
    AdaNormalHedge,
    CoinBetting,
    FixedShare,
    GroupedShare,
    Hinge,
    Intervals,
    LogDet,
    Logistic,
    MetricTracker,
    NuclearNorm,
    OceladWeights,
    Pool,
    SaolWeights,
    SquaredFrobenius,
    SquaredHinge,
    Step,
    Unregularized,
    VonNeumann,
)
from ocelad.engine.stack_engine import StackEngine
from streams import comparisons
from trackers import either, rice

N, STEPS = 4, 72
PAIRS, Y = comparisons(seed=0, steps=STEPS, n=N)
MATRIX = np.diag([1.0, 2.0, 0.0, 0.5])
RULES = {
    "fixed-share": FixedShare(),
    "no-share": FixedShare(share=0.0),
    "paper": OceladWeights(),
    "mixture": OceladWeights(regret="mixture", reset=False),
    "saol": SaolWeights(seed=7),
    "coin": CoinBetting(),
    "hedge": AdaNormalHedge(),
}
ENGINES = {"stack": NuclearNorm(0.02), "list": SquaredFrobenius(0.05)}
SETTINGS = {
    f"{engine}-{type(loss).__name__}-{rule}": rice(
        loss=loss, regularizer=regularizer, weights=weights, base=4, step=0.5 if engine == "list" else 8.0
    )
    for engine, regularizer in ENGINES.items()
    for loss in (Hinge(), SquaredHinge(), Logistic())
    for rule, weights in RULES.items()
} | {
    "defaults": rice(),
    "paper": MetricTracker.paper(step=2.0),
    "continue": rice(base=Intervals(1, "continue")),
    "list-continue": rice(base=Intervals(1, "continue"), regularizer=SquaredFrobenius(0.05), step=1.0),
    "l1": rice(regularizer=L1(0.05), step=1.0),
    "none": rice(regularizer=Unregularized()),
    "capped": rice(step=Step(64.0, capped=True)),
    "von-neumann": rice(divergence=VonNeumann(), origin=1.0, step=1.0),
    "logdet": rice(divergence=LogDet(), origin=1, step=1.0),
    "identity": rice(origin=0.5, regularizer=NuclearNorm(0.001)),
    "matrix": rice(origin=MATRIX.tolist()),
    "list-matrix": rice(origin=np.asfortranarray(MATRIX + 0.1), regularizer=L1(0.05), step=1.0),
    "after": rice(weights=OceladWeights(order="after")),
    "list-after": rice(regularizer=SquaredFrobenius(0.05), weights=OceladWeights(order="after")),
    "fixed-unit": rice(scale=0.7, base=3),
    "numpy-numbers": rice(step=np.float32(8.0), base=np.int64(2), scale=np.float64(0.7)),
    "features": rice(scale="features"),
    "list-features": rice(scale="features", regularizer=L1(0.05), step=1.0),
    "pool-features": MetricTracker(memory=32, scale="features"),
    "pool": MetricTracker(),
    "pool-short": MetricTracker(memory=32, base=4),
    "pool-odd": MetricTracker(memory=45, loss=Logistic(), base=Intervals(1, "continue"), scale=None),
    "pool-no-memory": MetricTracker(memory=None, base=1),
    "pool-shares": MetricTracker(memory=32, weights=GroupedShare(0.0, 0.0), origin=MATRIX),
    "pool-capped": MetricTracker(memory=64, step=Step(max_rank=1), regularizer=Unregularized(), n_components=2),
}
CUTS = (1, 2, 3, 4, 7, 8, 9, 12, 15, 16, 17, 20, 28, 36, 56, 60, 64, 71)  # 4 and 8 re-open at some, not at others


@pytest.fixture(params=SETTINGS, name="tracker")
def fixture_tracker(request):
    return clone(SETTINGS[request.param])


def through_file(tracker, path):
    ocelad.save(tracker, path)
    return ocelad.load(path)


def test_save_load_continue_is_the_uninterrupted_run(tracker, path):
    whole = file_of(clone(tracker).partial_fit(PAIRS, Y), path)
    for cut in CUTS:
        before = clone(tracker).partial_fit(PAIRS[:cut], Y[:cut])
        written = file_of(before, path)
        after = ocelad.load(path)
        assert file_of(after, path) == written
        assert after.experts_.tobytes() == before.experts_.tobytes()
        assert after.get_mahalanobis_matrix().tobytes() == before.get_mahalanobis_matrix().tobytes()
        assert after.predict_proba(PAIRS).tobytes() == before.predict_proba(PAIRS).tobytes()
        assert file_of(after.partial_fit(PAIRS[cut:], Y[cut:]), path) == whole, cut


@pytest.mark.parametrize("setting", ["paper", "pool-short", "features"])
def test_save_load_at_every_step_is_the_uninterrupted_run(setting, path):
    tracker = clone(SETTINGS[setting]).partial_fit(PAIRS[:1], Y[:1])
    for t in range(1, STEPS):
        tracker = through_file(tracker, path).partial_fit(PAIRS[t : t + 1], Y[t : t + 1])
    assert file_of(tracker, path) == file_of(clone(SETTINGS[setting]).partial_fit(PAIRS, Y), path)


@either
def test_learning_that_stopped_before_its_first_step_can_be_saved(new, path, monkeypatch):
    tracker = new().partial_fit(PAIRS[:20], Y[:20]).set_threshold(0.5)
    before = file_of(tracker, path)
    with monkeypatch.context() as patch:
        patch.setattr(StackEngine, "run", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            tracker.partial_fit(PAIRS[20:], Y[20:])
    assert file_of(tracker, path) == before
    again = through_file(tracker, path).partial_fit(PAIRS[20:], Y[20:])
    assert file_of(again, path) == file_of(new().partial_fit(PAIRS, Y), path)


@pytest.mark.parametrize(
    "through",
    [copy.deepcopy, lambda tracker: pickle.loads(pickle.dumps(tracker)), lambda tracker: through_joblib(tracker)],
    ids=["deepcopy", "pickle", "joblib"],
)
def test_copies_continue_bit_for_bit(tracker, through, path):
    before = clone(tracker).partial_fit(PAIRS[:28], Y[:28])
    other = through(before)
    unmoved = file_of(before, path)
    assert file_of(other, path) == unmoved
    other.partial_fit(PAIRS[28:], Y[28:])
    assert file_of(before, path) == unmoved  # a copy shares nothing
    assert file_of(other, path) == file_of(before.partial_fit(PAIRS[28:], Y[28:]), path)


def through_joblib(tracker):
    file = io.BytesIO()
    joblib.dump(tracker, file)
    file.seek(0)
    return joblib.load(file)


def test_options_and_names_survive(tracker, path):
    tracker.partial_fit(PAIRS, Y)
    tracker.feature_names_in_ = np.array(["height", "Größe", "\u30b5", ""], dtype=object)
    again = through_file(tracker, path)
    for name, value in tracker.get_params().items():
        assert np.array_equal(getattr(again, name), value), name
    assert again.feature_names_in_.dtype == object
    assert list(again.feature_names_in_) == list(tracker.feature_names_in_)
    assert again.n_features_in_ == N


@either
def test_spare_room_is_not_saved(new, path):
    """Arrays grow by batches; a file holds only what is in use."""
    at_once = new(base=1).partial_fit(PAIRS, Y)
    one_by_one = new(base=1)
    for pair, label in zip(PAIRS, Y, strict=True):
        one_by_one.partial_fit(pair[None], [label])
    assert file_of(at_once, path) == file_of(one_by_one, path)


def test_a_few_lines_read_it(saved):
    """As docs/files.md describes it, with nothing of this library."""
    data = saved.read_bytes()
    assert data[:8] == b"\x93OCELAD\x02"
    assert data[-4:] == struct.pack("<I", zlib.crc32(data[:-4]))
    texts, rest = [], data[8:-4]
    for _ in range(2):
        (size,) = struct.unpack_from("<I", rest)
        texts.append(rest[4 : 4 + size])
        end = 4 + size + -(4 + size) % 8
        assert rest[4 + size : end] == b" " * (end - 4 - size)
        rest = rest[end:]
    options, entries = map(json.loads, texts)
    arrays = {}
    for name, code, shape in entries["arrays"]:
        arrays[name] = np.frombuffer(rest, "<" + code, math.prod(shape)).reshape(shape)
        rest = rest[arrays[name].nbytes :]
    assert not rest
    assert (entries["estimator"], entries["t"], entries["n_features"], options["base"]) == (
        "MetricTracker",
        40,
        N,
        4,
    )
    assert [array.dtype for array in arrays.values()] == [np.float64, np.float64]
    assert arrays["columns"].shape == (arrays["levels"][:, 3].sum(), 1 + N)
    np.testing.assert_array_equal(arrays["levels"][:, 0], ocelad.load(saved).experts_["loss"])


# What cannot be saved


def test_what_a_file_cannot_hold_is_refused(path):
    class Steep(Hinge):
        pass

    for wrong, words in {
        MetricTracker(ensemble=lambda spawn: Pool([spawn(1.0, None)])): "ensemble=.* cannot be saved",
        MetricTracker(loss=Steep()): "loss=.* cannot be saved",
        MetricTracker(base=2**62): "too large",
        MetricTracker(weights=OceladWeights(reset=1)): "option weights: reset must be of type bool, got 1",
    }.items():
        with pytest.raises(ValueError, match=words):
            ocelad.save(wrong.partial_fit(PAIRS, Y), path)
    pool = rice(ensemble=lambda spawn: Pool([spawn(1.0, None)])).partial_fit(PAIRS, Y)
    with pytest.raises(ValueError, match="a file holds RICE of COMID learners"):
        ocelad.save(pool.set_params(ensemble=None), path)
    with pytest.raises(NotFittedError):
        ocelad.save(MetricTracker(), path)
    with pytest.raises(ValueError, match="tracker must be one of MetricTracker, SupervisedMetricTracker"):
        ocelad.save(Hinge(), path)
    marked = MetricTracker().partial_fit(PAIRS, Y)
    marked.note_ = "mine"
    with pytest.raises(ValueError, match="no place for the tracker's note_"):
        ocelad.save(marked, path)
    assert not list(path.parent.iterdir())


@pytest.mark.parametrize(
    "change",
    [
        {"loss": Logistic()},
        {"regularizer": NuclearNorm(0.5)},
        {"divergence": LogDet(), "origin": 1.0},
        {"weights": CoinBetting()},
        {"step": 1.0},
        {"base": 2},
        {"base": Intervals(8, "continue")},
        {"origin": MATRIX},
        {"origin": 1.0},
        {"step": Step(8.0, threshold=0.2)},
        {"scale": None},
        {"step": Step(8.0, capped=True)},
        {"weights": OceladWeights(order="after")},
        {"step": Step(0.5, max_rank=2)},
    ],
    ids=lambda change: next(iter(change)),
)
@pytest.mark.parametrize("regularizer", ENGINES.values(), ids=ENGINES)
def test_options_that_are_not_those_in_force_are_refused(change, regularizer, path):
    tracker = rice(regularizer=regularizer, step=0.5).partial_fit(PAIRS, Y)
    with pytest.raises(ValueError, match="options have changed since the first comparison"):
        ocelad.save(tracker.set_params(**change), path)


@pytest.mark.parametrize("change", [{"memory": 32}, {"memory": None}, {"weights": GroupedShare(0.1)}, {"base": 2}])
def test_options_that_are_not_those_of_a_pool_are_refused(change, path):
    tracker = MetricTracker(memory=64).partial_fit(PAIRS, Y)
    with pytest.raises(ValueError, match="options have changed since the first comparison"):
        ocelad.save(tracker.set_params(**change), path)


# Writing


def test_a_write_that_fails_leaves_the_old_file(saved, monkeypatch):
    before = saved.read_bytes()
    tracker = MetricTracker().partial_fit(PAIRS, Y)
    for name in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, lambda *_: (_ for _ in ()).throw(OSError("no space left")))
            with pytest.raises(OSError, match="no space left"):
                ocelad.save(tracker, saved)
        assert saved.read_bytes() == before
        assert list(saved.parent.iterdir()) == [saved]


def test_bytes_are_on_disk_before_the_name(path, monkeypatch):
    events = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(
        os, "fsync", lambda file: (events.append(stat.S_IFMT(os.fstat(file).st_mode)), fsync(file))
    )
    monkeypatch.setattr(os, "replace", lambda *names: (events.append("rename"), replace(*names)))
    ocelad.save(MetricTracker().partial_fit(PAIRS, Y), path)
    assert events[:2] == [stat.S_IFREG, "rename"]
    assert events[2:] in ([stat.S_IFDIR], [])


def test_a_link_stays_a_link(saved):
    link = saved.parent / "latest"
    link.symlink_to(saved)
    ocelad.save(MetricTracker().partial_fit(PAIRS, Y), str(link))
    assert link.is_symlink()
    assert ocelad.load(saved)._engine.t == STEPS
