"""LMNN, ITML and MMC solve what they say they solve, and certify it."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.datasets import load_wine

from ocelad.baselines import ITML, LMNN, MMC
from ocelad.baselines.batch.impostors import MarginLoss, targets
from streams import comparisons

WINE, CULTIVAR = load_wine(return_X_y=True)
PAIRS, Y = comparisons(seed=0, steps=120, n=3, change=False)
U = PAIRS[:, 0] - PAIRS[:, 1]
BY_PAIRS = [ITML(), MMC()]


def name(estimator):
    return type(estimator).__name__


def two_classes(seed, n=24, features=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, features))
    return X, (X[:, 0] + 0.5 * rng.normal(size=n) > 0).astype(int)


def rotation(n, seed=0):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(n, n)))[0]


# LMNN


def lmnn_loss(M, X, y, k, push, rounding=0.0):
    """The definition, point by point."""

    def squared(i, j):
        return (X[i] - X[j]) @ M @ (X[i] - X[j])

    total = 0.0
    for i in range(len(X)):
        own = [j for j in range(len(X)) if y[j] == y[i] and j != i]
        for j in sorted(own, key=lambda j: np.linalg.norm(X[i] - X[j]))[:k]:
            total += (1 - push) * squared(i, j)
            for other in np.flatnonzero(y != y[i]):
                late = max(0.0, 1 + squared(i, j) - squared(i, other))
                total += push * (late**2 / (2 * rounding) if late < rounding else late - rounding / 2)
    return total


@pytest.mark.parametrize(("seed", "k", "push"), [(0, 1, 0.5), (1, 3, 0.5), (2, 2, 0.8)])
def test_lmnn_reaches_the_minimum(seed, k, push):
    X, y = two_classes(seed, n=14)
    learned = LMNN(k, push=push, rounding=1e-3, tol=1e-6).fit(X, y)
    reached = lmnn_loss(learned.get_mahalanobis_matrix(), X, y, k, push)
    assert learned.loss_curve_[-1] == pytest.approx(
        lmnn_loss(learned.get_mahalanobis_matrix(), X, y, k, push, 1e-3), rel=1e-4
    )

    def of(entries):
        L = np.array([[entries[0], entries[1]], [0.0, entries[2]]])
        return lmnn_loss(L.T @ L, X, y, k, push)

    starts = np.random.default_rng(seed).normal(size=(2, 3))
    best = min(minimize(of, start, method="Nelder-Mead").fun for start in starts)
    assert reached == pytest.approx(best, rel=2e-3)


@pytest.mark.parametrize("tol", [0.3, 1e-2, 1e-5])
def test_the_certificate_of_lmnn_holds(tol):
    X, y = two_classes(3, n=80, features=5)
    rough, exact = LMNN(tol=tol).fit(X, y), LMNN(tol=1e-6).fit(X, y)
    assert rough.gap_ <= tol
    assert -2e-6 <= rough.loss_curve_[-1] / exact.loss_curve_[-1] - 1 <= rough.gap_ + 1e-6


def test_the_loss_of_lmnn_only_falls():
    curve = LMNN().fit(WINE, CULTIVAR).loss_curve_
    assert len(curve) > 2
    assert (np.diff(curve) < 0).all()


def test_lmnn_looks_at_every_impostor():
    """No working set hides one: the loss over all of them is the one reported."""
    X, y = two_classes(6, n=70, features=4)
    learned = LMNN().fit(X, y)
    assert learned.loss_curve_[-1] == pytest.approx(
        lmnn_loss(learned.get_mahalanobis_matrix(), X, y, 3, 0.5, 0.1), rel=1e-4
    )


@pytest.mark.parametrize("slack", [0.0, 0.1, 5.0])
def test_the_compiled_loss_of_lmnn_is_the_one_written_out(slack):
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(60, 7)), rng.integers(3, size=60)
    labels[:3] = 3, 4, 4  # a class of one, and one with fewer than three targets
    loss = MarginLoss(X, labels, targets(X, labels, 3), push=0.3, rounding=0.1)
    for size in (0.1, 0.5, 2.0):
        L = size * rng.normal(size=(7, 7))
        impostors = loss.impostors(L, slack)
        i, other = np.divmod(impostors, 60)
        has, Z = loss.targets >= 0, X @ L.T
        near = np.where(has, np.square(Z[:, None] - Z[loss.targets]).sum(axis=2), -np.inf)
        late = np.maximum(1.0 + near[i] - np.square(Z[i] - Z[other]).sum(axis=1)[:, None], 0.0)
        slope = np.minimum(late / 0.1, 1.0)
        F = 0.7 * np.square(L).sum() + 0.3 * (slope * (late - slope * 0.1 / 2.0)).sum()
        G = 0.7 * np.eye(7)
        for pair, target in zip(*np.nonzero(slope), strict=True):
            near_by, far = X[i[pair]] - X[loss.targets[i[pair], target]], X[i[pair]] - X[other[pair]]
            G += 0.3 * slope[pair, target] * (np.outer(near_by, near_by) - np.outer(far, far))
        value, gradient = loss(L, impostors)
        assert value == pytest.approx(F, rel=1e-12)
        np.testing.assert_allclose(gradient, G, atol=1e-10 * np.abs(G).max())
        assert 0.0 < slope[late > 0].min() < slope.max() == 1.0  # in the corner of the hinge, and off it


def test_lmnn_without_enough_of_a_class():
    X = np.array([[0.0, 0.0], [0.2, 1.0], [0.1, 3.0], [2.0, 0.0], [2.1, 1.5], [9.0, 9.0]])
    learned = LMNN(3).fit(X, [0, 0, 0, 1, 1, 2])  # a singleton, and no class with four
    assert np.diag(learned.get_mahalanobis_matrix())[0] > 5 * np.diag(learned.get_mahalanobis_matrix())[1]


def test_lmnn_of_points_that_all_come_twice():
    X, y = two_classes(4)
    learned = LMNN(1).fit(np.concatenate([X, X]), np.concatenate([y, y]))  # every target is at distance 0
    assert np.isfinite(learned.components_).all()
    assert learned.get_mahalanobis_matrix().any()


# ITML


def cyclic_projections(u, y, b, M, gamma, rounds):
    """Bregman projections on one constraint after the other (Davis et al., Algorithm 1), each exact."""
    M, xi, multiplier = M.copy(), b.copy(), np.zeros(len(u))
    for _ in range(rounds):
        for c in range(len(u)):
            p = u[c] @ M @ u[c]
            alpha = min(multiplier[c], y[c] * gamma / (gamma + 1) * (1 / p - 1 / xi[c]))
            multiplier[c] -= alpha
            xi[c] = 1 / (1 / xi[c] + y[c] * alpha / gamma)
            M += y[c] * alpha / (1 - y[c] * alpha * p) * np.outer(M @ u[c], M @ u[c])
    return M


@pytest.mark.parametrize("gamma", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("prior", [1.0, np.diag([1.0, 2.0, 3.0])], ids=["identity", "given"])
def test_itml_is_the_limit_of_cyclic_projections(gamma, prior):
    learned = ITML(gamma=gamma, prior=prior, tol=1e-12).fit(PAIRS[:12], Y[:12])
    b = np.where(Y[:12] > 0, *learned.bounds_**2)
    slow = cyclic_projections(U[:12], Y[:12], b, prior * np.eye(3), gamma, rounds=2000)
    np.testing.assert_allclose(learned.get_mahalanobis_matrix(), slow, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("label", "length"), [(1, 2.0), (-1, 0.5)])
def test_itml_of_one_pair(label, length):
    """Stationarity on the line: 1 - 1/M + gamma (u^2/b - 1/M) = 0."""
    learned = ITML(gamma=3.0, prior=1.0, bounds=(1.0, 1.0), tol=1e-12).fit([[[length], [0.0]]], [label])
    assert learned.get_mahalanobis_matrix().item() == pytest.approx(4.0 / (1.0 + 3.0 * length**2), rel=1e-6)


def test_itml_keeps_a_prior_that_does():
    learned = ITML(prior=np.diag([1.0, 2.0, 3.0]), bounds=(100.0, 100.0)).fit(PAIRS[Y > 0], Y[Y > 0])
    np.testing.assert_allclose(learned.get_mahalanobis_matrix(), np.diag([1.0, 2.0, 3.0]), atol=1e-9)
    assert learned.objective_ == pytest.approx(0.0, abs=1e-12)


def test_itml_takes_the_percentiles_of_distances():
    d = np.linalg.norm(U, axis=1)
    np.testing.assert_allclose(ITML(prior=1.0).fit(PAIRS, Y).bounds_, np.percentile(d, [5, 95]))
    np.testing.assert_allclose(ITML(prior=4.0).fit(PAIRS, Y).bounds_, 2 * np.percentile(d, [5, 95]))


def test_pairs_that_come_twice_are_worth_twice_the_slack():
    twice = ITML(gamma=1.0, bounds=(1.0, 2.0), tol=1e-10).fit(np.concatenate([PAIRS, PAIRS]), np.tile(Y, 2))
    once = ITML(gamma=2.0, bounds=(1.0, 2.0), tol=1e-10).fit(PAIRS, Y)
    np.testing.assert_allclose(twice.get_mahalanobis_matrix(), once.get_mahalanobis_matrix(), rtol=1e-4, atol=1e-6)


# MMC


def mmc_objective(M, barrier):
    far, near = U[Y < 0], U[Y > 0]
    distance = np.sqrt(np.einsum("ij,jk,ik->i", far, M, far)).mean()
    cost = np.einsum("ij,jk,ik->i", near, M, near).mean()
    W = near.T @ near / len(near)
    return distance - cost / 2 + (barrier / 2 * np.linalg.slogdet(W @ M)[1] if barrier else 0.0)


@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("barrier", [0.0, 0.1, 1.0])
def test_mmc_reaches_the_maximum(barrier, diagonal):
    learned = MMC(barrier=barrier, diagonal=diagonal, ridge=0.0, tol=1e-7).fit(PAIRS, Y)
    M = learned.get_mahalanobis_matrix()
    if diagonal:
        np.testing.assert_allclose(M, np.diag(M.diagonal()), atol=1e-12)
    reached = max(mmc_objective(c * M, barrier) for c in np.linspace(0.5, 2.0, 301)) if not barrier else None
    reached = mmc_objective(M, barrier) if reached is None else reached

    def of(entries):
        L = np.diag(entries[:3])
        if not diagonal:
            L[np.triu_indices(3, 1)] = entries[3:]
        return -mmc_objective(L.T @ L + 1e-15 * np.eye(3), barrier)

    starts = np.random.default_rng(0).normal(size=(3, 3 if diagonal else 6))
    best = max(-minimize(of, start, method="L-BFGS-B").fun for start in starts)
    assert reached == pytest.approx(best, rel=1e-4)


def test_mmc_is_the_best_of_a_grid():
    """Xing's problem in the plane: no metric of a fine grid, cut to the same cost, has different pairs farther."""
    pairs, y = PAIRS[..., :2], Y
    u = pairs[:, 0] - pairs[:, 1]

    def ratio(M):
        squares = np.einsum("ij,jk,ik->i", u, M, u)
        return np.sqrt(np.maximum(squares[y < 0], 0)).mean() / np.sqrt(squares[y > 0].mean())

    angles, parts = np.linspace(0, np.pi, 181), np.linspace(0, 1, 41)
    best = 0.0
    for angle in angles:
        R = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        best = max(best, *(ratio(R @ np.diag([1.0, part**2]) @ R.T) for part in parts))
    reached = ratio(MMC(barrier=0.0, ridge=0.0, tol=1e-8).fit(pairs, y).get_mahalanobis_matrix())
    assert best <= reached * (1 + 1e-9)
    assert reached == pytest.approx(best, rel=1e-3)


