"""Distances, coordinates and decisions of a learned metric, under the names that metric-learn has for them.

Two mixins, as scikit-learn has them, which need nothing but ``get_metric()`` of a learner. Nothing here changes
what has been learned.
"""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score
from sklearn.utils.validation import validate_data

from .. import validation as validate
from ..dataframes import is_frame
from ..geometry.mahalanobis import Mahalanobis
from ..platt import Decision
from ..protocols import Array
from . import calibration, inputs
from .calibration import Strategy
from .preprocessor import read_preprocessor


class MetricVocabulary:
    """Distances and coordinates."""

    if TYPE_CHECKING:
        preprocessor: Any
        preprocessor_: Any

        def get_metric(self) -> Mahalanobis: ...

    @property
    def _wide(self) -> bool:
        """Whether rows are differences and their points, which nonlinear experts need."""
        return False

    def _check_preprocessor(self) -> None:
        self.preprocessor_ = read_preprocessor(self.preprocessor)

    def _prepare_inputs(self, X: Any, y: Any = None, type_of_inputs: str = "classic") -> Any:
        """Formed points or pairs, checked: subclasses in metric-learn's manner call it in their fit."""
        self._check_preprocessor()
        if type_of_inputs == "classic":
            rows = inputs.points(X, type(self).__name__, self.preprocessor_)
            return rows if y is None else (rows, np.asarray(y))
        pairs = np.stack(inputs.tuples(X, 2, type(self).__name__, self.preprocessor_), axis=1)
        return pairs if y is None else (pairs, validate.strict_labels(y, len(pairs)))

    def _form(self) -> Any:
        """The preprocessor in use."""
        try:
            return self.preprocessor_
        except AttributeError:
            raise self._not_fitted() from None

    def _features(self) -> Any:
        """What stands between points and learner, if anything does."""
        return None

    def _by_number(self, X: Any) -> bool:
        """Whether these points are rows of a table, which have its names."""
        return is_frame(self.preprocessor) and not is_frame(X) and np.ndim(X) == 1

    def _not_fitted(self) -> NotFittedError:
        return NotFittedError(
            f"This {type(self).__name__} has not learned from any comparison yet: call partial_fit or fit first, "
            "with at least one (an empty batch teaches nothing)."
        )

    def pair_distance(self, pairs: ArrayLike) -> Array:
        """The learned distance of each pair (not squared)."""
        return self._measured(pairs)[0]

    def _measured(self, pairs: Any) -> tuple[Array, Decision | None]:
        """Distances, and what their squares say, of the same metric."""
        u = self._differences(pairs)
        if type(pairs) is not np.ndarray:
            inputs.check_names(self, pairs, known=True)
        return self._measure(u)

    def _differences(self, pairs: Any) -> Any:
        return inputs.differences(pairs, type(self).__name__, self._form(), self._features())

    def _measure(self, u: Any) -> tuple[Array, Decision | None]:
        metric = self.get_metric()
        validate.same_width(u, metric.n, "pairs", 3 if self._wide else 1)
        return metric.distance(u), metric.decision

    def pair_score(self, pairs: ArrayLike) -> Array:
        """The higher, the more similar: minus the distance."""
        return -self.pair_distance(pairs)

    def score_pairs(self, pairs: ArrayLike) -> Array:
        """The old name of ``pair_distance``."""
        warnings.warn(
            "score_pairs will be deprecated in release 0.7.0. Use pair_score to compute similarity scores, or "
            "pair_distances to compute distances.",
            FutureWarning,
            stacklevel=2,
        )
        return self.pair_distance(pairs)

    def transform(self, X: ArrayLike) -> Array:
        """Coordinates ``X @ components_.T`` in which the distance is Euclidean, the most important first."""
        form, features = self._form(), self._features()
        rows = inputs.points(X, type(self).__name__, form, features)
        metric = self.get_metric()
        named = is_frame(X) or (hasattr(self, "feature_names_in_") and not self._by_number(X))
        if named and features is None:
            validate_data(self, X if is_frame(X) else rows, reset=False, skip_check_array=True)
        return metric.transform(validate.points(rows, metric.n, inputs.name_of_points(features)))

    def get_mahalanobis_matrix(self) -> Array:
        """The learned matrix, in the units of the features."""
        return self.get_metric().matrix


