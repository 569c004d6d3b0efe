"""Files that are not in order: each is refused with the file's name and the reason, within the stated memory."""

import os
import re
from functools import cache

import numpy as np
import pytest

import ocelad
from forge import (
    assert_memory_within_the_limit,
    column,
    dictionaries_from,
    forged,
    last,
    of_sections,
    option,
    parts,
    put,
    resealed,
    rewritten,
    sections,
)
from ocelad import (
    L1,
    AdaNormalHedge,
    CoinBetting,
    FileError,
    FixedShare,
    LogDet,
    MetricTracker,
    NuclearNorm,
    OceladWeights,
    SaolWeights,
    SquaredFrobenius,
    VonNeumann,
)
from ocelad.engine import windows
from streams import comparisons
from trackers import rice

N = 4
PAIRS, Y = comparisons(seed=0, steps=72, n=N)
ENGINES = {
    "pool": {"memory": 64},
    "long-pool": {},
    "pool-list": {"memory": 64, "regularizer": SquaredFrobenius(0.05)},
    "pool-no-memory": {"memory": None},
    "stack": {"weights": FixedShare(), "regularizer": NuclearNorm(0.02)},
    "list": {"weights": FixedShare(), "regularizer": SquaredFrobenius(0.05)},
}


def replaced(old, new):
    """A change of the text of the entries."""

    def forge(data):
        assert old in sections(data)[1]
        return rewritten(data, lambda text: text.replace(old, new))

    return forge


BYTES = {
    "empty": (lambda _: b"", "not a file that ocelad.save wrote"),
    "text": (lambda _: b"hello" * 9, "not a file that ocelad.save wrote"),
    "other-format": (lambda data: resealed(b"\x93NUMPYZ" + data[7:]), "not a file that ocelad.save wrote"),
    "short": (lambda data: resealed(data[:8] + bytes(4)), "not a file that ocelad.save wrote"),
    "no-sections": (lambda data: resealed(data[:8] + bytes(8)), "its sections are not as"),
    "cut": (lambda data: data[:-1], "checksum does not match.* cut short"),
    "longer": (lambda data: data + b"0", "checksum does not match"),
    "bit": (lambda data: data[:99] + bytes([data[99] ^ 1]) + data[100:], "checksum does not match"),
    "later": (lambda data: resealed(data[:7] + b"\3" + data[8:]), "it has format version 3; this ocelad reads"),
    "no-version": (lambda data: resealed(data[:7] + b"\0" + data[8:]), "it has format version 0"),
    "zip-version": (lambda data: resealed(data[:7] + b"\1" + data[8:]), "it has format version 1"),
    "long-section": (lambda data: resealed(data[:8] + b"\xff" * 4 + data[12:]), "its sections are not as"),
    "short-section": (lambda data: resealed(data[:8] + b"\0" * 4 + data[12:]), "its sections are not as"),
    "options-only": (
        lambda data: resealed(data[: len(data) - len(sections(data)[2]) - 4]),
        "its sections|claims shape",
    ),
    "more-bytes": (lambda data: resealed(data + b"\0" * 8), "it has 8 bytes besides its arrays"),
    "fewer-bytes": (lambda data: resealed(data[:-12] + data[-4:]), "array columns claims shape"),
    "spaced-json": (
        lambda data: rewritten(data, lambda text: text + b" "),
        "not a JSON object as ocelad.save writes",
    ),
    "no-json": (lambda data: rewritten(data, lambda _: b"{"), "not a JSON object"),
    "list-json": (lambda data: rewritten(data, lambda _: b"[]"), "not a JSON object"),
    "no-text": (lambda data: rewritten(data, lambda _: b""), "not a JSON object"),
    "deep-json": (lambda data: rewritten(data, lambda _: b"[" * 100_000), "not a JSON object"),
    "deep-entries": (
        lambda data: rewritten(data, lambda _: b'{"a":' * 800 + b"1" + b"}" * 800),
        "table of arrays",
    ),
    "letters": (replaced(b'"t"', b'"\xc3\xbc"'), "not a JSON object"),
    "nan": (replaced(b'"t":40', b'"t":NaN'), "not a JSON object"),
    "other-float": (replaced(b'"t":40', b'"t":40.00'), "not a JSON object"),
    "entry-twice": (replaced(b'"t":40', b'"t":40,"t":40'), "not a JSON object"),
    "spaced-options": (
        lambda data: of_sections(sections(data)[0] + b" ", *sections(data)[1:]),
        "not a JSON object",
    ),
    "no-options": (
        lambda data: of_sections(b"{}", *sections(data)[1:]),
        "its options are not those of MetricTracker",
    ),
    "deep-options": (lambda data: of_sections(b"[" * 100_000, *sections(data)[1:]), "not a JSON object"),
    "no-table": (replaced(b'"arrays"', b'"a"'), "table of arrays must have"),
    "objects": (replaced(b'"f8"', b'"O8"'), "table of arrays must have"),
    "float32": (replaced(b'"f8",[4,6]', b'"f4",[4,12]'), "levels must be float64 of shape"),
    "float16": (replaced(b'"f8"', b'"f2"'), "table of arrays must have"),
    "big-endian": (replaced(b'"f8"', b'">f8"'), "table of arrays must have"),
    "array-twice": (replaced(b'"levels"', b'"columns"'), "table of arrays must have"),
    "no-name": (replaced(b'"levels"', b"3"), "table of arrays must have"),
    "negative-shape": (replaced(b",6]", b",-6]"), "table of arrays must have"),
    "long-shape": (replaced(b",6]", b",6,1,1,1]"), "table of arrays must have"),
    "true-shape": (replaced(b",6]", b",true]"), "table of arrays must have"),
    "endless-shape": (replaced(b",6]", b",1099511627776]"), "table of arrays must have"),
    "huge-shape": (replaced(b",6]", b",1099511627775]"), "more than there are bytes"),
    "larger-shape": (replaced(b",6]", b",7]"), "more than there are bytes"),
    "smaller-shape": (replaced(b",6]", b",5]"), "bytes besides its arrays"),
    "bytes": (replaced(b'"f8",[4,6]', b'"u1",[4,48]'), "levels must be float64 of shape"),
    "odd-bytes": (replaced(b'"f8",[4,6]', b'"u1",[4,47]'), "array levels is not followed by zeros"),
}


