"""COMID: one optimality test for every cell of loss x regularizer x divergence, and the rules around it."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ocelad import (
    L1,
    Comid,
    Descent,
    Frobenius,
    Hinge,
    LogDet,
    Logistic,
    Metric,
    NuclearNorm,
    PairLoss,
    SquaredFrobenius,
    SquaredHinge,
    Unregularized,
    VonNeumann,
)

LOSSES = [Hinge(), SquaredHinge(), Logistic()]
REGULARIZERS = [Unregularized(), NuclearNorm(0.3), SquaredFrobenius(0.3), L1(0.3)]
DIVERGENCES = [Frobenius(), VonNeumann(), LogDet()]
N = 5


def bregman(divergence, M, N_):
    """B(M, N), by its definition."""
    m, n = np.linalg.eigvalsh(M), np.linalg.eigh(N_)
    link = (n[1] * divergence.link(n[0])) @ n[1].T
    m = np.maximum(m, 0.0)
    return divergence.potential(m).sum() - divergence.potential(n[0]).sum() - (link * (M - N_)).sum()


def random_metric(rng, rank=N, size=1.0):
    A = rng.normal(size=(N, rank)) * np.sqrt(size / rank)
    return A @ A.T


@pytest.mark.parametrize("divergence", DIVERGENCES, ids=repr)
@pytest.mark.parametrize("regularizer", REGULARIZERS, ids=repr)
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@settings(deadline=None, max_examples=15)
@given(seed=st.integers(0, 10**6), step=st.sampled_from([0.01, 0.3, 3.0]), y=st.sampled_from([-1, 1]))
def test_three_point_inequality(loss, regularizer, divergence, seed, step, y):
    """P minimises F(X) + B(X, Q) with F convex iff F(X) + B(X, Q) >= F(P) + B(P, Q) + B(X, P) for all X."""
    rng = np.random.default_rng(seed)
    rank = N if divergence.definite else int(rng.integers(1, N + 1))
    Q = Metric(random_metric(rng, rank) + (0.05 * np.eye(N) if divergence.definite else 0), 1 + rng.random())
    pair, descent = PairLoss(rng.normal(size=N), y, loss), Descent(regularizer, divergence, threshold_step=0.5)
    P = descent(Q, pair, step)
    gradient = pair.gradient(Q)
    step = descent.effective_step(Q, gradient, pair, step)

    def F(M):
        return step * ((gradient.M * M).sum() + regularizer.strength * regularizer.value(M))

    s = np.linalg.eigvalsh(P.M)
    assert s[0] >= -1e-12
    assume(not divergence.definite or s[0] > 1e-10 * s[-1])  # else the test itself takes logarithms of rounding
    np.testing.assert_array_equal(P.M, P.M.T)
    at_P = F(P.M) + bregman(divergence, P.M, Q.M)
    others = [random_metric(rng, N, size) for size in (0.1, 1.0, 10.0)]
    near = [P.M + 1e-3 * (other - P.M) for other in others]  # the cone is convex: still inside
    for X in [*others, *near, Q.M]:
        slack = F(X) + bregman(divergence, X, Q.M) - at_P - bregman(divergence, X, P.M)
        assert slack >= -1e-6 * (1 + abs(at_P)) * (1 + np.linalg.norm(X))
    assert P.mu == max(1.0, Q.mu - 0.5 * step * gradient.mu)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@given(m=st.floats(-30, 30), other=st.floats(-30, 30))
def test_margin_losses_are_convex_with_the_slope_they_say(loss, m, other):
    assert loss.value(other) >= loss.value(m) + loss.slope(m) * (other - m) - 1e-12 * (1 + abs(other - m))
    assert loss.value(m) >= 0 >= loss.slope(m)


def test_logistic_survives_far_margins():
    assert Logistic().value(-1e5) == 1e5
    assert Logistic().value(1e5) == 0.0
    assert Logistic().slope(-1e5) == -1.0
    assert Logistic().slope(1e5) == 0.0


@pytest.mark.parametrize("divergence", DIVERGENCES, ids=repr)
@given(s=st.floats(1e-3, 1e3), ridge=st.floats(1e-6, 10))
def test_link_and_unlink_are_inverse(divergence, s, ridge):
    values = np.array([s])
    np.testing.assert_allclose(divergence.unlink(divergence.link(values)), values, rtol=1e-10)
    damped = divergence.unlink(divergence.link(values), ridge=ridge)
    np.testing.assert_allclose(
        divergence.link(damped) + ridge * damped, divergence.link(values), rtol=1e-8, atol=1e-8
    )
    w = divergence.link(values)  # Fenchel and Young
    young = divergence.potential(values) + divergence.conjugate(w) - values * w
    np.testing.assert_allclose(young, 0, atol=1e-8 * (1 + s * s))


# L1: what the dual certifies


def alternating_projections(W, tau, rounds=20_000):
    """Dykstra's algorithm for the prox of tau |.|_1 and the cone: slow, and of another kind."""
    X, P, Q = W, np.zeros_like(W), np.zeros_like(W)
    for _ in range(rounds):
        Y = np.sign(X + P) * np.maximum(np.abs(X + P) - tau, 0)
        P = X + P - Y
        w, V = np.linalg.eigh(Y + Q)
        X = (V * np.maximum(w, 0)) @ V.T
        Q = Y + Q - X
    return X


