"""A learner's columns as combinations of columns seen before, so that a step need not rotate long vectors.

    Q = (E, U) F,      E: columns of its own; U: recent comparisons as they came, scaled to length one;
                       F: what the rank-one steps rotate.

All learners share U, so that what it has to say on a comparison is found once for all. F holds what makes a
comparison orthogonal to the rest; where that would lose precision, E receives the orthogonal part itself. When
carrying surplus columns has cost as much as E <- (E, U) F, F <- I would, that is done; and for all when U is full.
Rows of features that no comparison in E or U has had are zero, and nothing takes longer for there being others; of
those that were met long ago, less and less is left, until they are forgotten.
"""

from __future__ import annotations

import math

from ...compiled import kernel
from ...protocols import Array, Integers
from .factored import dot, extend, rotate, subtract
from .layout import LEVELS, LIST, MARK, RECENT, RECENT_CAPACITY, SEEN, SLOTS, Stack
from .scratch import COORDINATES, RESIDUAL, SECOND, Scratch

MAX_COEFFICIENT = 8.0  # the largest norm of the coefficients of a unit column
NEGLIGIBLE = 1e-17  # entries of a feature in columns of length one: a twentieth of their rounding errors


@kernel
def height(slot: int, stack: Stack) -> int:
    """The number of columns that a learner's are combinations of."""
    return stack.own[slot] + stack.header[RECENT] - stack.since[slot]


@kernel
def touch(features: Integers, touched: int, rows: Integers, count: int) -> int:
    """Enter features into a list of those that have been met; returns the length of the list."""
    for k in range(count):
        if features[MARK, rows[k]] == 0:
            features[MARK, rows[k]] = 1
            features[LIST, touched] = rows[k]
            touched += 1
    return touched


@kernel
def clear(E: Array, width: int, features: Integers, touched: int) -> None:
    """Clear the columns in use, which have only these features."""
    for k in range(touched):
        e = features[LIST, k]
        features[MARK, e] = 0
        for i in range(width):
            E[e, i] = 0.0


@kernel
def _purge(E: Array, r: int, width: int, features: Integers, touched: int) -> int:
    """Clear all but the first r columns, and features of which these have but a trace; returns how many remain."""
    kept = 0
    for k in range(touched):
        e, i = features[LIST, k], 0
        while i < r and abs(E[e, i]) <= NEGLIGIBLE:
            i += 1
        features[MARK, e] = 1 if i < r else 0
        for m in range(r if i < r else 0, width):
            E[e, m] = 0.0
        if i < r:
            features[LIST, kept] = e
            kept += 1
    return kept


@kernel
def compress(slot: int, stack: Stack, scratch: Scratch) -> None:
    """E <- (E, U) F, F <- I."""
    E, F, features, header = stack.columns[slot], stack.factors[slot], stack.features[slot], stack.header
    k, r, since, recent = stack.own[slot], stack.rank[slot], stack.since[slot], header[RECENT]
    touched = stack.touched[slot]
    if recent > since:
        touched = touch(features, touched, stack.features[header[SLOTS], LIST], header[SEEN])
    rotate(E, features[LIST], touched, k, stack.recent, since, recent, F, r, scratch)
    stack.touched[slot] = _purge(E, r, max(k, r), features, touched)
    for i in range(r):
        for j in range(r):
            F[i, j] = 1.0 if i == j else 0.0
    stack.own[slot], stack.since[slot], stack.debt[slot] = r, recent, 0.0


@kernel
def remember(term: int, rows: Integers, stack: Stack, scratch: Scratch) -> None:
    """Before a step: compress where that pays, and keep the comparison, a column that no learner uses yet."""
    header, u, length = stack.header, scratch.differences[term], math.sqrt(scratch.lengths[term])
    full = header[RECENT] == RECENT_CAPACITY
    for j in range(header[LEVELS]):
        slot = stack.order[j]
        r, m = stack.rank[slot], height(slot, stack)
        if scratch.slopes[j] != 0.0:
            stack.debt[slot] += float(m - r) * r * r
        pays = scratch.slopes[j] != 0.0 and stack.debt[slot] > float(r) * m * stack.touched[slot] and r > 0
        if pays or (full and (stack.since[slot] < RECENT_CAPACITY or m > r)):
            compress(slot, stack, scratch)
    if full:  # learners have kept what they need
        clear(stack.recent, RECENT_CAPACITY, stack.features[header[SLOTS]], header[SEEN])
        for slot in range(header[SLOTS]):
            stack.since[slot] = 0
        header[RECENT] = header[SEEN] = 0
    for j in range(header[LEVELS]):
        slot = stack.order[j]
        m = height(slot, stack)
        for i in range(stack.rank[slot]):
            stack.factors[slot, m, i] = 0.0
    header[SEEN] = touch(stack.features[header[SLOTS]], header[SEEN], rows, scratch.counts[term])
    for k in range(scratch.counts[term]):
        stack.recent[rows[k], header[RECENT]] = u[rows[k]] / length
    header[RECENT] += 1


@kernel
def widen(slot: int, term: int, z: Array, stack: Stack, scratch: Scratch) -> int:
    """Give the part of u that a learner does not span a column of its own; returns the new rank.

    The comparison is the latest of those remembered.
    """
    F, features, square = stack.factors[slot], stack.features[slot], scratch.lengths[term]
    r, m, c = stack.rank[slot], height(slot, stack), scratch.vectors[COORDINATES]
    for i in range(m):
        c[i] = 0.0
    size, rest = subtract(F, scratch.arange, m, r, z, c), square - dot(z, z, r)
    if rest > 0.1 * square and square + size <= MAX_COEFFICIENT * MAX_COEFFICIENT * rest:
        z[r] = math.sqrt(rest)
        for i in range(m - 1):
            F[i, r] = c[i] / z[r]
        F[m - 1, r] = math.sqrt(square) / z[r]
        return r + 1
    compress(slot, stack, scratch)
    touched = touch(features, stack.touched[slot], stack.features[stack.header[SLOTS], LIST], stack.header[SEEN])
    stack.touched[slot], u = touched, scratch.differences[term]
    q, t = scratch.vectors[RESIDUAL], scratch.vectors[SECOND]
    wider = extend(stack.columns[slot], features[LIST], touched, r, u, square, z, q, t)
    if wider > r:
        for i in range(wider):
            F[i, r] = F[r, i] = 0.0
        F[r, r] = 1.0
        stack.own[slot] = wider
    return wider
