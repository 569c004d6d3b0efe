"""Follow the regularised leader for metrics: every comparison counts alike, and the regularisation adapts to them.

    M_{t+1} = argmin_{M >= 0}  <sum_s g_s, M> + t lambda r(M) + |M - M_0|_F^2 / (2 step_t),
    step_t  = step / sqrt(sum_s |g_s|^2),

the sums over all comparisons so far (McMahan 2014; regularised dual averaging, Xiao 2010). Lazy, where COMID is
greedy.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..geometry import Comid, Frobenius, Metric
from ..protocols import Array
from ..tracker import MetricTracker
from .adaptive_steps import squared_norm
from .fixed_rate import FixedRate, comid


class Leader:
    """A learner that minimises the sum of all linearised losses."""

    def __init__(self, comid: Comid) -> None:
        if not isinstance(comid.descent.divergence, Frobenius):
            raise ValueError(f"divergence must be Frobenius() here, got {comid.descent.divergence!r}")
        self.start = self.estimate = comid.estimate
        self.step, self.descent = comid.step, comid.descent
        self.total, self.squares, self.t = 0.0 * comid.estimate, 0.0, 0
        self.eigen: tuple[Array, Array] | None = None  # of M_0 - step_t sum_s g_s, until there is a gradient again

    def update(self, loss: Any) -> None:
        self.t += 1
        if loss.slope(self.estimate) != 0.0:
            gradient, self.eigen = loss.gradient(self.estimate), None
            self.total, self.squares = self.total + gradient, self.squares + squared_norm(gradient)
        step = self.step / math.sqrt(self.squares) if self.squares > 0.0 else 0.0
        descent = self.descent
        mu = max(1.0, self.start.mu - descent.threshold_step * step * self.total.mu)
        self.estimate = Metric(self._solve(self.t * step, step), mu)

    def _solve(self, weight: float, step: float) -> Array:
        """The minimiser, ``weight`` being that of the regularizer; eigenvectors are computed once per gradient."""
        divergence, regularizer = self.descent.divergence, self.descent.regularizer
        shrink = getattr(regularizer, "shrink", None)
        if shrink is None:
            return regularizer.solve(divergence, self.start.M - step * self.total.M, weight)
        if self.eigen is None:
            w, V = np.linalg.eigh(self.start.M - step * self.total.M)
            self.eigen = w, V
        w, V = self.eigen
        M = (V * shrink(divergence, w, weight)) @ V.T
        return (M + M.T) / 2


def ftrl(step: float, strength: float = 0.01) -> MetricTracker:
    """Follow the regularised leader, for a metric that does not change.

    >>> tracker = ftrl(step=1.0, strength=0.0).partial_fit([[[0.0], [1.0]]] * 2, [-1, -1])
    >>> round(tracker.get_mahalanobis_matrix().item(), 3)  # 2/sqrt(4)
    1.0
    """
    return comid(step, strength).set_params(ensemble=FixedRate(Leader))
