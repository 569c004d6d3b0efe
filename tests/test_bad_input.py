"""Bad input: a clear error that names the argument, and a state that is bit for bit the state before."""

import math
from functools import partial

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from ocelad import (
    L1,
    CoinBetting,
    FixedShare,
    Frobenius,
    GroupedShare,
    Hinge,
    Intervals,
    LogDet,
    Logistic,
    MetricTracker,
    NuclearNorm,
    OceladWeights,
    SquaredFrobenius,
    SquaredHinge,
    Step,
    Unregularized,
    VonNeumann,
)
from streams import comparisons
from trackers import either, rice

GOOD = comparisons(seed=0, steps=20, n=4)


def state(tracker):
    """Everything that a tracker has learned, down to the bits."""
    engine = tracker._engine
    return [
        ("scale", tracker._scale),
        ("n", tracker.n_features_in_),
        ("t", engine.t),
        ("learned", {name: array.tobytes() for name, array in engine.snapshot().items()}),
        ("experts", engine.experts().tobytes()),
        ("levels", [(metric.M.tobytes(), metric.mu) for metric in tracker.expert_metrics_]),
    ]


def spoiled(index, value):
    pairs = GOOD[0].copy()
    pairs[index] = value
    return pairs


BAD = {
    "nan": (spoiled((3, 0, 1), np.nan), GOOD[1], r"pairs must be .* found NaN at index \(3, 0, 1\)"),
    "infinity": (spoiled((3, 1, 2), np.inf), GOOD[1], "pairs must be .* found infinity"),
    "bad-last-row": (spoiled((19, 1, 3), -np.inf), GOOD[1], r"pairs must be .* index \(19, 1, 3\)"),
    "overflow": (spoiled((5,), np.array([[1.7e308] * 4, [-1.7e308] * 4])), GOOD[1], "pairs must have finite diff"),
    "two-dimensional": (GOOD[0][:, 0], GOOD[1], r"^3D array of formed tuples expected.* Found 2D array"),
    "triplets": (np.zeros((20, 3, 4)), GOOD[1], r"^Tuples of 2 element\(s\) expected.*shape=\(20, 3, 4\)"),
    "no-features": (np.zeros((20, 2, 0)), GOOD[1], r"got shape \(20, 2, 0\)"),
    "other-width": (np.zeros((20, 2, 5)), GOOD[1], "pairs must have 4 features, as before, got 5"),
    "scalar": (3.0, [1], "^3D array of formed tuples expected.* Found 0D array"),
    "ragged": ([[[1.0], [2.0, 3.0]]], [1], "pairs must be"),
    "strings": (np.full((20, 2, 4), "1.0"), GOOD[1], "pairs must be .* got dtype <U3"),
    "objects": (GOOD[0].astype(object), GOOD[1], "pairs must be .* got dtype object"),
    "complex": (GOOD[0] + 0j, GOOD[1], "pairs must be .* got dtype complex128"),
    "booleans": (GOOD[0] > 0, GOOD[1], "pairs must be .* got dtype bool"),
    "masked": (np.ma.masked_array(GOOD[0], GOOD[0] > 1), GOOD[1], "pairs must be .* masked"),
    "one-bare-pair": (GOOD[0][0], GOOD[1][:1], "^3D array of formed tuples expected.* Found 2D array"),
    "none": (None, GOOD[1], "^3D array of formed tuples expected.* Found 0D array"),
    "label-zero-among-signs": (
        GOOD[0],
        np.where(np.arange(20) == 3, 0, GOOD[1]),
        "y must be .* found 0 beside -1",
    ),
    "label-two": (GOOD[0], 2 * GOOD[1], "y must be .* found -?2"),
    "label-nan": (GOOD[0], np.where(GOOD[1] == 1, 1.0, np.nan), "y must be .* found NaN"),
    "zeros-ones-signs": (GOOD[0], np.arange(20) % 3 - 1, "y must be .* found 0 beside -1: which"),
    "label-missing": (GOOD[0], [True] * 19 + [None], "y must be .* found None at index 19"),
    "label-strings": (GOOD[0], ["same"] * 20, "y must be .* found 'same' at index 0"),
    "too-few-labels": (GOOD[0], GOOD[1][:-1], r"y must be an array of shape \(20,\).*got shape \(19,\)"),
    "column-of-labels": (GOOD[0], GOOD[1][:, None], r"y must be .*got shape \(20, 1\)"),
}


