"""k-means, compiled: greedy k-means++ starts, of which the best by its sum of squares counts.

    within + between = sum |x|^2,    between = sum_c n_c |m_c|^2    for points whose mean is 0,

so that means and counts tell how good clusters are. Points are columns here, and centred. Starts run on a part of
them first; where they end in different places, each goes on with all points.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..engine.kernels.jit import apart, entry, kernel, sums
from ..protocols import Array
from .nearest import squares

Labels = NDArray[np.int64]

SAME = 1e-9  # sums of squares as close as this belong to the same clusters
ITERATIONS = 300
MANY = 32  # points that are passed over at a time


@entry
def clusters(X: Array, some: Array, k: int, draws: Array) -> Labels:
    """The cluster of each point; ``some`` are some of them, and each start has its draws."""
    d, n = X.shape
    labels, work = np.empty(n, dtype=np.int64), np.empty((3, n))
    starts, lowest = draws.shape[0], np.inf
    ends, centres, best = np.empty(starts), np.empty((k, d)), np.empty((k, d))
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


@entry
def centred(X: Array) -> Array:
    """The points with their mean at 0."""
    own, whole = np.empty(X.shape), np.empty(X.shape[0])
    _moments(X, whole)
    for e in range(X.shape[0]):
        mean = whole[e] / X.shape[1]
        for j in range(X.shape[1]):
            own[e, j] = X[e, j] - mean
    return own


@kernel
def _plus_plus(X: Array, draws: Array, centres: Array, work: Array) -> None:
    """Each centre the best of a few points, drawn with chances as their squared distance from those so far."""
    apart()
    d, n = X.shape
    least, square, chosen, total = 0, 1, 2, 0.0
    work[least] = np.inf
    for c in range(centres.shape[0]):
        lowest, pick = np.inf, 0
        for trial in range(draws.shape[1] if c > 0 else 1):
            i = _drawn(work[least, :n], draws[c, trial] * total) if total > 0.0 else int(draws[c, trial] * n)
            for e in range(d):
                centres[c, e] = X[e, i]
            squares(X, centres[c], work[square])
            potential = _nearer(work[square, :n], work[least, :n])
            if potential < lowest:
                lowest, pick = potential, i
                square, chosen = chosen, square
        least, chosen, total = chosen, least, lowest
        for e in range(d):
            centres[c, e] = X[e, pick]


@sums
def _drawn(weights: Array, at: float) -> int:
    """The first up to which the sum of weights is more than that."""
    n, j = weights.shape[0], 0
    while j + MANY < n:
        block = 0.0
        for i in range(j, j + MANY):
            block += weights[i]
        if at < block:
            break
        at -= block
        j += MANY
    while j < n - 1 and at >= weights[j]:
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
def _lloyd(X: Array, centres: Array, labels: Labels, work: Array) -> float:
    """Move the centres until none moves any more; returns the sum of squared distances."""
    apart()
    k, d = centres.shape
    totals, counts, whole, between = np.empty((k, d)), np.empty(k), np.empty(d), 0.0
    square = _moments(X, whole)
    for _ in range(ITERATIONS):
        if k == 3 and d == 3:
            _totals_3(X, whole, centres, totals, counts)
        else:
            _assign(X, centres, labels, work)
            _totals(X, labels, totals, counts)
        moved, between = False, 0.0
        for c in range(k):
            if counts[c] > 0.0:  # a centre that nobody is nearest to stays
                for e in range(d):
                    mean = totals[c, e] / counts[c]
                    moved = moved or mean != centres[c, e]
                    centres[c, e] = mean
                    between += totals[c, e] * mean
        if not moved:
            break
    return square - between


@sums
def _moments(X: Array, whole: Array) -> float:
    """The sum of all points, and of their squares."""
    square = 0.0
    for e in range(X.shape[0]):
        total = 0.0
        for j in range(X.shape[1]):
            total += X[e, j]
            square += X[e, j] * X[e, j]
        whole[e] = total
    return square


@kernel
def _assign(X: Array, centres: Array, labels: Labels, work: Array) -> None:
    """Each point to its nearest centre."""
    n = X.shape[1]
    nearest, square = work[0], work[1]
    labels[:] = 0
    squares(X, centres[0], nearest)
    for c in range(1, centres.shape[0]):
        squares(X, centres[c], square)
        for j in range(n):
            labels[j] = c if square[j] < nearest[j] else labels[j]
            nearest[j] = min(nearest[j], square[j])


@kernel
def _totals(X: Array, labels: Labels, totals: Array, counts: Array) -> None:
    """The sum of each cluster's points, and how many there are."""
    totals[:], counts[:] = 0.0, 0.0
    for j in range(X.shape[1]):
        counts[labels[j]] += 1.0
    for e in range(X.shape[0]):
        for j in range(X.shape[1]):
            totals[labels[j], e] += X[e, j]


@sums
def _totals_3(X: Array, whole: Array, centres: Array, totals: Array, counts: Array) -> None:
    """`_assign` and `_totals` at once, for three clusters in three dimensions, which a study mostly has.

    A point x is nearer to c than to a where <c - a, x> is more than at the middle of both. Who is with neither b
    nor c is with a, whose sum is what is left of all.
    """
    x, y, z = X[0], X[1], X[2]
    (a0, a1, a2), (b0, b1, b2), (c0, c1, c2) = _row(centres, 0), _row(centres, 1), _row(centres, 2)
    p0, p1, p2, q0, q1, q2 = b0 - a0, b1 - a1, b2 - a2, c0 - a0, c1 - a1, c2 - a2
    at_p = (p0 * (b0 + a0) + p1 * (b1 + a1) + p2 * (b2 + a2)) / 2.0
    at_q = (q0 * (c0 + a0) + q1 * (c1 + a1) + q2 * (c2 + a2)) / 2.0
    n = x.shape[0]
    n1 = n2 = x1 = x2 = y1 = y2 = z1 = z2 = 0.0
    for j in range(n):
        f = p0 * x[j] + p1 * y[j] + p2 * z[j] - at_p
        g = q0 * x[j] + q1 * y[j] + q2 * z[j] - at_q
        one = 1.0 if (f > 0.0) & (f >= g) else 0.0
        two = 1.0 if (g > 0.0) & (g > f) else 0.0
        n1, x1, y1, z1 = n1 + one, x1 + one * x[j], y1 + one * y[j], z1 + one * z[j]
        n2, x2, y2, z2 = n2 + two, x2 + two * x[j], y2 + two * y[j], z2 + two * z[j]
    totals[0, 0], totals[0, 1], totals[0, 2] = whole[0] - x1 - x2, whole[1] - y1 - y2, whole[2] - z1 - z2
    counts[0] = n - n1 - n2
    counts[1], totals[1, 0], totals[1, 1], totals[1, 2] = n1, x1, y1, z1
    counts[2], totals[2, 0], totals[2, 1], totals[2, 2] = n2, x2, y2, z2


@kernel
def _row(centres: Array, c: int) -> tuple[float, float, float]:
    return centres[c, 0], centres[c, 1], centres[c, 2]
