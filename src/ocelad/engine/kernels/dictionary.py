"""A learner's columns as combinations of columns seen before, so that a step need not turn long vectors.

    Q = (E, U) F,      E: columns of its own; U: recent comparisons as they came, scaled to length one;
                       F: what the rank-one steps turn.

All learners share U, so that what it has to say on a comparison is found once for all. F holds what makes a
comparison orthogonal to the rest; where that would lose precision, E receives the orthogonal part itself. When
carrying surplus columns has cost as much as E <- (E, U) F, F <- I would, that is done; and for all when U is full.
Rows of features that no comparison in E or U has had are zero, and nothing takes longer for there being others; of
those that were met long ago, less and less is left, until they are forgotten.
"""

from __future__ import annotations

import numpy as np

from ...protocols import Array, Integers
from .codes import (
    CLOCK,
    COORDINATES,
    COUNT,
    DEBT,
    DIFFERENCE,
    EVERY,
    LEVELS,
    LIST,
    MARK,
    ORDER,
    RANK,
    RECENT,
    RESIDUAL,
    SECOND,
    SEEN,
    SINCE,
    SOME,
    SOURCE,
    TOUCHED,
    WIDTH,
)
from .factored import dot, extend
from .jit import apart, kernel, sums
from .layout import Scratch, Stack
from .product import leave_empty, rotate

SPREAD = 8.0  # how much longer than its combination the coefficients of a unit column may be
TRACE = 1e-17  # all that is left of a feature in columns of length one: a twentieth of what rounding does to them


@sums
def _combine(F: Array, m: int, r: int, z: Array, c: Array) -> None:
    """c = F z."""
    for i in range(m):
        t = 0.0
        for j in range(r):
            t += F[i, j] * z[j]
        c[i] = t


@kernel
def touch(features: Integers, touched: int, rows: Integers, count: int) -> int:
    """Enter features into a list of those that have been met; returns how many there are."""
    for k in range(count):
        if features[MARK, rows[k]] == 0:
            features[MARK, rows[k]] = 1
            features[LIST, touched] = rows[k]
            touched += 1
    return touched


@kernel
def clear(E: Array, width: int, features: Integers, touched: int) -> None:
    """Empty the columns in use, which have only these features."""
    for k in range(touched):
        e = features[LIST, k]
        features[MARK, e] = 0
        for i in range(width):
            E[e, i] = 0.0


@kernel
def _purge(E: Array, r: int, features: Integers, touched: int) -> int:
    """Forget features of which the first r columns have but a trace; returns how many remain."""
    kept = 0
    for k in range(touched):
        e, i = features[LIST, k], 0
        while i < r and abs(E[e, i]) <= TRACE:
            i += 1
        if i < r:
            features[LIST, kept] = e
            kept += 1
        else:
            features[MARK, e] = 0
            for j in range(r):
                E[e, j] = 0.0
    return kept


@kernel
def discard(slot: int, stack: Stack) -> None:
    """Empty a learner's dictionary."""
    meta = stack[4]
    clear(stack[0][slot], meta[COUNT, slot], stack[8][slot], meta[TOUCHED, slot])
    meta[COUNT, slot] = meta[TOUCHED, slot] = 0
    meta[SINCE, slot] = meta[CLOCK, RECENT]


@kernel
def height(slot: int, meta: Integers) -> int:
    """How many columns a learner's are combinations of."""
    return meta[COUNT, slot] + meta[CLOCK, RECENT] - meta[SINCE, slot]


@kernel
def _part(features: Integers, touched: int, marks: Integers) -> int:
    """Bring those features of a list that are marked to its end; returns how many are not."""
    first, last = 0, touched
    while first < last:
        e = features[LIST, first]
        if marks[e] == 0:
            first += 1
        else:
            last -= 1
            features[LIST, first], features[LIST, last] = features[LIST, last], e
    return first


