"""Points in coordinates of one metric, searched exactly.

    z = (x - centre) L',    M = L'L;       lower(x, q) = |z|^2 - 2 z'q + |q|^2 - slack(x) - slack(q) <= d^2(x, q).

One product gives a lower bound of every squared distance. Only points whose bound is among the k best are
measured, d^2 = |L (x - q)|^2 with the difference first. So the answer, ties included, is to the bit the one that
measuring every point would give.
"""

from __future__ import annotations

import numpy as np

from ..geometry.quadratic import EPS
from ..protocols import Array
from .measure import NONE, Nearest, nearer

ENTRIES = 1 << 20
"""As many queries are answered at once as keep the bounds below this many, but at least one."""
IN_CACHE = 1 << 16
"""This many entries are projected at a time."""


class Projection:
    """The coordinates of points X under L'L."""

    def __init__(self, L: Array, X: Array) -> None:
        self.L = L
        self.centre = X[:: len(X) // 1000 + 1].mean(axis=0)  # near the points is good enough: it saves digits
        self.rows = np.ones((len(X), len(L) + 2))  # (z, |z|^2 - slack, 1)
        self.slack = np.empty(len(X))
        self.sample = np.arange(0, len(X), len(X) // 4096 + 1)
        step = max(1, IN_CACHE // X.shape[1])
        for start in range(0, len(X), step):
            part = slice(start, start + step)
            z, squares, self.slack[part] = self._coordinates(X[part])
            self.rows[part, :-2], self.rows[part, -2] = z, squares - self.slack[part]

    def __len__(self) -> int:
        return len(self.rows)

    def _coordinates(self, X: Array) -> tuple[Array, Array, Array]:
        """z, |z|^2, and half of what rounding can do to a squared distance.

        With W = sum_i |L_i| |x_i - centre_i| >= |z|, where L_i are the columns of L, rounding in z, in the product
        and in what is measured comes to less than 4 (n + r + 8) eps (W_x + W_q)^2 <= 8 (n + r + 8) eps (W_x^2 +
        W_q^2).
        """
        centred = X - self.centre
        z = centred @ self.L.T
        bound = np.square(np.abs(centred) @ np.sqrt(np.square(self.L).sum(axis=0)))
        return z, np.einsum("ij,ij->i", z, z), 8.0 * (sum(self.L.shape) + 8) * EPS * bound

    def nearest(self, X: Array, queries: Array, k: int) -> list[Nearest]:
        """For each query the k nearest of the points that were projected, the first of X."""
        found, step = [], max(1, ENTRIES // len(self))
        for start in range(0, len(queries), step):
            part = queries[start : start + step]
            z, squares, slack = self._coordinates(part)
            bounds = np.column_stack([-2.0 * z, np.ones(len(z)), squares - slack]) @ self.rows.T
            for q, lower, own in zip(part, bounds, slack, strict=True):
                at = self.sample
                for _ in range(2):  # a limit from the sample, then from the points below it
                    upper = lower[at] + 2.0 * (self.slack[at] + own)
                    limit = np.partition(upper, k - 1)[k - 1] if k <= len(at) else np.inf
                    at = np.flatnonzero(lower <= limit)
                found.append(nearer(NONE, self.L, X, at, q, k)[0])
        return found
