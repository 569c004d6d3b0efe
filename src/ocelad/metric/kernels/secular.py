"""Eigenvalues and eigenvectors of a diagonal matrix plus a rank-one term, by the secular equation.

    diag(d) + a z z' = V diag(w) V',       F(w) = 1/a + sum_i z_i^2 / (d_i - w) = 0.

Roots are found as offsets from the nearest pole, so that d_i - w_j is known to full relative precision even where
both almost agree, by Gragg's method: c + p / (left - w) + q / (right - w), with poles at the two neighbours, is
made to agree with F in value, slope and curvature, which converges cubically. z is then recomputed from the roots
(Gu and Eisenstat 1994), which makes the eigenvectors orthogonal to working precision however close the roots are.

All roots advance together, each in a lane of its own, so that every inner loop runs over lanes and becomes vector
instructions without any sum changing its order. Lanes come in groups of WIDTH at fixed distances in one array:
then the compiler knows that they do not overlap.
"""

from __future__ import annotations

import numpy as np

from ...learner import Array, Integers
from .codes import STRIDE, WIDTH
from .eight import absolute, eight, load, store
from .jit import apart, kernel

EPS = float(np.finfo(np.float64).eps)
CLOSE = 1e-5  # a relative step so small that the next one, some cube of it, would be lost in rounding
NEAR, X, LOW, HIGH, LEFT, RIGHT, VALUE, SLOPE, CURVE, SIZE = (STRIDE * row for row in range(10))


@kernel
def _whole(lanes: int) -> int:
    """So many that they fill vectors: what is in the lanes beyond does not matter."""
    return (lanes + 3) // 4 * 4


@kernel
def _evaluate(d: Array, z: Array, k: int, lane: Array, lanes: int) -> None:
    """The sum of z^2 / (d - w), its slope, half its second derivative, and the sum of the terms' sizes.

    z[k] is 0, and d[k] no root: where k is odd, they make up a pair.
    """
    one, zero = eight(1.0), eight(0.0)
    for m in range(0, lanes, 8):
        near, x = load(lane, NEAR + m), load(lane, X + m)
        value = size = slope = curve = zero
        for i in range(0, k, 2):  # of two numbers the inverses take one division, which costs most
            weight, weight2 = eight(z[i]), eight(z[i + 1])
            gap, gap2 = (eight(d[i]) - near) - x, (eight(d[i + 1]) - near) - x
            both = one / (gap * gap2)
            r, r2 = gap2 * both, gap * both
            t, t2 = weight * r, weight2 * r2
            p, p2, q, q2 = weight * t, weight2 * t2, t * t, t2 * t2
            value, size = value + (p + p2), size + (absolute(p) + absolute(p2))
            slope, curve = slope + (q + q2), curve + (q * r + q2 * r2)
        store(lane, VALUE + m, value)
        store(lane, SIZE + m, size)
        store(lane, SLOPE + m, slope)
        store(lane, CURVE + m, curve)


@kernel
def _start(lane: Array, lanes: int, inverse: float) -> None:
    """From the values half-way between the poles: to which of them each root is nearer, and a first guess.

    The nearer pole has its own weight, the other one stands for all the rest, matching value and slope. On entry
    LEFT and RIGHT are the weights of the two poles, NEAR and HIGH the poles.
    """
    for m in range(_whole(lanes)):
        half = lane[X + m]
        f = inverse + lane[VALUE + m]
        beyond = f < 0.0
        near = lane[RIGHT + m] if beyond else lane[LEFT + m]
        far = max(lane[SLOPE + m] * half * half - near, 0.0)
        c = (-f if beyond else f) - (far - near) / half
        b = 2.0 * c * half + near + far
        e = 2.0 * near * half
        root = np.sqrt(max(b * b - 4.0 * c * e, 0.0))
        x = (b - root if b <= 0.0 else 2.0 * e) / (2.0 * c if b <= 0.0 else b + root)
        x = x if (x > 0.0) & (x < half) else 0.5 * half
        lane[NEAR + m] = lane[HIGH + m] if beyond else lane[NEAR + m]
        lane[X + m] = -x if beyond else x
        lane[LOW + m] = -half if beyond else 0.0
        lane[HIGH + m] = 0.0 if beyond else half
        lane[LEFT + m] = -2.0 * half if beyond else 0.0
        lane[RIGHT + m] = 0.0 if beyond else 2.0 * half


@kernel
def _advance(lane: Array, lanes: int, inverse: float, noise: float) -> None:
    """The next x of every lane, and into SIZE by how much the step was too long to have been the last.

    Bisection where a step would leave what is known to hold the root.
    """
    for m in range(_whole(lanes)):
        x, f = lane[X + m], inverse + lane[VALUE + m]
        low = x if f < 0.0 else lane[LOW + m]
        high = lane[HIGH + m] if f < 0.0 else x
        left, right = lane[LEFT + m] - x, lane[RIGHT + m] - x
        p = (lane[CURVE + m] * right - lane[SLOPE + m]) * left / (lane[RIGHT + m] - lane[LEFT + m])
        q = lane[SLOPE + m] - p
        c = f - p * left - q * right
        b = c * (left + right) + p * left * left + q * right * right
        e = left * right * f
        root = np.sqrt(max(b * b - 4.0 * c * e, 0.0))
        new = x + (b - root if b <= 0.0 else 2.0 * e) / (2.0 * c if b <= 0.0 else b + root)
        inside = (new > low) & (new < high)
        new = new if inside else 0.5 * (low + high)
        new = x if abs(f) <= noise * (inverse + lane[SIZE + m]) else new
        lane[LOW + m] = low
        lane[HIGH + m] = high
        lane[X + m] = new
        lane[SIZE + m] = abs(new - x) - (CLOSE if inside else EPS) * abs(new)


