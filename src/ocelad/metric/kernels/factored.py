"""One COMID learner kept by its eigenpairs, and what one comparison does to it.

    M = sigma (I - Q'Q) + Q' diag(s) Q,        Q: r orthonormal rows, the only directions ever touched.

sigma is what an identity start leaves elsewhere. A comparison changes M by a u u' and shrinks every eigenvalue by
tau.
"""

from __future__ import annotations

import numpy as np

from ...learner import Array, Integers
from .jit import kernel, sums
from .secular import EPS, roots, vectors


@sums
def dot(x: Array, y: Array) -> float:
    t = 0.0
    for i in range(x.shape[0]):
        t += x[i] * y[i]
    return t


@sums
def add(t: float, x: Array, y: Array) -> None:
    """y += t x."""
    for i in range(x.shape[0]):
        y[i] += t * x[i]


@kernel
def project(Q: Array, s: Array, r: int, sigma: float, u: Array, square: float, z: Array) -> float:
    """z = Q u, and the squared distance u' M u."""
    d2 = 0.0
    outside = square
    for i in range(r):
        t = dot(Q[i], u)
        z[i] = t
        d2 += s[i] * t * t
        outside -= t * t
    return d2 + sigma * max(outside, 0.0)


@kernel
def shrink(Q: Array, s: Array, r: int, sigma: float, tau: float) -> tuple[int, float]:
    """Take tau off every eigenvalue. A row whose eigenvalue is that of the rest, 0, is dropped."""
    sigma = max(0.0, sigma - tau)
    i = 0
    while i < r:
        s[i] = max(0.0, s[i] - tau)
        if s[i] == 0.0 and sigma == 0.0:
            r -= 1
            s[i] = s[r]
            Q[i] = Q[r]
        else:
            i += 1
    return r, sigma


@kernel
def _extend(Q: Array, s: Array, r: int, sigma: float, u: Array, square: float, z: Array) -> int:
    """Give the part of u that Q does not span a row of its own."""
    n = u.shape[0]
    if r == n:
        return r
    q = Q[r]
    for i in range(n):
        q[i] = u[i]
    for i in range(r):
        add(-z[i], Q[i], q)
    for i in range(r):  # once more: what rounding has left
        t = dot(Q[i], q)
        z[i] += t
        add(-t, Q[i], q)
    rho = np.sqrt(dot(q, q))
    if rho <= 64.0 * EPS * np.sqrt(square):
        return r
    for i in range(n):
        q[i] /= rho
    s[r] = sigma
    z[r] = rho
    return r + 1


@kernel
def rank_one(
    Q: Array,
    s: Array,
    r: int,
    sigma: float,
    u: Array,
    square: float,
    z: Array,
    a: float,
    tau: float,
    Q2: Array,
    s2: Array,
    work: Array,
    index: Integers,
) -> tuple[int, float]:
    """M + a u u', shrunk by tau: from (Q, s, sigma), which it uses up, into (Q2, s2). Returns r and sigma."""
    n = u.shape[0]
    r = _extend(Q, s, r, sigma, u, square, z)
    sigma = max(0.0, sigma - tau)
    sign = 1.0 if a > 0.0 else -1.0  # for a < 0, minus the whole matrix is solved
    largest = zz = 0.0
    for i in range(r):  # ascending order, by insertion: the rows are nearly sorted already
        largest, zz = max(largest, s[i]), zz + z[i] * z[i]
        j = i
        while j > 0 and sign * s[index[j - 1]] > sign * s[i]:
            index[j] = index[j - 1]
            j -= 1
        index[j] = i
    tiny = 8.0 * EPS * max(largest, abs(a) * zz)
    # Deflation, as in LAPACK's dlaed2: eigenpairs that the rank-one term does not move, and poles that coincide.
    k = kept = 0
    for m in range(r):
        i = index[m]
        settled = -1
        if abs(a * z[i]) * np.sqrt(zz) <= tiny:
            settled = i
        elif k > 0:
            p = index[k - 1]
            length = np.hypot(z[p], z[i])
            c, t = z[i] / length, -z[p] / length
            if abs((s[i] - s[p]) * c * t) <= tiny:
                z[i], settled = length, p
                old, new = Q[p], Q[i]
                for e in range(n):
                    old[e], new[e] = c * old[e] + t * new[e], c * new[e] - t * old[e]
                s[p], s[i] = s[p] * c * c + s[i] * t * t, s[p] * t * t + s[i] * c * c
                k -= 1
        if settled != i:
            index[k] = i
            k += 1
        if settled >= 0 and (sigma > 0.0 or s[settled] > tau):
            Q2[kept] = Q[settled]
            s2[kept] = max(0.0, s[settled] - tau)
            kept += 1
    d, y, w, zhat = work[0], work[1], work[2], work[3]
    room = (work.shape[0] - 4) // 2
    gap, V = work[4 : 4 + room], work[4 + room :]
    for m in range(k):
        d[m], y[m] = sign * s[index[m]], z[index[m]]
    roots(d, y, abs(a), k, gap, w)
    vectors(d, y, k, gap, zhat, V)
    for j in range(k):
        value = sign * w[j] - tau
        if sigma > 0.0 or value > 0.0:
            row = Q2[kept]
            for e in range(n):
                row[e] = 0.0
            for m in range(k):
                add(V[j, m], Q[index[m]], row)
            s2[kept] = max(0.0, value)
            kept += 1
    return kept, sigma
