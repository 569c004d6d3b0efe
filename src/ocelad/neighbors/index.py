"""Stored points, their ids, and a search that measures them, or projects them where the metric stays as it is."""

from __future__ import annotations

import math
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike

from ..geometry import Mahalanobis
from ..protocols import Array
from ..tracker import inputs
from .arguments import Ids, ids_of, number_of_neighbors, points_of
from .change import MovingMetric, current, factor, fingerprint, matrix, moved, threshold
from .measure import NONE, Nearest, nearer
from .projection import Projection

SAMPLE = 4096
"""``moved`` looks at no more than this many of the stored points, evenly spaced."""
CHEAPER = 4
"""To project all points takes this many times less per product of a row and a point than to measure some."""
FAR = 1e150
"""The square of a larger distance is no number."""


class MovingIndex:
    """Points that are searched under the metric as it is now, exactly.

    Parameters
    ----------
    metric
        A `MetricTracker`, or anything with ``get_mahalanobis_matrix()`` and ``mu_``. Similar are points within its
        ``threshold_``, or sqrt(``mu_``) where it has none. It is looked at, not changed. If it has ``features``,
        points and queries are put through them, and what they give is stored.

    Examples
    --------
    >>> from ocelad import MetricTracker
    >>> rng = np.random.default_rng(0)
    >>> pairs = rng.normal(size=(400, 2, 3))
    >>> y = np.where(np.abs(pairs[:, 0, 0] - pairs[:, 1, 0]) < 1, 1, -1)  # only the first feature matters
    >>> index = MovingIndex(MetricTracker().partial_fit(pairs, y))
    >>> ids = index.add([[0.0, 2.0, 0.0], [1.5, 0.0, 0.0], [5.0, 0.0, 0.0]])
    >>> distances, ids = index.kneighbors([[0.0, 0.0, 0.0]], n_neighbors=2)
    >>> ids
    array([[0, 1]])
    """

    def __init__(self, metric: MovingMetric) -> None:
        if getattr(metric, "nonlinear", False) is True:
            raise ValueError(
                "metric must have a matrix, and with nonlinear=True there is none: index transform(X)"
            )
        if isinstance(metric, type) or not callable(getattr(metric, "get_mahalanobis_matrix", None)):
            raise ValueError(
                f"metric must be a MetricTracker, or have its get_mahalanobis_matrix() and mu_, got {metric!r}"
            )
        self.metric = metric
        self._X = np.zeros((0, 0))  # with room to grow into; no columns before the first points
        self._ids: Ids = np.zeros(0, dtype=np.int64)
        self._taken: set[int | str] = set()
        self._next = 0
        self._largest = 0.0  # entry of a point
        self._metric: Mahalanobis | None = None  # as it was when last asked for
        self._L = np.zeros((0, 0))  # its factor
        self._projection: Projection | None = None  # under that metric, of the points that came first
        self._spent = 0  # products since the metric moved, or since the projection
        self._exported: tuple[Array, float] | None = None

    def __copy__(self) -> MovingIndex:
        """An index of its own with the same points and the same metric."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other._X, other._taken = self._X.copy(), set(self._taken)  # all else is replaced, never written to
        return other

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def ids(self) -> Ids:
        """The ids of the stored points, in the order in which they came."""
        return self._ids.copy()

    def add(self, X: ArrayLike, ids: ArrayLike | None = None) -> Ids:
        """Store points and return their ids.

        Parameters
        ----------
        X
            Of shape (m, n), with the features of the stored points, or of a tracker that has learned.
        ids
            Of shape (m,), that are not in use: integers >= 0, or strings, the same kind for all stored points.
            None counts on from the largest integer so far.
        """
        return self._add(self._made(X), ids)

    def _made(self, X: Any) -> Any:
        """What the metric measures of points."""
        features = self.metric._features() if hasattr(self.metric, "_features") else None
        return X if features is None else inputs.points(X, type(self).__name__, None, features)

    def _add(self, X: Any, ids: Any) -> Ids:
        points = points_of(X, self._X.shape[1] or getattr(self.metric, "n_features_in_", 0))
        new = np.arange(self._next, self._next + len(points)) if ids is None else ids_of(ids)
        fresh = set(new.tolist())
        if len(new) != len(points):
            raise ValueError(f"ids must be one for each of the {len(points)} points, got {len(new)}")
        if len(self) and len(new) and new.dtype != self._ids.dtype:
            kind = "strings" if self._ids.dtype == object else "integers"
            raise ValueError(f"ids must be {kind}, as those of the stored points are")
        if len(fresh) < len(new) or fresh & self._taken:
            raise ValueError("ids must differ from one another and from those in use")
        if not len(points):
            return new
        old = self._X[: len(self)]
        if len(old) + len(points) > len(self._X):  # doubled, so that points may come one by one
            self._X = np.empty((max(len(old) + len(points), 2 * len(old)), points.shape[1]))
            self._X[: len(old)] = old if len(old) else 0.0
        self._X[len(old) : len(old) + len(points)] = points
        self._ids = np.concatenate([self._ids, new]) if len(old) else new
        self._largest = max(self._largest, float(np.abs(points).max()))
        self._taken |= fresh
        if new.dtype != object:
            self._next = max(self._next, int(new.max()) + 1)
        return new.copy()

    def remove(self, ids: ArrayLike) -> None:
        """Forget points."""
        gone = set(ids_of(ids).tolist())
        if unknown := gone - self._taken:
            raise ValueError(f"ids must be those of stored points, {min(unknown)!r} is not")
        kept = np.array([each not in gone for each in self._ids.tolist()], dtype=bool)
        self._X, self._ids = self._X[: len(self)][kept], self._ids[kept]
        self._largest = float(np.abs(self._X).max(initial=0.0))
        self._taken -= gone
        self._projection, self._spent = None, 0

    @overload
    def kneighbors(
        self,
        X: ArrayLike,
        n_neighbors: int | None = None,
        return_distance: Literal[True] = True,
        *,
        within_threshold: bool = False,
        k: int | None = None,
    ) -> tuple[Array, Ids]: ...

    @overload
    def kneighbors(
        self,
        X: ArrayLike,
        n_neighbors: int | None = None,
        *,
        return_distance: Literal[False],
        within_threshold: bool = False,
        k: int | None = None,
    ) -> Ids: ...

    def kneighbors(
        self,
        X: ArrayLike,
        n_neighbors: int | None = None,
        return_distance: bool = True,
        *,
        within_threshold: bool = False,
        k: int | None = None,
    ) -> tuple[Array, Ids] | Ids:
        """Distances (not squared) and ids of the nearest stored points of each query, nearest first.

        Both have shape (m, n_neighbors). Of equally near points the one that came first is first. Where there are
        fewer points than that, or with ``within_threshold`` fewer that are similar to it, the row is filled up
        with distance inf and id -1, or None where ids are strings: then they are an array of objects.

        Parameters
        ----------
        X
            Queries of shape (m, n).
        n_neighbors
            How many; None for 5.
        return_distance
            False gives the ids alone.
        within_threshold
            Whether only points count that are similar to the query.
        k
            The old name of ``n_neighbors``.
        """
        k = number_of_neighbors(n_neighbors, k)
        queries = points_of(self._made(X), self._X.shape[1])
        distances, ids = self._neighbors(queries, k, within_threshold)
        return (distances, ids) if return_distance else ids

    def _neighbors(self, queries: Array, k: int, within_threshold: bool) -> tuple[Array, Ids]:
        distances = np.full((len(queries), k), np.inf)
        ids = np.full(distances.shape, None if self._ids.dtype == object else -1)
        if not len(self) or not len(queries):
            return distances, ids
        reach = threshold(self.metric) if within_threshold else math.inf
        for row, (squares, at) in enumerate(self._nearest(queries, k)):
            d = np.sqrt(squares)
            similar = int(np.searchsorted(d, reach, side="right"))
            distances[row, :similar], ids[row, :similar] = d[:similar], self._ids[at[:similar]]
        return distances, ids

    def _nearest(self, queries: Array, k: int) -> list[Nearest]:
        """Under the metric as it is now: points are measured, and projected once that would have been cheaper."""
        X, L = self._X[: len(self)], self._factor()
        farthest = self._largest + float(np.abs(queries).max())
        if farthest * float(np.abs(L).max(initial=0.0)) * L.size > FAR:
            raise OverflowError("queries and the stored points are too far apart to square their distances")
        found: list[Nearest] = []
        while len(found) < len(queries):
            if self._spent * CHEAPER > len(X) * len(L):
                self._projection, self._spent = Projection(L, X), 0
            old, rest = self._projection, queries[len(found) :]
            if old is not None and len(old) == len(X):
                return found + old.nearest(X, rest, k)
            best, first = (NONE, 0) if old is None else (old.nearest(X, rest[:1], k)[0], len(old))
            best, products = nearer(best, L, X, np.arange(first, len(X)), rest[0], k)
            found.append(best)
            self._spent += products
        return found

    def _factor(self) -> Array:
        """L of the metric now. If it has moved, coordinates under another one are of no use."""
        now = current(self.metric, self._X.shape[1], self._metric)
        if now is not self._metric:
            L, self._metric = factor(now), now
            if not np.array_equal(L, self._L):
                self._L, self._projection, self._spent = L, None, 0
        return self._L

    # For an index elsewhere

    def export(self) -> tuple[Array, Ids]:
        """Coordinates in which the distance is Euclidean now, and ids: what an index elsewhere would hold.

        `stale` and `moved` count from the latest export.
        """
        M = matrix(self.metric, self._X.shape[1])
        now = current(self.metric, len(M), None)
        L = factor(Mahalanobis(now.M, now.unit, now.rank))  # in units: features may be of very different sizes
        Z = self._X[: len(self)].reshape(len(self), len(M)) @ L.T
        self._exported = M, threshold(self.metric)
        return Z, self.ids

    @property
    def fingerprint(self) -> str:
        """32 hexadecimal digits, the same if and only if matrix and threshold are, to the bit."""
        return fingerprint(matrix(self.metric, self._X.shape[1]), threshold(self.metric))

    @property
    def stale(self) -> bool:
        """Whether matrix or threshold have changed since the latest `export`; True before the first."""
        return self._exported is None or fingerprint(*self._exported) != self.fingerprint

    @property
    def moved(self) -> float:
        """How far squared distances between stored points have changed since the latest `export`.

        It is the root mean square of the change over all pairs of stored points, as a fraction of the root mean
        square of the squared distances at the export: 0.05 says that they are typically off by 5 %. It is inf
        before the first export, and where all distances were zero and are so no more. Of more than 4096 points an
        evenly spaced sample is taken.
        """
        if self._exported is None:
            return math.inf
        X = self._X[: len(self)]
        if len(X) > SAMPLE:
            X = X[np.linspace(0, len(X) - 1, SAMPLE).round().astype(np.int64)]
        return moved(self._exported[0], matrix(self.metric, X.shape[1]), X)