@pytest.mark.parametrize("case", BAD)
def test_rejected_without_a_trace(case):
    pairs, y, message = BAD[case]
    tracker = MetricTracker().partial_fit(*GOOD)
    before = state(tracker)
    with pytest.raises(ValueError, match=message):
        tracker.partial_fit(pairs, y)
    assert state(tracker) == before


@pytest.mark.parametrize("case", [case for case in BAD if case != "other-width"])
def test_rejected_by_a_new_tracker_too(case):
    pairs, y, message = BAD[case]
    tracker = MetricTracker()
    with pytest.raises(ValueError, match=message):
        tracker.partial_fit(pairs, y)
    assert not hasattr(tracker, "n_features_in_")
    tracker.partial_fit(*GOOD)  # and is as good as new
    assert state(tracker) == state(MetricTracker().partial_fit(*GOOD))


@pytest.mark.parametrize("case", ["nan", "two-dimensional", "other-width", "strings"])
@pytest.mark.parametrize("method", ["pair_distance", "predict"])
def test_queries_check_too(case, method):
    tracker = MetricTracker().partial_fit(*GOOD)
    with pytest.raises(ValueError, match=BAD[case][2]):
        getattr(tracker, method)(BAD[case][0])


@pytest.mark.parametrize("X", [np.zeros((3, 5)), [[np.nan] * 4], [["a"] * 4]])
def test_transform_checks_too(X):
    tracker = MetricTracker().partial_fit(*GOOD)
    with pytest.raises(ValueError, match=r"^X must be .*\(m, 4\)"):
        tracker.transform(X)
    with pytest.raises(ValueError, match=r"^2D array of formed points expected by MetricTracker\. Found 1D array"):
        tracker.transform(np.zeros(4))


OPTIONS = [
    ({"step": 0.0}, "step must be a finite number > 0"),
    ({"step": math.nan}, "step must be a finite number > 0"),
    ({"step": "fast"}, "step must be a finite number > 0"),
    ({"step": 1e-180}, r"step must be from 1e-100 to 1e\+100, got 1e-180"),
    ({"step": 1e160}, r"step must be from 1e-100 to 1e\+100, got 1e\+160"),
    ({"base": 0}, "base must be an integer >= 1"),
    ({"base": 2.0}, "base must be an integer >= 1"),
    ({"scale": 0.0}, "scale must be 'auto', 'features', None or a finite number > 0"),
    ({"scale": "large"}, "scale must be 'auto', 'features', None or a finite number > 0"),
    ({"origin": -1.0}, "origin must be a number >= 0 or a symmetric positive semi-definite matrix"),
    ({"origin": np.ones((2, 2))}, r"origin must be .* of shape \(4, 4\)"),
    ({"origin": np.triu(np.ones((4, 4)))}, "origin must be"),
    ({"origin": np.diag([1.0, 1.0, 1.0, -1.0])}, "origin must be .* smallest eigenvalue is -1"),
    ({"origin": np.nan}, "origin must be .* found NaN"),
    ({"origin": 1e160}, r"origin must be at most 1e\+100 .* reaches 1e\+160"),
    ({"origin": np.diag([0.0, 0.0, 1.0, 1e160])}, r"origin must be at most 1e\+100"),
    ({"divergence": VonNeumann()}, "origin must be positive definite .* with this divergence"),
    ({"divergence": LogDet()}, "origin must be positive definite .* with this divergence"),
    ({"loss": "hinge"}, "loss must be a margin loss"),
    ({"regularizer": 0.01}, "regularizer must be a regularizer"),
    ({"divergence": "frobenius"}, "divergence must be a divergence"),
    ({"weights": "ocelad"}, "weights must be a combiner"),
    ({"weights": Frobenius}, "weights must be a combiner"),
    ({"ensemble": 3}, "ensemble must be a function from spawn"),
    ({"ensemble": lambda spawn: [spawn(1, None)]}, "ensemble must be an ensemble"),
    (
        {"step": Step(8.0, capped=True), "divergence": LogDet(), "origin": 1.0},
        "step_cap must be False with LogDet",
    ),
]


@pytest.mark.parametrize(("options", "message"), OPTIONS)
def test_bad_options_are_named(options, message):
    tracker = MetricTracker(**options)
    with pytest.raises(ValueError, match=message):
        tracker.partial_fit(*GOOD)
    assert not hasattr(tracker, "n_features_in_")