@pytest.mark.parametrize("seed", range(4))
def test_l1_is_the_joint_prox_with_the_cone(seed):
    rng = np.random.default_rng(seed)
    W = random_metric(rng) - 0.4 * random_metric(rng)
    M = L1(0.2).solve(Frobenius(), W, 1.0)
    np.testing.assert_allclose(M, alternating_projections(W, 0.2), atol=2e-6)
    naive = np.sign(W) * np.maximum(np.abs(W) - 0.2, 0)  # threshold, then clip: not the minimiser
    w, V = np.linalg.eigh(naive)
    clipped = (V * np.maximum(w, 0)) @ V.T
    if w[0] < -1e-3:
        assert np.linalg.norm(clipped - M) > 1e-3


@pytest.mark.parametrize("size", [1e-9, 1e-4, 1e5])
def test_l1_is_as_exact_at_any_size(size):
    rng = np.random.default_rng(5)
    W = random_metric(rng) - 0.4 * random_metric(rng)
    M = L1(0.2).solve(Frobenius(), W, 1.0)
    np.testing.assert_allclose(L1(0.2 * size).solve(Frobenius(), size * W, 1.0), size * M, atol=4e-6 * size)


@pytest.mark.parametrize(
    ("options", "name"), [({"tolerance": 0.0}, "tolerance"), ({"iterations": 0}, "iterations")]
)
def test_l1_options_are_checked(options, name):
    with pytest.raises(ValueError, match=f"{name} must be"):
        L1(0.1, **options)


def test_l1_makes_entries_vanish():
    W = np.diag([1.0, 1.0, 1.0]) + 0.1
    M = L1(1.0).solve(Frobenius(), W, 0.2)
    np.testing.assert_allclose(M, 0.9 * np.eye(3), atol=1e-6)


@pytest.mark.parametrize("divergence", DIVERGENCES, ids=repr)
def test_l1_reaches_its_tolerance_at_size_25(divergence):
    rng = np.random.default_rng(7)
    A = rng.normal(size=(25, 25)) / 5
    link = Descent(L1(0.05), divergence).link(A @ A.T + 0.1 * np.eye(25))
    W = link + 0.05 * divergence.definite * -np.outer(A[0], A[0])
    M = L1(0.05).solve(divergence, W, 1.0)
    tight = L1(0.05, tolerance=1e-14, iterations=20_000).solve(divergence, W, 1.0)
    assert np.linalg.norm(M - tight) <= 2e-6 * np.linalg.norm(tight)


# The rules around the step


def test_inactive_comparisons_only_shrink():
    metric = Metric(np.diag([0.1, 0.5]), 3.0)
    after = Descent(NuclearNorm(0.1))(metric, PairLoss(np.array([1.0, 0.0]), 1, Hinge()), 2.0)
    np.testing.assert_allclose(after.M, np.diag([0.0, 0.3]), atol=1e-15)
    assert after.mu == 3.0


def test_ties_are_not_violations():
    u = np.array([1.0, -1.0]) * math.sqrt(1.0 + 2**-50)  # d^2 = 2 but for rounding, mu = 1: a margin of 1
    pair = PairLoss(u, -1, Hinge())
    metric = Metric(np.eye(2), 1.0)
    assert pair(metric) == 0.0
    assert pair(Metric(np.eye(2) * (1 - 1e-9), 1.0)) == pytest.approx(2e-9, rel=1e-3)
    np.testing.assert_array_equal(Descent(Unregularized())(metric, pair, 1.0).M, np.eye(2))


def test_threshold_has_its_own_step_and_stays_above_one():
    pair = PairLoss(np.array([2.0]), 1, Hinge())
    for factor, expected in [(1.0, 1.5), (0.1, 1.05), (0.0, 1.0)]:
        after = Descent(Unregularized(), threshold_step=factor)(Metric([[1.0]], 1.0), pair, 0.5)
        assert after.mu == pytest.approx(expected)
    different = PairLoss(np.array([0.1]), -1, Hinge())
    assert Descent(Unregularized())(Metric([[1.0]], 1.2), different, 0.5).mu == 1.0


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_capped_step_never_overshoots(loss):
    """However large the step, the linearised loss is brought to zero and no further."""
    rng = np.random.default_rng(0)
    descent = Descent(Unregularized(), threshold_step=0.5, step_cap=True)
    for _ in range(50):
        metric, pair = (
            Metric(random_metric(rng), 2.0),
            PairLoss(rng.normal(size=N), int(rng.choice([-1, 1])), loss),
        )
        gradient = pair.gradient(metric)
        step = descent.effective_step(metric, gradient, pair, 1e6)
        steepness = (gradient.M**2).sum() + 0.5 * gradient.mu**2
        if pair(metric) > 0:
            assert step * steepness == pytest.approx(pair(metric))
        assert descent.effective_step(metric, gradient, pair, 1e-9) in (0.0, 1e-9)


