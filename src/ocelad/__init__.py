"""Track a similarity function while it changes."""

from .alarms import ChangeAlarm, Event, RiverAlarm
from .ensemble import Pool, Restarted, Rice, Union
from .history import History, time_scale
from .learners import AdaGrad, FollowTheRegularizedLeader, GradientDescent, on_intervals
from .metric import (
    L1,
    Comid,
    Descent,
    Frobenius,
    Hinge,
    LogDet,
    Logistic,
    Mahalanobis,
    Metric,
    MetricTracker,
    NuclearNorm,
    OrderLoss,
    PairLoss,
    SquaredFrobenius,
    SquaredHinge,
    SupervisedMetricTracker,
    Unregularized,
    VonNeumann,
)
from .ocelad import Ocelad
from .state import FileError, load, save
from .weights import AdaNormalHedge, CoinBetting, FixedShare, OceladWeights, SaolWeights

__version__ = "0.1.0"

__all__ = [
    "L1",
    "AdaGrad",
    "AdaNormalHedge",
    "ChangeAlarm",
    "CoinBetting",
    "Comid",
    "Descent",
    "Event",
    "FileError",
    "FixedShare",
    "FollowTheRegularizedLeader",
    "Frobenius",
    "GradientDescent",
    "Hinge",
    "History",
    "LogDet",
    "Logistic",
    "Mahalanobis",
    "Metric",
    "MetricTracker",
    "NuclearNorm",
    "Ocelad",
    "OceladWeights",
    "OrderLoss",
    "PairLoss",
    "Pool",
    "Restarted",
    "Rice",
    "RiverAlarm",
    "SaolWeights",
    "SquaredFrobenius",
    "SquaredHinge",
    "SupervisedMetricTracker",
    "Union",
    "Unregularized",
    "VonNeumann",
    "load",
    "on_intervals",
    "save",
    "time_scale",
]
