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
    Metric,
    MetricTracker,
    NuclearNorm,
    PairLoss,
    SquaredFrobenius,
    SquaredHinge,
    Unregularized,
    VonNeumann,
)
from .ocelad import Ocelad
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
    "FixedShare",
    "FollowTheRegularizedLeader",
    "Frobenius",
    "GradientDescent",
    "Hinge",
    "History",
    "LogDet",
    "Logistic",
    "Metric",
    "MetricTracker",
    "NuclearNorm",
    "Ocelad",
    "OceladWeights",
    "PairLoss",
    "Pool",
    "Restarted",
    "Rice",
    "RiverAlarm",
    "SaolWeights",
    "SquaredFrobenius",
    "SquaredHinge",
    "Union",
    "Unregularized",
    "VonNeumann",
    "on_intervals",
    "time_scale",
]