@pytest.mark.parametrize("barrier", [0.0, 1.0])
def test_the_certificate_of_mmc_holds(barrier):
    rough, exact = (MMC(barrier=barrier, tol=tol).fit(PAIRS, Y) for tol in (0.1, 1e-9))
    far = exact.pair_distance(PAIRS[Y < 0]).mean() if barrier else 1.0
    assert rough.objective_ <= exact.objective_ + 1e-9
    assert exact.objective_ - rough.objective_ <= (rough.gap_ + 1e-9) * max(far, exact.objective_) * 2


def test_a_large_barrier_is_the_covariance_of_similar_pairs():
    M = MMC(barrier=1e6, ridge=0.0).fit(PAIRS, Y).get_mahalanobis_matrix()
    near = U[Y > 0]
    np.testing.assert_allclose(
        M / M[0, 0], np.linalg.inv(near.T @ near) / np.linalg.inv(near.T @ near)[0, 0], rtol=1e-2, atol=1e-2
    )


def test_similar_pairs_that_do_not_span_need_a_ridge():
    pairs = PAIRS.copy()
    pairs[Y > 0, :, 2] = 0.0
    assert np.isfinite(MMC().fit(pairs, Y).components_).all()
    with pytest.raises(ValueError, match="ridge must be > 0"):
        MMC(ridge=0.0).fit(pairs, Y)


