"""What a file holds of a `History`: its record, what is summed up for the next row, and its alarm."""

from __future__ import annotations

import math
from dataclasses import astuple
from itertools import pairwise
from typing import Any

import numpy as np

from ..engine.checks import split, take
from ..engine.protocol import Arrays
from ..engine.trace import KINDS
from ..geometry.quadratic import SQUARE, Dense, Parts
from ..protocols import snapshot
from ..state.header import check_count, check_keys, fits
from ..tracker import MetricTracker
from .alarms import ChangeAlarm, Event
from .history import History, _Row

_ENTRIES = {"every", "capacity", "stride", "t", "pending", "alarm", "new_alarm", "events", "kinds"}
_COUNTS = ("t", "judged", "looks")
_NUMBERS = ("loss", "wrong", "moved", "time_scale", "threshold")
_ALARM = {"steps": float, "odds": float, "memory": int, "state": dict}
_STATE = {
    "t": int,
    "since": int,
    "weights": list,
    "errors": [float, float],
    "losses": [float, float],
    "loss_square": [float, float],
    "square": [float, float],
    "jump": [float, list],
    "drift": [float, list],
}


def describe(history: History) -> tuple[dict[str, Any], Arrays]:
    """Entries and arrays."""
    pending = history._pending
    rows = history._rows if pending is None else [*history._rows, pending]
    counts = [[getattr(row, name) for name in _COUNTS] + [len(row.weights)] for row in rows]
    entries = {
        "every": history.every,
        "capacity": history.capacity,
        "stride": history.stride,
        "t": history._t,
        "pending": pending is not None,
        "alarm": alarm_entry(history.alarm),
        "new_alarm": alarm_entry(history._new_alarm),
        "events": [list(astuple(event)) for event in history.events],
        "kinds": list(history.kinds),
    }
    arrays: Arrays = {
        "counts": np.array(counts, dtype=np.int64).reshape(len(rows), 4),
        "numbers": np.array([[getattr(row, name) for name in _NUMBERS] for row in rows]).reshape(len(rows), 5),
        "weights": np.concatenate([row.weights for row in rows]) if rows else np.zeros(0),
        "relevance": np.array([row.relevance for row in rows]) if rows else np.zeros((0, 0)),
        "outcomes": np.array(history._outcomes, dtype=np.float64).reshape(-1, 3),
        "lengths": np.where(np.isinf(history.lengths), 0.0, history.lengths),
    }
    if history._engine is not None:  # it has begun to look
        arrays |= _form_arrays(history._form)
    return entries, arrays


def _form_arrays(form: Dense | Parts) -> Arrays:
    """The matrix; where it is large and of low rank, a row for each of its columns, after its factor."""
    if isinstance(form, Dense) or form.n <= SQUARE:
        return {"M": form.M}
    return {"columns": np.column_stack([form.extra, form.columns.T]), "sigma": np.array([form.sigma])}


def _form_of(arrays: Arrays, n: int) -> Dense | Parts:
    if "M" in arrays:
        return Dense(take(arrays, "M", (n, n)))
    rank = arrays["columns"].size // (n + 1)
    rows, sigma = take(arrays, "columns", (rank, n + 1)), take(arrays, "sigma", (1,))
    return Parts(rows[:, 1:].T.copy(), rows[:, 0].copy(), float(sigma[0]))


def alarm_entry(alarm: Any) -> dict[str, Any] | None:
    if alarm is None:
        return None
    if type(alarm) is not ChangeAlarm:
        raise ValueError(f"alarm={alarm!r} cannot be saved: a file holds a ChangeAlarm; stop() the history first")
    return {"steps": alarm.steps, "odds": alarm.odds, "memory": alarm.memory, "state": alarm.state()}


