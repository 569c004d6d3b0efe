"""The straight line from comparisons to metrics: Algorithm 2 over a stack of factored learners, in one call.

    u, y -> one margin per level -> losses -> weights -> COMID step reusing the margins -> open levels.

The stack is a few arrays with an entry per slot; ``order[level]`` is the slot of a level, so that re-opening
levels moves no matrix. Slot 0 holds the origin. For large n a learner's columns are combinations of a dictionary.
"""

from __future__ import annotations

import numpy as np

from ...protocols import Array, Integers
from . import combine, late, mirror
from .codes import (
    CHANCE,
    CLOCK,
    COUNT,
    DIFFERENCE,
    DIFFUSION,
    DISCARDED,
    EVERY,
    FULL,
    LENGTH,
    LEVELS,
    LOSS,
    MAX_RANK,
    MU,
    NONZERO,
    OCELAD_MEAN,
    OCELAD_MIXTURE,
    ORDER,
    RANK,
    RECENT,
    RECENTLY,
    RESIDUAL,
    RING,
    RULE,
    SECOND,
    SEED,
    SIGMA,
    SINCE,
    STEP,
    STRENGTH,
    THRESHOLD_STEP,
    TIME,
    N,
)
from .dictionary import forget, height, prepare, widen
from .factored import distance, extend, project, rank_one, shrink, truncate
from .jit import Mode, entry, part
from .layout import Scratch, Stack, arrays
from .levels import opening, room_for, shift, watch
from .losses import effective_step, margin, margin_loss

TIDY = 1024  # steps between two looks at the columns


