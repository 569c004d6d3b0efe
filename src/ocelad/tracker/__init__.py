"""Algorithm 2 behind scikit-learn's door: `MetricTracker`, and `SupervisedMetricTracker` for labelled points."""

from .metric_tracker import MetricTracker
from .supervised import SupervisedMetricTracker

__all__ = ["MetricTracker", "SupervisedMetricTracker"]