@pytest.mark.parametrize("name", BYTES)
def test_bytes_out_of_order_are_refused_by_name_and_reason(saved, name):
    forge, words = BYTES[name]
    saved.write_bytes(forge(saved.read_bytes()))
    with pytest.raises(FileError, match=f"(?s)^{re.escape(str(saved))}: .*{words}"):
        ocelad.load(saved)


def scale(value, count, first):
    return put({"value": value, "count": count, "first": first}, "scale")


FORGERIES = {
    # options
    "step": (option("step", -1.0), "step must be a finite number > 0"),
    "huge-step": (option("step", 10**400), "step is too large"),
    "no-part": (option("loss", {"part": "os.system"}), "names no known part"),
    "other-part": (option("loss", {"part": "Frobenius"}), "loss must be a margin loss"),
    "other-weights": (option("weights", {"part": "Hinge"}), "weights must be a combiner"),
    "other-fields": (option("loss", {"part": "Hinge", "x": 1}), "Hinge has fields"),
    "bad-field": (option("regularizer", {"part": "NuclearNorm", "strength": -1.0}), "strength must be >= 0"),
    "word": (option("regularizer", {"part": "NuclearNorm", "strength": "1"}), "strength must be of type float"),
    "huge-number": (option("regularizer", {"part": "NuclearNorm", "strength": 10**400}), "strength is too large"),
    "ensemble": (option("ensemble", "os.system"), "ensemble must be a function"),
    "list-option": (option("origin", [[1.0]]), "option origin is a list"),
    "no-array": (option("origin", {"array": "origin"}), "origin must have an array"),
    "other-array": (option("origin", {"array": "x"}), "names no known part"),
    "more-options": (option("x", 1), "its options are not those of MetricTracker"),
    "no-base": (option("base", 0), "must be integers"),
    "true-base": (option("base", True), "must be integers"),
    "other-base": (option("base", 16), r"levels must be float64 of shape \(2, 6\)"),
    "components": (option("n_components", 10), "n_components"),
    # entries
    "class": (put("os.system", "estimator"), "it holds a os.system, which is not one of"),
    "no-class": (put(3, "estimator"), "does not say of which class"),
    "other-class": (put("MovingIndex", "estimator"), "does not have the entries of this version"),
    "more-entries": (put(1, "x"), "does not have the entries of this version"),
    "no-features": (put(0, "n_features"), "must be integers"),
    "wide": (put(10**6, "n_features"), "may take more than"),
    "other-time": (put(10**9, "t"), r"levels must be float64 of shape \(28, 6\)"),
    "any-time": (put(10**30, "t"), "too large"),
    "names": (put(["a"], "feature_names"), "feature_names must be null or 4 names"),
    "given": (put(2.0, "given"), "given must be a matrix"),
    "threshold": (put("1", "threshold"), "threshold must be null or a number"),
    "no-scale": (put(None, "scale"), "scale must have value, count and first"),
    "scale-count": (scale(1.0, 99, []), "scale has count 99 at time 40"),
    "scale-first": (scale(1.0, 2, [1.0]), "scale contradicts itself"),
    "scale-value": (scale(-1.0, 20, []), "scale must have numbers > 0"),
    # arrays
    "extra": (put(np.zeros(1), "x"), "its arrays are levels, columns, x, expected levels, columns"),
    "extra-empty": (put(np.zeros(0), "x"), "its arrays are levels, columns, x"),
    "many": (lambda *parts: parts[2].update({f"{i}": np.zeros(0) for i in range(99)}), "its arrays are"),
    "no-levels": (lambda *parts: parts[2].pop("levels"), "its arrays are columns, expected levels"),
    "no-arrays": (lambda *parts: parts[2].clear(), "its arrays are none, expected levels"),
    "other-order": (
        lambda *parts: parts[2].update(levels=parts[2].pop("levels")),
        "its arrays are columns, levels",
    ),
    "negative-rank": (column("rank", last(-1.0)), "rank must be finite and >= 0"),
    "huge-rank": (column("rank", last(2.0**62)), "rank has entries outside 0, ..., 4"),
    "signed-rank": (column("rank", lambda a: np.where(a == 0, -0.0, a)), "rank has entries outside 0, ..., 4"),
    "half-rank": (column("rank", last(0.5)), "rank has entries outside 0, ..., 4"),
    "other-ranks": (column("rank", lambda a: np.eye(len(a))[-1]), "columns must be float64 of shape"),
    "loss": (column("loss", last(np.nan)), "loss must be finite and >= 0"),
    "nan-mu": (column("mu", last(np.nan)), "mu must be finite and >= 1"),
    "small-mu": (column("mu", last(0.5)), "mu must be finite and >= 1"),
    "discarded": (column("discarded", last(-1.0)), "discarded must be finite and >= 0"),
    "negative": (column("sigma", last(-1.0)), "sigma must be finite and >= 0"),
    "infinite": (column("sigma", last(np.inf)), "sigma must be finite and >= 0"),
    "weights": (column(0, lambda a: 0 * a - 9.0), "to which FixedShare can come"),
    "huge-weight": (column(0, last(1e300)), "to which FixedShare can come"),
    "more-state": (put(lambda a: np.c_[a, 0 * a[:, 0]], "levels"), "levels must be float64 of shape"),
    "fewer-levels": (put(lambda a: a[1:], "levels"), "levels must be float64 of shape"),
    "flat-levels": (put(np.ravel, "levels"), "levels must be float64 of shape"),
    "transposed": (put(np.transpose, "levels"), "levels must be float64 of shape"),
    "whole-levels": (put(lambda a: np.nan_to_num(a).astype(int), "levels"), "levels must be float64"),
    "fewer-columns": (put(lambda a: a[1:], "columns"), "columns must be float64 of shape"),
    "nan-columns": (put(lambda a: a * np.nan, "columns"), "columns must be finite"),
    "eigenvalues": (put(lambda a: a - 3 * a * np.eye(N + 1)[0], "columns"), "eigenvalues must be >= 0"),
    "longer": (put(lambda a: 1.01 * a, "columns"), "not orthonormal"),
    "huge": (put(lambda a: 1e300 * a, "columns"), "not orthonormal"),
    "zero": (put(lambda a: 0.0 * a, "columns"), "not orthonormal"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_forged_files_are_refused_by_name_and_reason(saved, name):
    change, words = FORGERIES[name]
    data = saved.read_bytes()
    assert forged(data, lambda *_: None) == data
    saved.write_bytes(forged(data, change))
    with pytest.raises(FileError, match=f"(?s)^{re.escape(str(saved))}: .*{words}"):
        ocelad.load(saved)
    with pytest.raises(FileError, match=f"(?s)^data: .*{words}"):
        ocelad.loads(saved.read_bytes())


@pytest.fixture(name="boxes")
def fixture_boxes():
    return ocelad.dumps(rice(regularizer=SquaredFrobenius(0.05), step=1.0).partial_fit(PAIRS, Y))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (put(lambda a: a - 1.0, "matrices"), "not symmetric and positive semi-definite"),
        (put(lambda a: a + np.triu(np.ones(N), 1), "matrices"), "not symmetric and positive semi-definite"),
        (put(lambda a: a * np.nan, "matrices"), "matrices must be finite"),
        (put(lambda a: a[1:], "matrices"), "matrices must be float64 of shape"),
        (put(np.ravel, "matrices"), "matrices must be float64 of shape"),
        (column("mu", lambda a: a - 1.0), "mu must be finite and >= 1"),
        (column("mu", lambda a: a * np.nan), "mu must be finite and >= 1"),
        (column("discarded", lambda a: a - 1.0), "discarded must be finite and >= 0"),
        (put(lambda a: a[1:], "levels"), "levels must be float64 of shape"),
        (option("ensemble", True), "ensemble must be a function"),
        (option("weights", {"part": "Hinge"}), "weights must be a combiner"),
    ],
)
def test_black_boxes_that_are_no_metrics_are_refused(change, words, boxes):
    assert forged(boxes, lambda *_: None) == boxes
    with pytest.raises(FileError, match=words):
        ocelad.loads(forged(boxes, change))


