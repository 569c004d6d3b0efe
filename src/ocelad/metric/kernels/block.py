"""The straight line from comparisons to metrics: Algorithm 2 over a stack of factored learners, in one call.

    u, y -> one margin per level -> losses -> weights -> COMID step reusing the margins -> open levels.

The stack is a few arrays with an entry per slot; ``order[level]`` is the slot of a level, so that re-opening
levels moves no matrix. Slot 0 holds the origin. For large n a learner's columns are combinations of a dictionary.
"""

from __future__ import annotations

import numpy as np

from ...learner import Array, Integers
from ..losses import TIE
from . import combine, late
from .codes import (
    BASE,
    CAPPED,
    CHANCE,
    CLOCK,
    COUNT,
    DIFFERENCE,
    DISCARDED,
    EVERY,
    FIXED_SHARE,
    FULL,
    GOES_ON,
    HINGE,
    LEVELS,
    LOSS,
    MAX_RANK,
    MU,
    NONZERO,
    ORDER,
    RANK,
    RATE,
    RECENT,
    RECENTLY,
    RESET,
    RESIDUAL,
    RING,
    RULE,
    SECOND,
    SHARE,
    SIGMA,
    SINCE,
    SQUARED_HINGE,
    STEP,
    STRENGTH,
    THRESHOLD_STEP,
    TIME,
    N,
)
from .dictionary import forget, height, prepare, widen
from .factored import distance, extend, project, rank_one, shrink, truncate
from .jit import Mode, kernel
from .layout import Scratch, Stack, arrays
from .levels import opening, room_for, shift, watch

READING = 8  # what it costs to read a number of a dictionary, in multiplications
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
def judge(
    y: float,
    square: float,
    rows: Integers,
    count: int,
    stack: Stack,
    scratch: Scratch,
    deferred: Mode,
    waiting: Mode,
) -> None:
    """Every level's loss; its projection of u, slope and squared distance stay in Z for the step."""
    E, F, S, scalars, meta, losses, _, options, _, U, L, A = stack
    vec, Z, G, _, _, _, index, _ = scratch
    u, every, room, recently = vec[DIFFERENCE], index[EVERY], S.shape[1], vec[RECENTLY]
    if deferred is not None:
        if meta[CLOCK, RECENT] == RING:
            forget(stack, scratch)
        project(U, meta[CLOCK, RECENT], u, rows, count, recently)
    for j in range(meta[CLOCK, LEVELS]):
        slot, z = meta[ORDER, j], Z[j]
        r = meta[RANK, slot]
        if deferred is not None:
            k, since = meta[COUNT, slot], meta[SINCE, slot]
            project(E[slot], k, u, rows, count, G)
            for i in range(meta[CLOCK, RECENT] - since):
                G[k + i] = recently[since + i]
            project(F[slot], r, G, every, height(slot, meta), z)
        else:
            project(E[slot], r, u, rows, count, z)
        d2 = distance(S[slot], r, scalars[slot, SIGMA], z, square)
        if waiting is not None:
            d2 = max(0.0, d2 + late.distance(L[slot], A[slot], meta[COUNT, slot], r, z))
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
def learn(
    y: float,
    square: float,
    rows: Integers,
    count: int,
    stack: Stack,
    scratch: Scratch,
    deferred: Mode,
    waiting: Mode,
) -> None:
    """One COMID step of every level, after `judge`."""
    E, F, S, scalars, meta, losses, _, options, _, _, L, A = stack
    vec, Z, _, lane, V, out, index, work = scratch
    n, u, room, most = int(options[N]), vec[DIFFERENCE], S.shape[1], int(options[MAX_RANK])
    span = 0.5 * options[BASE]
    if deferred is not None:
        prepare(square, rows, count, stack, scratch)
    for j in range(meta[CLOCK, LEVELS]):
        span *= 2.0
        slot, z, slope = meta[ORDER, j], Z[j], Z[j, room]
        r, sigma, s = meta[RANK, slot], scalars[slot, SIGMA], S[slot]
        Q, tall, waits = E[slot], n, False
        if deferred is not None:
            Q, tall = F[slot], height(slot, meta)
        if waiting is not None:
            waits = r >= FULL or meta[COUNT, slot] > 0
        step = effective_step(options[STEP] / np.sqrt(span), slope, losses[j], square, options)
        tau = step * options[STRENGTH]
        if slope != 0.0 and square > 0.0 and step > 0.0:
            before, weight = r, step * y * slope
            if r < n:
                if deferred is not None:
                    r = widen(slot, n, square, z, stack, scratch)
                    tall = height(slot, meta)
                else:
                    r = extend(Q, n, r, u, square, z, index[EVERY], vec[RESIDUAL], vec[SECOND])
            if r > before:
                s[before] = sigma
            if waiting is not None:  # noqa: SIM102 (a condition of its own: else the compiler sees no None)
                if waits:
                    terms = meta[COUNT, slot]
                    meta[COUNT, slot] = late.add(s, L[slot], A[slot], terms, before, r, z, weight, work)
            if not waits:
                rank_one(Q, tall, s, r, z, weight, vec, lane, V, out, index)
        if not waits:
            r, sigma = shrink(Q, tall, s, r, sigma, tau)
        if r > most:
            r, discarded = truncate(Q, tall, s, r, sigma, most)
            scalars[slot, DISCARDED] += discarded
        meta[RANK, slot], scalars[slot, SIGMA] = r, sigma
        scalars[slot, MU] = max(1.0, scalars[slot, MU] - options[THRESHOLD_STEP] * step * y * slope)


