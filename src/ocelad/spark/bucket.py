"""A bucket: the trackers of many keys in one value of a store, which takes long for each value it is asked for.

    (blob, rows) -> (blob, what was predicted for each row before it was learned).

The rows of a key are learned in the order of their sequence numbers; a number that is not above the last one
learned has been learned before, and the row is dropped. So rows may come in any order within a call, and any
number of times. Nothing here knows of Spark.
"""

from __future__ import annotations

import copy
import struct
from collections.abc import Hashable
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from ..engine import Trace
from ..engine.checks import take
from ..engine.trace import EXPERTS, PROBABILITY, SQUARED_DISTANCE, THRESHOLD
from ..protocols import Array, Integers
from ..state import FileError, container, header, pack, unpack
from ..tracker import MetricTracker
from ..watch.alarms import ChangeAlarm
from ..watch.saved import alarm_of
from .options import FleetOptions
from .rows import codes, runs

VERSION = 2
"""Of the format. A blob of any other is refused."""

LIMIT = 2**31
"""Bytes of a blob at most: what a column of Spark's can hold."""

_ENTRIES = {"version", "options", "alarm", "buckets", "n_features", "keys"}
_ARRAYS = ["counts", "sizes", "alarms"]
_SIZE = struct.Struct("<Q")


class Learned(NamedTuple):
    """A line for each row that was learned, key by key: what was predicted before it was."""

    names: list[Hashable]
    """All keys of the bucket."""
    of: Integers
    """Which of these each row has."""
    seq: Integers
    distance: Array
    threshold: Array
    probability: Array
    predicted: NDArray[np.int8]
    right: NDArray[np.bool_]
    alarm: list[str | None]

    @property
    def keys(self) -> list[Hashable]:
        return [self.names[code] for code in self.of.tolist()]


