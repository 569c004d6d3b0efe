"""Platt scaling, online: the log odds a m + c of a margin m, by Newton steps on the log loss, with forgetting.

    H <- (1 - FORGET) H + s (1 - s) x x',    (a, c) <- (a, c) + (H + ridge I)^-1 x (1[similar] - s),    x = (m, 1),

s being the probability that was predicted. The state is a row of numbers, so that kernels and Python share it.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from .protocols import Array

SLOPE, SHIFT, CURVATURE_MM, CURVATURE_M, CURVATURE_1, PARAMETERS = range(6)

FORGET = 1 / 500
RIDGE, MIXTURE_RIDGE = 0.5, 5.0  # of an expert's scaling, and of the mixture's
LEAST_SLOPE = 0.05  # of the mixture's; an expert's may fall to 0, and then it says nothing
CALIBRATED_FLOOR = 0.005  # no expert that is calibrated gives less than this probability to anything
HEAVIEST = 1e6  # the largest weight that a comparison can have: with larger ones rounding errors would take over
FLATTEST = 1e-4  # the least s (1 - s) that counts: who is sure of everything must still be able to learn


def sigmoid(odds: float) -> float:
    """The probability of log odds.

    >>> sigmoid(0.0), sigmoid(-1e9)
    (0.5, 0.0)
    """
    return 0.5 + 0.5 * math.tanh(0.5 * odds)


def unscaled(rows: int) -> Array:
    """States that say of a margin what it is: slope 1, shift 0."""
    states = np.zeros((rows, PARAMETERS))
    states[:, SLOPE] = 1.0
    return states


def recalibrate(state: Array, m: float, similar: bool, weight: float, ridge: float, least: float) -> None:
    """Learn the label of a margin; the slope stays at ``least`` or above."""
    s, weight = 0.5 + 0.5 * math.tanh(0.5 * (state[SLOPE] * m + state[SHIFT])), min(weight, HEAVIEST)
    curvature = weight * max(s * (1.0 - s), FLATTEST)
    state[CURVATURE_MM] += curvature * m * m - FORGET * state[CURVATURE_MM]
    state[CURVATURE_M] += curvature * m - FORGET * state[CURVATURE_M]
    state[CURVATURE_1] += curvature - FORGET * state[CURVATURE_1]
    a, b, c = state[CURVATURE_MM] + ridge, state[CURVATURE_M], state[CURVATURE_1] + ridge
    error = weight * ((1.0 if similar else 0.0) - s) / (a * c - b * b)
    state[SLOPE] = max(least, state[SLOPE] + error * (c * m - b))
    state[SHIFT] += error * (a - b * m)


def compress(m: float) -> float:
    """sign(m) log(1 + |m|): the margins of far pairs are too large to be taken at their word.

    >>> compress(0.0), round(compress(-1.0), 3)
    (0.0, -0.693)
    """
    return math.copysign(math.log1p(abs(m)), m)


STEEPEST = 30.0  # in compressed margins, how far calibration may move a threshold
UNEVEN = 1e-9  # log odds of which the probability differs from one half


class Decision(NamedTuple):
    """What a squared distance says: the log odds slope g(threshold - d^2) + shift that two points are similar.

    g compresses margins, or is the identity.

    >>> Decision(2.0).even, Decision(2.0, shift=1.0).even
    (2.0, 3.0)
    """

    threshold: float
    slope: float = 1.0
    shift: float = 0.0
    compressed: bool = False

    @property
    def even(self) -> float:
        """The squared distance at which the odds are even: closer pairs are similar. It may be negative."""
        x = min(max(-self.shift / self.slope, -STEEPEST), STEEPEST)
        return self.threshold - (math.copysign(math.expm1(abs(x)), x) if self.compressed else x)

    def at(self, threshold: float) -> Decision:
        """The same with even odds at another squared distance."""
        return Decision(threshold, self.slope, 0.0, self.compressed)

    def log_odds(self, squares: Any) -> Any:
        m = self.threshold - squares
        odds = self.slope * (np.copysign(np.log1p(np.abs(m)), m) if self.compressed else m) + self.shift
        if abs(self.shift) <= STEEPEST * self.slope:
            return odds
        # the threshold is not moved as far as the odds would have it: beyond it they give way
        return np.where(squares > self.even, np.minimum(odds, -UNEVEN), np.maximum(odds, 0.0))
