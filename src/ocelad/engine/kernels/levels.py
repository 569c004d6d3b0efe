"""Levels and slots: re-opening moves entries of an order, not matrices; and every learner is looked after."""

from __future__ import annotations

from ...protocols import Array
from .codes import (
    BASE,
    BIRTHS,
    CLOCK,
    CONTINUES,
    COUNT,
    DISCARDED,
    EVERY,
    LEVELS,
    LIST,
    ORDER,
    RANK,
    RECENT,
    RESTARTS,
    SCALARS,
    SINCE,
    START,
    TOUCHED,
    N,
)
from .dictionary import clear, forget, height, touch
from .factored import tidy
from .jit import Mode, apart, kernel
from .layout import Scratch, Stack


@kernel
def opening(t: int, options: Array) -> tuple[int, int]:
    """Levels first, ..., last - 1 start anew before step t."""
    base = int(options[BASE])
    clock = base + t
    if clock % base != 0:
        return 0, 0
    periods, count = clock // base, 1
    while periods % 2 == 0:
        periods //= 2
        count += 1
    if options[START] != BIRTHS:
        return 0, count
    level = max(0, 2 * count - 3) if periods % 4 == 1 else 2 * count  # two take turns: see `baselines.birth`
    return level, level + 1


@kernel
def _copy(stack: Stack, source: int, target: int, deferred: Mode, waiting: Mode) -> None:
    E, F, S, scalars, meta, features, L, A = (
        *(stack[0], stack[1], stack[2], stack[3], stack[4], stack[8]),
        *(stack[10], stack[11]),
    )
    rank, width = meta[RANK, source], meta[COUNT, source]
    if deferred is not None:
        clear(E[target], meta[COUNT, target], features[target], meta[TOUCHED, target])
        rows, touched = features[source, LIST], meta[TOUCHED, source]
        meta[TOUCHED, target] = touch(features[target], 0, rows, touched)
        meta[COUNT, target] = width
        meta[SINCE, target] = meta[SINCE, source] if source > 0 else meta[CLOCK, RECENT]
        for k in range(touched):
            for i in range(width):
                E[target, rows[k], i] = E[source, rows[k], i]
        for i in range(height(target, meta)):
            for j in range(rank):
                F[target, i, j] = F[source, i, j]
    else:
        for e in range(E.shape[1]):
            for i in range(rank):
                E[target, e, i] = E[source, e, i]
    if waiting is not None:
        meta[COUNT, target] = width
        for k in range(width):
            A[target, k] = A[source, k]
            for i in range(L.shape[2]):
                L[target, k, i] = L[source, k, i]
    for j in range(rank):
        S[target, j] = S[source, j]
    for j in range(SCALARS):
        scalars[target, j] = scalars[source, j]
    meta[RANK, target] = rank


@kernel
def shift(stack: Stack, first: int, count: int, deferred: Mode, waiting: Mode, other: Mode) -> None:
    """Levels first, ..., count - 1 open: level j takes over from level j - 1, level 0 from the origin or itself;
    or all of them from the origin."""
    meta, start = stack[4], stack[7][START]
    levels = meta[CLOCK, LEVELS]
    continues = start == CONTINUES and levels > 0
    if other is not None:
        for j in range(first, count if start >= RESTARTS else first):
            _copy(stack, 0, meta[ORDER, j], deferred, waiting)
            meta[CLOCK, LEVELS] = max(levels, count)
    if start < RESTARTS and count > (1 if continues else 0):
        free = meta[ORDER, count - 1]  # for a level that is new, a slot not in use yet
        for j in range(count - 1, 0, -1):
            meta[ORDER, j] = meta[ORDER, j - 1]
        meta[ORDER, 0] = free
        meta[CLOCK, LEVELS] = max(levels, count)
        _copy(stack, meta[ORDER, 1] if continues else 0, free, deferred, waiting)
    for j in range(first, count):
        stack[3][meta[ORDER, j], DISCARDED] = 0.0


@kernel
def watch(stack: Stack, scratch: Scratch, deferred: Mode) -> None:
    """Keep the columns of all learners orthonormal."""
    apart()
    E, meta, features = stack[0], stack[4], stack[8]
    V, copies, index = scratch[4], scratch[5], scratch[6]
    if deferred is not None:
        forget(stack, scratch)
    for j in range(meta[CLOCK, LEVELS]):
        slot = meta[ORDER, j]
        rows, count = index[EVERY], E.shape[1]
        if deferred is not None:
            rows, count = features[slot, LIST], meta[TOUCHED, slot]
        if meta[RANK, slot] > 0:
            tidy(E[slot], rows, count, meta[RANK, slot], V, copies, index)


@kernel
def room_for(count: int, stack: Stack) -> bool:
    """Whether one more step, after which levels below ``count`` open, fits into the arrays."""
    S, meta, options = stack[2], stack[4], stack[7]
    levels = meta[CLOCK, LEVELS]
    if max(levels, count) + 1 > S.shape[0]:  # and the origin's slot
        return False
    most, late = 0, stack[10].shape[1]
    for j in range(levels):
        most = max(most, meta[RANK, meta[ORDER, j]])
        if late > 0 and meta[COUNT, meta[ORDER, j]] + 2 > late:
            return False
    return min(most + 1, int(options[N])) <= S.shape[1]
