"""What a tracker has been through: a bounded record of losses, weights, time-scale, movement and threshold.

    time-scale = exp(sum_j p_j log min(length_j, t)),       movement = |M_t - M_{t - every}| (Frobenius).

Every ``every`` comparisons the tracker is looked at. A row of the record holds the state at its time, and means
over all looks since the row before. When the record is full, neighbouring rows are joined two by two: it always
covers the whole course, at a resolution that halves, in bounded memory.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import issparse

from ..geometry import Metric
from ..geometry.losses import MarginLoss
from ..ocelad import Ocelad
from ..protocols import Array, snapshot
from ..tracker import MetricTracker
from ..tracker.levels import LEVEL
from .alarms import Alarm, Event

RECORD = np.dtype(
    [("t", np.int64)] + [(name, np.float64) for name in ("loss", "error", "movement", "time_scale", "threshold")]
)


def time_scale(levels: Any, t: float = np.inf) -> float:
    """The effective memory: the geometric mean of the levels' lengths, by weight.

    A learner that never restarts remembers all of the ``t`` comparisons so far.

    >>> levels = np.array([(8, 0.5), (128, 0.5)], dtype=[("length", float), ("weight", float)])
    >>> round(time_scale(levels), 6)
    32.0
    """
    memory = np.minimum(levels["length"], max(t, 1.0))
    return float(np.exp(levels["weight"] @ np.log(memory)))


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
        return replace(
            later,
            judged=self.judged + later.judged,
            loss=self.loss + later.loss,
            wrong=self.wrong + later.wrong,
            looks=self.looks + later.looks,
            moved=self.moved + later.moved,
        )


class History:
    """Record what a tracker goes through from now on.

    The tracker learns exactly what it would learn without; a batch is learned in pieces of ``every``, and what is
    recorded does not depend on how the stream is cut into batches. ``fit`` begins a new record.

    Parameters
    ----------
    tracker
        The `MetricTracker` to watch. `stop` ends it.
    every
        How often to look at the tracker. Comparisons are judged by the metric of the latest look before them.
    capacity
        How many rows to keep at most; each holds a number per level and feature.
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
        if not (alarm is None or callable(getattr(alarm, "update", None))):
            raise ValueError(f"alarm must be None or an alarm such as ChangeAlarm(), got {alarm!r}")
        self.tracker = tracker
        self.every, self.capacity = _count(every, "every", 1), _count(capacity, "capacity", 2)
        self._new_alarm = copy.deepcopy(alarm)
        self._ocelad: Ocelad[Metric] | None = None
        self.clear()
        tracker._history = self

    def clear(self) -> None:
        """Forget everything recorded so far."""
        self.alarm: Alarm | None = copy.deepcopy(self._new_alarm)
        self.events: list[Event] = []
        self.stride = self.every  # comparisons per row, at present
        self._rows: list[_Row] = []
        self._pending: _Row | None = None
        self._outcomes: list[tuple[float, bool]] = []  # loss and error of each comparison since the last look
        self.lengths: Array = snapshot([])
        """The memory of each level, at the last look."""

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

    def learn(
        self, ocelad: Ocelad[Metric], loss: MarginLoss, u: Any, y: Sequence[float], teach: Callable[[slice], None]
    ) -> None:
        """What a watched tracker calls with comparisons in its unit of length: ``teach`` them, piece by piece."""
        if ocelad is not self._ocelad:  # a new course
            if self._ocelad is not None:
                self.clear()
            self._ocelad, self._t, self._metric = ocelad, ocelad.t, ocelad.estimate
        elif ocelad.t != self._t:  # it has learned unseen
            self._metric, self._outcomes = ocelad.estimate, []
        done = 0
        while done < len(y):
            piece = slice(done, min(len(y), done + self.every - ocelad.t % self.every))
            outcomes = self._judge(loss, u[piece], y[piece])
            teach(piece)
            self._outcomes += outcomes
            self._t, done = ocelad.t, piece.stop
            if ocelad.t % self.every == 0:
                self._look(ocelad)

    def _judge(self, loss: MarginLoss, u: Any, y: Sequence[float]) -> list[tuple[float, bool]]:
        """Loss and error of comparisons that have not been learned yet, under the metric of the latest look."""
        mu, rows = self._metric.mu, u.toarray() if issparse(u) else u
        d2 = [self._metric.squared_distance(row) for row in rows]  # one by one: a batch must not round differently
        return [(loss.value(label * (mu - d)), (d <= mu) != (label > 0)) for d, label in zip(d2, y, strict=True)]

    def _look(self, ocelad: Ocelad[Metric]) -> None:
        before, now, outcomes = self._metric, ocelad.estimate, self._outcomes
        levels, diagonal = np.zeros(len(ocelad.lengths), dtype=LEVEL), now.M.diagonal()
        levels["length"], levels["weight"], levels["loss"] = ocelad.lengths, ocelad.probabilities, ocelad.losses
        row = _Row(
            t=ocelad.t,
            judged=len(outcomes),
            loss=sum(loss for loss, _ in outcomes),
            wrong=sum(wrong for _, wrong in outcomes),
            looks=1,
            moved=float(np.linalg.norm(now.M - before.M)),
            time_scale=time_scale(levels, ocelad.t),
            threshold=max(1.0, now.mu),
            weights=levels["weight"],
            relevance=snapshot(diagonal / (diagonal.sum() or 1.0)),
        )
        self._metric, self._outcomes, self.lengths = now, [], snapshot(ocelad.lengths)
        self._keep(row)
        if self.alarm is not None:
            for number, (_, wrong) in enumerate(outcomes, ocelad.t - len(outcomes) + 1):
                event = self.alarm.update(wrong, levels if number == ocelad.t else None)
                if event is not None:  # the alarm may not have been there from the beginning
                    event = replace(event, t=number, onset=event.onset + number - event.t)
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
    def records(self) -> np.ndarray[Any, np.dtype[np.void]]:
        """A structured array with a line per row.

        ``t`` counts comparisons; ``loss``, ``error`` (share judged wrongly, before learning) and ``movement`` (of
        M, per look, in the tracker's unit of length) are means since the row before; ``time_scale`` and
        ``threshold`` are as they were at ``t``.
        """
        table = np.zeros(len(self._rows), dtype=RECORD)
        for line, row in zip(table, self._rows, strict=True):
            line["t"], line["time_scale"], line["threshold"] = row.t, row.time_scale, row.threshold
            line["loss"], line["error"] = row.loss / row.judged, row.wrong / row.judged
            line["movement"] = row.moved / row.looks
        table.setflags(write=False)
        return table

    @property
    def weights(self) -> Array:
        """The weight of each level (column) at each row's time, nan before the level was there."""
        table = np.full((len(self._rows), max((len(row.weights) for row in self._rows), default=0)), np.nan)
        for line, row in zip(table, self._rows, strict=True):
            line[: len(row.weights)] = row.weights
        return snapshot(table)

    @property
    def relevance(self) -> Array:
        """Each feature's share of the diagonal of M at each row's time, for features on comparable scales."""
        return snapshot([row.relevance for row in self._rows])

    def frame(self) -> Any:
        """The records and the weights (``weight_0`` is that of the shortest memory) as a pandas DataFrame."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError('a DataFrame needs pandas: pip install "ocelad[frames]"') from error
        records, weights = self.records, self.weights
        columns = {name: records[name] for name in records.dtype.names or ()}
        columns |= {f"weight_{level}": weights[:, level] for level in range(weights.shape[1])}
        return pd.DataFrame(columns).set_index("t")


def _count(value: Any, name: str, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise ValueError(f"{name} must be an integer >= {least}, got {value!r}")
    return int(value)
