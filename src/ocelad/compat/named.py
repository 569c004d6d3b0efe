"""A tracked metric over dictionaries of features, which may appear and vanish at any time.

    distance(x, z) = |M^1/2 (x - z)|,      transform(x) = M^1/2 x,      an absent feature counts as 0,

with features in the tracker's units of length.

The symmetric root moves as continuously as M does and has a coordinate for every feature, whereas eigenvectors
change sign and order from one step to the next, which would upset a model that learns from the coordinates.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.base import clone

from .. import validation as validate
from ..protocols import Array
from ..tracker import MetricTracker
from .columns import Columns, Named, checked

LARGEST = 1e140
"""Differences beyond this size, or below its inverse, leave nothing of M in the units of the features."""


class NamedTracker:
    """A `MetricTracker` whose points are dictionaries.

    Until the first comparison the metric is Euclid's. From then on it is the tracker's, to which a feature that
    has never been compared does not matter.

    >>> metric = NamedTracker(MetricTracker(), Columns(own=10, shared=0))
    >>> metric.distance({"a": 3.0}, {"b": 4.0})
    5.0
    """

    def __init__(self, tracker: MetricTracker, columns: Columns) -> None:
        if tracker.features is not None or tracker.nonlinear:
            raise ValueError(
                "tracker must have neither features nor nonlinear=True: points with named features are measured "
                f"by a matrix over these, got features={tracker.features!r}, nonlinear={tracker.nonlinear!r}"
            )
        self.tracker: MetricTracker = clone(tracker)
        self.columns = columns
        self.learned = False
        self._root: Array | None = None

    def learn(self, pairs: list[tuple[Array, Array]], similar: list[bool], columns: Columns) -> None:
        """Comparisons of points that are laid out by ``columns``."""
        if pairs:
            self.tracker._names = columns.names
            self.tracker.partial_fit(np.array(pairs), np.where(similar, 1, -1))
            self.learned, self._root = True, None
        self.columns = columns

    def distance(self, x: Named, z: Named) -> float:
        """The distance (not squared) of two points."""
        x, z = checked(x, "x"), checked(z, "z")
        if not self.learned:
            return math.hypot(*(x.get(name, 0.0) - z.get(name, 0.0) for name in {**x, **z}))
        return math.hypot(*self._coordinates(self.columns.vector(x) - self.columns.vector(z)))

    def distances(self, row: Array, rows: Array) -> Array:
        """Of one point to others, all laid out by ``columns``."""
        differences = rows - row
        size = float(np.abs(differences).max()) or 1.0  # no product overflows before the last
        differences /= size
        if self.learned:
            root = self._symmetric_root()
            differences = differences[:, : len(root)] @ root.T
        with np.errstate(over="ignore"):
            return np.asarray(size * np.sqrt(np.square(differences).sum(axis=1)))

    def probability(self, x: Named, z: Named) -> float:
        """The tracker's probability that two points are similar; one half until something has been learned."""
        if not self.learned:
            return 0.5
        decision = self.tracker.get_metric().decision
        assert decision is not None  # what a tracker has learned says what distances mean
        distance = self.distance(x, z)
        return float(expit(decision.log_odds(distance * distance)))

    def transform(self, x: Named) -> dict[Hashable, float]:
        """A coordinate for every feature seen so far."""
        x = checked(x, "x")
        if not self.learned:
            return dict(x)
        return dict(zip(self.columns.names, self._coordinates(self.columns.vector(x)), strict=True))

    def _coordinates(self, row: Array) -> list[float]:
        root = self._symmetric_root()
        size = float(np.abs(row).max()) or 1.0  # no product overflows before the last
        return [size * value for value in (root @ (row[: len(root)] / size)).tolist()]

    def _symmetric_root(self) -> Array:
        """M^1/2 over the columns in use; the others are zero."""
        used = len(self.columns.names)
        if self._root is None or len(self._root) != used:
            metric = self.tracker.get_metric()
            unit = np.broadcast_to(metric.unit, metric.n)[:used]
            for size in unit[np.isfinite(unit)].tolist():
                if not 1.0 / LARGEST <= size <= LARGEST:
                    raise OverflowError(
                        f"features differ by {size:.1g}, expected {1 / LARGEST:.0g} to {LARGEST:.0g}"
                    )
            M = metric.M if metric.rank is None else metric.factor.T @ metric.factor
            s, V = np.linalg.eigh(M[:used, :used])
            self._root = (V * np.sqrt(np.maximum(s, 0.0))) @ V.T / unit
        return self._root


def named_tracker(tracker: Any, max_features: Any, shared_columns: Any) -> NamedTracker:
    """What an estimator's options describe, checked."""
    if not (tracker is None or isinstance(tracker, MetricTracker)):
        raise ValueError(f"tracker must be a MetricTracker or None, got {tracker!r}")
    own = validate.integer(max_features, "max_features")
    shared = validate.integer(shared_columns, "shared_columns", least=0)
    return NamedTracker(MetricTracker() if tracker is None else tracker, Columns(own, shared))
