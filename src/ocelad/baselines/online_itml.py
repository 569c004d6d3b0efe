"""Online ITML (Davis, Kulis, Jain, Sra, Dhillon 2007), each step solved exactly (as Jain et al. 2008 do):

    A <- argmin_{A > 0}  D_LogDet(A, A_t) + rate/2 (u'Au - b)^2,     A^-1 <- A^-1 + rate (a - b) u u',

if the comparison is violated: u'Au above b = ``near`` for similar points, below b = ``far`` for different ones.
a = u'Au after the step is the positive root of rate d a^2 + (1 - rate b d) a - d = 0, d being u'Au before. near
and far are quantiles of |u|^2 over the differences seen of late.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import validation as validate
from ..geometry import Comid, Metric, PairLoss, Unregularized
from ..protocols import Array, is_number
from ..tracker import MetricTracker
from .fixed_rate import FixedRate


def new_distance(d: float, b: float, rate: float) -> float:
    """u'Au after the step that pulls d towards b.

    >>> [round(new_distance(4.0, 1.0, rate), 3) for rate in (1e-9, 1.0, 1e9)]
    [4.0, 1.443, 1.0]
    """
    half = (1.0 - rate * b * d) / 2.0
    root = math.hypot(half, math.sqrt(rate) * d)
    return d / (half + root) if half > 0 else (root - half) / (rate * d)  # whichever does not cancel


class OnlineItml:
    """The learner: A = G G', so that it is positive definite whatever the rate. Its metric is A in units in which
    the threshold, half-way between near and far, is 1."""

    def __init__(self, comid: Comid, quantiles: tuple[float, float] = (0.05, 0.95), memory: int = 1000) -> None:
        try:
            self.G: Array = np.asarray(np.linalg.cholesky(comid.estimate.M), dtype=np.float64)
        except np.linalg.LinAlgError:
            raise ValueError("origin must be positive definite (a number > 0, say 1.0) for online ITML") from None
        self.rate, self.quantiles, self.memory = comid.step, quantiles, memory
        self.seen: Array = np.zeros(0)  # |u|^2 of the latest differences
        self.estimate = comid.estimate

    def thresholds(self) -> tuple[float, float]:
        """near and far."""
        ordered = np.sort(self.seen)
        near, far = (float(ordered[int(q * (len(ordered) - 1))]) for q in self.quantiles)
        return near, far

    def update(self, loss: Any) -> None:
        if not isinstance(loss, PairLoss):
            raise ValueError("online ITML learns from pairs; triplets and quadruplets have no place in it")
        square = float(loss.u @ loss.u)
        if square == 0.0:
            return
        self.seen = np.append(self.seen, square)[-self.memory :]
        near, far = self.thresholds()
        v = self.G.T @ loss.u
        d, b = float(v @ v), near if loss.y > 0 else far
        if loss.y * (d - b) > 0.0:
            a = new_distance(d, b, self.rate * getattr(loss.loss, "weight", 1.0))
            # I - c v v' is the root of what the step does to A between G and G'
            self.G = self.G - (1.0 - math.sqrt(a / d)) / d * np.outer(self.G @ v, v)
        self.estimate = Metric(self.G @ self.G.T / ((near + far) / 2.0), 1.0)


@dataclass(frozen=True)
class Itml:
    """How a tracker's start and step become an online ITML learner."""

    quantiles: tuple[float, float]
    memory: int

    def __post_init__(self) -> None:
        low, high = self.quantiles
        if not (is_number(low) and is_number(high) and 0 <= low <= high <= 1):
            raise ValueError(f"quantiles must be two numbers 0 <= near <= far <= 1, got {self.quantiles!r}")
        validate.integer(self.memory, "memory")

    def __call__(self, comid: Comid) -> OnlineItml:
        return OnlineItml(comid, self.quantiles, self.memory)


def online_itml(rate: float, quantiles: tuple[float, float] = (0.05, 0.95), memory: int = 1000) -> MetricTracker:
    """Online information-theoretic metric learning.

    Parameters
    ----------
    rate
        How much a comparison counts against the metric so far; for ever larger rates its distance becomes the
        threshold.
    quantiles
        Which quantiles of the squared Euclidean distances seen are the thresholds of similar and different points.
    memory
        Over how many of the latest differences.

    Examples
    --------
    >>> tracker = online_itml(rate=1e9).partial_fit([[[1.0, 0.0], [0.0, 0.0]], [[3.0, 0.0], [0.0, 0.0]]], [-1, 1])
    >>> tracker.pair_distance([[[3.0, 0.0], [0.0, 0.0]]]).round(3)  # as far as the nearest seen
    array([1.])
    """
    learner = FixedRate(Itml(quantiles, memory))
    parts = {"regularizer": Unregularized(), "step": rate, "origin": 1.0, "ensemble": learner}
    return MetricTracker.rice().set_params(**parts, scale=None)
