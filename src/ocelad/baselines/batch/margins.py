"""The pushing half of LMNN's loss and its gradient, compiled: one pass over the impostors.

With d for squared distances under L, the gradient in M = L'L is a sum of w (x - z)(x - z)' over pairs of points,
which is X'Y with y the sum of w (x - z) over the pairs of x: no pair has a matrix of its own.
"""

from __future__ import annotations

import numpy as np

from ...compiled import entry, sums
from ...protocols import Array, Integers


@entry
def pushing(X: Array, Z: Array, targets: Integers, impostors: Integers, rounding: float, Y: Array) -> float:
    """The sum of hinges over these impostors, in ascending order; its gradient's y are added to Y."""
    n, k, many, at, total = len(X), targets.shape[1], len(impostors), 0, 0.0
    reach, pulled = np.empty(k), np.empty(k)
    for i in range(n):
        if at == many or impostors[at] >= (i + 1) * n:
            continue
        for r in range(k):
            reach[r] = 1.0 + _square(Z, i, targets[i, r]) if targets[i, r] >= 0 else -np.inf
            pulled[r] = 0.0
        while at < many and impostors[at] < (i + 1) * n:
            other = impostors[at] - i * n
            square, pushed = _square(Z, i, other), 0.0
            for r in range(k):
                late = reach[r] - square
                if late > 0.0:
                    slope = min(late / rounding, 1.0)
                    total += slope * (late - slope * rounding / 2.0)
                    pushed += slope
                    pulled[r] += slope
            if pushed > 0.0:
                _add(X, i, other, -pushed, Y)
            at += 1
        for r in range(k):
            if pulled[r] > 0.0:
                _add(X, i, targets[i, r], pulled[r], Y)
    return total


@sums
def _square(Z: Array, i: int, j: int) -> float:
    total = 0.0
    for e in range(Z.shape[1]):
        total += (Z[i, e] - Z[j, e]) ** 2
    return total


@sums
def _add(X: Array, i: int, j: int, weight: float, Y: Array) -> None:
    for e in range(X.shape[1]):
        step = weight * (X[i, e] - X[j, e])
        Y[i, e] += step
        Y[j, e] -= step
