"""A learned metric as an object of its own: a distance, a matrix, and an embedding in which it is Euclidean.

d(x, z) = |L (x - z)|,    M = L'L,    the rows of L ordered by how much they matter.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from .. import validation as validate
from ..platt import Decision
from ..protocols import Array, snapshot
from .quadratic import Dense, Parts

TINY = 1e-307
"""A difference that is not longer than this is none: its square would vanish."""

FARTHEST = 1e150
"""The longest difference in a prediction, in units: its square is still finite."""


@dataclass(frozen=True, eq=False)
class Mahalanobis:
    """A metric that no longer changes, and a function of two points.

    Its matrix is that of differences measured in ``unit``, or each feature in a unit of its own, so that features
    of any size can be handled; ``rank``, if given, keeps only that many directions; ``decision``, if given, says
    what squared distances mean.

    >>> metric = Mahalanobis(np.diag([4.0, 9.0]))
    >>> metric([1, 0], [0, 0]), metric([0, 1], [0, 0], squared=True)
    (2.0, 9.0)
    >>> metric.components
    array([[0., 3.],
           [2., 0.]])
    """

    form: Any  # a matrix, or one that is not multiplied out
    unit: float | Array = 1.0
    rank: int | None = None
    decision: Decision | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.form, (Dense, Parts)):
            object.__setattr__(self, "form", Dense(self.form))

    @classmethod
    def embedding(cls, components: Any, rank: int | None = None, decision: Decision | None = None) -> Mahalanobis:
        """The metric of a given linear map."""
        L = snapshot(validate.components(components))
        if rank is not None and rank < len(L):
            return cls(L.T @ L, 1.0, rank, decision)
        metric = cls(L.T @ L, decision=decision)
        metric.__dict__["factor"] = L  # as it was given, and not another one of the same metric
        return metric

    @property
    def n(self) -> int:
        """The number of features."""
        return self.form.n

    @property
    def M(self) -> Array:
        """The matrix for differences in units of length."""
        return self.form.M

    def __call__(self, u: Any, v: Any, squared: bool = False) -> float:
        """The distance of two points."""
        u, v = (validate.vector(point, self.n) for point in (u, v))
        d = float(self.distance((u - v)[None])[0])
        return d * d if squared else d

    @cached_property
    def factor(self) -> Array:
        """L in units of length."""
        return self.form.factor(self.rank)

    @property
    def components(self) -> Array:
        """L, the most important direction first."""
        return self.factor / self.unit

    @property
    def dimensions(self) -> int:
        """The number of coordinates that `transform` gives."""
        return len(self.factor)

    @property
    def matrix(self) -> Array:
        """M, in the units of the features."""
        L = self.factor if self.rank is not None else None
        with np.errstate(over="ignore"):
            M = in_features(self.M if L is None else L.T @ L, self.unit)
        if not np.isfinite(M).all():
            size = float(np.min(self.unit))
            raise OverflowError(f"the matrix has no finite entries for differences of size {size:.1g}")
        return M

    def distance(self, u: Any) -> Array:
        """The length of each difference, dense or sparse."""
        unit = self.unit
        if isinstance(unit, np.ndarray):
            u, unit = in_units(u, unit), 1.0
        size = abs(u).max(axis=1).toarray().ravel() if sparse.issparse(u) else np.abs(u).max(axis=1, initial=0.0)
        down = 1.0 / np.where(size > TINY, size, 1.0)  # squares of huge and tiny differences must not overflow
        u = sparse.diags_array(down).tocsr() @ u if sparse.issparse(u) else u * down[:, None]
        squares = self.form.squares(u) if self.rank is None else np.square(u @ self.factor.T).sum(axis=1)
        with np.errstate(over="ignore"):  # farther than any number: infinitely far
            return size / unit * np.sqrt(np.maximum(squares, 0.0))

    def transform(self, X: Any) -> Array:
        """Coordinates in which the distance is Euclidean."""
        return np.asarray(in_units(X, self.unit) @ self.factor.T)


def in_units(u: Any, unit: float | Array) -> Any:
    """Rows in units of length, or each feature in its own; one of infinite unit does not count."""
    if not isinstance(unit, np.ndarray):
        return u / unit
    if sparse.issparse(u):
        return (u @ sparse.diags_array(1.0 / unit)).tocsr()
    with np.errstate(over="ignore"):
        return np.clip(u / unit, -FARTHEST, FARTHEST)


def in_features(M: Array, unit: float | Array) -> Array:
    """The matrix for differences as they are of one for differences in units of length."""
    return both_sides(M, 1.0 / unit) if isinstance(unit, np.ndarray) else M / unit / unit


def both_sides(M: Array, factors: Array) -> Array:
    """Rows and columns of a symmetric matrix times these factors."""
    M = M * factors * factors[:, None]
    return (M + M.T) / 2
