"""COMID at one fixed rate, or at several side by side: Algorithm 1 over a pool of learners that never restart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..ensemble import Pool
from ..geometry import Comid, Divergence, LogDet, Metric, NuclearNorm, Step
from ..protocols import Ensemble, Learner, Spawn, is_number
from ..tracker import MetricTracker
from ..weights import FixedShare
from .diagonal import diagonal


@dataclass(frozen=True)
class FixedRate:
    """An ensemble of a single learner that never restarts, its step the tracker's.

    Parameters
    ----------
    learner
        Makes another learner from the start, the step and the descent of a `Comid`; None takes that.
    """

    learner: Callable[[Comid], Learner[Metric]] | None = None

    def __call__(self, spawn: Spawn[Metric]) -> Ensemble[Metric]:
        comid: Any = diagonal(spawn)(1.0, None)
        if self.learner is None:
            return Pool([comid])
        if comid.max_rank is not None:
            raise ValueError(f"max_rank must be None with {self.learner!r}, got {comid.max_rank!r}")
        return Pool([self.learner(comid)])


@dataclass(frozen=True)
class FixedRates:
    """A learner for each of several rates, given as factors of the tracker's step."""

    factors: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.factors or not all(is_number(f) and f > 0 for f in self.factors):
            raise ValueError(f"factors must be numbers > 0, at least one, got {self.factors!r}")

    def __call__(self, spawn: Spawn[Metric]) -> Ensemble[Metric]:
        return Pool([diagonal(spawn)(factor**-2, None) for factor in self.factors])


def comid(step: float, strength: float = 0.01) -> MetricTracker:
    """Nonadaptive COMID (Kunapuli and Shavlik 2012), as the paper runs it.

    >>> comid(step=1.0).partial_fit([[[0.0], [1.0]]], [-1]).experts_["weight"].tolist()
    [1.0]
    """
    parts = {"regularizer": NuclearNorm(strength), "step": Step(step, threshold=1.0), "ensemble": FixedRate()}
    return MetricTracker.rice().set_params(**parts, scale=None)


def mdml(
    step: float, divergence: Divergence = LogDet(), strength: float = 0.01, origin: float = 1.0
) -> MetricTracker:
    """Mirror descent for metric learning (Kunapuli and Shavlik 2012): COMID in another geometry.

    Parameters
    ----------
    step
        The rate.
    divergence
        `LogDet` (Burg's) or `VonNeumann`; under `Frobenius` it is `comid`.
    strength
        Of the nuclear norm.
    origin
        M0 = origin * I. These geometries multiply, so that a start at 0 would stay there.

    Examples
    --------
    >>> tracker = mdml(step=0.5).partial_fit([[[1.0, 0.0], [0.0, 0.0]]], [-1])
    >>> tracker.get_mahalanobis_matrix().round(2)  # "they differ": the first feature grows
    array([[1.98, 0.  ],
           [0.  , 1.  ]])
    """
    return comid(step, strength).set_params(divergence=divergence, origin=origin)


def fixed_share(
    steps: tuple[float, ...], strength: float = 0.01, rate: float = 0.3, share: float = 0.01
) -> MetricTracker:
    """Fixed share (Herbster and Warmuth 1998) over COMID learners at several fixed rates.

    Parameters
    ----------
    steps
        The rates of the learners.
    strength
        Of the nuclear norm.
    rate, share
        Of the combiner: how fast it trusts, and how much it gives back to all in each step.

    Examples
    --------
    >>> tracker = fixed_share((0.25, 1.0)).partial_fit([[[0.0], [1.0]]], [-1])
    >>> [metric.M.round(4).item() for metric in tracker.expert_metrics_]
    [0.2475, 0.99]
    """
    return comid(1.0, strength).set_params(ensemble=FixedRates(tuple(steps)), weights=FixedShare(rate, share))