class Bucket:
    """Trackers as bytes, each of which is made a tracker only when a row of its key has to be learned.

    Parameters
    ----------
    options
        What all trackers have in common; None for what the blob says.
    blob
        What ``write`` gave, or None to begin. `FileError` if it is damaged, or not of these options.
    name
        What errors call it.

    Examples
    --------
    >>> bucket = Bucket(FleetOptions())
    >>> rows = np.array([0, 1, 0]), np.array([2, 1, 1]), np.eye(3), np.array([1.0, -1.0, -1.0])
    >>> learned = bucket.learn(["ann", "bob"], *rows)
    >>> list(zip(learned.keys, learned.seq.tolist(), learned.predicted.tolist()))
    [('ann', 1, 1), ('ann', 2, 1), ('bob', 1, 1)]
    >>> again = Bucket(FleetOptions(), bucket.write())
    >>> len(again.learn(["ann", "bob"], *rows).keys), again.t
    (0, 3)
    """

    def __init__(self, options: FleetOptions | None, blob: bytes | None = None, name: str = "bucket") -> None:
        self.options, self.name = FleetOptions() if options is None else options, name
        self.n_features = self.options.n_features
        self.index: dict[Hashable, int] = {}
        self.counts: Integers = np.zeros((0, 2), dtype=np.int64)  # of each key: the last number learned, and t
        self.records: list[bytes | memoryview] = []  # of each key what `state.pack` gives
        self.alarms: list[bytes | memoryview] = []  # of each key its alarm in JSON, or nothing
        if blob is not None:
            try:
                self._read(memoryview(blob).cast("B"), options)
            except (ValueError, OverflowError, RecursionError) as error:
                raise FileError(f"{name}: {error}") from None

    @property
    def t(self) -> int:
        """How many comparisons have been learned by all keys."""
        return int(self.counts[:, 1].sum())

    def add(self, key: Hashable, counts: tuple[int, int], record: bytes, alarm: bytes) -> None:
        """Take a tracker from elsewhere: the last number that it has learned and its t, and what is kept of it."""
        if key in self.index:
            raise ValueError(f"{self.name}: key {key!r} is there twice")
        self.index[key] = len(self.records)
        self.counts = np.vstack([self.counts, np.array([counts])])
        self.records.append(record)
        self.alarms.append(alarm)
        if self.n_features is None:
            self.n_features = unpack(record, self.options.tracker).n_features_in_

    def learn(self, keys: list[Hashable], of: Integers, seq: Integers, u: Array, y: Array) -> Learned:
        """Learn rows that have been checked, in any order: which of the keys each has, its number, the difference
        u and the label +1 or -1."""
        if len(of) and self.n_features is None:
            self.n_features = u.shape[1]
        self._check_type(keys)
        known, present = len(self.index), np.unique(of)
        code = np.full(len(keys), -1)
        code[present] = codes([keys[k] for k in present.tolist()], self.index)
        fresh = len(self.index) - known
        self.counts = np.vstack([self.counts, np.zeros((fresh, 2), dtype=np.int64)])
        self.records += [b""] * fresh
        self.alarms += [b""] * fresh
        of = code[of]
        order = _in_order(of, seq, u, y, ~self._learned(of, seq))
        return self._learn_in_order(of[order], seq[order], u[order], y[order])

    def _check_type(self, keys: list[Hashable]) -> None:
        if self.index and keys and isinstance(keys[0], str) != isinstance(known := next(iter(self.index)), str):
            raise FileError(
                f"{self.name}: it has key {known!r}, and now there is {keys[0]!r}: keys must stay strings, or "
                "whole numbers"
            )

    def _learned(self, of: Integers, seq: Integers) -> NDArray[np.bool_]:
        """Whether these numbers of these keys have been learned, or passed over."""
        last, t = self.counts[of].T
        return (seq <= last) & (t > 0)

    def has_learned(self, key: Hashable, seq: int) -> bool:
        """Whether this number of a key has been learned, or passed over."""
        code = self.index.get(key)
        return code is not None and bool(self._learned(np.array([code]), np.array([seq]))[0])

    def _learn_in_order(self, of: Integers, seq: Integers, u: Array, y: Array) -> Learned:
        names, table = list(self.index), np.empty((len(of), EXPERTS))
        alarm: list[str | None] = [None] * len(of)
        tracker: MetricTracker | None = None
        for code, at in runs(of):
            tracker, trace = self._tracker(code, names[code], unused=tracker), Trace(at.stop - at.start)
            tracker._learn(u[at], y[at], trace=trace, named=u)
            table[at] = trace.table[:, :EXPERTS]
            self.records[code] = pack(tracker)
            self.counts[code] = seq[at.stop - 1], tracker._engine.t
            if self.options.alarm is not None:
                alarm[at] = self._watch(code, names[code], trace, y[at])
        square, limit, probability = (table[:, column] for column in (SQUARED_DISTANCE, THRESHOLD, PROBABILITY))
        similar = square <= limit
        return Learned(
            names=names,
            of=of,
            seq=seq,
            distance=np.sqrt(np.maximum(square, 0.0)),
            threshold=np.copysign(np.sqrt(np.abs(limit)), limit),
            probability=np.where(np.isnan(probability), expit(limit - square), probability),
            predicted=np.where(similar, 1, -1).astype(np.int8),
            right=similar == (y > 0),
            alarm=alarm,
        )

    def tracker(self, key: Hashable) -> MetricTracker:
        """A copy of the tracker of a key."""
        return self._tracker(self.index[key], key)

    def _tracker(self, code: int, key: Hashable, unused: MetricTracker | None = None) -> MetricTracker:
        assert self.n_features is not None
        if not len(self.records[code]):
            return copy.copy(self.options.begun(self.n_features))
        try:
            record = bytes(self.records[code])  # which are aligned
            tracker = unpack(record, self.options.tracker, unused=unused)
            if tracker.n_features_in_ != self.n_features:
                raise ValueError(f"it has {tracker.n_features_in_} features, and the bucket {self.n_features}")
        except ValueError as error:
            raise FileError(f"{self.name}: the tracker of key {key!r}: {error}") from None
        return tracker

    def _watch(self, code: int, key: Hashable, trace: Trace, y: Array) -> list[str | None]:
        """What the alarm of a key says of each comparison: it is fed as by a `History` with ``every=1``."""
        assert self.options.alarm is not None
        parameters, kept = self.options.entries["alarm"], bytes(self.alarms[code])
        alarm = ChangeAlarm(**parameters)  # whatever the one that was given has seen
        if kept:
            try:
                found = alarm_of({**parameters, "state": header.from_json(kept)})
            except (ValueError, TypeError) as error:
                raise FileError(f"{self.name}: the alarm of key {key!r}: {error}") from None
            assert found is not None
            alarm = found
        wrong, costs = (trace.similar != (y > 0)).tolist(), trace.log_loss(y).tolist()
        events = [
            alarm.update(wrong[row], trace.after(row), None if cost != cost else cost)
            for row, cost in enumerate(costs)
        ]
        self.alarms[code] = header.to_json(alarm.state())
        return [None if event is None else event.kind for event in events]

    # Bytes

    def write(self) -> bytes:
        """All of it as bytes; the same state gives the same bytes."""
        entries = {
            "estimator": "Bucket",
            "version": VERSION,
            **self.options.entries,
            "n_features": self.n_features,
            "keys": list(self.index),
        }
        sizes = [[len(record), len(alarm)] for record, alarm in zip(self.records, self.alarms, strict=True)]
        arrays: container.Arrays = {
            **self.options.arrays,
            "counts": self.counts,
            "sizes": np.array(sizes, np.int64).reshape(-1, 2),
            "alarms": np.frombuffer(b"".join(self.alarms), dtype=np.uint8),
        }
        index = b"".join(container.write_record(entries, arrays))
        blob = b"".join([_SIZE.pack(len(index)), index, *self.records])
        if len(blob) >= LIMIT:
            raise ValueError(f"{self.name}: its {len(self.index)} keys take {len(blob)} bytes: use more buckets")
        return blob

    def _read(self, blob: memoryview, expected: FleetOptions | None) -> None:
        end = _SIZE.size + (_SIZE.unpack_from(blob)[0] if len(blob) >= _SIZE.size else 0)
        entries, arrays = container.read_record(blob[_SIZE.size : end], 64 * LIMIT)
        if header.estimator(entries) != "Bucket":
            raise ValueError("it is not a bucket of trackers")
        if (version := entries.get("version")) != VERSION:
            raise ValueError(f"it has format version {version}; this ocelad reads version {VERSION}")
        header.check_keys(entries, _ENTRIES)
        keys, n = entries["keys"], entries["n_features"]
        if not isinstance(keys, list) or not all(type(key) in (str, int) for key in keys):
            raise ValueError("keys must be strings or whole numbers")
        if not (type(n) is int and n >= 1) and (n is not None or keys):
            raise ValueError(f"n_features must be a whole number >= 1, got {n!r}")
        if expected is None:
            self.options = FleetOptions.of(entries, arrays)
        else:
            expected.check(entries, arrays)
        self.n_features = n
        self.index = {key: code for code, key in enumerate(keys)}
        if len(self.index) < len(keys) or list(arrays) != [*self.options.arrays, *_ARRAYS]:
            raise ValueError(f"keys must be different, and its arrays {', '.join(_ARRAYS)}")
        self.counts = take(arrays, "counts", (len(keys), 2), np.int64).copy()
        sizes, alarms = take(arrays, "sizes", (len(keys), 2), np.int64), arrays["alarms"]
        if (sizes[:, 0] <= 0).any() or ((sizes[:, 1] > 0) != (self.options.alarm is not None)).any():
            raise ValueError("every key must have a tracker, and an alarm where there are alarms")
        if alarms.dtype != np.uint8 or alarms.ndim != 1:
            raise ValueError("alarms must be bytes")
        self.records, self.alarms = (
            _pieces(part, column.tolist()) for part, column in zip((blob[end:], alarms.data), sizes.T, strict=True)
        )