def test_logdet_guard():
    """The explicit step would leave the cone; the guarded one doubles the squared distance."""
    metric, u = Metric(np.eye(2), 1.0), np.array([1.0, 0.5])
    pair = PairLoss(u, -1, Hinge())
    assert 10.0 * metric.squared_distance(u) > 1
    after = Descent(Unregularized(), LogDet())(metric, pair, 10.0)
    assert after.squared_distance(u) == pytest.approx(2 * metric.squared_distance(u))
    assert np.linalg.eigvalsh(after.M)[0] > 0


def test_von_neumann_guard():
    """However long the step, no direction grows by more than a factor e at once."""
    metric, u = Metric(np.eye(2), 1.0), np.array([1.0, 0.0])
    after = Descent(Unregularized(), VonNeumann())(metric, PairLoss(u, -1, Hinge()), 1e6)
    np.testing.assert_allclose(after.M, np.diag([math.e, 1.0]), rtol=1e-12)
    shrunk = Descent(Unregularized(), VonNeumann())(Metric(5 * np.eye(2), 1.0), PairLoss(u, 1, Hinge()), 2.0)
    np.testing.assert_allclose(shrunk.M, np.diag([5 * math.exp(-2.0), 5.0]), rtol=1e-12)


def test_logdet_keeps_half_of_the_digits():
    """Eigenvalues are lifted to 1e-8 of the largest before M is inverted."""
    link = Descent(Unregularized(), LogDet()).link(np.diag([1.0, 1e-20]))
    np.testing.assert_allclose(link, np.diag([-1.0, -1e8]), rtol=1e-12)


def test_a_capped_step_without_a_gradient_is_none():
    metric, satisfied = Metric(np.eye(2), 3.0), PairLoss(np.array([0.1, 0.0]), 1, Hinge())
    assert satisfied(metric) == 0
    np.testing.assert_array_equal(Descent(NuclearNorm(0.1), step_cap=True)(metric, satisfied, 1.0).M, np.eye(2))
    nowhere = PairLoss(np.zeros(2), -1, Hinge())
    still = Descent(NuclearNorm(0.1), threshold_step=0.0, step_cap=True)(metric, nowhere, 1.0)
    assert (still.mu, still.M.tolist()) == (3.0, np.eye(2).tolist())


@pytest.mark.parametrize("divergence", [VonNeumann(), LogDet()], ids=repr)
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_definite_geometries_survive_any_size(divergence, size):
    rng = np.random.default_rng(0)
    learner = Comid(Metric(np.eye(N), 1.0), 2.0, Descent(NuclearNorm(0.02), divergence))
    for _ in range(300):
        learner.update(PairLoss(size * rng.normal(size=N), int(rng.choice([-1, 1])), Hinge()))
    assert np.isfinite(learner.estimate.M).all()
    assert np.linalg.eigvalsh(learner.estimate.M)[0] >= -1e-12


@pytest.mark.parametrize("step", [0.0, -1.0, math.nan, math.inf])
def test_bad_steps_are_named(step):
    with pytest.raises(ValueError, match="step must be positive and finite"):
        Comid(Metric(np.eye(2), 1.0), step, Descent())


@pytest.mark.parametrize("regularizer", [NuclearNorm, SquaredFrobenius, L1])
def test_bad_strengths_are_named(regularizer):
    for strength in (-1.0, math.nan, math.inf, "a"):
        with pytest.raises(ValueError, match="strength must be >= 0"):
            regularizer(strength)


def test_metrics_are_read_only_vectors():
    M = np.eye(2)
    metric = Metric(M, 2.0)
    M[0, 0] = 7.0
    assert metric.M[0, 0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        metric.M[0, 0] = 3.0
    total = np.float64(0.5) * metric + 0.5 * metric
    assert isinstance(total, Metric)
    np.testing.assert_array_equal(total.M, np.eye(2))


def test_the_papers_constants_for_corollary_1_are_too_small():
    """psi = |M|_F^2, |M| <= c: the appendix has D = 2 c sqrt(n), G = max |u|^2 + lambda. Neither is a bound."""
    n, c = 25, 4.0
    largest = np.linalg.norm(c * np.eye(n) - np.zeros((n, n))) ** 2  # B(M', M) for psi = |M|_F^2
    assert largest > 2 * c * math.sqrt(n)
    assert largest == pytest.approx(n * c * c)
    u, strength = np.zeros(n), 0.5
    u[0] = 1.0
    gradient = np.outer(u, u) + strength * np.eye(n)
    assert math.hypot(np.linalg.norm(gradient), 1.0) > u @ u + strength  # and mu's part, 1, is left out
