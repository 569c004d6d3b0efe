"""scikit-learn's own checks: all of them, on the front ends that take tables."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from ocelad import SupervisedMetricTracker
from rows import RowsOfPairs

ESTIMATORS = [SupervisedMetricTracker(), RowsOfPairs()]  # a pairs learner by itself gets but one check


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(ESTIMATORS)
def test_scikit_learns_checks(estimator, check):
    check(estimator)
