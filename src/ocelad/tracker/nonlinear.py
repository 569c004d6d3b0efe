"""A metric that bends: squared distances of points and, added to them, of what feature maps make of the points.

    d(x, z)^2 = u'Mu + v'Nv,        u = x - z,   v = phi(x) - phi(z),

so it is Euclidean in coordinates of (x, phi(x)). Its comparisons are rows (u, x, z), side by side.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import block_diag

from .. import validation as validate
from ..engine.protocol import Engine
from ..geometry.mahalanobis import Mahalanobis
from ..platt import Decision
from ..protocols import Array
from .units import Scale


def linear_part(rows: Any, n: int, parts: int = 1) -> Any:
    """The differences u of rows (u, x, z), or of several of those side by side; of rows u, these."""
    if rows.shape[1] == parts * n:
        return rows
    return np.ascontiguousarray(rows.reshape(len(rows), parts, 3, n)[:, :, 0]).reshape(len(rows), parts * n)


def with_linear_part(rows: Any, u: Any, n: int) -> Any:
    """The same rows, with other differences."""
    if u.shape[1] == rows.shape[1]:
        return u
    shape = len(rows), u.shape[1] // n
    new = rows.reshape(*shape, 3, n).copy()
    new[:, :, 0] = u.reshape(*shape, n)
    return new.reshape(rows.shape)


@dataclass(frozen=True, eq=False)
class NonlinearMetric:
    """A metric that no longer changes, and a function of two points.

    It has no matrix and no linear map of the points: `transform` gives coordinates in which it is Euclidean.
    """

    joined: Mahalanobis  # of (x, phi(x))
    maps: Any  # phi; None before there are landmarks
    n: int

    @classmethod
    def of(cls, engine: Engine, unit: float | Array, rank: int | None) -> NonlinearMetric:
        n, form = engine.recipe.n, engine.mixture()[0]
        maps, matrices = engine.mixture_of_maps()
        units = np.ones(n + sum(map(len, matrices)))
        units[:n] = unit
        joined = Mahalanobis(block_diag(form.M, *matrices), units, rank, engine.decision())
        return cls(joined, maps, n)

    @property
    def decision(self) -> Decision | None:
        """What squared distances mean."""
        return self.joined.decision

    @property
    def rank(self) -> int | None:
        return self.joined.rank

    def _lift(self, X: Array) -> Array:
        """(x, phi(x)) of each point."""
        mapped = np.zeros((len(X), self.joined.n - self.n)) if self.maps is None else self.maps(X)
        return np.hstack([X, mapped])

    def __call__(self, u: Any, v: Any, squared: bool = False) -> float:
        """The distance of two points."""
        x, z = (self._lift(validate.vector(point, self.n)[None]) for point in (u, v))
        d = float(self.joined.distance(x - z)[0])
        return d * d if squared else d

    def distance(self, rows: Array) -> Array:
        """The distance of the points of each row (u, x, z)."""
        u, x, z = rows.reshape(len(rows), 3, self.n).swapaxes(0, 1)
        v = self._lift(x)[:, self.n :] - self._lift(z)[:, self.n :]
        return self.joined.distance(np.hstack([u, v]))

    @property
    def dimensions(self) -> int:
        """The number of coordinates."""
        return self.joined.dimensions

    def transform(self, X: Any) -> Array:
        """Coordinates in which the distance is Euclidean, the most important first."""
        if sparse.issparse(X):
            raise ValueError("X: nonlinear=True needs dense points, got sparse ones")
        return self.joined.transform(self._lift(np.asarray(X)))

    @property
    def components(self) -> Array:
        raise no_matrix("components_")

    @property
    def matrix(self) -> Array:
        raise no_matrix("get_mahalanobis_matrix()")

    @property
    def M(self) -> Array:
        """The linear part, for differences in units of length."""
        return self.joined.M[: self.n, : self.n]

    @property
    def unit(self) -> Array:
        return np.asarray(self.joined.unit)[: self.n]


def normalise(scale: Scale, rows: Any, parts: int, n: int, before: bool = False) -> tuple[Any, Scale, list[float]]:
    """`Scale.normalise` of the differences among rows; points stay as they are."""
    u, after, ratios = scale.normalise(linear_part(rows, n, parts), parts, before)
    return with_linear_part(rows, u, n), after, ratios


def no_matrix(name: str) -> AttributeError:
    return AttributeError(
        f"{name} does not exist with nonlinear=True: no matrix gives these distances. transform() gives "
        "coordinates in which they are Euclidean"
    )
