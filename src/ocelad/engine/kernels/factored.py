"""One COMID learner kept by its eigenpairs, and what one comparison does to it.

    M = sigma (I - Q Q') + Q diag(s) Q',        Q: r orthonormal columns, the only directions ever touched.

sigma is what an identity start leaves elsewhere. A comparison changes M by a u u' and shrinks every eigenvalue by
tau. Q is kept with a row per coordinate, so that everything runs along its columns and a sparse u costs what its
nonzeros cost. Columns are padded to a multiple of four; what is beyond r is finite, and does not matter.
"""

from __future__ import annotations

import math

from ...compiled import inlined, kernel, sums
from ...protocols import Array, Integers
from .scratch import LANES, NEAREST, OFFSET, POLE, ROOT, SORTED, TERM, WEIGHT, Scratch
from .secular import EPS, roots, vectors


@sums
def project(Q: Array, r: int, u: Array, rows: Integers, count: int, z: Array) -> None:
    """z = Q'u, for a u that is zero but in the given rows."""
    width, last = (r + 3) // 4 * 4, count - 1
    for i in range(width):
        z[i] = 0.0
    for m in range(0, count, 4):
        e, f, g, h = rows[m], rows[min(m + 1, last)], rows[min(m + 2, last)], rows[min(m + 3, last)]
        a, b = u[e], u[f] if m + 1 <= last else 0.0
        c, d = u[g] if m + 2 <= last else 0.0, u[h] if m + 3 <= last else 0.0
        for i in range(width):
            z[i] += a * Q[e, i] + b * Q[f, i] + c * Q[g, i] + d * Q[h, i]


@sums
def subtract(Q: Array, rows: Integers, count: int, r: int, z: Array, q: Array) -> float:
    """q -= Q z, in the given rows; returns q'q."""
    width, square = (r + 3) // 4 * 4, 0.0
    for i in range(r, width):
        z[i] = 0.0
    for m in range(count):
        e, t = rows[m], 0.0
        for i in range(width):
            t += Q[e, i] * z[i]
        q[e] -= t
        square += q[e] * q[e]
    return square


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
    """Remove column i; the last one takes its place."""
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
    for i in range(r - 1, -1, -1):
        s[i] = max(0.0, s[i] - tau)
        if s[i] == 0.0 and sigma == 0.0:
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
    Q: Array, rows: Integers, count: int, r: int, u: Array, square: float, z: Array, q: Array, t: Array
) -> int:
    """Give the part of u that Q does not span a column of its own; z becomes Q'u for the Q that results."""
    for m in range(count):
        q[rows[m]] = u[rows[m]]
    left = subtract(Q, rows, count, r, z, q)
    if left <= 0.1 * square:  # once more: what rounding has left is no longer small beside q
        project(Q, r, q, rows, count, t)
        for i in range(r):
            z[i] += t[i]
        left = subtract(Q, rows, count, r, t, q)
    z[r] = math.sqrt(left)
    if z[r] <= 64.0 * EPS * math.sqrt(square):
        return r
    for m in range(count):
        Q[rows[m], r] = q[rows[m]] / z[r]
    return r + 1


@sums
def _multiply(A: Array, terms: int, V: Array, term: Integers, first: int, width: int, out: Array) -> None:
    """out = A V, for four rows of A; of V the rows that ``term`` says, and columns from ``first`` on.

    Rows of out lie LANES apart in one array, so that the compiler knows that they do not overlap. Four rows and
    four terms at a time: there are four products for each number that is loaded or stored.
    """
    a, b, c, d = A[0], A[1], A[2], A[3]
    for j in range(width):
        out[j] = out[LANES + j] = out[2 * LANES + j] = out[3 * LANES + j] = 0.0
    for m in range(0, terms, 4):
        a0, a1, a2, a3 = a[m], a[m + 1], a[m + 2], a[m + 3]
        b0, b1, b2, b3 = b[m], b[m + 1], b[m + 2], b[m + 3]
        c0, c1, c2, c3 = c[m], c[m + 1], c[m + 2], c[m + 3]
        d0, d1, d2, d3 = d[m], d[m + 1], d[m + 2], d[m + 3]
        row0, row1, row2, row3 = V[term[m]], V[term[m + 1]], V[term[m + 2]], V[term[m + 3]]
        for j in range(width):
            v0, v1, v2, v3 = row0[first + j], row1[first + j], row2[first + j], row3[first + j]
            out[j] += a0 * v0 + a1 * v1 + a2 * v2 + a3 * v3
            out[LANES + j] += b0 * v0 + b1 * v1 + b2 * v2 + b3 * v3
            out[2 * LANES + j] += c0 * v0 + c1 * v1 + c2 * v2 + c3 * v3
            out[3 * LANES + j] += d0 * v0 + d1 * v1 + d2 * v2 + d3 * v3


