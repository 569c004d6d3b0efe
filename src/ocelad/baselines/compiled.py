"""A COMID learner at the kernels' speed, for any ensemble: a stack of one level whose interval never ends.

Where there are no kernels for the loss, the regularizer or the divergence, it is the black box it was made from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..learner import Array, Spawn
from ..metric import Comid, Metric, PairLoss
from ..metric.comid import Recipe
from ..metric.stack import StackedRice, has_kernels

_FOREVER = 1 << 40  # a power of four: its root is exact, and so is the step
_ALL = np.ones(1)


class CompiledComid:
    """One `Comid` learner. What it believes is kept in place: an interrupt between two learners of an ensemble may
    leave one of them a comparison ahead."""

    def __init__(self, comid: Comid) -> None:
        self.comid, self.age = comid, 0
        self.stack: StackedRice | None = None

    @property
    def estimate(self) -> Metric:
        return self.comid.estimate if self.stack is None else self.stack.mix(_ALL)

    @property
    def step(self) -> float:
        return self.comid.step

    @property
    def discarded(self) -> float:
        return self.comid.discarded + (0.0 if self.stack is None else float(self.stack.discarded[0]))

    def judge(self, loss: Any) -> float:
        """The loss of the present estimate."""
        stack = self._stack_for(loss)
        return float(loss(self.comid.estimate) if stack is None else stack.losses(loss)[0])

    def update(self, loss: Any) -> None:
        stack = self._stack_for(loss)
        if stack is None:
            self.comid.update(loss)
            return
        stack.update(loss)
        self.age += 1
        stack.open(self.age)  # opens nothing, but makes room for the next comparison and mends the columns

    def _stack_for(self, loss: Any) -> StackedRice | None:
        comid, descent = self.comid, self.comid.descent
        if type(loss) is PairLoss and has_kernels(loss.loss, descent.regularizer, descent.divergence):
            if self.stack is None:
                M: float | Array = comid.estimate.M if comid.estimate.M.any() else 0.0
                n, mu, step = len(comid.estimate.M), comid.estimate.mu, comid.step * _FOREVER**0.5
                recipe = Recipe(n, M, mu, step, descent, _FOREVER, "fresh", comid.max_rank)
                self.stack, self.age = StackedRice(recipe, loss.loss), 0
                self.stack.open(0)
        elif self.stack is not None:
            comid.discarded, comid.estimate, self.stack = self.discarded, self.estimate, None
        return self.stack

    def __copy__(self) -> CompiledComid:
        return self


@dataclass(frozen=True)
class compiled:
    """The learners of a tracker, as its ensemble spawns them, compiled."""

    spawn: Spawn[Metric]

    def __call__(self, length: float, start: Metric | None) -> CompiledComid:
        learner: Any = self.spawn(length, start)
        return CompiledComid(learner)
