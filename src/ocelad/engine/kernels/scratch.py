"""Scratch: the working memory of one comparison, laid out in buffers that belong to the thread."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...compiled import kernel
from ...protocols import Array, Integers
from ...raw_array import view
from .layout import CAPACITY, FIXED, HEIGHT, MAPPED, MAPS, RANK, SLOTS, N

Mode = bool | None
"""Whether there are dictionaries: True, or None, and then the compiler leaves out all that is for them."""

# rows of ``vectors``
RESIDUAL, COORDINATES, SECOND, POLE, WEIGHT, SQUARE, NEAREST, OFFSET, ZHAT, NORM, RECENTLY, VECTORS = range(12)

# rows of ``index``
SORTED, TERM, ROOT, INDICES = range(4)

# Roots of the secular equation are found in groups, with as many numbers for each as there are rows. 72 and not
# 64, for rows of lanes a multiple of 4096 bytes apart take each other's place in a cache.
LANES, LANE_ROWS = 72, 10


class Scratch(NamedTuple):
    """Of a pair only the first difference counts; of an order the second is the far one."""

    differences: Array  # difference, feature, given ones and then those of each map
    Z: Array  # difference, level, column: what each learner's columns say of it
    squares: Array  # difference, level: squared distances
    lengths: Array  # of the differences, squared
    slopes: Array  # by level, as the next two
    steps: Array
    level_losses: Array
    p: Array  # by expert, as the next two
    thresholds: Array
    margins: Array  # difference, expert: squared distances in log odds
    vectors: Array
    lane: Array
    V: Array
    copies: Array
    counts: Integers  # number of features that the differences have
    nonzero: Integers  # and which
    indices: Integers
    arange: Integers  # 0, 1, 2, ...
    z: Array  # a projection by a replayed expert
    G: Array  # row, feature: its gradient


def sizes(
    n: int,
    slots: int,
    capacity: int,
    height: int,
    _replayed: int,
    _memory: int,
    fixed: int,
    maps: int,
    mapped: int,
    _per_map: int,
) -> tuple[int, ...]:
    """The lengths that the four buffers need."""
    long, wide = max(n + maps * mapped, capacity, height, slots + fixed) + 8, (capacity + 7) // 8 * 8
    floats = LANES * LANE_ROWS + capacity * wide + (16 + VECTORS) * long + 2 * slots * (capacity + 8)
    return floats, (2 + INDICES) * long + 2, long, RANK * (max(n, mapped) + 1)


def lay_out(work: Any, index: Any, arange: Any, single: Any, header: Any) -> Scratch:
    """The arrays of scratch for a stack of this size."""
    n, slots, capacity, height = header[N], header[SLOTS], header[CAPACITY], header[HEIGHT]
    width = n + header[MAPS] * header[MAPPED]
    long, wide = max(width, capacity, height, slots + header[FIXED]) + 8, (capacity + 7) // 8 * 8
    at = LANES * LANE_ROWS + capacity * wide
    lane, V = view(work, 0, (LANES * LANE_ROWS,)), view(work, LANES * LANE_ROWS, (capacity, wide))
    u, squares = view(work, at, (2, long)), view(work, at + 2 * long, (2, long))
    copies, rest = view(work, at + 4 * long, (4, long)), view(work, at + 8 * long, (6, long))
    margins, vectors = view(work, at + 14 * long, (2, long)), view(work, at + 16 * long, (VECTORS, long))
    Z = view(work, at + (16 + VECTORS) * long, (2, slots, capacity + 8))
    nonzero, indices = view(index, 0, (2, long)), view(index, 2 * long, (INDICES, long))
    counts, arange = view(index, (2 + INDICES) * long, (2,)), view(arange, 0, (long,))
    by_level, by_expert = (rest[1], rest[2], rest[3]), (rest[4], rest[5], margins)
    replayed = (view(single, 0, (RANK,)), view(single, RANK, (RANK, max(n, header[MAPPED]))))
    return Scratch(
        *(
            u,
            Z,
            squares,
            rest[0],
            *by_level,
            *by_expert,
            vectors,
            lane,
            V,
            copies,
            counts,
            nonzero,
            indices,
            arange,
        ),
        *replayed,
    )


scratch_of = kernel(lay_out)
