"""Feature maps of points: Nystroem's features of Gaussian kernels, as many maps as there are widths.

    k(x)_l = exp(-rate |x / unit - landmark_l|^2),        phi(x) = R k(x),

R being such that phi(x)'phi(z) is the kernel wherever x or z is a landmark. Of a pair what matters is
phi(x) - phi(z).
"""

from __future__ import annotations

import math

from ...compiled import entry, kernel, sums
from ...protocols import Array
from ...raw_array import view
from .factored import dot


@sums
def _squared_distance(x: Array, landmark: Array, n: int) -> float:
    square = 0.0
    for e in range(n):
        square += (x[e] - landmark[e]) * (x[e] - landmark[e])
    return square


@kernel
def _nearness(square: float, rate: float) -> float:
    return math.exp(-rate * square) if square < math.inf else 0.0  # points may be too far apart for numbers


@entry
def map_pairs(rows: Array, maps: Array, joined: Array, work: Array, n: int, count: int, m: int) -> None:
    """Append phi(x) - phi(z) of each map to differences u.

    In ``rows`` each u is followed by x and z, in ``joined`` by m features of each map. ``maps`` holds 1 / unit of
    each feature, the rate of each map, the landmarks, and R of each map.
    """
    inverse, rates, landmarks = view(maps, 0, (n,)), view(maps, n, (count,)), view(maps, n + count, (m, n))
    roots, k = view(maps, n + count + m * n, (count, m, m)), view(work, 0, (count, m))
    x, z = view(work, count * m, (n,)), view(work, count * m + n, (n,))
    for i in range(rows.shape[0] // (3 * n)):
        row, out = view(rows, i * 3 * n, (3, n)), view(joined, i * (n + count * m) + n, (count, m))
        for e in range(n):
            x[e], z[e] = row[1, e] * inverse[e], row[2, e] * inverse[e]
        for a in range(m):
            near, far = _squared_distance(x, landmarks[a], n), _squared_distance(z, landmarks[a], n)
            for b in range(count):
                k[b, a] = _nearness(near, rates[b]) - _nearness(far, rates[b])
        for b in range(count):
            for a in range(m):
                out[b, a] = dot(roots[b, a], k[b], m)
