"""The errors of k-NN classification, compiled. Points are columns, so that loops run over neighbours in memory.

For up to five neighbours, the six nearest are found, of eight points at a time. In the order of the first
coordinate they meet those next to them, the ones after, and so on, until none can be nearer than those met. It
goes without a branch: a point's number takes the place of the last bits of its squared distance, and of two such
keys the lesser goes up in a list of six, the greater down. Where those bits might have told two apart, the
neighbours are looked up one by one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..engine.kernels.eight import any_less, eight, load, numbered, store
from ..engine.kernels.jit import entry, kernel
from ..protocols import Array

Labels = NDArray[np.int64]

FEW = 5
HUGE, FAR = 1e140, 1e150  # below the one, squares of differences are less than one from the other; and finite


@entry
def errors(X: Array, order: Labels, labels: Labels, classes: int, k: int) -> int:
    """How many points are not of the class of most of their k nearest; of classes with equal votes the nearest.

    ``order`` sorts the points by their first coordinate.
    """
    (d, n), wrong, mask = X.shape, 0, 1
    while mask < n:
        mask *= 2
    mask -= 1
    margin = n + 8
    near, ordered, square = np.full((FEW + 1, margin), np.inf), np.full((d, n + 2 * margin), FAR), np.empty(n)
    quick = k <= FEW
    for e in range(d):
        for at in range(n):
            ordered[e, margin + at] = X[e, order[at]]
            quick = quick and abs(X[e, at]) < HUGE
    if quick:
        near[FEW, n:] = -np.inf  # nobody is so near to those who do not exist
        _nearest(ordered, n, mask, near)
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
def _nearest(X: Array, n: int, mask: int, near: Array) -> None:
    """The six least squared distances of each point, in order, their last bits the number of the other point.

    Points come in order of their first coordinate, after, and before, some that are far from all.
    """
    margin = (X.shape[1] - n) // 2
    for i in range(0, n, 8):
        a = b = c = d = e = eight(np.inf)
        f, x = load(near, (FEW, i)), load(X, (0, margin + i))
        for apart in range(1, n):
            left, right = i - apart, i + apart
            if apart % 4 == 0:  # none of those to come can be nearer than the sixth
                ahead, behind = load(X, (0, margin + right)) - x, load(X, (0, margin + left)) - x
                if not any_less(min(ahead * ahead, behind * behind), f):
                    break
            for other in (left, right):
                gap = load(X, (0, margin + other)) - x
                square = gap * gap
                for axis in range(1, X.shape[0]):
                    gap = load(X, (axis, margin + other)) - load(X, (axis, margin + i))
                    square = square + gap * gap
                key = numbered(square, mask, other)
                a, key = min(a, key), max(a, key)
                b, key = min(b, key), max(b, key)
                c, key = min(c, key), max(c, key)
                d, key = min(d, key), max(d, key)
                e, key = min(e, key), max(e, key)
                f = min(f, key)
        store(near, (0, i), a)
        store(near, (1, i), b)
        store(near, (2, i), c)
        store(near, (3, i), d)
        store(near, (4, i), e)
        store(near, (5, i), f)


@kernel
def squares(X: Array, x: Array, out: Array) -> None:
    """Squared distances of all points from one."""
    n = X.shape[1]
    for j in range(n):
        out[j] = (X[0, j] - x[0]) ** 2
    for e in range(1, X.shape[0]):
        for j in range(n):
            out[j] += (X[e, j] - x[e]) ** 2