@kernel
def compress(slot: int, stack: Stack, scratch: Scratch) -> None:
    """E <- (E, U) F, F <- I."""
    apart()
    E, F, scalars, meta, features, U = stack[0], stack[1], stack[3], stack[4], stack[8], stack[9]
    V, copies, index = scratch[4], scratch[5], scratch[6]
    k, r, since, recent = meta[COUNT, slot], meta[RANK, slot], meta[SINCE, slot], meta[CLOCK, RECENT]
    seen, source, some = features[features.shape[0] - 1], index[SOURCE], index[SOME]
    for i in range(k + recent - since):
        source[i] = i if i < k else since + i - k
        for j in range(r):
            V[j // WIDTH, i, j % WIDTH] = F[slot, i, j]
        leave_empty(V, i, r)
    touched = old = meta[TOUCHED, slot]
    if recent > since:
        touched = touch(features[slot], touched, seen[LIST], meta[CLOCK, SEEN])
        old = _part(features[slot], touched, seen[MARK])  # here U is zero
        rows, count = seen[LIST], meta[CLOCK, SEEN]
        rotate(E[slot], U, rows, count, r, source, k, recent - since, V, source, r, copies, some)
    rotate(E[slot], U, features[slot, LIST], old, r, source, k, 0, V, source, r, copies, some)
    for m in range(touched):  # columns that are not in use are empty
        for i in range(r, k):
            E[slot, features[slot, LIST, m], i] = 0.0
    meta[TOUCHED, slot] = _purge(E[slot], r, features[slot], touched)
    for i in range(r):
        for j in range(r):
            F[slot, i, j] = 1.0 if i == j else 0.0
    meta[COUNT, slot], meta[SINCE, slot], scalars[slot, DEBT] = r, recent, 0.0


@kernel
def remember(square: float, rows: Integers, count: int, stack: Stack, scratch: Scratch) -> None:
    """Keep a comparison: it becomes a column that no learner uses yet."""
    F, meta, features, U = stack[1], stack[4], stack[8], stack[9]
    u, length, recent = scratch[0][DIFFERENCE], np.sqrt(square), meta[CLOCK, RECENT]
    meta[CLOCK, SEEN] = touch(features[features.shape[0] - 1], meta[CLOCK, SEEN], rows, count)
    for k in range(count):
        U[rows[k], recent] = u[rows[k]] / length
    for j in range(meta[CLOCK, LEVELS]):
        slot = meta[ORDER, j]
        row = F[slot, height(slot, meta)]
        for i in range(meta[RANK, slot]):
            row[i] = 0.0
    meta[CLOCK, RECENT] = recent + 1


@kernel
def prepare(square: float, rows: Integers, count: int, stack: Stack, scratch: Scratch) -> None:
    """Before a step that moves any learner: compress where that pays, and keep the comparison."""
    apart()
    scalars, meta, Z, moves = stack[3], stack[4], scratch[1], False
    for j in range(meta[CLOCK, LEVELS]):
        slot = meta[ORDER, j]
        r, m = meta[RANK, slot], height(slot, meta)
        if Z[j, Z.shape[1] - 8] != 0.0 and square > 0.0:
            moves = True
            scalars[slot, DEBT] += float(m - r) * r * r
            if scalars[slot, DEBT] > float(r) * m * meta[TOUCHED, slot] and r > 0:
                compress(slot, stack, scratch)
    if moves:
        remember(square, rows, count, stack, scratch)


@kernel
def forget(stack: Stack, scratch: Scratch) -> None:
    """Make room for comparisons to come: learners keep of the recent ones what they need."""
    apart()
    meta, features, U = stack[4], stack[8], stack[9]
    for j in range(meta[CLOCK, LEVELS]):
        slot = meta[ORDER, j]
        rank = meta[RANK, slot]
        if rank > 0 and (meta[SINCE, slot] < meta[CLOCK, RECENT] or meta[COUNT, slot] > rank):
            compress(slot, stack, scratch)
        elif rank == 0:
            discard(slot, stack)
    clear(U, meta[CLOCK, RECENT], features[features.shape[0] - 1], meta[CLOCK, SEEN])
    for slot in range(meta.shape[1]):
        meta[SINCE, slot] = 0
    meta[CLOCK, RECENT] = meta[CLOCK, SEEN] = 0


@kernel
def widen(slot: int, n: int, square: float, z: Array, stack: Stack, scratch: Scratch) -> int:
    """Give the part of u that a learner does not span a column of its own; returns the new rank.

    The comparison is the latest of those remembered.
    """
    apart()
    E, F, meta = stack[0], stack[1], stack[4]
    vec, index = scratch[0], scratch[6]
    r, m, u, c = meta[RANK, slot], height(slot, meta), vec[DIFFERENCE], vec[COORDINATES]
    _combine(F[slot], m, r, z, c)
    rho2 = square - dot(z, z, r)
    if rho2 > 0.1 * square and square + dot(c, c, m) <= SPREAD * SPREAD * rho2:
        rho = np.sqrt(rho2)
        for i in range(m - 1):
            F[slot, i, r] = -c[i] / rho
        F[slot, m - 1, r] = np.sqrt(square) / rho
        z[r] = rho
        return r + 1
    if r > 0:
        compress(slot, stack, scratch)
    else:
        discard(slot, stack)
    wider = extend(E[slot], n, r, u, square, z, index[EVERY], vec[RESIDUAL], vec[SECOND])
    if wider > r:
        seen = stack[8][stack[8].shape[0] - 1]
        meta[TOUCHED, slot] = touch(stack[8][slot], meta[TOUCHED, slot], seen[LIST], meta[CLOCK, SEEN])
        for i in range(wider):
            F[slot, i, r] = F[slot, r, i] = 0.0
        F[slot, r, r] = 1.0
        meta[COUNT, slot] = wider
    return wider
