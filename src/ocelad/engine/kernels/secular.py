"""Eigenvalues and eigenvectors of a diagonal matrix plus a rank-one term, by the secular equation.

    diag(d) + z z' = V diag(w) V',       f(w) = 1 + sum_i z_i^2 / (d_i - w) = 0.

Roots are found as offsets from the nearest pole, so that d_i - w_j is known to full relative precision even where
both almost agree, by Gragg's method: c + p / (left - w) + q / (right - w), with poles at the two neighbours, is
made to agree with f in value, slope and curvature, which converges cubically. z is then recomputed from the roots
(Gu and Eisenstat 1994), which makes the eigenvectors orthogonal to working precision however close the roots are.

All roots advance together, each in a lane of its own, and inner loops run over lanes: they become vector
instructions without any sum changing its order, which would cost precision here. Quantities of a lane lie at fixed
distances in one array, so that the compiler knows that they do not overlap.
"""

from __future__ import annotations

import math

import numpy as np

from ...compiled import kernel
from ...protocols import Array, Integers
from .scratch import LANE_ROWS, LANES, NEAREST, NORM, OFFSET, POLE, SQUARE, WEIGHT, ZHAT

EPS = float(np.finfo(np.float64).eps)
ERROR = 1e-14  # of an offset, relative to itself
SHORT = 1e-4  # a step that is longer tells nothing of the error, relative too
ACROSS = 0.625  # the fraction of a gap beyond which a root is told from the other pole
STEPS = 100  # far more than any root has been seen to need

# A lane: the pole that its root is told from, the one on its other side, their weights z^2; the root's offset and
# bounds of it; the sum in f, its slope, half its second derivative; after a step, whether it was the last.
NEAR, OTHER, NEAR_W, OTHER_W, X, LOW, HIGH, VALUE, SLOPE, CURVE = (LANES * row for row in range(LANE_ROWS))
FINISHED = VALUE


@kernel
def _start(lane: Array, lanes: int, total: float, moment: float) -> None:
    """To which of the two poles around it each root is nearer, and a first guess.

    The two have their own weights; all the others are a constant, taken half-way between the two as if those on
    either side stood together where they do on average. On entry NEAR and OTHER are the poles on the left and on
    the right, VALUE and SLOPE the sums of w and of w d on the left of both.
    """
    for m in range(lanes):
        left, right, weight, other = lane[NEAR + m], lane[OTHER + m], lane[NEAR_W + m], lane[OTHER_W + m]
        before, moment_before, gap, both = lane[VALUE + m], lane[SLOPE + m], right - left, weight + other
        half, after = left + 0.5 * gap, total - before - both
        moment_after = moment - moment_before - weight * left - other * right
        below, above = half * before - moment_before, moment_after - half * after
        c = 1.0 - (before * before / below if below > 0.0 else 0.0)
        c += after * after / above if above > 0.0 else 0.0
        across = weight - other > 0.5 * c * gap
        c, near = -c if across else c, other if across else weight
        b = c * gap + both
        root = math.sqrt(max(b * b - 4.0 * c * near * gap, 0.0))
        x = (2.0 * near * gap if b >= 0.0 else b - root) / (b + root if b >= 0.0 else 2.0 * c)
        x = x if (x > 0.0) & (x < gap) else 0.5 * gap
        lane[NEAR + m], lane[OTHER + m] = right if across else left, left if across else right
        lane[NEAR_W + m], lane[OTHER_W + m] = near, weight if across else other
        lane[X + m] = -x if across else x
        lane[LOW + m], lane[HIGH + m] = -gap if across else 0.0, 0.0 if across else gap


@kernel
def _evaluate(d: Array, w: Array, k: int, lane: Array, lanes: int) -> None:
    """The sum of w / (d - root), its slope, and half its second derivative."""
    for m in range(lanes):
        lane[VALUE + m] = lane[SLOPE + m] = lane[CURVE + m] = 0.0
    for i in range(k):
        pole, weight = d[i], w[i]
        for m in range(lanes):
            inverse = 1.0 / ((pole - lane[NEAR + m]) - lane[X + m])
            value = weight * inverse
            slope = value * inverse
            lane[VALUE + m] += value
            lane[SLOPE + m] += slope
            lane[CURVE + m] += slope * inverse


