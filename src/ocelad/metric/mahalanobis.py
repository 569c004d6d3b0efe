"""A learned metric as an object of its own: a distance, a matrix, and an embedding in which it is Euclidean.

d(x, z) = |L (x - z)|,    M = L'L,    the rows of L ordered by how much they matter.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from ..learner import Array, snapshot
from . import validate


@dataclass(frozen=True, eq=False)
class Mahalanobis:
    """A metric that no longer changes, and a function of two points.

    ``M`` belongs to differences measured in ``unit``, so that features of any size can be handled; ``rank``, if
    given, keeps only so many of its directions; ``mu`` is the threshold on squared distances, where there is one.

    >>> metric = Mahalanobis(np.diag([4.0, 9.0]))
    >>> metric([1, 0], [0, 0]), metric([0, 1], [0, 0], squared=True)
    (2.0, 9.0)
    >>> metric.components
    array([[0., 3.],
           [2., 0.]])
    """

    M: Array
    unit: float = 1.0
    rank: int | None = None
    mu: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "M", snapshot(self.M))

    @classmethod
    def embedding(cls, components: Any, rank: int | None = None, mu: float | None = None) -> Mahalanobis:
        """The metric of a given linear map."""
        L = snapshot(validate.components(components))
        if rank is not None and rank < len(L):
            return cls(L.T @ L, 1.0, rank, mu)
        metric = cls(L.T @ L, mu=mu)
        metric.__dict__["_factor"] = L  # as it was given, and not another one of the same metric
        return metric

    def __call__(self, u: Any, v: Any, squared: bool = False) -> float:
        """The distance of two points."""
        u, v = (validate.vector(point, len(self.M)) for point in (u, v))
        d = float(self.distance((u - v)[None])[0])
        return d * d if squared else d

    @cached_property
    def _factor(self) -> Array:
        """L in units of length."""
        s, V = np.linalg.eigh(self.M)
        V = V * np.where(V[np.abs(V).argmax(axis=0), np.arange(len(s))] < 0, -1.0, 1.0)  # a sign of its own
        return np.ascontiguousarray((V * np.sqrt(np.maximum(s, 0.0))).T[::-1][: self.rank])

    @property
    def components(self) -> Array:
        """L, the most important direction first."""
        return self._factor / self.unit

    @property
    def matrix(self) -> Array:
        """M, in the units of the features."""
        L = self._factor if self.rank is not None else None
        with np.errstate(over="ignore"):
            M = (self.M if L is None else L.T @ L) / self.unit / self.unit
        if not np.isfinite(M).all():
            raise OverflowError(f"the matrix has no finite entries for differences of size {self.unit:.1g}")
        return M

    def distance(self, u: Any) -> Array:
        """The length of each difference, dense or sparse."""
        if sparse.issparse(u):
            return self._sparse_distance(u)
        size = np.abs(u).max(axis=1, initial=0.0)  # squares of huge and tiny differences must not overflow
        u = u / np.where(size > 0, size, 1.0)[:, None]
        if self.rank is None:
            squares = np.einsum("ij,ij->i", u @ self.M, u)
        else:
            squares = np.square(u @ self._factor.T).sum(axis=1)
        with np.errstate(over="ignore"):  # farther than any number: infinitely far
            return size / self.unit * np.sqrt(np.maximum(squares, 0.0))

    def _sparse_distance(self, u: Any) -> Array:
        L = self._factor if self.rank is not None else None
        d = np.zeros(u.shape[0])
        for row, (start, stop) in enumerate(zip(u.indptr[:-1], u.indptr[1:], strict=True)):
            at, values = u.indices[start:stop], u.data[start:stop]
            size = float(np.abs(values).max(initial=0.0)) or 1.0
            x = values / size
            square = x @ self.M[np.ix_(at, at)] @ x if L is None else np.square(L[:, at] @ x).sum()
            d[row] = size / self.unit * np.sqrt(max(float(square), 0.0))
        return d

    def transform(self, X: Any) -> Array:
        """Coordinates in which the distance is Euclidean."""
        return np.asarray((X / self.unit) @ self._factor.T)
