"""The live entries of levels that have columns: between the arrays of a snapshot and those of a stack.

levels:   loss, mu, discarded, rank, sigma of each level, and whatever comes after these;
columns:  eigenvalue and eigenvector, those of one level after those of the other.
"""

from __future__ import annotations

from ...compiled import entry, kernel, sums
from ...protocols import Array, Integers
from ...raw_array import view
from .layout import CAPACITY, FIXED, LEVELS, SLOTS, stack_of
from .layout import N as FEATURES

LOSS, MU, DISCARDED, RANK, SIGMA = range(5)


@entry
def write_live(floats: Array, integers: Integers, singles: Array, levels: Array, columns: Array) -> None:
    """Into arrays that have as many rows as there are levels, and columns."""
    stack, row = stack_of(floats, integers, singles), 0
    n, fixed = stack.header[FEATURES], stack.header[FIXED]
    for j in range(stack.header[LEVELS]):
        slot = stack.order[j]
        levels[j, LOSS], levels[j, MU], levels[j, DISCARDED] = (
            stack.losses[fixed + j],
            stack.mu[slot],
            stack.discarded[slot],
        )
        levels[j, RANK], levels[j, SIGMA] = stack.rank[slot], stack.sigma[slot]
        for i in range(stack.rank[slot]):
            columns[row, 0] = stack.eigenvalues[slot, i]
            for e in range(n):
                columns[row, 1 + e] = stack.columns[slot, e, i]
            row += 1


@entry
def read_live(
    floats: Array, integers: Integers, singles: Array, levels: Array, columns: Array, tolerance: float
) -> int:
    """From such arrays: level j comes to slot j + 1. Returns the first level whose columns are not orthonormal, or
    -1. Ranks have been checked to fit."""
    stack, row, wrong = stack_of(floats, integers, singles), 0, -1
    n, fixed, capacity = stack.header[FEATURES], stack.header[FIXED], stack.header[CAPACITY]
    flat = view(columns, 0, (columns.shape[0] * (n + 1),))
    for slot in range(1, stack.header[SLOTS]):
        stack.order[slot - 1] = slot
        for e in range(n):
            for i in range(capacity):
                stack.columns[slot, e, i] = 0.0  # there may have been something else
    stack.header[LEVELS] = levels.shape[0]
    for j in range(levels.shape[0]):
        slot, rank = j + 1, int(levels[j, RANK])
        stack.losses[fixed + j], stack.mu[slot], stack.discarded[slot] = (
            levels[j, LOSS],
            levels[j, MU],
            levels[j, DISCARDED],
        )
        stack.rank[slot], stack.sigma[slot] = rank, levels[j, SIGMA]
        for i in range(rank):
            stack.eigenvalues[slot, i] = columns[row + i, 0]
            for e in range(n):
                stack.columns[slot, e, i] = columns[row + i, 1 + e]
        if wrong < 0 and not orthonormal(flat, row, rank, n, tolerance):
            wrong = j
        row += rank
    return wrong


@kernel
def orthonormal(columns: Array, row: int, rank: int, n: int, tolerance: float) -> bool:
    """Whether the eigenvectors in these rows are, up to a sum of squares."""
    square = 0.0
    for i in range(rank):
        for k in range(i + 1):
            off = product(columns, (row + i) * (n + 1) + 1, (row + k) * (n + 1) + 1, n)
            square += (off - 1.0) ** 2 if k == i else 2.0 * off * off
    return square <= tolerance * tolerance


@sums
def product(values: Array, a: int, b: int, n: int) -> float:
    """That of n values from a on and n values from b on."""
    t = 0.0
    for e in range(n):
        t += values[a + e] * values[b + e]
    return t
