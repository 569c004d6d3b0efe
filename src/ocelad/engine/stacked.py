"""Ensembles of COMID learners that start from the origin, compiled: all of them take a comparison in one call.

Which learners there are, and when they start again, is the business of another ensemble, the schedule. Learners of
other kinds, and losses without kernels, are left to it altogether.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any, Self

import numpy as np

from ..ensemble import Slots, copied
from ..geometry.comid import ComidOnIntervals, Recipe
from ..geometry.losses import MarginLoss, OrderLoss, PairLoss, Weighted
from ..geometry.metric import Metric
from ..protocols import Array, Opening, Spawn
from ..weights import SaolWeights
from .build import has_kernels

NEVER = 1 << 60
"""The base of a clock on which no level opens by itself."""


class Stacked:
    """The learners of a schedule that starts all of them from the origin of ``spawn``, in one stack.

    A comparison is learned ahead, in a copy, as soon as its losses are asked for, and ``update`` takes the copy.

    Parameters
    ----------
    schedule
        Its ``open`` says which slots start again. Of its learners only the steps count.
    spawn
        What makes its learners.

    Examples
    --------
    >>> from ocelad import Hinge, Pool
    >>> from ocelad.geometry import Descent
    >>> spawn = ComidOnIntervals(Metric(np.zeros((1, 1)), 1.0), 1.0, Descent())
    >>> ensemble = Stacked(Pool([spawn(1.0, None), spawn(4.0, None)]), spawn)
    >>> ensemble.update(PairLoss(np.ones(1), -1, Hinge()))
    >>> [round(learner.estimate.M.item(), 2) for learner in ensemble.learners]
    [0.98, 0.49]
    """

    def __init__(self, schedule: Slots[Metric], spawn: Spawn[Metric]) -> None:
        self.schedule: Any = schedule
        self.spawn = spawn
        self._now: Any = None  # the engine whose levels are the learners, from the first loss on
        self._ahead: Any = None  # another, which has learned the latest loss already
        self._latest: Any = None
        self._compiled = type(spawn) is ComidOnIntervals

    def __copy__(self) -> Self:
        other = object.__new__(type(self))
        own = {"schedule": copy.copy(self.schedule), "_now": copy.copy(self._now)}
        other.__dict__.update(self.__dict__, **own, _ahead=None, _latest=None)
        return other

    def __getstate__(self) -> dict[str, Any]:
        """An engine would want to save what it has learned as RICE."""
        kept = None if self._now is None else (self._now.loss, self._now.buffers)
        return {**self.__dict__, "_now": kept, "_ahead": None, "_latest": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self._now is not None:
            loss, buffers = self._now
            self._now = self._engine(loss)._with(buffers)

    def open(self, t: int) -> Opening:
        opening = self.schedule.open(t)
        self._latest = None
        if self._now is not None:
            self._restart(opening.slots)
        return opening

    def losses(self, loss: Any) -> Array:
        given = self._given(loss)
        return self.schedule.losses(loss) if given is None else self._learn_ahead(loss, given)

    def update(self, loss: Any) -> None:
        if self._latest is None or self._latest is not loss:
            given = self._given(loss)
            if given is None:
                return self.schedule.update(loss)
            self._learn_ahead(loss, given)
        self._now, self._ahead, self._latest = self._ahead, self._now, None
        return None

    def mix(self, p: Array) -> Metric:
        if self._now is None:
            return self.schedule.mix(p)
        from .mixture import weighted_sum

        stack, chosen = self._now.stack, np.flatnonzero(p)
        slots = stack.order[chosen]
        return Metric(weighted_sum(stack, slots, p[chosen]).M, p[chosen] @ stack.mu[slots])

    @property
    def learners(self) -> list[Any]:
        """The learners as black boxes."""
        if self._now is None:
            return self.schedule.learners
        learners: list[Any] = [copied(learner) for learner in self.schedule.learners]
        for learner, p, discarded in zip(learners, np.eye(len(learners)), self._now.discarded, strict=True):
            learner.estimate, learner.discarded = self.mix(p), float(discarded)
        return learners

    def _given(self, loss: Any) -> tuple[Array, Array, Array] | None:
        """Differences, label and weight as kernels take them; None if the loss is for black boxes."""
        if not self._compiled:
            return None
        margin_loss: Any = getattr(loss, "loss", None)
        weight = np.zeros(0)
        if isinstance(margin_loss, Weighted):
            margin_loss, weight = margin_loss.loss, np.array([margin_loss.weight])
        if self._now is None:
            self._begin(margin_loss)
        if self._now is not None and type(self._now.loss) is type(margin_loss):
            if type(loss) is PairLoss:
                return loss.u, np.array([float(loss.y)]), weight
            if type(loss) is OrderLoss:
                return np.concatenate([loss.near, loss.far]), np.zeros(0), weight
        self.schedule.learners = self.learners
        self._now, self._compiled = None, False
        return None

    def _engine(self, loss: MarginLoss) -> Any:
        from .stack_engine import StackEngine

        spawn: Any = self.spawn
        M, mu = spawn.origin.M, spawn.origin.mu
        recipe = Recipe(len(M), M, mu, spawn.step, spawn.descent, NEVER, "fresh", spawn.max_rank)
        return StackEngine(recipe, loss, SaolWeights())  # weights that are not compiled, for they are not used

    def _begin(self, loss: Any) -> None:
        """With an engine, if there is one."""
        spawn: Any = self.spawn
        recipe = Recipe(len(spawn.origin.M), 0.0, 1.0, spawn.step, spawn.descent, NEVER, "fresh")
        if not has_kernels(recipe, loss, SaolWeights()):
            return
        engine = self._engine(loss)
        if not engine.dictionary:
            engine.reserve_slots(len(self.schedule.learners))
            self._now = engine
            self._restart(range(len(self.schedule.learners)))

    def _restart(self, slots: Iterable[int]) -> None:
        """These learners are at the origin, which is in slot 0 of the stack."""
        engine, learners = self._now, self.schedule.learners
        if len(learners) > engine.levels:
            engine.reserve_slots(len(learners))
        stack = engine.stack
        rank, sigma, mu = stack.rank[0], stack.sigma[0], stack.mu[0]
        for slot in slots:
            at = stack.order[slot]
            stack.rank[at], stack.sigma[at], stack.mu[at], stack.discarded[at] = rank, sigma, mu, 0.0
            stack.lengths[slot] = (engine.recipe.step / learners[slot].step) ** 2
            if rank > 0:
                stack.columns[at], stack.eigenvalues[at] = stack.columns[0], stack.eigenvalues[0]

    def _learn_ahead(self, loss: Any, given: tuple[Array, Array, Array]) -> Array:
        now, ahead = self._now, self._ahead
        if ahead is None or ahead.buffers.sizes != now.buffers.sizes:
            self._ahead = ahead = copy.copy(now)
        else:
            np.copyto(ahead.buffers.floats, now.buffers.floats)
            np.copyto(ahead.buffers.integers, now.buffers.integers)
        ahead.learn_one(*given)
        self._latest = loss
        return np.array(ahead.stack.losses[: len(self.schedule.learners)])
