"""scikit-learn's own checks: all of them, on the front ends that take tables."""

import numpy as np
import pytest
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import estimator_checks_generator

from ocelad import MetricTracker, SupervisedMetricTracker
from rows import RowsOfPairs

ESTIMATORS = [  # a pairs learner by itself gets but one check
    SupervisedMetricTracker(),
    RowsOfPairs(),
    SupervisedMetricTracker(MetricTracker.rice()),
    RowsOfPairs(pooled=False),
    SupervisedMetricTracker(MetricTracker(features=FunctionTransformer())),
    RowsOfPairs(features=np.asarray),
    SupervisedMetricTracker(MetricTracker(nonlinear=True)),
]
CHECKS = [pair for estimator in ESTIMATORS for pair in estimator_checks_generator(estimator)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("estimator", "check"), CHECKS, ids=[f"{type(each).__name__}-{check.func.__name__}" for each, check in CHECKS]
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)
