"""One COMID learner kept by its eigenpairs, and what one comparison does to it.

    M = sigma (I - Q Q') + Q diag(s) Q',        Q: r orthonormal columns, the only directions ever touched.

sigma is what an identity start leaves elsewhere. A comparison changes M by a u u' and shrinks every eigenvalue by
tau. Q is kept with a row per coordinate, so that everything runs along its columns and a sparse u costs what its
nonzeros cost. Columns come in fours; what is beyond r is finite, and does not matter.
"""

from __future__ import annotations

import math

import numpy as np

from ...protocols import Array, Integers
from .codes import EVERY, LANE, NEAREST, OFFSET, POLE, SOME, SOURCE, SQUARE, TARGET, WEIGHT, WIDTH, ZHAT
from .jit import kernel, part, sums
from .product import leave_empty, rotate
from .secular import EPS, roots, vectors

LOOSE = 1e-14  # columns farther than this from orthonormal are mended


@sums
def project(Q: Array, r: int, u: Array, rows: Integers, count: int, z: Array) -> None:
    """z = Q'u, for a u that is zero but in the given rows."""
    width = (r + 3) // 4 * 4
    for i in range(width):
        z[i] = 0.0
    whole = count // 4 * 4
    for m in range(0, whole, 4):
        e0, e1, e2, e3 = rows[m], rows[m + 1], rows[m + 2], rows[m + 3]
        u0, u1, u2, u3 = u[e0], u[e1], u[e2], u[e3]
        for i in range(width):
            z[i] += u0 * Q[e0, i] + u1 * Q[e1, i] + u2 * Q[e2, i] + u3 * Q[e3, i]
    for m in range(whole, count):
        e0 = rows[m]
        u0 = u[e0]
        for i in range(width):
            z[i] += u0 * Q[e0, i]


@sums
def subtract(Q: Array, n: int, r: int, z: Array, q: Array) -> None:
    """q -= Q z."""
    width = (r + 3) // 4 * 4
    for i in range(r, width):
        z[i] = 0.0
    for e in range(n):
        t = 0.0
        for i in range(width):
            t += Q[e, i] * z[i]
        q[e] -= t


@sums
def dot(x: Array, y: Array, n: int) -> float:
    t = 0.0
    for i in range(n):
        t += x[i] * y[i]
    return t


@sums
def distance(s: Array, r: int, sigma: float, z: Array, square: float) -> float:
    """The squared distance u'Mu, for z = Q'u and square = u'u."""
    d2 = zz = 0.0
    for i in range(r):
        d2 += s[i] * z[i] * z[i]
        zz += z[i] * z[i]
    return d2 + sigma * max(square - zz, 0.0)


@kernel
def drop(Q: Array, n: int, s: Array, r: int, i: int) -> int:
    """Column i goes, the last one takes its place."""
    r -= 1
    if i < r:
        s[i] = s[r]
        for e in range(n):
            Q[e, i] = Q[e, r]
    return r


@kernel
def shrink(Q: Array, n: int, s: Array, r: int, sigma: float, tau: float) -> tuple[int, float]:
    """Take tau off every eigenvalue. A column whose eigenvalue is that of the rest, 0, is dropped."""
    sigma = max(0.0, sigma - tau)
    for i in range(r):
        s[i] = max(0.0, s[i] - tau)
    if sigma == 0.0:
        for i in range(r - 1, -1, -1):
            if s[i] == 0.0:
                r = drop(Q, n, s, r, i)
    return r, sigma


@kernel
def truncate(Q: Array, n: int, s: Array, r: int, sigma: float, most: int) -> tuple[int, float]:
    """Keep the ``most`` directions that differ most from the rest; returns what was cut off from the trace."""
    discarded = 0.0
    while r > most:
        least = 0
        for i in range(1, r):
            if abs(s[i] - sigma) < abs(s[least] - sigma):
                least = i
        discarded += abs(s[least] - sigma)
        r = drop(Q, n, s, r, least)
    return r, discarded


@kernel
def extend(
    Q: Array, n: int, r: int, u: Array, square: float, z: Array, every: Integers, q: Array, t: Array
) -> int:
    """Give the part of u that Q does not span a column of its own; z becomes Q'u for the Q that results."""
    for e in range(n):
        q[e] = u[e]
    subtract(Q, n, r, z, q)
    if dot(q, q, n) <= 0.1 * square:  # once more: what rounding has left is no longer small beside q
        project(Q, r, q, every, n, t)
        for i in range(r):
            z[i] += t[i]
        subtract(Q, n, r, t, q)
    rho = np.sqrt(dot(q, q, n))
    if rho <= 64.0 * EPS * np.sqrt(square):
        return r
    for e in range(n):
        Q[e, r] = q[e] / rho
    z[r] = rho
    return r + 1


