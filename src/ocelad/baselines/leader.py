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
from ..tracker import MetricTracker
from .adaptive_steps import squared_norm
from .diagonal import Diagonal
from .fixed_rate import FixedRate, comid


class Leader:
    """A learner that minimises the sum of all linearised losses."""

    def __init__(self, comid: Comid) -> None:
        if not isinstance(comid.descent.divergence, Frobenius):
            raise ValueError(f"divergence must be Frobenius() here, got {comid.descent.divergence!r}")
        self.start = self.estimate = comid.estimate
        self.step, self.descent = comid.step, comid.descent
        self.total, self.squares, self.t = 0.0 * comid.estimate, 0.0, 0
        self._solve_for(0.0)

    def _solve_for(self, step: float) -> None:
        """Prepare what depends on the gradients: M_0 - step_t * their sum, its eigenvectors, and mu."""
        self.now, self.W = step, self.start.M - step * self.total.M
        self.mu = max(1.0, self.start.mu - self.descent.threshold_step * step * self.total.mu)
        self.w, V = np.linalg.eigh(self.W)
        self.V = np.ascontiguousarray(V.T)

    def update(self, loss: Any) -> None:
        gradient, self.t = loss.gradient(self.estimate), self.t + 1
        square = squared_norm(gradient)
        if square > 0.0:
            self.total, self.squares = self.total + gradient, self.squares + square
            self._solve_for(self.step / math.sqrt(self.squares))
        regularizer, divergence = self.descent.regularizer, self.descent.divergence
        if hasattr(regularizer, "shrink"):
            s = regularizer.shrink(divergence, self.w, self.t * self.now)
            self.estimate = Diagonal(s, self.V, self.mu)
        else:
            self.estimate = Metric(regularizer.solve(divergence, self.W, self.t * self.now), self.mu)


def ftrl(step: float, strength: float = 0.01) -> MetricTracker:
    """Follow the regularised leader, for a metric that does not change.

    >>> tracker = ftrl(step=1.0, strength=0.0).partial_fit([[[0.0], [1.0]]] * 2, [-1, -1])
    >>> round(tracker.get_mahalanobis_matrix().item(), 3)  # 2/sqrt(4)
    1.0
    """
    return comid(step, strength).set_params(ensemble=FixedRate(Leader))
