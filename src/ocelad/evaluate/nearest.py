"""The errors of k-NN classification, compiled. Points are columns, so that loops run over neighbours in memory.

Of up to five neighbours the six nearest of all points are found at once, without a branch: a point's number takes
the place of the last bits of its squared distance, which sorts as before, and the lesser of two numbers goes up in
a list of six, the greater down. Where those bits might have told two apart, the neighbours are looked up.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..learner import Array
from ..metric.kernels.jit import kernel

Labels = NDArray[np.int64]

FEW = 5
HUGE, FAR = 1e140, 1e305  # coordinates whose squares are finite, and farther than any two points of such


@kernel
def errors(X: Array, labels: Labels, classes: int, k: int) -> int:
    """How many points are not of the class of most of their k nearest; of classes with equal votes the nearest."""
    n, wrong, mask = X.shape[1], 0, 1
    while mask < n:
        mask *= 2
    mask -= 1
    quick = k <= FEW and np.abs(X).max() < HUGE
    near, square, votes, who = np.empty((FEW + 1, n)), np.empty(n), np.empty(classes), np.empty(k, dtype=np.int64)
    if quick:
        _nearest(X, mask, near, square)
    keys = near.view(np.int64)
    for i in range(n):
        told = quick
        for rank in range(min(k, FEW)):
            told = told and keys[rank, i] | mask != keys[rank + 1, i] | mask
            who[rank] = keys[rank, i] & mask
        if not told:
            _neighbours(X, i, who, square)
        for c in range(classes):
            votes[c] = 0.0
        for rank in range(k - 1, -1, -1):
            label = labels[who[rank]]
            # A vote, and less than a vote for the nearest of the class.
            votes[label] = np.floor(votes[label]) + 1.0 + (k - rank) / (k + 1.0)
        wrong += np.argmax(votes) != labels[i]
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
    for j in range(n):
        squares(X, X[:, j], square)
        square[j] = FAR
        for i in range(n):
            keys[i] = (keys[i] & ~mask) | j
        for i in range(n):
            a, b, c, d, e, f, x = A[i], B[i], C[i], D[i], E[i], F[i], square[i]
            a, x = (a, x) if a < x else (x, a)
            b, x = (b, x) if b < x else (x, b)
            c, x = (c, x) if c < x else (x, c)
            d, x = (d, x) if d < x else (x, d)
            e, x = (e, x) if e < x else (x, e)
            A[i], B[i], C[i], D[i], E[i], F[i] = a, b, c, d, e, f if f < x else x


@kernel
def squares(X: Array, x: Array, out: Array) -> None:
    """Squared distances of all points from one."""
    n = X.shape[1]
    for j in range(n):
        out[j] = (X[0, j] - x[0]) ** 2
    for e in range(1, X.shape[0]):
        for j in range(n):
            out[j] += (X[e, j] - x[e]) ** 2
