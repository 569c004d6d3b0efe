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

from collections.abc import Callable

import numpy as np

from ...protocols import Array, Integers
from .codes import LANE_ROWS, STRIDE, WIDTH
from .eight import ROOMY, Eight, absolute, any_less, eight, load, nonzero, plus, root, spread, store
from .jit import apart, kernel, sums

EPS = float(np.finfo(np.float64).eps)
ERROR = 1e-14  # of an offset, relative to itself
SHORT = 1e-4  # a step that is longer tells nothing of the error, relative too
ACROSS = 0.625  # so much of a gap away, a root is to be told from the other pole
NEAR, X, LOW, HIGH, AWAY, INVERSE, WEIGHT, OTHER, BEYOND, VALUE, SLOPE, CURVE = (
    STRIDE * row for row in range(LANE_ROWS)
)
AHEAD = VALUE  # in the end, whether there is another step

Sums = tuple[Eight, Eight, Eight]


@kernel
def _whole(lanes: int) -> int:
    """So many that they fill vectors: what is in the lanes beyond does not matter."""
    return (lanes + 3) // 4 * 4


@kernel
def _two_inverses(d: Array, i: int, near: Eight, x: Eight) -> tuple[Eight, Eight]:
    """1 / (d - w) for two poles from i on. Divisions cost most: of two numbers the inverses take one."""
    gap, gap2 = (spread(d, i) - near) - x, (spread(d, i + 1) - near) - x
    both = eight(1.0) / (gap * gap2)
    return gap2 * both, gap * both


@kernel
def _four_inverses(d: Array, i: int, near: Eight, x: Eight) -> tuple[Eight, Eight, Eight, Eight]:
    """The same for four."""
    gap, gap2 = (spread(d, i) - near) - x, (spread(d, i + 1) - near) - x
    gap3, gap4 = (spread(d, i + 2) - near) - x, (spread(d, i + 3) - near) - x
    first, last = gap * gap2, gap3 * gap4
    all_four = eight(1.0) / (first * last)
    first, last = last * all_four, first * all_four
    return gap2 * first, gap * first, gap4 * last, gap3 * last


# where registers have no room for four, two are faster
TOGETHER = 4 if ROOMY else 2
_inverses: Callable[..., tuple[Eight, ...]] = _four_inverses if ROOMY else _two_inverses


@kernel
def _term(w: Array, i: int, r: Eight, sums: Sums) -> Sums:
    t = spread(w, i) * r
    slope = t * r
    return sums[0] + t, sums[1] + slope, plus(sums[2], slope, r)


@kernel
def _evaluate(d: Array, w: Array, k: int, lane: Array, lanes: int) -> None:
    """The sum of z^2 / (d - w), its slope, and half its second derivative."""
    zero = eight(0.0)
    for m in range(0, lanes, 8):
        near, x = load(lane, NEAR + m), load(lane, X + m)
        sums = (zero, zero, zero)
        for i in range(0, k, TOGETHER):
            r = _inverses(d, i, near, x)
            sums = _term(w, i, r[0], sums)
            sums = _term(w, i + 1, r[1], sums)
            if ROOMY:
                sums = _term(w, i + 2, r[2], sums)
                sums = _term(w, i + 3, r[3], sums)
        store(lane, VALUE + m, sums[0])
        store(lane, SLOPE + m, sums[1])
        store(lane, CURVE + m, sums[2])


@kernel
def _start(lane: Array, lanes: int, total: float, moment: float) -> None:
    """To which of the two poles around it each root is nearer, and a first guess.

    The two have their own weights; all the others are a constant, taken half-way between the two as if those on
    either side stood together where they do on average. On entry NEAR and OTHER are the poles on the left and on
    the right, WEIGHT and BEYOND their weights, VALUE and SLOPE the sums of w and of w d on the left of both.
    """
    for m in range(_whole(lanes)):
        left, right, weight, next_weight = lane[NEAR + m], lane[OTHER + m], lane[WEIGHT + m], lane[BEYOND + m]
        before, sum_before, gap = lane[VALUE + m], lane[SLOPE + m], right - left
        half, both = left + 0.5 * gap, weight + next_weight
        after, sum_after = total - before - both, moment - sum_before - weight * left - next_weight * right
        below, above = half * before - sum_before, sum_after - half * after
        c = (
            1.0
            - (before * before / below if below > 0.0 else 0.0)
            + (after * after / above if above > 0.0 else 0.0)
        )
        across = weight - next_weight > 0.5 * c * gap
        c = -c if across else c
        near = next_weight if across else weight
        b = c * gap + both
        root = np.sqrt(max(b * b - 4.0 * c * near * gap, 0.0))
        x = (2.0 * near * gap if b >= 0.0 else b - root) / (b + root if b >= 0.0 else 2.0 * c)
        x = x if (x > 0.0) & (x < gap) else 0.5 * gap
        away = -gap if across else gap
        lane[NEAR + m], lane[OTHER + m] = right if across else left, left if across else right
        lane[WEIGHT + m], lane[BEYOND + m] = near, weight if across else next_weight
        lane[X + m] = -x if across else x
        lane[LOW + m], lane[HIGH + m] = min(away, 0.0), max(away, 0.0)
        lane[AWAY + m], lane[INVERSE + m] = away, 1.0 / away