PARTS = [
    (lambda: Step(8.0, threshold=-0.1), "threshold must be a finite number >= 0"),
    (lambda: Step(max_rank=0), "max_rank must be an integer >= 1, got 0"),
    (lambda: Step(max_rank=2.0), "max_rank must be an integer >= 1, got 2.0"),
    (lambda: Step(max_rank=True), "max_rank must be an integer >= 1, got True"),
    (lambda: Intervals(8, "cold"), "start must be 'fresh' or 'continue'"),
    (lambda: Intervals(0), "base must be an integer >= 1"),
    (lambda: OceladWeights(order="never"), "order must be 'before' or 'after'"),
]


@pytest.mark.parametrize(("part", "message"), PARTS)
def test_bad_parts_refuse_by_themselves(part, message):
    with pytest.raises(ValueError, match=message):
        part()


# What may look bad and is not


def test_zero_differences_are_comparisons():
    """x equal to z: similar is no news; different can only move the threshold."""
    pairs = np.repeat(GOOD[0][:, :1], 2, axis=1)
    tracker = rice()
    tracker.partial_fit(pairs, np.ones(20))
    tracker.partial_fit(pairs, -np.ones(20))
    assert not tracker.get_mahalanobis_matrix().any()
    assert tracker.mu_ == 1.0
    assert tracker.scale_ == 1.0
    assert (tracker.predict(pairs) == 1).all()
    tracker.partial_fit(*GOOD)
    assert np.isfinite(tracker.get_mahalanobis_matrix()).all()


def test_zero_differences_are_comparisons_of_a_pool():
    pairs = np.repeat(GOOD[0][:, :1], 2, axis=1)
    tracker = MetricTracker().partial_fit(pairs, np.ones(20))
    assert (tracker.predict(pairs) == 1).all()
    tracker.partial_fit(pairs, -np.ones(20))
    assert tracker.scale_ == 1.0
    tracker.partial_fit(*GOOD)
    assert np.isfinite(tracker.get_mahalanobis_matrix()).all()
    assert np.isfinite(tracker.predict_proba(GOOD[0])).all()


@either
def test_repeated_pairs(new):
    tracker = new()
    for _ in range(200):
        tracker.partial_fit(GOOD[0][:1], [-1])
    assert tracker.predict(GOOD[0][:1]) == [-1]
    for _ in range(200):
        tracker.partial_fit(GOOD[0][:1], [1])
    assert tracker.predict(GOOD[0][:1]) == [1]
    assert np.isfinite(tracker.experts_["weight"]).all()


def test_one_dimensional_data():
    rng = np.random.default_rng(0)
    pairs = rng.normal(size=(1000, 2, 1))
    y = np.where(np.abs(pairs[:, 0, 0] - pairs[:, 1, 0]) < 1, 1, -1)
    tracker = MetricTracker().partial_fit(pairs[:800], y[:800])
    assert tracker.get_mahalanobis_matrix().shape == (1, 1)
    assert (tracker.predict(pairs[800:]) == y[800:]).mean() > 0.85


def test_queries_far_beyond_what_has_been_seen():
    tracker = MetricTracker().partial_fit(*GOOD)
    expected = tracker.pair_distance(GOOD[0])
    np.testing.assert_allclose(tracker.pair_distance(1e200 * GOOD[0]), 1e200 * expected)
    np.testing.assert_allclose(tracker.pair_distance(1e-200 * GOOD[0]), 1e-200 * expected)
    tiny = MetricTracker().partial_fit(1e-160 * GOOD[0], GOOD[1])
    np.testing.assert_allclose(tiny.pair_distance(1e-160 * GOOD[0]), expected, rtol=1e-7, atol=1e-7)
    with pytest.raises(OverflowError, match="differences of size"):
        tiny.get_mahalanobis_matrix()


def test_a_stream_over_three_hundred_orders_of_magnitude():
    pairs = GOOD[0] * np.where(np.arange(20) == 17, 1e155, 1e-155)[:, None, None]
    tracker = MetricTracker().partial_fit(pairs, GOOD[1])
    assert np.isfinite(tracker.pair_distance(1e-155 * GOOD[0])).all()


CELLS = [
    {"loss": loss, "regularizer": regularizer, "divergence": divergence, "origin": 1.0, "step": step}
    for loss in (Hinge(), SquaredHinge(), Logistic())
    for regularizer in (Unregularized(), NuclearNorm(0.02), SquaredFrobenius(0.02), L1(0.02))
    for divergence in (Frobenius(), VonNeumann(), LogDet())
    for step in (1.0, 64.0)
]


