"""Dynamic mirror descent (Hall and Willett 2013): a COMID step, then a step of a model of how the metric moves,

    M_{t+1} = Phi(COMID(M_t, l_t)).

With Phi the identity it is COMID. A model that is meaningful here is the mean of an unknown small rotation: if
points are turned by R = Cayley(S), S a random skew matrix of norm ``drift``, then to second order in ``drift``

    E[R M R'] = (1 - a) M + a tr(M)/n I,        a = drift^2 / (n - 1).

How fast they turn is not known either: a family of candidates is combined by fixed share, as Hall and Willett do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import validation as validate
from ..ensemble import Pool
from ..geometry import Comid, Metric
from ..protocols import Ensemble, Spawn
from ..tracker import MetricTracker
from ..weights import FixedShare
from .diagonal import Diagonal, diagonal
from .fixed_rate import comid

Dynamics = Callable[[Metric], Metric]


@dataclass(frozen=True)
class Diffusion:
    """What a metric is expected to be after a random rotation of this norm.

    >>> Diffusion(drift=0.5)(Metric([[2.0, 0.0], [0.0, 0.0]], 1.0)).M
    array([[1.75, 0.  ],
           [0.  , 0.25]])
    """

    drift: float

    def __post_init__(self) -> None:
        validate.number(self.drift, "drift", positive=False)

    def share(self, n: int) -> float:
        """How much of a metric is spread over all directions."""
        return min(1.0, self.drift**2 / (n - 1)) if n > 1 else 0.0

    def __call__(self, metric: Metric) -> Metric:
        n = len(metric.s if isinstance(metric, Diagonal) else metric.M)  # which would be multiplied out
        a = self.share(n)
        if a == 0.0:
            return metric  # nothing turns
        if isinstance(metric, Diagonal):
            return Diagonal((1.0 - a) * metric.s + a * (metric.s.sum() / n), metric.V, metric.mu, metric.turns)
        return Metric((1.0 - a) * metric.M + a * np.trace(metric.M) / n * np.eye(n), metric.mu)


class Moved:
    """A COMID learner whose estimate moves on by itself after every comparison."""

    def __init__(self, comid: Comid, dynamics: Dynamics) -> None:
        self.estimate, self.step, self.descent, self.dynamics = comid.estimate, comid.step, comid.descent, dynamics

    def update(self, loss: Any) -> None:
        self.estimate = self.dynamics(self.descent(self.estimate, loss, self.step))


@dataclass(frozen=True)
class Candidates:
    """A learner for each model of how the metric moves."""

    dynamics: tuple[Dynamics, ...]

    def __call__(self, spawn: Spawn[Metric]) -> Ensemble[Metric]:
        comid: Any = diagonal(spawn)(1.0, None)
        if comid.max_rank is not None:
            raise ValueError(f"max_rank must be None with dynamics, got {comid.max_rank!r}")
        return Pool([Moved(comid, dynamics) for dynamics in self.dynamics])


def dynamic_mirror_descent(
    step: float,
    dynamics: Sequence[Dynamics] = (Diffusion(0.0), Diffusion(0.1), Diffusion(0.3)),
    strength: float = 0.01,
    rate: float = 0.3,
    share: float = 0.01,
) -> MetricTracker:
    """Fixed share over candidate models of how the metric moves.

    Parameters
    ----------
    step, strength
        As for `comid`.
    dynamics
        Functions from a metric to the metric expected one comparison later. A known motion, M to R M R', is one.
    rate, share
        Of the combiner.

    Examples
    --------
    >>> tracker = dynamic_mirror_descent(step=1.0).partial_fit([[[0.0, 0.0], [1.0, 0.0]]], [-1])
    >>> [metric.M.diagonal().round(3).tolist() for metric in tracker.expert_metrics_]
    [[0.99, 0.0], [0.985, 0.005], [0.945, 0.045]]
    """
    return comid(step, strength).set_params(ensemble=Candidates(tuple(dynamics)), weights=FixedShare(rate, share))