# What Python calls


@kernel
def run(
    values: Array, start: Integers, feature: Integers, y: Array, where: Integers, deferred: Mode, waiting: Mode
) -> int:
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
        levels, opens = meta[CLOCK, LEVELS], opening(base + meta[CLOCK, TIME] + 1, base)
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

        judge(y[i], square, rows, count, stack, scratch, deferred, waiting)
        mixed = 0.0
        if rule != FIXED_SHARE:
            combine.probabilities(state, levels, p)
            mu = d2 = 0.0
            for j in range(levels):
                mu += p[j] * scalars[meta[ORDER, j], MU]
                d2 += p[j] * Z[j, room + 1]
            mixed = margin_loss(int(options[LOSS]), margin(y[i], mu, d2))[0]
        combine.update(rule, state, losses, levels, p, mixed, options[RATE], options[SHARE])
        learn(y[i], square, rows, count, stack, scratch, deferred, waiting)
        combine.reopen(rule, state, levels, opens, base, options[RESET] > 0.0)
        if opens > levels:
            losses[levels] = np.nan
        shift(stack, opens, options[GOES_ON] > 0.0, deferred, waiting)
        meta[CLOCK, TIME] += 1
        if meta[CLOCK, TIME] % TIDY == 0:
            watch(stack, scratch, deferred)
    return y.shape[0]


@kernel
def open_levels(count: int, t: int, where: Integers, deferred: Mode, waiting: Mode) -> bool:
    """Open levels 0, ..., count - 1 at time t, if there is room for them."""
    stack, scratch = arrays(where)
    if not room_for(count, stack):
        return False
    shift(stack, count, stack[7][GOES_ON] > 0.0, deferred, waiting)
    stack[4][CLOCK, TIME] = t
    if t % TIDY == 0:
        watch(stack, scratch, deferred)
    return True


@kernel
def one(u: Array, y: float, where: Integers, learns: bool, deferred: Mode, waiting: Mode) -> None:
    """Judge a comparison at every level, and learn it."""
    stack, scratch = arrays(where)
    square, n = 0.0, u.shape[0]
    for e in range(n):
        scratch[0][DIFFERENCE, e] = u[e]
        square += u[e] * u[e]
    judge(y, square, scratch[6][EVERY], n, stack, scratch, deferred, waiting)
    if learns:
        learn(y, square, scratch[6][EVERY], n, stack, scratch, deferred, waiting)
