"""The errors of k-NN classification, compiled. Points are columns, so that loops run along memory."""

from __future__ import annotations

import numpy as np

from ..compiled import entry, kernel
from ..protocols import Array, Integers


@entry
def errors(X: Array, labels: Integers, classes: int, k: int) -> int:
    """How many points are not of the class of most of their k nearest; of classes with equal votes the nearest."""
    n, wrong = X.shape[1], 0
    square, votes, who = np.empty(n), np.zeros(classes, dtype=np.int64), np.empty(k, dtype=np.int64)
    for i in range(n):
        squares(X, X[:, i], square)
        _nearest(square, i, who)
        for rank in range(k):
            votes[labels[who[rank]]] += 1
        most = labels[who[0]]
        for rank in range(1, k):
            most = labels[who[rank]] if votes[labels[who[rank]]] > votes[most] else most
        for rank in range(k):
            votes[labels[who[rank]]] = 0
        wrong += most != labels[i]
    return wrong


@kernel
def _nearest(square: Array, i: int, who: Integers) -> None:
    """The points with the least squares, in order, without i; of equals the first."""
    k, found = who.shape[0], 0
    for j in range(square.shape[0]):
        if j != i and (found < k or square[j] < square[who[k - 1]]):
            found = min(found + 1, k)
            at = found - 1
            while at > 0 and square[j] < square[who[at - 1]]:
                who[at] = who[at - 1]
                at -= 1
            who[at] = j


@kernel
def squares(X: Array, x: Array, out: Array) -> None:
    """Squared distances of all points from one."""
    d, n = X.shape
    if d == 3:  # as in the study: all at once takes half the time
        a, b, c = x[0], x[1], x[2]
        for j in range(n):
            out[j] = (X[0, j] - a) ** 2 + (X[1, j] - b) ** 2 + (X[2, j] - c) ** 2
        return
    out[:n] = 0.0
    for e in range(d):
        a = x[e]
        for j in range(n):
            out[j] += (X[e, j] - a) ** 2
