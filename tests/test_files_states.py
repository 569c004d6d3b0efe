"""Files of trackers in every state that one can come to: each continues as the tracker that was never saved."""

import copy

import numpy as np
import pytest
from scipy import sparse

import ocelad
from forge import column, dictionaries_from, file_of, forged, parts, put, through_file, with_entries
from ocelad import (
    L1,
    FileError,
    GroupedShare,
    History,
    Intervals,
    LogDet,
    MetricTracker,
    NuclearNorm,
    OceladWeights,
    Rice,
    SaolWeights,
    SquaredFrobenius,
    Step,
    VonNeumann,
)
from ocelad.engine import BoxEngine
from streams import comparisons
from trackers import either, rice

N, STEPS, CUT = 9, 90, 37
PAIRS, Y = comparisons(seed=3, steps=STEPS, n=N)
SPARSE = np.where(np.abs(PAIRS) > 0.3, PAIRS, 0.0)
MATRIX = np.diag(np.arange(float(N)))


@pytest.fixture(name="deferred", params=[1, 10**6], ids=["dictionary", "columns"])
def fixture_deferred(request, monkeypatch):
    dictionaries_from(monkeypatch, request.param)
    return request.param == 1


def dense(tracker, part):
    return tracker.partial_fit(PAIRS[part], Y[part])


def rows(tracker, part):
    return tracker.partial_fit([sparse.csr_array(SPARSE[part, side]) for side in (0, 1)], Y[part])


def weighted(tracker, part):
    return tracker.partial_fit(PAIRS[part], Y[part], sample_weight=np.linspace(0, 2, STEPS)[part])


def triplets(tracker, part):
    return tracker.partial_fit_triplets(np.concatenate([PAIRS, PAIRS[::-1, :1]], axis=1)[part])


def by_number(tracker, part):
    return tracker.partial_fit(np.arange(2 * STEPS).reshape(STEPS, 2)[part], Y[part])


def set_out(tracker, part):
    """From components that are set on the way."""
    if part.start == 0:
        dense(tracker, slice(0, 20))
        tracker.components_ = np.sqrt(MATRIX)
        part = slice(20, part.stop)
    return dense(tracker, part)


OPTIONS = {
    "defaults": {},
    "paper": {"weights": OceladWeights(), "base": 1, "scale": None},
    "verbs": {"weights": SaolWeights(), "base": Intervals(8, "continue")},
    "capped": {"step": Step(max_rank=2), "regularizer": NuclearNorm(0.001)},
    "capped-matrix": {"step": Step(max_rank=2), "origin": MATRIX, "base": Intervals(8, "continue")},
    "capped-list": {"regularizer": SquaredFrobenius(0.05), "step": Step(0.5, max_rank=2)},
    "identity": {"origin": 0.5, "regularizer": NuclearNorm(0.001)},
    "short": {"n_components": 2},
    "pool": {"weights": GroupedShare(), "memory": 2048},
    "pool-short": {"weights": GroupedShare(), "memory": 32, "base": 2, "step": Step(max_rank=2)},
    "pool-no-memory": {"weights": GroupedShare(), "n_components": 2},
}
BOXES = {
    "L1": {"regularizer": L1(0.02), "step": 1.0},
    "LogDet": {"divergence": LogDet(), "origin": 1.0, "step": 1.0},
    "VonNeumann": {"divergence": VonNeumann(), "origin": 1.0, "step": 1.0, "n_components": 2},
}
"""Parts that have no kernels."""


@pytest.mark.parametrize("learn", [dense, rows, weighted, triplets, set_out])
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_every_state_continues_bit_for_bit(options, learn, deferred, path):  # noqa: ARG001
    whole = learn(rice(**options), slice(0, CUT))
    again = through_file(whole, path)
    assert again.get_mahalanobis_matrix().tobytes() == whole.get_mahalanobis_matrix().tobytes()
    assert again.discarded_.tobytes() == whole.discarded_.tobytes()
    for tracker in (whole, again):
        learn(tracker, slice(CUT, STEPS))
    assert file_of(again, path) == file_of(whole, path)


