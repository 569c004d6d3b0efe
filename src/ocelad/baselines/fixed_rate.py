"""COMID at one fixed rate: Algorithm 1 over a pool of one learner."""

from __future__ import annotations

from dataclasses import dataclass

from ..ensemble import Pool
from ..learner import Spawn
from ..metric import Metric, MetricTracker, NuclearNorm


@dataclass(frozen=True)
class FixedRate:
    """An ensemble of a single learner that never restarts, its step the tracker's."""

    def __call__(self, spawn: Spawn[Metric]) -> Pool[Metric]:
        return Pool([spawn(1.0, None)])


def comid(step: float, strength: float = 0.01) -> MetricTracker:
    """Nonadaptive COMID (Kunapuli and Shavlik 2012), as the paper runs it.

    >>> comid(step=1.0).partial_fit([[[0.0], [1.0]]], [-1]).levels_["weight"].tolist()
    [1.0]
    """
    return MetricTracker(
        regularizer=NuclearNorm(strength), step=step, threshold_step=1.0, scale=None, ensemble=FixedRate()
    )
