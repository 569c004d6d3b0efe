"""Levels and slots: re-opening moves entries of an order, not matrices."""

from __future__ import annotations

from ... import intervals
from ...compiled import kernel
from ...protocols import Integers
from .dictionary import clear, height, touch
from .layout import CAPACITY, CONTINUES, LEVELS, LIST, RECENT, SLOTS, N, Stack
from .scratch import Mode

opening = kernel(intervals.opening)


@kernel
def fits(opens: int, terms: int, header: Integers, order: Integers, rank: Integers) -> bool:
    """Whether a step with this number of terms, after which ``opens`` levels open, fits into the arrays."""
    most, slots = 0, max(header[LEVELS], opens) + 1  # and the origin's
    for j in range(header[LEVELS]):
        most = max(most, rank[order[j]])
    return slots <= header[SLOTS] and min(most + terms, header[N]) <= header[CAPACITY]


@kernel
def _copy(stack: Stack, source: int, target: int, dictionary: Mode) -> None:
    columns, rank, count = stack.columns, stack.rank[source], stack.own[source]
    if dictionary is not None:
        clear(columns[target], stack.own[target], stack.features[target], stack.touched[target])
        rows, touched = stack.features[source, LIST], stack.touched[source]
        stack.touched[target] = touch(stack.features[target], 0, rows, touched)
        stack.own[target] = count
        stack.since[target] = stack.since[source] if source > 0 else stack.header[RECENT]
        for k in range(touched):
            for i in range(count):
                columns[target, rows[k], i] = columns[source, rows[k], i]
        for i in range(height(target, stack)):
            for j in range(rank):
                stack.factors[target, i, j] = stack.factors[source, i, j]
    else:
        for e in range(stack.header[N]):
            for i in range(rank):
                columns[target, e, i] = columns[source, e, i]
    for j in range(rank):
        stack.eigenvalues[target, j] = stack.eigenvalues[source, j]
    stack.rank[target] = rank
    stack.sigma[target], stack.mu[target] = stack.sigma[source], stack.mu[source]
    stack.debt[target] = stack.debt[source]


@kernel
def shift(stack: Stack, opens: int, dictionary: Mode) -> None:
    """The first levels open: each takes over from the one below it, level 0 from the origin or from itself."""
    order, levels = stack.order, stack.header[LEVELS]
    continues = stack.options[CONTINUES] > 0.0 and levels > 0
    if opens > (1 if continues else 0):
        free = order[opens - 1]  # for a level that is new, a slot not in use yet
        for j in range(opens - 1, 0, -1):
            order[j] = order[j - 1]
        order[0] = free
        stack.header[LEVELS] = max(levels, opens)
        _copy(stack, order[1] if continues else 0, free, dictionary)
    for j in range(opens):
        stack.discarded[order[j]] = 0.0
