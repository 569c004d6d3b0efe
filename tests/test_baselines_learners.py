"""Learners of the baselines: each against a literal transcription or the property that defines it."""

import numpy as np
import pytest

from ocelad import Comid, Descent, Hinge, LogDet, Metric, NuclearNorm, PairLoss, VonNeumann
from ocelad.baselines import Diffusion, OnlineItml, adagrad, comid, dynamic_mirror_descent, ftrl, mdml, online_itml
from ocelad.baselines.online_itml import new_distance
from ocelad.data import cayley, haar
from streams import comparisons

N = 4


def matrix(tracker):
    return tracker.get_mahalanobis_matrix()


def differences(steps=60, seed=0, n=N):
    pairs, y = comparisons(seed=seed, steps=steps, n=n)
    return pairs[:, 0] - pairs[:, 1], y


# Other geometries, other steps


@pytest.mark.parametrize("divergence", [LogDet(), VonNeumann()], ids=repr)
def test_mdml_is_comid_in_another_geometry(divergence):
    descent, metric = Descent(NuclearNorm(0.05), divergence), Metric(0.5 * np.eye(N), 1.0)
    u, y = differences()
    for difference, label in zip(u, y, strict=True):
        metric = descent(metric, PairLoss(difference, label, Hinge()), 0.3)
    tracker = mdml(0.3, divergence, strength=0.05, origin=0.5).partial_fit(np.stack([u, 0 * u], axis=1), y)
    np.testing.assert_allclose(matrix(tracker), metric.M, atol=1e-12)


def shrunk(W, tau):
    s, V = np.linalg.eigh(W)
    return (V * np.maximum(s - tau, 0)) @ V.T


def violated(M, mu, u, y):
    return y * (mu - u @ M @ u) < 1


def test_adagrad_step_falls_with_the_gradients():
    u, y = differences()
    M, mu, squares, step, strength = np.zeros((N, N)), 1.0, 0.0, 0.7, 0.03
    for x, label in zip(u, y, strict=True):
        g = label if violated(M, mu, x, label) else 0
        squares += (g**2) * ((x @ x) ** 2 + 1)
        if squares:
            eta = step / np.sqrt(squares)
            M, mu = shrunk(M - eta * g * np.outer(x, x), eta * strength), max(1.0, mu + eta * g)
    tracker = adagrad(step, strength).partial_fit(np.stack([u, 0 * u], axis=1), y)
    np.testing.assert_allclose(matrix(tracker), M, atol=1e-12)
    assert tracker.mu_ == pytest.approx(mu)


def test_ftrl_weighs_all_gradients_alike():
    u, y = differences()
    M, mu, total, total_mu, squares, step, strength = np.zeros((N, N)), 1.0, np.zeros((N, N)), 0.0, 0.0, 0.7, 0.03
    for t, (x, label) in enumerate(zip(u, y, strict=True), 1):
        g = label if violated(M, mu, x, label) else 0
        squares += (g**2) * ((x @ x) ** 2 + 1)
        total, total_mu = total + g * np.outer(x, x), total_mu - g
        eta = step / np.sqrt(squares) if squares else 0.0
        M, mu = shrunk(-eta * total, eta * t * strength), max(1.0, 1.0 - eta * total_mu)
    tracker = ftrl(step, strength).partial_fit(np.stack([u, 0 * u], axis=1), y)
    np.testing.assert_allclose(matrix(tracker), M, atol=1e-12)
    assert tracker.mu_ == pytest.approx(mu)
    assert M.any()


# Dynamic mirror descent


def test_identity_dynamics_is_comid():
    pairs, y = comparisons(seed=3, steps=60, n=N)
    moved = dynamic_mirror_descent(1.0, [lambda metric: metric]).partial_fit(pairs, y)
    np.testing.assert_allclose(matrix(moved), matrix(comid(1.0).partial_fit(pairs, y)), atol=1e-12)


def test_known_motion_is_comid_among_points_at_rest():
    """Points turn by R in every step; a learner that knows R sees what COMID sees of points that do not turn."""
    rng = np.random.default_rng(0)
    R, D = haar(N, rng), np.eye(N)
    pairs, y = comparisons(seed=4, steps=50, n=N)
    turning = dynamic_mirror_descent(1.0, [lambda metric: Metric(R @ metric.M @ R.T, metric.mu)])
    for pair, label in zip(pairs, y, strict=True):
        turning.partial_fit((pair @ D.T)[None], [label])
        D = R @ D
    at_rest = matrix(comid(1.0).partial_fit(pairs, y))
    np.testing.assert_allclose(D.T @ matrix(turning) @ D, at_rest, atol=1e-10)


