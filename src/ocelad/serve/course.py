"""How well a stream was foreseen so far: scores, calibration, alarms and the learning curve, in bounded memory.

The curve has a block of answers per point; when there are too many blocks, neighbours are joined two by two. Its
trend is a power law,  error = c t^-b,  fitted to the logarithms by least squares since the last jump, or since
someone last said to judge differently.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Any

import numpy as np

from ..engine import Trace
from ..protocols import Array
from ..watch.alarms import ChangeAlarm, Event
from ..watch.scores import Running

RECENT = 50
"""Answers of which it is said how many were foreseen."""

BINS = 10
EVENTS = 20
POINTS = 120
"""Blocks of the curve at most."""

FIRST = 5
"""Answers per block, at first."""

LOOK = 8
"""Every so many comparisons the alarm is shown the experts, for drifts, which takes longer than all else."""

TARGET = 0.1
"""An error that is good enough."""

FARTHEST = 2000
"""Answers that nobody would give: a trend that needs more is none."""

FEW = 20
"""Answers of which too few were asked to call it good."""


class Course:
    """What became of the predictions, each made before its comparison was learned."""

    def __init__(self) -> None:
        self.running, self.alarm = Running(), ChangeAlarm()
        self.events: list[Event] = []
        self.labels = [0, 0]
        """How many were similar, and different."""
        self.changes: list[dict[str, Any]] = []
        """Who said, after how many comparisons, to judge differently, and in which entry."""
        self.recent: deque[int] = deque(maxlen=RECENT)
        self.bins = np.zeros((3, BINS))  # comparisons, sum of their probabilities, and how many were similar
        self.stride, self.blocks, self.open = FIRST, [], [0, 0]  # type: tuple[int, list[int], list[int]]

    def add(self, trace: Trace, y: Array) -> None:
        """Take comparisons: what was predicted, and what was said."""
        p, similar = trace.probability, y > 0
        self.labels = [self.labels[0] + int(similar.sum()), self.labels[1] + int((~similar).sum())]
        self.running.add(trace.squared_distance, trace.threshold, trace.loss, y, p)
        place = np.minimum((p * BINS).astype(np.int64), BINS - 1)
        for row, value in enumerate((np.ones(len(p)), p, similar)):
            np.add.at(self.bins[row], place, value)
        wrong = ((p >= 0.5) != similar).tolist()
        for k, (miss, cost) in enumerate(zip(wrong, trace.log_loss(y).tolist(), strict=True)):
            experts = trace.after(k) if (self.alarm.t + 1) % LOOK == 0 else None
            event = self.alarm.update(miss, experts, cost)
            if event is not None:
                self.events = [*self.events, event][-EVENTS:]
            self._count(miss)
        self.recent.extend(1 - miss for miss in wrong)

    def change(self, id: int, t: int, by: str | None) -> None:
        """Someone judges differently, after t comparisons."""
        self.changes = [*self.changes, {"id": id, "t": t, "by": by}][-EVENTS:]

    def _count(self, miss: bool) -> None:
        self.open = [self.open[0] + 1, self.open[1] + miss]
        if self.open[0] == self.stride:
            self.blocks.append(self.open[1])
            self.open = [0, 0]
            if len(self.blocks) > POINTS:
                joined = [a + b for a, b in zip(self.blocks[::2], self.blocks[1::2], strict=False)]
                if len(self.blocks) % 2:
                    self.open = [self.stride, self.blocks[-1]]
                self.stride, self.blocks = 2 * self.stride, joined

    # What is shown

    def summary(self) -> dict[str, Any]:
        """The parts of a state that are about predictions."""
        running = self.running
        names = ("accuracy", "majority", "auc", "log_loss", "calibration_error")
        counts, sums, similar = self.bins.tolist()
        return {
            "foreseen": {"share": _ratio(sum(self.recent), len(self.recent)), "of": len(self.recent)},
            "scores": {name: _known(getattr(running, name)) for name in names},
            "calibration": [
                {"probability": total / count, "similar": hits / count, "count": int(count)}
                for count, total, hits in zip(counts, sums, similar, strict=True)
                if count
            ],
            "curve": self.curve(),
            "changes": [{**change} for change in self.changes],
            "alarms": [{"t": event.t, "kind": event.kind, "onset": event.onset} for event in self.events],
        }

    def curve(self) -> dict[str, Any]:
        """The learning curve, its trend, and how many answers it may still take."""
        times = [self.stride * (k + 1) for k in range(len(self.blocks))]
        errors = [missed / self.stride for missed in self.blocks]
        jumps = [event.onset for event in self.events if event.kind == "jump"]
        since = max([*jumps, *(change["t"] for change in self.changes)], default=0)
        later = [k for k, t in enumerate(times) if t - self.stride >= since]
        known: dict[str, Any] = {"t": times, "error": errors, "trend": [None] * len(times), "target": TARGET}
        if len(self.recent) >= FEW and sum(self.recent) >= (1 - TARGET) * len(self.recent):
            words, more = "good: 9 in 10 answers are foreseen", 0
        else:
            words, more = "too early for a trend", None
        if len(later) >= 4:
            middle = np.log([times[k] - since - self.stride / 2 for k in later])
            level = np.log([(self.blocks[k] + 0.5) / (self.stride + 1) for k in later])
            slope, height = np.polyfit(middle, level, 1)
            for k, x in zip(later, middle, strict=True):
                known["trend"][k] = min(1.0, math.exp(height + slope * x))
            if more is None:
                words = "no end in sight yet: the trend is flat"
                exponent = (math.log(TARGET) - height) / slope if slope < -0.02 else math.inf
                if exponent < math.log(FARTHEST):
                    more = max(1, math.ceil(math.exp(exponent) + since - self.alarm.t))
                    answers = "answer" if more == 1 else "answers"
                    words = f"about {more} more {answers} until 9 in 10 are foreseen, if the trend holds"
        return {**known, "more": more, "words": words}

    # Saving

    def state(self) -> dict[str, Any]:
        """As JSON values, for another one to ``restore``."""
        return {
            "running": self.running.state(),
            "alarm": self.alarm.state(),
            "labels": self.labels,
            "changes": self.changes,
            "events": [[event.t, event.kind, event.onset, event.strength] for event in self.events],
            "recent": list(self.recent),
            "bins": self.bins.tolist(),
            "curve": [self.stride, self.blocks, self.open],
        }

    def restore(self, state: dict[str, Any]) -> None:
        self.running.restore(state["running"])
        self.alarm.restore(state["alarm"])
        self.events = [Event(*event) for event in state["events"]]
        self.labels, self.changes = state["labels"], state["changes"]
        self.recent.extend(state["recent"])
        self.bins[:] = state["bins"]
        self.stride, self.blocks, self.open = state["curve"]


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def _known(number: float) -> float | None:
    return number if math.isfinite(number) else None
