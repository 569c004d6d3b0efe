"""Algorithm 2 as scikit-learn estimators: `MetricTracker`, and `SupervisedMetricTracker` for labelled points."""

from .metric_tracker import MetricTracker
from .supervised import SupervisedMetricTracker

__all__ = ["MetricTracker", "SupervisedMetricTracker"]
