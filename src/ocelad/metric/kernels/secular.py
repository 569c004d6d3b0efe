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
    """The sum of z^2 / (d - w), its slope, half its second derivative, and the sum of the terms' sizes."""
    lanes = _whole(lanes)
    for m in range(lanes):
        lane[VALUE + m] = 0.0
        lane[SLOPE + m] = 0.0
        lane[CURVE + m] = 0.0
        lane[SIZE + m] = 0.0
    for i in range(k):
        pole, weight = d[i], z[i]
        for m in range(lanes):
            r = 1.0 / ((pole - lane[NEAR + m]) - lane[X + m])
            t = weight * r
            lane[VALUE + m] += weight * t
            lane[SIZE + m] += abs(weight * t)
            lane[SLOPE + m] += t * t
            lane[CURVE + m] += t * t * r


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
    """The eigenvector of root j is column j of V, which is kept as V[j // WIDTH, i, j % WIDTH]."""
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
    for first in range(0, k, WIDTH):
        _columns(d, zhat, k, near[first:], offset[first:], min(WIDTH, k - first), V[first // WIDTH])


@kernel
def _columns(d: Array, zhat: Array, k: int, near: Array, offset: Array, lanes: int, V: Array) -> None:
    """Up to WIDTH columns zhat / (d - w), normalised; the row after the last of V is for their lengths."""
    lanes = _whole(lanes)
    norm = V[V.shape[0] - 1]
    for m in range(lanes):
        norm[m] = 0.0
    for i in range(k):
        pole, weight, v = d[i], zhat[i], V[i]
        for m in range(lanes):
            t = weight / ((pole - near[m]) - offset[m])
            v[m] = t
            norm[m] += t * t
    for m in range(lanes):
        norm[m] = 1.0 / np.sqrt(norm[m])
    for i in range(k):
        v = V[i]
        for m in range(lanes):
            v[m] *= norm[m]
