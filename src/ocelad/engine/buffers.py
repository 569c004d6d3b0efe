"""The memory of a pool of experts: flat buffers with all of its state, and scratch that belongs to a thread.

Buffers are allocated with spare slots and columns, and with rows for the first comparisons that are replayed.
Where those run out, the state is copied into larger ones.
"""

from __future__ import annotations

import copy
import threading
from functools import cached_property
from typing import Any

import numpy as np

from .. import platt
from ..protocols import Array, Integers
from .kernels import layout, scratch

SLOTS, COLUMNS, ROWS = 3, 4, 64  # allocated to begin with

NEW_WEIGHT = 1e-3
"""Of experts on new feature maps, all together."""

SINGLE: type = np.float32
"""The precision of what replayed experts keep."""

_BY_SLOT = ("sigma", "mu", "discarded", "debt", "rank", "own", "since", "touched")


class Buffers:
    """Floats and integers, laid out as the arrays of a `Stack`.

    Parameters
    ----------
    n
        The number of features.
    base
        The length of the shortest intervals.
    slots, columns
        The capacity: the number of learners, one of them the origin, and of columns that each can have.
    dictionary
        Whether the learners have dictionaries.
    pool
        The number of experts that replay windows, the length of the longest, the number of experts that are there
        from the start: those, and the Euclidean distance; the number of feature maps, and of each the features and
        the experts.
    rows
        The number of replayed comparisons that there is memory for, if the longest window is not shorter.
    singles
        The buffer of single precision of another one; by default a new one.
    """

    def __init__(
        self,
        n: int,
        base: int,
        slots: int,
        columns: int,
        dictionary: bool,
        pool: tuple[int, ...] = (0, 0, 0, 0, 0, 0),
        rows: int = ROWS,
        singles: np.ndarray[Any, Any] | None = None,
    ) -> None:
        self.n, self.base, self.slots, self.dictionary, self.pool = n, base, slots, dictionary, pool
        self.columns, (replayed, memory, fixed, *mapped) = _multiple_of_four(columns), pool
        self.rows = min(rows, memory)
        height = self.columns + layout.RECENT_CAPACITY if dictionary else 0
        self.sizes = n, slots, self.columns, height, replayed, self.rows, fixed, *mapped
        floats, integers, single = layout.stack_sizes(*self.sizes)
        self.floats, self.integers = np.zeros(floats), np.zeros(integers, dtype=np.int64)
        self.singles = np.zeros(single, SINGLE) if singles is None else singles
        self.integers[: layout.SIZES] = self.sizes
        stack = self.stack
        stack.order[: slots - 1] = np.arange(1, slots)  # slot 0 is the origin's, the others wait to be taken
        stack.lengths[:] = base * np.exp2(np.arange(slots))
        stack.losses[:], stack.calibration[:, platt.SLOPE] = np.nan, 1.0

    def with_experts(self, settings: Array) -> Buffers:
        """These, with experts of such windows, for the given features and for those of each map; they begin small
        and at random, the same for all of as many features."""
        stack, rng, (*_, maps, mapped, per_map) = self.stack, np.random.default_rng(0), self.pool
        stack.settings[:], end = settings, 0
        for block in range(1 + maps):
            first, width = end, mapped if block else self.n
            end += per_map if block else len(settings) - maps * per_map
            L = rng.normal(scale=0.3 / np.sqrt(width), size=(end - first, layout.RANK, width))
            stack.L[first:end, :, :width] = stack.average[first:end, :, :width] = L
        stack.numbers[:, [layout.B, layout.AVERAGE_B]] = 1.0
        return self

    def with_new_maps(self) -> Buffers:
        """A copy in which the experts on feature maps know nothing, for the maps are others from now on, and have
        to earn their weight anew."""
        new, fresh = copy.copy(self), Buffers(self.n, 1, 1, 1, False, self.pool).with_experts(self.stack.settings)
        replayed, maps, per_map = self.pool[0], self.pool[3], self.pool[5]
        own, stored = slice(replayed - maps * per_map, replayed), self.stack.header[layout.STORED]
        for name in ("L", "average", "moment", "numbers"):
            getattr(new.stack, name)[own] = getattr(fresh.stack, name)[own]
        new.stack.numbers[own, layout.START] = new.stack.numbers[own, layout.ZERO] = stored
        experts = self.pool[2] + int(self.stack.header[layout.LEVELS])
        p = np.exp(new.stack.combiner[:experts, layout.LOG_WEIGHT])
        p[own] = 0.0
        p *= (1.0 - NEW_WEIGHT) / p.sum()
        p[own] = NEW_WEIGHT / (maps * per_map)
        new.stack.combiner[:experts, layout.LOG_WEIGHT] = np.log(p)
        return new

    @cached_property
    def stack(self) -> layout.Stack:
        """What is in the buffers, as arrays."""
        return layout.lay_out(self.floats, self.integers, self.singles)

    @property
    def all(self) -> tuple[Array, Integers, np.ndarray[Any, Any]]:
        """The three buffers, as kernels take them."""
        return self.floats, self.integers, self.singles

    def __copy__(self) -> Buffers:
        if self.dictionary:  # most of it may be empty, and need not be copied
            return self._resized(self.slots, self.columns, self.rows, self.singles.copy())
        other = object.__new__(Buffers)
        own = {name: getattr(self, name).copy() for name in ("floats", "integers", "singles")}
        other.__dict__.update(self.__dict__, **own)
        other.__dict__.pop("stack", None)
        return other

    def __getstate__(self) -> dict[str, Any]:
        """Without the views: those of a pickle would not be into its buffers."""
        return {name: value for name, value in self.__dict__.items() if name != "stack"}

    def with_capacity(self, levels: int, columns: int) -> Buffers:
        """These, if they have the capacity for that many levels and columns, else a larger copy."""
        if levels < self.slots and columns <= self.columns:
            return self
        return self._resized(max(self.slots, levels + 1), max(self.columns, columns), self.rows, self.singles)

    def with_rows(self, count: int) -> Buffers:
        """These, if they have as many rows as this number of replayed comparisons takes, else a copy that has.

        Until the longest window is full a comparison's place does not depend on the number of rows.
        """
        rows = min(ROWS << max(0, (count - 1).bit_length() - (ROWS - 1).bit_length()), self.pool[1])
        if rows == self.rows:
            return self
        new, kept = self._resized(self.slots, self.columns, rows), min(rows, self.rows)
        for name in ("L", "average", "moment"):
            getattr(new.stack, name)[:] = getattr(self.stack, name)
        for name in ("ring", "labels"):
            getattr(new.stack, name)[:kept] = getattr(self.stack, name)[:kept]
        return new

    def grown(self, levels: int, columns: int, max_rank: int) -> Buffers:
        """The same, with spare capacity where copying is expensive: that of dictionaries."""
        if self.dictionary and levels >= self.slots:  # unused slots cost nothing
            levels = max(levels, 2 * self.slots - 1)
        if self.dictionary and columns > self.columns and self.stack.touched.max() < self.n:
            columns = max(columns, min(2 * self.columns, max_rank + 1))  # full ones are better kept close together
        return self.with_capacity(levels, min(self.n, columns))

    def _resized(
        self, slots: int, columns: int, rows: int, singles: np.ndarray[Any, Any] | None = None
    ) -> Buffers:
        """A copy with this capacity, not smaller, and with this buffer of single precision or an empty one."""
        new = Buffers(self.n, self.base, slots, columns, self.dictionary, self.pool, rows, singles)
        stack, old, height = new.stack, self.stack, self.stack.factors.shape[1]
        if self.dictionary:
            for slot in range(self.slots):  # sparse comparisons leave most of a dictionary empty
                own = old.features[slot, layout.LIST, : old.touched[slot]]
                stack.columns[slot, own, : self.columns] = old.columns[slot, own]
                stack.features[slot, layout.LIST, : len(own)], stack.features[slot, layout.MARK, own] = own, 1
            seen = old.features[-1, layout.LIST, : old.header[layout.SEEN]]
            stack.recent[seen] = old.recent[seen]
            stack.features[-1, layout.LIST, : len(seen)], stack.features[-1, layout.MARK, seen] = seen, 1
            stack.factors[: self.slots, :height, : self.columns] = old.factors
        else:
            stack.columns[: self.slots, :, : self.columns] = old.columns
        stack.eigenvalues[: self.slots, : self.columns] = old.eigenvalues
        for name in _BY_SLOT:
            getattr(stack, name)[: self.slots] = getattr(old, name)
        for name in ("losses", "combiner", "calibration", "numbers", "settings"):
            whole, part = getattr(stack, name), getattr(old, name)
            whole[: len(part)] = part
        stack.order[: self.slots - 1] = old.order[:-1]
        stack.options[:] = old.options
        stack.header[layout.SIZES :] = old.header[layout.SIZES :]
        return new

    def scratch(self) -> tuple[np.ndarray[Any, Any], ...]:
        """Scratch of this thread, large enough for a stack of this capacity."""
        return _SCRATCH.at_least(self.sizes)


class _Scratch(threading.local):
    """Of each thread, for whichever stack it works on."""

    def __init__(self) -> None:
        self.work: Array = np.zeros(0)
        self.index: Integers = np.zeros(0, dtype=np.int64)
        self.arange: Integers = np.zeros(0, dtype=np.int64)
        self.single: np.ndarray[Any, Any] = np.zeros(0, SINGLE)
        self.sizes: tuple[int, ...] = ()  # of the last stack, for which they are large enough

    def at_least(self, sizes: tuple[int, ...]) -> tuple[np.ndarray[Any, Any], ...]:
        if sizes != self.sizes:
            self.sizes = ()
            work, index, arange, single = scratch.sizes(*sizes)
            if len(self.work) < work:
                self.work = np.zeros(work)
            if len(self.index) < index:
                self.index = np.zeros(index, dtype=np.int64)
            if len(self.arange) < arange:
                self.arange = np.arange(arange)
            if len(self.single) < single:
                self.single = np.zeros(single, SINGLE)
            self.sizes = sizes
        return self.work, self.index, self.arange, self.single


_SCRATCH = _Scratch()


def _multiple_of_four(count: int) -> int:
    return -(-count // 4) * 4
