"""The batch-optimal comparator: the best sequence in hindsight whose total variation is bounded.

    min  sum_t f_t(w_t)   over w_t in Theta with  sum_t |w_{t+1} - w_t| <= gamma
    max  -<alpha, b> - gamma max_t |p_t| - sum_t support(-(alpha_t a_t + (D'p)_t)),   low <= alpha <= high,

D taking differences in time. By the alternating direction method of multipliers on x = w (losses), v = w (domain)
and z = Dw (variation): each has a closed form, and w is found from one tridiagonal system. The multipliers alpha
and p are feasible for the dual, v is for the primal once drawn towards its mean, and the gap is a certificate.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_solve_banded, cholesky_banded

from ..protocols import Array
from .admm import CHECK, RELAX, Balance, Bracket, Solution, distance
from .problems import Problem
from .regret import variation

STIFF = 10.0
"""The penalty of z = Dw relative to the others: news has to travel along time."""


def best_sequence(problem: Problem, gamma: float, tolerance: float = 1e-4, iterations: int = 50_000) -> Solution:
    """The sequence of total variation at most ``gamma`` with the least total loss, for small problems.

    It stops at a gap of ``tolerance`` times (1 + that loss), or after ``iterations``; the solution has the
    gap. With gamma = 0 it is `best_constant`'s problem, which that solves faster.

    >>> problem = Problem.absolute_errors(np.ones((20, 1)), [0.0] * 10 + [1.0] * 10, radius=5.0)
    >>> [round(best_sequence(problem, gamma).value, 2) for gamma in (0.0, 0.5, 1.0)]
    [10.0, 5.0, 0.0]
    """
    if not 0 <= gamma < np.inf:
        raise ValueError(f"gamma must be finite and >= 0, got {gamma!r}")
    a, b, domain, (T, d) = problem.rows, problem.targets, problem.domain, problem.rows.shape
    squares = np.maximum((a * a).sum(axis=1), np.finfo(np.float64).tiny)
    system, pull, root, count = _laplacian(T), 1.0, np.sqrt(STIFF), 0
    bracket, balance = Bracket(tolerance), Balance()
    x = v = np.tile(domain.shrink(np.zeros(d), 0.0), (T, 1))
    z = np.zeros((T - 1, d))
    u_x, u_v, u_z = np.zeros((T, d)), np.zeros((T, d)), np.zeros((T - 1, d))
    for count in range(1, iterations + 1):
        right = x - u_x + v - u_v + STIFF * _transposed(z - u_z)
        w = cho_solve_banded((system, True), right, check_finite=False)
        Dw, before = np.diff(w, axis=0), (x, v, root * z)
        relaxed = (RELAX * new + (1 - RELAX) * old for new, old in ((w, x), (w, v), (Dw, z)))
        at_x, at_v, at_z = (point + u for point, u in zip(relaxed, (u_x, u_v, u_z), strict=True))
        alpha = problem.slopes(problem.errors(at_x), squares / pull)
        u_x = alpha[:, None] * a / pull
        x, v, z = at_x - u_x, domain.shrink(at_v, 1 / pull), within_variation(at_z, gamma)
        u_v, u_z = at_v - v, at_z - z
        if count % CHECK == 0:
            p = pull * STIFF * u_z
            bound = -alpha @ b - domain.support(-(alpha[:, None] * a + _transposed(p))).sum()
            bound -= gamma * np.linalg.norm(p, axis=1).max(initial=0.0)
            inside = _drawn_together(v, gamma)
            if bracket.add(inside, float(problem.values(inside).sum()), float(bound)):
                break
            now = (x, v, root * z)
            factor = balance(count, distance((w, w, root * Dw), now), distance(before, now))
            pull, u_x, u_v, u_z = pull * factor, u_x / factor, u_v / factor, u_z / factor
    return bracket.solution(count)


def within_variation(z: Array, gamma: float) -> Array:
    """The nearest differences whose norms add up to at most gamma: all norms fall by the same amount, down to 0.

    >>> within_variation(np.array([[3.0, 4.0], [0.0, 1.0]]), 3.0)
    array([[1.8, 2.4],
           [0. , 0. ]])
    """
    norms = np.linalg.norm(z, axis=1)
    if norms.sum() <= gamma:
        return z
    falling = np.sort(norms)[::-1]
    cut = ((np.cumsum(falling) - gamma) / np.arange(1, len(falling) + 1)).max()
    return z * (np.maximum(norms - cut, 0.0) / np.where(norms > 0, norms, 1.0))[:, None]


def _drawn_together(v: Array, gamma: float) -> Array:
    total = float(variation(v).sum())
    mean = v.mean(axis=0)
    return v if total <= gamma else mean + gamma / total * (v - mean)


def _transposed(z: Array) -> Array:
    """D'z."""
    return -np.diff(z, axis=0, prepend=0.0, append=0.0)


def _laplacian(T: int) -> Array:
    """The Cholesky factor of 2 I + STIFF D'D, by its diagonals."""
    diagonals = np.zeros((2, T))
    diagonals[0] = 2.0
    diagonals[0, 1:] += STIFF
    diagonals[0, :-1] += STIFF
    diagonals[1, :-1] = -STIFF
    return np.asarray(cholesky_banded(diagonals, lower=True))