@pytest.mark.parametrize("options", CELLS, ids=repr)
@pytest.mark.parametrize("new", [partial(MetricTracker, memory=32), rice], ids=["pool", "rice"])
def test_every_cell_survives_large_steps_and_odd_sizes(new, options):
    """Whatever the parts: a large step, near-duplicates, wild values, and features that nobody scaled."""
    odd = GOOD[0].copy()
    odd[0] *= 1e-8
    odd[::5] *= 1e8
    for scale, pairs in (("auto", odd), ("features", odd), (None, 1e4 * GOOD[0]), (None, odd)):
        tracker = new(**options, scale=scale)
        with np.errstate(over="raise", invalid="raise", divide="raise"):
            for _ in range(3):
                tracker.partial_fit(pairs, GOOD[1])
        for metric in tracker.expert_metrics_:
            s = np.linalg.eigvalsh(metric.M)
            assert np.isfinite(s).all()
            assert s[0] >= -1e-9 * max(1.0, s[-1])
            assert (1 if new is rice else -np.inf) <= metric.mu < np.inf
        assert np.isfinite(tracker.predict_proba(pairs)).all()


def test_a_stiff_loss_does_not_explode():
    pairs, y = comparisons(seed=1, steps=800, n=4)
    for step in (8.0, 64.0):
        for threshold_step in (0.1, 1.0):
            tracker = MetricTracker(loss=SquaredHinge(), step=Step(step, threshold_step))
            assert np.abs(tracker.partial_fit(pairs, y).get_mahalanobis_matrix()).max() < 1e3


@pytest.mark.parametrize("size", [1e-150, 1e150])
@pytest.mark.parametrize("options", [{}, {"divergence": LogDet(), "origin": 1.0, "step": 1.0}])
def test_tiny_and_huge_features(size, options):
    with np.errstate(over="raise", invalid="raise"):
        tracker = MetricTracker(**options).partial_fit(size * GOOD[0], GOOD[1])
        ordinary = MetricTracker(**options).partial_fit(*GOOD)
        np.testing.assert_allclose(
            tracker.pair_distance(size * GOOD[0]), ordinary.pair_distance(GOOD[0]), rtol=1e-7, atol=1e-7
        )
        assert np.isfinite(tracker.get_mahalanobis_matrix()).all()


@pytest.mark.parametrize("size", [1.7e308, 1e-309, 5e-324])
@pytest.mark.parametrize(
    "weights", [GroupedShare(), FixedShare(), CoinBetting()], ids=["pool", "compiled", "general"]
)
def test_differences_whose_length_is_no_number(size, weights):
    """Longer than any number, or so short that their inverse is."""
    pairs = np.zeros((40, 2, 4))
    pairs[:, 0] = size
    y = np.where(np.arange(40) % 3 > 0, 1, -1)
    tracker = MetricTracker(weights=weights).partial_fit(pairs, y)
    assert 0 < tracker.scale_ < np.inf
    assert np.isfinite(tracker.experts_["loss"][:-1]).all()
    assert np.isfinite(tracker.pair_distance(pairs)).all()
    np.testing.assert_array_equal(MetricTracker().partial_fit(*GOOD).pair_distance(pairs) > 0, size > 1)


def test_huge_features_without_a_scale_are_refused():
    tracker = MetricTracker(scale=None).partial_fit(*GOOD)
    before = state(tracker)
    with pytest.raises(ValueError, match=r"pairs: the difference of pair 19 is .* unit of length.*scale='auto'"):
        tracker.partial_fit(spoiled((19, 0, 0), 1e90), GOOD[1])
    assert state(tracker) == before
    MetricTracker(scale=None).partial_fit(1e-150 * GOOD[0], GOOD[1])  # nothing to learn from, nothing to break


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.uint8, np.float16])
def test_other_real_types_are_converted(dtype):
    pairs = np.random.default_rng(0).integers(0, 9, size=(20, 2, 3)).astype(dtype)
    one = MetricTracker().partial_fit(pairs, GOOD[1].astype(np.float32))
    other = MetricTracker().partial_fit(pairs.astype(float).tolist(), GOOD[1].tolist())
    assert state(one) == state(other)


def test_an_empty_batch_is_no_news():
    with pytest.raises(NotFittedError):
        MetricTracker().partial_fit(np.zeros((0, 2, 4)), []).predict(GOOD[0])
    tracker = MetricTracker().partial_fit(*GOOD)
    before = state(tracker)
    tracker.partial_fit(np.zeros((0, 2, 4)), [])
    assert state(tracker) == before
