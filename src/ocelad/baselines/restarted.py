"""Ensembles without retro-initialisation: every interval's learner starts from the origin. SAOL is one of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..ensemble import Restarted, check_base
from ..geometry import Metric
from ..protocols import Array, Spawn, Weights
from ..tracker import MetricTracker
from ..weights import OceladWeights, SaolWeights, advanced
from .diagonal import diagonal
from .fixed_rate import comid


@dataclass(frozen=True)
class RestartedComid:
    """COMID learners on dyadic intervals, each from the origin, its step the tracker's over sqrt(length)."""

    base: int = 1

    def __post_init__(self) -> None:
        check_base(self.base)

    def __call__(self, spawn: Spawn[Metric]) -> Restarted[Metric]:
        return Restarted(diagonal(spawn), self.base)


def restarted(
    step: float, strength: float = 0.01, base: int = 1, weights: Weights = OceladWeights()
) -> MetricTracker:
    """The paper's method without its retro-initialisation, under any combiner.

    Parameters
    ----------
    step
        COMID's step on an interval is ``step / sqrt(length)``.
    strength
        Of the nuclear norm.
    base
        Length of the shortest intervals.
    weights
        The combiner.

    Examples
    --------
    >>> tracker = restarted(step=1.0).partial_fit([[[0.0], [1.0]]] * 3, [-1] * 3)
    >>> [metric.M.round(2).item() for metric in tracker.expert_metrics_]  # at t = 4 all three levels have opened
    [0.0, 0.0, 0.0]
    """
    return comid(step, strength).set_params(ensemble=RestartedComid(base), weights=weights)


@dataclass(frozen=True)
class UnclippedSaol(SaolWeights):
    """`SaolWeights` on losses of any size: where a step's regrets exceed 1, they are divided by the largest.

    Losses in [0, 1] are treated as in the original. Without the division a weight could become negative.
    ``bound`` is not used.
    """

    def update(self, state: Array, losses: Array, mixed: Callable[[], float]) -> Array:  # noqa: ARG002
        r = state[:, 3] @ losses - losses
        return advanced(state, r / max(1.0, np.abs(r).max()))


def saol(step: float, strength: float = 0.01, base: int = 1, clipped: bool = True, seed: int = 0) -> MetricTracker:
    """Strongly adaptive online learning (Daniely, Gonen, Shalev-Shwartz 2015) with COMID learners.

    Parameters
    ----------
    step, strength, base
        As for `restarted`.
    clipped
        Whether losses are clipped to [0, 1], where the method is at home, or taken as they are.
    seed
        Of the draws: SAOL selects one learner at random in each step.

    Examples
    --------
    >>> tracker = saol(step=1.0).partial_fit([[[0.0], [1.0]]] * 3, [-1] * 3)
    >>> tracker.experts_["length"].tolist()
    [1.0, 2.0, 4.0]
    """
    weights = SaolWeights(seed) if clipped else UnclippedSaol(seed)
    return restarted(step, strength, base, weights)
