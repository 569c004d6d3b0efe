"""Eigenvalues and eigenvectors of a diagonal matrix plus a rank-one term, by the secular equation.

    diag(d) + a z z' = V' diag(w) V,       1/a + sum_i z_i^2 / (d_i - w) = 0.

Roots are found as offsets from the nearest pole, so that d_i - w_j is known to full relative precision even where
both almost agree. z is then recomputed from the roots (Gu and Eisenstat 1994), which makes the eigenvectors
orthogonal to working precision however close the roots are.
"""

from __future__ import annotations

import numpy as np

from ...learner import Array
from .jit import kernel, sums

EPS = float(np.finfo(np.float64).eps)


@sums
def _evaluate(z: Array, pole: Array, x: float, k: int) -> tuple[float, float, float]:
    """sum z^2 / (pole - x), and the sums of its derivatives and of its absolute values."""
    f = slope = size = 0.0
    for i in range(k):
        t = z[i] / (pole[i] - x)
        f += z[i] * t
        size += abs(z[i] * t)
        slope += t * t
    return f, slope, size


@kernel
def _step(c: float, p: float, q: float, left: float, right: float, f: float) -> float:
    """The e between left and right with c + p / (left - e) + q / (right - e) = 0; at e = 0 the sum is f."""
    b = c * (left + right) + p + q
    e = left * right * f
    root = b * b - 4.0 * c * e
    root = np.sqrt(root) if root > 0.0 else 0.0
    return (b - root) / (2.0 * c) if b <= 0.0 else 2.0 * e / (b + root)


@kernel
def roots(d: Array, z: Array, a: float, k: int, gap: Array, w: Array) -> None:
    """The k roots for d[0] < ... < d[k-1], all z[i] != 0, a > 0; afterwards gap[j, i] = d[i] - w[j]."""
    total = 0.0
    for i in range(k):
        total += z[i] * z[i]
    inverse = 1.0 / a
    for j in range(k):
        # Root j lies between pole j and the next; the sign of f half-way says to which of them it is nearer.
        last = j + 1 == k
        half = 0.5 * (a * total if last else d[j + 1] - d[j])
        p = z[j] * z[j]
        q = 0.0 if last else z[j + 1] * z[j + 1]
        f = inverse + _evaluate(z, d, d[j] + half, k)[0]
        origin, low, high, start = j, 0.0, half, half
        if f < 0.0 and last:
            low, high = half, 2.0 * half
        elif f < 0.0:
            origin, low, high, start = j + 1, -half, 0.0, -half
        # First guess: all other poles stay what they are half-way.
        x = 0.5 * (low + high) if last else start + _step(f - (q - p) / half, p, q, -half, half, f)
        if not low < x < high:
            x = 0.5 * (low + high)
        pole, near = gap[j], d[origin]
        for i in range(k):
            pole[i] = d[i] - near
        for _ in range(100):  # four or so suffice; bisection is there to fall back on
            f, slope, size = _evaluate(z, pole, x, k)
            f += inverse
            if abs(f) <= EPS * k * (inverse + size):
                break
            if f < 0.0:
                low = x
            else:
                high = x
            # The nearer of the two poles keeps its weight; the other stands for the rest, matching f and slope.
            left = pole[j] - x
            if last:
                step = left * f / (f - left * slope)
            else:
                right = pole[j + 1] - x
                if origin == j:
                    rest = slope - p / (left * left)
                    step = _step(f - p / left - rest * right, p, rest * right * right, left, right, f)
                else:
                    rest = slope - q / (right * right)
                    step = _step(f - q / right - rest * left, rest * left * left, q, left, right, f)
            new = x + step
            if not low < new < high or new == x:
                new = 0.5 * (low + high)
                if new == x or high - low <= EPS * max(abs(low), abs(high)):
                    break
            x = new
        for i in range(k):
            pole[i] -= x
        w[j] = near + x


@sums
def _direction(zhat: Array, pole: Array, v: Array, k: int) -> None:
    """zhat / pole, normalised."""
    norm = 0.0
    for i in range(k):
        v[i] = zhat[i] / pole[i]
        norm += v[i] * v[i]
    norm = 1.0 / np.sqrt(norm)
    for i in range(k):
        v[i] *= norm


@kernel
def vectors(d: Array, z: Array, k: int, gap: Array, zhat: Array, V: Array) -> None:
    """V[j] = the eigenvector of root j."""
    for i in range(k):
        zhat[i] = -gap[i, i]
    for j in range(k):
        pole, at = gap[j], d[j]
        for i in range(j):
            zhat[i] *= pole[i] / (d[i] - at)
        for i in range(j + 1, k):
            zhat[i] *= pole[i] / (d[i] - at)
    for i in range(k):
        zhat[i] = np.sqrt(abs(zhat[i])) * (1.0 if z[i] > 0.0 else -1.0)
    for j in range(k):
        _direction(zhat, gap[j], V[j], k)
