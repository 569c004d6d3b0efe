"""The straight line from comparisons to metrics: Algorithm 2 over a stack of factored learners, in one call.

    u, y -> one margin per level -> losses -> weights -> COMID step reusing the margins -> open levels.

The stack is a few arrays with an entry per slot; ``order[level]`` is the slot of a level, so that re-opening
levels moves no matrix. Slot 0 holds the origin. For large n a learner's columns are combinations of a dictionary.
"""

from __future__ import annotations

import numpy as np

from ...learner import Array, Integers
from ..losses import TIE
from . import combine
from .codes import (
    BASE,
    CAPPED,
    CHANCE,
    CLOCK,
    COUNT,
    DEBT,
    DIFFERENCE,
    DISCARDED,
    EVERY,
    FIXED_SHARE,
    GOES_ON,
    HINGE,
    LOSS,
    MAX_RANK,
    MU,
    NONZERO,
    ORDER,
    RANK,
    RATE,
    RESET,
    RESIDUAL,
    RULE,
    SECOND,
    SHARE,
    SIGMA,
    SPARE,
    SQUARED_HINGE,
    STEP,
    STRENGTH,
    THRESHOLD_STEP,
    TOUCHED,
    N,
)
from .dictionary import compress, touch, widen
from .factored import distance, extend, project, rank_one, shrink, truncate
from .jit import kernel
from .layout import Scratch, Stack, arrays
from .levels import opening, room_for, shift, watch

READING = 4  # what it costs to read a number of a dictionary, in multiplications
TIDY = 1024  # steps between two looks at the columns


@kernel
def margin_loss(kind: int, m: float) -> tuple[float, float]:
    """A margin loss and its slope."""
    if kind == HINGE:
        return (1.0 - m, -1.0) if m < 1.0 else (0.0, 0.0)
    if kind == SQUARED_HINGE:
        short = max(0.0, 1.0 - m)
        return short * short, -2.0 * short
    decay = np.exp(-abs(m))
    return max(-m, 0.0) + np.log1p(decay), -(1.0 if m < 0.0 else decay) / (1.0 + decay)


@kernel
def margin(y: float, mu: float, d2: float) -> float:
    m = y * (mu - d2)
    return 1.0 if abs(1.0 - m) <= TIE * (1.0 + mu + d2) else m


@kernel
def judge(y: float, square: float, rows: Integers, count: int, stack: Stack, scratch: Scratch) -> None:
    """Every level's loss; its projection of u, slope and squared distance stay in Z for the step."""
    E, F, S, scalars, meta, losses, _, options, _ = stack
    vec, Z, G, _, _, _, index = scratch
    u, every, room = vec[DIFFERENCE], index[EVERY], S.shape[1]
    for j in range(meta[CLOCK, 1]):
        slot, z = meta[ORDER, j], Z[j]
        r, m = meta[RANK, slot], meta[COUNT, slot]
        if F.shape[1] > 0:
            project(E[slot], m, u, rows, count, G)
            project(F[slot], r, G, every, m, z)
        else:
            project(E[slot], r, u, rows, count, z)
        d2 = distance(S[slot], r, scalars[slot, SIGMA], z, square)
        losses[j], z[room] = margin_loss(int(options[LOSS]), margin(y, scalars[slot, MU], d2))
        z[room + 1] = d2


@kernel
def effective_step(step: float, slope: float, loss: float, square: float, options: Array) -> float:
    """As `Descent.effective_step` has it."""
    steepness = square * square + options[THRESHOLD_STEP]
    if options[LOSS] == SQUARED_HINGE and slope != 0.0 and steepness > 0.0:
        step = min(step, 0.5 / steepness)
    if options[CAPPED] > 0.0:
        steepness *= slope * slope
        step = min(step, loss / steepness) if steepness > 0.0 else 0.0
    return step


