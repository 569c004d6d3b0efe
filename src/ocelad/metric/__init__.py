"""Algorithm 2: similarity functions, their losses, and the learners that track them."""

from .comid import Comid, Descent
from .divergences import Divergence, Frobenius, LogDet, VonNeumann
from .estimate import Metric
from .losses import Hinge, Logistic, MarginLoss, OrderLoss, PairLoss, SquaredHinge
from .mahalanobis import Mahalanobis
from .regularizers import L1, NuclearNorm, Regularizer, SquaredFrobenius, Unregularized
from .supervised import SupervisedMetricTracker
from .tracker import MetricTracker

__all__ = [
    "L1",
    "Comid",
    "Descent",
    "Divergence",
    "Frobenius",
    "Hinge",
    "LogDet",
    "Logistic",
    "Mahalanobis",
    "MarginLoss",
    "Metric",
    "MetricTracker",
    "NuclearNorm",
    "OrderLoss",
    "PairLoss",
    "Regularizer",
    "SquaredFrobenius",
    "SquaredHinge",
    "SupervisedMetricTracker",
    "Unregularized",
    "VonNeumann",
]
