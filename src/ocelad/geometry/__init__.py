"""Similarity functions and the mathematics that moves them: losses, regularizers, divergences, the COMID step."""

from .comid import Comid, Descent
from .divergences import Divergence, Frobenius, LogDet, VonNeumann
from .losses import Hinge, Logistic, MarginLoss, OrderLoss, PairLoss, SquaredHinge
from .mahalanobis import Mahalanobis
from .metric import Metric
from .regularizers import L1, NuclearNorm, Regularizer, SquaredFrobenius, Unregularized
from .steps import Step

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
    "NuclearNorm",
    "OrderLoss",
    "PairLoss",
    "Regularizer",
    "SquaredFrobenius",
    "SquaredHinge",
    "Step",
    "Unregularized",
    "VonNeumann",
]
