"""The straight line from comparisons to metrics: Algorithm 2 over a stack of factored learners, in one call.

    u, y -> one margin per level -> losses -> weights -> COMID step reusing the margins -> open levels.

The stack is a few arrays with a row per slot; ``order[level]`` is the slot of a level. Slot 0 holds the origin,
and one slot is always spare: a rank-one step writes into it and the two change places, and re-opening levels only
moves entries of ``order``.
"""

from __future__ import annotations

import numpy as np

from ...learner import Array, Integers
from ..losses import TIE
from . import combine
from .codes import (
    BASE,
    CAPPED,
    CLOCK,
    FIXED_SHARE,
    GOES_ON,
    HINGE,
    LOSS,
    ORDER,
    RANK,
    RATE,
    RESET,
    RULE,
    SHARE,
    SQUARED_HINGE,
    STEP,
    STRENGTH,
    THRESHOLD_STEP,
)
from .factored import dot, project, rank_one, shrink
from .jit import kernel


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
def judge(u: Array, y: float, Q: Array, S: Array, meta: Integers, losses: Array, Z: Array, options: Array) -> None:
    """Every level's loss; its projection of u, slope and squared distance stay in Z for the step."""
    room = Q.shape[1]
    square = dot(u, u)
    for j in range(meta[CLOCK, 1]):
        slot = meta[ORDER, j]
        d2 = project(Q[slot], S[slot], meta[RANK, slot], S[slot, room], u, square, Z[j])
        losses[j], Z[j, room] = margin_loss(int(options[LOSS]), margin(y, S[slot, room + 1], d2))
        Z[j, room + 1] = d2


@kernel
def learn(
    u: Array,
    y: float,
    Q: Array,
    S: Array,
    meta: Integers,
    losses: Array,
    Z: Array,
    work: Array,
    index: Integers,
    options: Array,
) -> None:
    """One COMID step of every level, after `judge`."""
    room, levels = Q.shape[1], meta[CLOCK, 1]
    square = dot(u, u)
    for j in range(levels):
        slot, slope = meta[ORDER, j], Z[j, room]
        step = options[STEP] / np.sqrt(options[BASE] * 2.0**j)
        if options[LOSS] == SQUARED_HINGE and slope != 0.0:  # 1 / curvature, as Descent.effective_step has it
            steepness = square * square + options[THRESHOLD_STEP]
            step = min(step, 0.5 / steepness) if steepness > 0.0 else step
        if options[CAPPED] > 0.0:
            steepness = slope * slope * (square * square + options[THRESHOLD_STEP])
            step = min(step, losses[j] / steepness) if steepness > 0.0 else 0.0
        tau = step * options[STRENGTH]
        if slope == 0.0 or square == 0.0 or step == 0.0:
            rank, sigma = shrink(Q[slot], S[slot], meta[RANK, slot], S[slot, room], tau)
            mu = S[slot, room + 1]
        else:
            spare = meta[ORDER, levels]
            rank, sigma = rank_one(
                Q[slot],
                S[slot],
                meta[RANK, slot],
                S[slot, room],
                u,
                square,
                Z[j],
                step * y * slope,
                tau,
                Q[spare],
                S[spare],
                work,
                index,
            )
            mu = S[slot, room + 1]
            meta[ORDER, j], meta[ORDER, levels] = spare, slot
            slot = spare
        meta[RANK, slot], S[slot, room] = rank, sigma
        S[slot, room + 1] = max(1.0, mu - options[THRESHOLD_STEP] * step * y * slope)


@kernel
def opening(clock: int, base: int) -> int:
    """How many levels start a new interval at this time."""
    if clock % base != 0:
        return 0
    periods, count = clock // base, 1
    while periods % 2 == 0:
        periods //= 2
        count += 1
    return count


@kernel
def _copy(Q: Array, S: Array, meta: Integers, source: int, target: int) -> None:
    rank = meta[RANK, source]
    Q[target, :rank] = Q[source, :rank]
    S[target] = S[source]
    meta[RANK, target] = rank


@kernel
def shift(Q: Array, S: Array, meta: Integers, count: int, goes_on: bool) -> None:
    """Levels 0, ..., count - 1 open: level j takes over from level j - 1, level 0 from the origin or itself."""
    levels = meta[CLOCK, 1]
    if count == 0 or (goes_on and count == 1 and levels > 0):
        return
    free = meta[ORDER, count - 1]  # for a level that is new, the spare slot
    for j in range(count - 1, 0, -1):
        meta[ORDER, j] = meta[ORDER, j - 1]
    meta[ORDER, 0] = free
    meta[CLOCK, 1] = max(levels, count)
    _copy(Q, S, meta, meta[ORDER, 1] if goes_on and levels > 0 else 0, free)


@kernel
def room_for(count: int, Q: Array, meta: Integers) -> bool:
    """Whether one more step, after which ``count`` levels open, fits into the arrays."""
    levels, room, n = meta[CLOCK, 1], Q.shape[1], Q.shape[2]
    if max(levels, count) + 2 > Q.shape[0]:  # the origin's slot and the spare one
        return False
    most = 0
    for j in range(levels):
        most = max(most, meta[RANK, meta[ORDER, j]])
    return min(most + 1, n) <= room


@kernel
def run(
    U: Array,
    y: Array,
    Q: Array,
    S: Array,
    meta: Integers,
    state: Array,
    losses: Array,
    Z: Array,
    work: Array,
    index: Integers,
    options: Array,
) -> int:
    """Learn a block of comparisons; returns how many were learned before the arrays became too small."""
    base, rule, room = int(options[BASE]), int(options[RULE]), Q.shape[1]
    p = work[0]
    for i in range(U.shape[0]):
        count = opening(base + meta[CLOCK, 0] + 1, base)
        levels = meta[CLOCK, 1]
        if not room_for(count, Q, meta) or max(levels, count) > state.shape[0]:
            return i
        judge(U[i], y[i], Q, S, meta, losses, Z, options)
        mixed = 0.0
        if rule != FIXED_SHARE:
            combine.probabilities(state, levels, p)
            mu = d2 = 0.0
            for j in range(levels):
                mu += p[j] * S[meta[ORDER, j], room + 1]
                d2 += p[j] * Z[j, room + 1]
            mixed = margin_loss(int(options[LOSS]), margin(y[i], mu, d2))[0]
        combine.update(rule, state, losses, levels, p, mixed, options[RATE], options[SHARE])
        learn(U[i], y[i], Q, S, meta, losses, Z, work, index, options)
        combine.reopen(rule, state, levels, count, base, options[RESET] > 0.0)
        if count > levels:
            losses[levels] = np.nan
        shift(Q, S, meta, count, options[GOES_ON] > 0.0)
        meta[CLOCK, 0] += 1
    return U.shape[0]
