"""COMID with AdaGrad-style steps, which shrink with the gradients seen (McMahan and Streeter, Duchi et al. 2010):

    step_t = step / sqrt(sum_{s <= t} |g_s|^2),        |g|^2 = |dl/dM|_F^2 + (dl/dmu)^2.

One step for all of M: a step per entry would depend on the axes, which mean nothing in a space that rotates, and
its proximal problem would no longer be solved by the eigenvalues.
"""

from __future__ import annotations

import math
from typing import Any

from ..geometry import Comid, Metric
from ..tracker import MetricTracker
from .fixed_rate import FixedRate, comid


def squared_norm(gradient: Metric) -> float:
    """|dl/dM|_F^2 + (dl/dmu)^2."""
    return float((gradient.M**2).sum()) + gradient.mu**2


class AdaptiveSteps:
    """A COMID learner whose step falls as 1/sqrt(t) by itself."""

    def __init__(self, comid: Comid) -> None:
        self.estimate, self.step, self.descent = comid.estimate, comid.step, comid.descent
        self.squares = 0.0

    def update(self, loss: Any) -> None:
        self.squares += squared_norm(loss.gradient(self.estimate))
        if self.squares > 0.0:  # else there has been nothing to learn from
            self.estimate = self.descent(self.estimate, loss, self.step / math.sqrt(self.squares))


def adagrad(step: float, strength: float = 0.01) -> MetricTracker:
    """COMID whose step adapts to the gradients, for a metric that does not change.

    >>> tracker = adagrad(step=1.0, strength=0.0).partial_fit([[[0.0], [1.0]]] * 2, [-1, -1])
    >>> round(tracker.get_mahalanobis_matrix().item(), 3)  # 1/sqrt(2) + 1/sqrt(4)
    1.207
    """
    return comid(step, strength).set_params(ensemble=FixedRate(AdaptiveSteps))
