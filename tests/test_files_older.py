"""Files that ocelad 0.1.0 wrote: they are read, say what they said then, and go on as they would have."""

import io
import json
import re
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

import ocelad
from forge import (
    assert_memory_within_the_limit,
    forged,
    npy,
    parts,
    through_file,
    zip_members,
    zip_of,
    zip_resealed,
    zip_with_entries,
)
from ocelad import (
    Intervals,
    KeyedTrackers,
    MetricTracker,
    OceladWeights,
    Step,
    SupervisedMetricTracker,
    pair_sampling,
)
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
    np.testing.assert_allclose(inner.experts_["weight"], said["weights"], rtol=1e-9)
    assert inner.mu_ == pytest.approx(said["mu"], rel=1e-10)
    assert inner._engine.t == said["t"]
    return inner


@pytest.mark.parametrize("name", SAID)
def test_it_says_what_it_said_and_goes_on(name, path, monkeypatch):
    # balanced comparisons were of both kinds in turn: with a coin, others would be drawn than then
    monkeypatch.setattr(pair_sampling, "uniform", lambda _, turn: 0.0 if turn % 2 else 1.0)
    tracker = read(name)
    inner = agree(name, tracker, "now")
    assert type(inner._engine) is FORMS.get(name, StackEngine)
    assert type(tracker) is (SupervisedMetricTracker if name == "supervised" else MetricTracker)
    again = through_file(tracker, path)  # in today's words
    agree(name, go_on(name, tracker), "later")
    agree(name, go_on(name, again), "later")
    assert again.get_mahalanobis_matrix().tobytes() == tracker.get_mahalanobis_matrix().tobytes()


BY_LEVEL = ("losses", "mu", "discarded", "ranks", "sigma", "debt", "counts", "since", "touched", "state")


def arrays_of(name):
    members = zip_members(DATA / f"{name}.ocelad")
    return {key.removesuffix(".npy"): np.load(io.BytesIO(data)) for key, data in members.items() if ".npy" in key}


@pytest.mark.parametrize("name", [name for name in SAID if name not in CHANGED])
def test_what_was_learned_is_kept_to_the_bit(name):
    """Only in fewer arrays: what there is for each level in one, and eigenvalues with their eigenvectors."""
    before, now = arrays_of(name), parts(ocelad.dumps(read(name)))[2]
    prefix = "learned." if name == "supervised" else ""
    by_level = [before.pop(prefix + column) for column in BY_LEVEL if prefix + column in before]
    assert np.column_stack(by_level).tobytes() == now.pop(f"{prefix}levels").tobytes()
    if f"{prefix}rows" in before:
        eigenvalues, rows = before.pop(f"{prefix}eigenvalues"), before.pop(f"{prefix}rows")
        assert np.column_stack([eigenvalues, rows]).tobytes() == now.pop(f"{prefix}columns").tobytes()
    assert before.keys() == now.keys()
    for key, array in before.items():
        assert (array.dtype, array.shape, array.tobytes()) == (now[key].dtype, now[key].shape, now[key].tobytes())


@pytest.mark.parametrize("name", SAID)
def test_memory_stays_within_the_limit(name):
    assert_memory_within_the_limit(DATA / f"{name}.ocelad")


@pytest.mark.parametrize("name", OPTIONS)
def test_options_are_those_of_today(name):
    wanted = MetricTracker.rice().get_params() | OPTIONS[name]
    assert repr(read(name).get_params()) == repr(wanted)


# Files from when the rank was an option of its own

STEPS = {
    "plain": (8.0, 2, Step(8.0, max_rank=2)),
    "whole": (4, 2, Step(4.0, max_rank=2)),
    "step": ({"part": "Step", "size": 8.0, "threshold": 0.5, "capped": True}, 2, Step(8.0, 0.5, True, max_rank=2)),
    "none": (8.0, None, 8.0),
    "step-none": ({"part": "Step", "size": 8.0, "threshold": 0.5, "capped": False}, None, Step(8.0, 0.5)),
}