@pytest.mark.parametrize("cut", [0, 1, 100])
@pytest.mark.parametrize("mixed", [False, True], ids=["pairs", "triplets-and-weights"])
@pytest.mark.parametrize("memory", [32, 2048, None])
@pytest.mark.parametrize("options", BOXES.values(), ids=BOXES)
def test_pools_of_black_boxes_continue_bit_for_bit(options, memory, mixed, cut, path):
    """From the first moment on; with a memory of 32 also after the ring has wrapped around."""
    pairs, y = comparisons(seed=4, steps=110, n=4)
    weight = np.linspace(0.1, 2.0, 110) if mixed else None

    def learn(tracker, start, stop):
        for k in range(start, stop, 10):
            part = slice(k, min(k + 10, stop))
            tracker.partial_fit(pairs[part], y[part], None if weight is None else weight[part])
            if mixed:
                tracker.partial_fit_triplets(np.concatenate([pairs[k : k + 1], pairs[k : k + 1, :1] + 1], axis=1))
        return tracker

    whole = learn(MetricTracker(memory=memory, base=4, **options)._begin(4), 0, cut)
    assert type(whole._engine) is BoxEngine
    again = through_file(whole, path)
    assert type(again._engine) is BoxEngine
    assert again.experts_.tobytes() == whole.experts_.tobytes()
    assert again.mixture_proba(pairs).tobytes() == whole.mixture_proba(pairs).tobytes()
    alone = copy.deepcopy(whole)
    for tracker in (whole, again):
        learn(tracker, cut, 110)
    assert file_of(again, path) == file_of(whole, path)
    assert again.predict_proba(pairs).tobytes() == whole.predict_proba(pairs).tobytes()
    assert again.discarded_.tobytes() == whole.discarded_.tobytes()
    assert file_of(learn(alone, cut, 110), path) == file_of(whole, path)


@pytest.mark.parametrize("options", [{}, BOXES["LogDet"]], ids=["compiled", "boxes"])
@pytest.mark.parametrize("rule", [GroupedShare(0.0, 0.0), GroupedShare(0.0), GroupedShare(between=0.0)])
def test_weights_that_have_come_to_be_zero_are_kept(options, rule, path):
    """Where nothing is shared, an expert that has lost too much has the weight 0 for ever."""
    pairs, y = comparisons(seed=5, steps=60, n=4)
    heavy = np.full(60, 100.0)
    whole = MetricTracker(memory=32, base=4, weights=rule, **options).partial_fit(pairs[:40], y[:40], heavy[:40])
    again = through_file(whole, path)
    found = parts(path.read_bytes())[2]
    logs = np.concatenate([found["fixed"][:, 1], found["levels"][:, -2]])
    assert np.isneginf(logs).any() or rule.share > 0.0
    for tracker in (whole, again):
        tracker.partial_fit(pairs[40:], y[40:], heavy[40:])
    assert file_of(again, path) == file_of(whole, path)
    assert again.experts_["weight"].sum() == pytest.approx(1.0)
    assert np.isfinite(again.mixture_proba(pairs)).all()


def test_boxes_and_kernels_have_arrays_alike():
    """All but the levels': what a pool has besides is in arrays of the same names, shapes and kinds."""
    pairs, y = comparisons(seed=6, steps=60, n=4)
    trackers = [MetricTracker(memory=32, **options).partial_fit(pairs, y) for options in ({}, BOXES["L1"])]
    compiled, boxes = (
        [(name, array.dtype, array.shape) for name, array in parts(ocelad.dumps(tracker))[2].items()]
        for tracker in trackers
    )
    assert compiled[2:] == boxes[2:]
    assert [name for name, *_ in boxes[:2]] == ["levels", "matrices"]


def test_an_ensemble_in_a_pool_that_is_not_that_of_the_options_is_refused(path):
    tracker = dense(MetricTracker(ensemble=lambda spawn: Rice(spawn, base=3)), slice(0, CUT))
    with pytest.raises(ValueError, match="options have changed since the first comparison"):
        ocelad.save(tracker.set_params(ensemble=None), path)
    tracker = dense(MetricTracker(memory=32, **BOXES["LogDet"]), slice(0, CUT))
    with pytest.raises(ValueError, match="options have changed since the first comparison"):
        ocelad.save(tracker.set_params(memory=64), path)


def test_a_stack_knows_its_latest_losses(deferred, path):  # noqa: ARG001
    again = through_file(dense(rice(), slice(0, CUT)), path)
    assert again._engine.stack.losses[:3].tolist() == again.experts_["loss"].tolist()


def test_a_level_that_has_just_left_a_large_origin_is_kept(deferred, path):  # noqa: ARG001
    """Its rank is the origin's until its first step, whatever max_rank says."""
    whole = dense(rice(step=Step(max_rank=2), origin=MATRIX, base=8), slice(0, 32))
    again = through_file(whole, path)
    assert parts(path.read_bytes())[2]["levels"][0, 3] == N - 1  # its rank
    for tracker in (whole, again):
        dense(tracker, slice(32, STEPS))
    assert file_of(again, path) == file_of(whole, path)


