"""A front end for points with class labels: a stream of them becomes a stream of comparisons."""

from __future__ import annotations

import copy
import re
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from .. import validation as validate
from ..dataframes import is_frame
from ..geometry.mahalanobis import Mahalanobis
from ..pair_sampling import Strategy, check, partners
from ..protocols import Array, Integers
from . import inputs
from .class_labels import check_class_labels
from .lock import Locked, locked
from .metric_tracker import MetricTracker
from .preprocessor import read_preprocessor
from .vocabulary import MetricVocabulary


class SupervisedMetricTracker(
    MetricVocabulary,
    Locked,
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """Track the metric behind class labels, from a stream of labelled points.

    Each point is compared with recent ones: points of one class are similar, points of two are different.

    Parameters
    ----------
    tracker
        The `MetricTracker` to learn with, of which a copy is made; None for the recommended one. If it has
        ``features``, points may be anything that these take; each point is put through them once.
    strategy
        With which recent points: ``"balanced"`` between the same class and others, ``"random"``, or
        ``"consecutive"``, the points just before, for streams whose order does not tell the class.
    memory
        How many recent points are kept.
    pairs_per_point
        How many comparisons each point takes part in on arrival.
    n_components
        How many dimensions to keep, the most important; None leaves that to ``tracker``.
    preprocessor
        Turns indicators into points: an array whose rows they number, or a function.
    random_state
        For the strategies that draw at random.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> X, y = load_iris(return_X_y=True)
    >>> X = np.hstack([X, np.random.default_rng(0).normal(size=(150, 10))])  # most features say nothing
    >>> nearest = make_pipeline(SupervisedMetricTracker(random_state=0), KNeighborsClassifier())
    >>> bool(cross_val_score(nearest, X, y).mean() > cross_val_score(KNeighborsClassifier(), X, y).mean())
    True
    """

    n_features_in_: int
    tracker_: MetricTracker
    _recent: tuple[Any, Any]
    _random: np.random.RandomState
    _number: int

    def __init__(
        self,
        tracker: MetricTracker | None = None,
        *,
        strategy: Strategy = "balanced",
        memory: int = 128,
        pairs_per_point: int = 2,
        n_components: int | None = None,
        preprocessor: Any = None,
        random_state: Any = None,
    ) -> None:
        self.tracker = tracker
        self.strategy = strategy
        self.memory = memory
        self.pairs_per_point = pairs_per_point
        self.n_components = n_components
        self.preprocessor = preprocessor
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = self.tracker is None or not self.tracker.nonlinear
        return tags

    def __copy__(self) -> Self:
        """An independent copy."""
        with self._lock:
            other = self._shallow_copy()
            other.__dict__.pop("_own_lock")
            if "tracker_" in self.__dict__:
                other.tracker_, other._random = copy.copy(self.tracker_), copy.deepcopy(self._random)
        return other

    @locked
    def __getstate__(self) -> dict[str, Any]:
        """Of one moment: it is pickled, or copied, when another thread may learn again."""
        state = super().__getstate__()
        if "tracker_" in state:
            changing = ("tracker_", "_random", "random_state")  # the last two may be one
            state |= copy.deepcopy({name: state[name] for name in changing})
        return state

    def _shallow_copy(self) -> Self:
        """A copy that shares the tracker."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        return other

    def set_params(self, **params: Any) -> Self:
        """Set options, those of ``tracker`` by ``tracker__step`` and so on."""
        inner = [name for name in params if name.startswith("tracker__")]
        if inner and params.get("tracker", self.tracker) is None:
            raise ValueError(
                f"{inner[0]}: tracker is None. Give SupervisedMetricTracker(MetricTracker()) to set options of "
                "its tracker"
            )
        return super().set_params(**params)

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Forget everything, and learn these points in order."""
        return self._learn(X, y, reset=True, at_least=2)

    def partial_fit(self, X: ArrayLike, y: ArrayLike, classes: ArrayLike | None = None) -> Self:
        """Learn points in order, each compared with those that came before it, also in earlier calls.

        ``classes`` may be given, as to scikit-learn's classifiers, and is not needed: classes come and go.
        """
        with self._lock:
            return self._learn(X, y, reset=not hasattr(self, "tracker_"), at_least=1, classes=classes)

    @locked
    def _learn(self, X: Any, y: Any, reset: bool, at_least: int, classes: Any = None) -> Self:
        check_class_labels(y, None if reset else self._recent[1])
        if classes is not None and not np.isin(np.unique(np.asarray(y)), np.asarray(classes)).all():
            raise ValueError(f"y must hold only labels in classes={classes!r}")
        strategy, memory, count = check(self.strategy), self._count("memory"), self._count("pairs_per_point")
        form = read_preprocessor(self.preprocessor) if reset else self.preprocessor_
        new = self._shallow_copy()  # so that what is refused leaves no trace
        if reset:
            new.tracker_ = self._new_tracker()
            random = self._random_state()
        features = new._features()
        by_number = features is None and self._by_number(X)
        if form is not None or features is not None:
            X = inputs.points(X, type(self).__name__, form, features)
        inputs.check_columns(X)
        names = new.__dict__.pop("feature_names_in_", None) if by_number else None
        X, y = _validated(new, X, y, reset=reset, ensure_min_samples=at_least)
        if by_number:  # rows of a table have its names
            names = inputs.names_of(self.preprocessor) if reset else {"feature_names_in_": names}
            new.__dict__.update({name: each for name, each in names.items() if each is not None})
        check_classification_targets(y)
        if reset and at_least > 1 and len(found := np.unique(y)) < 2:
            raise ValueError(f"y must hold at least two classes, got one class only: {found.tolist()[0]!r}")
        validate.n_components(self.n_components, X.shape[1])
        if reset:
            if self.n_components is not None:
                new.tracker_.set_params(n_components=self.n_components)
            new.tracker_._names = new.__dict__.get("feature_names_in_")
            new.preprocessor_, new._random, new._number = form, random, 0
            points, labels, seen = X, y, 0
        else:
            before, before_y = self._recent
            points, labels, seen = _joined(before, X), np.concatenate([before_y, y]), len(before_y)
        drawn = new._random.get_state()
        try:
            left, right = partners(labels, seen, strategy, memory, count, new._random, new._number)
            similar = np.where(labels[left] == labels[right], 1, -1)
            new.tracker_._fit_pairs(_pairs(points, left, right), similar, made=True)
        except BaseException:
            new._random.set_state(drawn)
            raise
        new._recent, new._number = (points[-memory:], labels[-memory:]), new._number + len(y)
        if reset:
            self.__dict__.pop("feature_names_in_", None)
        self.__dict__.update(new.__dict__)
        return self

    def _new_tracker(self) -> MetricTracker:
        if self.tracker is None:
            return MetricTracker()
        if isinstance(self.tracker, type) or not hasattr(self.tracker, "_fit_pairs"):
            raise ValueError(f"tracker must be None or a MetricTracker, an instance, got {self.tracker!r}")
        return clone(self.tracker)

    def _random_state(self) -> np.random.RandomState:
        try:
            return check_random_state(self.random_state)
        except ValueError:
            expected = "None, an integer from 0 to 2^32 - 1 or a RandomState"
            raise ValueError(f"random_state must be {expected}, got {self.random_state!r}") from None

    def _count(self, name: str) -> int:
        return validate.integer(getattr(self, name), name)

    def transform(self, X: ArrayLike) -> Array:
        """Coordinates ``X @ components_.T`` in which the distance is Euclidean, the most important first."""
        form, features = self._form(), self._features()
        rows = inputs.points(X, type(self).__name__, form, features)
        named = is_frame(X) and features is None
        checked = self
        if self._by_number(X):
            checked = self._shallow_copy()
            checked.__dict__.pop("feature_names_in_", None)
        rows = _validated(checked, X if named else rows, reset=False)
        return self.get_metric().transform(rows)

    def _features(self) -> Any:
        return self.tracker_._features() if "tracker_" in self.__dict__ else None

    @property
    def _wide(self) -> bool:
        return "tracker_" in self.__dict__ and self.tracker_._wide

    def _differences(self, pairs: Any) -> Any:
        x, z = inputs.tuples(pairs, 2, type(self).__name__, self._form(), self._features())
        return self.tracker_._row(x, z, "pairs")

    def get_metric(self) -> Mahalanobis:
        """The metric as it is now, as a function of two points (and ``squared=False``) that will not change."""
        check_is_fitted(self, "tracker_")
        try:
            return self.tracker_.get_metric()
        except NotFittedError:
            raise self._not_fitted() from None

    def _not_fitted(self) -> NotFittedError:
        return NotFittedError(
            f"This {type(self).__name__} has not learned from any comparison yet: call partial_fit or fit first, "
            "with at least two points (each is compared with those before it)."
        )

    @property
    def components_(self) -> Array:
        """The linear map of ``transform``. Setting it starts anew from that metric."""
        return self.get_metric().components

    @components_.setter
    @locked
    def components_(self, L: ArrayLike) -> None:
        check_is_fitted(self, "tracker_")
        self.tracker_.components_ = L
        n = self.tracker_.get_metric().n
        if n != self.n_features_in_:  # a metric on other features: the points kept say nothing about it
            self.n_features_in_, self._recent = n, (np.zeros((0, n)), self._recent[1][:0])
            self.__dict__.pop("feature_names_in_", None)

    @property
    def n_seen_(self) -> int:
        """How many comparisons of points have been learned, ``pairs_per_point`` or fewer for each point."""
        return self.tracker_.n_seen_ if "tracker_" in self.__dict__ else 0

    @property
    def _n_features_out(self) -> int:
        return self.get_metric().dimensions


def _validated(estimator: Any, *given: Any, **options: Any) -> Any:
    """scikit-learn's checks of points, and of labels if there are any; of an array also where it is not finite."""
    try:
        return validate_data(estimator, *given, dtype=np.float64, accept_sparse="csr", **options)
    except ValueError as error:
        problem = re.match("Input X contains (NaN|infinity)", str(error))
        if problem is None or sparse.issparse(given[0]):
            raise
        wrong = ~np.isfinite(np.asarray(given[0], dtype=np.float64))
        raise ValueError(f"{problem[0]} at index {validate.first(wrong)}: row, column") from None


def _joined(before: Any, after: Any) -> Any:
    if sparse.issparse(before) or sparse.issparse(after):
        return sparse.vstack([before, after]).tocsr()
    return np.concatenate([before, after])


def _pairs(points: Any, left: Integers, right: Integers) -> Any:
    if sparse.issparse(points):
        return points[left], points[right]
    return np.stack([points[left], points[right]], axis=1)