def with_option(step, rank):
    def change(options, *_):
        options.update(step=step, max_rank=rank)

    return change


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("new", [MetricTracker, MetricTracker.rice], ids=["pool", "rice"])
def test_the_rank_becomes_the_steps(new, name):
    said, rank, step = STEPS[name]
    pairs, y = stream("default")
    data = ocelad.dumps(new().set_params(step=step).partial_fit(pairs[:40], y[:40]))
    before = forged(data, with_option(said, rank))
    assert before != data
    tracker = ocelad.loads(before)
    assert tracker.step == step
    assert ocelad.dumps(tracker) == ocelad.dumps(ocelad.loads(data).set_params(step=tracker.step))
    assert ocelad.loads(ocelad.dumps(tracker)).step == step


def test_the_rank_of_a_file_of_0_1_0_becomes_the_steps():
    members = zip_members(DATA / "default.ocelad")
    for rank in (None, 4):
        tracker = ocelad.loads(zip_with_entries(members, max_rank=rank))
        assert Step.of(tracker.step).max_rank == rank
    with pytest.raises(ocelad.FileError, match="max_rank must be"):
        ocelad.loads(zip_with_entries(members, max_rank=0))


def test_the_rank_of_trackers_within_others_becomes_the_steps():
    pairs, y = stream("default")
    options = {"tracker": MetricTracker.rice().set_params(step=Step(max_rank=2)), "random_state": 0}
    data = ocelad.dumps(SupervisedMetricTracker(**options).partial_fit(pairs[:30, 0], y[:30]))

    def change(_, entries, __):
        for place in (entries["tracker"], entries["learned"]["options"]):
            place.update(step=8.0, max_rank=2)

    assert ocelad.dumps(ocelad.loads(forged(data, change))) == data
    fleet = KeyedTrackers(options["tracker"]).partial_fit(["a", "b"] * 15, pairs[:30], y[:30])
    data = ocelad.dumps(fleet)
    assert ocelad.dumps(ocelad.loads(forged(data, with_option(8.0, 2)))) == data


@pytest.mark.parametrize(
    ("step", "rank", "words"),
    [
        (8.0, 0, "max_rank must be an integer >= 1"),
        (8.0, True, "max_rank must be of type"),
        (8.0, 1.5, "max_rank must be of type"),
        (8.0, 2**62, "max_rank is too large"),
        ("8", 2, "size must be of type float"),
        (
            {"part": "Step", "size": 8.0, "threshold": 0.5, "capped": False, "max_rank": 2},
            2,
            "max_rank is there twice",
        ),
        ({"part": "Step", "size": 8.0, "threshold": 0.5}, 2, "Step has fields"),
    ],
)
def test_ranks_that_cannot_be_are_refused(step, rank, words):
    pairs, y = stream("default")
    data = ocelad.dumps(MetricTracker().partial_fit(pairs[:40], y[:40]))
    with pytest.raises(ocelad.FileError, match=words):
        ocelad.loads(forged(data, with_option(step, rank)))


