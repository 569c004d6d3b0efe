"""What every batch method is to the outside: a scikit-learn estimator that has, once fitted, a metric.

Two doors, one for pairs and one for labelled points. Each fit works on a copy of the estimator, so that one that
is refused or interrupted leaves the metric that was there.
"""

from __future__ import annotations

import copy
import sys
import time
import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from ... import validation as validate
from ...geometry import Mahalanobis
from ...protocols import Array, Integers
from ...tracker import calibration, inputs
from ...tracker.vocabulary import MetricVocabulary, ThresholdVocabulary


class Fitted(MetricVocabulary):
    """A metric, learned once."""

    n_components: int | None
    n_features_in_: int
    _metric: Mahalanobis

    def __sklearn_is_fitted__(self) -> bool:
        return "_metric" in self.__dict__

    def _not_fitted(self) -> NotFittedError:
        return NotFittedError(f"This {type(self).__name__} has learned nothing yet: call fit first.")

    def get_metric(self) -> Mahalanobis:
        """The metric, as a function of two points (and ``squared=False``) that will not change."""
        if "_metric" not in self.__dict__:
            raise self._not_fitted()
        return self._metric

    @property
    def components_(self) -> Array:
        """The linear map of ``transform``, the most important direction first."""
        return self.get_metric().components

    def _become(self, new: Self, metric: Mahalanobis) -> Self:
        new._metric = metric
        self.__dict__.pop("feature_names_in_", None)
        self.__dict__.update(new.__dict__)
        return self


class FromPairs(ThresholdVocabulary, Fitted, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """The door for pairs of shape (m, 2, n) and labels +1 (similar) and -1 (different)."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array, tags.input_tags.two_d_array = True, False
        tags.classifier_tags.multi_class = False
        return tags

    def _opened(self, pairs: Any, y: Any, calibration_params: dict[str, Any] | None) -> tuple[Self, Array, Array]:
        """A copy that may be written to, the differences of the pairs, dense, and the labels."""
        calibration.check(**(calibration_params or {}))
        new = copy.copy(self)
        new.__dict__.pop("feature_names_in_", None)
        new._check_preprocessor()
        u = inputs.differences(pairs, type(self).__name__, new.preprocessor_)
        labels = validate.strict_labels(y, u.shape[0])
        if not u.shape[0]:
            raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required: pairs is empty")
        validate.n_components(self.n_components, u.shape[1])
        inputs.check_names(new, pairs, known=False)
        new.n_features_in_ = u.shape[1]
        return new, u.toarray() if sparse.issparse(u) else u, labels

    def _closed(
        self, new: Self, metric: Mahalanobis, u: Array, y: Array, calibration_params: dict[str, Any] | None
    ) -> Self:
        """The estimator with this metric and the threshold that is best for these pairs."""
        new._threshold = calibration.best_threshold(metric.distance(u), y, **(calibration_params or {}))
        return self._become(new, metric)


class FromLabels(Fitted, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """The door for points of shape (m, n) and their classes."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def _opened(self, X: Any, y: Any) -> tuple[Self, Array, Integers]:
        """A copy that may be written to, the points, and their classes by number."""
        new, X = self._opened_points(X)
        X, y = validate_data(new, X, y, dtype=np.float64, ensure_min_samples=2)
        check_classification_targets(y)
        validate.n_components(self.n_components, X.shape[1])
        classes, labels = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(f"y must hold at least two classes, got one class only: {classes[0]!r}")
        return new, X, labels

    def _opened_points(self, X: Any) -> tuple[Self, Any]:
        new = copy.copy(self)
        new.__dict__.pop("feature_names_in_", None)
        new._check_preprocessor()
        return new, X if new.preprocessor_ is None else inputs.points(X, type(self).__name__, new.preprocessor_)

    def transform(self, X: ArrayLike) -> Array:
        """Coordinates ``X @ components_.T`` in which the distance is Euclidean, the most important first."""
        check_is_fitted(self)
        rows = inputs.points(X, type(self).__name__, self._form())
        rows = validate_data(self, X if inputs.is_frame(X) else rows, dtype=np.float64, reset=False)
        return self.get_metric().transform(rows)

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)


def whole(value: Any, name: str) -> int:
    """A parameter that counts something."""
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} must be a whole number >= 1, got {value!r}")
    return int(value)


def unit_of(rows: Array) -> float:
    """A length to measure differences in, so that their squares neither overflow nor vanish."""
    return float(np.abs(rows).max(initial=0.0)) or 1.0


def certify(owner: object, gap: float, tol: float) -> None:
    """A warning if it is not known that the optimum has been reached."""
    if gap > tol:
        warnings.warn(
            f"{type(owner).__name__} stopped before its objective was known to be within tol={tol:g} of the "
            f"optimum, at {gap:.2g}: a larger max_iter may help",
            ConvergenceWarning,
            stacklevel=3,
        )


class Progress:
    """A line on stderr every two seconds, for those who want to know."""

    def __init__(self, owner: object, verbose: bool) -> None:
        self.name, self.verbose, self.last = type(owner).__name__, verbose, time.monotonic()

    def __call__(self, text: str) -> None:
        if self.verbose and time.monotonic() - self.last > 2.0:
            self.last = time.monotonic()
            print(f"{self.name}: {text}", file=sys.stderr)