def test_an_ensemble_that_is_not_that_of_the_options_is_refused(path):
    tracker = dense(rice(ensemble=lambda spawn: Rice(spawn, base=3)), slice(0, CUT))
    with pytest.raises(ValueError, match="options have changed since the first comparison"):
        ocelad.save(tracker.set_params(ensemble=None), path)


@either
def test_every_moment_of_a_dictionary_is_kept(new, path, monkeypatch):
    """Entering as it comes, entering orthogonally, compressed, shrunk, re-opened."""
    dictionaries_from(monkeypatch, 1)
    whole, again = (new(base=2, regularizer=NuclearNorm(0.1)) for _ in range(2))
    for t in range(STEPS):
        dense(whole, slice(t, t + 1))
        again = through_file(dense(again, slice(t, t + 1)), path)
        assert file_of(again, path) == file_of(whole, path), t


def test_a_dictionary_may_have_any_number_of_columns_too_many(path, monkeypatch):
    """A learner that loses many directions at once keeps their columns until its next step."""
    dictionaries_from(monkeypatch, 1)
    n = 128
    u = np.concatenate([np.eye(n)[:100], np.eye(n)])
    pairs, y = np.stack([u, 0 * u], axis=1), np.full(len(u), -1)
    tracker = rice(base=1024, regularizer=NuclearNorm(0.002), scale=None)
    tracker.partial_fit(pairs[:100], y[:100])
    stack = tracker._engine.stack
    slot = stack.order[0]
    stack.rank[slot] = 3  # as if the others had been shrunk away just now
    assert stack.own[slot] > 3
    again = through_file(tracker, path)
    for each in (tracker, again):
        each.partial_fit(pairs[100:], y[100:])
    assert file_of(again, path) == file_of(tracker, path)


@pytest.mark.parametrize("value", [0.7, 0.0, -1.0, np.inf, -np.inf, np.nan])
@either
def test_the_threshold_is_kept(value, new, path):
    tracker = dense(new(), slice(0, CUT)).set_threshold(0.0 if np.isnan(value) else value)
    tracker._threshold = value  # files from before NaN was refused may hold it
    again = through_file(tracker, path)
    assert np.array_equal(again.threshold_, value, equal_nan=True)
    assert again.predict(PAIRS).tolist() == tracker.predict(PAIRS).tolist()
    assert dense(again, slice(CUT, STEPS)).threshold_ == dense(tracker, slice(CUT, STEPS)).threshold_


@either
def test_fit_is_kept(new, path):
    tracker = new().fit(PAIRS, Y)
    assert through_file(tracker, path).threshold_ == tracker.threshold_


@either
def test_a_preprocessor_is_kept_if_it_is_an_array(new, path):
    points = PAIRS.reshape(-1, N).astype(np.float32)
    tracker = by_number(new(preprocessor=points), slice(0, CUT))
    again = through_file(tracker, path)
    for each in (tracker, again):
        by_number(each, slice(CUT, STEPS))
    assert file_of(again, path) == file_of(tracker, path)
    assert again.pair_distance([[0, 5]]) == tracker.pair_distance([[0, 5]])
    for changed in (points + 1, None):
        with pytest.raises(ValueError, match="options have changed since the first comparison"):
            ocelad.save(copy.deepcopy(tracker).set_params(preprocessor=changed), path)
    for other in (points.__getitem__, sparse.csr_array(points)):
        with pytest.raises(ValueError, match=r"(?s)preprocessor=.* cannot be saved"):
            ocelad.save(by_number(new(preprocessor=other), slice(0, CUT)), path)


@either
def test_where_set_components_start_is_kept(new, path):
    tracker = set_out(new(), slice(0, CUT))
    again = through_file(tracker, path)
    assert np.array_equal(again._engine.recipe.origin, tracker._engine.recipe.origin)
    assert again._engine.recipe.mu == tracker._engine.recipe.mu
    assert tracker._engine.recipe.mu > 1.0 or new is not rice
    assert again.origin == 0.0
    tracker.components_ = np.eye(N)
    with pytest.raises(ValueError, match="learned nothing since its components_ were set"):
        ocelad.save(tracker, path)


@either
def test_a_history_that_was_stopped_is_not_saved(new, path):
    tracker, watched = new(), new()
    history = History(watched)
    dense(watched, slice(0, CUT))
    history.stop()
    assert file_of(watched, path) == file_of(dense(tracker, slice(0, CUT)), path)
    assert ocelad.load(path)._history is None


@either
def test_many_features_take_no_matrix(new, path):
    """Nothing of n x n is formed: 800 MB here."""
    n, rng = 10_000, np.random.default_rng(0)
    where = [(np.repeat(np.arange(12), 20), rng.integers(n, size=240)) for _ in range(2)]
    sides = [sparse.csr_array((rng.normal(size=240), at), shape=(12, n)) for at in where]
    tracker = new().partial_fit(sides, [1, -1] * 6)
    ocelad.save(tracker, path)
    assert path.stat().st_size < 20e6
    assert ocelad.load(path, limit=2 * 10**8)._engine.t == 12