def test_deferred_terms_are_settled():
    learned = arrays_of("deferred")
    assert learned["terms"].size > 0
    ends = np.cumsum(learned["ranks"])
    for level, metric in enumerate(read("deferred").expert_metrics_):
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
    "later": ("default", {"version": 2}, "does not say that it is a file of ocelad, version 1"),
    "other format": ("default", {"format": "river"}, "does not say that it is a file of ocelad, version 1"),
    "other class": ("default", {"estimator": "KMeans"}, "it holds a KMeans"),
    "no class": ("default", {"estimator": None}, "does not say of which class"),
    "fleet": ("default", {"estimator": "KeyedTrackers"}, "does not have the entries"),
    "other order": ("default", {"order": "after"}, "it has order='after', which only OceladWeights has now"),
    "no cap": ("default", {"step_cap": "yes"}, "capped must be"),
    "no step": ("cautious", {"threshold_step": None}, "threshold must be"),
    "new entry": ("default", {"history": None, "x": 1}, "does not have the entries"),
    "no options": ("default", {"options": 3}, "not a JSON object"),
    "wide": ("default", {"n_features": 10**6}, "may take more than"),
    "wide list": ("after", {"n_features": 10**6}, "may take more than"),
    "other time": ("default", {"t": 10**9}, "levels must be float64 of shape"),
    "other base": ("after", {"base": 1}, "levels must be float64 of shape"),
    "no weights": (
        "after",
        {"weights": "OceladWeights"},
        "it has order='after', which only OceladWeights has now",
    ),
    "learned": ("supervised", {"learned": {}}, "learned must have the entries of a MetricTracker"),
    "learned list": ("supervised", {"learned": []}, "learned must have the entries of a MetricTracker"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_forged_headers_of_that_version_are_refused(name):
    file, changes, words = FORGERIES[name]
    members = zip_members(DATA / f"{file}.ocelad")
    assert ocelad.loads(zip_of(members)) is not None
    with pytest.raises(ocelad.FileError, match=words):
        ocelad.loads(zip_with_entries(members, **changes))


def member(name, data):
    return lambda members: zip_of(members | {name: data})


def other(name, change):
    """Another array in its place."""
    return lambda members: zip_of(members | {name: npy(change(np.load(io.BytesIO(members[name]))))})


def claiming(members):
    data = zip_of(members)
    return zip_resealed(data[:18] + struct.pack("<LL", 2**31, 2**31) + data[26:])


def twice(members):
    """The record of a member once more, before the directory."""
    data, record = zip_of(members), zip_of({"mu.npy": members["mu.npy"]})
    start = data.index(b"PK\1\2")
    return zip_resealed(data[:start] + record[: record.index(b"PK\1\2")] + data[start:])


def reshaped(old, new):
    """Another shape in the same number of bytes."""

    def forge(members):
        assert re.search(old, members["mu.npy"])
        return zip_of(members | {"mu.npy": re.sub(old, new, members["mu.npy"])})

    return forge


def nested(depth):
    return {"x": nested(depth - 1)} if depth else {}


ARCHIVES = {
    "cut": ("default", lambda members: zip_of(members)[:-1], "checksum does not match"),
    "bit": ("default", lambda members: zip_of(members)[:-1] + b"g", "checksum does not match"),
    "start": ("default", lambda members: zip_of(members)[:4], "checksum does not match"),
    "empty": ("default", lambda _: zip_of({"x": b""}), "it has no header.json"),
    "record": ("default", lambda _: zip_resealed(b"PK\3\4" + bytes(120)), "it has no header.json"),
    "no json": ("default", member("header.json", b"{"), "not a JSON object"),
    "deep json": ("default", member("header.json", b"[" * 100_000), "not a JSON object"),
    "nested json": ("default", lambda members: zip_with_entries(members, x=nested(600)), "recursion|the entries"),
    "compressed": ("default", lambda members: zip_of(members, zipfile.ZIP_DEFLATED), "compressed or encrypted"),
    "bomb": (
        "default",
        lambda members: zip_of(members | {"zeros.npy": bytes(10**7)}, zipfile.ZIP_DEFLATED),
        "compressed or encrypted",
    ),
    "many": ("default", lambda _: zip_of({f"{i}": b"" for i in range(99)}), "more than 24 members"),
    "long name": ("default", lambda _: zip_of({"x" * 33: b""}), "a name of 33 letters"),
    "claims": ("default", claiming, "claims 2147483648 bytes"),
    "twice": ("default", twice, "member mu.npy is there twice"),
    "extra": ("default", member("x.npy", npy(np.zeros(1))), "its arrays are levels, columns, x, expected"),
    "extra file": ("default", member("x", b""), "x is not an .npy array"),
    "not npy": ("default", member("mu.npy", b"12345"), "mu.npy is not an .npy array"),
    "objects": ("default", member("mu.npy", npy(np.array([{}] * 4), allow_pickle=True)), "mu.npy is not an .npy"),
    "float32": ("default", member("mu.npy", npy(np.ones(4, "<f4"))), "mu.npy is not an .npy array"),
    "big-endian": ("default", member("mu.npy", npy(np.ones(4, ">f8"))), "mu.npy is not an .npy array"),
    "fortran": ("default", member("rows.npy", npy(np.ones((2, 4), order="F"))), "rows.npy is not an .npy array"),
    "npy of later": ("default", member("mu.npy", npy(np.ones(4), version=(2, 0))), "mu.npy is not an .npy array"),
    "shape": ("default", reshaped(rb"\(\d,\)", b"(9,)"), "claims shape"),
    "huge shape": ("default", reshaped(rb"\(\d,\), \} {9}", b"(2000000000,), }"), "claims shape"),
    "overflowing shape": ("default", reshaped(rb"\(\d,\), \} {18}", b"(2305843009213693953,), }"), "claims shape"),
    "no state": ("default", lambda m: zip_of({k: m[k] for k in m if k != "state.npy"}), "its arrays are"),
    "scalar state": ("default", other("state.npy", np.sum), "as many rows as there are levels"),
    "flat state": ("default", other("state.npy", np.ravel), "as many rows as there are levels"),
    "scalar mu": ("default", other("mu.npy", np.sum), "as many rows as there are levels"),
    "fewer mu": ("default", other("mu.npy", lambda a: a[1:]), "as many rows as there are levels"),
    "small mu": ("default", other("mu.npy", lambda a: a - 1.0), "mu must be finite and >= 1"),
    "huge ranks": ("default", other("ranks.npy", lambda a: a + 2**62), "rank has entries outside"),
    "scalar rows": ("default", other("rows.npy", np.sum), "rows must have one row for each of eigenvalues"),
    "longer rows": ("default", other("rows.npy", lambda a: 1.01 * a), "not orthonormal"),
    "scalar ranks of terms": ("deferred", other("ranks.npy", np.sum), "ranks"),
    "huge ranks of terms": ("deferred", other("ranks.npy", lambda a: a + 2**62), "entries that cannot be"),
    "huge counts of terms": ("deferred", other("counts.npy", lambda a: a + 2**62), "entries that cannot be"),
    "fewer terms": ("deferred", other("terms.npy", lambda a: a[1:]), "terms must be float64 of shape"),
    "huge terms": ("deferred", other("terms.npy", lambda a: a * 1e300), "terms must be finite"),
    "scalar sigma of terms": ("deferred", other("sigma.npy", np.sum), "sigma must be float64 of shape"),
    "no rows of terms": ("deferred", lambda m: zip_of({k: m[k] for k in m if k != "rows.npy"}), "its arrays are"),
    "skew matrices": ("boxes", other("matrices.npy", lambda a: a + np.tri(4)), "not symmetric and positive"),
    "fewer matrices": ("boxes", other("matrices.npy", lambda a: a[1:]), "matrices must be float64 of shape"),
}


@pytest.mark.parametrize("name", ARCHIVES)
def test_forged_archives_of_that_version_are_refused(name):
    file, forge, words = ARCHIVES[name]
    data = forge(zip_members(DATA / f"{file}.ocelad"))
    with pytest.raises(ocelad.FileError, match=words):
        ocelad.loads(data)


def test_todays_options_are_not_of_that_version(saved):
    options, entries, arrays = parts(saved.read_bytes())
    header = {**entries, "options": options, "format": "ocelad", "version": 1}
    members = {"header.json": json.dumps(header, sort_keys=True).encode()}
    with pytest.raises(ocelad.FileError, match="its options are not those of version 1"):
        ocelad.loads(zip_of(members | {f"{name}.npy": npy(array) for name, array in arrays.items()}))