@part
def judge(
    y: float,
    square: float,
    rows: Integers,
    count: int,
    stack: Stack,
    scratch: Scratch,
    deferred: Mode,
    waiting: Mode,
    other: Mode,
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
        s = S[slot]
        if other is not None:
            s = mirror.shown(j, stack, vec[RESIDUAL])
        d2 = distance(s, r, scalars[slot, SIGMA], z, square)
        if waiting is not None:
            d2 = max(0.0, d2 + late.distance(L[slot], A[slot], meta[COUNT, slot], r, z))
        losses[j], z[room] = margin_loss(int(options[LOSS]), margin(y, scalars[slot, MU], d2))
        z[room + 1] = d2


@part
def learn(
    y: float,
    square: float,
    rows: Integers,
    count: int,
    stack: Stack,
    scratch: Scratch,
    deferred: Mode,
    waiting: Mode,
    other: Mode,
) -> None:
    """One COMID step of every level, after `judge`."""
    E, F, S, scalars, meta, losses, state, options, _, _, L, A = stack
    vec, Z, _, lane, V, copies, index, work = scratch
    n, u, room, most = int(options[N]), vec[DIFFERENCE], S.shape[1], int(options[MAX_RANK])
    if deferred is not None:
        prepare(square, rows, count, stack, scratch)
    for j in range(meta[CLOCK, LEVELS]):
        slot, z, slope = meta[ORDER, j], Z[j], Z[j, room]
        if other is not None:  # noqa: SIM102 (a condition of its own: else the compiler sees no None)
            if not mirror.begins(j, slope, square, stack):
                continue
        r, sigma, s = meta[RANK, slot], scalars[slot, SIGMA], S[slot]
        Q, tall, waits = E[slot], n, False
        if deferred is not None:
            Q, tall = F[slot], height(slot, meta)
        if waiting is not None:
            waits = r >= FULL or meta[COUNT, slot] > 0
        step = options[STEP] / np.sqrt(state[j, LENGTH])
        if other is None:
            step = effective_step(step, slope, losses[j], square, options)
            weight = step * y * slope
        else:
            step, weight = mirror.link(step, y * slope, losses[j], square, z, room, s, r, options)
        tau = step * options[STRENGTH]
        if slope != 0.0 and square > 0.0 and step > 0.0:
            before = r
            if r < n:
                if deferred is not None:
                    r = widen(slot, n, square, z, stack, scratch)
                    tall = height(slot, meta)
                else:
                    r = extend(Q, n, r, u, square, z, index[EVERY], vec[RESIDUAL], vec[SECOND])
            if r > before:
                s[before] = sigma
            if waiting is not None:  # noqa: SIM102
                if waits:
                    terms = meta[COUNT, slot]
                    meta[COUNT, slot] = late.add(s, L[slot], A[slot], terms, before, r, z, weight, work)
            if not waits:
                rank_one(Q, tall, s, r, z, weight, vec, lane, V, copies, index)
        shrinks = not waits
        if other is not None:
            shrinks &= not mirror.unlink(s, r, tau, options)
        if shrinks:
            r, sigma = shrink(Q, tall, s, r, sigma, tau)
        if r > most:
            r, discarded = truncate(Q, tall, s, r, sigma, most)
            scalars[slot, DISCARDED] += discarded
        if other is not None:
            sigma = mirror.diffuse(state[j, DIFFUSION], s, r, n, sigma)
        meta[RANK, slot], scalars[slot, SIGMA] = r, sigma
        mu = scalars[slot, MU] - options[THRESHOLD_STEP] * step * y * slope
        if other is not None:
            mu = mirror.threshold(j, mu, step, y * slope, stack)
        scalars[slot, MU] = max(1.0, mu)


# What Python calls


@entry
def run(
    values: Array,
    start: Integers,
    feature: Integers,
    y: Array,
    where: Integers,
    deferred: Mode,
    waiting: Mode,
    other: Mode,
) -> int:
    """Learn a block of comparisons; returns how many were learned before the arrays became too small.

    The differences are in ``values`` one after the other; if sparse, the nonzeros of number i are those at
    start[i], ..., start[i + 1] - 1, and ``feature`` says of which features; if not, both are empty.
    """
    stack, scratch = arrays(where)
    scalars, meta, losses, state, options = stack[3], stack[4], stack[5], stack[6], stack[7]
    u, p, Z, index = scratch[0][DIFFERENCE], scratch[0][CHANCE], scratch[1], scratch[6]
    rule, n, room = int(options[RULE]), int(options[N]), Z.shape[1] - 8
    sparse = start.shape[0] > 0
    rows, count = (index[NONZERO], 0) if sparse else (index[EVERY], n)
    for e in range(u.shape[0]):
        u[e] = 0.0
    for i in range(y.shape[0]):
        levels, (first, last) = meta[CLOCK, LEVELS], opening(meta[CLOCK, TIME] + 1, options)
        if not room_for(last, stack):
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

        judge(y[i], square, rows, count, stack, scratch, deferred, waiting, other)
        mixed = 0.0
        if rule in (OCELAD_MEAN, OCELAD_MIXTURE):
            combine.probabilities(state, levels, p)
            mu = d2 = 0.0
            for j in range(levels):
                mu += p[j] * scalars[meta[ORDER, j], MU]
                d2 += p[j] * Z[j, room + 1]
            mixed = margin_loss(int(options[LOSS]), margin(y[i], mu, d2))[0]
        combine.update(state, losses, levels, p, mixed, options, other)
        learn(y[i], square, rows, count, stack, scratch, deferred, waiting, other)
        meta[CLOCK, TIME] += 1
        combine.reopen(state, levels, first, last, meta[CLOCK, TIME], meta[CLOCK, SEED], p, options, other)
        if last > levels:
            losses[levels] = np.nan
        shift(stack, first, last, deferred, waiting, other)
        if meta[CLOCK, TIME] % TIDY == 0:
            watch(stack, scratch, deferred)
    return y.shape[0]


@entry
def open_levels(t: int, where: Integers, deferred: Mode, waiting: Mode, other: Mode) -> tuple[int, int]:
    """Open the levels of time t: first, ..., last - 1. Returns these two, or twice -1 if there is no room."""
    stack, scratch = arrays(where)
    first, last = opening(t, stack[7])
    if not room_for(last, stack):
        return -1, -1
    shift(stack, first, last, deferred, waiting, other)
    stack[4][CLOCK, TIME] = t
    if t % TIDY == 0:
        watch(stack, scratch, deferred)
    return first, last


@entry
def one(u: Array, y: float, where: Integers, learns: bool, deferred: Mode, waiting: Mode, other: Mode) -> None:
    """Judge a comparison at every level, and learn it."""
    stack, scratch = arrays(where)
    square, n = 0.0, u.shape[0]
    for e in range(n):
        scratch[0][DIFFERENCE, e] = u[e]
        square += u[e] * u[e]
    judge(y, square, scratch[6][EVERY], n, stack, scratch, deferred, waiting, other)
    if learns:
        learn(y, square, scratch[6][EVERY], n, stack, scratch, deferred, waiting, other)
