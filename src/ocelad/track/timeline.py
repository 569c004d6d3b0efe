"""The time line of a run: a row per ``every`` comparisons, with losses, weights, threshold and alarms."""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..engine import Trace
from ..protocols import Array
from ..tracker import MetricTracker
from ..watch.alarms import ChangeAlarm, Event
from ..watch.history import in_charge, time_scale
from ..watch.scores import Running

NUMBERS = (
    *("t", "loss", "error", "accuracy", "majority", "auc", "log_loss", "calibration_error"),
    *("time_scale", "threshold"),
)
COLUMNS = (*NUMBERS, "in_charge", "kinds", "lengths", "weights", "alarms")


class Row:
    """The row under way: sums since the row before, and alarms."""

    def __init__(self) -> None:
        self.alarm = ChangeAlarm()
        self._begin()

    def _begin(self) -> None:
        self.count, self.wrong, self.loss = 0, 0, 0.0
        self.events: list[Event] = []

    def add(self, trace: Trace, y: Any) -> list[Event]:
        """Take comparisons; what the alarm said to them."""
        said = []
        losses, costs = trace.loss.tolist(), trace.log_loss(np.asarray(y)).tolist()
        for k, (similar, label) in enumerate(zip(trace.similar.tolist(), y, strict=True)):
            wrong = similar != (label > 0)
            self.count, self.wrong, self.loss = self.count + 1, self.wrong + wrong, self.loss + losses[k]
            event = self.alarm.update(wrong, trace.after(k), None if math.isnan(costs[k]) else costs[k])
            if event is not None:
                said.append(event)
        self.events += said
        return said

    def finish(self, t: int, tracker: MetricTracker, running: Running) -> str:
        """The row at time t, and a new one."""
        experts, threshold = tracker.experts_, tracker.threshold_
        means = self.loss / self.count, self.wrong / self.count
        so_far = running.accuracy, running.majority, running.auc, running.log_loss, running.calibration_error
        numbers = *means, *so_far, time_scale(experts, t), threshold * abs(threshold)
        lists = [in_charge(experts), " ".join(experts["kind"].tolist())]
        lists += [" ".join(map(repr, experts[name].tolist())) for name in ("length", "weight")]
        alarms = " ".join(f"{e.kind}:{e.onset}:{e.t}:{e.strength!r}" for e in self.events)
        self._begin()
        return ",".join([str(t), *map(repr, numbers), *lists, alarms])

    def state(self) -> dict[str, Any]:
        events = [[event.t, event.kind, event.onset, event.strength] for event in self.events]
        sums = [self.count, self.wrong, self.loss]
        return {"alarm": self.alarm.state(), "sums": sums, "events": events}

    def restore(self, state: dict[str, Any]) -> None:
        self.alarm.restore(state["alarm"])
        self.count, self.wrong, self.loss = state["sums"]
        self.events = [Event(t, kind, onset, strength) for t, kind, onset, strength in state["events"]]


@dataclass(frozen=True, eq=False)
class TimeLine:
    """A time line as it was written: columns, and the weights of the experts (columns) at each time (rows)."""

    t: Array
    loss: Array
    error: Array
    accuracy: Array
    majority: Array
    auc: Array
    log_loss: Array
    calibration_error: Array
    time_scale: Array
    threshold: Array
    in_charge: tuple[str, ...]
    kinds: tuple[str, ...]
    lengths: Array
    weights: Array
    events: tuple[Event, ...]


def read_timeline(path: Path) -> TimeLine:
    """The time line that ``ocelad track`` wrote to a file."""
    with path.open(newline="", encoding="utf-8", errors="replace") as file:
        lines = csv.DictReader(file)
        if tuple(lines.fieldnames or ()) != COLUMNS:
            raise ValueError(f"{path}: it is not a time line: its columns must be {', '.join(COLUMNS)}")
        rows = list(lines)
    if not rows:
        raise ValueError(f"{path}: it has no rows yet")
    try:
        numbers = {name: np.array([float(row[name]) for row in rows]) for name in NUMBERS}
        kinds = tuple(rows[-1]["kinds"].split())
        lengths = np.array(rows[-1]["lengths"].split(), dtype=np.float64)
        weights = np.full((len(rows), len(lengths)), np.nan)
        for line, row in zip(weights, rows, strict=True):
            own = row["weights"].split()
            line[: len(own)] = [float(word) for word in own]
        events = tuple(_event(word) for row in rows for word in row["alarms"].split())
    except (ValueError, AttributeError, TypeError) as error:
        raise ValueError(f"{path}: it is damaged: {error}") from None
    in_charge = tuple(row["in_charge"] for row in rows)
    if len(kinds) != len(lengths):
        raise ValueError(f"{path}: it is damaged: it has {len(kinds)} kinds and {len(lengths)} lengths")
    return TimeLine(**numbers, in_charge=in_charge, kinds=kinds, lengths=lengths, weights=weights, events=events)


def _event(word: str) -> Event:
    kind, onset, t, strength = word.split(":")
    if kind not in ("jump", "drift"):
        raise ValueError(f"unknown alarm {kind!r}")
    return Event(int(t), kind, int(onset), float(strength))  # type: ignore[arg-type]
