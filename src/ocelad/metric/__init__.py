"""Algorithm 2: similarity functions, their losses, and the learners that track them."""

from .comid import Comid, Descent
from .divergences import Divergence, Frobenius, LogDet, VonNeumann
from .estimate import Metric
from .losses import Hinge, Logistic, MarginLoss, PairLoss, SquaredHinge
from .regularizers import L1, NuclearNorm, Regularizer, SquaredFrobenius, Unregularized
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
    "MarginLoss",
    "Metric",
    "MetricTracker",
    "NuclearNorm",
    "PairLoss",
    "Regularizer",
    "SquaredFrobenius",
    "SquaredHinge",
    "Unregularized",
    "VonNeumann",
]