def test_diffusion_is_the_mean_of_random_rotations():
    rng, drift = np.random.default_rng(0), 0.3
    A = rng.normal(size=(N, 2))
    M, moved = A @ A.T, np.zeros((N, N))
    trials = 20_000
    for G in rng.normal(size=(trials, N, N)):
        S = G - G.T
        for sign in (drift, -drift):  # in pairs: their first orders cancel
            R = cayley(sign * S / np.linalg.norm(S))
            moved += R @ M @ R.T / (2 * trials)
    change = np.linalg.norm(moved - M)
    expected = Diffusion(drift)(Metric(M, 1.0)).M
    assert np.linalg.norm(expected - moved) < 0.03 * change
    assert np.trace(expected) == pytest.approx(np.trace(M))


# Online ITML


def itml(rate, **options):
    return OnlineItml(Comid(Metric(np.eye(N), 1.0), rate, Descent()), **options)


@pytest.mark.parametrize("rate", [1e-3, 0.3, 30.0])
def test_itml_step_is_stationary(rate):
    """The gradient of D_LogDet(A, A_t) + rate/2 (u'Au - b)^2 vanishes: A^-1 = A_t^-1 + rate (a - b) u u'."""
    learner, moves = itml(rate), 0
    for u, y in zip(*differences(100), strict=True):
        before = learner.G @ learner.G.T
        learner.update(PairLoss(u, y, Hinge()))
        after = learner.G @ learner.G.T
        near, far = np.sort(learner.seen)[[int(q * (len(learner.seen) - 1)) for q in (0.05, 0.95)]]
        b, d = near if y > 0 else far, u @ before @ u
        if y * (d - b) <= 0:  # not violated
            np.testing.assert_array_equal(before, after)
            continue
        moves += 1
        a = u @ after @ u
        assert min(b, d) <= a <= max(b, d)
        stationary = np.linalg.inv(before) + rate * (a - b) * np.outer(u, u)
        np.testing.assert_allclose(
            np.linalg.inv(after), stationary, rtol=1e-6, atol=1e-6 * np.abs(stationary).max()
        )
        np.testing.assert_allclose(learner.estimate.M, after / ((near + far) / 2))
    assert moves > 20


@pytest.mark.parametrize("rate", [1e-6, 1.0, 1e6, 1e12])
def test_itml_stays_positive_definite(rate):
    rng, learner = np.random.default_rng(0), itml(rate)
    for _ in range(2_000):
        u, y = rng.normal(size=N) * 10.0 ** rng.uniform(-2, 2), int(rng.choice([-1, 1]))
        learner.update(PairLoss(u, y, Hinge()))
    s = np.linalg.svd(learner.G, compute_uv=False)
    assert np.isfinite(s).all()
    assert s[-1] > 0


def test_itml_meets_the_constraint_in_the_limit_of_large_rates():
    for rate, gap in [(1e2, 1e-1), (1e6, 1e-5), (1e10, 1e-9)]:
        assert abs(new_distance(5.0, 2.0, rate) - 2.0) < gap
        assert abs(new_distance(0.5, 2.0, rate) - 2.0) < gap
    assert new_distance(5.0, 2.0, 1e-12) == pytest.approx(5.0)


def test_itml_remembers_only_so_many_differences():
    learner = itml(1.0, memory=10)
    for size in range(1, 31):
        learner.update(PairLoss(np.full(N, float(size)), 1, Hinge()))
    assert learner.thresholds() == (21.0**2 * N, 29.0**2 * N)
    learner.update(PairLoss(np.zeros(N), 1, Hinge()))  # says nothing
    assert len(learner.seen) == 10


def test_itml_takes_weights_and_refuses_triplets():
    pairs, y = comparisons(seed=5, steps=20, n=N)
    half = online_itml(2.0).partial_fit(pairs, y, sample_weight=np.full(20, 0.5))
    np.testing.assert_allclose(matrix(half), matrix(online_itml(1.0).partial_fit(pairs, y)))
    with pytest.raises(ValueError, match="learns from pairs"):
        online_itml(1.0).partial_fit_triplets(np.eye(3)[None])
