"""Restarted COMID learners as one stack of arrays: RICE's, where levels that open forget what they took over.

Where there are no kernels for what is to be learned, the same learners go on as black boxes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ensemble import Restarted
from ..learner import Array, Ensemble, Learner, Opening
from ..metric import Hinge, MarginLoss, Metric, PairLoss
from ..metric.comid import ComidOnIntervals, Recipe
from ..metric.kernels import codes
from ..metric.stack import StackedRice, has_kernels


class StackedRestarted:
    """`Restarted` over `Comid`, compiled for one margin loss."""

    def __init__(self, spawn: ComidOnIntervals, base: int = 1, loss: MarginLoss = Hinge()) -> None:
        self.spawn, self.base, self.loss = spawn, base, loss
        self.boxes = Restarted(spawn, base)
        self.stack: StackedRice | None = None
        descent, start = spawn.descent, spawn.origin
        if has_kernels(loss, descent.regularizer, descent.divergence):
            M: float | Array = start.M if start.M.any() else 0.0
            recipe = Recipe(len(start.M), M, start.mu, spawn.step, descent, base, "fresh", spawn.max_rank)
            self.stack = StackedRice(recipe, loss)

    @property
    def learners(self) -> list[Learner[Metric]]:
        """Each level's learner, as it is now."""
        stack = self.stack
        if stack is None:
            return self.boxes.learners
        made: list[Learner[Metric]] = []
        for level, discarded in enumerate(stack.discarded):
            comid = self.spawn(self.base << level, stack.mix(np.eye(stack.levels)[level]))
            comid.discarded = float(discarded)
            made.append(comid)
        return made

    def open(self, t: int) -> Opening:
        if self.stack is None:
            return self.boxes.open(t)
        now = self.stack.open(t)
        for level in now.slots[1:]:  # level 0 has taken over from nobody
            self._forget(self.stack, level)
        return now

    @staticmethod
    def _forget(stack: StackedRice, level: int) -> None:
        """Put the origin, which is in slot 0, in the place of what a level holds."""
        slot = stack.meta[codes.ORDER, level]
        for array in (stack.E, stack.F, stack.S, stack.scalars, stack.features):
            array[slot] = array[0]
        stack.meta[codes.RANK :, slot] = stack.meta[codes.RANK :, 0]
        stack.meta[codes.SINCE, slot] = stack.meta[codes.CLOCK, codes.RECENT]

    def losses(self, loss: Any) -> Array:
        return self._for(loss).losses(loss)

    def update(self, loss: Any) -> None:
        self._for(loss).update(loss)

    def mix(self, p: Array) -> Metric:
        return (self.boxes if self.stack is None else self.stack).mix(p)

    def _for(self, loss: Any) -> Ensemble[Metric]:
        """The ensemble that can take this loss: the stack, unless it has been taken apart, now or before."""
        if self.stack is not None and type(loss) is PairLoss and loss.loss == self.loss:
            return self.stack
        if self.stack is not None:
            self.boxes.learners, self.stack = self.learners, None
        return self.boxes