@kernel
def _gather(lane: Array, lanes: int, index: Integers) -> int:
    """Bring the lanes that go on together; returns how many."""
    going = 0
    for m in range(lanes):
        if lane[SIZE + m] > 0.0:
            for row in range(0, VALUE, STRIDE):
                lane[row + going] = lane[row + m]
            index[going] = index[m]
            going += 1
    return going


@kernel
def roots(d: Array, z: Array, a: float, k: int, near: Array, offset: Array, lane: Array, index: Integers) -> None:
    """Root j = near[j] + offset[j], for d[0] < ... < d[k-1], all z[i] != 0 and a > 0. Uses up d[k] and z[k]."""
    apart()
    total = 0.0
    for i in range(k):
        total += z[i] * z[i]
    inverse, noise = 1.0 / a, EPS * k
    d[k], z[k] = d[k - 1] + 3.0 * a * total, 0.0  # a pole of no weight: the last root is like the others
    for first in range(0, k, WIDTH):
        lanes = min(WIDTH, k - first)
        for m in range(lanes):
            lane[NEAR + m] = d[first + m]
            lane[X + m] = 0.5 * (d[first + m + 1] - d[first + m])
            lane[HIGH + m] = d[first + m + 1]
            lane[LEFT + m] = z[first + m] * z[first + m]
            lane[RIGHT + m] = z[first + m + 1] * z[first + m + 1]
            index[m] = first + m
        _evaluate(d, z, k, lane, lanes)
        _start(lane, lanes, inverse)
        for step in range(100):
            _evaluate(d, z, k, lane, lanes)
            _advance(lane, lanes, inverse, noise)
            if step == 0:
                continue  # two steps are for all
            for m in range(lanes):
                near[index[m]], offset[index[m]] = lane[NEAR + m], lane[X + m]
            lanes = _gather(lane, lanes, index)
            if lanes == 0:
                break


@kernel
def vectors(d: Array, z: Array, k: int, near: Array, offset: Array, zhat: Array, V: Array) -> None:
    """The eigenvector of root j, as `roots` has left it, is column j of V, kept as V[j // WIDTH, i, j % WIDTH]."""
    apart()
    rows = _whole(k)
    for i in range(rows):
        zhat[i] = 1.0
    for j in range(0, k - 1, 2):  # two at a time: divisions cost most
        pole, at, x = d[j], near[j], offset[j]
        pole2, at2, x2 = d[j + 1], near[j + 1], offset[j + 1]
        for i in range(rows):
            below = d[i] - pole if i != j else -1.0
            below2 = d[i] - pole2 if i != j + 1 else -1.0
            zhat[i] *= (((d[i] - at) - x) * ((d[i] - at2) - x2)) / (below * below2)
    if k % 2 == 1:
        pole, at, x = d[k - 1], near[k - 1], offset[k - 1]
        for i in range(rows):
            zhat[i] *= ((d[i] - at) - x) / (d[i] - pole if i != k - 1 else -1.0)
    for i in range(k):
        zhat[i] = np.sqrt(abs(zhat[i])) * (1.0 if z[i] > 0.0 else -1.0)
    zhat[k] = 0.0
    for first in range(0, k, WIDTH):
        _columns(d, zhat, k, near[first:], offset[first:], min(WIDTH, k - first), V[first // WIDTH])


@kernel
def _columns(d: Array, zhat: Array, k: int, near: Array, offset: Array, lanes: int, V: Array) -> None:
    """Up to WIDTH columns zhat / (d - w), normalised; the row after the last of V is for their lengths."""
    lanes = _whole(lanes)
    norm = V[V.shape[0] - 1]
    for m in range(lanes):
        norm[m] = 0.0
    for i in range(0, k, 2):
        pole, weight, v, pole2, weight2, v2 = d[i], zhat[i], V[i], d[i + 1], zhat[i + 1], V[i + 1]
        for m in range(lanes):
            gap, gap2 = (pole - near[m]) - offset[m], (pole2 - near[m]) - offset[m]
            both = 1.0 / (gap * gap2)
            t, t2 = weight * (gap2 * both), weight2 * (gap * both)
            v[m] = t
            v2[m] = t2
            norm[m] += t * t + t2 * t2
    for m in range(lanes):
        norm[m] = 1.0 / np.sqrt(norm[m])
    for i in range(k):
        v = V[i]
        for m in range(lanes):
            v[m] *= norm[m]