def test_divergences_keep_the_matrix_they_were_given(path):
    tracker = dense(rice(divergence=LogDet(), origin=1.0, step=1.0), slice(0, 20))
    tracker.components_ = np.diag(np.arange(1.0, N + 1))
    dense(tracker, slice(20, CUT))
    again = through_file(tracker, path)
    for each in (tracker, again):
        dense(each, slice(CUT, STEPS))
    assert file_of(again, path) == file_of(tracker, path)


# Forgeries

FORGERIES = {
    "few-columns": (column("count", lambda a: a * 0), "count has entries too small for those of rank"),
    "many-columns": (column("count", lambda a: a * 0 + 2**62), "count has entries outside 0, ..., 9"),
    "longer": (put(lambda a: 1.01 * a, "dictionary"), "not orthonormal"),
    "huge": (put(lambda a: 1e300 * a, "dictionary"), "not orthonormal"),
    "recent": (put(lambda a: 1.01 * a, "recent"), "not orthonormal"),
    "scalar": (put(lambda a: a.sum(), "recent"), "since has entries|recent must be"),
    "future": (column("since", lambda a: a + 65), "since has entries outside 0, ..., "),
    "forgotten": (put(lambda a: a[1:], "recent"), "since has entries|factors must be float64"),
    "elsewhere": (put(lambda a: a + N, "recent_features"), "must be different ones of 0, ..., 8"),
    "turned": (put(lambda a: a[::-1], "factors"), "not orthonormal"),
    "large": (put(lambda a: 1e300 * a, "factors"), "not orthonormal"),
    "fewer": (put(lambda a: a[1:], "factors"), "factors must be float64 of shape"),
    "nowhere": (put(lambda a: a + N, "features"), "must be different ones of 0, ..., 8"),
    "twice": (put(lambda a: a * 0, "features"), "must be different ones of 0, ..., 8"),
    "whole-features": (put(lambda a: a * 1.0, "features"), "features must be int64 of shape"),
    "too-many": (column("touched", lambda a: a + 1), "touched has entries outside 0, ..., 9"),
    "negative-debt": (column("debt", lambda a: a - 1e9), "debt must be finite and >= 0"),
    "negative-discarded": (column("discarded", lambda a: a - 1.0), "discarded must be finite and >= 0"),
    "above-max-rank": (column("rank", lambda a: a * 0 + 3), "rank has entries outside 0, ..., 2"),
    "negative-eigenvalues": (put(lambda a: -a, "eigenvalues"), "eigenvalues must be >= 0"),
    "skew": (put(lambda a: a + np.triu(a + 1.0, 1), "given"), "components_ must be .* symmetric"),
    "whole-matrix": (put(lambda a: a.astype(np.int64), "given"), "given must be a matrix of shape .* of floats"),
    "small": (put(lambda a: a[1:], "given"), "given must be a matrix of shape"),
    "signed-zero": (
        put(lambda a: np.where(np.tri(N) * (a == 0), -0.0, a), "given"),
        "given must be a symmetric matrix",
    ),
    "whole-numbers": (
        put(lambda a: a.astype(np.int64), "preprocessor"),
        "preprocessor must have an array of floats",
    ),
    "points": (put(lambda a: a[:, 1:], "preprocessor"), "array of points with 9 features"),
}


@pytest.fixture(name="everything")
def fixture_everything(path, monkeypatch):
    dictionaries_from(monkeypatch, 1)
    tracker = rice(step=Step(max_rank=2), preprocessor=PAIRS[:, 0])
    dense(tracker, slice(0, 20)).components_ = np.eye(2, N)
    ocelad.save(dense(tracker, slice(20, CUT)), path)
    return path


@pytest.mark.parametrize("name", FORGERIES)
def test_forged_arrays_are_refused(name, everything):
    change, words = FORGERIES[name]
    ocelad.load(everything)
    everything.write_bytes(forged(everything.read_bytes(), change))
    with pytest.raises(FileError, match=words):
        ocelad.load(everything)


@pytest.mark.parametrize(
    ("entry", "value"),
    [("given", 0.5), ("given", True), ("given", None), ("threshold", "1"), ("threshold", 1), ("n_components", 10)],
)
def test_forged_entries_are_refused(entry, value, everything):
    everything.write_bytes(with_entries(everything, **{entry: value}))
    with pytest.raises(FileError, match=f"{entry}"):
        ocelad.load(everything)