IMPOSSIBLE = {
    "nobody-drawn": (SaolWeights(), 3, 0.0, "to which SaolWeights can come"),
    "two-drawn": (SaolWeights(), 3, 1.0, "to which SaolWeights can come"),
    "other-length": (OceladWeights(), 1, 7.0, "contradict the time"),
    "endless": (OceladWeights(), 2, 1.0, "contradict the time"),
    "other-age": (CoinBetting(), 3, -1.0, "contradict the time"),
    "negative-sum": (AdaNormalHedge(), 2, -1.0, "to which AdaNormalHedge can come"),
    "regret-above-its-size": (AdaNormalHedge(), 1, 1e300, "to which AdaNormalHedge can come"),
    "sum-above-the-age": (CoinBetting(), 2, 99.0, "to which CoinBetting can come"),
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_weights_that_no_rule_gives_are_refused(name):
    weights, field, value, words = IMPOSSIBLE[name]
    data = ocelad.dumps(MetricTracker(weights=weights, base=4).partial_fit(PAIRS, Y))
    with pytest.raises(FileError, match=words):
        ocelad.loads(forged(data, column(field, lambda a: 0 * a + value)))


def test_weights_that_overflow_are_refused():
    data = ocelad.dumps(MetricTracker(weights=CoinBetting(), base=4).partial_fit(PAIRS, Y))

    def change(options, entries, arrays):  # noqa: ARG001
        state = arrays["levels"][:, 5:]
        betting = np.flatnonzero(state[:, 2] > 0)
        assert len(betting) > 1
        state[betting[0], :2] = 1.7e308

    with pytest.raises(FileError, match="give no probabilities"):
        ocelad.loads(forged(data, change))


def test_not_a_file(path, tmp_path):
    with pytest.raises(FileNotFoundError):
        ocelad.load(path)
    with pytest.raises(FileError, match="not a regular file"):
        ocelad.load(tmp_path)
    if hasattr(os, "mkfifo"):
        os.mkfifo(path)
        with pytest.raises(FileError, match="not a regular file"):
            ocelad.load(path)


def test_limit(saved):
    size = saved.stat().st_size
    with pytest.raises(FileError, match=f"it has {size} bytes, and the limit is 1000"):
        ocelad.load(saved, limit=1000)
    with pytest.raises(FileError, match=f"data: it has {size} bytes, and the limit is 1000"):
        ocelad.loads(saved.read_bytes(), limit=1000)
    with pytest.raises(FileError, match=r"header of .* bytes is too long"):
        ocelad.load(saved, limit=size + 1000)
    with pytest.raises(ValueError, match="limit must be a number of bytes"):
        ocelad.load(saved, limit=0)


@pytest.mark.parametrize("options", ENGINES.values(), ids=ENGINES)
@pytest.mark.parametrize("origin", [0.0, "matrix"])
@pytest.mark.parametrize("n", [1, 30, 100])
@pytest.mark.parametrize("many", [1, 10**6], ids=["dictionary", "columns"])
def test_memory_stays_within_the_limit(path, options, origin, n, many, monkeypatch):
    dictionaries_from(monkeypatch, many)
    pairs, y = comparisons(seed=1, steps=40, n=n)
    origin = np.diag(np.arange(1.0, n + 1)) if origin == "matrix" else origin
    ocelad.save(MetricTracker(**options, step=0.5, origin=origin).partial_fit(pairs, y), path)
    assert_memory_within_the_limit(path)


# Pools


def entry(name, row, place, value):
    """A change of one number of an array."""

    def change(array):
        array[row, place] = value
        return array

    return put(change, name)


POOL_FORGERIES = {
    "stored": (put(lambda a: a + 1, "stored"), "stored must be from 0 to 72"),
    "never": (put(lambda a: a - 2**62, "stored"), "stored must be from 0 to 72"),
    "later": (put(lambda a: a - 1, "stored"), "replayed must have times from 0 to 71"),
    "float-stored": (put(lambda a: a * 1.0, "stored"), "stored must be int64 of shape"),
    "many-stored": (put(lambda a: np.repeat(a, 2), "stored"), "stored must be int64 of shape"),
    "fixed-shape": (put(lambda a: a[1:], "fixed"), "fixed must be float64 of shape"),
    "fixed-nan": (entry("fixed", 0, 0, np.nan), "fixed must have losses >= 0"),
    "fixed-inf": (entry("fixed", 0, 0, np.inf), "fixed must have losses >= 0"),
    "weight-nan": (entry("fixed", 0, 1, np.nan), "fixed must have losses >= 0 and logarithms of weights"),
    "fixed-loss": (entry("fixed", 0, 0, -1.0), "fixed must have losses >= 0"),
    "fixed-weight": (entry("fixed", 0, 1, 2.0), "fixed must have losses >= 0 and logarithms of weights"),
    "fixed-sum": (entry("fixed", 0, 1, 0.0), "to which GroupedShare can come"),
    "levels-weight": (column(0, last(0.5)), "to which GroupedShare can come"),
    "levels-group": (column(1, last(1.0)), "to which GroupedShare can come"),
    "calibration-shape": (put(lambda a: a[1:], "calibration"), "calibration must be float64 of shape"),
    "calibration-nan": (entry("calibration", 0, 0, np.nan), "calibration must be finite"),
    "flat": (entry("calibration", 0, 0, 0.0), "calibration must have slopes"),
    "upside-down": (entry("calibration", 2, 0, -1.0), "calibration must have slopes"),
    "steep": (entry("calibration", 2, 0, 1e300), "calibration has numbers larger"),
    "shifted": (entry("calibration", 3, 1, -1e300), "calibration has numbers larger"),
    "concave": (entry("calibration", 1, 2, -1.0), "positive semi-definite"),
    "indefinite": (entry("calibration", 1, 3, 1e200), "positive semi-definite"),
    "replayed-shape": (put(lambda a: a[:, 1:], "replayed"), "replayed must be float64 of shape"),
    "replayed-nan": (entry("replayed", 0, 0, np.inf), "replayed must be finite"),
    "far-threshold": (entry("replayed", 0, 0, 1e300), "replayed has numbers larger"),
    "negative-square": (entry("replayed", 0, 4, -1.0), "squares >= 0"),
    "half-a-step": (entry("replayed", 0, 5, 0.5), "replayed must have times"),
    "too-many-steps": (entry("replayed", 0, 5, 145.0), "replayed must have times"),
    "negative-start": (entry("replayed", 3, 6, -1.0), "replayed must have times"),
    "late-start": (entry("replayed", 3, 6, 73.0), "replayed must have times from 0 to 72"),
    "late-zero": (entry("replayed", 3, 8, 73.0), "replayed must have times from 0 to 72"),
    "excess": (entry("replayed", 3, 7, 11.0), "replayed must have excess losses from 0 to 10"),
    "negative-excess": (entry("replayed", 3, 7, -1.0), "replayed must have excess losses"),
    "metrics-shape": (put(lambda a: a[1:], "metrics"), "metrics must be float32 of shape"),
    "metrics-double": (put(lambda a: a.astype(float), "metrics"), "metrics must be float32 of shape"),
    "metrics-nan": (entry("metrics", 0, 0, np.nan), "metrics must be finite"),
    "metrics-large": (entry("metrics", 0, 0, 1e30), "metrics has numbers larger"),
    "ring-shape": (put(lambda a: a[1:], "ring"), "ring must be float32 of shape"),
    "ring-inf": (entry("ring", 3, 1, np.inf), "ring must be finite"),
    "no-label": (entry("ring", 3, N, 0.0), "ring must have labels"),
    "heavy-label": (entry("ring", 3, N, -1e9), "ring must have labels"),
    "other-memory": (option("memory", 33), "ring must be float32 of shape|replayed must be"),
    "less-memory": (option("memory", 31), "memory must be an integer >= 32"),
    "true-memory": (option("memory", True), "memory must be an integer >= 32"),
    "huge-memory": (option("memory", 10**12), "may take more than"),
    "no-memory": (option("memory", None), "stored must be from 0 to 0"),
    "rice": (option("weights", {"part": "FixedShare", "rate": 0.3, "share": 0.01}), "its arrays are"),
}


POOLS = {
    "compiled": {},
    "LogDet": {"divergence": LogDet(), "origin": 1.0, "step": 1.0},
    "VonNeumann": {"divergence": VonNeumann(), "origin": 1.0, "step": 1.0},
    "L1": {"regularizer": L1(0.02), "step": 1.0},
}


@cache
def bytes_of_pool(name):
    return ocelad.dumps(MetricTracker(memory=32, base=4, **POOLS[name]).partial_fit(PAIRS, Y))


@pytest.fixture(name="pool", params=POOLS)
def fixture_pool(request):
    return bytes_of_pool(request.param)


@pytest.mark.parametrize("name", POOL_FORGERIES)
def test_pools_that_cannot_be_are_refused(name, pool):
    change, words = POOL_FORGERIES[name]
    with pytest.raises(FileError, match=words):
        ocelad.loads(forged(pool, change))
    assert ocelad.dumps(ocelad.loads(pool)) == pool  # nothing is left of what was refused


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (put(lambda a: a - 2.0, "matrices"), "not symmetric and positive semi-definite"),
        (put(lambda a: a * np.nan, "matrices"), "matrices must be finite"),
        (put(lambda a: a[1:], "matrices"), "matrices must be float64 of shape"),
        (column("mu", lambda a: a * np.nan), "mu must be finite and >= 1"),
        (lambda *parts: parts[2].pop("matrices"), "its arrays are levels, fixed"),
        (lambda *parts: parts[2].pop("ring"), "its arrays are levels, matrices, fixed"),
        (option("divergence", {"part": "Frobenius"}), None),  # black boxes of parts that have kernels: they can be
    ],
)
def test_pools_of_black_boxes_that_are_no_metrics_are_refused(change, words):
    data = forged(bytes_of_pool("LogDet"), change)
    if words is None:
        assert ocelad.dumps(ocelad.loads(data)) == data
        return
    with pytest.raises(FileError, match=words):
        ocelad.loads(data)


