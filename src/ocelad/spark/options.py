"""What all trackers of a fleet on Spark have in common: a bucket has it once, for all of its keys."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from functools import cached_property
from reprlib import repr as short
from typing import Any

import numpy as np
from sklearn.base import clone

from .. import validation as validate
from ..fleet.saved import options_of
from ..state.container import Arrays
from ..state.contents import tracker_of
from ..state.header import fits, to_json
from ..state.options import read
from ..tracker import MetricTracker
from ..watch.alarms import ChangeAlarm

BUCKETS = 256
"""The number of buckets, unless another is given: 10,000 keys of 20 kB each are .8 MB a bucket."""


_ALARM = {"steps": float, "odds": float, "memory": int}
"""The parameters of a `ChangeAlarm`."""


@dataclass(frozen=True)
class FleetOptions:
    """Options of the trackers, their alarms, and the number of buckets that keys are divided among.

    Parameters
    ----------
    tracker
        What each tracker is like: only its options count. By default ``MetricTracker.rice()``, as in
        `KeyedTrackers`.
    alarm
        A `ChangeAlarm` of which each key gets a copy, or None.
    n_features
        The length of x and z. None: that of most rows, when a bucket begins.
    buckets
        How many; 0 where each key has a value of its own.

    Examples
    --------
    >>> options = FleetOptions(MetricTracker(memory=64), buckets=16)
    >>> FleetOptions.of({**options.entries, "n_features": 25}, {}).tracker
    MetricTracker(memory=64)
    """

    tracker: MetricTracker = field(default_factory=MetricTracker.rice)
    alarm: ChangeAlarm | None = None
    n_features: int | None = None
    buckets: int = 0

    def __post_init__(self) -> None:
        tracker = self.tracker
        if not isinstance(tracker, MetricTracker):
            raise ValueError(f"tracker must be a MetricTracker, got {tracker!r}")
        for name in ("preprocessor", "features", "ensemble"):
            if getattr(tracker, name) is not None:
                raise ValueError(f"tracker must have no {name}: columns x and z are what is learned from")
        if tracker.nonlinear:
            raise ValueError("tracker must not have nonlinear=True: trackers of keys are linear")
        if not (self.alarm is None or type(self.alarm) is ChangeAlarm):
            raise ValueError(f"alarm must be None or a ChangeAlarm, got {self.alarm!r}")
        if self.n_features is not None:
            validate.integer(self.n_features, "n_features")
        validate.integer(self.buckets, "buckets", least=0)
        object.__setattr__(self, "tracker", clone(tracker))
        options_of(self.tracker)  # refuses what could not be kept
        if self.n_features is not None:
            copy.copy(self.tracker)._begin(self.n_features)  # refuses what does not suit so many

    @classmethod
    def of(cls, entries: dict[str, Any], arrays: Arrays) -> FleetOptions:
        """Those that a bucket was learned with, by what it holds of them."""
        options, alarm = entries["options"], entries["alarm"]
        if not isinstance(options, dict) or not (alarm is None or fits(alarm, _ALARM)):
            raise ValueError("options must be those of a tracker, and alarm its parameters, or null")
        tracker = tracker_of(read(MetricTracker, to_json(options), arrays), None)
        made = None if alarm is None else ChangeAlarm(**alarm)
        return cls(tracker, made, entries["n_features"], entries["buckets"])

    @cached_property
    def entries(self) -> dict[str, Any]:
        """What a bucket holds of them, but for arrays and the number of features."""
        alarm = None if self.alarm is None else {name: getattr(self.alarm, name) for name in _ALARM}
        return {"options": options_of(self.tracker).entries, "alarm": alarm, "buckets": self.buckets}

    @property
    def arrays(self) -> Arrays:
        """Those among the options of the tracker."""
        return options_of(self.tracker).arrays

    def begun(self, n: int) -> MetricTracker:
        """A tracker of n features before its first comparison: it is to be copied."""
        made: dict[int, MetricTracker] = self.__dict__.setdefault("_begun", {})
        if n not in made:
            made[n] = copy.copy(self.tracker)._begin(n)
        return made[n]

    def check(self, entries: dict[str, Any], arrays: Arrays) -> None:
        """Whether a bucket was learned with these, by what it holds of its own."""
        same = all(
            to_json({"": entries[name]}) == to_json({"": self.entries[name]}) for name in ("options", "alarm")
        )
        if not same or any(
            name not in arrays or not np.array_equal(arrays[name], own) for name, own in self.arrays.items()
        ):
            raise ValueError(f"it was learned with other options than these{self._changed(entries)}")
        if entries["buckets"] != self.buckets:
            raise ValueError(
                f"it is of {entries['buckets']} buckets, and now there are {self.buckets}: keys would get lost; "
                "rebucket() divides them anew"
            )
        known = entries["n_features"]
        if None not in (self.n_features, known) and self.n_features != known:
            raise ValueError(f"its trackers have {known} features, and n_features is {self.n_features}")

    def _changed(self, entries: dict[str, Any]) -> str:
        """Which options are not as they were, but for matrices among them."""
        if not isinstance(entries["options"], dict):
            return ""
        then, now = ({**each["options"], "alarm": each["alarm"]} for each in (entries, self.entries))
        other = [name for name in sorted(now) if to_json({"": then.get(name)}) != to_json({"": now[name]})]
        words = [f"{name} was {short(then.get(name))} and is {short(now[name])}" for name in other]
        return f": {', '.join(words)}" if words else ""
