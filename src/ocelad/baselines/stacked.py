"""Ensembles of metric learners as one stack of arrays: the kernels of RICE, with other openings and other steps.

Where there are no kernels for what is to be learned, the same learners go on as black boxes.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from ..engine.kernels import codes
from ..engine.kinds import Kind, can_stack
from ..engine.stack import StackedRice
from ..ensemble import Pool, Slots
from ..geometry import Comid, MarginLoss, Metric, PairLoss
from ..geometry.comid import Recipe
from ..ocelad import Ocelad
from ..protocols import Array, Ensemble, Learner, Opening

FOREVER = 1 << 40
"""Nothing opens before so many comparisons have been learned."""


class Stacked:
    """Black boxes, put on a stack by the first comparison if there are kernels for it.

    Parameters
    ----------
    boxes
        The learners as they are without kernels.
    comid
        A learner from which all of them have their start and their descent, and the step of one of span 1.
    kind
        How the stack does what they do.
    base
        Length of the shortest intervals, if learners restart.
    """

    def __init__(self, boxes: Slots[Metric], comid: Comid, kind: Kind, base: int = FOREVER) -> None:
        start, most = comid.estimate, comid.max_rank
        M: float | Array = start.M if start.M.any() else 0.0
        self.recipe = Recipe(len(start.M), M, start.mu, comid.step, comid.descent, base, "fresh", most)
        self.boxes, self.kind = boxes, kind
        self.stack: StackedRice | None = None
        self.loss: MarginLoss | None = None  # what the stack has kernels for
        self.untouched = True

    @property
    def learners(self) -> list[Learner[Metric]]:
        """Each slot's learner, as it is now."""
        stack = self.stack
        return self.boxes.learners if stack is None else [self._taken(stack, k) for k in range(stack.levels)]

    def _taken(self, stack: StackedRice, level: int) -> Learner[Metric]:
        estimate, boxes = stack.mix(np.eye(stack.levels)[level]), self.boxes
        learner: Any
        if isinstance(boxes, Pool):
            learner = copy.copy(boxes.learners[level])
            learner.estimate = estimate
        else:
            spawn: Any = boxes
            learner = spawn.spawn(float(stack.state[level, codes.LENGTH]), estimate)
        if isinstance(learner, Comid):
            learner.discarded = float(stack.discarded[level])
        elif hasattr(learner, "resume"):
            learner.resume(stack, level)
        return learner

    # The four verbs

    def open(self, t: int) -> Opening:
        return self._now.open(t)

    def losses(self, loss: Any) -> Array:
        return self._for(loss).losses(loss)

    def update(self, loss: Any) -> None:
        self._for(loss).update(loss)

    def mix(self, p: Array) -> Metric:
        return self._now.mix(p)

    @property
    def _now(self) -> Ensemble[Metric]:
        now: Ensemble[Metric] = self.boxes if self.stack is None else self.stack  # type: ignore[assignment]
        return now

    def _for(self, loss: Any) -> Ensemble[Metric]:
        self._prepare(loss.loss if type(loss) is PairLoss else None)
        return self._now

    def _prepare(self, loss: MarginLoss | None) -> None:
        """Become a stack at the first comparison, if there are kernels for it; come apart at one without."""
        if self.untouched:
            if loss is not None and can_stack(self.kind, self.recipe, loss):
                stack = StackedRice(self.recipe, loss, self.kind)
                stack.open(0)
                self.stack, self.loss = stack, loss
            self.untouched = False
        if self.stack is not None and loss != self.loss:
            self.boxes.learners, self.stack = self.learners, None

    # All of Algorithm 1 in one call

    def compiles(self, ocelad: Ocelad[Metric], loss: MarginLoss) -> bool:
        """Whether the whole loop of this tracker has a compiled form; if so, it is set up for it."""
        self._prepare(loss)
        return self.stack is not None and self.stack.compiles(ocelad, loss)

    def run(self, ocelad: Ocelad[Metric], u: Any, y: Array) -> None:
        """Learn comparisons as ``ocelad.update`` would one by one."""
        assert self.stack is not None
        self.stack.run(ocelad, u, y)
