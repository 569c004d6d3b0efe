"""COMID on a metric that is kept diagonal, M = V' diag(s) V.

A pair has the gradient -g u u', so that a mirror step, link(M) + step g u u', is a change of rank one; if g = 0,
only s moves. `Comid`, and learners like it, can do with either form of a metric and of a descent.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache, cached_property
from typing import Any

import numpy as np

from ..geometry import Descent, Frobenius, Metric, PairLoss
from ..geometry.comid import ComidOnIntervals
from ..protocols import Array, Spawn, snapshot


class Diagonal(Metric):
    """A metric by its eigenvalues and its eigenvectors, in rows; M is multiplied out only if asked for."""

    s: Array
    V: Array
    turns: int  # how often the eigenvectors have been turned

    def __init__(self, s: Array, V: Array, mu: float, turns: int = 0) -> None:
        self.__dict__.update(s=s, V=V, mu=mu, turns=turns)

    @classmethod
    def of(cls, metric: Metric) -> Diagonal:
        """The same metric; s >= 0."""
        if isinstance(metric, Diagonal):
            return metric
        s, V = np.linalg.eigh(metric.M)
        return cls(np.maximum(s, 0.0), np.ascontiguousarray(V.T), metric.mu)

    @cached_property
    def M(self) -> Array:
        M = (self.V.T * self.s) @ self.V
        return snapshot((M + M.T) / 2)

    def squared_distance(self, u: Array) -> float:
        """u' M u."""
        c = self.V.dot(u)  # twice as fast as @, at this size
        return float(self.s.dot(c * c))


class RankOneDescent(Descent):
    """`Descent`, for pairs by their rank-one gradients, and as ever for other losses."""

    def __call__(self, metric: Metric, loss: Any, step: float) -> Metric:
        if type(loss) is not PairLoss or not hasattr(self.regularizer, "shrink"):
            return super().__call__(metric, loss, step)
        now = Diagonal.of(metric)
        slope = loss.y * loss.slope(now)
        step = self._effective_step(now, slope, loss, step)
        w, V, turns = self.divergence.link(now.s), now.V, now.turns
        if slope != 0.0:
            w, V = _kernel()(w, V, now.V.dot(loss.u), step * slope)
            turns += 1
            if turns % 1000 == 0:
                V = 1.5 * V - 0.5 * (V @ V.T) @ V  # at right angles again, but for rounding squared
        mu = now.mu if slope == 0.0 else max(1.0, now.mu - self.threshold_step * step * slope)
        return Diagonal(self.regularizer.shrink(self.divergence, w, step), V, mu, turns)

    def _effective_step(self, now: Diagonal, slope: float, loss: PairLoss, step: float) -> float:
        """Along u all is as if there were one dimension."""
        if type(self.divergence) is Frobenius and not self.step_cap and not loss.stiffness:
            return step
        if slope == 0.0:
            return 0.0 if self.step_cap else step
        square, d2 = float(loss.u @ loss.u), now.squared_distance(loss.u)
        metric = Metric(np.array([[d2 / square if square > 0.0 else 1.0]]), now.mu)
        along = PairLoss(np.array([square**0.5]), loss.y, loss.loss)
        return self.effective_step(metric, Metric(np.array([[-slope * square]]), slope), along, step)


@cache
def _kernel() -> Any:
    """Imported, and compiled, when a baseline first learns."""
    from .rank_one import turned

    return turned


def diagonal(spawn: Spawn[Metric]) -> Spawn[Metric]:
    """The same COMID learners, on metrics that are kept diagonal."""
    if not isinstance(spawn, ComidOnIntervals):
        return spawn
    d = spawn.descent
    descent = RankOneDescent(d.regularizer, d.divergence, d.threshold_step, d.step_cap)
    return replace(spawn, origin=Diagonal.of(spawn.origin), descent=descent)