def test_a_pool_without_memory_has_been_given_nothing_to_replay():
    for options in POOLS.values():
        data = ocelad.dumps(MetricTracker(memory=None, **options).partial_fit(PAIRS[:9], Y[:9]))
        assert parts(data)[2]["stored"] == 0
        with pytest.raises(FileError, match="stored must be from 0 to 0"):
            ocelad.loads(forged(data, put(lambda a: a + 1, "stored")))


def test_a_wide_pool_has_no_calibration_of_the_euclidean_distance(monkeypatch):
    """As there is none, the row that is left free for it cannot say anything."""
    monkeypatch.setattr(windows, "WIDE", 3)
    for options in POOLS.values():
        data = ocelad.dumps(MetricTracker(scale=3.0, **options).partial_fit(PAIRS[:9], Y[:9]))
        assert ocelad.dumps(ocelad.loads(data)) == data
        with pytest.raises(FileError, match="Euclidean distance, which is not there"):
            ocelad.loads(forged(data, entry("calibration", 2, 1, 0.5)))


def test_a_pool_without_its_comparisons_takes_no_memory(pool):
    def change(options, entries, arrays):  # noqa: ARG001
        options["memory"] = 10**12
        del arrays["ring"]

    with pytest.raises(FileError, match="may take more than"):
        ocelad.loads(forged(pool, change))


