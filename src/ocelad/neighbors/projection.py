"""Points in coordinates of one metric, searched exactly.

    z = (x - centre) L',    M = L'L;       lower(x, q) = |z|^2 - 2 z'q + |q|^2 - slack(x) - slack(q) <= d^2(x, q).

One product gives a lower bound of every squared distance. Only points whose bound is among the k best are
measured, d^2 = |L (x - q)|^2 with the difference first, in sums whose order does not depend on how many are
measured at once. So the answer, ties included, is to the bit the one that measuring every point would give.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ..protocols import Array, Integers

BLOCK = 1 << 14
"""So many points are bounded at a time,"""
ENTRIES = 1 << 20
"""for so many queries at once that no temporary array has more entries than this, or than a row of it needs."""
IN_CACHE = 1 << 16
"""So many entries are projected at a time."""
EPS = float(np.finfo(np.float64).eps)


def factor(M: Array) -> Array:
    """L, the most important direction first, without those whose eigenvalue is rounding."""
    unit = float(np.abs(M).max()) or 1.0
    s, V = np.linalg.eigh(M / unit)
    kept = np.flatnonzero(s > len(s) * EPS * s[-1])[::-1] if s[-1] > 0 else np.zeros(0, dtype=np.int64)
    return np.ascontiguousarray((V[:, kept] * (np.sqrt(s[kept]) * np.sqrt(unit))).T)


def measured(L: Array, X: Array, q: Array) -> Array:
    """|L (x - q)|^2 for every x."""
    out = np.empty(len(X))
    rows = max(1, ENTRIES // max(1, L.size))
    for start in range(0, len(X), rows):
        u = X[start : start + rows] - q
        v = (u[:, None, :] * L).sum(axis=2)  # a sum along the last axis: the same for one row as for many
        out[start : start + rows] = (v * v).sum(axis=1)
    return out


class Projection:
    """The coordinates of the stored points under M."""

    def __init__(self, M: Array, X: Array) -> None:
        self.M, self.L = M, factor(M)
        with np.errstate(over="ignore"):
            self.centre = X[:: len(X) // 1000 + 1].mean(axis=0)  # near the points is good enough: it saves digits
        self.rows = np.zeros((0, len(self.L) + 2))  # (z, |z|^2 - slack, 1), with room to grow into
        self.slack = np.zeros(0)
        self.count = 0

    def extend(self, X: Array) -> None:
        """Project those of all points X that are new."""
        if len(X) > len(self.rows):
            room = max(len(X), 2 * self.count)
            rows, slack = np.empty((room, self.rows.shape[1])), np.empty(room)
            rows[: self.count], slack[: self.count] = self.rows[: self.count], self.slack[: self.count]
            self.rows, self.slack = rows, slack
        step = max(1, IN_CACHE // X.shape[1])
        for start in range(self.count, len(X), step):
            part = slice(start, min(start + step, len(X)))
            z, squares, slack = self._coordinates(X[part], "stored points")
            self.rows[part, :-2], self.rows[part, -2], self.rows[part, -1] = z, squares - slack, 1.0
            self.slack[part] = slack
        self.count = len(X)

    def keep(self, mask: NDArray[np.bool_]) -> None:
        """Forget the other points."""
        self.rows, self.slack = self.rows[: self.count][mask], self.slack[: self.count][mask]
        self.count = len(self.rows)

    def _coordinates(self, X: Array, what: str) -> tuple[Array, Array, Array]:
        """z, |z|^2, and half of what rounding can do to a squared distance.

        With W = |L| |x - centre| >= |z|, rounding in z, in the product and in what is measured comes to less than
        4 (n + r + 8) eps (W_x + W_q)^2, and (W_x + W_q)^2 <= 2 W_x^2 + 2 W_q^2.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            centred = X - self.centre
            z = centred @ self.L.T
            bound = np.sum(self.L**2) * np.einsum("ij,ij->i", centred, centred)
        if not np.isfinite(bound).all():
            raise OverflowError(f"the {what} are too far apart for their squared distances to be numbers")
        return z, np.einsum("ij,ij->i", z, z), 8.0 * (sum(self.L.shape) + 8) * EPS * bound

    def nearest(self, X: Array, queries: Array, k: int) -> Iterator[tuple[Array, Integers]]:
        """For each query the squared distances and the positions of its k nearest among the stored points X."""
        rows = max(1, ENTRIES // min(BLOCK, max(1, len(X))))
        for start in range(0, len(queries), rows):
            yield from self._nearest(X, queries[start : start + rows], k)

    def _nearest(self, X: Array, queries: Array, k: int) -> list[tuple[Array, Integers]]:
        z, squares, slack = self._coordinates(queries, "queries and the stored points")
        sides = np.column_stack([-2.0 * z, np.ones(len(z)), squares - slack])
        best = [(np.zeros(0), np.zeros(0, dtype=np.int64)) for _ in queries]
        for start in range(0, len(X), BLOCK):
            lower = sides @ self.rows[start : min(start + BLOCK, self.count)].T
            limit = np.array([square[-1] if len(square) == k else np.inf for square, _ in best])
            hopeful = lower < limit[:, None]  # a tie with an earlier point is lost
            for row in np.flatnonzero(hopeful.any(axis=1)):
                at = np.flatnonzero(hopeful[row])
                if len(at) > k:
                    upper = lower[row, at] + 2.0 * (self.slack[start + at] + slack[row])
                    at = at[lower[row, at] <= np.partition(upper, k - 1)[k - 1]]
                at += start
                square = np.concatenate([best[row][0], measured(self.L, X[at], queries[row])])
                order = np.argsort(square, kind="stable")[:k]  # stable: ties as the points came
                best[row] = square[order], np.concatenate([best[row][1], at])[order]
        return best