class ThresholdVocabulary(MetricVocabulary):
    """And whether two points are similar."""

    classes_ = np.array([-1, 1])
    _tuple_size = 2  # this and the next are asked for by code and tests written for metric-learn
    _validate_calibration_params = staticmethod(calibration.check)
    _threshold: float | None = None

    @property
    def threshold_(self) -> float:
        """The largest distance of similar points: the one that was set or calibrated since the latest comparison,
        else the tracked one. It is negative where no two points are similar."""
        threshold = self._threshold  # once: another thread may learn, and forget it
        if threshold is not None:
            return threshold
        decision = self.get_metric().decision
        if decision is None:
            raise _no_threshold()
        return _root(decision.even)

    def _judged(self, pairs: ArrayLike) -> tuple[Array, float, Decision]:
        """Distances, the threshold on them, and what their squares say, of the same metric."""
        limit, (distances, decision) = self._threshold, self._measured(pairs)
        if limit is not None:  # subclasses may have a score of their own
            distances = -self.decision_function(pairs)
        return distances, *_decided(decision, limit)

    def _judge(self, u: Any) -> tuple[Array, float, Array]:
        """Distances, the threshold on them, and log odds, of differences that have been checked."""
        limit, (distances, decision) = self._threshold, self._measure(u)
        threshold, decision = _decided(decision, limit)
        return distances, threshold, _log_odds(distances, decision)

    def decision_function(self, pairs: ArrayLike) -> Array:
        """The higher, the more similar: minus the distance."""
        return self.pair_score(pairs)

    def predict(self, pairs: ArrayLike) -> NDArray[np.int64]:
        """+1 for pairs that are similar now, -1 for the others."""
        d, limit, _ = self._judged(pairs)
        return np.where(d <= limit, 1, -1)

    @property
    def predict_proba(self) -> Any:
        """``predict_proba(pairs)``: the probabilities of "different" and "similar", of shape (m, 2).

        The second falls with the distance, and is one half at the threshold. A pool's is calibrated; of RICE alone
        it is 1 / (1 + exp(-(threshold^2 - d^2))), the model that `Logistic` fits, and with other losses a score
        between 0 and 1. It exists once something has been learned.
        """
        self._form()

        def predict_proba(pairs: ArrayLike) -> Array:  # scikit-learn's scorers look at this name
            distances, _, decision = self._judged(pairs)
            return probabilities(_log_odds(distances, decision))

        return predict_proba

    def score(self, pairs: ArrayLike, y: ArrayLike) -> float:
        """The area under the ROC curve of ``decision_function``: no threshold enters."""
        scores = self.decision_function(pairs)
        return float(roc_auc_score(validate.labels(y, len(scores)), scores))

    def set_threshold(self, threshold: float) -> Any:
        """Call pairs similar up to this distance, until the next comparison is learned."""
        self._form()
        try:
            limit = float(threshold)
        except (TypeError, ValueError):
            raise ValueError(
                f"Parameter threshold must be a real number. Got {type(threshold)} instead."
            ) from None
        if math.isnan(limit):
            raise ValueError("Parameter threshold must be a real number. Got nan instead.")
        self._threshold = limit
        return self

    def calibrate_threshold(
        self,
        pairs_valid: ArrayLike,
        y_valid: ArrayLike,
        strategy: Strategy = "accuracy",
        min_rate: float | None = None,
        beta: float = 1.0,
    ) -> Any:
        """Set the threshold that is best for these pairs.

        Parameters
        ----------
        pairs_valid, y_valid
            Labelled pairs, better not the ones that were learned from.
        strategy
            ``"accuracy"``; ``"f_beta"``, with ``beta``; ``"max_tpr"`` (or ``"max_tnr"``), the highest rate of
            similar (different) pairs found such that the other rate is at least ``min_rate``.
        """
        self._form()
        calibration.check(strategy, min_rate, beta)
        distances = -np.asarray(self.decision_function(pairs_valid))
        if not len(distances):
            raise ValueError("pairs_valid must hold at least one pair")
        y = validate.strict_labels(y_valid, len(distances))
        self._threshold = calibration.best_threshold(distances, y, strategy, min_rate, beta)
        return self


def probabilities(odds: Array) -> Array:
    """Of "different" and "similar", from log odds."""
    return np.stack([expit(-odds), expit(odds)], axis=1)


def _decided(decision: Decision | None, limit: float | None) -> tuple[float, Decision]:
    """The threshold on distances, set or tracked, and what squared distances say if that is the threshold."""
    if limit is not None:
        return limit, (decision or Decision(0.0)).at(limit * abs(limit))
    if decision is None:
        raise _no_threshold()
    return _root(decision.even), decision


def _log_odds(distances: Array, decision: Decision) -> Any:
    with np.errstate(over="ignore", invalid="ignore"):
        return decision.log_odds(distances * distances)


def _root(square: float) -> float:
    """The distance of a squared distance; a negative one stays negative."""
    return math.copysign(math.sqrt(abs(square)), square)


def _no_threshold() -> AttributeError:
    return AttributeError(
        "A threshold for this estimator has not been set, call its set_threshold or calibrate_threshold method."
    )
