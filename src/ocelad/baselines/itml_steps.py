"""Many steps of online ITML in one call: `OnlineItml.update` on plain arrays, compiled."""

from __future__ import annotations

import math

import numpy as np

from ..engine.kernels.jit import entry, kernel, sums
from ..protocols import Array
from .online_itml import new_distance as readable

new_distance = kernel(readable)


@kernel
def replace(ordered: Array, count: int, old: float, new: float) -> None:
    """In a list of which the smallest comes first; infinity stands for nothing."""
    i = np.searchsorted(ordered[:count], old)
    while i + 1 < count and ordered[i + 1] < new:
        ordered[i] = ordered[i + 1]
        i += 1
    while i > 0 and ordered[i - 1] > new:
        ordered[i] = ordered[i - 1]
        i -= 1
    ordered[i] = new


@sums
def project(G: Array, u: Array, v: Array) -> float:
    """v = G'u, and its square."""
    v[:] = 0.0
    for i in range(len(u)):
        for j in range(len(u)):
            v[j] += G[i, j] * u[i]
    square = 0.0
    for j in range(len(u)):
        square += v[j] * v[j]
    return square


@sums
def turn(G: Array, v: Array, c: float) -> None:
    """G <- G (I - c v v')."""
    for i in range(len(v)):
        w = 0.0
        for j in range(len(v)):
            w += G[i, j] * v[j]
        for j in range(len(v)):
            G[i, j] -= c * w * v[j]


@entry
def learn(
    u: Array, y: Array, seen: Array, known: int, ordered: Array, G: Array, rate: float, low: float, high: float
) -> None:
    """Differences, none of them zero; their squares come in ``seen`` after the known ones, which are ordered."""
    v, memory = np.empty(u.shape[1]), len(ordered)
    for k in range(len(y)):
        i = known + k
        count = min(i + 1, memory)
        replace(ordered, count, seen[i - memory] if i >= memory else np.inf, seen[i])
        near, far = ordered[int(low * (count - 1))], ordered[int(high * (count - 1))]
        d, b = project(G, u[k], v), near if y[k] > 0 else far
        if y[k] * (d - b) > 0.0:
            turn(G, v, (1.0 - math.sqrt(new_distance(d, b, rate) / d)) / d)
