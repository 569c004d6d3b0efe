"""scikit-learn's own checks: all of them, on the front ends that take tables."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from ocelad import MetricTracker, SupervisedMetricTracker
from rows import RowsOfPairs
from streams import comparisons

ESTIMATORS = [SupervisedMetricTracker(), RowsOfPairs()]  # a pairs learner by itself gets but one check


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(ESTIMATORS)
def test_scikit_learns_checks(estimator, check):
    check(estimator)