@kernel
def _advance(lane: Array, lanes: int) -> None:
    """The next x of every lane, and into AHEAD 0 if that was its last step, else 1.

    What is left then is about the cube of the step, both relative to x, times the error, relative too, of the
    weight that the nearest pole has in what F was taken for. Bisection where a step would leave what is known to
    hold the root.
    """
    for m in range(_whole(lanes)):
        x, f, away, weight = lane[X + m], 1.0 + lane[VALUE + m], lane[AWAY + m], lane[WEIGHT + m]
        low = x if f < 0.0 else lane[LOW + m]
        high = lane[HIGH + m] if f < 0.0 else x
        near, other = -x, away - x
        p = (lane[CURVE + m] * other - lane[SLOPE + m]) * near * lane[INVERSE + m]
        q = lane[SLOPE + m] - p
        c = f - p * near - q * other
        b = c * (near + other) + p * near * near + q * other * other
        e = near * other * f
        root = np.sqrt(max(b * b - 4.0 * c * e, 0.0))
        new = x + (b - root if b <= 0.0 else 2.0 * e) / (2.0 * c if b <= 0.0 else b + root)
        step, size, wrong = abs(new - x), abs(new), abs(p * near * near - weight)
        last = (step <= SHORT * size) & (step * step * step * wrong <= ERROR * size * size * size * weight)
        new = new if last | ((new > low) & (new < high)) else 0.5 * (low + high)
        lane[LOW + m] = low
        lane[HIGH + m] = high
        lane[X + m] = new
        lane[AHEAD + m] = 0.0 if last else 1.0


@kernel
def _change_sides(lane: Array, lanes: int) -> None:
    """Roots that have turned out to be nearer to the other pole are told from that one."""
    for first in range(0, lanes, 8):
        if any_less(eight(ACROSS), load(lane, X + first) * load(lane, INVERSE + first)):
            for m in range(first, min(first + 8, lanes)):
                if lane[X + m] * lane[INVERSE + m] > ACROSS:
                    away, x = lane[AWAY + m], lane[X + m] - lane[AWAY + m]
                    slack = 4.0 * EPS * abs(away)
                    lane[LOW + m] = max(lane[LOW + m] - away - slack, min(-away, 0.0))
                    lane[HIGH + m] = min(lane[HIGH + m] - away + slack, max(-away, 0.0))
                    lane[X + m] = x if x != 0.0 else -EPS * away
                    lane[NEAR + m], lane[OTHER + m] = lane[OTHER + m], lane[NEAR + m]
                    lane[WEIGHT + m], lane[BEYOND + m] = lane[BEYOND + m], lane[WEIGHT + m]
                    lane[AWAY + m], lane[INVERSE + m] = -away, -lane[INVERSE + m]
                    lane[AHEAD + m] = 1.0


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


@sums
def _totals(d: Array, w: Array, k: int) -> tuple[float, float]:
    total = moment = 0.0
    for i in range(k):
        total += w[i]
        moment += w[i] * d[i]
    return total, moment


@kernel
def roots(
    d: Array, w: Array, k: int, down: bool, near: Array, offset: Array, lane: Array, index: Integers
) -> None:
    """Root j = near[j] + offset[j], for d[0] < ... < d[k-1], all w[i] = z[i]^2 > 0, neither large nor tiny in all.

    Roots ascend, or go down; beyond them are other numbers that are not poles. Uses up four entries after the last
    of d and w, and eight after those of near and offset.
    """
    apart()
    before, sum_before, (total, moment) = 0.0, 0.0, _totals(d, w, k)
    for i in range(k, k + 4):  # poles of no weight: the last root is like the others, and four at a time all there
        d[i], w[i] = d[k - 1] + 3.0 * total, 0.0
    for first in range(0, k, WIDTH):
        lanes = min(WIDTH, k - first)
        for m in range(0, lanes, 8):
            store(lane, NEAR + m, load(d, first + m))
            store(lane, OTHER + m, load(d, first + m + 1))
            store(lane, WEIGHT + m, load(w, first + m))
            store(lane, BEYOND + m, load(w, first + m + 1))
        for m in range(lanes):
            lane[VALUE + m], lane[SLOPE + m] = before, sum_before
            before += w[first + m]
            sum_before += w[first + m] * d[first + m]
            index[m] = k - 1 - first - m if down else first + m
        _start(lane, lanes, total, moment)
        for step in range(100):
            _evaluate(d, w, k, lane, lanes)
            _advance(lane, lanes)
            _change_sides(lane, lanes)
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
def vectors(d: Array, z: Array, k: int, down: bool, near: Array, offset: Array, zhat: Array, V: Array) -> None:
    """The eigenvector of root j, as `roots` has left it, is column j of V, kept as V[j // WIDTH, i, j % WIDTH]."""
    apart()
    for i in range(0, k, 8):
        pole, square = load(d, i), eight(1.0)
        for first in range(0, k, 8):
            above = below = eight(1.0)
            for j in range(first, min(first + 8, k)):
                above = above * ((pole - spread(near, j)) - spread(offset, j))
                own = k - 1 - j if down else j  # the pole next to this root: else quotients are beyond numbers
                below = below * nonzero(pole - spread(d, own))  # 0 is but that of a pole from itself
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
        for i in range(0, k, TOGETHER):
            r = _inverses(d, i, at, x)
            norm = _entry(V, i, m, zhat, r[0], norm)
            norm = _entry(V, i + 1, m, zhat, r[1], norm)
            if ROOMY:
                norm = _entry(V, i + 2, m, zhat, r[2], norm)
                norm = _entry(V, i + 3, m, zhat, r[3], norm)
        scale = eight(1.0) / root(norm)
        for i in range(k):
            store(V, (i, m), load(V, (i, m)) * scale)


@kernel
def _entry(V: Array, i: int, m: int, zhat: Array, r: Eight, norm: Eight) -> Eight:
    t = spread(zhat, i) * r
    store(V, (i, m), t)
    return plus(norm, t, t)
