"""The best constant parameter in hindsight, which static regret compares with.

    min_{w in Theta} sum_t f_t(w)   =   max_{low <= alpha <= high} -<alpha, b> - T support(-A'alpha / T).

By the alternating direction method of multipliers on e = Aw - b and v = w. Its multipliers of e are feasible for
the dual on the right, its v is feasible on the left, so the gap between the best of each is a certificate.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from ..protocols import Array
from .admm import CHECK, RELAX, Balance, Bracket, Solution, distance
from .problems import Problem


def best_constant(problem: Problem, tolerance: float = 1e-4, iterations: int = 20_000) -> Solution:
    """The constant with the least total loss, up to ``tolerance`` times (1 + that loss), if ``iterations`` allow.

    >>> solution = best_constant(Problem.absolute_errors([[1.0]] * 5, [0.0, 0.1, 0.2, 7.0, 9.0], radius=10.0))
    >>> bool(abs(solution.w[0] - 0.2) < 0.01)  # the median
    True
    """
    A, b, domain, T = problem.rows, problem.targets, problem.domain, len(problem)
    size = max(float((A * A).sum()) / min(A.shape), np.finfo(np.float64).tiny)  # a typical eigenvalue of A'A
    root, solve, pull = np.sqrt(size), _ridge(A, size), 1.0
    bracket, balance = Bracket(tolerance), Balance()
    v = domain.shrink(np.zeros(A.shape[1]), 0.0)
    e, u_e, u_v, count = problem.errors(v), np.zeros(T), np.zeros_like(v), 0
    for count in range(1, iterations + 1):
        # the penalties are pull on e = Aw - b and pull * size on v = w, so that the system stays the same
        w = solve(A.T @ (e + b - u_e) + size * (v - u_v))
        Aw, before = A @ w - b, (e, root * v)
        at_e, at_v = RELAX * Aw + (1 - RELAX) * e + u_e, RELAX * w + (1 - RELAX) * v + u_v
        alpha = problem.slopes(at_e, 1 / pull)
        e, u_e = at_e - alpha / pull, alpha / pull
        v = domain.shrink(at_v, T / (pull * size))
        u_v = at_v - v
        if count % CHECK == 0:
            bound = -alpha @ b - T * domain.support(-(A.T @ alpha) / T)
            if bracket.add(v, float(problem.values(v).sum()), float(bound)):
                break
            missed, moved = distance((Aw, root * w), (e, root * v)), distance((e, root * v), before)
            factor = balance(count, missed, moved)
            pull, u_e, u_v = pull * factor, u_e / factor, u_v / factor
    return bracket.solution(count)


def _ridge(A: Array, ridge: float) -> Callable[[Array], Array]:
    """(A'A + ridge)^-1, through the smaller of the two Gram matrices."""
    T, d = A.shape
    if d <= T:
        factor = cho_factor(A.T @ A + ridge * np.eye(d))
        return lambda x: cho_solve(factor, x, check_finite=False)
    factor = cho_factor(A @ A.T + ridge * np.eye(T))
    return lambda x: (x - A.T @ cho_solve(factor, A @ x, check_finite=False)) / ridge
