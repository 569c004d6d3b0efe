"""How eigenvalues and eigenvectors change with a rank-one step, compiled (Golub 1973; Gu and Eisenstat 1994):

    diag(d) + z z' has the eigenvalues l_i at which  f(l) = 1 + sum_j z_j^2 / (d_j - l) = 0,   d_i < l_i < d_(i+1),

and the eigenvectors  z_j / (d_j - l_i).  A direction stays as it is where z_j = 0, or can be made 0 by a rotation
within equal d: of a metric of low rank, all but a few.
"""

from __future__ import annotations

import math

import numpy as np

from ..compiled import entry, kernel
from ..protocols import Array, Integers

EPS = float(np.finfo(np.float64).eps)


@kernel
def deflate(d: Array, z: Array, V: Array, at: Integers) -> int:
    """Rotate as much as possible out of the way of z; which directions are left, and how many."""
    square, count = 0.0, 0
    for j in range(len(z)):
        square += z[j] * z[j]
    least = 8.0 * EPS * max(abs(d[0]), abs(d[-1]), square) + 1e-290
    for j in range(len(d)):
        if abs(z[j]) * math.sqrt(square) <= least:
            continue
        i = at[count - 1] if count else j
        both = math.hypot(z[i], z[j])
        c, s = z[j] / both, z[i] / both
        if i < j and (d[j] - d[i]) * abs(c * s) <= least:
            z[i], z[j] = 0.0, both
            d[i], d[j] = c * c * d[i] + s * s * d[j], s * s * d[i] + c * c * d[j]
            for m in range(V.shape[1]):
                V[i, m], V[j, m] = c * V[i, m] - s * V[j, m], s * V[i, m] + c * V[j, m]
            count -= 1
        at[count] = j
        count += 1
    return count


@kernel
def root(d: Array, squares: Array, i: int, gaps: Array) -> float:
    """l_i; d - l_i goes to ``gaps``, each as exact as if l_i were known to the last bit."""
    k, last = len(d), i == len(d) - 1
    width = squares.sum() if last else d[i + 1] - d[i]
    near, low, high, x = i, 0.0, width, 0.5 * width  # l_i = d_near + x
    for step in range(60):
        f, size, slope = 1.0, 1.0, 0.0
        for j in range(k):
            gaps[j] = d[j] - d[near] - x
            inverse = 1.0 / gaps[j]
            term = squares[j] * inverse
            f, size, slope = f + term, size + abs(term), slope + term * inverse
        if abs(f) <= EPS * k * size or high - low <= EPS * abs(x):
            break
        low, high = (low, x) if f > 0.0 else (x, high)
        if step == 0 and f < 0.0 and not last:  # nearer to the next pole
            near, low, high, x = i + 1, -x, 0.0, -x
        # On to the root of c + p / (d_i - l) + q / (d_(i+1) - l), of the same value, slope and nearer pole.
        if last:
            move = gaps[i] * f / (f - gaps[i] * slope)
        else:
            left, right = gaps[i], gaps[i + 1]
            own, far = gaps[near], left + right - gaps[near]
            c = f - far * slope - (own - far) * squares[near] / (own * own)
            p, q = (left + right) * f - left * right * slope, left * right * f
            spread = math.sqrt(max(0.0, p * p - 4.0 * q * c))
            move = (p - spread) / (2.0 * c) if p <= 0.0 else 2.0 * q / (p + spread)
        x = x + move if low < x + move < high else 0.5 * (low + high)
    return d[near] + x


@entry
def turned(w: Array, V: Array, c: Array, a: float) -> tuple[Array, Array]:
    """Eigenvalues and eigenvectors, in rows, of V' diag(w) V + a u u', where c = V u."""
    sign, n = math.copysign(1.0, a), len(w)
    d, z, vectors, at = np.empty(n), np.empty(n), np.empty((n, n)), np.empty(n, np.int64)
    for i in range(n):  # d ascends
        j = i
        while j > 0 and sign * w[at[j - 1]] > sign * w[i]:
            at[j] = at[j - 1]
            j -= 1
        at[j] = i
    for i in range(n):
        d[i], z[i], vectors[i] = sign * w[at[i]], math.sqrt(abs(a)) * c[at[i]], V[at[i]]
    k = deflate(d, z, vectors, at)
    poles, squares, rows, gaps = np.empty(k), np.empty(k), np.empty((k, n)), np.empty((k, k))
    for j in range(k):
        poles[j], squares[j], rows[j] = d[at[j]], z[at[j]] * z[at[j]], vectors[at[j]]
    for i in range(k):
        d[at[i]] = root(poles, squares, i, gaps[i])
    for j in range(k):  # the z for which these roots would be exact: eigenvectors are orthogonal then
        square = -gaps[k - 1, j]
        for i in range(k - 1):
            square *= gaps[i, j] / (poles[j] - poles[i if i < j else i + 1])
        squares[j] = math.copysign(math.sqrt(square), z[at[j]])
    for i in range(k):
        square = 0.0
        for j in range(k):
            gaps[i, j] = squares[j] / gaps[i, j]
            square += gaps[i, j] * gaps[i, j]
        for j in range(k):
            gaps[i, j] /= math.sqrt(square)
    rows = gaps @ rows
    for i in range(k):
        vectors[at[i]] = rows[i]
    return sign * d, vectors
