"""Eigenvalues and eigenvectors of a diagonal matrix plus a rank-one term, by the secular equation.

    diag(d) + z z' = V diag(w) V',       F(w) = 1 + sum_i z_i^2 / (d_i - w) = 0.

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
from .eight import Eight, absolute, eight, load, nonzero, plus, root, store
from .jit import apart, kernel

EPS = float(np.finfo(np.float64).eps)
ERROR = 1e-14  # of an offset, relative to itself
SHORT = 1e-4  # a step that is longer tells nothing of the error, relative too
NEAR, X, LOW, HIGH, LEFT, RIGHT, INVERSE, WEIGHT, VALUE, SLOPE, CURVE = (STRIDE * row for row in range(11))
AHEAD = VALUE  # in the end, whether there is another step

Sums = tuple[Eight, Eight, Eight]


@kernel
def _whole(lanes: int) -> int:
    """So many that they fill vectors: what is in the lanes beyond does not matter."""
    return (lanes + 3) // 4 * 4


@kernel
def _inverses(d: Array, i: int, near: Eight, x: Eight) -> tuple[Eight, Eight, Eight, Eight]:
    """1 / (d - w) for four poles from i on. Divisions cost most: of four numbers the inverses take one."""
    gap, gap2 = (eight(d[i]) - near) - x, (eight(d[i + 1]) - near) - x
    gap3, gap4 = (eight(d[i + 2]) - near) - x, (eight(d[i + 3]) - near) - x
    first, last = gap * gap2, gap3 * gap4
    all_four = eight(1.0) / (first * last)
    first, last = last * all_four, first * all_four
    return gap2 * first, gap * first, gap4 * last, gap3 * last


@kernel
def _term(z: float, r: Eight, sums: Sums) -> Sums:
    weight = eight(z)
    t = weight * r
    square = t * t
    return plus(sums[0], weight, t), sums[1] + square, plus(sums[2], square, r)


@kernel
def _evaluate(d: Array, z: Array, k: int, lane: Array, lanes: int) -> None:
    """The sum of z^2 / (d - w), its slope, and half its second derivative."""
    zero = eight(0.0)
    for m in range(0, lanes, 8):
        near, x = load(lane, NEAR + m), load(lane, X + m)
        sums = (zero, zero, zero)
        for i in range(0, k, 4):
            r = _inverses(d, i, near, x)
            sums = _term(z[i], r[0], sums)
            sums = _term(z[i + 1], r[1], sums)
            sums = _term(z[i + 2], r[2], sums)
            sums = _term(z[i + 3], r[3], sums)
        store(lane, VALUE + m, sums[0])
        store(lane, SLOPE + m, sums[1])
        store(lane, CURVE + m, sums[2])


@kernel
def _start(lane: Array, lanes: int) -> None:
    """From the values half-way between the poles: to which of them each root is nearer, and a first guess.

    The nearer pole has its own weight; for all the rest one pole stands, wherever it matches value, slope and
    curvature, which is not nearer than those it stands for. On entry LEFT and RIGHT are the weights of the two
    poles, NEAR and HIGH the poles. The rest is g - slope y / (1 + h y) at half - y.
    """
    for m in range(_whole(lanes)):
        half, f, left, right = lane[X + m], 1.0 + lane[VALUE + m], lane[LEFT + m], lane[RIGHT + m]
        inverse, beyond, pole, next_pole = 1.0 / half, f < 0.0, lane[NEAR + m], lane[HIGH + m]
        weight = right if beyond else left
        share = weight * inverse
        g = (-f if beyond else f) + share
        slope = max(lane[SLOPE + m] - share * inverse, 0.0)
        curve = (-lane[CURVE + m] if beyond else lane[CURVE + m]) + share * inverse * inverse
        h = min(max(curve / slope, -inverse), inverse)
        a = slope - g * h
        c = weight * (1.0 + h * half)
        b = g * (1.0 + h * half) + weight * h - slope * half
        root = np.sqrt(max(b * b + 4.0 * a * c, 0.0))
        x = (2.0 * c if b >= 0.0 else root - b) / (b + root if b >= 0.0 else 2.0 * a)
        x = x if (x > 0.0) & (x < half) else 0.5 * half
        lane[NEAR + m] = next_pole if beyond else pole
        lane[X + m] = -x if beyond else x
        lane[LOW + m] = -half if beyond else 0.0
        lane[HIGH + m] = 0.0 if beyond else half
        lane[LEFT + m] = -2.0 * half if beyond else 0.0
        lane[RIGHT + m] = 0.0 if beyond else 2.0 * half
        lane[INVERSE + m] = 0.5 * inverse
        lane[WEIGHT + m] = weight


@kernel
def _advance(lane: Array, lanes: int) -> None:
    """The next x of every lane, and into AHEAD 0 if that was its last step, else 1.

    What is left then is about the cube of the step, both relative to x, times the error, relative too, of the
    weight that the nearest pole has in what F was taken for. Bisection where a step would leave what is known to
    hold the root.
    """
    for m in range(_whole(lanes)):
        x, f = lane[X + m], 1.0 + lane[VALUE + m]
        low = x if f < 0.0 else lane[LOW + m]
        high = lane[HIGH + m] if f < 0.0 else x
        left, right = lane[LEFT + m] - x, lane[RIGHT + m] - x
        p = (lane[CURVE + m] * right - lane[SLOPE + m]) * left * lane[INVERSE + m]
        q = lane[SLOPE + m] - p
        c = f - p * left - q * right
        b = c * (left + right) + p * left * left + q * right * right
        e = left * right * f
        root = np.sqrt(max(b * b - 4.0 * c * e, 0.0))
        new = x + (b - root if b <= 0.0 else 2.0 * e) / (2.0 * c if b <= 0.0 else b + root)
        step, size, weight = abs(new - x), abs(new), lane[WEIGHT + m]
        wrong = abs((p * left * left if lane[LEFT + m] == 0.0 else q * right * right) - weight)
        last = (step <= SHORT * size) & (step * step * step * wrong <= ERROR * size * size * size * weight)
        new = new if last | ((new > low) & (new < high)) else 0.5 * (low + high)
        lane[LOW + m] = low
        lane[HIGH + m] = high
        lane[X + m] = new
        lane[AHEAD + m] = 0.0 if last else 1.0


@kernel
def _gather(lane: Array, lanes: int, index: Integers) -> int:
    """Bring the lanes that go on together; returns how many."""
    going = 0
    for m in range(lanes):
        if lane[AHEAD + m] > 0.0:
            for row in range(0, VALUE, STRIDE):
                lane[row + going] = lane[row + m]
            index[going] = index[m]
            going += 1
    return going


@kernel
def roots(
    d: Array, z: Array, k: int, down: bool, near: Array, offset: Array, lane: Array, index: Integers
) -> None:
    """Root j = near[j] + offset[j], for d[0] < ... < d[k-1], all z[i] != 0, neither large nor tiny altogether.

    Roots ascend, or go down; beyond them are other numbers that are not poles. Uses up four entries after the last
    of d and z, and eight after those of near and offset.
    """
    apart()
    total = 0.0
    for i in range(k):
        total += z[i] * z[i]
    for i in range(k, k + 4):  # poles of no weight: the last root is like the others, and four at a time all there
        d[i], z[i] = d[k - 1] + 3.0 * total, 0.0
    for first in range(0, k, WIDTH):
        lanes = min(WIDTH, k - first)
        for m in range(0, lanes, 8):
            left, right = load(d, first + m), load(d, first + m + 1)
            weight, next_weight = load(z, first + m), load(z, first + m + 1)
            store(lane, NEAR + m, left)
            store(lane, X + m, eight(0.5) * (right - left))
            store(lane, HIGH + m, right)
            store(lane, LEFT + m, weight * weight)
            store(lane, RIGHT + m, next_weight * next_weight)
        for m in range(lanes):
            index[m] = k - 1 - first - m if down else first + m
        _evaluate(d, z, k, lane, lanes)
        _start(lane, lanes)
        for step in range(100):
            _evaluate(d, z, k, lane, lanes)
            _advance(lane, lanes)
            if step == 0:
                continue  # two steps are for all
            for m in range(lanes):
                near[index[m]], offset[index[m]] = lane[NEAR + m], lane[X + m]
            lanes = _gather(lane, lanes, index)
            if lanes == 0:
                break
    for j in range(k, k + 8):
        near[j], offset[j] = d[k], total


@kernel
def vectors(d: Array, z: Array, k: int, near: Array, offset: Array, zhat: Array, V: Array) -> None:
    """The eigenvector of root j, as `roots` has left it, is column j of V, kept as V[j // WIDTH, i, j % WIDTH]."""
    apart()
    for i in range(0, k, 8):
        pole, square = load(d, i), eight(1.0)
        for first in range(0, k, 8):
            above = below = eight(1.0)
            for j in range(first, min(first + 8, k)):
                above = above * ((pole - eight(near[j])) - eight(offset[j]))
                below = below * nonzero(pole - eight(d[j]))  # 0 is but that of a pole from itself
            square = square * (above / below)
        store(zhat, i, root(absolute(square)))
    for i in range(k):
        zhat[i] = zhat[i] if z[i] > 0.0 else -zhat[i]
    for i in range(k, k + 4):
        zhat[i] = 0.0
    for first in range(0, k, WIDTH):
        _columns(d, zhat, k, near[first:], offset[first:], min(WIDTH, k - first), V[first // WIDTH])


@kernel
def _columns(d: Array, zhat: Array, k: int, near: Array, offset: Array, lanes: int, V: Array) -> None:
    """Up to WIDTH columns zhat / (d - w), normalised."""
    for m in range(0, lanes, 8):
        at, x, norm = load(near, m), load(offset, m), eight(0.0)
        for i in range(0, k, 4):
            r = _inverses(d, i, at, x)
            norm = _entry(V, i, m, zhat[i], r[0], norm)
            norm = _entry(V, i + 1, m, zhat[i + 1], r[1], norm)
            norm = _entry(V, i + 2, m, zhat[i + 2], r[2], norm)
            norm = _entry(V, i + 3, m, zhat[i + 3], r[3], norm)
        scale = eight(1.0) / root(norm)
        for i in range(k):
            store(V, (i, m), load(V, (i, m)) * scale)


@kernel
def _entry(V: Array, i: int, m: int, weight: float, r: Eight, norm: Eight) -> Eight:
    t = eight(weight) * r
    store(V, (i, m), t)
    return plus(norm, t, t)