@kernel
def rotate(
    Q: Array, rows: Integers, count: int, k: int, U: Array, since: int, to: int, V: Array, r: int, scratch: Scratch
) -> None:
    """The first r columns of Q become (k columns of Q, those of U from ``since`` on) V, in the given rows."""
    A, out, term = scratch.copies, scratch.lane, scratch.indices[TERM]
    last = count - 1
    for i in range(k):
        term[i] = i
    for m in range(0, count, 4):
        e, f, g, h = rows[m], rows[min(m + 1, last)], rows[min(m + 2, last)], rows[min(m + 3, last)]
        for i in range(k):
            A[0, i], A[1, i], A[2, i], A[3, i] = Q[e, i], Q[f, i], Q[g, i], Q[h, i]
        terms = k
        for i in range(since, to):  # of most features, sparse comparisons have nothing
            if U[e, i] != 0.0 or U[f, i] != 0.0 or U[g, i] != 0.0 or U[h, i] != 0.0:
                A[0, terms], A[1, terms], A[2, terms], A[3, terms] = U[e, i], U[f, i], U[g, i], U[h, i]
                term[terms] = k + i - since
                terms += 1
        while terms % 4 > 0:  # 0 times any row of V
            A[0, terms] = A[1, terms] = A[2, terms] = A[3, terms] = 0.0
            term[terms] = 0
            terms += 1
        for first in range(0, r, LANES):
            lanes = min(LANES, r - first)
            _multiply(A, terms, V, term, first, (lanes + 7) // 8 * 8, out)
            for row in range(min(4, count - m)):
                q = Q[rows[m + row]]
                for j in range(lanes):
                    q[first + j] = out[row * LANES + j]


@kernel
def _poles(
    s: Array, z: Array, r: int, scale: float, length: float, tiny: float, small: float, order: Integers, vec: Array
) -> bool:
    """d = scale * s, ascending, and y = length * z along with it; whether diag(d) + y y' is to be deflated."""
    d, y, crowded = vec[POLE], vec[WEIGHT], False
    for m in range(r):  # by insertion, for a step leaves s descending
        i, j = r - 1 - m if scale > 0.0 else m, m
        while j > 0 and scale * s[order[j - 1]] > scale * s[i]:
            order[j] = order[j - 1]
            j -= 1
        order[j] = i
    for m in range(r):
        d[m], y[m] = scale * s[order[m]], length * z[order[m]]
        crowded |= abs(y[m]) <= small
    for m in range(1, r):
        crowded |= (d[m] - d[m - 1]) * abs(y[m - 1] * y[m]) <= tiny * (y[m - 1] * y[m - 1] + y[m] * y[m])
    return crowded


@kernel
def _deflate(Q: Array, n: int, s: Array, r: int, z: Array, tiny: float, small: float, order: Integers) -> int:
    """Bring the k eigenpairs that are moved to the front, with distinct poles (as LAPACK's dlaed2); returns k."""
    p = -1
    for m in range(r):
        i = order[m]
        if abs(z[i]) <= small:
            z[i] = 0.0
            continue
        if p >= 0:
            across = math.hypot(z[p], z[i])
            c, t = z[i] / across, -z[p] / across
            if abs((s[i] - s[p]) * (c * t)) <= tiny:  # rotate the two so that only one is moved
                z[i], z[p] = across, 0.0
                for e in range(n):
                    Q[e, p], Q[e, i] = c * Q[e, p] + t * Q[e, i], c * Q[e, i] - t * Q[e, p]
                s[p], s[i] = s[p] * c * c + s[i] * t * t, s[p] * t * t + s[i] * c * c
        p = i
    i, k = 0, r
    while i < k:
        if z[i] != 0.0:
            i += 1
        else:
            k -= 1
            s[i], s[k], z[i], z[k] = s[k], s[i], z[k], 0.0
            for e in range(n):
                Q[e, i], Q[e, k] = Q[e, k], Q[e, i]
    return k


@inlined
def rank_one(Q: Array, n: int, s: Array, r: int, z: Array, a: float, scratch: Scratch) -> None:
    """The eigenpairs of Q (diag(s) + a z z') Q'."""
    vec, order = scratch.vectors, scratch.indices[SORTED]
    zz, k = dot(z, z, r), r
    if a == 0.0 or zz == 0.0:
        return
    largest = abs(a) * zz
    for i in range(r):
        largest = max(largest, abs(s[i]))
    # Scaled to about 1, by a power of two: nothing is rounded, and products of a few gaps neither overflow nor
    # vanish. For a < 0, minus the whole matrix is solved.
    unit = math.ldexp(1.0, -max(math.frexp(largest)[1] // 2, -500))
    scale, length, tiny = math.copysign(unit * unit, a), unit * math.sqrt(abs(a)), 8.0 * EPS * largest
    small = tiny * unit * unit / (length * math.sqrt(zz))
    if _poles(s, z, r, scale, length, tiny * unit * unit, small, order, vec):
        k = _deflate(Q, n, s, r, z, tiny, small / length, order)
        _poles(s, z, k, scale, length, 0.0, 0.0, order, vec)
    if k > 0:
        down = a > 0.0  # eigenvalues are to descend, so that those that come to 0 are the last columns
        roots(vec, k, down, scratch.lane, scratch.indices[ROOT])
        vectors(vec, k, down, order, scratch.V)
        for j in range(k):
            s[j] = (vec[NEAREST, j] + vec[OFFSET, j]) / scale
        rotate(Q, scratch.arange, n, k, Q, 0, 0, scratch.V, k, scratch)