def _pieces(data: memoryview, sizes: list[int]) -> list[bytes | memoryview]:
    ends = list(accumulate(sizes, initial=0))
    if min(sizes, default=0) < 0 or ends[-1] != len(data):
        raise ValueError(f"it has {len(data)} bytes of trackers or alarms, and {ends[-1]} belong there")
    return [data[start:end] for start, end in pairwise(ends)]


def _in_order(of: Integers, seq: Integers, u: Array, y: Array, due: NDArray[np.bool_]) -> Integers:
    """Which of the rows that are due to learn, key by key and by number, each number once.

    If rows of the same number differ, which of them is taken must not depend on the order in which they came.
    """
    fresh = np.flatnonzero(due)
    order = fresh[np.lexsort((seq[fresh], of[fresh]))]
    if not _again(of[order], seq[order]).any():
        return order
    order = fresh[np.lexsort((*u[fresh].T, y[fresh], seq[fresh], of[fresh]))]
    return order[~_again(of[order], seq[order])]


def _again(of: Integers, seq: Integers) -> NDArray[np.bool_]:
    """Whether each row has the key and the number of the one before it."""
    again = np.zeros(len(of), dtype=bool)
    again[1:] = (of[1:] == of[:-1]) & (seq[1:] == seq[:-1])
    return again
