"""Squared distances of points from a query, each by sums whose order does not depend on the other points.

    d^2(x, q) = sum_j (L_j (x - q))^2,      the longest rows L_j first.

A sum of squares only grows: as soon as it is above the distance of the k-th nearest point so far, the rest of it
does not matter. In a learned metric a few rows make up most of a distance, and most points are far away.
"""

from __future__ import annotations

import math

import numpy as np

from ..compiled import entry, sums
from ..protocols import Array, Integers

Nearest = tuple[Array, Integers]
"""Squared distances and positions of the nearest points so far, nearest first."""
NONE: Nearest = np.zeros(0), np.zeros(0, dtype=np.int64)

FIRST = 32
"""This many points are measured in full before there is a limit."""
TILE = 8
"""This many points share a row of L while it is in the cache."""


@sums
def _dot(a: Array, b: Array) -> float:
    total = 0.0
    for i in range(a.shape[0]):
        total += a[i] * b[i]
    return total


@entry
def measure(L: Array, X: Array, at: Integers, q: Array, limit: float, out: Array) -> int:
    """out = |L (x - q)|^2 of the points at these positions, or less than that but more than ``limit``.

    Returns how many products of a row and a difference that took.
    """
    u, products = np.empty((TILE, q.shape[0])), 0
    for first in range(0, at.shape[0], TILE):
        count = min(TILE, at.shape[0] - first)
        for k in range(count):
            out[first + k] = 0.0
            for i in range(q.shape[0]):
                u[k, i] = X[at[first + k], i] - q[i]
        for j in range(L.shape[0]):
            for k in range(count):
                if out[first + k] <= limit:
                    out[first + k] += _dot(L[j], u[k]) ** 2
                    products += 1
    return products


def nearer(best: Nearest, L: Array, X: Array, at: Integers, q: Array, k: int) -> tuple[Nearest, int]:
    """The k nearest of the best so far and of points that came later, and how many products that took."""
    products, start, size = 0, 0, FIRST
    while start < len(at):  # in parts that grow, so that most points have a limit
        part = at[start : start + size]
        limit = float(best[0][-1]) if len(best[0]) == k else math.inf
        squares = np.empty(len(part))
        products += measure(L, X, part, q, limit, squares)
        near = squares < limit  # a tie with an earlier point is lost
        squares, found = np.concatenate([best[0], squares[near]]), np.concatenate([best[1], part[near]])
        order = np.argsort(np.sqrt(squares), kind="stable")[:k]  # stable: ties of distances as the points came
        best = squares[order], found[order]
        start, size = start + size, 2 * size
    return best, products
