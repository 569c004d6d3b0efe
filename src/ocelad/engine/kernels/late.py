"""A learner of high rank that nothing shrinks: what comparisons add is kept as it is, to be diagonalised later.

    M = sigma (I - Q Q') + Q (diag(s) + L' diag(a) L) Q',

a row of L for every term since. A comparison adds one; if that makes the matrix indefinite, its only negative
eigenvalue -x and the eigenvector v are found, and x v v' is another. -x solves z'(X + x)^-1 z = 1 / |a|, X being
the matrix before. By Woodbury's formula that takes a small system, as large as L has rows; 1 / (z'(X + x)^-1 z)
being concave in x, Newton's method on it comes from one side. To turn all columns would cost far more. Where terms
are nearly parallel the small system loses precision: then the matrix is diagonalised before anything else.
"""

from __future__ import annotations

import numpy as np

from ...protocols import Array
from .factored import dot
from .jit import apart, kernel, sums

CLOSE = 1e-7  # a relative step so small that the next one, some square of it, would be lost in rounding
NEGLIGIBLE = 1e-13  # beside the largest eigenvalue
TRUSTED = 1e-12  # so much of it may be lost


@sums
def _weigh(L: Array, m: int, r: int, y: Array, g: Array) -> None:
    """g = L y."""
    for k in range(m):
        t = 0.0
        for i in range(r):
            t += L[k, i] * y[i]
        g[k] = t


@sums
def _system(L: Array, a: Array, m: int, r: int, inverse: Array, K: Array, y: Array) -> None:
    """K = diag(1 / a) + L diag(inverse) L'."""
    apart()
    for k in range(m):
        for i in range(r):
            y[i] = L[k, i] * inverse[i]
        for j in range(k + 1):
            t = 0.0
            for i in range(r):
                t += L[j, i] * y[i]
            K[k, j] = K[j, k] = t
        K[k, k] += 1.0 / a[k]


@kernel
def _factorise(K: Array, m: int, pivot: Array) -> None:
    """LU in place, with partial pivoting."""
    for k in range(m):
        p = k
        for i in range(k + 1, m):
            if abs(K[i, k]) > abs(K[p, k]):
                p = i
        pivot[k] = p
        if p != k:
            for j in range(m):
                K[k, j], K[p, j] = K[p, j], K[k, j]
        for i in range(k + 1, m):
            K[i, k] /= K[k, k]
            t = K[i, k]
            for j in range(k + 1, m):
                K[i, j] -= t * K[k, j]


@kernel
def _backsolve(K: Array, m: int, pivot: Array, g: Array) -> None:
    for k in range(m):
        p = int(pivot[k])
        g[k], g[p] = g[p], g[k]
    for i in range(m):
        for j in range(i):
            g[i] -= K[i, j] * g[j]
    for i in range(m - 1, -1, -1):
        for j in range(i + 1, m):
            g[i] -= K[i, j] * g[j]
        g[i] /= K[i, i]


@kernel
def _solve(L: Array, m: int, r: int, inverse: Array, K: Array, pivot: Array, b: Array, g: Array, w: Array) -> None:
    """w += (X + x)^-1 b."""
    apart()
    for i in range(r):
        b[i] *= inverse[i]
    _weigh(L, m, r, b, g)
    _backsolve(K, m, pivot, g)
    for k in range(m):
        for i in range(r):
            b[i] -= inverse[i] * L[k, i] * g[k]
    for i in range(r):
        w[i] += b[i]


@kernel
def _left(s: Array, L: Array, a: Array, m: int, r: int, z: Array, x: float, w: Array, g: Array, b: Array) -> None:
    """b = z - (X + x) w."""
    _weigh(L, m, r, w, g)
    for i in range(r):
        b[i] = z[i] - (s[i] + x) * w[i]
    for k in range(m):
        for i in range(r):
            b[i] -= a[k] * g[k] * L[k, i]


@kernel
def negative(s: Array, L: Array, a: Array, m: int, r: int, z: Array, weight: float, work: Array) -> float:
    """x > 0, if diag(s) + L'diag(a) L + weight z z' has the eigenvalue -x, its vector in work[0]; else 0.

    -1 if it cannot be told.
    """
    apart()
    w, b, inverse, y, g, pivot, K = work[0], work[1], work[2], work[3], work[4], work[5], work[6:]
    largest, target = 0.0, -1.0 / weight
    for i in range(r):
        largest = max(largest, s[i])
    high = -weight * dot(z, z, r)
    least = NEGLIGIBLE * max(largest, high)
    x, last, none = high, False, False
    for _ in range(60):
        for i in range(r):
            inverse[i], w[i], b[i] = 1.0 / (s[i] + x), 0.0, z[i]
        _system(L, a, m, r, inverse, K, y)
        _factorise(K, m, pivot)
        _solve(L, m, r, inverse, K, pivot, b, g, w)
        _left(s, L, a, m, r, z, x, w, g, b)  # once more
        _solve(L, m, r, inverse, K, pivot, b, g, w)
        value, slope = dot(w, z, r), dot(w, w, r)
        if last:
            break
        new = x + value * (value / target - 1.0) / slope
        last = abs(new - x) <= CLOSE * x
        if new < 0.01 * x:  # too far, as it may be from beyond the root
            if x <= least:
                none = True
                break
            new = 0.01 * x
            last = False
        x = min(new, high)
    length = np.sqrt(slope)
    _left(s, L, a, m, r, z, x, w, g, b)
    if not (last or none) or not np.sqrt(dot(b, b, r)) <= TRUSTED * max(largest, high) * length:
        return -1.0
    for i in range(r):
        w[i] /= length
    return 0.0 if none else x


@sums
def distance(L: Array, a: Array, m: int, r: int, z: Array) -> float:
    """What the terms add to a squared distance."""
    d2 = 0.0
    for k in range(m):
        t = 0.0
        for i in range(r):
            t += L[k, i] * z[i]
        d2 += a[k] * t * t
    return d2


@kernel
def add(s: Array, L: Array, a: Array, m: int, before: int, r: int, z: Array, weight: float, work: Array) -> int:
    """Add weight z z', and what keeps the matrix positive semi-definite; returns how many terms there are.

    The rank was less before this comparison: of what is new, earlier terms have nothing.
    """
    for k in range(m):
        for i in range(before, r):
            L[k, i] = 0.0
    x = negative(s, L, a, m, r, z, weight, work) if weight < 0.0 else 0.0
    for i in range(r):
        L[m, i] = z[i]
    a[m] = weight
    m += 1
    if x > 0.0:
        for i in range(r):
            L[m, i] = work[0, i]
        a[m] = x
        m += 1
    while x < 0.0 and m + 2 <= L.shape[0]:  # no room for more: Python will see to it
        for i in range(r):
            L[m, i] = 0.0
        a[m] = 0.0
        m += 1
    return m
