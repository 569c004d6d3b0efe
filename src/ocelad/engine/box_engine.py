"""Algorithm 1 over black boxes: `Ocelad` itself, behind the verbs of an engine. It is the definition, and slow."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from scipy.special import expit, logit

from .. import platt
from ..ensemble import Rice
from ..geometry.comid import ComidOnIntervals, Recipe
from ..geometry.losses import MarginLoss, OrderLoss, PairLoss, Weighted
from ..geometry.metric import Metric
from ..geometry.quadratic import Dense, Parts
from ..grouped_share import GroupedShare
from ..interrupt import hold_interrupts
from ..intervals import length
from ..ocelad import Ocelad
from ..platt import Decision
from ..protocols import Array, Weights
from .checks import LEVEL, take, take_levels
from .protocol import Arrays, Judgement
from .rows import dense_blocks
from .trace import EXPERT, EXPERTS, LOSS, PROBABILITY, SQUARED_DISTANCE, THRESHOLD, Trace


class BoxEngine:
    """Any ensemble of metric learners, any margin loss, any combiner, one comparison after the other.

    Under `GroupedShare` the ensemble is a pool that speaks log odds (`engine.experts`), its mixture calibrated.
    """

    def __init__(
        self, ocelad: Ocelad[Metric], loss: MarginLoss, recipe: Recipe, scaling: Array | None = None
    ) -> None:
        self.ocelad, self.loss, self.recipe = ocelad, loss, recipe
        self.pooled = isinstance(ocelad.weights, GroupedShare)
        self.scaling = platt.unscaled(2) if scaling is None else scaling.copy()  # of margins, of probabilities

    def __copy__(self) -> BoxEngine:
        return BoxEngine(copy.copy(self.ocelad), self.loss, self.recipe, self.scaling)

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
                    margins = self._margins(loss) if self.pooled and y is not None else ()
                    predicted = None if trace is None else self._predicted(loss, *margins)
                    self.ocelad.take(loss)
                    for scaling, m in zip(self.scaling, margins, strict=False):
                        similar, ridge = loss.y > 0, platt.MIXTURE_RIDGE  # type: ignore[union-attr]
                        platt.recalibrate(scaling, m, similar, loss.weight, ridge, platt.LEAST_SLOPE)
                    if trace is not None:
                        self._write(trace, k, predicted)
                    pause()

    def _margins(self, loss: Any) -> tuple[float, float]:
        """The compressed margin of a pool's mixture, and the log odds of its probability."""
        metric = self.ocelad.estimate
        square = metric.squared_distance(loss.u)
        return platt.compress(metric.mu - square), float(logit(self._probability(loss.u[None])[0]))

    def _predicted(self, loss: PairLoss | OrderLoss, _: float = 0.0, odds: float = 0.0) -> Array:
        """The mixture's squared distance, threshold, probability and loss; of a pool, calibrated."""
        metric, row = self.ocelad.estimate, np.full(EXPERTS, np.nan)
        row[LOSS] = self._mixed(loss) if self.pooled else loss(metric)
        if isinstance(loss, PairLoss):
            row[SQUARED_DISTANCE], row[THRESHOLD] = metric.squared_distance(loss.u), self.decision().even
            if self.pooled:
                row[PROBABILITY] = expit(self.scaling[1, platt.SLOPE] * odds + self.scaling[1, platt.SHIFT])
        row[SQUARED_DISTANCE] = np.maximum(row[SQUARED_DISTANCE], 0.0)
        return row

    def _mixed(self, loss: PairLoss | OrderLoss) -> float:
        """-log of the probability that a pool gave to what came."""
        losses = self.ocelad.ensemble.losses(loss)
        return float(losses.min() - np.log(self.ocelad.probabilities @ np.exp(losses.min() - losses)))

    def _write(self, trace: Trace, k: int, predicted: Array | None) -> None:
        ocelad, experts = self.ocelad, len(self.ocelad.lengths)
        trace.reserve(experts)
        trace.table[k, :EXPERTS] = predicted
        trace.weights[k, :experts], trace.losses[k, :experts] = ocelad.probabilities, ocelad.losses
        trace.kinds, trace.lengths = self._kinds(), ocelad.lengths.copy()

    def judge(self, u: Any) -> Judgement:
        metrics = self.metrics()
        squares = np.column_stack([Dense(metric.M).squares(u) for metric in metrics])
        thresholds, p = np.array([metric.mu for metric in metrics]), self.ocelad.weights.mixture(self.ocelad.state)
        return Judgement(squares, thresholds, p, (squares @ p, float(thresholds @ p)))

    def _probability(self, u: Any) -> Array:
        """The mixture of the probabilities of all experts that pairs are similar."""
        judged, union = self.judge(u), self.ocelad.ensemble
        floors = np.full(len(judged.weight), platt.CALIBRATED_FLOOR)
        for part in getattr(union, "ensembles", ()):
            if hasattr(part, "floors"):
                floors[: len(part.floors)] = part.floors
        p = floors + (1.0 - 2.0 * floors) * expit(judged.threshold - judged.squared_distance)
        return np.asarray(p @ judged.weight)

    def mixture_odds(self, u: Any) -> Array:
        if not self.pooled:
            raise AttributeError("mixture_proba is of a pool: weights must be GroupedShare()")
        return np.asarray(
            self.scaling[1, platt.SLOPE] * logit(self._probability(u)) + self.scaling[1, platt.SHIFT]
        )

    def mixture(self) -> tuple[Dense | Parts, float]:
        estimate = self.ocelad.estimate
        return Dense(estimate.M), estimate.mu

    def decision(self, judged: Judgement | None = None) -> Decision:
        mu = self.ocelad.estimate.mu if judged is None else judged.mixture[1]
        if not self.pooled:
            return Decision(max(1.0, mu))
        slope, shift = self.scaling[0, : platt.SHIFT + 1].tolist()
        return Decision(mu, slope, shift, compressed=True)

    def experts(self) -> np.ndarray[Any, np.dtype[np.void]]:
        ocelad = self.ocelad
        table = np.zeros(len(ocelad.lengths), dtype=EXPERT)
        table["kind"], table["length"] = self._kinds(), ocelad.lengths
        table["weight"], table["loss"] = ocelad.probabilities, ocelad.losses
        return table

    def _kinds(self) -> list[str]:
        ensemble: Any = self.ocelad.ensemble
        if self.pooled:
            return [ensemble.ensembles[part].kind for part, _ in ensemble.slots]
        return ["rice" if isinstance(ensemble, Rice) else "learner"] * len(self.ocelad.lengths)

    def metrics(self) -> list[Metric]:
        return [self.ocelad.ensemble.mix(p) for p in np.eye(len(self.ocelad.lengths))]

    @property
    def discarded(self) -> Array:
        return np.array([learner.discarded for learner in self._learners()])

    # Files hold RICE of COMID learners

    def _learners(self) -> list[Any]:
        """Of the given ensemble, without what a pool has besides."""
        ensemble: Any = self.ocelad.ensemble
        return (ensemble.ensembles[-1].inner if self.pooled else ensemble).learners

    def _rice(self) -> Rice[Metric]:
        ensemble: Any = self.ocelad.ensemble
        if self.pooled:
            raise ValueError(
                "a pool that does not run compiled cannot be saved: with weights=FixedShare() its levels can"
            )
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
