"""A similarity function: the Mahalanobis matrix M and the threshold mu.

x and z are similar   iff   (x - z)' M (x - z) <= mu,       M positive semi-definite, mu >= 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..protocols import Array, snapshot


@dataclass(frozen=True, eq=False)
class Metric:
    """An estimate {M, mu}; metrics can be added and scaled, so Algorithm 1 can average them.

    >>> halfway = 0.5 * Metric([[2.0]], 1.0) + 0.5 * Metric([[4.0]], 3.0)
    >>> halfway.M.item(), halfway.mu
    (3.0, 2.0)
    """

    M: Array
    mu: float

    __array_ufunc__ = None  # numpy's numbers leave the multiplication to us

    def __post_init__(self) -> None:
        object.__setattr__(self, "M", snapshot(self.M))
        object.__setattr__(self, "mu", float(self.mu))

    def __add__(self, other: Metric) -> Metric:
        return Metric(self.M + other.M, self.mu + other.mu)

    def __rmul__(self, factor: Any) -> Metric:
        return Metric(float(factor) * self.M, float(factor) * self.mu)

    def squared_distance(self, u: Array) -> float:
        """u' M u."""
        return float(u @ self.M @ u)