# Symmetries


def learned_from(estimator, X, y):
    return clone(estimator).fit(X, y).get_mahalanobis_matrix()


@pytest.mark.parametrize(
    ("estimator", "X", "y"),
    [
        (LMNN(tol=1e-7), *two_classes(5, n=60, features=3)),
        (ITML(prior=1.0, tol=1e-10), PAIRS, Y),
        (MMC(tol=1e-10), PAIRS, Y),
    ],
    ids=["LMNN", "ITML", "MMC"],
)
def test_symmetries(estimator, X, y):
    M, Q = learned_from(estimator, X, y), rotation(3)
    close = dict(rtol=1e-3, atol=1e-3 * np.abs(M).max())
    np.testing.assert_allclose(learned_from(estimator, X @ Q.T, y), Q @ M @ Q.T, **close)
    np.testing.assert_allclose(learned_from(estimator, X + np.array([5.0, -3.0, 1.0]), y), M, **close)
    np.testing.assert_allclose(learned_from(estimator, X[::-1], y[::-1]), M, **close)
    scaled = clone(estimator).fit(1e-3 * X, y).get_mahalanobis_matrix()
    np.testing.assert_allclose(scaled if name(estimator) == "ITML" else 1e-6 * scaled, M, **close)
    constant = np.concatenate([X, np.full((*X.shape[:-1], 1), 7.0)], axis=-1)
    np.testing.assert_allclose(learned_from(estimator, constant, y)[:3, :3], M, **close)


