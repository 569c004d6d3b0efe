"""What all trackers of a fleet on Spark have in common, once; a bucket has but a digest of it."""

from __future__ import annotations

import copy
import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from sklearn.base import clone

from .. import validation as validate
from ..fleet.saved import options_of
from ..state.header import to_json
from ..tracker import MetricTracker
from ..watch.alarms import ChangeAlarm
from ..watch.saved import alarm_entry

BUCKETS = 256
"""The number of buckets, unless another is given: 10,000 keys of 20 kB each are .8 MB a bucket."""


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
    >>> FleetOptions().digest == FleetOptions(MetricTracker.rice()).digest != FleetOptions(MetricTracker()).digest
    True
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

    @cached_property
    def alarm_parameters(self) -> dict[str, Any]:
        entry = dict(alarm_entry(self.alarm) or {})
        entry.pop("state", None)
        return entry

    @cached_property
    def digest(self) -> str:
        """Trackers and alarms that have another were learned otherwise."""
        options = options_of(self.tracker)
        hashed = hashlib.sha256(options.text + to_json(self.alarm_parameters))
        for array in options.arrays.values():
            hashed.update(array.tobytes())
        return hashed.hexdigest()[:32]

    def begun(self, n: int) -> MetricTracker:
        """A tracker of n features before its first comparison: it is to be copied."""
        made: dict[int, MetricTracker] = self.__dict__.setdefault("_begun", {})
        if n not in made:
            made[n] = copy.copy(self.tracker)._begin(n)
        return made[n]

    def check(self, digest: Any, buckets: Any, n: Any) -> None:
        """Whether a bucket was learned with these."""
        if digest != self.digest:
            raise ValueError("it was learned with other options of the tracker, or of the alarm, than these")
        if buckets != self.buckets:
            raise ValueError(
                f"it is one of {buckets} buckets, and now there are {self.buckets}: keys would get lost"
            )
        if type(n) is not int or n < 1 or self.n_features not in (None, n):
            raise ValueError(f"its trackers have {n!r} features, and n_features is {self.n_features}")
