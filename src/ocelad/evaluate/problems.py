"""Convex problems in hindsight: all losses of a run at once, over a domain.

    f_t(w) = max(low * e, high * e) + g(w),      e = <a_t, w> - b_t,      low <= 0 <= high.

Absolute errors have low, high = -1, 1. The hinge of a comparison has -1, 0, since its margin y (mu - u'Mu) is
linear in {M, mu}: a = y (-uu', 1), b = 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..protocols import Array
from .domains import Ball, Domain, Metrics


@dataclass(frozen=True, eq=False)
class Problem:
    """Losses of T steps, each of a linear prediction, and the set of parameters.

    >>> problem = Problem.absolute_errors([[1.0], [2.0]], [1.0, 0.0], radius=5.0)
    >>> problem.values(np.array([[0.5], [0.5]]))
    array([0.5, 1. ])
    """

    rows: Array
    targets: Array
    low: float
    high: float
    domain: Domain

    @classmethod
    def absolute_errors(cls, X: ArrayLike, targets: ArrayLike, radius: float) -> Problem:
        """|<x_t, w> - target_t|, w in a ball."""
        rows, b = np.asarray(X, dtype=np.float64), np.asarray(targets, dtype=np.float64)
        if rows.ndim != 2 or b.shape != rows.shape[:1] or not len(b):
            raise ValueError(f"X and targets must be of shape (T, d) and (T,), got {rows.shape} and {b.shape}")
        if not (np.isfinite(rows).all() and np.isfinite(b).all()):
            raise ValueError("X and targets must be finite")
        return cls(rows, b, -1.0, 1.0, Ball(radius))

    @classmethod
    def comparisons(cls, u: ArrayLike, y: ArrayLike, domain: Metrics) -> Problem:
        """The hinge loss of comparisons, u of shape (T, n) and y of +1 (similar) and -1, w = {M, mu}."""
        u, y = np.asarray(u, dtype=np.float64), np.asarray(y, dtype=np.float64)
        if u.ndim != 2 or u.shape[1] != domain.n or y.shape != u.shape[:1] or not len(y):
            raise ValueError(f"u and y must be of shape (T, {domain.n}) and (T,), got {u.shape} and {y.shape}")
        if not np.isfinite(u).all():
            raise ValueError("u must be finite")
        if not np.isin(y, (-1, 1)).all():
            raise ValueError("y must be +1 (similar) or -1 (different)")
        squares = (u[:, :, None] * u[:, None, :]).reshape(len(u), -1)
        rows = y[:, None] * np.hstack([-squares, np.ones((len(u), 1))])
        return cls(rows, np.ones(len(u)), -1.0, 0.0, domain)

    def __len__(self) -> int:
        return len(self.targets)

    def __getitem__(self, part: slice) -> Problem:
        return Problem(self.rows[part], self.targets[part], self.low, self.high, self.domain)

    def errors(self, w: Array) -> Array:
        """e_t, of one parameter for all steps or of one parameter each."""
        return (self.rows @ w if w.ndim == 1 else np.einsum("td,td->t", self.rows, w)) - self.targets

    def losses(self, w: Array) -> Array:
        """f_t without g."""
        e = self.errors(w)
        return np.maximum(self.low * e, self.high * e)

    def values(self, w: Array) -> Array:
        """f_t, of one parameter for all steps or of one parameter each."""
        return self.losses(w) + self.domain.penalty(w)

    def slopes(self, e: Array, tau: Array | float) -> Array:
        """The alpha of the proximal step: e - tau * alpha minimises tau * f + (. - e)^2 / 2."""
        return np.clip(e / tau, self.low, self.high)
