"""A front end that turns rows of two points side by side into pairs, for all of scikit-learn's checks."""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets, unique_labels
from sklearn.utils.validation import check_is_fitted, validate_data

from ocelad import MetricTracker


class RowsOfPairs(ClassifierMixin, BaseEstimator):
    """The greater of two labels means similar. A missing last feature is 0: some checks have an odd number."""

    def __init__(self, pooled=True, features=None):
        self.pooled = pooled
        self.features = features

    def _new(self):
        return (MetricTracker() if self.pooled else MetricTracker.rice()).set_params(features=self.features)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.poor_score = True  # the checks' rows are not pairs of anything
        return tags

    @staticmethod
    def _pairs(X):
        return np.pad(X, ((0, 0), (0, X.shape[1] % 2))).reshape(len(X), 2, -1)

    def _signs(self, y):
        return np.where(y == self.classes_[-1], 1, -1)

    def fit(self, X, y):
        X, y = self._checked(X, y, reset=True)
        self.classes_ = unique_labels(y)
        self.tracker_ = self._new().fit(self._pairs(X), self._signs(y))
        return self

    def partial_fit(self, X, y, classes=None):
        first = not hasattr(self, "tracker_")
        X, y = self._checked(X, y, reset=first)
        if first:
            self.classes_, self.tracker_ = unique_labels(y if classes is None else classes), self._new()
        self.tracker_.partial_fit(self._pairs(X), self._signs(y), classes=[-1, 1])
        return self

    def _checked(self, X, y, reset):
        X, y = validate_data(self, X, y, dtype=np.float64, reset=reset)
        check_classification_targets(y)
        if len(np.unique(y)) > 2:
            raise ValueError("Only binary classification is supported. The type of the target is multiclass.")
        return X, y

    def _asked(self, method, X):
        check_is_fitted(self)
        return getattr(self.tracker_, method)(self._pairs(validate_data(self, X, dtype=np.float64, reset=False)))

    def decision_function(self, X):
        return self._asked("decision_function", X) + self.tracker_.threshold_

    def predict_proba(self, X):
        return self._asked("predict_proba", X)

    def predict(self, X):
        check_is_fitted(self)
        return self.classes_[(self._asked("predict", X) > 0).astype(int) * (len(self.classes_) - 1)]
