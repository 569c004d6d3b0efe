"""Track a similarity function while it changes."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .active import GroupQuestions, Queries
    from .closure import Closure
    from .ensemble import Pool, Restarted, Rice, Union
    from .fleet import KeyedTrackers
    from .geometry import (
        L1,
        Comid,
        Descent,
        Frobenius,
        Hinge,
        LogDet,
        Logistic,
        Mahalanobis,
        Metric,
        NuclearNorm,
        OrderLoss,
        PairLoss,
        SquaredFrobenius,
        SquaredHinge,
        Step,
        Unregularized,
        VonNeumann,
    )
    from .grouped_share import GroupedShare
    from .intervals import Intervals
    from .learners import AdaGrad, FollowTheRegularizedLeader, GradientDescent, on_intervals
    from .ocelad import Ocelad
    from .state import FileError, dumps, load, loads, save
    from .tracker import FeatureScaleWarning, MetricTracker, SupervisedMetricTracker
    from .watch.alarms import ChangeAlarm, Event, RiverAlarm
    from .watch.history import History, time_scale
    from .weights import AdaNormalHedge, CoinBetting, FixedShare, OceladWeights, SaolWeights
else:  # lazy imports: all take seconds, and ``ocelad --help`` needs none

    def __getattr__(name: str) -> Any:
        for room in _ROOMS if name in __all__ else ():
            found = import_module(f"{__name__}.{room}")
            if hasattr(found, name):
                globals()[name] = getattr(found, name)
                return globals()[name]
        if name in _ROOMS:
            return import_module(f"{__name__}.{name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__, *_ROOMS})


_ROOMS = (
    "intervals",
    "ensemble",
    "learners",
    "ocelad",
    "weights",
    "grouped_share",
    "geometry",
    "tracker",
    "watch.alarms",
    "watch.history",
    "state",
    "fleet",
    "closure",
    "active",
)

__version__ = "0.1.0"

__all__ = [
    "L1",
    "AdaGrad",
    "AdaNormalHedge",
    "ChangeAlarm",
    "Closure",
    "CoinBetting",
    "Comid",
    "Descent",
    "Event",
    "FeatureScaleWarning",
    "FileError",
    "FixedShare",
    "FollowTheRegularizedLeader",
    "Frobenius",
    "GradientDescent",
    "GroupQuestions",
    "GroupedShare",
    "Hinge",
    "History",
    "Intervals",
    "KeyedTrackers",
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
    "Queries",
    "Restarted",
    "Rice",
    "RiverAlarm",
    "SaolWeights",
    "SquaredFrobenius",
    "SquaredHinge",
    "Step",
    "SupervisedMetricTracker",
    "Union",
    "Unregularized",
    "VonNeumann",
    "dumps",
    "load",
    "loads",
    "on_intervals",
    "save",
    "time_scale",
]