@kernel
def _advance(lane: Array, lanes: int) -> None:
    """The next offset of every lane, and into FINISHED 1 if that was its last step, else 0.

    What is left then is about the cube of the step, both relative to x, times the error, relative too, of the
    weight that the nearest pole has in what f was taken for. Bisection where a step would leave what is known to
    hold the root.
    """
    for m in range(lanes):
        x, f, weight = lane[X + m], 1.0 + lane[VALUE + m], lane[NEAR_W + m]
        away = lane[OTHER + m] - lane[NEAR + m]
        low = x if f < 0.0 else lane[LOW + m]
        high = lane[HIGH + m] if f < 0.0 else x
        near, other = -x, away - x
        p = (lane[CURVE + m] * other - lane[SLOPE + m]) * near / away
        q = lane[SLOPE + m] - p
        c = f - p * near - q * other
        b = c * (near + other) + p * near * near + q * other * other
        e = near * other * f
        root = math.sqrt(max(b * b - 4.0 * c * e, 0.0))
        new = x + (b - root if b <= 0.0 else 2.0 * e) / (2.0 * c if b <= 0.0 else b + root)
        step, size, wrong = abs(new - x), abs(new), abs(p * near * near - weight)
        last = (step <= SHORT * size) & (step * step * step * wrong <= ERROR * size * size * size * weight)
        new = new if last | ((new > low) & (new < high)) else 0.5 * (low + high)
        lane[LOW + m], lane[HIGH + m], lane[X + m] = low, high, new
        lane[FINISHED + m] = 1.0 if last else 0.0


@kernel
def _collect(lane: Array, lanes: int, root: Integers, near: Array, offset: Array) -> int:
    """Write down what has been found, and bring together the lanes that go on; returns how many."""
    going = 0
    for m in range(lanes):
        x, away = lane[X + m], lane[OTHER + m] - lane[NEAR + m]
        if x * away > ACROSS * away * away:  # nearer to the other pole: from now on told from that one
            slack = 4.0 * EPS * abs(away)
            lane[X + m] = x - away if x != away else -EPS * away
            lane[LOW + m] = max(lane[LOW + m] - away - slack, min(-away, 0.0))
            lane[HIGH + m] = min(lane[HIGH + m] - away + slack, max(-away, 0.0))
            lane[NEAR + m], lane[OTHER + m] = lane[OTHER + m], lane[NEAR + m]
            lane[NEAR_W + m], lane[OTHER_W + m] = lane[OTHER_W + m], lane[NEAR_W + m]
            lane[FINISHED + m] = 0.0
        near[root[m]], offset[root[m]] = lane[NEAR + m], lane[X + m]
        if lane[FINISHED + m] == 0.0:
            for row in range(0, VALUE, LANES):
                lane[row + going] = lane[row + m]
            root[going] = root[m]
            going += 1
    return going


@kernel
def roots(vec: Array, k: int, down: bool, lane: Array, root: Integers) -> None:
    """Root j = near[j] + offset[j], for d[0] < ... < d[k-1] and no z[i] = 0, about 1 in all; ascending, or down.

    All are rows of vec. Uses up an entry after the last of d and w.
    """
    d, z, w, near, offset = vec[POLE], vec[WEIGHT], vec[SQUARE], vec[NEAREST], vec[OFFSET]
    before = moment_before = total = moment = 0.0
    for i in range(k):
        w[i] = z[i] * z[i]
        total += w[i]
        moment += w[i] * d[i]
    d[k], w[k] = d[k - 1] + 3.0 * total, 0.0  # a pole of no weight, beyond the last root
    for first in range(0, k, LANES):
        lanes = min(LANES, k - first)
        for m in range(lanes):
            i = first + m
            lane[NEAR + m], lane[OTHER + m], lane[NEAR_W + m], lane[OTHER_W + m] = d[i], d[i + 1], w[i], w[i + 1]
            lane[VALUE + m], lane[SLOPE + m] = before, moment_before
            before += w[i]
            moment_before += w[i] * d[i]
            root[m] = k - 1 - i if down else i
        _start(lane, (lanes + 7) // 8 * 8, total, moment)
        for _ in range(STEPS):
            whole = (lanes + 7) // 8 * 8  # vectors are filled: what is in the lanes beyond does not matter
            _evaluate(d, w, k, lane, whole)
            _advance(lane, whole)
            lanes = _collect(lane, lanes, root, near, offset)
            if lanes == 0:
                break


@kernel
def vectors(vec: Array, k: int, down: bool, row: Integers, V: Array) -> None:
    """Columns of V: the eigenvectors zhat / (d - root), normalised, of what `roots` has left; pole i in row[i]."""
    d, z, near, offset, zhat, norm = vec[POLE], vec[WEIGHT], vec[NEAREST], vec[OFFSET], vec[ZHAT], vec[NORM]
    whole = (k + 7) // 8 * 8  # what is beyond the last does not matter
    for i in range(whole):
        zhat[i], norm[i] = 1.0, 0.0
    for j in range(k):
        # each root beside the pole next to it, which bounds every product of quotients
        root, rest, own = near[j], offset[j], d[k - 1 - j if down else j]
        for i in range(whole):
            gap = d[i] - own
            zhat[i] *= ((d[i] - root) - rest) / (gap if gap != 0.0 else 1.0)
    for i in range(k):
        pole, weight, v = d[i], math.copysign(math.sqrt(abs(zhat[i])), z[i]), V[row[i]]
        for j in range(whole):
            t = weight / ((pole - near[j]) - offset[j])
            v[j] = t
            norm[j] += t * t
    for j in range(whole):
        norm[j] = 1.0 / math.sqrt(norm[j])
    for i in range(k):
        for j in range(whole):
            V[i, j] *= norm[j]
