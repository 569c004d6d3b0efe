"""river's interface: a metric that is learned one labelled point, or one pair, at a time.

Needs river: ``pip install "ocelad[river]"``.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Hashable
from random import Random
from typing import Any

import numpy as np

from .. import validation as validate
from ..protocols import Array
from ..tracker import MetricTracker
from .columns import Named, checked, is_label
from .named import named_tracker

try:
    from river import base
except ImportError as error:
    raise ImportError('ocelad.compat.river needs river: pip install "ocelad[river]"') from error

from .river_pairs import PairClassifier, PairSampler, pair

__all__ = ["MetricKNNClassifier", "MetricTransformer", "PairClassifier", "PairSampler", "pair"]


class MetricTransformer(base.SupervisedTransformer):  # type: ignore[misc]
    """Learn from labelled points the metric in which equal labels are close, while it changes.

    Each point is compared with one earlier point of its own label and one of another, drawn from the latest
    ``window``. Features should be on comparable scales: put a ``StandardScaler`` in front. ``transform_one`` gives
    coordinates, one per feature, in which the learned distance is Euclidean; before anything has been learned,
    points are left as they are. Coordinates of different times do not compare: a model that stores points, such as
    k-NN, should store the original ones and use ``distance_one``.

    Parameters
    ----------
    tracker
        A `MetricTracker` with the options to use; it is copied, not trained. None is ``MetricTracker()``.
    window
        How many of the latest points are kept to be compared with.
    max_features
        The number of features, the first ones seen, that have a column of the metric each.
    shared_columns
        The number of further columns that all later features share, by signed hashing; with 0 those are
        ignored. Memory is bounded whatever comes.
    seed
        Of the draws from the window.

    Examples
    --------
    >>> from random import Random
    >>> rng, model = Random(0), MetricTransformer(seed=0)
    >>> for t in range(300):
    ...     label = rng.choice(["ripe", "raw"])
    ...     model.learn_one({"colour": rng.gauss(label == "ripe", 0.2), "noise": rng.gauss(0, 1)}, label)
    >>> ripe = {"colour": 1.0, "noise": 0.5}
    >>> raw, other = ripe | {"colour": 0.0}, ripe | {"noise": -0.5}
    >>> model.distance_one(ripe, raw) > 2 * model.distance_one(ripe, other)
    True
    >>> sorted(model.transform_one(ripe))
    ['colour', 'noise']
    """

    def __init__(
        self,
        tracker: MetricTracker | None = None,
        window: int = 100,
        max_features: int = 128,
        shared_columns: int = 32,
        seed: int | None = None,
    ) -> None:
        self.tracker = tracker
        self.window = validate.integer(window, "window")
        self.max_features = max_features
        self.shared_columns = shared_columns
        self.seed = seed
        self.metric = named_tracker(tracker, max_features, shared_columns)
        self._random = Random(seed)
        self._recent: deque[tuple[Array, Hashable]] = deque(maxlen=self.window)

    def learn_one(self, x: Named, y: Hashable) -> None:
        """Learn a point and its label."""
        x = checked(x, "x")
        if not is_label(y):
            raise ValueError(f"y must be a label, got {y!r}")
        columns = self.metric.columns.after(x)
        point = columns.vector(x)
        drawn = self._random.getstate()
        same = [other for other, label in self._recent if label == y]
        different = [other for other, label in self._recent if label != y]
        partners = [(self._random.choice(group), group is same) for group in (same, different) if group]
        try:
            self.metric.learn([(point, other) for other, _ in partners], [s for _, s in partners], columns)
        except BaseException:  # a rejected point leaves no trace
            self._random.setstate(drawn)
            raise
        self._recent.append((point, y))

    def transform_one(self, x: Named) -> dict[Hashable, float]:
        """Coordinates in which the learned distance is Euclidean."""
        return self.metric.transform(x)

    def distance_one(self, x: Named, z: Named) -> float:
        """The learned distance (not squared) of two points."""
        return self.metric.distance(x, z)


class MetricKNNClassifier(base.Classifier):  # type: ignore[misc]
    """Classify by the nearest of the latest points, at the distance that a `MetricTransformer` learns from them.

    Points are stored as they are, and distances are those at the time of the question: coordinates of different
    times do not compare. Features should be on comparable scales: put a ``StandardScaler`` in front.

    Parameters
    ----------
    tracker
        A `MetricTracker` with the options to use; it is copied, not trained. None is ``MetricTracker()``.
    n_neighbors
        How many neighbours vote.
    window
        How many of the latest points are kept, as neighbours and to be compared with.
    weighted
        Whether votes count by the inverse of the distance, or all the same.
    max_features, shared_columns, seed
        As in `MetricTransformer`.

    Examples
    --------
    >>> from random import Random
    >>> rng, model, right = Random(0), MetricKNNClassifier(seed=0), 0
    >>> for t in range(500):
    ...     label = rng.choice(["ripe", "raw"])
    ...     x = {"colour": rng.gauss(label == "ripe", 0.3)} | {f"noise {k}": rng.gauss(0, 1) for k in range(5)}
    ...     right += model.predict_one(x) == label
    ...     model.learn_one(x, label)
    >>> right > 430
    True
    """

    def __init__(
        self,
        tracker: MetricTracker | None = None,
        n_neighbors: int = 5,
        window: int = 100,
        weighted: bool = True,
        max_features: int = 128,
        shared_columns: int = 32,
        seed: int | None = None,
    ) -> None:
        self.tracker = tracker
        self.n_neighbors = validate.integer(n_neighbors, "n_neighbors")
        self.window = window
        self.weighted = weighted
        self.max_features = max_features
        self.shared_columns = shared_columns
        self.seed = seed
        self.transformer = MetricTransformer(tracker, window, max_features, shared_columns, seed)
        self._classes: dict[Hashable, float] = {}  # no votes for any, in the order in which they came

    @property
    def _multiclass(self) -> bool:
        return True

    def learn_one(self, x: Named, y: Hashable) -> None:
        """Learn a point and its label."""
        self.transformer.learn_one(x, y)
        self._classes.setdefault(y, 0.0)

    def predict_proba_one(self, x: Named, **_: Any) -> dict[Hashable, float]:
        """The share of the votes of each label seen so far; of no label, before the first point."""
        metric, recent = self.transformer.metric, self.transformer._recent
        row = metric.columns.vector(checked(x, "x"))
        if not recent:
            return {}
        distances = metric.distances(row, np.array([point for point, _ in recent]))
        nearest = np.argsort(distances, kind="stable")[: self.n_neighbors]
        if self.weighted and math.isfinite(distances[nearest[0]]):
            d, shortest = distances[nearest], distances[nearest[0]]
            weights = np.where(d > 0.0, shortest / np.where(d > 0.0, d, 1.0), float(shortest == 0.0))
        else:
            weights = np.ones(len(nearest))
        votes: dict[Hashable, float] = {}
        for k, weight in zip(nearest.tolist(), (weights / weights.sum()).tolist(), strict=True):
            votes[recent[k][1]] = votes.get(recent[k][1], 0.0) + weight
        return self._classes | votes

    def predict_one(self, x: Named, **_: Any) -> Hashable:
        """The label with the most votes; None before the first point."""
        votes = self.predict_proba_one(x)
        return max(votes, key=votes.__getitem__, default=None)

    def distance_one(self, x: Named, z: Named) -> float:
        """The learned distance (not squared) of two points."""
        return self.transformer.distance_one(x, z)
