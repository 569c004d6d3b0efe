"""Platt scaling online, and what a squared distance then says."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit

import literal_pool
from ocelad import MetricTracker, platt
from ocelad.platt import SHIFT, SLOPE, Decision


def logistic_data(seed, steps, slope, shift):
    rng = np.random.default_rng(seed)
    m = rng.normal(scale=2.0, size=steps)
    return m, rng.random(steps) < expit(slope * m + shift)


def scaled(m, similar, weight=1.0, ridge=platt.RIDGE, least=0.0):
    """The state after each margin."""
    row, states = platt.unscaled(1)[0], []
    for x, label, w in zip(m, similar, np.broadcast_to(weight, len(m)), strict=True):
        platt.recalibrate(row, x, label, w, ridge, least)
        states.append(row.copy())
    return np.array(states)


# Scaling


@pytest.mark.parametrize(("slope", "shift"), [(1.0, 0.0), (0.3, -2.0), (2.0, 1.5), (0.0, -3.0)])
def test_it_recovers_slope_and_shift(slope, shift):
    """To three standard errors of the mean of the last 3000 states, each made from about 500 labels; an expert's
    slope is never negative, so that one of 0 comes out a little above."""
    states = scaled(*logistic_data(0, 4000, slope, shift))[1000:]
    assert states[:, SLOPE].mean() == pytest.approx(slope, rel=0.1, abs=0.1)
    assert states[:, SHIFT].mean() == pytest.approx(shift, rel=0.1, abs=0.15)


def test_it_finds_what_the_likelihood_of_the_recent_past_says():
    m, similar = logistic_data(1, 3000, 0.8, -1.0)
    memory = (1 - platt.FORGET) ** np.arange(3000)[::-1]

    def cost(theta):
        return memory @ np.logaddexp(0.0, np.where(similar, -1, 1) * (theta[0] * m + theta[1]))

    best = minimize(cost, [1.0, 0.0]).x
    np.testing.assert_allclose(scaled(m, similar)[-1, : SHIFT + 1], best, atol=0.06)


def test_it_tracks_a_change():
    """It has changed its mind after 500 comparisons, and is done after 3000."""
    first, then = logistic_data(2, 2000, 1.0, 2.0), logistic_data(3, 3500, 1.0, -2.0)
    shift = scaled(*(np.concatenate(both) for both in zip(first, then, strict=True)))[:, SHIFT]
    assert shift[1500:2000].mean() == pytest.approx(2.0, abs=0.4)
    assert shift[2500] < -0.5
    assert shift[5000:].mean() == pytest.approx(-2.0, abs=0.4)


@given(st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_it_is_what_is_written_down(seed):
    rng = np.random.default_rng(seed)
    m, similar, weight = rng.standard_cauchy(40) * 3, rng.random(40) < 0.4, rng.gamma(1.0, size=40)
    row, literal = platt.unscaled(1)[0], literal_pool.Platt(5.0, 0.05)
    for x, label, w in zip(m, similar, weight, strict=True):
        platt.recalibrate(row, x, label, w, 5.0, 0.05)
        literal.learn(x, 1 if label else -1, w)
        np.testing.assert_allclose(row[: SHIFT + 1], literal.theta, rtol=1e-6, atol=1e-9)


def test_the_other_label_of_the_opposite_margin_is_the_same_with_the_opposite_shift():
    m, similar = logistic_data(4, 300, 0.7, 1.0)
    one, other = scaled(m, similar), scaled(-m, ~similar)
    np.testing.assert_allclose(one[:, SLOPE], other[:, SLOPE], rtol=1e-9)
    np.testing.assert_allclose(one[:, SHIFT], -other[:, SHIFT], rtol=1e-9, atol=1e-12)


def test_weight_zero_only_forgets():
    state = scaled(*logistic_data(5, 100, 1.0, 0.0))[-1]
    row = state.copy()
    platt.recalibrate(row, 3.0, True, 0.0, platt.RIDGE, 0.0)
    np.testing.assert_array_equal(row[: SHIFT + 1], state[: SHIFT + 1])
    np.testing.assert_allclose(row[SHIFT + 1 :], state[SHIFT + 1 :] * (1 - platt.FORGET), rtol=1e-12)


@pytest.mark.parametrize("least", [0.0, 0.05])
def test_the_slope_stays_above_its_least(least):
    m, similar = logistic_data(6, 1000, -2.0, 0.0)  # margins that say the opposite
    assert scaled(m, similar, least=least)[:, SLOPE].min() == least


@given(
    st.lists(
        st.tuples(st.floats(-1e70, 1e70), st.booleans(), st.sampled_from([1e-100, 1e-3, 1.0, 1e3, 1e20, 1e100])),
        min_size=1,
        max_size=30,
    )
)
@settings(max_examples=200, deadline=None)
def test_anything_leaves_it_finite(rows):
    m, similar, weight = (np.array(column) for column in zip(*rows, strict=True))
    assert np.isfinite(scaled(m, similar, weight)).all()
    assert np.isfinite(scaled(m, similar, weight, platt.MIXTURE_RIDGE, platt.LEAST_SLOPE)).all()


@pytest.mark.parametrize("similar", [True, False])
def test_one_label_only(similar):
    m = np.random.default_rng(7).normal(size=20_000)
    states = scaled(m, np.full(20_000, similar))
    assert np.isfinite(states).all()
    assert (states[-1, SHIFT] > 2.0) == similar
    assert abs(states[:, SHIFT]).max() < 30.0


# Decisions

DECISIONS = st.builds(
    Decision, st.floats(-50, 50), st.floats(0.05, 5), st.floats(-10, 10), compressed=st.booleans()
)


@given(DECISIONS)
@settings(deadline=None)
def test_the_odds_are_even_at_even(decision):
    if abs(decision.shift / decision.slope) < platt.STEEPEST:
        assert abs(decision.log_odds(decision.even)) <= 1e-10


@given(DECISIONS, st.lists(st.floats(0, 1e6), min_size=2, max_size=20))
@settings(deadline=None)
def test_odds_fall_with_the_distance(decision, squares):
    squares = np.sort(squares)
    odds = decision.log_odds(squares)
    assert (np.diff(odds) <= 0).all()
    if abs(decision.shift / decision.slope) < platt.STEEPEST:
        away = np.abs(squares - decision.even) > 1e-9 * (1 + np.abs(squares) + abs(decision.even))
        np.testing.assert_array_equal(odds[away] > 0, squares[away] < decision.even)


@given(DECISIONS, st.floats(-1e3, 1e3))
@settings(deadline=None)
def test_a_decision_at_another_distance(decision, square):
    moved = decision.at(square)
    assert moved.even == square
    assert moved.log_odds(square) == 0.0
    assert moved.slope == decision.slope


@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize(("threshold", "shift"), [(3.0, 700.0), (1e20, -700.0)])
def test_a_threshold_that_may_not_move_farther_still_decides(threshold, shift, compressed):
    decision = Decision(threshold, 0.05, shift, compressed)
    squares = np.array([0.0, 1.0, 20.0, 1e6, 1e12, 1e14, 9.9e19, 1.1e20, 1e150, np.inf])
    odds = decision.log_odds(squares)
    np.testing.assert_array_equal(expit(odds) >= 0.5, squares <= decision.even)
    assert (odds[:-1] >= odds[1:]).all()


@pytest.mark.parametrize("m", [-1e9, -2.0, -1e-9, 0.0, 0.5, 1e4])
def test_compression_is_odd_and_has_an_inverse(m):
    x = platt.compress(m)
    assert platt.compress(-m) == -x
    assert np.copysign(np.expm1(abs(x)), x) == pytest.approx(m, rel=1e-12)


# A tracker's decisions agree with one another


def rare(seed, steps, n, similar):
    rng = np.random.default_rng(seed)
    pairs = rng.normal(size=(steps, 2, n))
    square = ((pairs[:, 0] - pairs[:, 1])[:, :2] ** 2).sum(axis=1)
    return pairs, np.where(square < np.quantile(square, similar), 1, -1)


def assert_consistent(tracker, pairs):
    d, p, predicted = tracker.pair_distance(pairs), tracker.predict_proba(pairs), tracker.predict(pairs)
    np.testing.assert_array_equal(tracker.decision_function(pairs), -d)
    np.testing.assert_array_equal(predicted, np.where(d <= tracker.threshold_, 1, -1))
    near = np.abs(p[:, 1] - 0.5) < 1e-9
    np.testing.assert_array_equal(predicted[~near], np.where(p[~near, 1] >= 0.5, 1, -1))
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    order = np.argsort(d)
    assert (np.diff(p[order, 1]) <= 1e-15).all()
    one_by_one = [tracker.predict_proba(pair[None])[0, 1] for pair in pairs[:40]]
    np.testing.assert_allclose(one_by_one, p[:40, 1], rtol=0, atol=1e-9)


@pytest.mark.parametrize("similar", [0.0, 0.01, 0.05, 0.5, 1.0])
@pytest.mark.parametrize("steps", [3, 60, 700])
def test_prediction_probability_and_threshold_agree(steps, similar):
    pairs, y = rare(0, 900, 5, similar)
    tracker = MetricTracker(memory=64).partial_fit(pairs[:steps], y[:steps])
    assert_consistent(tracker, pairs[-200:])
    for limit in (0.7, 0.0, -1.0):
        tracker.set_threshold(limit)
        assert tracker.threshold_ == limit
        assert_consistent(tracker, pairs[-200:])
    tracker.calibrate_threshold(pairs[-200:], y[-200:])
    assert_consistent(tracker, pairs[-200:])
    tracker.partial_fit(pairs[:1], y[:1])  # the tracked one is back
    assert_consistent(tracker, pairs[-200:])


def test_a_threshold_may_be_negative():
    """Where no two points are similar, not even a point and itself is called so."""
    rng = np.random.default_rng(1)
    tracker = MetricTracker(memory=64).partial_fit(rng.normal(size=(400, 2, 5)), np.full(400, -1))
    assert tracker.threshold_ < 0
    assert tracker.predict(np.zeros((1, 2, 5))) == [-1]
    assert tracker.predict_proba(np.zeros((1, 2, 5)))[0, 1] < 0.5


def test_a_calibrated_threshold_is_the_best_of_all():
    pairs, y = rare(2, 500, 5, 0.3)
    tracker = MetricTracker(memory=64).partial_fit(pairs, y)
    tracked = np.mean(tracker.predict(pairs) == y)
    tracker.calibrate_threshold(pairs, y)
    assert np.mean(tracker.predict(pairs) == y) >= tracked
