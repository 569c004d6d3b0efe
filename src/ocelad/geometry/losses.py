"""The loss of one comparison, and the margin losses it is made with.

    l_t(M, mu) = l(m),   m = y (mu - u'Mu),   u = x - z,   y = +1 (similar) or -1 (different).

It is convex in (M, mu), because m is linear in both; so is the loss of "these two are closer than those two".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np

from ..protocols import Array
from .metric import Metric

TIE = 1e-12
"""A comparison counts as violated only if the margin falls short of 1 by more than TIE * (1 + mu + d^2)."""


@runtime_checkable
class MarginLoss(Protocol):
    """A convex, non-increasing function of the margin and its slope.

    If the slope grows without bound, ``stiffness`` says how fast (the largest second derivative): steps are then
    kept short enough not to overshoot.
    """

    def value(self, m: float, /) -> float: ...

    def slope(self, m: float, /) -> float: ...


@dataclass(frozen=True)
class Hinge:
    """max(0, 1 - m)."""

    def value(self, m: float) -> float:
        return max(0.0, 1.0 - m)

    def slope(self, m: float) -> float:
        return -1.0 if m < 1.0 else 0.0


@dataclass(frozen=True)
class SquaredHinge:
    """max(0, 1 - m)^2."""

    stiffness: ClassVar[float] = 2.0

    def value(self, m: float) -> float:
        return max(0.0, 1.0 - m) * max(0.0, 1.0 - m)

    def slope(self, m: float) -> float:
        return -2.0 * max(0.0, 1.0 - m)


@dataclass(frozen=True)
class Logistic:
    """log(1 + exp(-m))."""

    def value(self, m: float) -> float:
        return max(-m, 0.0) + math.log1p(math.exp(-abs(m)))

    def slope(self, m: float) -> float:
        decay = math.exp(-abs(m))
        return -(1.0 if m < 0 else decay) / (1.0 + decay)


@dataclass(frozen=True)
class Weighted:
    """A margin loss times a weight."""

    loss: MarginLoss
    weight: float

    @property
    def stiffness(self) -> float:
        return self.weight * getattr(self.loss, "stiffness", 0.0)

    def value(self, m: float) -> float:
        return self.weight * self.loss.value(m)

    def slope(self, m: float) -> float:
        return self.weight * self.loss.slope(m)


@dataclass(frozen=True, eq=False)
class PairLoss:
    """What one comparison says about a metric.

    >>> far_apart = PairLoss(u=np.array([2.0]), y=1, loss=Hinge())
    >>> far_apart(Metric([[1.0]], 1.0))  # the margin is 1 - 4
    4.0
    """

    u: Array
    y: int
    loss: MarginLoss

    def margin(self, metric: Metric) -> float:
        d2 = metric.squared_distance(self.u)
        m = self.y * (metric.mu - d2)
        # Ties decide results: orthogonal unit vectors under M = I meet the margin exactly, and whether they
        # "violate" it would be rounding noise.
        return 1.0 if abs(1.0 - m) <= TIE * (1.0 + metric.mu + d2) else m

    @property
    def stiffness(self) -> float:
        return getattr(self.loss, "stiffness", 0.0)

    @property
    def weight(self) -> float:
        """By which the loss is multiplied."""
        return float(getattr(self.loss, "weight", 1.0))

    def __call__(self, metric: Metric) -> float:
        return self.loss.value(self.margin(metric))

    def slope(self, metric: Metric) -> float:
        """dl/dm."""
        return self.loss.slope(self.margin(metric))

    def gradient(self, metric: Metric) -> Metric:
        """{dl/dM, dl/dmu}."""
        slope = self.y * self.slope(metric)
        return Metric(-slope * np.outer(self.u, self.u), slope)


@dataclass(frozen=True, eq=False)
class OrderLoss:
    """What "these two are closer than those two" says about a metric: l(far'M far - near'M near).

    ``near`` and ``far`` are differences: a triplet "a is closer to b than to c" has near = a - b and far = a - c.
    The threshold plays no part.

    >>> closer = OrderLoss(near=np.array([2.0, 0.0]), far=np.array([0.0, 1.0]), loss=Hinge())
    >>> closer(Metric(np.eye(2), 1.0))  # 1 + 4 - 1
    4.0
    """

    near: Array
    far: Array
    loss: MarginLoss

    def margin(self, metric: Metric) -> float:
        near, far = metric.squared_distance(self.near), metric.squared_distance(self.far)
        return 1.0 if abs(1.0 - (far - near)) <= TIE * (1.0 + near + far) else far - near

    @property
    def stiffness(self) -> float:
        return getattr(self.loss, "stiffness", 0.0)

    @property
    def weight(self) -> float:
        """By which the loss is multiplied."""
        return float(getattr(self.loss, "weight", 1.0))

    def __call__(self, metric: Metric) -> float:
        return self.loss.value(self.margin(metric))

    def slope(self, metric: Metric) -> float:
        """dl/dm."""
        return self.loss.slope(self.margin(metric))

    def gradient(self, metric: Metric) -> Metric:
        """{dl/dM, dl/dmu}."""
        slope = self.slope(metric)
        return Metric(slope * (np.outer(self.far, self.far) - np.outer(self.near, self.near)), 0.0)
