"""What every batch method is to the outside: a scikit-learn estimator that has, once fitted, a metric.

Two doors, one for pairs and one for labelled points. Each fit works on a copy of the estimator, so that one that
is refused or interrupted leaves the metric that was there. A method is a dataclass of its options, and ``_learn``.
"""

from __future__ import annotations

import copy
import sys
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from ... import validation as validate
from ...dataframes import is_frame
from ...geometry import Mahalanobis
from ...protocols import Array, Integers
from ...tracker import calibration, inputs
from ...tracker.vocabulary import MetricVocabulary, ThresholdVocabulary


class Fitted(MetricVocabulary):
    """A metric, learned once."""

    n_components: int | None
    n_features_in_: int
    n_iter_: int
    gap_: float
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

    def _copy(self) -> Self:
        """One that may be written to."""
        new = copy.copy(self)
        new.__dict__.pop("feature_names_in_", None)
        new._check_preprocessor()
        return new

    def _become(self, new: Self, metric: Mahalanobis) -> Self:
        new._metric = metric
        self.__dict__.pop("feature_names_in_", None)
        self.__dict__.update(new.__dict__)
        return self


class FromPairs(ThresholdVocabulary, Fitted, ClassifierMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """The door for pairs of shape (m, 2, n) and labels +1 (similar) and -1 (different)."""

    objective_: float

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array, tags.input_tags.two_d_array = True, False
        tags.classifier_tags.multi_class = False
        return tags

    def fit(self, pairs: Any, y: ArrayLike, calibration_params: dict[str, Any] | None = None) -> Self:
        """Learn from these pairs, and calibrate the threshold on them.

        Parameters
        ----------
        pairs
            Of shape (m, 2, n); or (m, 2) indicators, with a preprocessor; or two matrices of shape (m, n).
        y
            Of shape (m,), +1 or True for similar and -1 or False for different; 0 for -1 is taken with a warning.
        calibration_params
            What to pass on to ``calibrate_threshold``.
        """
        calibration.check(**(calibration_params or {}))
        new = self._copy()
        u = inputs.differences(pairs, type(self).__name__, new.preprocessor_)
        labels = validate.strict_labels(y, u.shape[0])
        if not u.shape[0]:
            raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required: pairs is empty")
        validate.n_components(self.n_components, u.shape[1])
        inputs.check_names(new, pairs, known=False)
        new.n_features_in_ = u.shape[1]
        u = u.toarray() if sparse.issparse(u) else u
        metric = new._learn(u, labels)
        new._threshold = calibration.best_threshold(metric.distance(u), labels, **(calibration_params or {}))
        return self._become(new, metric)

    @abstractmethod
    def _learn(self, u: Array, y: Array) -> Mahalanobis:
        """The metric of these differences and labels."""


class FromLabels(Fitted, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """The door for points of shape (m, n) and their classes."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Learn from points of shape (m, n) and their classes."""
        new = self._copy()
        X, y = validate_data(new, new._formed(X), y, dtype=np.float64, ensure_min_samples=2)
        check_classification_targets(y)
        validate.n_components(self.n_components, X.shape[1])
        classes, labels = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(f"y must hold at least two classes, got one class only: {classes[0]!r}")
        return self._become(new, new._learn(X, labels))

    def _formed(self, X: Any) -> Any:
        form = self.preprocessor_
        inputs.check_columns(X)
        return X if form is None else inputs.points(X, type(self).__name__, form)

    @abstractmethod
    def _learn(self, X: Array, labels: Integers) -> Mahalanobis:
        """The metric of these points, and of their classes by number."""

    def transform(self, X: ArrayLike) -> Array:
        """Coordinates ``X @ components_.T`` in which the distance is Euclidean, the most important first."""
        check_is_fitted(self)
        rows = inputs.points(X, type(self).__name__, self._form())
        rows = validate_data(self, X if is_frame(X) else rows, dtype=np.float64, reset=False)
        return self.get_metric().transform(rows)

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)


def unit_of(rows: Array) -> float:
    """A length to measure differences in, so that their squares neither overflow nor vanish."""
    return float(np.abs(rows).max(initial=0.0)) or 1.0


@dataclass(eq=False, repr=False)
class Solved:
    """The options of a method that is solved in rounds, to a known accuracy."""

    _: KW_ONLY
    max_iter: int = 100
    tol: float = 1e-3
    n_components: int | None = None
    preprocessor: Any = None
    verbose: bool = False


class Rounds:
    """The numbers of at most ``max_iter`` rounds, until the optimum is known to be within ``tol``."""

    def __init__(self, owner: Any) -> None:
        self.name, self.verbose, self.last = type(owner).__name__, owner.verbose, time.monotonic()
        self.max_iter = validate.integer(owner.max_iter, "max_iter")
        self.tol = validate.number(owner.tol, "tol", positive=True)

    def __iter__(self) -> Iterator[int]:
        return iter(range(1, self.max_iter + 1))

    def reached(self, gap: float, text: str) -> bool:
        """Whether that will do; a line on stderr every two seconds, for those who want to know."""
        if self.verbose and time.monotonic() - self.last > 2.0:
            self.last = time.monotonic()
            print(f"{self.name}: {text}, tol {self.tol:g}", file=sys.stderr)
        return gap <= self.tol

    def certify(self, gap: float) -> None:
        """A warning if it is not known that the optimum has been reached."""
        if gap > self.tol:
            warnings.warn(
                f"{self.name} stopped before its objective was known to be within tol={self.tol:g} of the "
                f"optimum, at {gap:.2g}: a larger max_iter may help",
                ConvergenceWarning,
                stacklevel=4,
            )
