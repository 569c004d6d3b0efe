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
    AT_E,
    AT_F,
    AT_FEATURES,
    AT_G,
    AT_INDEX,
    AT_LANE,
    AT_LOSSES,
    AT_META,
    AT_OPTIONS,
    AT_OUT,
    AT_S,
    AT_SCALARS,
    AT_STATE,
    AT_V,
    AT_VEC,
    AT_Z,
    BASE,
    CAPPED,
    CHANCE,
    CLOCK,
    COUNT,
    DEBT,
    DIFFERENCE,
    DISCARDED,
    EVERY,
    FIELDS,
    FIXED_SHARE,
    GOES_ON,
    HEIGHT,
    HINGE,
    INDICES,
    LANES,
    LIST,
    LONG,
    LOSS,
    MAX_RANK,
    META,
    MU,
    NONZERO,
    OPTIONS,
    ORDER,
    PANELS,
    RANK,
    RATE,
    RESET,
    RESIDUAL,
    ROOM,
    ROWS,
    RULE,
    SCALARS,
    SECOND,
    SHARE,
    SIGMA,
    SLOTS,
    SQUARED_HINGE,
    STEP,
    STRENGTH,
    SURPLUS,
    THRESHOLD_STEP,
    TOUCHED,
    VECTORS,
    WIDTH,
    N,
)
from .dictionary import clear, compress, touch, widen
from .factored import distance, extend, project, rank_one, shrink, tidy, truncate
from .jit import array_at, floats_at, integers_at, kernel

TIDY = 1024  # steps between two looks at the columns

Stack = tuple[Array, Array, Array, Array, Integers, Array, Array, Array, Integers]
Scratch = tuple[Array, Array, Array, Array, Array, Array, Integers]


@kernel
def arrays(where: Integers) -> tuple[Stack, Scratch]:
    """The arrays of a stack, by their addresses."""
    slots, rows, room, height = where[SLOTS], where[ROWS], where[ROOM], where[HEIGHT]
    panels, long = where[PANELS], where[LONG]
    tall = max(room, height)
    stack = (
        array_at(floats_at(where[AT_E]), (slots, rows, tall)),
        array_at(floats_at(where[AT_F]), (slots, height, room if height > 0 else 0)),
        array_at(floats_at(where[AT_S]), (slots, room)),
        array_at(floats_at(where[AT_SCALARS]), (slots, SCALARS)),
        array_at(integers_at(where[AT_META]), (META, slots)),
        array_at(floats_at(where[AT_LOSSES]), (slots,)),
        array_at(floats_at(where[AT_STATE]), (slots, FIELDS)),
        array_at(floats_at(where[AT_OPTIONS]), (OPTIONS,)),
        array_at(integers_at(where[AT_FEATURES]), (slots, 2, rows if height > 0 else 0)),
    )
    scratch = (
        array_at(floats_at(where[AT_VEC]), (VECTORS, long)),
        array_at(floats_at(where[AT_Z]), (slots, room + 8)),
        array_at(floats_at(where[AT_G]), (height + 8,)),
        array_at(floats_at(where[AT_LANE]), (LANES,)),
        array_at(floats_at(where[AT_V]), (panels, tall + 4, WIDTH)),
        array_at(floats_at(where[AT_OUT]), (panels, 5 * WIDTH)),
        array_at(integers_at(where[AT_INDEX]), (INDICES, long)),
    )
    return stack, scratch


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
        if active:
            before = r
            if r < n and deferred:
                touched = meta[TOUCHED, slot]
                if m - r >= SURPLUS or m == n or scalars[slot, DEBT] > float(r) * m * touched:
                    compress(E[slot], m, Q, r, features[slot], touched, V, out, index)
                    m, scalars[slot, DEBT] = r, 0.0
                if touched < n:
                    touched = touch(features[slot], touched, rows, count)
                    meta[TOUCHED, slot] = touched
                r, m = widen(E[slot], m, Q, r, u, square, rows, count, z, features[slot], touched, vec, index)
                scalars[slot, DEBT] += float(m - r) * (count + r * r)
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
def _copy(stack: Stack, source: int, target: int) -> None:
    E, F, S, scalars, meta, features = stack[0], stack[1], stack[2], stack[3], stack[4], stack[8]
    rank, width = meta[RANK, source], meta[COUNT, source]
    if F.shape[1] > 0:
        clear(E[target], meta[COUNT, target], features[target], meta[TOUCHED, target])
        rows, touched = features[source, LIST], meta[TOUCHED, source]
        meta[TOUCHED, target] = touch(features[target], 0, rows, touched)
        for k in range(touched):
            for i in range(width):
                E[target, rows[k], i] = E[source, rows[k], i]
        for i in range(width):
            for j in range(rank):
                F[target, i, j] = F[source, i, j]
    else:
        for e in range(E.shape[1]):
            for i in range(rank):
                E[target, e, i] = E[source, e, i]
    for j in range(rank):
        S[target, j] = S[source, j]
    for j in range(SCALARS):
        scalars[target, j] = scalars[source, j]
    meta[RANK, target], meta[COUNT, target] = rank, width


@kernel
def shift(stack: Stack, count: int, goes_on: bool) -> None:
    """Levels 0, ..., count - 1 open: level j takes over from level j - 1, level 0 from the origin or itself."""
    meta = stack[4]
    levels = meta[CLOCK, 1]
    if count > 0 and levels > 0:
        stack[3][meta[ORDER, 0], DISCARDED] = 0.0
    if count == 0 or (goes_on and count == 1 and levels > 0):
        return
    free = meta[ORDER, count - 1]  # for a level that is new, a slot not in use yet
    for j in range(count - 1, 0, -1):
        meta[ORDER, j] = meta[ORDER, j - 1]
    meta[ORDER, 0] = free
    meta[CLOCK, 1] = max(levels, count)
    _copy(stack, meta[ORDER, 1] if goes_on and levels > 0 else 0, free)
    for j in range(count):
        stack[3][meta[ORDER, j], DISCARDED] = 0.0


@kernel
def watch(stack: Stack, scratch: Scratch) -> None:
    """Keep the columns of all learners orthonormal."""
    E, F, scalars, meta, features = stack[0], stack[1], stack[3], stack[4], stack[8]
    V, out, index = scratch[4], scratch[5], scratch[6]
    for j in range(meta[CLOCK, 1]):
        slot = meta[ORDER, j]
        r, touched = meta[RANK, slot], meta[TOUCHED, slot]
        if F.shape[1] > 0 and r > 0:
            compress(E[slot], meta[COUNT, slot], F[slot], r, features[slot], touched, V, out, index)
            meta[COUNT, slot], scalars[slot, DEBT] = r, 0.0
            tidy(E[slot], features[slot, LIST], touched, r, V, out, index)
        elif r > 0:
            tidy(E[slot], index[EVERY], E.shape[1], r, V, out, index)


@kernel
def room_for(count: int, stack: Stack) -> bool:
    """Whether one more step, after which ``count`` levels open, fits into the arrays."""
    S, meta, options = stack[2], stack[4], stack[7]
    levels = meta[CLOCK, 1]
    if max(levels, count) + 1 > S.shape[0]:  # and the origin's slot
        return False
    most = 0
    for j in range(levels):
        most = max(most, meta[RANK, meta[ORDER, j]])
    return min(most + 1, int(options[N])) <= S.shape[1]


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
def open_levels(count: int, where: Integers) -> bool:
    """Open levels 0, ..., count - 1 if there is room for them."""
    stack, _ = arrays(where)
    if not room_for(count, stack):
        return False
    shift(stack, count, stack[7][GOES_ON] > 0.0)
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