@kernel
def learn(y: float, square: float, rows: Integers, count: int, stack: Stack, scratch: Scratch) -> None:
    """One COMID step of every level, after `judge`."""
    E, F, S, scalars, meta, losses, _, options, features = stack
    vec, Z, _, lane, V, out, index = scratch
    n, u, room, most = int(options[N]), vec[DIFFERENCE], S.shape[1], int(options[MAX_RANK])
    span = 0.5 * options[BASE]
    for j in range(meta[CLOCK, 1]):
        span *= 2.0
        slot, z, slope = meta[ORDER, j], Z[j], Z[j, room]
        r, m, sigma, s = meta[RANK, slot], meta[COUNT, slot], scalars[slot, SIGMA], S[slot]
        deferred = F.shape[1] > 0
        Q = F[slot] if deferred else E[slot]
        height = m if deferred else n
        step = effective_step(options[STEP] / np.sqrt(span), slope, losses[j], square, options)
        tau = step * options[STRENGTH]
        active = slope != 0.0 and square > 0.0 and step > 0.0
        touched = meta[TOUCHED, slot]
        if deferred:
            scalars[slot, DEBT] += float(m - r) * (READING * count + (r * r if active else 0))
            if m > r and (m >= 2 * r + SPARE or m == n or scalars[slot, DEBT] > float(r) * m * touched):
                compress(E[slot], m, Q, r, features[slot], touched, V, out, index)
                m, height, scalars[slot, DEBT] = r, r, 0.0
        if active:
            before = r
            if r < n and deferred:
                if touched < n:
                    touched = touch(features[slot], touched, rows, count)
                    meta[TOUCHED, slot] = touched
                r, m = widen(E[slot], m, Q, r, u, square, rows, count, z, features[slot], touched, vec, index)
                height = m
            elif r < n:
                r = extend(Q, n, r, u, square, z, index[EVERY], vec[RESIDUAL], vec[SECOND])
            if r > before:
                s[before] = sigma
            rank_one(Q, height, s, r, z, step * y * slope, vec, lane, V, out, index)
        r, sigma = shrink(Q, height, s, r, sigma, tau)
        if r > most:
            r, discarded = truncate(Q, height, s, r, sigma, most)
            scalars[slot, DISCARDED] += discarded
        meta[RANK, slot], meta[COUNT, slot], scalars[slot, SIGMA] = r, m, sigma
        scalars[slot, MU] = max(1.0, scalars[slot, MU] - options[THRESHOLD_STEP] * step * y * slope)


# What Python calls


@kernel
def run(values: Array, start: Integers, feature: Integers, y: Array, where: Integers) -> int:
    """Learn a block of comparisons; returns how many were learned before the arrays became too small.

    The differences are in ``values`` one after the other; if sparse, the nonzeros of number i are those at
    start[i], ..., start[i + 1] - 1, and ``feature`` says of which features; if not, both are empty.
    """
    stack, scratch = arrays(where)
    scalars, meta, losses, state, options = stack[3], stack[4], stack[5], stack[6], stack[7]
    u, p, Z, index = scratch[0][DIFFERENCE], scratch[0][CHANCE], scratch[1], scratch[6]
    base, rule, n, room = int(options[BASE]), int(options[RULE]), int(options[N]), Z.shape[1] - 8
    sparse = start.shape[0] > 0
    rows, count = (index[NONZERO], 0) if sparse else (index[EVERY], n)
    for e in range(u.shape[0]):
        u[e] = 0.0
    for i in range(y.shape[0]):
        levels, opens = meta[CLOCK, 1], opening(base + meta[CLOCK, 0] + 1, base)
        if not room_for(opens, stack):
            return i
        at = i * n
        if sparse:
            for k in range(count):
                u[rows[k]] = 0.0
            at, count = start[i], start[i + 1] - start[i]
            for k in range(count):
                rows[k] = feature[at + k]
        square = 0.0
        for k in range(count):
            u[rows[k]] = values[at + k]
            square += values[at + k] * values[at + k]

        judge(y[i], square, rows, count, stack, scratch)
        mixed = 0.0
        if rule != FIXED_SHARE:
            combine.probabilities(state, levels, p)
            mu = d2 = 0.0
            for j in range(levels):
                mu += p[j] * scalars[meta[ORDER, j], MU]
                d2 += p[j] * Z[j, room + 1]
            mixed = margin_loss(int(options[LOSS]), margin(y[i], mu, d2))[0]
        combine.update(rule, state, losses, levels, p, mixed, options[RATE], options[SHARE])
        learn(y[i], square, rows, count, stack, scratch)
        combine.reopen(rule, state, levels, opens, base, options[RESET] > 0.0)
        if opens > levels:
            losses[levels] = np.nan
        shift(stack, opens, options[GOES_ON] > 0.0)
        meta[CLOCK, 0] += 1
        if meta[CLOCK, 0] % TIDY == 0:
            watch(stack, scratch)
    return y.shape[0]


@kernel
def open_levels(count: int, t: int, where: Integers) -> bool:
    """Open levels 0, ..., count - 1 at time t, if there is room for them."""
    stack, scratch = arrays(where)
    if not room_for(count, stack):
        return False
    shift(stack, count, stack[7][GOES_ON] > 0.0)
    stack[4][CLOCK, 0] = t
    if t % TIDY == 0:
        watch(stack, scratch)
    return True


@kernel
def one(u: Array, y: float, where: Integers, learns: bool) -> None:
    """Judge a comparison at every level, and learn it."""
    stack, scratch = arrays(where)
    square, n = 0.0, u.shape[0]
    for e in range(n):
        scratch[0][DIFFERENCE, e] = u[e]
        square += u[e] * u[e]
    judge(y, square, scratch[6][EVERY], n, stack, scratch)
    if learns:
        learn(y, square, scratch[6][EVERY], n, stack, scratch)