@pytest.mark.parametrize("estimator", [ITML(tol=1e-9), MMC(tol=1e-9), MMC(diagonal=True, tol=1e-9)], ids=str)
def test_units_of_features_do_not_matter(estimator):
    units = np.array([1e-3, 1.0, 1e4])
    one, other = clone(estimator).fit(PAIRS, Y), clone(estimator).fit(PAIRS * units, Y)
    np.testing.assert_allclose(other.pair_distance(PAIRS * units), one.pair_distance(PAIRS), rtol=1e-3)


@pytest.mark.parametrize("size", [1e-200, 1e150])
@pytest.mark.parametrize("estimator", BY_PAIRS, ids=name)
def test_features_of_any_size(estimator, size):
    one, other = clone(estimator).fit(PAIRS, Y), clone(estimator).fit(size * PAIRS, Y)
    np.testing.assert_allclose(other.pair_distance(size * PAIRS), one.pair_distance(PAIRS), rtol=1e-6)


@pytest.mark.parametrize("seed", range(12))
def test_any_problem_is_solved(seed):
    """Few points, many features, ties, duplicates, constants, labels at random: no warning and no overflow."""
    rng = np.random.default_rng(seed)
    n, features = int(rng.integers(8, 80)), int(rng.integers(1, 20))
    X = rng.normal(size=(n, features)) * np.exp(rng.normal(size=features) * (seed % 2) * 3)
    X = np.round(X) if seed % 3 == 0 else X
    X[:, features // 2] *= seed % 4 > 0
    y = rng.integers(3, size=n) if seed % 2 else np.arange(n) % 2
    rows = rng.integers(n, size=(30, 2))
    alike = np.where(y[rows[:, 0]] == y[rows[:, 1]], 1, -1)
    for estimator in (*BY_PAIRS, ITML(prior=1.0, gamma=10.0), MMC(barrier=0.0), MMC(diagonal=True)):
        assert np.isfinite(clone(estimator).fit(X[rows], alike).components_).all()
    assert np.isfinite(LMNN().fit(X, y).components_).all()
