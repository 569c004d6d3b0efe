"""COMID, the base learner of Algorithm 2, eq. (COMID):

M  <- argmin_{M >= 0}   B_psi(M, M_t) + step <grad_M l_t, M - M_t> + step * lambda * r(M)
mu <- argmin_{mu >= 1}  (mu - mu_t)^2 / 2 + threshold_step * step * dl_t/dmu * (mu - mu_t).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..ensemble import Rice
from ..intervals import Start
from ..protocols import Array, DifferentiableLoss
from .divergences import Divergence, Frobenius, spectral
from .metric import Metric
from .regularizers import NuclearNorm, Regularizer


@dataclass(frozen=True)
class Descent:
    """How a COMID learner moves: everything about it but its step.

    Parameters
    ----------
    regularizer
        r, with its strength lambda.
    divergence
        B_psi.
    threshold_step
        mu's step, as a factor of M's.
    step_cap
        If true (under the Frobenius divergence), no step is longer than the one that would bring the linearised
        loss to zero (Polyak's; for the hinge, passive-aggressive).
    """

    regularizer: Regularizer = NuclearNorm()
    divergence: Divergence = Frobenius()
    threshold_step: float = 1.0
    step_cap: bool = False

    def __post_init__(self) -> None:
        if self.step_cap and not isinstance(self.divergence, Frobenius):
            raise ValueError(
                f"step_cap must be False with {self.divergence!r}: it is a length in Frobenius' geometry"
            )

    def __call__(self, metric: Metric, loss: DifferentiableLoss[Metric], step: float) -> Metric:
        """The metric after one comparison."""
        gradient = loss.gradient(metric)
        step = self.effective_step(metric, gradient, loss, step)
        M = self.regularizer.solve(self.divergence, self.link(metric.M) - step * gradient.M, step)
        mu = max(1.0, metric.mu - self.threshold_step * step * gradient.mu)
        return Metric(M, mu)

    def link(self, M: Array) -> Array:
        """grad psi(M)."""
        return M if isinstance(self.divergence, Frobenius) else spectral(M, self.divergence.link)

    def effective_step(
        self, metric: Metric, gradient: Metric, loss: DifferentiableLoss[Metric], step: float
    ) -> float:
        """The step, shortened where the divergence needs it, or where it is capped."""
        if gradient.mu == 0.0 and not gradient.M.any():  # only the regularizer acts, and a capped step is none
            return 0.0 if self.step_cap else step
        step = min(step, self.divergence.longest_step(metric.M, gradient.M))
        steepness = float((gradient.M**2).sum()) + self.threshold_step * gradient.mu**2
        curvature = getattr(loss, "stiffness", 0.0) * steepness
        if curvature > 0:  # slope^2 / curvature: beyond twice that, squared losses explode
            step = min(step, loss.slope(metric) ** 2 / curvature)  # type: ignore[attr-defined]
        if self.step_cap:
            step = min(step, loss(metric) / steepness) if steepness > 0 else 0.0
        return step


class Comid:
    """One COMID learner: a metric, and a constant step.

    Examples
    --------
    >>> import numpy as np
    >>> from ocelad.geometry import Hinge, PairLoss
    >>> learner = Comid(Metric(np.zeros((2, 2)), 1.0), step=1.0, descent=Descent(NuclearNorm(0.1)))
    >>> learner.update(PairLoss(np.array([1.0, 0.0]), -1, Hinge()))  # "these two are different"
    >>> learner.estimate.M.round(3)
    array([[0.9, 0. ],
           [0. , 0. ]])
    """

    def __init__(self, start: Metric, step: float, descent: Descent, max_rank: int | None = None) -> None:
        if not (step > 0 and math.isfinite(step)):
            raise ValueError(f"step must be positive and finite, got {step!r}")
        self.estimate, self.step, self.descent, self.max_rank = start, step, descent, max_rank
        self.discarded = 0.0  # what was cut off from the trace of M to stay within max_rank

    def update(self, loss: DifferentiableLoss[Metric]) -> None:
        estimate = self.descent(self.estimate, loss, self.step)
        if self.max_rank is not None and self.max_rank < len(estimate.M):
            s, V = np.linalg.eigh(estimate.M)
            kept = np.maximum(s[-self.max_rank :], 0.0)
            self.discarded += float(s[: -self.max_rank].sum())
            estimate = Metric((V[:, -self.max_rank :] * kept) @ V[:, -self.max_rank :].T, estimate.mu)
        self.estimate = estimate


@dataclass(frozen=True)
class ComidOnIntervals:
    """The COMID learner of an interval: step / sqrt(length), from the origin or from where another has ended."""

    origin: Metric
    step: float
    descent: Descent
    max_rank: int | None = None

    def __call__(self, length: float, last: Metric | None) -> Comid:
        start = self.origin if last is None else last
        return Comid(start, self.step / math.sqrt(length), self.descent, self.max_rank)


@dataclass(frozen=True, eq=False)
class Recipe:
    """All that RICE of COMID learners is made of. Learners start from ``origin``, a matrix or a multiple of I."""

    n: int
    origin: float | Array
    mu: float
    step: float
    descent: Descent
    base: int
    start: Start
    max_rank: int | None = None

    def spawn(self) -> ComidOnIntervals:
        M = self.origin * np.eye(self.n) if isinstance(self.origin, float) else self.origin
        return ComidOnIntervals(Metric(M, self.mu), self.step, self.descent, self.max_rank)

    def black_boxes(self) -> Rice[Metric]:
        """The ensemble as a list of learners."""
        return Rice(self.spawn(), self.base, self.start)
