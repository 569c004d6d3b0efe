"""The bounds of Corollary 1, Theorem 1 and Theorem 2, as the paper has them and as their proofs allow.

A learner on its own interval I, with step / sqrt|I| (Corollary 1), and OCELAD on any I = [q, s], times from 1 on:

    learner     R(I) <= (static + moving * gamma(I)) sqrt|I|                          so C = max(static, moving)
    paper 1     R(I) <= 8 C (1 + gamma(I)) sqrt|I| + 40 log(1 + s) sqrt|I|
    paper 2     R(I) <= 4 / (sqrt 2 - 1) C (1 + gamma(I)) sqrt|I| + 40 log(1 + s) sqrt|I|
    corrected   R(I) <= (K static + moving * gamma(I)) sqrt|I| + penalty(I)
                        + spread * (K (1 + log 2s) sqrt|I| + (6 - 2 sqrt 2) log 2s),        K = 2 / (sqrt 2 - 1).

``spread`` is max_I |r_t(I)|, which must be the same in all steps (or 0): without that no such bound is true.
docs/regret.md has the derivation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from ..protocols import Array
from .domains import Metrics, positive

Reading = Literal["paper", "corrected"]
K = 2 / (math.sqrt(2) - 1)


@dataclass(frozen=True)
class LearnerBound:
    """What a learner promises on its interval: (static + moving * gamma) sqrt|I|.

    >>> LearnerBound(static=2.0, moving=1.0)(gamma=3.0, length=16).item()
    20.0
    """

    static: float
    moving: float

    @property
    def C(self) -> float:
        """The one constant of the paper's condition, C (1 + gamma) sqrt|I|."""
        return max(self.static, self.moving)

    def __call__(self, gamma: ArrayLike, length: ArrayLike) -> Array:
        return (self.static + self.moving * np.asarray(gamma, dtype=np.float64)) * np.sqrt(length)


def descent_bound(diameter: float, steepness: float, step: float) -> LearnerBound:
    """Gradient descent with step / sqrt|I| within a set of that diameter, on losses with gradients of that norm.

    >>> descent_bound(diameter=1.0, steepness=1.0, step=1.0)
    LearnerBound(static=1.0, moving=1.0)
    """
    positive(step, "step")
    return LearnerBound(diameter**2 / (2 * step) + step * steepness**2 / 2, diameter / step)


def corollary_1(
    domain: Metrics, longest: float, step: float, threshold_step: float = 1.0, reading: Reading = "corrected"
) -> LearnerBound:
    """COMID for metrics: hinge, nuclear norm, Frobenius divergence, no cap on its steps.

    Parameters
    ----------
    domain
        A set in which all estimates and all comparators lie.
    longest
        max |x - z|.
    step, threshold_step
        As for `MetricTracker`. The paper's psi is twice ours, and its eta_0 twice our step.
    reading
        ``"paper"``: D = 2 c sqrt n, phi = c sqrt n, G = max|x - z|^2 + lambda, with c the largest eigenvalue.
        ``"corrected"``: the true diameter and gradient of {M, mu}, and once the penalty of the start.

    Examples
    --------
    >>> domain = Metrics(25, largest=4.0, threshold=1.0)
    >>> corollary_1(domain, longest=1.0, step=1.0).static
    201.0
    >>> corollary_1(domain, longest=1.0, step=1.0, reading="paper").static
    20.5
    """
    positive(step, "step")
    positive(threshold_step, "threshold_step")
    n, c, strength = domain.n, domain.largest, domain.strength
    if _read(reading) == "paper":
        G = longest**2 + strength
        return LearnerBound(c * math.sqrt(n) / step + step * G**2 / 2, 2 * c * math.sqrt(n) / step)
    diameter = math.hypot(c * math.sqrt(n), (domain.threshold - 1) / math.sqrt(threshold_step))
    bound = descent_bound(diameter, math.hypot(longest**2, math.sqrt(threshold_step)), step)
    return LearnerBound(bound.static + strength * n * c, bound.moving)


def theorem_1(
    learner: LearnerBound,
    gamma: ArrayLike,
    length: ArrayLike,
    last: ArrayLike,
    spread: float = 1.0,
    reading: Reading = "corrected",
) -> Array:
    """OCELAD over any learners with such a bound, base 1 and `OceladWeights`; elementwise.

    Parameters
    ----------
    learner
        What every learner promises on its interval.
    gamma, length, last
        Of the interval: the comparator's variation, |I|, and its last time step, the first step of all being 1.
    spread
        max_I |r_t(I)|, the same in all steps. The paper leaves it out.
    reading
        ``"paper"`` or ``"corrected"``.

    Examples
    --------
    >>> theorem_1(LearnerBound(1.0, 1.0), gamma=0.0, length=4, last=4).round(1).item()
    46.0
    >>> theorem_1(LearnerBound(1.0, 1.0), gamma=0.0, length=4, last=4, reading="paper").round(1).item()
    144.8
    """
    gamma, root, s = np.asarray(gamma, dtype=np.float64), np.sqrt(length), np.asarray(last, dtype=np.float64)
    if _read(reading) == "paper":
        return 8 * learner.C * (1 + gamma) * root + 40 * np.log(1 + s) * root
    log = np.log(2 * s)
    weights = K * (1 + log) * root + (6 - 2 * math.sqrt(2)) * log
    return (K * learner.static + learner.moving * gamma) * root + spread * weights


def theorem_2(
    learner: LearnerBound,
    gamma: ArrayLike,
    length: ArrayLike,
    last: ArrayLike,
    spread: float = 1.0,
    penalty: ArrayLike = 0.0,
    reading: Reading = "corrected",
) -> Array:
    """RICE-OCELAD for metrics, `corollary_1` giving the learners' bound; elementwise.

    The weights see the loss l_t, and the learners descend on f_t = l_t + lambda trace M. What that leaves open is
    ``penalty``, the sum over the interval of lambda trace M: of the comparator's M for regret in l_t, of the
    estimate's for regret in f_t. It is linear in |I|, and the paper leaves it out.
    """
    if _read(reading) == "paper":
        root = np.sqrt(length)
        log = np.log(1 + np.asarray(last, dtype=np.float64))
        return 2 * K * learner.C * (1 + np.asarray(gamma, dtype=np.float64)) * root + 40 * log * root
    return theorem_1(learner, gamma, length, last, spread) + np.asarray(penalty, dtype=np.float64)


def _read(reading: Reading) -> Reading:
    if reading not in ("paper", "corrected"):
        raise ValueError(f"reading must be 'paper' or 'corrected', got {reading!r}")
    return reading
