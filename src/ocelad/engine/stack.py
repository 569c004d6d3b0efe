"""RICE of COMID learners as one stack of arrays: the same four verbs as a list of black boxes, compiled.

Each learner is kept by its eigenpairs (`kernels.factored`), for many features by a dictionary
(`kernels.dictionary`). A block of comparisons runs in a single call when the combiner has a compiled form;
otherwise Algorithm 1 drives the verbs.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from ..geometry.comid import Recipe
from ..geometry.losses import MarginLoss, PairLoss
from ..geometry.metric import Metric
from ..geometry.quadratic import Dense, Parts
from ..interrupt import undivided
from ..ocelad import Ocelad
from ..protocols import Array, Ensemble, Integers, Opening
from .kernels import codes
from .kinds import GEOMETRIES, LOSSES, RICE, Kind, has_kernels
from .rules import compiled_rule
from .storage import Storage, whole

_BLOCK = 4096  # comparisons per compiled call: Ctrl-C is heard in between
_DEFERRED = 100  # from so many features on, turning the columns themselves costs more than a dictionary;
_DEFERRED_FULL = 400  # so many where nothing keeps the rank down
_NONE: Integers = np.zeros(0, dtype=np.int64)


def rice(recipe: Recipe, loss: MarginLoss) -> Ensemble[Metric]:
    """RICE of COMID learners: a stack where there are kernels for these parts, a list of black boxes elsewhere."""
    stacks = has_kernels(loss, recipe.descent.regularizer, recipe.descent.divergence)
    return StackedRice(recipe, loss) if stacks else recipe.black_boxes()


class StackedRice(Storage):
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
        self.other = not plain or kind.adapts or kind.start >= codes.RESTARTS  # else the compiler has less to do
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
        self._allocate(slots=max(5, len(kind.spans) + 1), room=max(8, whole(4, min(self.n, rank + 1))))
        self.E[0, : self.n, :rank], self.S[0, :rank] = V, s
        if self.deferred and rank:
            self.F[0, :rank, :rank] = np.eye(rank)
            self.features[0, codes.LIST, : self.n], self.features[0, codes.MARK, : self.n] = np.arange(self.n), 1
            self.meta[codes.TOUCHED, 0] = self.n
        self.scalars[0, codes.SIGMA], self.scalars[0, codes.MU] = sigma, recipe.mu
        self.meta[codes.RANK, 0] = rank
        self.meta[codes.COUNT, 0] = rank if self.deferred else 0

    @property
    def discarded(self) -> Array:
        """What each level has had to cut off from the trace of its matrix to stay within max_rank."""
        return self.scalars[self.meta[codes.ORDER, : self.levels], codes.DISCARDED]

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
        if rule.options[codes.RULE] in (codes.SAOL, codes.LEADING_HISTORY) and not self.other:
            self.other = True
            self._locate()
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
