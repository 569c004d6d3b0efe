"""The best comparators in hindsight, against brute force, an independent solver, and the laws of convexity."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ocelad import Hinge, Metric, PairLoss
from ocelad.evaluate import Ball, Metrics, Problem, best_constant, best_sequence, variation
from ocelad.evaluate.comparator import within_variation

DOMAINS = [Ball(1.5), Metrics(2, largest=3.0, threshold=2.5, strength=0.3), Metrics(3, largest=2.0, threshold=1.0)]


def dimension(domain):
    return domain.n**2 + 1 if isinstance(domain, Metrics) else 3


def regressions(seed, T=40, d=2, radius=2.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(T, d))
    w = np.where(np.arange(T)[:, None] < T // 2, rng.normal(size=d), rng.normal(size=d))
    return Problem.absolute_errors(X, (X * w).sum(axis=1) + 0.1 * rng.normal(size=T), radius)


def comparisons(seed, T=40, n=2, strength=0.05):
    """First one feature matters, then the other."""
    rng = np.random.default_rng(seed)
    u = rng.normal(size=(T, n))
    matter = np.where(np.arange(T) < T // 2, u[:, 0] ** 2, u[:, -1] ** 2)
    return Problem.comparisons(u, np.where(matter < 0.6, 1, -1), Metrics(n, 20.0, 10.0, strength))


@pytest.mark.parametrize("domain", DOMAINS, ids=str)
def test_shrink_and_support_are_optimal(domain):
    rng = np.random.default_rng(0)
    inside = domain.shrink(3 * rng.normal(size=(300, dimension(domain))), 0.0)
    v, tau = 3 * rng.normal(size=dimension(domain)), 0.7
    best = domain.shrink(v, tau)

    def cost(w):
        return tau * domain.penalty(w) + np.square(w - v).sum(axis=-1) / 2

    assert (cost(best) <= cost(inside) + 1e-12).all()
    assert (cost(best) <= cost(inside + 0.999 * (best - inside)) + 1e-12).all()
    gain = inside @ v - domain.penalty(inside)
    reached = domain.shrink(1e6 * v, 1e6)  # the maximiser, in the limit
    assert (domain.support(v) >= gain - 1e-12).all()
    assert domain.support(v) == pytest.approx(reached @ v - domain.penalty(reached), rel=1e-4)
    assert np.linalg.norm(inside[:, None] - inside, axis=2).max() <= domain.diameter + 1e-12


def test_a_problem_has_the_losses_of_its_comparisons():
    problem, rng = comparisons(0), np.random.default_rng(1)
    metrics = [Metric(L.T @ L, 1 + rng.random()) for L in rng.normal(size=(40, 2, 2))]
    rows = problem.domain.rows(metrics)
    y = problem.rows[:, -1]
    u1 = np.sqrt(-y * problem.rows[:, 0])
    u2 = -y * problem.rows[:, 1] / u1
    u = np.column_stack([u1, u2])
    wanted = [PairLoss(row, int(s), Hinge())(m) for row, s, m in zip(u, y, metrics, strict=True)]
    assert problem.losses(rows) == pytest.approx(wanted)
    assert problem.values(rows) == pytest.approx(
        np.array(wanted) + 0.05 * np.array([np.trace(m.M) for m in metrics])
    )
    again = problem.domain.metrics(rows)
    assert all(np.allclose(a.M, b.M) and a.mu == b.mu for a, b in zip(again, metrics, strict=True))


@given(arrays(float, (5, 2), elements=st.floats(-10, 10)), st.floats(0, 20))
def test_within_variation_is_the_projection(z, gamma):
    near = within_variation(z, gamma)
    assert np.linalg.norm(near, axis=1).sum() <= gamma + 1e-9
    # the corners of the ball: all of gamma in one step, in any direction
    residual = z - near
    reach = gamma * np.linalg.norm(residual, axis=1).max()
    assert (residual * near).sum() >= reach - 1e-7 * (1 + abs(reach))


def test_the_best_constant_is_the_median():
    targets = np.array([0.0, 3.0, 1.0, 9.0, 2.5])
    solution = best_constant(Problem.absolute_errors(np.ones((5, 1)), targets, radius=20.0), tolerance=1e-7)
    assert solution.w[0] == pytest.approx(2.5, abs=1e-3)
    assert solution.value == pytest.approx(np.abs(targets - 2.5).sum(), abs=1e-4)


def test_the_best_constant_metric_by_brute_force():
    """One dimension: M and mu on a grid."""
    problem = comparisons(3, T=60, n=1, strength=0.1)
    M, mu = (axis.ravel() for axis in np.meshgrid(np.linspace(0, 6, 301), np.linspace(1, 4, 151)))
    margins = problem.rows @ np.stack([M, mu])
    least = (np.maximum(0, 1 - margins).sum(axis=0) + 60 * 0.1 * M).min()
    solution = best_constant(problem)
    assert solution.value - solution.gap <= least + 1e-9
    assert solution.value <= least + 1e-4 * (1 + least)
    steepest = np.abs(problem.rows).sum() + 60 * 0.1  # and the grid has a point within 0.01 of any
    assert solution.value >= least - 0.01 * steepest


@pytest.mark.parametrize("gamma", [0.0, 0.4, 1.0, 5.0])
def test_the_best_sequence_by_brute_force(gamma):
    """Three steps in one dimension, on a grid."""
    X, targets = np.array([[1.0], [2.0], [1.0]]), np.array([0.0, 2.2, 0.6])
    w = np.linspace(-1, 2, 61)
    a, b, c = np.meshgrid(w, w, w)
    allowed = np.abs(b - a) + np.abs(c - b) <= gamma + 1e-9
    total = np.abs(a) + np.abs(2 * b - 2.2) + np.abs(c - 0.6)
    solution = best_sequence(Problem.absolute_errors(X, targets, radius=2.0), gamma, tolerance=1e-6)
    assert solution.value == pytest.approx(total[allowed].min(), abs=1e-4)
    assert variation(solution.w).sum() <= gamma + 1e-9


@pytest.mark.parametrize("make", [regressions, comparisons])
def test_the_best_sequence_is_convex_in_its_variation(make):
    problem = make(0)
    gammas = np.array([0.0, 1.0, 2.0, 3.0, 4.0])
    found = [best_sequence(problem, gamma, tolerance=1e-3) for gamma in gammas]
    for gamma, solution in zip(gammas, found, strict=True):
        assert solution.gap <= 1e-3 * (1 + solution.value)
        assert variation(solution.w).sum() <= gamma + 1e-9
        assert problem.values(solution.w).sum() == pytest.approx(solution.value)
        assert problem.domain.shrink(solution.w, 0.0) == pytest.approx(solution.w, abs=1e-9)  # inside
    low, high = (np.array([s.value - share * s.gap for s in found]) for share in (1, 0))
    assert (low[1:] <= high[:-1]).all()  # more freedom costs nothing,
    assert (low[1:-1] <= (high[:-2] + high[2:]) / 2).all()  # and gains less and less
    constant = best_constant(problem, tolerance=1e-3)
    assert constant.value == pytest.approx(found[0].value, rel=3e-3)


@pytest.mark.parametrize("make", [regressions, comparisons])
def test_no_sequence_of_that_variation_is_better_than_the_certificate(make):
    problem, rng = make(1), np.random.default_rng(0)
    solution = best_sequence(problem, 1.5, tolerance=1e-3)
    for _ in range(200):
        steps = within_variation(rng.normal(size=(len(problem) - 1, problem.rows.shape[1])), 1.5)
        w = problem.domain.shrink(solution.w[0] + np.vstack([0 * steps[:1], np.cumsum(steps, axis=0)]), 0.0)
        assert variation(w).sum() <= 1.5 + 1e-9  # a projection brings no two points further apart
        assert problem.values(w).sum() >= solution.value - solution.gap


@pytest.mark.parametrize("gamma", [0.3, 1.2])
def test_vectors_as_an_independent_solver_finds_them(gamma):
    cp = pytest.importorskip("cvxpy", reason="cvxpy is not installed: no independent solver")
    problem = regressions(2)
    W = cp.Variable(problem.rows.shape)
    loss = cp.sum(cp.abs(cp.sum(cp.multiply(problem.rows, W), axis=1) - problem.targets))
    moved = cp.sum(cp.norm(W[1:] - W[:-1], axis=1))
    cp.Problem(cp.Minimize(loss), [moved <= gamma, cp.norm(W, axis=1) <= 2.0]).solve(solver=cp.CLARABEL)
    assert best_sequence(problem, gamma).value == pytest.approx(float(loss.value), rel=3e-4)


def test_metrics_as_an_independent_solver_finds_them():
    cp = pytest.importorskip("cvxpy", reason="cvxpy is not installed: no independent solver")
    problem = comparisons(2, T=20)
    M, mu = [cp.Variable((2, 2), PSD=True) for _ in range(20)], cp.Variable(20)
    rows = [cp.hstack([cp.vec(m, order="C"), mu[t]]) for t, m in enumerate(M)]
    loss = sum(cp.pos(1 - problem.rows[t] @ row) for t, row in enumerate(rows)) + 0.05 * sum(map(cp.trace, M))
    moved = sum(cp.norm(after - before) for before, after in pairwise(rows))
    inside = [mu >= 1, mu <= 10, moved <= 2.0, *(20 * np.eye(2) - m >> 0 for m in M)]
    cp.Problem(cp.Minimize(loss), inside).solve(solver=cp.CLARABEL)
    assert best_sequence(problem, 2.0).value == pytest.approx(float(loss.value), rel=3e-4)


def test_bad_problems_are_refused():
    with pytest.raises(ValueError, match="gamma must be finite and >= 0"):
        best_sequence(regressions(0), -1.0)
    with pytest.raises(ValueError, match="tolerance must be positive"):
        best_constant(regressions(0), tolerance=0.0)
    with pytest.raises(ValueError, match="X and targets must be of shape"):
        Problem.absolute_errors([[1.0]], [1.0, 2.0], radius=1.0)
    with pytest.raises(ValueError, match="X and targets must be finite"):
        Problem.absolute_errors([[1.0]], [np.nan], radius=1.0)
    with pytest.raises(ValueError, match="u must be finite"):
        Problem.comparisons([[np.inf]], [1.0], Metrics(1, 1.0, 1.0))
    with pytest.raises(ValueError, match=r"y must be \+1"):
        Problem.comparisons([[1.0]], [0.0], Metrics(1, 1.0, 1.0))
    with pytest.raises(ValueError, match="u and y must be of shape"):
        Problem.comparisons([[1.0, 2.0]], [1.0], Metrics(1, 1.0, 1.0))
    with pytest.raises(ValueError, match="radius must be positive"):
        Ball(0.0)
    with pytest.raises(ValueError, match="threshold must be finite and at least 1"):
        Metrics(1, 1.0, 0.5)
    with pytest.raises(ValueError, match="strength must be finite and >= 0"):
        Metrics(1, 1.0, 1.0, -1.0)
