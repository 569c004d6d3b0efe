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
from .checks import GROUP, LEVEL, take, take_levels
from .protocol import Arrays, Judgement
from .rows import dense_blocks
from .trace import EXPERT, EXPERTS, LOSS, PROBABILITY, SQUARED_DISTANCE, THRESHOLD, Trace


class BoxEngine:
    """Any ensemble of metric learners, any margin loss, any combiner, one comparison after the other.

    Under `GroupedShare` the ensemble is a pool that speaks log odds (`engine.experts`), its mixture calibrated.
    """

    nonlinear: str | None = None  # these experts exist only compiled

    def __init__(self, ocelad: Ocelad[Metric], loss: MarginLoss, recipe: Recipe, memory: int | None) -> None:
        self.ocelad, self.loss, self.recipe, self.memory = ocelad, loss, recipe, memory
        self.pooled = isinstance(ocelad.weights, GroupedShare)
        self.scaling = platt.unscaled(2)  # of margins, of probabilities

    def __copy__(self) -> BoxEngine:
        other = BoxEngine(copy.copy(self.ocelad), self.loss, self.recipe, self.memory)
        other.scaling = self.scaling.copy()
        return other

    @property
    def t(self) -> int:
        return self.ocelad.t

    @property
    def weights(self) -> Weights:
        return self.ocelad.weights

    def run(
        self,
        u: Any,
        y: Array | None,
        weight: Array | None = None,
        trace: Trace | None = None,
        implied: bool = False,
    ) -> None:
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
                    for scaling, m in zip(self.scaling, () if implied else margins, strict=False):
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

    def mixture_of_maps(self) -> tuple[Any, list[Array]]:
        return None, []

    def observe(self, points: Array, refresh: bool = False) -> None:
        """There are no landmarks to take from them."""

    def judge(self, u: Any) -> Judgement:
        metrics = self.metrics()
        squares = np.column_stack([Dense(metric.M).squares(u) for metric in metrics])
        thresholds, p = np.array([metric.mu for metric in metrics]), self.ocelad.rule.mixture(self.ocelad.state)
        return Judgement(squares, thresholds, p, (squares @ p, float(thresholds @ p)))

    def _probability(self, u: Any) -> Array:
        """The mixture of the probabilities of all experts that pairs are similar."""
        judged, floors = self.judge(u), self._ensemble.floors
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
        if self.pooled:
            return list(self._ensemble.kinds)
        return ["rice" if isinstance(self._ensemble, Rice) else "learner"] * len(self.ocelad.lengths)

    def metrics(self) -> list[Metric]:
        return [self.ocelad.ensemble.mix(p) for p in np.eye(len(self.ocelad.lengths))]

    @property
    def discarded(self) -> Array:
        return np.array([learner.discarded for learner in self._given.learners])

    @property
    def _ensemble(self) -> Any:
        """Any, or the `Experts` of a pool."""
        return self.ocelad.ensemble

    @property
    def _given(self) -> Any:
        """The given ensemble, without what a pool has besides."""
        return self._ensemble.given if self.pooled else self._ensemble

    # Files hold RICE of COMID learners

    def _rice(self) -> Rice[Metric]:
        ensemble = self._given
        if type(ensemble) is not Rice or type(ensemble.spawn) is not ComidOnIntervals:
            raise ValueError(f"ensemble cannot be saved: a file holds RICE of COMID learners, not {ensemble!r}")
        if not _made_from(ensemble, self.recipe):
            raise ValueError("options have changed since the first comparison: the ensemble is not made from them")
        return ensemble

    @property
    def learned(self) -> tuple[str, ...]:
        return ("levels", "matrices", *(self._ensemble.arrays if self.pooled else ()))

    def reserve(self, levels: int, columns: int) -> None:
        """Nothing to do."""

    def snapshot(self) -> Arrays:
        ocelad, estimates = self.ocelad, [learner.estimate for learner in self._rice().learners]
        mu, matrices = [estimate.mu for estimate in estimates], np.array([estimate.M for estimate in estimates])
        losses, state = ocelad.losses[-len(mu) :], ocelad.state[-len(mu) :].copy()
        if self.pooled:
            state[:, 1] = GROUP  # whatever the number of the part
        learned = {"levels": np.column_stack([losses, mu, self.discarded, state]), "matrices": matrices}
        if self.pooled:
            learned |= self._ensemble.snapshot(ocelad.losses, ocelad.state[:, 0], self.scaling)
        return learned

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
        fixed = len(ocelad.lengths) - 1  # of a pool; before it begins there is one level besides
        ocelad.t, ocelad.lengths = t, np.append(ocelad.lengths[:fixed], lengths)
        group = ocelad.state[fixed:, 1:]
        ocelad.losses = np.append(ocelad.losses[:fixed], columns["loss"])
        ocelad.state = np.vstack([ocelad.state[:fixed], state])
        if self.pooled:
            table, other.scaling = other._ensemble.restore(t, learned, fixed, state[:, 0])
            ocelad.losses[:fixed], ocelad.state[:fixed, 0] = table.T
            ocelad.state[fixed:, 1:] = group
        return other


def _made_from(rice: Any, recipe: Recipe) -> bool:
    own, said = rice.spawn, recipe.spawn()
    same = (own.step, own.descent, own.max_rank) == (said.step, said.descent, said.max_rank)
    same = same and (rice.base, rice.start) == (recipe.base, recipe.start)
    return same and own.origin.mu == said.origin.mu and np.array_equal(own.origin.M, said.origin.M)
