"""A learner's columns as combinations of columns seen before, so that a step need not turn long vectors.

    Q = E F,        E: n x m, a dictionary; F: m x r, what the rank-one steps turn.

A comparison enters E as it comes, scaled to length one, and F holds what makes it orthogonal to the rest; where
that would lose precision, E receives the orthogonal part itself. When carrying the m - r surplus columns has cost
as much as E <- E F, F <- I would, that is done. Columns of E from m on are zero, and so are the rows of features
that no comparison in it has had: nothing here takes longer for there being others.
"""

from __future__ import annotations

import numpy as np

from ...learner import Array, Integers
from .codes import COORDINATES, EVERY, LIST, MARK, POLE, RESIDUAL, SECOND, SOURCE, TARGET, WIDTH
from .factored import dot, project, rotate, subtract
from .jit import kernel, sums
from .secular import EPS

SPREAD = 8.0  # how much longer than its combination the coefficients of a unit column may be


@sums
def _add(E: Array, rows: Integers, count: int, m: int, c: Array, q: Array) -> None:
    """q += E c, in the given rows."""
    for k in range(count):
        e, t = rows[k], 0.0
        for i in range(m):
            t += E[e, i] * c[i]
        q[e] += t


@sums
def _square(q: Array, rows: Integers, count: int) -> float:
    t = 0.0
    for k in range(count):
        t += q[rows[k]] * q[rows[k]]
    return t


@kernel
def _expand(F: Array, m: int, r: int, z: Array, c: Array) -> None:
    """c = -F z."""
    for i in range(m):
        c[i] = 0.0
    subtract(F, m, r, z, c)


@kernel
def touch(features: Integers, touched: int, rows: Integers, count: int) -> int:
    """Enter features into the list of those that a dictionary has; returns how many there are."""
    for k in range(count):
        if features[MARK, rows[k]] == 0:
            features[MARK, rows[k]] = 1
            features[LIST, touched] = rows[k]
            touched += 1
    return touched


@kernel
def clear(E: Array, m: int, features: Integers, touched: int) -> None:
    """Empty a dictionary."""
    for k in range(touched):
        e = features[LIST, k]
        features[MARK, e] = 0
        for i in range(m):
            E[e, i] = 0.0


@kernel
def compress(
    E: Array, m: int, F: Array, r: int, features: Integers, touched: int, V: Array, out: Array, index: Integers
) -> None:
    """E <- E F, F <- I."""
    for i in range(m):
        for j in range(r):
            V[j // WIDTH, i, j % WIDTH] = F[i, j]
    source, target, rows = index[SOURCE], index[TARGET], features[LIST]
    for i in range(m):
        source[i] = target[i] = i
    for k in range(touched, (touched + 4) // 5 * 5):
        rows[k] = rows[touched - 1]
    rotate(E, rows, touched, source, m, V, target, r, out)
    for k in range(touched):
        for i in range(r, m):
            E[rows[k], i] = 0.0
    for i in range(r):
        for j in range(r):
            F[i, j] = 1.0 if i == j else 0.0


@kernel
def widen(
    E: Array,
    m: int,
    F: Array,
    r: int,
    u: Array,
    square: float,
    rows: Integers,
    count: int,
    z: Array,
    features: Integers,
    touched: int,
    vec: Array,
    index: Integers,
) -> tuple[int, int]:
    """Give the part of u that E F does not span a column of its own; returns the new r and m.

    The features of u are among those touched.
    """
    every, seen = index[EVERY], features[LIST]
    length = np.sqrt(square)
    for j in range(r):
        F[m, j] = 0.0
    c = vec[COORDINATES]  # of the part of u that is not spanned: length times the new column, minus F z
    _expand(F, m, r, z, c)
    c[m] = length
    rho2 = square - dot(z, z, r)
    if rho2 > 0.1 * square and dot(c, c, m + 1) <= SPREAD * SPREAD * rho2:
        rho = np.sqrt(rho2)
        for k in range(count):
            E[rows[k], m] = u[rows[k]] / length
        for i in range(m + 1):
            F[i, r] = c[i] / rho
        z[r] = rho
        return r + 1, m + 1
    q, t, y = vec[RESIDUAL], vec[SECOND], vec[POLE]
    for k in range(touched):
        q[seen[k]] = u[seen[k]]
    _add(E, seen, touched, m, c, q)
    project(E, m, q, seen, touched, t)  # once more: what rounding has left is no longer small beside q
    project(F, r, t, every, m, y)
    for j in range(r):
        z[j] += y[j]
    _expand(F, m, r, y, c)
    _add(E, seen, touched, m, c, q)
    rho = np.sqrt(_square(q, seen, touched))
    if rho <= 64.0 * EPS * length:
        return r, m
    for k in range(touched):
        E[seen[k], m] = q[seen[k]] / rho
    for i in range(m):
        F[i, r] = 0.0
    F[m, r] = 1.0
    z[r] = rho
    return r + 1, m + 1
