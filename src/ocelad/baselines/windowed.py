"""Sliding-window refits: any batch method as a tracker, fitted anew to the latest comparisons now and then."""

from __future__ import annotations

from typing import Any, Literal, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from .. import validation as validate
from ..protocols import Array
from ..tracker import inputs
from ..tracker.calibration import best_threshold
from .euclid import embedded_distance

Takes = Literal["pairs", "labelled points", "points"]


class Batch(Protocol):
    """What is asked of a batch method: metric-learn's pairs learners and scikit-learn's transformers have it."""

    def fit(self, X: Any, y: Any, /) -> Any: ...

    def transform(self, X: Any, /) -> Any: ...


class Windowed:
    """A batch method on a sliding window. Until its first fit, distances are Euclidean.

    Parameters
    ----------
    batch
        The method, of which a clone is fitted each time.
    window
        To how many of the latest comparisons.
    every
        After how many comparisons it is fitted again. A window in which all comparisons, or all labels, are alike
        is passed over.
    takes
        What it is fitted to: ``"pairs"`` of shape (m, 2, n) and y = +1 or -1; the ``"labelled points"`` of the
        pairs, whose labels ``partial_fit`` must be given; or the ``"points"`` alone.
    once
        Whether it stays as it was fitted first.

    Examples
    --------
    >>> from sklearn.decomposition import PCA
    >>> pairs = np.random.default_rng(0).normal(size=(100, 2, 3)) * [1.0, 9.0, 1.0]
    >>> tracker = Windowed(PCA(1), window=50, every=10, takes="points").partial_fit(pairs, [1, -1] * 50)
    >>> np.abs(tracker.transform([[0.0, 1.0, 0.0]]) - tracker.transform([[0.0, 0.0, 0.0]])).round(1)
    array([[1.]])
    """

    def __init__(
        self, batch: Batch, window: int = 500, every: int = 49, takes: Takes = "pairs", once: bool = False
    ) -> None:
        if takes not in ("pairs", "labelled points", "points"):
            raise ValueError(f"takes must be 'pairs', 'labelled points' or 'points', got {takes!r}")
        self.batch, self.takes, self.once = batch, takes, once
        self.window, self.every = validate.integer(window, "window"), validate.integer(every, "every")
        self.t = 0
        self.fitted: Any = None
        self.threshold_ = 1.0
        self._kept: tuple[Array, Array, Any] | None = None  # the latest pairs, y, and labels of the pairs' points

    def partial_fit(self, pairs: Any, y: ArrayLike, labels: ArrayLike | None = None) -> Self:
        """Learn comparisons in order.

        Parameters
        ----------
        pairs, y
            Of shape (m, 2, n), and +1 (similar) or -1 (different) for each.
        labels
            Of shape (m, 2): the classes of the points, for a method that takes labelled points.
        """
        sides = inputs.tuples(pairs, 2, type(self).__name__, None)
        if not all(isinstance(side, np.ndarray) for side in sides):
            raise ValueError("pairs must be dense for a batch method, got sparse points")
        X = np.stack(sides, axis=1)
        signs, classes = validate.labels(y, len(X)), self._labels(labels, len(X))
        if self._kept is not None:
            validate.same_width(X[:, 0], self._kept[0].shape[2], "pairs")
            X, signs, classes = (
                np.concatenate(both) for both in zip(self._kept, (X, signs, classes), strict=True)
            )
        t = self.t + len(sides[0])
        before = len(X) - t  # how far the arrays' numbering lags behind the clock's
        # Each fit depends on its window alone: of several that are due, only the last that can be made counts.
        dues = range(t // self.every * self.every, self.t, -self.every)
        if self.once:
            dues = dues[::-1] if self.fitted is None else dues[:0]
        for due in dues:
            part = slice(max(0, before + due - self.window), before + due)
            given, target = self._task(X[part], signs[part], classes[part])
            if target is None or len(np.unique(target)) > 1:
                model = clone(self.batch)
                model.fit(given, target)
                threshold = best_threshold(embedded_distance(model, X[part]), signs[part])
                self.fitted, self.threshold_ = model, threshold
                break
        self.t, self._kept = t, (X[-self.window :], signs[-self.window :], classes[-self.window :])
        return self

    def _labels(self, labels: Any, m: int) -> Any:
        if self.takes != "labelled points":
            return np.zeros((m, 2))
        if labels is None or np.shape(labels) != (m, 2):
            raise ValueError(f"labels must have shape ({m}, 2), the classes of each pair's points, got {labels!r}")
        return np.asarray(labels)

    def _task(self, pairs: Array, y: Array, classes: Any) -> tuple[Array, Any]:
        """What the method is fitted to."""
        if self.takes == "pairs":
            return pairs, y
        points = pairs.reshape(-1, pairs.shape[2])
        return points, classes.ravel() if self.takes == "labelled points" else None

    def transform(self, X: ArrayLike) -> Array:
        """Coordinates in which the distance is Euclidean."""
        given = np.atleast_1d(X)
        rows = validate.points(given, self._kept[0].shape[2] if self._kept else given.shape[-1])
        return np.array(rows) if self.fitted is None else np.asarray(self.fitted.transform(rows))

    def pair_distance(self, pairs: ArrayLike) -> Array:
        """The distance of each pair."""
        return embedded_distance(self, np.stack(inputs.tuples(pairs, 2, type(self).__name__, None), axis=1))

    def predict(self, pairs: ArrayLike) -> NDArray[np.int64]:
        """+1 up to the threshold that was best for the window at the latest fit, -1 beyond."""
        return np.where(self.pair_distance(pairs) <= self.threshold_, 1, -1)
