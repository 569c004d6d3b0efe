"""Feature maps of points: Nystroem's features of Gaussian kernels, as many maps as there are widths.

    k(x)_l = exp(-rate |x / unit - landmark_l|^2),        phi(x) = R k(x),

R being such that phi(x)'phi(z) is the kernel wherever x or z is a landmark. Of a pair what matters is
phi(x) - phi(z).
"""

from __future__ import annotations

import math

from ...compiled import kernel, sums
from ...protocols import Array, Integers
from ...raw_array import view
from .layout import MAPPED, MAPS, N
from .scratch import COORDINATES, RESIDUAL, SECOND, Scratch


@sums
def _squared_distance(x: Array, landmark: Array, n: int) -> float:
    square = 0.0
    for e in range(n):
        square += (x[e] - landmark[e]) * (x[e] - landmark[e])
    return square


@sums
def _product(row: Array, k: Array, at: int, count: int) -> float:
    s = 0.0
    for i in range(count):
        s += row[i] * k[at + i]
    return s


@kernel
def _nearness(square: float, rate: float) -> float:
    return math.exp(-rate * square) if square < math.inf else 0.0  # points may be too far apart for numbers


@kernel
def map_pair(values: Array, at: int, maps: Array, term: int, header: Integers, scratch: Scratch) -> None:
    """Append phi(x) - phi(z) of each map to a difference; x and z are in ``values``, one after the other.

    ``maps`` holds 1 / unit of each feature, the rate of each map, the landmarks, and R of each map.
    """
    n, count, m = header[N], header[MAPS], header[MAPPED]
    inverse, rates, landmarks = view(maps, 0, (n,)), view(maps, n, (count,)), view(maps, n + count, (m, n))
    roots = view(maps, n + count + m * n, (count, m, m))
    x, z, k = scratch.vectors[RESIDUAL], scratch.vectors[SECOND], scratch.vectors[COORDINATES]
    for e in range(n):
        x[e], z[e] = values[at + e] * inverse[e], values[at + n + e] * inverse[e]
    for i in range(m):
        near, far = _squared_distance(x, landmarks[i], n), _squared_distance(z, landmarks[i], n)
        for b in range(count):
            k[b * m + i] = _nearness(near, rates[b]) - _nearness(far, rates[b])
    for b in range(count):
        for a in range(m):
            scratch.differences[term, n + b * m + a] = _product(roots[b, a], k, b * m, m)