@pytest.mark.parametrize("boxes", [False, True], ids=["compiled", "boxes"])
@pytest.mark.parametrize("name", ["fixed", "calibration", "replayed", "metrics", "ring"])
def test_pools_that_can_be_go_on_in_numbers(name, boxes):
    """Whatever single number, or column of numbers, is another: it is refused, or what follows is finite."""
    pool, few = (bytes_of_pool("LogDet"), 3) if boxes else (bytes_of_pool("compiled"), len(Y))
    extremes = (0.0, -0.0, 1.0, -1.0, 7.0, 1e-45, 1e9, -1e9, 1e15, -1e15, 3e38, -3e38, 1e100, 1.7e308)
    accepted = 0
    for place in range(parts(pool)[2][name].shape[1]):
        for value in extremes:
            for row in (slice(None), 1):
                with np.errstate(over="ignore"):
                    data = forged(pool, entry(name, row, place, value))
                try:
                    tracker = ocelad.loads(data)
                except FileError:
                    continue
                accepted += 1
                for _ in range(2):
                    assert np.isfinite(tracker.get_mahalanobis_matrix()).all()
                    assert np.isfinite(tracker.predict_proba(PAIRS)).all()
                    assert np.isfinite(tracker.mixture_proba(PAIRS)).all()
                    assert tracker.experts_["weight"].sum() == pytest.approx(1.0)
                    with np.errstate(over="ignore", invalid="ignore"):  # as compiled code does
                        tracker.partial_fit(PAIRS[:few], Y[:few])
    assert accepted
