"""Algorithm 1 over black boxes: `Ocelad` itself, behind the verbs of an engine. It is the definition, and slow."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from ..ensemble import Rice
from ..geometry.comid import ComidOnIntervals, Recipe
from ..geometry.losses import MarginLoss, OrderLoss, PairLoss, Weighted
from ..geometry.metric import Metric
from ..geometry.quadratic import Dense, Parts
from ..interrupt import hold_interrupts
from ..intervals import length
from ..ocelad import Ocelad
from ..protocols import Array, Weights
from .checks import LEVEL, take, take_levels
from .protocol import Arrays, Judgement
from .rows import dense_blocks
from .trace import EXPERT, LOSS, SQUARED_DISTANCE, THRESHOLD, Trace


class BoxEngine:
    """Any ensemble of metric learners, any margin loss, any combiner, one comparison after the other."""

    def __init__(self, ocelad: Ocelad[Metric], loss: MarginLoss, recipe: Recipe) -> None:
        self.ocelad, self.loss, self.recipe = ocelad, loss, recipe

    def __copy__(self) -> BoxEngine:
        return BoxEngine(copy.copy(self.ocelad), self.loss, self.recipe)

    @property
    def t(self) -> int:
        return self.ocelad.t

    @property
    def weights(self) -> Weights:
        return self.ocelad.weights

    def run(self, u: Any, y: Array | None, weight: Array | None = None, trace: Trace | None = None) -> None:
        with hold_interrupts() as pause:  # once for all: it takes longer than a step of some learners
            for part, rows in dense_blocks(u):
                for k, row in enumerate(rows, part.start):
                    margin_loss = self.loss if weight is None else Weighted(self.loss, float(weight[k]))
                    loss: PairLoss | OrderLoss
                    if y is None:
                        loss = OrderLoss(row[: self.recipe.n], row[self.recipe.n :], margin_loss)
                    else:
                        loss = PairLoss(row, int(y[k]), margin_loss)
                    predicted = None if trace is None else self._predicted(loss)
                    self.ocelad.update(loss)
                    if trace is not None:
                        self._write(trace, k, predicted)
                    pause()

    def _predicted(self, loss: PairLoss | OrderLoss) -> Array:
        """The mixture's squared distance and threshold, and the loss of both."""
        metric, row = self.ocelad.estimate, np.full(3, np.nan)
        if isinstance(loss, PairLoss):
            row[SQUARED_DISTANCE], row[THRESHOLD] = max(0.0, metric.squared_distance(loss.u)), max(1.0, metric.mu)
        row[LOSS] = loss(metric)
        return row

    def _write(self, trace: Trace, k: int, predicted: Array | None) -> None:
        ocelad, experts = self.ocelad, len(self.ocelad.lengths)
        trace.reserve(experts)
        trace.table[k, :3] = predicted
        trace.weights[k, :experts], trace.losses[k, :experts] = ocelad.probabilities, ocelad.losses
        trace.lengths = ocelad.lengths.copy()

    def judge(self, u: Any) -> Judgement:
        metrics = self.metrics()
        squares = np.column_stack([Dense(metric.M).squares(u) for metric in metrics])
        thresholds, p = np.array([metric.mu for metric in metrics]), self.ocelad.weights.mixture(self.ocelad.state)
        return Judgement(squares, thresholds, p, (squares @ p, float(thresholds @ p)))

    def mixture(self) -> tuple[Dense | Parts, float]:
        estimate = self.ocelad.estimate
        return Dense(estimate.M), estimate.mu

    def threshold(self) -> float:
        return max(1.0, self.ocelad.estimate.mu)

    def experts(self) -> np.ndarray[Any, np.dtype[np.void]]:
        ocelad = self.ocelad
        table = np.zeros(len(ocelad.lengths), dtype=EXPERT)
        table["length"], table["weight"], table["loss"] = ocelad.lengths, ocelad.probabilities, ocelad.losses
        return table

    def metrics(self) -> list[Metric]:
        return [self.ocelad.ensemble.mix(p) for p in np.eye(len(self.ocelad.lengths))]

    @property
    def discarded(self) -> Array:
        return np.array([learner.discarded for learner in self._learners()])

    # Files hold RICE of COMID learners

    def _learners(self) -> list[Any]:
        ensemble: Any = self.ocelad.ensemble
        return ensemble.learners

    def _rice(self) -> Rice[Metric]:
        ensemble: Any = self.ocelad.ensemble
        if type(ensemble) is not Rice or type(ensemble.spawn) is not ComidOnIntervals:
            raise ValueError(f"ensemble cannot be saved: a file holds RICE of COMID learners, not {ensemble!r}")
        if not _made_from(ensemble, self.recipe):
            raise ValueError("options have changed since the first comparison: the ensemble is not made from them")
        return ensemble

    @property
    def learned(self) -> tuple[str, ...]:
        return ("levels", "matrices")

    def reserve(self, levels: int, columns: int) -> None:
        """Nothing to do."""

    def snapshot(self) -> Arrays:
        self._rice()
        ocelad, estimates = self.ocelad, [learner.estimate for learner in self._learners()]
        mu, matrices = [estimate.mu for estimate in estimates], np.array([estimate.M for estimate in estimates])
        return {"levels": np.column_stack([ocelad.losses, mu, self.discarded, ocelad.state]), "matrices": matrices}

    def restored(self, t: int, learned: Arrays) -> BoxEngine:
        other, n = copy.copy(self), self.recipe.n
        rice, ocelad = other._rice(), other.ocelad
        columns, state = take_levels(learned, LEVEL, t, rice.base, self.weights)
        lengths = [float(length(level, rice.base)) for level in range(len(state))]
        for M in take(learned, "matrices", (len(lengths), n, n)):
            size = float(np.abs(M).max()) or 1.0
            symmetric = np.abs(M / size - M.T / size).max() <= 1e-9
            if not symmetric or np.linalg.eigvalsh(M / size)[0] < -1e-8 * n:
                raise ValueError("matrices holds one that is not symmetric and positive semi-definite")
        rice.learners = []
        for M, mu, size, discarded in zip(
            learned["matrices"], columns["mu"], lengths, columns["discarded"], strict=True
        ):
            learner: Any = rice.spawn(size, Metric(M, mu))
            learner.discarded = discarded
            rice.learners.append(learner)
        ocelad.t, ocelad.lengths = t, np.array(lengths)
        ocelad.state, ocelad.losses = np.array(state), np.array(columns["loss"])
        return other


def _made_from(rice: Any, recipe: Recipe) -> bool:
    own, said = rice.spawn, recipe.spawn()
    same = (own.step, own.descent, own.max_rank) == (said.step, said.descent, said.max_rank)
    same = same and (rice.base, rice.start) == (recipe.base, recipe.start)
    return same and own.origin.mu == said.origin.mu and np.array_equal(own.origin.M, said.origin.M)
