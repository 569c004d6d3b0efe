"""Algorithm 2 as scikit-learn estimators: `MetricTracker`, and `SupervisedMetricTracker` for labelled points."""

from .first_differences import FeatureScaleWarning
from .metric_tracker import MetricTracker
from .supervised import SupervisedMetricTracker

__all__ = ["FeatureScaleWarning", "MetricTracker", "SupervisedMetricTracker"]
