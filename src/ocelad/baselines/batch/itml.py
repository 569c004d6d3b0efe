"""Information-theoretic metric learning (Davis, Kulis, Jain, Sra, Dhillon 2007), solved to a known accuracy.

The metric nearest to a prior under which similar pairs are near and different ones far, up to slack xi:

    minimise  D(M, M0) + gamma sum_c D(xi_c, b_c)    over M, xi > 0
    subject to  p_c = u_c'Mu_c <= xi_c  (similar),    p_c >= xi_c  (different),

with D the LogDet divergence (for numbers: x/b - log(x/b) - 1) and b the squared bounds on distances. The best
slack is xi = p where the bound b is violated and b elsewhere: what remains is smooth and convex in M alone,

    F(M) = D(M, M0) + gamma sum_violated D(p_c, b_c).

Projecting on one constraint after the other, as in the paper, has the same limit and gets there slowly. The dual,

    log det(M0 A) - gamma sum_violated log(p_c/b_c),    A = M0^-1 + gamma sum_violated (1/b_c - 1/p_c) u_c u_c',

is a lower bound wherever A is positive definite, and equal at the minimum, where A = M^-1.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from ... import validation as validate
from ...geometry import Mahalanobis
from ...protocols import Array
from .descent import descend
from .fitted import FromPairs, Rounds, Solved, unit_of

PERCENTILES = (5.0, 95.0)


@dataclass(eq=False, repr=False)
class ITML(Solved, FromPairs):
    """The metric nearest to a prior that keeps similar pairs near and different ones far.

    The units of the features do not matter, unless a prior is given. Pairs of equal points say nothing and are
    left out.

    Parameters
    ----------
    gamma
        What slack costs: the larger, the more exactly the bounds are kept. It counts for every pair: the more
        there are, the less they leave of the prior.
    bounds
        The distance that similar pairs should not exceed, and the one that different pairs should. None takes the
        5th and the 95th percentile of the pairs' distances under the prior.
    prior
        M0: ``"variance"`` measures each feature in the root mean square of the pairs' differences; a number is for
        that multiple of the identity; or a positive definite matrix.
    max_iter
        How many rounds, of 50 steps each, at most.
    tol
        When to stop: when the objective is known to be this close to its minimum, as a part of 1 + itself.
    n_components
        How many dimensions to keep, the most important; None keeps all.
    preprocessor
        Turns indicators into points: an array whose rows they number, or a function.
    verbose
        Whether to say on stderr, every two seconds, how far it has come.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> pairs = rng.normal(size=(200, 2, 3))
    >>> y = np.where(np.abs(pairs[:, 0, 0] - pairs[:, 1, 0]) < 1, 1, -1)  # only the first feature matters
    >>> itml = ITML().fit(pairs, y)
    >>> itml.get_mahalanobis_matrix().diagonal().argmax().item()
    0
    >>> bool(itml.score(pairs, y) > 0.9)
    True
    """

    _: KW_ONLY
    gamma: float = 0.1
    bounds: ArrayLike | None = None
    prior: ArrayLike | Literal["variance"] = "variance"
    bounds_: Array = field(init=False)

    def _learn(self, u: Array, y: Array) -> Mahalanobis:
        rounds, gamma = Rounds(self), validate.number(self.gamma, "gamma", positive=True)
        apart = u.any(axis=1)
        if not apart.any():
            raise ValueError("pairs must hold at least one pair of two different points")
        unit = unit_of(u)
        rows = u[apart] / unit
        K, length = self._prior(rows, unit)
        v = rows @ K
        self.bounds_ = self._bounds(np.linalg.norm(v, axis=1) * length)
        near, far = np.square(self.bounds_ / length)
        loss = _Slack(v, y[apart], np.where(y[apart] > 0, near, far), gamma)
        L, self.objective_, self.gap_, self.n_iter_ = _minimise(loss, rounds)
        rounds.certify(self.gap_)
        L = L @ K.T
        return Mahalanobis(L.T @ L, unit / length, self.n_components)

    def _prior(self, rows: Array, unit: float) -> tuple[Array, float]:
        """K with M0 = KK', and what 1 in distances of ``rows @ K`` is in those of the prior."""
        n = rows.shape[1]
        if isinstance(self.prior, str):
            if self.prior != "variance":
                raise ValueError(f'prior must be "variance", a number > 0 or a matrix, got {self.prior!r}')
            size = np.sqrt(np.square(rows).mean(axis=0))
            return np.diag(1.0 / np.where(size > 0.0, size, 1.0)), 1.0
        prior = validate.start(self.prior, n, definite=True, name="prior")
        M0: Array = prior * np.eye(n) if isinstance(prior, float) else prior
        return np.asarray(np.linalg.cholesky(M0), dtype=np.float64), unit

    def _bounds(self, distances: Array) -> Array:
        if self.bounds is None:
            return np.asarray(np.percentile(distances, PERCENTILES), dtype=np.float64)
        expected = "None or two numbers > 0, the first not above the second"
        bounds = validate.real(self.bounds, "bounds", expected)
        if bounds.shape != (2,) or not 0.0 < bounds[0] <= bounds[1]:
            raise ValueError(f"bounds must be {expected}, got {self.bounds!r}")
        return bounds


@dataclass(frozen=True, eq=False)
class _Slack:
    """F and its gradient in coordinates in which the prior is I."""

    u: Array
    signs: Array
    b: Array
    gamma: float

    def __call__(self, L: Array) -> tuple[float, Array]:
        r, A = self._violations(L)
        inverse = np.linalg.inv(L)
        F = np.square(L).sum() - 2.0 * np.linalg.slogdet(L)[1] - len(L) + self.gamma * (r - np.log(r) - 1.0).sum()
        return float(F), A - inverse @ inverse.T

    def bound(self, L: Array) -> float:
        """What F cannot fall below."""
        r, A = self._violations(L)
        e = np.linalg.eigvalsh(A)
        return float(np.log(e).sum() - self.gamma * np.log(r).sum()) if e[0] > 0.0 else -np.inf

    def _violations(self, L: Array) -> tuple[Array, Array]:
        """p/b where the bound is violated, 1 elsewhere, and A."""
        p = np.square(self.u @ L.T).sum(axis=1)
        r = np.where(self.signs * (p - self.b) > 0.0, p / self.b, 1.0)
        return r, np.eye(len(L)) + (self.u.T * (self.gamma * (1.0 - 1.0 / r) / self.b)) @ self.u


def _minimise(loss: _Slack, rounds: Rounds) -> tuple[Array, float, float, int]:
    """L, its objective, how far that may be above the minimum as a part of 1 + itself, the number of rounds."""
    L = 2.0 * np.eye(loss.u.shape[1])  # the first step has length 1: from I, it could end at a singular L
    for number in rounds:
        L = descend(loss, L)
        F = loss(L)[0]
        gap = max(0.0, F - loss.bound(L)) / (1.0 + F)
        if rounds.reached(gap, f"round {number}, the objective {F:.4g} may be {gap:.2g} of it above its minimum"):
            break
    return L, F, gap, number
