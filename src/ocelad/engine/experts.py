"""A pool of experts as black boxes: ensembles that speak log odds, for Algorithm 1 to combine by `GroupedShare`.

    Experts = Union(Replayed(n, memory), Calibrated(Pool([Fixed(I)]), "euclid"), Calibrated(Rice(...), "rice"))

An expert's estimate is a `Metric` whose threshold minus squared distance are the log odds that a pair is similar.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import platt
from ..ensemble import Pool, Rice, Union
from ..geometry.losses import OrderLoss, PairLoss
from ..geometry.metric import Metric
from ..platt import SHIFT, SLOPE, sigmoid
from ..protocols import Array, Ensemble, Opening
from . import pool_snapshot, windows
from .buffers import Buffers
from .kernels import layout
from .kernels.pool import replay_one
from .protocol import Arrays

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
        self.buffers = Buffers(n, 1, 1, 1, False, (len(table), memory, len(table), 0, 0, 0)).with_experts(table)
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

    def _squares(self, u: Array) -> Array:
        return np.square(self.buffers.stack.average @ u).sum(axis=1)

    def losses(self, loss: Comparison) -> Array:
        if isinstance(loss, PairLoss):
            odds = self.buffers.stack.numbers[:, layout.AVERAGE_B] - self._squares(loss.u)
        else:
            odds = self._squares(loss.far) - self._squares(loss.near)
        return np.array([log_loss(loss, o, floor) for o, floor in zip(odds, self.floors, strict=True)])

    def told_mixture(self, mixed: float, losses: Array, p: Array) -> None:
        """What a comparison cost the mixture and each expert, and the weights after it."""
        self.p, self.mixed = np.ascontiguousarray(p), mixed
        self.buffers.stack.losses[: len(losses)] = losses

    def undo(self) -> Callable[[], Replayed]:
        """What takes the next step back, without a copy of the ring: a step writes one row of it."""
        memory, stack = self.buffers, self.buffers.stack
        place = int(stack.header[layout.STORED]) % memory.pool[1]
        ring, labels = stack.ring[place : place + 1], stack.labels[place : place + 1]
        written = memory.floats, stack.header, stack.L, stack.average, stack.moment, ring, labels
        before = [array.copy() for array in written]

        def take_back() -> Replayed:
            for array, was in zip(written, before, strict=True):
                array[:] = was
            self.buffers = memory  # as it was before it grew
            return self

        return take_back

    def update(self, loss: Comparison) -> None:
        if isinstance(loss, PairLoss):
            stored = int(self.buffers.integers[layout.STORED])
            memory = self.buffers = self.buffers.with_rows(stored + 1)
            state = (memory.floats, memory.integers, memory.singles, memory.scratch()[-1])
            replay_one(np.ascontiguousarray(loss.u), loss.y * loss.weight, self.mixed, self.p, *state)

    def mix(self, p: Array) -> Metric:
        rows = (self.buffers.stack.average * np.sqrt(p)[:, None, None]).reshape(-1, self.buffers.n)
        return Metric(rows.T @ rows, float(p @ self.buffers.stack.numbers[:, layout.AVERAGE_B]))


class Experts(Union[Metric]):
    """The levels of RICE, or what is given in their place, calibrated, and before them the experts that n features
    allow."""

    arrays = pool_snapshot.NAMES

    def __init__(self, levels: Ensemble[Metric], n: int, memory: int | None) -> None:
        parts: list[Any] = [Calibrated(levels, "rice" if isinstance(levels, Rice) else "learner")]
        if n <= windows.WIDE:
            parts.insert(0, Calibrated(Pool([Fixed(Metric(np.eye(n), 1.0))]), "euclid"))
            if memory is not None:
                parts.insert(0, Replayed(n, memory))
        super().__init__(*parts)
        self.n = n

    @property
    def given(self) -> Any:
        """The ensemble that was given."""
        return self._part(-1).inner

    @property
    def kinds(self) -> list[str]:
        return [self._part(part).kind for part, _ in self.slots]

    @property
    def floors(self) -> Array:
        """No expert gives less than this probability to anything."""
        floors = np.full(len(self.slots), platt.CALIBRATED_FLOOR)
        settings = self._buffers.stack.settings
        floors[: len(settings)] = settings[:, layout.FLOOR]
        return floors

    def _part(self, number: int) -> Any:
        return self.ensembles[number]

    @property
    def _buffers(self) -> Buffers:
        """Those of the experts that replay windows; empty if there are none."""
        first = self._part(0)
        return first.buffers if isinstance(first, Replayed) else Buffers(self.n, 1, 1, 1, False)

    def snapshot(self, losses: Array, log_weights: Array, scaling: Array) -> Arrays:
        """What has been learned besides the levels, given losses and weights of all, and the mixture's scaling."""
        levels = self._part(-1).scaling
        fixed = len(losses) - len(levels)
        euclid = self._part(-2).scaling if fixed else platt.unscaled(1)
        calibration = np.vstack([scaling, euclid, levels])
        return pool_snapshot.arrays(self._buffers.stack, losses[:fixed], log_weights[:fixed], calibration)

    def restore(self, t: int, learned: Arrays, fixed: int, of_levels: Array) -> tuple[Array, Array]:
        """Take over a snapshot, once the levels have; returns losses and log weights of others, and the mixture's
        scaling."""
        memory, table, calibration = pool_snapshot.restore(self._buffers, t, learned, fixed, of_levels)
        if isinstance(self._part(0), Replayed):
            self._part(0).buffers = memory
        if fixed:
            self._part(-2).scaling = calibration[layout.EUCLID : layout.LEVEL].copy()
        self._part(-1).scaling = calibration[layout.LEVEL :].copy()
        self.slots += [(len(self.ensembles) - 1, level) for level in range(1, len(of_levels))]
        return table, calibration[: layout.EUCLID].copy()
