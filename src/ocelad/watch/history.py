"""The history of a tracker: a bounded record of losses, weights, time-scale, movement and threshold.

    time-scale = exp(sum_j p_j log min(length_j, t)),       movement = |M_t - M_{t - every}| (Frobenius).

Every ``every`` comparisons the tracker is looked at. A row of the record holds the state at its time, and means
over all looks since the row before. When the record is full, neighbouring rows are joined two by two: it always
covers the whole course, at a resolution that halves, in bounded memory.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from operator import attrgetter
from typing import Any

import numpy as np

from .. import validation as validate
from ..engine import Engine, Trace
from ..geometry.quadratic import frobenius_distance
from ..protocols import Array, snapshot
from ..tracker import MetricTracker
from ..tracker.lock import locked
from .alarms import Alarm, ChangeAlarm, Event, RiverAlarm

Outcome = tuple[int, float, bool]

RECORD = np.dtype(
    [("t", np.int64)] + [(name, np.float64) for name in ("loss", "error", "movement", "time_scale", "threshold")]
)


def time_scale(experts: Any, t: float = np.inf) -> float:
    """The effective memory: the geometric mean of the experts' lengths, by weight.

    One that never restarts remembers all of the ``t`` comparisons so far.

    >>> experts = np.array([(8, 0.5), (128, 0.5)], dtype=[("length", float), ("weight", float)])
    >>> round(time_scale(experts), 6)
    32.0
    """
    memory = np.minimum(experts["length"], max(t, 1.0))
    return float(np.exp(experts["weight"] @ np.log(memory)))


def weights_by_name(kinds: Sequence[str], lengths: Array, weights: Array) -> dict[str, Array]:
    """The weights over time of each kind and length, by names such as "rice 64"; those of the same name are
    summed, in the order of kinds as they come and of lengths.

    >>> weights = np.array([[0.25, 0.25, 0.5]])
    >>> weights_by_name(["replay", "replay", "euclid"], np.array([32.0, 32.0, np.inf]), weights)
    {'replay 32': array([0.5]), 'euclid': array([0.5])}
    """
    order = sorted(range(len(lengths)), key=lambda j: (list(kinds).index(kinds[j]), lengths[j]))
    named: dict[str, Array] = {}
    for j in order:
        name = expert_name(kinds[j], lengths[j])
        named[name] = weights[:, j] if name not in named else named[name] + weights[:, j]
    return named


def expert_name(kind: str, length: float) -> str:
    """What an expert is, and how long its memory.

    >>> expert_name("rice", 64.0), expert_name("rice", np.inf), expert_name("euclid", np.inf)
    ('rice 64', 'rice endless', 'euclid')
    """
    return kind if kind == "euclid" else f"{kind} endless" if math.isinf(length) else f"{kind} {length:g}"


def in_charge(experts: Any) -> str:
    """The kind and length of the expert that has most weight; those of the same kind and length count together."""
    weights = weights_by_name(experts["kind"].tolist(), experts["length"], experts["weight"][None])
    return max(weights, key=lambda name: float(weights[name][0]))


@dataclass(frozen=True, eq=False)
class _Row:
    """Sums over comparisons and looks since the row before, and the state at time t."""

    t: int
    judged: int
    loss: float
    wrong: float
    looks: int
    moved: float
    time_scale: float
    threshold: float
    weights: Array
    relevance: Array

    def joined(self, later: _Row) -> _Row:
        summed = ("judged", "loss", "wrong", "looks", "moved")
        return replace(later, **{name: getattr(self, name) + getattr(later, name) for name in summed})


class History:
    """Record the course of a tracker from now on.

    The tracker learns exactly what it would learn without; a batch is learned in pieces of ``every``, and what is
    recorded does not depend on how the stream is cut into batches. ``fit`` begins a new record.

    Parameters
    ----------
    tracker
        The `MetricTracker` to watch. `stop` ends it.
    every
        How often to look at the tracker. Each comparison is judged by the metric just before it.
    capacity
        The largest number of rows to keep; each holds a number per level and feature.
    alarm
        Feed each comparison's outcome to a copy of this alarm, say `ChangeAlarm`; ``events`` has what it reported
        (the latest ``capacity`` of it).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> pairs = rng.normal(size=(400, 2, 3))
    >>> y = np.where(np.abs(pairs[:, 0, 0] - pairs[:, 1, 0]) < 1, 1, -1)  # only the first feature matters
    >>> tracker = MetricTracker()
    >>> history = History(tracker, every=100)
    >>> _ = tracker.partial_fit(pairs, y)
    >>> history.records["t"].tolist()
    [100, 200, 300, 400]
    >>> bool(history.records["loss"][-1] < history.records["loss"][0])
    True
    >>> history.relevance[-1].argmax().item()
    0
    """

    def __init__(
        self, tracker: MetricTracker, *, every: int = 1, capacity: int = 1024, alarm: Alarm | None = None
    ) -> None:
        if not isinstance(tracker, MetricTracker):
            raise ValueError(f"tracker must be a MetricTracker, got {tracker!r}")
        if tracker._history is not None:
            raise ValueError("tracker already has a history: stop() that one first")
        if not (alarm is None or (callable(getattr(alarm, "update", None)) and not isinstance(alarm, type))):
            raise ValueError(f"alarm must be None or an alarm such as ChangeAlarm(), got {alarm!r}")
        self.tracker = tracker
        self.every = validate.integer(every, "every")
        self.capacity = validate.integer(capacity, "capacity", least=2)
        self._new_alarm = copy.deepcopy(alarm)
        self._engine: Engine | None = None
        self._t = 0
        self.clear()
        tracker._history = self

    @property
    def _lock(self) -> Any:
        """The tracker's: who learns writes the record."""
        return self.tracker._lock

    @locked
    def clear(self) -> None:
        """Forget everything recorded so far."""
        self.alarm: Alarm | None = copy.deepcopy(self._new_alarm)
        self.events: list[Event] = []
        self.stride = self.every  # comparisons per row, at present
        self._rows: list[_Row] = []
        self._pending: _Row | None = None
        # t, loss and error of each pair since the last look
        self._outcomes: list[Outcome] = []
        self.lengths: Array = snapshot([])
        """The memory of each expert, at the last look."""
        self.kinds: tuple[str, ...] = ()
        """And what it is, "replay", "euclid", "rice" or "kernel"."""

    @locked
    def __copy__(self) -> History:
        """The record as it is now, which the tracker does not write to."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__, _rows=list(self._rows), _outcomes=list(self._outcomes))
        other.alarm = copy.deepcopy(self.alarm)
        return other

    def __reduce_ex__(self, protocol: Any) -> Any:
        """It is pickled with its tracker, which sees to it that both are of one moment."""
        if self.tracker._history is self:
            return attrgetter("_history"), (self.tracker,)
        return super().__reduce_ex__(protocol)

    def anew(self) -> History:
        """An empty record like this one, for a course that may yet fail."""
        other = copy.copy(self)
        other.clear()
        return other

    def replaced(self, other: History) -> History:
        """This one, with the record of the other."""
        self.__dict__.update(other.__dict__)
        return self

    def stop(self) -> History:
        """Leave the tracker alone, and keep the record."""
        if self.tracker._history is self:
            self.tracker._history = None
        return self

    def pieces(self, engine: Engine, count: int) -> list[slice]:
        """How a watched tracker is to cut its next comparisons, so that each look comes at the end of a piece."""
        if engine is not self._engine:  # a new course
            if self._engine is not None:
                self.clear()
            self._engine, self._form = engine, engine.mixture()[0]
        elif engine.t != self._t:  # it has learned unseen
            self._form, self._outcomes = engine.mixture()[0], []
        self._t = engine.t
        first = self.every - engine.t % self.every
        cuts = [0, *range(first, count, self.every), count]
        return [slice(start, stop) for start, stop in pairwise(cuts)]

    def read(self, engine: Engine, trace: Trace, y: Array | None, implied: bool = False) -> None:
        """What a watched tracker has gone through, a piece at a time. Orders have no label to judge, and labels
        that were implied by others are no evidence."""
        times, self._t = range(self._t + 1, engine.t + 1), engine.t
        judged = None if y is None or implied else trace.similar != (y > 0)
        if judged is not None:
            self._outcomes += zip(times, trace.loss.tolist(), judged.tolist(), strict=True)
        if engine.t % self.every == 0:
            self._look(engine)
        if judged is not None and y is not None and self.alarm is not None:
            self._feed(self.alarm, times, judged.tolist(), trace, trace.log_loss(y).tolist())

    def _look(self, engine: Engine) -> None:
        form, outcomes, experts = engine.mixture()[0], self._outcomes, engine.experts()
        diagonal, t = form.diagonal, engine.t
        row = _Row(
            t=t,
            judged=len(outcomes),
            loss=sum(loss for _, loss, _ in outcomes),
            wrong=sum(wrong for *_, wrong in outcomes),
            looks=1,
            moved=frobenius_distance(form, self._form),
            time_scale=time_scale(experts, t),
            threshold=engine.decision().even,
            weights=experts["weight"],
            relevance=snapshot(diagonal / (diagonal.sum() or 1.0)),
        )
        self._form, self._outcomes = form, []
        self.lengths, self.kinds = snapshot(experts["length"]), tuple(experts["kind"].tolist())
        self._keep(row)

    def _feed(self, alarm: Alarm, times: range, wrong: list[bool], trace: Trace, costs: list[float]) -> None:
        """Each comparison, with the experts as they were after it, however seldom there is a look."""
        for row, t in enumerate(times):
            if isinstance(alarm, ChangeAlarm | RiverAlarm):
                alarm.t = t - 1  # it counts the tracker's comparisons, also those that it is not told of
            if isinstance(alarm, ChangeAlarm) and not math.isnan(costs[row]):
                event = alarm.update(wrong[row], trace.after(row), costs[row])
            else:
                event = alarm.update(wrong[row], trace.after(row))
            if event is not None:  # other alarms count what they are told of
                event = replace(event, t=t, onset=event.onset + t - event.t)
                self.events = [*self.events, event][-self.capacity :]

    def _keep(self, row: _Row) -> None:
        self._pending = row if self._pending is None else self._pending.joined(row)
        if row.t % self.stride:
            return
        self._rows.append(self._pending)
        self._pending = None
        if len(self._rows) > self.capacity:
            self.stride *= 2
            rows, self._rows = self._rows, []
            for each in rows:
                self._keep(each)

    def __len__(self) -> int:
        return len(self._rows)

    @property
    @locked
    def records(self) -> np.ndarray[Any, np.dtype[np.void]]:
        """A structured array with a line per row.

        ``t`` counts comparisons; ``loss``, ``error`` (share judged wrongly, before learning) and ``movement`` (of
        M, per look, in the tracker's unit of length) are means since the row before; ``time_scale`` and
        ``threshold`` are as they were at ``t``. Loss and error are of pairs, and nan if there were only triplets.
        """
        table = np.zeros(len(self._rows), dtype=RECORD)
        for line, row in zip(table, self._rows, strict=True):
            line["t"], line["time_scale"], line["threshold"] = row.t, row.time_scale, row.threshold
            judged = row.judged or math.nan
            line["loss"], line["error"] = row.loss / judged, row.wrong / judged
            line["movement"] = row.moved / row.looks
        table.setflags(write=False)
        return table

    @property
    @locked
    def weights(self) -> Array:
        """The weight of each expert (column) at each row's time, nan before it was there."""
        table = np.full((len(self._rows), max((len(row.weights) for row in self._rows), default=0)), np.nan)
        for line, row in zip(table, self._rows, strict=True):
            line[: len(row.weights)] = row.weights
        return snapshot(table)

    @property
    @locked
    def relevance(self) -> Array:
        """Each feature's share of the diagonal of M at each row's time, for features on comparable scales."""
        return snapshot([row.relevance for row in self._rows])

    @locked
    def frame(self) -> Any:
        """The records and the weights as a pandas DataFrame; the columns of weights are named after the kinds and
        lengths of the experts, those of the same kind and length together."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError('a DataFrame needs pandas: pip install "ocelad[frames]"') from error
        records = self.records
        columns = {name: records[name] for name in records.dtype.names or ()}
        columns |= weights_by_name(self.kinds, self.lengths, self.weights)
        return pd.DataFrame(columns).set_index("t")
