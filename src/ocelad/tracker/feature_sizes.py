"""The size of each feature: what its differences usually are, learned as they come.

    size_i = median of the first |u_i| > 0,  then  size_i^2 <- size_i^2 + (|u_i|^2 - size_i^2) / count_i.

Zeros say nothing about a size, as differences of length zero say nothing about the unit of length. The table of
sizes has a column for each feature: its size, how many differences it was learned from, and the first of them, in
order. Only ratios enter, so sizes of 1e-150 and 1e+150 behave alike.
"""

from __future__ import annotations

import math

from ..compiled import entry
from ..geometry.mahalanobis import FARTHEST, TINY
from ..protocols import Array
from .units import COUNT, FIRST_OF_FEATURE, LARGEST_SIZE, LONGEST, SIZE


@entry
def divide(u: Array, sizes: Array, out: Array) -> None:
    """out = u / size, of rows of one or more differences each, by the sizes from before the row, which then
    learns its entries. A feature whose size is not known yet counts as 0."""
    rows, parts, n = u.shape
    for row in range(rows):
        for part in range(parts):
            for i in range(n):
                size, x = sizes[SIZE, i], u[row, part, i]
                out[row, part, i] = min(max(x / size, -FARTHEST), FARTHEST) if size > 0.0 else 0.0
        for part in range(parts):
            for i in range(n):
                new = min(abs(u[row, part, i]), LARGEST_SIZE)
                if new <= TINY:
                    continue
                sizes[COUNT, i] += 1.0
                count = sizes[COUNT, i]
                if count <= FIRST_OF_FEATURE:
                    at = COUNT + int(count)
                    while at > COUNT + 1 and sizes[at - 1, i] > new:
                        sizes[at, i] = sizes[at - 1, i]
                        at -= 1
                    sizes[at, i] = new
                    sizes[SIZE, i] = sizes[COUNT + 1 + int(count) // 2, i]
                else:
                    ratio = min(new / sizes[SIZE, i], LONGEST)
                    sizes[SIZE, i] *= math.sqrt(1.0 + (ratio * ratio - 1.0) / count)
