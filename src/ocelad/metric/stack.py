"""RICE of COMID learners as one stack of arrays: the same four verbs as a list of black boxes, compiled.

Each learner is kept by its eigenpairs (`kernels.factored`), for many features by a dictionary
(`kernels.dictionary`). A block of comparisons runs in a single call when the combiner has a compiled form;
otherwise Algorithm 1 drives the verbs.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from ..interrupt import undivided
from ..intervals import opening
from ..learner import Array, Ensemble, Integers, Opening
from ..ocelad import Ocelad
from .comid import Recipe
from .estimate import Metric
from .kernels import codes
from .kinds import GEOMETRIES, LOSSES, RICE, Kind, has_kernels
from .losses import MarginLoss, PairLoss
from .quadratic import Dense, Parts
from .rules import compiled_rule

_BLOCK = 4096  # comparisons per compiled call: Ctrl-C is heard in between
_DEFERRED = 100  # from so many features on, turning the columns themselves costs more than a dictionary;
_DEFERRED_FULL = 400  # so many where nothing keeps the rank down
_NONE: Integers = np.zeros(0, dtype=np.int64)


def _in(size: int, count: int) -> int:
    """The least multiple of a size that is not less."""
    return -(-count // size) * size


def rice(recipe: Recipe, loss: MarginLoss) -> Ensemble[Metric]:
    """RICE of COMID learners: a stack where there are kernels for these parts, a list of black boxes elsewhere."""
    stacks = has_kernels(loss, recipe.descent.regularizer, recipe.descent.divergence)
    return StackedRice(recipe, loss) if stacks else recipe.black_boxes()


class StackedRice:
    """The retro-initialised ensemble of COMID learners on (M, mu), as a stack of arrays.

    It opens its levels and moves its learners as ``Rice`` over ``Comid`` does, unless it is of another kind. A
    slot is a learner's place in the arrays; see `kernels.block` for how levels and slots are kept apart.
    """

    def __init__(self, recipe: Recipe, loss: MarginLoss, kind: Kind = RICE) -> None:
        descent = recipe.descent
        geometry = codes.LEADER if kind.leads else GEOMETRIES[type(descent.divergence)]
        self.n, self.base, self.kind = recipe.n, recipe.base, kind
        many = self.n >= (_DEFERRED if descent.regularizer.strength > 0.0 else _DEFERRED_FULL)
        self.deferred = many and geometry == codes.FROBENIUS
        self.most = self.n if recipe.max_rank is None else min(recipe.max_rank, self.n)
        unshrunk = descent.regularizer.strength == 0.0 and self.most == self.n >= codes.FULL
        plain = geometry == codes.FROBENIUS and not any(kind.diffusion)
        self.late = codes.LATE if unshrunk and plain and not self.deferred else 0
        self.options = np.zeros(codes.OPTIONS)
        self.options[codes.STEP], self.options[codes.BASE] = recipe.step, recipe.base
        self.options[codes.STRENGTH] = descent.regularizer.strength
        self.options[codes.THRESHOLD_STEP], self.options[codes.CAPPED] = descent.threshold_step, descent.step_cap
        self.options[codes.START] = codes.CONTINUES if recipe.start == "continue" else kind.start
        self.options[codes.LOSS], self.options[codes.GEOMETRY] = LOSSES[type(loss)], geometry
        self.options[codes.N], self.options[codes.MAX_RANK] = self.n, self.most
        self.options[codes.ADAPTS] = kind.adapts
        sigma, s, V = recipe.origin, np.zeros(0), np.zeros((self.n, 0))
        if not isinstance(sigma, float):
            s, V = np.linalg.eigh(sigma)
            kept = (s > 0) | (geometry != codes.FROBENIUS)  # others need all, and lift what is too small
            sigma, s, V = 0.0, s[kept], V[:, kept]
        rank = len(s)
        self._allocate(slots=max(5, len(kind.spans) + 1), room=min(_in(4, self.n), max(8, _in(4, rank + 1))))
        self.E[0, : self.n, :rank], self.S[0, :rank] = V, s
        if self.deferred and rank:
            self.F[0, :rank, :rank] = np.eye(rank)
            self.features[0, codes.LIST, : self.n], self.features[0, codes.MARK, : self.n] = np.arange(self.n), 1
            self.meta[codes.TOUCHED, 0] = self.n
        self.scalars[0, codes.SIGMA], self.scalars[0, codes.MU] = sigma, recipe.mu
        self.meta[codes.RANK, 0] = self.meta[codes.COUNT, 0] = rank

    @property
    def levels(self) -> int:
        return int(self.meta[codes.CLOCK, codes.LEVELS])

    @property
    def discarded(self) -> Array:
        """What each level has had to cut off from the trace of its matrix to stay within max_rank."""
        return self.scalars[self.meta[codes.ORDER, : self.levels], codes.DISCARDED]

    def _allocate(self, slots: int, room: int) -> None:
        """Arrays for so many learners of so many columns each, all empty."""
        n, wide = self.n, _in(8, room)
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
            np.zeros((5, wide)),
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
        self.how = (self.where, self.deferred or None, self.late > 0 or None)

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
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
        more_slots = levels + 1 + self.deferred if levels + 1 > slots else slots
        more_room = room
        if min(rank + 1, self.n) > room:
            # columns that are read in full had better lie close together; others are as well moved seldom
            dense = self.deferred and meta[codes.TOUCHED].max() == self.n
            more_room = _in(4, min(self.n, rank + 1 if dense else max(rank + 1, min(2 * room, self.most + 1))))
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

    # The four verbs

    def open(self, t: int) -> Opening:
        if t == 0:  # without the compiler: a tracker that has learned nothing is made at once
            levels = max(1, len(self.kind.spans))
            new = slice(1, levels + 1)
            for array in (self.E, self.F, self.S, self.scalars, self.features):
                array[new] = array[0]
            self.meta[codes.RANK :, new] = self.meta[codes.RANK :, :1]
            self.meta[codes.CLOCK, codes.LEVELS] = levels
            first, last = 0, levels
        else:
            while (opened := _kernels().open_levels(t, *self.how))[0] < 0:
                self._make_room(t)
            first, last = opened
        return Opening(t, tuple(range(first, last)), tuple(self.state[first:last, codes.LENGTH].tolist()))

    def losses(self, loss: PairLoss) -> Array:
        _kernels().one(loss.u, float(loss.y), self.where, False, *self.how[1:])
        return self.losses_now[: self.levels].copy()

    def update(self, loss: PairLoss) -> None:
        _kernels().one(loss.u, float(loss.y), self.where, True, *self.how[1:])
        self._settle()

    def mix(self, p: Array) -> Metric:
        return Metric(self.parts(p).M, self.threshold(p))

    def parts(self, p: Array) -> Parts:
        """The matrix of a mixture, not multiplied out."""
        taken = p > 0.0
        slots, p = self.meta[codes.ORDER, : self.levels][taken], p[taken]
        sigma = float(p @ self.scalars[slots, codes.SIGMA])
        if not self.deferred and not self.late:  # all at once, columns that are not in use too
            weights = p[:, None] * self._beyond(slots)
            own = weights != 0.0
            return Parts(self.E[slots].swapaxes(0, 1)[:, own], weights[own], sigma)
        columns, extra = zip(*(self._terms(slot) for slot in slots.tolist()), strict=True)
        weighted = np.repeat(p, [len(own) for own in extra]) * np.concatenate(extra)
        return Parts(np.hstack(columns), weighted, sigma)

    def _beyond(self, slots: Integers) -> Array:
        """By how much eigenvalues of these learners exceed their sigma; 0 for columns that are not in use."""
        used = np.arange(self.S.shape[1]) < self.meta[codes.RANK, slots, None]
        return np.where(used, self._eigenvalues(slots) - self.scalars[slots, codes.SIGMA, None], 0.0)

    def _terms(self, slot: int) -> tuple[Array, Array]:
        """The matrix of a learner, but for a multiple of the identity, as a sum of weighted squares of columns."""
        Q, rank = self.columns(slot), self.meta[codes.RANK, slot]
        s = self.S[slot, :rank] - self.scalars[slot, codes.SIGMA]
        if not self.late:
            return Q, s
        m = self.meta[codes.COUNT, slot]
        return np.hstack([Q, Q @ self.L[slot, :m, :rank].T]), np.concatenate([s, self.A[slot, :m]])

    def _eigenvalues(self, slots: Integers) -> Array:
        """A leader's are not kept, but follow from those of a sum: `kernels.mirror.shown`."""
        if not self.kind.leads:
            return self.S[slots]
        squares, t = self.state[slots - 1, codes.LENGTH], self.meta[codes.CLOCK, codes.TIME]
        step = self.options[codes.STEP] / np.sqrt(np.where(squares > 0.0, squares, np.inf))[:, None]
        return np.maximum(0.0, step * self.S[slots] - t * step * self.options[codes.STRENGTH])

    def threshold(self, p: Array) -> float:
        return float(p @ self.scalars[self.meta[codes.ORDER, : self.levels], codes.MU])

    def columns(self, slot: int) -> Array:
        """The directions that a learner has touched, orthonormal."""
        if not self.deferred:
            return self.E[slot, : self.n, : self.meta[codes.RANK, slot]]
        rank, count, since = self.meta[[codes.RANK, codes.COUNT, codes.SINCE], slot]
        own, shared = (
            self.E[slot, : self.n, :count],
            self.U[: self.n, since : self.meta[codes.CLOCK, codes.RECENT]],
        )
        F = self.F[slot, : count + shared.shape[1], :rank]
        return own @ F[:count] + shared @ F[count:]

    # All of Algorithm 1 in one call

    def compiles(self, ocelad: Ocelad[Metric], loss: MarginLoss) -> bool:  # noqa: ARG002
        """Whether the whole loop of this tracker has a compiled form; if so, it is set up for it."""
        rule = compiled_rule(ocelad.weights) if ocelad.order == "before" else None
        if rule is None:
            return False
        for code, value in rule.options.items():
            self.options[code] = value
        self.meta[codes.CLOCK, codes.SEED] = rule.seed
        return True

    def run(self, ocelad: Ocelad[Metric], u: Any, y: Array) -> None:
        """Learn comparisons, dense or CSR rows of differences, as ``ocelad.update`` would one by one."""
        kernels, done, many = _kernels(), 0, len(y)
        while done < many:
            self.state[: len(ocelad.state), : ocelad.state.shape[1]] = ocelad.state
            part = slice(done, done + _BLOCK)
            rows = u if done == 0 and many <= _BLOCK else u[part]  # a slice of sparse rows takes its time
            block = (*_differences(rows), y[part], *self.how)
            try:
                done += kernels.run(*block)
                self._report(ocelad)
            except BaseException:  # Ctrl-C is heard as the kernel returns, or later: it has learned nevertheless
                self._report(ocelad)
                raise
            if done < many or self.late:
                with undivided():  # here alone: it would take longer than a comparison
                    self._make_room(ocelad.t + 1)

    def _report(self, ocelad: Ocelad[Metric]) -> None:
        """Let Algorithm 1 know what the kernels have done: all of it or nothing."""
        t, levels = self.meta[codes.CLOCK, codes.TIME : codes.LEVELS + 1].tolist()
        state, losses = self.state[:levels, : ocelad.state.shape[1]].copy(), self.losses_now[:levels].copy()
        lengths = ocelad.lengths if len(ocelad.lengths) == levels else self.state[:levels, codes.LENGTH].copy()
        ocelad.t, ocelad.state, ocelad.losses, ocelad.lengths = t, state, losses, lengths


@cache
def _kernels() -> Any:
    """The kernels, imported, and compiled, only when a tracker first learns."""
    from .kernels import block

    return block


def _differences(u: Any) -> tuple[Array, Integers, Integers]:
    """As `kernels.block.run` takes them: values, and for sparse ones, where rows start and of which features."""
    if isinstance(u, np.ndarray):
        return u.reshape(-1), _NONE, _NONE
    return u.data, u.indptr.astype(np.int64), u.indices.astype(np.int64)


def mixture(ocelad: Ocelad[Metric]) -> tuple[Dense | Parts, float]:
    """The matrix and the threshold that will judge the next comparison."""
    stack = ocelad.ensemble
    if not isinstance(stack, StackedRice):
        estimate = ocelad.estimate
        return Dense(estimate.M), estimate.mu
    p = ocelad.weights.mixture(ocelad.state)
    parts = stack.parts(p)
    few = len(parts.extra) < stack.n  # else the matrix itself is smaller
    return parts if few else Dense(parts.M), stack.threshold(p)
