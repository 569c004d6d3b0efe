"""A pool of experts as black boxes: ensembles that speak log odds, for Algorithm 1 to combine by `GroupedShare`.

    pool = Union(Replayed(n, memory), Calibrated(Pool([Fixed(I)]), "euclid"), Calibrated(Rice(...), "rice"))

An expert's estimate is a `Metric` whose threshold minus squared distance are the log odds that a pair is similar.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from .. import platt
from ..ensemble import Pool, Rice, Union
from ..geometry.losses import OrderLoss, PairLoss
from ..geometry.metric import Metric
from ..platt import SHIFT, SLOPE, sigmoid
from ..protocols import Array, Ensemble, Opening
from . import windows
from .buffers import Buffers
from .kernels import layout
from .kernels.pool import replay_one

Comparison = PairLoss | OrderLoss


def log_loss(loss: Comparison, odds: float, floor: float) -> float:
    """-log of the probability that an expert gave to what came, times the weight of the comparison."""
    p = floor + (1.0 - 2.0 * floor) * sigmoid(odds)
    wrong = isinstance(loss, PairLoss) and loss.y < 0
    return -loss.weight * float(np.log(1.0 - p if wrong else p))


def odds_of(loss: Comparison, metric: Metric) -> float:
    """The log odds that a metric gives to "similar", or to the order that is claimed."""
    if isinstance(loss, PairLoss):
        return metric.mu - metric.squared_distance(loss.u)
    return metric.squared_distance(loss.far) - metric.squared_distance(loss.near)


class Fixed:
    """A learner that does not learn."""

    def __init__(self, estimate: Metric) -> None:
        self.estimate = estimate

    def update(self, loss: Any) -> None:
        """Nothing changes."""


class Calibrated:
    """An ensemble of metrics, each slot with a Platt scaling of its margin, which stays when the slot re-opens."""

    floor = platt.CALIBRATED_FLOOR

    def __init__(self, inner: Ensemble[Metric], kind: str) -> None:
        self.inner, self.kind, self.scaling = inner, kind, platt.unscaled(0)

    def __copy__(self) -> Calibrated:
        other = Calibrated(copy.copy(self.inner), self.kind)
        other.scaling = self.scaling.copy()
        return other

    def open(self, t: int) -> Opening:
        opening = self.inner.open(t)
        for slot in opening.slots:
            if slot == len(self.scaling):
                self.scaling = np.vstack([self.scaling, platt.unscaled(1)])
        return opening

    def _margins(self, loss: Comparison) -> Array:
        return self.inner.losses(lambda metric: odds_of(loss, metric))

    def losses(self, loss: Comparison) -> Array:
        slope, shift = self.scaling[:, SLOPE], self.scaling[:, SHIFT] * isinstance(loss, PairLoss)
        return np.array([log_loss(loss, odds, self.floor) for odds in slope * self._margins(loss) + shift])

    def update(self, loss: Comparison) -> None:
        margins = self._margins(loss)
        self.inner.update(loss)
        if isinstance(loss, PairLoss):
            for row, m in zip(self.scaling, margins, strict=True):
                platt.recalibrate(row, m, loss.y > 0, loss.weight, platt.RIDGE, 0.0)

    def mix(self, p: Array) -> Metric:
        p, shift = p * self.scaling[:, SLOPE], float(p @ self.scaling[:, SHIFT])
        metric = self.inner.mix(p) if p.any() else 0.0 * self.inner.mix(np.eye(len(p))[0])
        return Metric(metric.M, metric.mu + shift)


class Replayed:
    """The experts that replay windows (`kernels.replay`)."""

    kind = "replay"

    def __init__(self, n: int, memory: int) -> None:
        table = windows.settings(memory)
        self.buffers = windows.begun(Buffers(n, 1, 1, 1, False, (len(table), memory, len(table))), table)
        self.mixed, self.p = 0.0, np.zeros(len(table))

    def __copy__(self) -> Replayed:
        other = object.__new__(Replayed)
        other.__dict__.update(self.__dict__, buffers=copy.copy(self.buffers))
        return other

    @property
    def floors(self) -> Array:
        return self.buffers.stack.settings[:, layout.FLOOR]

    def open(self, t: int) -> Opening:
        if t > 0:
            return Opening(t, (), ())
        lengths = self.buffers.stack.settings[:, layout.WINDOW]
        return Opening(t, tuple(range(len(lengths))), tuple(lengths.tolist()))

    def estimate(self, j: int) -> Metric:
        L = self.buffers.stack.average[j].astype(np.float64)
        return Metric(L.T @ L, self.buffers.stack.numbers[j, layout.AVERAGE_B])

    def losses(self, loss: Comparison) -> Array:
        odds = [odds_of(loss, self.estimate(j)) for j in range(len(self.floors))]
        return np.array([log_loss(loss, o, floor) for o, floor in zip(odds, self.floors, strict=True)])

    def told_mixture(self, mixed: float, losses: Array, p: Array) -> None:
        """What a comparison cost the mixture and each expert, and the weights after it."""
        self.p, self.mixed = np.ascontiguousarray(p), mixed
        self.buffers.stack.losses[: len(losses)] = losses

    def update(self, loss: Comparison) -> None:
        if isinstance(loss, PairLoss):
            stored = int(self.buffers.integers[layout.STORED])
            memory = self.buffers = self.buffers.with_rows(stored + 1)
            state = (memory.floats, memory.integers, memory.singles, memory.scratch()[-1])
            replay_one(np.ascontiguousarray(loss.u), loss.y * loss.weight, self.mixed, self.p, *state)

    def mix(self, p: Array) -> Metric:
        total = Metric(np.zeros((self.buffers.n, self.buffers.n)), 0.0)
        for j, weight in enumerate(p):
            total = total + float(weight) * self.estimate(j)
        return total


def pool(levels: Ensemble[Metric], n: int, memory: int | None) -> Union[Metric]:
    """The levels, calibrated, and beside them the experts that n features allow."""
    parts: list[Any] = [Calibrated(levels, "rice" if isinstance(levels, Rice) else "learner")]
    if n <= windows.WIDE:
        parts.insert(0, Calibrated(Pool([Fixed(Metric(np.eye(n), 1.0))]), "euclid"))
        if memory is not None:
            parts.insert(0, Replayed(n, memory))
    return Union(*parts)