def rebuild(entries: Any, arrays: Arrays, tracker: MetricTracker) -> History:
    """The history of entries and arrays, which watches the tracker."""
    check_keys(entries, _ENTRIES)
    for name in ("every", "capacity", "stride", "t"):
        check_count(entries[name], f"history's {name}")
    expected = ["counts", "numbers", "weights", "relevance", "outcomes", "lengths"]
    if list(arrays) not in (expected, [*expected, "M"], [*expected, "columns", "sigma"]):
        expected.append("M or columns and sigma")
        raise ValueError(f"history's arrays are {', '.join(arrays)}, expected {', '.join(expected)}")
    history, n = History(tracker, every=entries["every"], capacity=entries["capacity"]), tracker.n_features_in_
    history._new_alarm, history.alarm = (alarm_of(entries[name]) for name in ("new_alarm", "alarm"))
    history.stride, history._t, history.events = entries["stride"], entries["t"], _events(entries["events"])
    if len(arrays) > len(expected):
        history._engine, history._form = tracker._engine, _form_of(arrays, n)
    m, outcomes = len(arrays["counts"]) if arrays["counts"].ndim else 0, arrays["outcomes"]
    counts = take(arrays, "counts", (m, 4), np.int64)
    if (
        (counts[:, [0, 2]] < 1).any()
        or (counts[:, 1] < 0).any()
        or not ((counts[:, 3] >= 0) & (counts[:, 3] <= 64)).all()
    ):
        raise ValueError("history's counts must be >= 1 (0 for judged ones), and at most 64 weights in a row")
    if type(entries["pending"]) is not bool or m < entries["pending"]:
        raise ValueError("history's pending must be true or false, and true only if there is a row")
    if m - entries["pending"] > history.capacity or history.stride % history.every:
        raise ValueError(f"history has {m} rows, and room for {history.capacity}")
    weights = split(take(arrays, "weights", (int(counts[:, 3].sum()),)), counts[:, 3]) if m else []
    numbers, relevance = take(arrays, "numbers", (m, 5)), take(arrays, "relevance", (m, n if m else 0))
    for (t, judged, looks, _), (loss, wrong, moved, scale, mu), p, share in zip(
        counts.tolist(), numbers.tolist(), weights, relevance, strict=True
    ):
        row = _Row(t, judged, loss, wrong, looks, moved, scale, mu, snapshot(p), snapshot(share))
        history._rows.append(row)
    if entries["pending"]:
        history._pending = history._rows.pop()
    if outcomes.ndim == 2 and outcomes.shape[1] == 4:  # with what each had cost, of an earlier version
        arrays = {**arrays, "outcomes": (outcomes := outcomes[:, :3].copy())}
    take(arrays, "outcomes", (outcomes.size // 3, 3))
    if not set(map(str, outcomes[:, 2].tolist())) <= {"0.0", "1.0"}:
        raise ValueError("history's outcomes must have errors of 0 or 1")
    times = [0.0, *outcomes[:, 0].tolist(), entries["t"] + 1.0]
    if not all(t.is_integer() and t < later for t, later in pairwise(times)):
        raise ValueError("history's outcomes must be of different times up to t, in order")
    history._outcomes = [(int(t), loss, bool(wrong)) for t, loss, wrong in outcomes.tolist()]
    kinds, lengths = entries["kinds"], take(arrays, "lengths", (arrays["lengths"].size,))
    if not isinstance(kinds, list) or len(kinds) != len(lengths) or not set(map(str, kinds)) <= set(KINDS):
        raise ValueError(f"history's kinds must be among {', '.join(KINDS)}, one per length")
    if np.signbit(lengths).any():
        raise ValueError("history's lengths must be >= 0")
    history.lengths, history.kinds = snapshot(np.where(lengths == 0.0, np.inf, lengths)), tuple(kinds)
    return history


def alarm_of(entry: Any) -> ChangeAlarm | None:
    if entry is None:
        return None
    if not (fits(entry, _ALARM) and fits(entry["state"], _STATE)):
        raise ValueError("history's alarm is not one that a ChangeAlarm has given")
    alarm, state = ChangeAlarm(**{name: entry[name] for name in ("steps", "odds", "memory")}), entry["state"]
    summed = [*state["jump"][1], *state["drift"][1]]
    means = [number for name in ("errors", "losses", "loss_square", "square") for number in state[name]]
    numbers = [*state["weights"], *means, state["jump"][0], state["drift"][0]]
    if not all(fits(pair, [int, float]) for pair in summed) or not all(type(x) is float for x in numbers):
        raise ValueError("history's alarm must have numbers")
    if not (state["errors"][1] > 0.0 and 0.0 < state["errors"][0] < state["errors"][1]):
        raise ValueError("history's alarm has no error rate")
    alarm.restore(state)
    return alarm


def _events(entry: Any) -> list[Event]:
    event: Any
    for event in entry if isinstance(entry, list) else [None]:
        if not fits(event, [int, str, int, float]) or event[1] not in ("jump", "drift") or math.isnan(event[3]):
            raise ValueError("history's events must have t, kind, onset and strength each")
    return [Event(*event) for event in entry]
