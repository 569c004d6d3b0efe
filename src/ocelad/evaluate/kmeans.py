"""k-means, compiled: greedy k-means++ starts, of which the best by its sum of squares counts.

Points are columns here. Starts run on a part of them first; where they end in different places, each goes on with
all points.
"""

from __future__ import annotations

import numpy as np

from ..compiled import entry, kernel, sums
from ..protocols import Array, Integers
from .knn import squares

SAME = 1e-9  # sums of squares as close as this belong to the same clusters
ITERATIONS = 300


@entry
def clusters(X: Array, some: Array, k: int, draws: Array) -> Integers:
    """The cluster of each point; ``some`` are some of them, and each start has its draws."""
    d, n = X.shape
    labels, work, centres, best = np.empty(n, dtype=np.int64), np.empty((3, n)), np.empty((k, d)), np.empty((k, d))
    starts, lowest = draws.shape[0], np.inf
    ends = np.empty(starts)
    for start in range(starts):
        _plus_plus(some, draws[start], centres, work)
        ends[start] = _lloyd(some, centres, labels, work)
        known = False
        for other in range(start):
            known = known or abs(ends[start] - ends[other]) <= SAME * ends[start]
        if not known:
            within = _lloyd(X, centres, labels, work)
            if within < lowest or start == 0:
                lowest, best, centres = within, centres, best
    _assign(X, best, labels, work)
    return labels


@kernel
def _plus_plus(X: Array, draws: Array, centres: Array, work: Array) -> None:
    """Each centre the best of a few points, drawn with chances as their squared distance from those so far."""
    n, total = X.shape[1], 0.0
    least, square, chosen = work[0, :n], work[1, :n], work[2, :n]
    least[:] = np.inf
    for c in range(centres.shape[0]):
        lowest = np.inf
        for trial in range(draws.shape[1] if c > 0 else 1):
            i = _drawn(least, draws[c, trial] * total) if total > 0.0 else int(draws[c, trial] * n)
            squares(X, X[:, i], square)
            potential = _nearer(square, least)
            if potential < lowest:
                lowest, square, chosen = potential, chosen, square
                centres[c] = X[:, i]
        least, chosen, total = chosen, least, lowest


@kernel
def _drawn(weights: Array, at: float) -> int:
    """The first up to which the sum of weights is more than that."""
    j = 0
    while j < weights.shape[0] - 1 and at >= weights[j]:
        at -= weights[j]
        j += 1
    return j


@sums
def _nearer(square: Array, least: Array) -> float:
    """The lesser of both, and its sum."""
    total = 0.0
    for j in range(square.shape[0]):
        square[j] = square[j] if square[j] < least[j] else least[j]
        total += square[j]
    return total


@kernel
def _lloyd(X: Array, centres: Array, labels: Integers, work: Array) -> float:
    """Move the centres until none moves any more; returns the sum of squared distances."""
    k, d = centres.shape
    totals = np.empty((k, d + 1))
    for _ in range(ITERATIONS):
        if k == 3 and d == 3:
            _totals_3(X, centres, totals)
        else:
            _assign(X, centres, labels, work)
            _totals(X, labels, totals)
        moved = False
        for c in range(k):
            for e in range(d if totals[c, d] > 0.0 else 0):  # a centre that nobody is nearest to stays
                mean = totals[c, e] / totals[c, d]
                moved = moved or mean != centres[c, e]
                centres[c, e] = mean
        if not moved:
            break
    return _assign(X, centres, labels, work)


@sums
def _assign(X: Array, centres: Array, labels: Integers, work: Array) -> float:
    """Each point to its nearest centre; returns the sum of squared distances."""
    n, total = X.shape[1], 0.0
    nearest, square = work[0], work[1]
    labels[:n] = 0
    squares(X, centres[0], nearest)
    for c in range(1, centres.shape[0]):
        squares(X, centres[c], square)
        for j in range(n):
            labels[j] = c if square[j] < nearest[j] else labels[j]
            nearest[j] = square[j] if square[j] < nearest[j] else nearest[j]
    for j in range(n):
        total += nearest[j]
    return total


@kernel
def _totals(X: Array, labels: Integers, totals: Array) -> None:
    """The sum of each cluster's points, and last how many there are."""
    totals[:] = 0.0
    for j in range(X.shape[1]):
        for e in range(X.shape[0]):
            totals[labels[j], e] += X[e, j]
        totals[labels[j], -1] += 1.0


@sums
def _totals_3(X: Array, centres: Array, totals: Array) -> None:
    """`_assign` and `_totals` at once, for three clusters in three dimensions, which a study mostly has."""
    (p, q, r), (s, t, u), (v, w, o) = centres[0], centres[1], centres[2]
    a = b = c = xa = xb = xc = ya = yb = yc = za = zb = zc = 0.0
    for j in range(X.shape[1]):
        x, y, z = X[0, j], X[1, j], X[2, j]
        f = (x - p) ** 2 + (y - q) ** 2 + (z - r) ** 2
        g = (x - s) ** 2 + (y - t) ** 2 + (z - u) ** 2
        h = (x - v) ** 2 + (y - w) ** 2 + (z - o) ** 2
        in_a, in_b = 1.0 if (f <= g) & (f <= h) else 0.0, 1.0 if (g < f) & (g <= h) else 0.0
        in_c = 1.0 - in_a - in_b
        a, xa, ya, za = a + in_a, xa + in_a * x, ya + in_a * y, za + in_a * z
        b, xb, yb, zb = b + in_b, xb + in_b * x, yb + in_b * y, zb + in_b * z
        c, xc, yc, zc = c + in_c, xc + in_c * x, yc + in_c * y, zc + in_c * z
    totals[:] = np.array(((xa, ya, za, a), (xb, yb, zb, b), (xc, yc, zc, c)))
