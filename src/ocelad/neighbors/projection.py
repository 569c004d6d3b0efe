"""Points in coordinates of one metric, searched exactly under that metric and under later ones.

    z = (x - centre) L',    M = L'L;       |z_x - z_q|^2 - slack - drift |x - q|^2 <= d^2(x, q),    drift = |M_now
    - M|.

One product gives a lower bound of every squared distance. Only points whose bound is among the k best are
measured, d^2 = |L (x - q)|^2 with the difference first, in sums whose order does not depend on how many are
measured at once. So the answer, ties included, is to the bit the one that measuring every point would give. A
metric moves little from one comparison to the next: then an old projection still tells most points apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..geometry.quadratic import principal
from ..protocols import Array, Integers
from .measure import measure

BLOCK = 1 << 14
"""So many points are bounded at a time,"""
ENTRIES = 1 << 20
"""for so many queries at once that no temporary array has more entries than this, or than a row of it needs."""
IN_CACHE = 1 << 16
"""So many entries are projected at a time."""
EPS = float(np.finfo(np.float64).eps)


PATIENCE = 1
"""To measure a point costs as much as to project it: points are projected again when, since the metric has moved,
so many times as many have been measured."""


@dataclass(frozen=True, eq=False)
class Form:
    """A metric by its matrix, and by M = C' diag(w) C."""

    M: Array
    C: Array
    w: Array

    @cached_property
    def L(self) -> Array:
        """M = L'L, the most important direction first."""
        return principal(self.C * np.sqrt(np.maximum(self.w, 0.0))[:, None])

    def measured(self, X: Array, at: Integers, q: Array) -> Array:
        """d^2(x, q) of the points of these numbers."""
        out = np.empty(len(at))
        measure(self.C, self.w, X, at, q, np.empty((8, len(q))), out)
        return np.maximum(out, 0.0)


class Stale(Exception):
    """The metric has moved too far from that of the projection."""


class Projection:
    """The coordinates of the stored points under M."""

    def __init__(self, form: Form, X: Array) -> None:
        self.M, self.L, self.terms = form.M, form.L, sum(form.C.shape)
        with np.errstate(over="ignore"):
            self.centre = X[:: len(X) // 1000 + 1].mean(axis=0)  # near the points is good enough: it saves digits
        self.rows = np.zeros((0, len(self.L) + 2))  # (z, |z|^2 - slack, 1), with room to grow into
        self.slack = np.zeros(0)
        self.lengths = np.zeros(0)  # |x - centre|^2
        self.count = self.spent = 0

    def extend(self, X: Array) -> None:
        """Project those of all points X that are new."""
        if len(X) > len(self.rows):
            room = max(len(X), 2 * self.count)
            rows, slack, lengths = np.empty((room, self.rows.shape[1])), np.empty(room), np.empty(room)
            rows[: self.count], slack[: self.count] = self.rows[: self.count], self.slack[: self.count]
            lengths[: self.count] = self.lengths[: self.count]
            self.rows, self.slack, self.lengths = rows, slack, lengths
        step = max(1, IN_CACHE // X.shape[1])
        for start in range(self.count, len(X), step):
            part = slice(start, min(start + step, len(X)))
            z, squares, slack, lengths = self._coordinates(X[part], "stored points")
            self.rows[part, :-2], self.rows[part, -2], self.rows[part, -1] = z, squares - slack, 1.0
            self.slack[part], self.lengths[part] = slack, lengths
        self.count = len(X)

    def keep(self, mask: NDArray[np.bool_]) -> None:
        """Forget the other points."""
        self.rows, self.slack = self.rows[: self.count][mask], self.slack[: self.count][mask]
        self.lengths = self.lengths[: self.count][mask]
        self.count = len(self.rows)

    def _coordinates(self, X: Array, what: str) -> tuple[Array, Array, Array, Array]:
        """z, |z|^2, half of what rounding can do to a squared distance, and |x - centre|^2.

        With W = |L| |x - centre| >= |z|, rounding in z, in the product and in what is measured comes to less than
        4 (n + r + 8) eps (W_x + W_q)^2, and (W_x + W_q)^2 <= 2 W_x^2 + 2 W_q^2.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            centred = X - self.centre
            z = centred @ self.L.T
            lengths = np.einsum("ij,ij->i", centred, centred)
            bound = np.sum(self.L**2) * lengths
        if not np.isfinite(bound).all():
            raise OverflowError(f"the {what} are too far apart for their squared distances to be numbers")
        return z, np.einsum("ij,ij->i", z, z), 8.0 * (self.terms + 8) * EPS * bound, lengths

    def nearest(self, form: Form, X: Array, queries: Array, k: int) -> list[tuple[Array, Integers]]:
        """For each query the squared distances under a metric, and the positions, of its k nearest among X.

        Raises `Stale` if under metrics that are not that of the projection too many points have been measured.
        """
        drift = 0.0 if form.M is self.M else float(np.linalg.norm(form.M - self.M))
        rows, found = max(1, ENTRIES // min(BLOCK, max(1, len(X)))), []
        for start in range(0, len(queries), rows):
            found += self._nearest(form, X, queries[start : start + rows], k, drift)
        return found

    def _nearest(self, form: Form, X: Array, queries: Array, k: int, drift: float) -> list[tuple[Array, Integers]]:
        z, squares, slack, lengths = self._coordinates(queries, "queries and the stored points")
        moved = 2.0 * drift * lengths  # drift |x - q|^2 <= 2 drift (|x - centre|^2 + |q - centre|^2)
        sides = np.column_stack([-2.0 * z, np.ones(len(z)), squares - slack - moved])
        best = [(np.zeros(0), np.zeros(0, dtype=np.int64)) for _ in queries]
        for start in range(0, len(X), BLOCK):
            block = slice(start, min(start + BLOCK, self.count))
            own = 2.0 * drift * self.lengths[block]
            lower = sides @ self.rows[block].T - own
            limit = np.array([square[-1] if len(square) == k else np.inf for square, _ in best])
            hopeful = lower < limit[:, None]  # a tie with an earlier point is lost
            for row in np.flatnonzero(hopeful.any(axis=1)):
                at = np.flatnonzero(hopeful[row])
                if len(at) > k:
                    upper = lower[row, at] + 2.0 * (self.slack[start + at] + own[at] + slack[row] + moved[row])
                    at = at[lower[row, at] <= np.partition(upper, k - 1)[k - 1]]
                if drift > 0.0:
                    self.spent += len(at)
                    if self.spent > PATIENCE * len(X):
                        raise Stale
                at += start
                square = np.concatenate([best[row][0], form.measured(X, at, queries[row])])
                order = np.argsort(square, kind="stable")[:k]  # stable: ties as the points came
                best[row] = square[order], np.concatenate([best[row][1], at])[order]
        return best
