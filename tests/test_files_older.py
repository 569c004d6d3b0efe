"""Files that ocelad 0.1.0 wrote: they are read, say what they said then, and go on as they would have."""

import json
from pathlib import Path

import numpy as np
import pytest

import ocelad
from forge import members_of, sealed, through_file
from ocelad import Intervals, MetricTracker, OceladWeights, Step, SupervisedMetricTracker
from ocelad.engine import BoxEngine
from ocelad.engine.stack_engine import StackEngine
from streams import comparisons

DATA = Path(__file__).parent / "data"
SAID = json.loads((DATA / "0.1.0.json").read_text())
"""Distances of eight pairs, mu, weights and time: as the file was written, and after more comparisons."""

OPTIONS = {
    "default": {},
    "paper": MetricTracker.paper().get_params(),
    "cautious": {"step": Step(32.0, capped=True), "base": Intervals(8, "continue")},
    "after": {"weights": OceladWeights(order="after")},
}
FORMS = {"after": BoxEngine, "apart": BoxEngine, "boxes": BoxEngine}
CHANGED = ("deferred", "after")  # their learners had a form that is no more


def read(name):
    return ocelad.load(DATA / f"{name}.ocelad")


def stream(name):
    n = {"dictionary": 100, "deferred": 64}.get(name, 4)
    return comparisons(seed=0, steps={"dictionary": 20, "deferred": 90}.get(name, 72), n=n)


def go_on(name, tracker):
    pairs, y = stream(name)
    if name == "supervised":
        return tracker.partial_fit(pairs[20:40, 0], (pairs[20:40, 0, 0] > 0).astype(int))
    t = SAID[name]["now"]["t"]
    return tracker.partial_fit(pairs[t:], y[t:])


def agree(name, tracker, when):
    said, inner = SAID[name][when], getattr(tracker, "tracker_", tracker)
    np.testing.assert_allclose(
        tracker.pair_distance(stream(name)[0][:8]), said["distances"], rtol=1e-8, atol=1e-10
    )
    np.testing.assert_allclose(inner.levels_["weight"], said["weights"], rtol=1e-9)
    assert inner.mu_ == pytest.approx(said["mu"], rel=1e-10)
    assert inner._engine.t == said["t"]
    return inner


@pytest.mark.parametrize("name", SAID)
def test_it_says_what_it_said_and_goes_on(name, path):
    tracker = read(name)
    inner = agree(name, tracker, "now")
    assert type(inner._engine) is FORMS.get(name, StackEngine)
    assert type(tracker) is (SupervisedMetricTracker if name == "supervised" else MetricTracker)
    again = through_file(tracker, path)  # in today's words
    agree(name, go_on(name, tracker), "later")
    agree(name, go_on(name, again), "later")
    assert again.get_mahalanobis_matrix().tobytes() == tracker.get_mahalanobis_matrix().tobytes()


@pytest.mark.parametrize("name", [name for name in SAID if name not in CHANGED])
def test_what_was_learned_is_kept_to_the_bit(name, path):
    """Only the header is written in other words."""
    ocelad.save(read(name), path)
    before, now = members_of(DATA / f"{name}.ocelad"), members_of(path)
    assert list(before) == list(now)
    assert {member for member in now if now[member] != before[member]} == {"header.json"}
    assert json.loads(before["header.json"])["version"] == 1
    assert json.loads(now["header.json"])["version"] == 2


@pytest.mark.parametrize("name", OPTIONS)
def test_options_are_those_of_today(name):
    wanted = MetricTracker().get_params() | OPTIONS[name]
    assert repr(read(name).get_params()) == repr(wanted)


def test_deferred_terms_are_settled():
    with np.load(DATA / "deferred.ocelad") as arrays:
        assert arrays["terms"].size > 0
        learned = {name: arrays[name] for name in arrays.files if name != "header.json"}
    ends = np.cumsum(learned["ranks"])
    for level, metric in enumerate(read("deferred").level_metrics_):
        rank, count = int(learned["ranks"][level]), int(learned["counts"][level])
        Q = learned["rows"][ends[level] - rank : ends[level]]
        before = int((learned["counts"] * learned["ranks"])[:level].sum())
        L = learned["terms"].reshape(-1)[before : before + count * rank].reshape(count, rank)
        a = learned["term_weights"][learned["counts"][:level].sum() :][:count]
        S = np.diag(learned["eigenvalues"][ends[level] - rank : ends[level]]) + (L.T * a) @ L
        sigma, unit = learned["sigma"][level], read("deferred").scale_ ** 2
        M = Q.T @ S @ Q + sigma * (np.eye(64) - Q.T @ Q)
        np.testing.assert_allclose(metric.M * unit, M, atol=1e-12 * max(1.0, np.abs(S).max()))


FORGERIES = {
    "new words": ("default", {"version": 2}, "its options are not those of MetricTracker"),
    "other order": ("default", {"order": "after"}, "it has order='after', which only OceladWeights has now"),
    "no cap": ("default", {"step_cap": "yes"}, "capped must be"),
    "no step": ("cautious", {"threshold_step": None}, "threshold must be"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_forged_headers_of_that_version_are_refused(name, path):
    file, changes, words = FORGERIES[name]
    members = members_of(DATA / f"{file}.ocelad")
    header = json.loads(members["header.json"])
    for key, value in changes.items():
        (header["options"] if key in header["options"] else header)[key] = value
    path.write_bytes(sealed(members | {"header.json": json.dumps(header, sort_keys=True).encode()}))
    with pytest.raises(ocelad.FileError, match=words):
        ocelad.load(path)


def test_todays_options_are_not_of_that_version(saved):
    members = members_of(saved)
    header = json.loads(members["header.json"]) | {"version": 1}
    saved.write_bytes(sealed(members | {"header.json": json.dumps(header, sort_keys=True).encode()}))
    with pytest.raises(ocelad.FileError, match="options"):
        ocelad.load(saved)
