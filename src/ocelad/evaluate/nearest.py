"""The errors of k-NN classification, compiled. Points are columns, so that loops run over neighbours in memory.

For up to five neighbours, the six nearest of all points are found at once. In the order of the first coordinate
each point meets the one next to it, the one after, and so on, until none can be nearer than those it has met. It
goes without a branch: a point's number takes the place of the last bits of its squared distance, and of two such
keys the lesser goes up in a list of six, the greater down. Where those bits might have told two apart, the
neighbours are looked up one by one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..learner import Array
from ..metric.kernels.jit import kernel

Labels = NDArray[np.int64]

FEW = 5
HUGE = 1e140  # coordinates below it have squares, and sums of squares, that are finite


@kernel
def errors(X: Array, order: Labels, labels: Labels, classes: int, k: int) -> int:
    """How many points are not of the class of most of their k nearest; of classes with equal votes the nearest.

    ``order`` sorts the points by their first coordinate.
    """
    (d, n), wrong, mask = X.shape, 0, 1
    while mask < n:
        mask *= 2
    mask -= 1
    near, ordered, square = np.empty((FEW + 1, n)), np.empty((d, n)), np.empty(n)
    quick = k <= FEW
    for e in range(d):
        for at in range(n):
            ordered[e, at] = X[e, order[at]]
            quick = quick and abs(ordered[e, at]) < HUGE
    if quick:
        _nearest(ordered, mask, near, square)
    keys, votes, who = near.view(np.int64), np.empty(classes, dtype=np.int64), np.empty(k, dtype=np.int64)
    for c in range(classes):
        votes[c] = 0
    for at in range(n):
        told = quick
        for rank in range(min(k, FEW)):
            told = told and keys[rank, at] | mask != keys[rank + 1, at] | mask
            who[rank] = order[keys[rank, at] & mask] if told else 0
        if not told:
            _neighbours(X, order[at], who, square)
        for rank in range(k):
            votes[labels[who[rank]]] += 1
        most = labels[who[0]]
        for rank in range(1, k):
            most = labels[who[rank]] if votes[labels[who[rank]]] > votes[most] else most
        for rank in range(k):
            votes[labels[who[rank]]] = 0
        wrong += most != labels[order[at]]
    return wrong


@kernel
def _neighbours(X: Array, i: int, who: Labels, square: Array) -> None:
    """The nearest of one point, in order; of those equally near the first."""
    k, near, found = who.shape[0], np.empty(who.shape[0]), 0
    squares(X, X[:, i], square)
    for j in range(X.shape[1]):
        if j != i and (found < k or square[j] < near[k - 1]):
            found = min(found + 1, k)
            at = found - 1
            while at > 0 and square[j] < near[at - 1]:
                near[at], who[at] = near[at - 1], who[at - 1]
                at -= 1
            near[at], who[at] = square[j], j


@kernel
def _nearest(X: Array, mask: int, near: Array, square: Array) -> None:
    """The six least squared distances of each point, in order, their last bits the number of the other point."""
    n, keys = X.shape[1], square.view(np.int64)
    A, B, C, D, E, F = near[0], near[1], near[2], near[3], near[4], near[5]
    for i in range(n):
        A[i] = B[i] = C[i] = D[i] = E[i] = F[i] = np.inf
    for apart in range(1, n):
        if apart % 4 == 0 and not _may_come(X, F, apart):
            break
        for i in range(n - apart):
            square[i] = (X[0, i] - X[0, i + apart]) ** 2
        for e in range(1, X.shape[0]):
            for i in range(n - apart):
                square[i] += (X[e, i] - X[e, i + apart]) ** 2
        for own, other in ((0, apart), (apart, 0)):
            for i in range(n - apart):
                keys[i] = (keys[i] & ~mask) | (i + other)
            for i in range(n - apart):
                at, x = i + own, square[i]
                a, b, c, d, e_, f = A[at], B[at], C[at], D[at], E[at], F[at]
                a, x = (a, x) if a < x else (x, a)
                b, x = (b, x) if b < x else (x, b)
                c, x = (c, x) if c < x else (x, c)
                d, x = (d, x) if d < x else (x, d)
                e_, x = (e_, x) if e_ < x else (x, e_)
                A[at], B[at], C[at], D[at], E[at], F[at] = a, b, c, d, e_, f if f < x else x


@kernel
def _may_come(X: Array, F: Array, apart: int) -> bool:
    """Whether points so far apart in order may be nearer to each other than the sixth of either."""
    many = 0
    for i in range(X.shape[1] - apart):
        square = (X[0, i] - X[0, i + apart]) ** 2
        many += (square < F[i]) | (square < F[i + apart])
    return many > 0


@kernel
def squares(X: Array, x: Array, out: Array) -> None:
    """Squared distances of all points from one."""
    n = X.shape[1]
    for j in range(n):
        out[j] = (X[0, j] - x[0]) ** 2
    for e in range(1, X.shape[0]):
        for j in range(n):
            out[j] += (X[e, j] - x[e]) ** 2
