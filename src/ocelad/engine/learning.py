"""How rows of differences reach the ensemble: compiled where that is possible, loss by loss elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from ..geometry.comid import Recipe
from ..geometry.losses import MarginLoss, OrderLoss, PairLoss, Weighted
from ..geometry.metric import Metric
from ..interrupt import undivided
from ..ocelad import Ocelad
from ..protocols import Array
from .rows import dense_blocks
from .stack import StackedRice


@dataclass(slots=True, eq=False)
class Learners:
    """Algorithm 2 at work: the ensemble, the margin loss, and what its stack is when taken apart."""

    ocelad: Ocelad[Metric]
    loss: MarginLoss
    recipe: Recipe

    def take_apart(self) -> None:
        """Put black boxes in the place of a stack: the same learners, free to take any loss."""
        stack = self.ocelad.ensemble
        if isinstance(stack, StackedRice):
            ensemble, spawn, lengths = self.recipe.black_boxes(), self.recipe.spawn(), self.ocelad.lengths
            for length, p, discarded in zip(lengths, np.eye(len(lengths)), stack.discarded, strict=True):
                learner = spawn(length, stack.mix(p))
                learner.discarded = float(discarded)
                ensemble.learners.append(learner)
            self.ocelad.ensemble = ensemble


class Comparisons(Protocol):
    """What is to be learned: rows, each of ``parts`` differences, and how to learn them once they are in units."""

    @property
    def rows(self) -> Any: ...

    @property
    def parts(self) -> int: ...

    def teach(self, learners: Learners, rows: Any, /) -> None: ...

    def watched(self, history: Any, learners: Learners, rows: Any, /) -> None:
        """The same, seen by a `History`."""


@dataclass(slots=True, eq=False)
class Pairs:
    """Similar or different: u = x - z and y."""

    rows: Any
    y: Array
    weight: Array | None = None
    parts: int = 1

    def __getitem__(self, part: slice) -> Pairs:
        return Pairs(self.rows[part], self.y[part], None if self.weight is None else self.weight[part])

    def weighted(self, weight: Array) -> Pairs:
        """The losses times their weights; those without weight left out."""
        kept = weight > 0
        weight = weight[kept]
        return Pairs(self.rows[kept], self.y[kept], None if (weight == 1).all() else weight)

    def teach(self, learners: Learners, rows: Any) -> None:
        ocelad, weight = learners.ocelad, self.weight
        if weight is not None:
            learners.take_apart()
        ensemble: Any = ocelad.ensemble  # one with ``compiles`` and ``run`` takes many comparisons in one call
        if weight is None and hasattr(ensemble, "compiles") and ensemble.compiles(ocelad, learners.loss):
            ensemble.run(ocelad, rows, self.y)
            return
        with undivided() as pause:  # once for all: it takes longer than a step of some learners
            for part, u in dense_blocks(rows):
                for k, difference in enumerate(u, part.start):
                    loss = learners.loss if weight is None else Weighted(learners.loss, float(weight[k]))
                    ocelad.update(PairLoss(difference, int(self.y[k]), loss))
                    pause()

    def watched(self, history: Any, learners: Learners, rows: Any) -> None:
        def piece(part: slice) -> None:
            self[part].teach(learners, rows[part])

        history.learn(learners.ocelad, learners.loss, rows, self.y, piece)


@dataclass(frozen=True, eq=False)
class Orders:
    """Closer than: two differences side by side, to be measured in one unit, that of their root mean square."""

    near: Any
    far: Any
    parts: int = 2

    @property
    def rows(self) -> Any:
        if sparse.issparse(self.near):
            return sparse.hstack([self.near, self.far]).tocsr() / np.sqrt(2.0)
        return np.hstack([self.near, self.far]) / np.sqrt(2.0)

    def teach(self, learners: Learners, rows: Any) -> None:
        learners.take_apart()
        with undivided() as pause:
            for _, both in dense_blocks(rows):
                for near, far in np.sqrt(2.0) * both.reshape(len(both), 2, -1):
                    learners.ocelad.update(OrderLoss(near, far, learners.loss))
                    pause()

    def watched(self, history: Any, learners: Learners, rows: Any) -> None:  # noqa: ARG002
        """They have no label to judge by: the clock moves, unseen."""
        self.teach(learners, rows)
