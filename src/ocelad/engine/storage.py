"""The arrays of a stack: how large they are, where kernels find them, and what is moved when more is needed."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..intervals import opening
from ..protocols import Array
from .kernels import codes
from .kinds import Kind


def whole(size: int, count: int) -> int:
    """The least multiple of a size that is not less."""
    return -(-count // size) * size


class Storage:
    """A few arrays with an entry for every learner, and the scratch that kernels need; see `kernels.codes`."""

    n: int
    base: int
    kind: Kind
    most: int  # columns that a learner keeps at most
    late: int  # terms that may wait to be diagonalised (`kernels.late`)
    deferred: bool  # whether learners have dictionaries (`kernels.dictionary`)
    other: bool  # whether they do anything that those of RICE do not (`kernels.mirror`)
    options: Array

    @property
    def levels(self) -> int:
        return int(self.meta[codes.CLOCK, codes.LEVELS])

    def _allocate(self, slots: int, room: int) -> None:
        """Arrays for so many learners of so many columns each, all empty."""
        n, wide = self.n, whole(8, room)
        height = room + codes.RING if self.deferred else 0
        long = max(n, room, height, slots) + 8
        self.E = np.zeros((slots, n, room))
        self.F = np.zeros((slots, height, room if self.deferred else 0))
        self.S, self.scalars = np.zeros((slots, room)), np.zeros((slots, codes.SCALARS))
        self.meta, self.losses_now = np.zeros((codes.META, slots), dtype=np.int64), np.full(slots, np.nan)
        # slot 0 is the origin's, the others wait to be taken
        self.meta[codes.ORDER, : slots - 1] = np.arange(1, slots)
        panels = max(1, -(-room // codes.WIDTH))
        index = np.zeros((codes.INDICES, long), dtype=np.int64)
        index[codes.EVERY] = np.arange(long)
        self.state = np.zeros((slots, codes.FIELDS))
        self.state[:, codes.LENGTH] = self._lengths(slots)
        self.state[: len(self.kind.diffusion), codes.DIFFUSION] = self.kind.diffusion
        self.features = np.zeros((slots + 1, 2, n if self.deferred else 0), dtype=np.int64)  # the last: of U
        self.U = np.zeros((n if self.deferred else 0, codes.RING))
        self.L, self.A = np.zeros((slots, self.late, room)), np.zeros((slots, self.late))
        self.arrays: tuple[np.ndarray[Any, Any], ...] = (
            *(self.E, self.F, self.S, self.scalars, self.meta, self.losses_now, self.state, self.options),
            *(self.features, self.U, self.L, self.A),
            np.zeros((codes.VECTORS, long)),
            np.zeros((slots, room + 8)),
            np.zeros(height + 8),
            np.zeros(codes.LANES),
            np.zeros((panels, max(room, height) + 8, min(codes.WIDTH, wide))),
            np.zeros((codes.COPIES, wide)),
            index,
            np.zeros((self.late + 6, long if self.late else 0)),
        )
        self._locate()

    def _lengths(self, levels: int) -> Array:
        """What the steps of so many levels are divided by the root of."""
        level = np.arange(levels)
        if self.kind.spans:
            return np.resize(0.0 if self.kind.adapts else self.kind.spans, levels)
        if self.kind.start == codes.BIRTHS:  # see `kernels.levels.opening`
            level = 2 + np.where(level % 2, (level + 1) // 2, np.maximum(level - 2, 0) // 2)
        return np.asarray(self.base * np.exp2(level), dtype=np.float64)

    def _locate(self) -> None:
        """Where the kernels find the arrays, and how large they are."""
        rows, (slots, room), height = self.E.shape[1], self.S.shape, self.F.shape[1]
        panels, long = self.arrays[codes.AT_V].shape[0], self.arrays[codes.AT_VEC].shape[1]
        addresses = [array.ctypes.data for array in self.arrays]
        self.where = np.array([*addresses, slots, rows, room, height, panels, long, self.late], dtype=np.int64)
        # kernels know at compile time what there is
        self.how = (self.where, self.deferred or None, self.late > 0 or None, self.other or None)

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        scratch = (codes.AT_VEC, codes.AT_INDEX, codes.AT_LANE, codes.AT_COPIES)
        expected = [codes.VECTORS, codes.INDICES, codes.LANES, codes.COPIES]
        if [len(self.arrays[at]) for at in scratch] != expected:  # kernels would go beyond them
            raise ValueError(
                "this tracker was pickled by another version of ocelad; files of ocelad.save last longer"
            )
        # A copy has arrays of its own, and joblib makes two of an array that has two names.
        self.E, self.F, self.S, self.scalars, self.meta, self.losses_now = self.arrays[: codes.AT_STATE]
        self.state, self.options, self.features, self.U, self.L, self.A = self.arrays[
            codes.AT_STATE : codes.AT_VEC
        ]
        self._locate()

    def _reserve(self, levels: int, rank: int) -> None:
        """Room for so many levels, and one more column than so many in each, keeping what there is."""
        E, F, S, scalars, meta, losses, state, _, features, U, L, A = self.arrays[: codes.AT_VEC]
        slots, room = S.shape
        # moving columns of many features takes long, and slots that nothing is in cost nothing
        more_slots = max(levels + 1, 2 * slots if self.deferred else 0) if levels + 1 > slots else slots
        more_room = room
        if min(rank + 1, self.n) > room:
            # columns that are read in full had better lie close together; others are as well moved seldom
            dense = self.deferred and meta[codes.TOUCHED].max() == self.n
            more_room = whole(4, min(self.n, rank + 1 if dense else max(rank + 1, min(2 * room, self.most + 1))))
        self._allocate(more_slots, more_room)
        for slot in range(slots):  # only what is in use: sparse comparisons leave most of a dictionary empty
            own = features[slot, codes.LIST, : meta[codes.TOUCHED, slot]] if self.deferred else slice(None)
            self.E[slot, own, :room] = E[slot, own]
        self.F[:slots, : F.shape[1], :room] = F
        self.S[:slots, :room], self.scalars[:slots], self.losses_now[:slots] = S, scalars, losses
        self.state[:slots], self.U[:], self.L[:slots, :, :room], self.A[:slots] = state, U, L, A
        self.features[:slots], self.features[-1] = features[:-1], features[-1]
        self.meta[codes.CLOCK, :slots], self.meta[codes.ORDER, : slots - 1] = (
            meta[codes.CLOCK],
            meta[codes.ORDER, :-1],
        )
        self.meta[codes.RANK :, :slots] = meta[codes.RANK :]

    def _make_room(self, t: int) -> None:
        """So that the step after which the levels of time t open fits into the arrays."""
        self._settle()
        newcomer = self.levels + 1 if self.kind.start == codes.BIRTHS else 0
        levels = max(self.levels, newcomer or opening(self.base + t, self.base))
        rank = int(self.meta[codes.RANK, self.meta[codes.ORDER, : self.levels]].max(initial=0))
        slots, room = self.S.shape
        if levels >= slots or min(rank + 1, self.n) > room:
            self._reserve(levels, rank)

    def _settle(self) -> None:
        """Diagonalise learners that have no room for further terms (`kernels.late`)."""
        slots = self.meta[codes.ORDER, : self.levels]
        for slot in slots[self.meta[codes.COUNT, slots] + 2 > self.late] if self.late else ():
            r, m = self.meta[[codes.RANK, codes.COUNT], slot]
            L, a = self.L[slot, :m, :r], self.A[slot, :m]
            s, V = np.linalg.eigh(np.diag(self.S[slot, :r]) + (L.T * a) @ L)
            s[s <= 1e-14 * r * s[-1]] = 0.0
            kept = (s > 0.0) | (self.scalars[slot, codes.SIGMA] > 0.0)
            rank = int(kept.sum())
            self.E[slot, : self.n, :rank], self.S[slot, :rank] = self.E[slot, : self.n, :r] @ V[:, kept], s[kept]
            self.meta[[codes.RANK, codes.COUNT], slot] = rank, 0
