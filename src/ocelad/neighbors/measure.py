"""Squared distances of points from a query, each by sums whose order does not depend on the other points."""

from __future__ import annotations

from ..compiled import entry, sums
from ..protocols import Array, Integers


@sums
def _dot(a: Array, b: Array) -> float:
    total = 0.0
    for i in range(a.shape[0]):
        total += a[i] * b[i]
    return total


@entry
def measure(C: Array, weight: Array, X: Array, at: Integers, q: Array, u: Array, out: Array) -> None:
    """out = (x - q)' C' diag(weight) C (x - q), for the points x of these numbers; u has room for a few."""
    for first in range(0, at.shape[0], u.shape[0]):
        few = min(u.shape[0], at.shape[0] - first)
        for k in range(few):
            out[first + k] = 0.0
            for i in range(q.shape[0]):
                u[k, i] = X[at[first + k], i] - q[i]
        for j in range(C.shape[0]):
            for k in range(few):
                z = _dot(C[j], u[k])
                out[first + k] += weight[j] * z * z