@sums
def _gram(Q: Array, rows: Integers, count: int, r: int, V: Array) -> float:
    """Q'Q into V, and how far it is from the identity."""
    for c in range((r + WIDTH - 1) // WIDTH):
        lanes = min(WIDTH, r - c * WIDTH)
        for i in range(r):
            for j in range(lanes):
                V[c, i, j] = 0.0
        for m in range(count):
            q = Q[rows[m], c * WIDTH :]
            for i in range(r):
                t = Q[rows[m], i]
                for j in range(lanes):
                    V[c, i, j] += t * q[j]
    off = 0.0
    for i in range(r):
        for j in range(r):
            off = max(off, abs(V[j // WIDTH, i, j % WIDTH] - (1.0 if i == j else 0.0)))
    return off


@part
def tidy(Q: Array, rows: Integers, count: int, r: int, V: Array, copies: Array, index: Integers) -> float:
    """Watch over the columns: if rounding has made them less than orthonormal, Q <- Q (3 I - Q'Q) / 2 mends it."""
    off = _gram(Q, rows, count, r, V)
    if off > LOOSE:
        source = index[SOURCE]
        for i in range(r):
            source[i] = i
            for j in range(r):
                V[j // WIDTH, i, j % WIDTH] = (1.5 if i == j else 0.0) - 0.5 * V[j // WIDTH, i, j % WIDTH]
            leave_empty(V, i, r)
        rotate(Q, Q, rows, count, r, source, r, 0, V, source, r, copies, index[SOME])
    return off


@kernel
def _order(s: Array, r: int, sign: float, index: Integers) -> None:
    """index, so that sign * s ascends along it; by insertion, for a step leaves s in descending order."""
    for m in range(r):
        i = r - 1 - m if sign > 0.0 else m
        j = m
        while j > 0 and sign * s[index[j - 1]] > sign * s[i]:
            index[j] = index[j - 1]
            j -= 1
        index[j] = i


@kernel
def _poles(
    s: Array, z: Array, k: int, scale: float, length: float, source: Integers, d: Array, y: Array, w: Array
) -> None:
    for m in range(k):
        d[m], y[m] = s[source[m]] * scale, z[source[m]] * length
        w[m] = y[m] * y[m]


@kernel
def _crowded(d: Array, z: Array, k: int, tiny: float, small: float) -> bool:
    """Whether diag(d) + z z' is to be deflated."""
    found = abs(z[0]) <= small
    for i in range(1, k):
        square = z[i - 1] * z[i - 1] + z[i] * z[i]
        found |= (abs(z[i]) <= small) | ((d[i] - d[i - 1]) * abs(z[i - 1] * z[i]) <= tiny * square)
    return found


@kernel
def _deflate(Q: Array, n: int, s: Array, r: int, z: Array, tiny: float, small: float, index: Integers) -> int:
    """Leave in index the k eigenpairs that the rank-one term moves, with distinct poles, as LAPACK's dlaed2."""
    k = 0
    for m in range(r):
        i = index[m]
        if abs(z[i]) <= small:
            continue
        if k > 0:
            p = index[k - 1]
            across = np.hypot(z[p], z[i])
            c, t = z[i] / across, -z[p] / across
            if abs((s[i] - s[p]) * (c * t)) <= tiny:  # turn the two so that only one is moved
                z[i], z[p] = across, 0.0
                for e in range(n):
                    Q[e, p], Q[e, i] = c * Q[e, p] + t * Q[e, i], c * Q[e, i] - t * Q[e, p]
                s[p], s[i] = s[p] * c * c + s[i] * t * t, s[p] * t * t + s[i] * c * c
                k -= 1
        index[k] = i
        k += 1
    return k


@kernel
def _scales(largest: float, a: float) -> tuple[float, float]:
    """Multiplied by these, s by the first twice, diag(s) + a z z' becomes diag(s) + z z', about 1 altogether.

    The first is a power of two: nothing is rounded, and products of a few gaps neither overflow nor vanish.
    """
    root = math.ldexp(1.0, -max(math.frexp(largest)[1] // 2, -500))
    return root, root * np.sqrt(abs(a))


@part
def rank_one(
    Q: Array,
    n: int,
    s: Array,
    r: int,
    z: Array,
    a: float,
    vec: Array,
    lane: Array,
    V: Array,
    copies: Array,
    index: Integers,
) -> None:
    """The eigenpairs of Q (diag(s) + a z z') Q'."""
    source, target, lanes = index[SOURCE], index[TARGET], index[LANE]
    d, y, w, near, offset = vec[POLE], vec[WEIGHT], vec[SQUARE], vec[NEAREST], vec[OFFSET]
    zz = dot(z, z, r)
    if a == 0.0 or zz == 0.0:
        return
    sign = 1.0 if a > 0.0 else -1.0  # for a < 0, minus the whole matrix is solved
    _order(s, r, sign, source)
    largest = max(abs(s[source[0]]), abs(s[source[r - 1]]), abs(a) * zz)
    unit, length = _scales(largest, a)
    scale, back = unit * unit, 1.0 / unit
    tiny = 8.0 * EPS * largest
    small = tiny * scale / (length * np.sqrt(zz))
    k = r
    _poles(s, z, k, sign * scale, length, source, d, y, w)
    if _crowded(d, y, k, tiny * scale, small):
        k = _deflate(Q, n, s, r, z, tiny, small / length, source)
        _poles(s, z, k, sign * scale, length, source, d, y, w)
    if k == 0:
        return
    down = a > 0.0  # eigenvalues are to descend, so that those that come to 0 are the last columns
    roots(d, w, k, down, near, offset, lane, lanes)
    vectors(d, y, k, down, near, offset, vec[ZHAT], V)
    for j in range(k):
        target[j] = j if k == r else source[k - 1 - j] if down else source[j]
        s[target[j]] = sign * (near[j] + offset[j]) * back * back
    rotate(Q, Q, index[EVERY], n, r, source, k, 0, V, target, k, copies, index[SOME])
