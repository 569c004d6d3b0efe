"""Files that are not in order: each is refused with the file's name and the reason, within the stated memory."""

import os
import re
import struct
import zipfile

import numpy as np
import pytest

import ocelad
from forge import (
    assert_memory_within_the_limit,
    members_of,
    npy,
    resealed,
    sealed,
    with_array,
    with_header,
    zipped,
)
from ocelad import (
    AdaNormalHedge,
    CoinBetting,
    FileError,
    MetricTracker,
    NuclearNorm,
    OceladWeights,
    SaolWeights,
    SquaredFrobenius,
)
from ocelad.engine import stack_engine
from streams import comparisons

N = 4
PAIRS, Y = comparisons(seed=0, steps=72, n=N)
ENGINES = {"stack": NuclearNorm(0.02), "list": SquaredFrobenius(0.05)}


FORGERIES = {
    "empty": (lambda _: b"", "not a file that ocelad.save wrote"),
    "text": (lambda _: b"hello", "not a file that ocelad.save wrote"),
    "cut": (lambda path: path.read_bytes()[:-1], "checksum does not match.* cut short"),
    "longer": (lambda path: path.read_bytes() + b"0", "checksum does not match"),
    "later": (lambda path: with_header(path, version=3), "format version 3, written by a later ocelad"),
    "no-version": (lambda path: with_header(path, version="1"), "its format version is '1'"),
    "other-format": (lambda path: with_header(path, format="river"), "does not say that it is a file of ocelad"),
    "no-json": (lambda _: sealed({"header.json": b"{"}), "header is not JSON"),
    "deep-json": (lambda _: sealed({"header.json": b"[" * 100_000}), "header is not JSON"),
    "no-member": (lambda _: sealed({}), "not a file that"),
    "compressed": (lambda path: zipped(path, zipfile.ZIP_DEFLATED), "compressed or encrypted"),
    "other-writer": (zipped, "not as ocelad.save writes"),
    "bomb": (
        lambda path: zipped(path, zipfile.ZIP_DEFLATED, [("zeros.npy", b"\0" * 10**7)]),
        "compressed or encrypted",
    ),
    "extra": (lambda path: sealed(members_of(path) | {"x.npy": npy(np.zeros(1))}), "expected state, losses"),
    "extra-file": (lambda path: sealed(members_of(path) | {"x": b""}), "its members are"),
    "header-last": (
        lambda path: sealed(dict(reversed(members_of(path).items()))),
        "expected header.json and",
    ),
    "header-late": (
        lambda path: sealed({"state.npy": b""} | members_of(path)),
        "its members are state.npy, header.json, losses.npy",
    ),
    "many": (lambda _: sealed({f"{i}": b"" for i in range(99)}), "more than 24 members"),
    "objects": (
        lambda path: sealed(members_of(path) | {"mu.npy": npy(np.array([{}] * 4), allow_pickle=True)}),
        r"member mu.npy has dtype \|O",
    ),
    "float32": (lambda path: sealed(members_of(path) | {"mu.npy": npy(np.ones(4, "<f4"))}), "has dtype <f4"),
    "big-endian": (lambda path: sealed(members_of(path) | {"mu.npy": npy(np.ones(4, ">f8"))}), "has dtype >f8"),
    "fortran": (
        lambda path: sealed(members_of(path) | {"rows.npy": npy(np.ones((2, 4), order="F"))}),
        "rows.npy is in Fortran order",
    ),
    "not-npy": (lambda path: sealed(members_of(path) | {"mu.npy": b"12345"}), "mu.npy is not an array"),
    "spaced-json": (
        lambda path: sealed(members_of(path) | {"header.json": members_of(path)["header.json"] + b" "}),
        "does not have the entries of this version",
    ),
    "no-features": (lambda path: with_header(path, n_features=0), "must be integers"),
    "wide": (lambda path: with_header(path, n_features=10**6), "may take more than"),
    "other-time": (lambda path: with_header(path, t=10**9), "mu must be one number for each of 28 levels"),
    "any-time": (lambda path: with_header(path, t=10**30), "too large"),
    "other-base": (lambda path: with_header(path, base=16), "mu must be one number for each of 2 levels"),
    "no-base": (lambda path: with_header(path, base=0), "must be integers"),
    "true-base": (lambda path: with_header(path, base=True), "must be integers"),
    "no-part": (lambda path: with_header(path, loss={"part": "os.system"}), "names no known part"),
    "other-part": (lambda path: with_header(path, loss={"part": "Frobenius"}), "loss must be a margin loss"),
    "other-fields": (lambda path: with_header(path, loss={"part": "Hinge", "x": 1}), "Hinge has fields"),
    "bad-field": (
        lambda path: with_header(path, regularizer={"part": "NuclearNorm", "strength": -1.0}),
        "strength must be >= 0",
    ),
    "word": (
        lambda path: with_header(path, regularizer={"part": "NuclearNorm", "strength": "1"}),
        "strength must be of type float",
    ),
    "huge-number": (
        lambda path: with_header(path, regularizer={"part": "NuclearNorm", "strength": 10**400}),
        "strength is too large",
    ),
    "huge-step": (lambda path: with_header(path, step=10**400), "step is too large"),
    "step": (lambda path: with_header(path, step=-1.0), "step must be a finite number > 0"),
    "ensemble": (lambda path: with_header(path, ensemble="os.system"), "ensemble must be a function"),
    "list-option": (lambda path: with_header(path, origin=[[1.0]]), "option origin is a list"),
    "no-array": (lambda path: with_header(path, origin={"array": "origin"}), "option origin names no known part"),
    "names": (lambda path: with_header(path, feature_names=["a"]), "feature_names must be null or 4 names"),
    "scale-count": (
        lambda path: with_header(path, scale={"value": 1.0, "count": 99, "first": []}),
        "scale has count 99 at time 40",
    ),
    "scale-first": (
        lambda path: with_header(path, scale={"value": 1.0, "count": 2, "first": [1.0]}),
        "scale contradicts itself",
    ),
    "scale-value": (
        lambda path: with_header(path, scale={"value": -1.0, "count": 20, "first": []}),
        "scale must have numbers > 0",
    ),
    "no-scale": (lambda path: with_header(path, scale=None), "scale must have value, count and first"),
    "negative-rank": (
        lambda path: with_array(path, "ranks", [-1, 1, 1, 1]),
        "ranks has entries outside 0, ..., 4",
    ),
    "huge-rank": (lambda path: with_array(path, "ranks", [2**62] * 4), "ranks has entries outside 0, ..., 4"),
    "other-ranks": (lambda path: with_array(path, "ranks", [0, 0, 0, 1]), "rows must be float64 of shape"),
    "float-ranks": (lambda path: with_array(path, "ranks", np.ones(4)), "ranks must be int64"),
    "nan": (lambda path: with_array(path, "mu", [1.0, 1.0, 1.0, np.nan]), "mu must be finite"),
    "small-mu": (lambda path: with_array(path, "mu", [1.0, 1.0, 1.0, 0.5]), "mu has entries below 1"),
    "negative": (lambda path: with_array(path, "sigma", [0.0, 0.0, 0.0, -1.0]), "sigma has entries below 0"),
    "losses": (lambda path: with_array(path, "losses", [np.nan, 0.0, 0.0, 0.0]), "losses must be finite"),
    "state": (lambda path: with_array(path, "state", np.full((4, 1), -9.0)), "to which FixedShare can come"),
    "state-shape": (lambda path: with_array(path, "state", np.zeros((4, 2))), "state must be finite, with 4 rows"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_forged_files_are_refused_by_name_and_reason(saved, name):
    forge, words = FORGERIES[name]
    saved.write_bytes(forge(saved))
    with pytest.raises(FileError, match=f"(?s)^{re.escape(str(saved))}: .*{words}"):
        ocelad.load(saved)


def test_rows_that_are_not_orthonormal_are_refused(saved):
    for factor in (1.01, 1e300, 0.0):
        data = with_array(saved, "rows", factor * np.load(saved)["rows"])
        other = saved.with_name("other")
        other.write_bytes(data)
        with pytest.raises(FileError, match="not orthonormal"):
            ocelad.load(other)


@pytest.mark.parametrize(
    "spoil", [lambda M: M - 1.0, lambda M: M + np.triu(np.ones(N), 1)], ids=["negative", "skew"]
)
def test_matrices_that_are_no_metrics_are_refused(path, spoil):
    ocelad.save(MetricTracker(regularizer=SquaredFrobenius(0.05), step=1.0).partial_fit(PAIRS, Y), path)
    path.write_bytes(with_array(path, "matrices", np.array([spoil(M) for M in np.load(path)["matrices"]])))
    with pytest.raises(FileError, match="not symmetric and positive semi-definite"):
        ocelad.load(path)


@pytest.mark.parametrize(
    ("name", "forge", "words"),
    [
        ("mu", lambda mu: mu - 1.0, "mu has entries below 1"),
        ("mu", lambda mu: mu * np.nan, "mu must be finite"),
        ("discarded", lambda cut: cut - 1.0, "discarded has entries below 0"),
        ("discarded", lambda cut: cut[1:], "discarded must be float64 of shape"),
    ],
)
def test_numbers_of_black_boxes_are_checked(path, name, forge, words):
    ocelad.save(MetricTracker(regularizer=SquaredFrobenius(0.05), step=1.0).partial_fit(PAIRS, Y), path)
    path.write_bytes(with_array(path, name, forge(np.load(path)[name])))
    with pytest.raises(FileError, match=words):
        ocelad.load(path)


IMPOSSIBLE = {
    "nobody-drawn": (SaolWeights(), 3, 0.0, "to which SaolWeights can come"),
    "two-drawn": (SaolWeights(), 3, 1.0, "to which SaolWeights can come"),
    "other-length": (OceladWeights(), 1, 7.0, "contradicts the time"),
    "endless": (OceladWeights(), 2, 1.0, "contradicts the time"),
    "other-age": (CoinBetting(), 3, -1.0, "contradicts the time"),
    "negative-sum": (AdaNormalHedge(), 2, -1.0, "to which AdaNormalHedge can come"),
    "regret-above-its-size": (AdaNormalHedge(), 1, 1e300, "to which AdaNormalHedge can come"),
    "sum-above-the-age": (CoinBetting(), 2, 99.0, "to which CoinBetting can come"),
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_weights_that_no_rule_gives_are_refused(path, name):
    weights, column, value, words = IMPOSSIBLE[name]
    ocelad.save(MetricTracker(weights=weights, base=4).partial_fit(PAIRS, Y), path)
    state = np.load(path)["state"].copy()
    state[:, column] = value
    path.write_bytes(with_array(path, "state", state))
    with pytest.raises(FileError, match=words):
        ocelad.load(path)


def test_weights_that_overflow_are_refused(path):
    ocelad.save(MetricTracker(weights=CoinBetting(), base=4).partial_fit(PAIRS, Y), path)
    state = np.load(path)["state"].copy()
    betting = np.flatnonzero(state[:, 2] > 0)
    assert len(betting) > 1
    state[betting[0], :2] = 1.7e308
    path.write_bytes(with_array(path, "state", state))
    with pytest.raises(FileError, match="gives no probabilities"):
        ocelad.load(path)


def test_a_member_twice_is_refused(saved):
    data, members = saved.read_bytes(), members_of(saved)
    record = sealed({"mu.npy": members["mu.npy"]})[: 30 + len("mu.npy") + len(members["mu.npy"])]
    start = data.index(b"PK\1\2")
    saved.write_bytes(resealed(data[:start] + record + data[start:]))
    with pytest.raises(FileError, match=r"member mu.npy is there twice"):
        ocelad.load(saved)


def test_a_member_that_claims_too_much_is_refused(saved):
    data = bytearray(saved.read_bytes())
    data[18:26] = struct.pack("<LL", 2**31, 2**31)
    saved.write_bytes(resealed(bytes(data)))
    with pytest.raises(FileError, match="claims 2147483648 bytes"):
        ocelad.load(saved)


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
    with pytest.raises(FileError, match=r"header of .* bytes is too long"):
        ocelad.load(saved, limit=size + 1000)
    with pytest.raises(ValueError, match="limit must be a number of bytes"):
        ocelad.load(saved, limit=0)


@pytest.mark.parametrize("regularizer", ENGINES.values(), ids=ENGINES)
@pytest.mark.parametrize("origin", [0.0, "matrix"])
@pytest.mark.parametrize("n", [1, 30, 100])
@pytest.mark.parametrize("many", [1, 10**6], ids=["dictionary", "columns"])
def test_memory_stays_within_the_limit(path, regularizer, origin, n, many, monkeypatch):
    monkeypatch.setattr(stack_engine, "DICTIONARY", many)
    pairs, y = comparisons(seed=1, steps=40, n=n)
    origin = np.diag(np.arange(1.0, n + 1)) if origin == "matrix" else origin
    ocelad.save(MetricTracker(regularizer=regularizer, step=0.5, origin=origin).partial_fit(pairs, y), path)
    assert_memory_within_the_limit(path)
