"""A bucket: the trackers of many keys in one value of a store, which takes long for each value it is asked for.

    (blob, rows) -> (blob, what was predicted for each row before it was learned).

The rows of a key are learned in the order of their sequence numbers; a number that is not above the last one
learned has been learned before, and the row is dropped. So rows may come in any order within a call, and any
number of times. Nothing here knows of Spark.
"""

from __future__ import annotations

import copy
from collections.abc import Hashable, Sequence
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

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

VERSION = 1
"""Of the format. A blob of any other is refused."""

LIMIT = 2**31
"""Bytes of a blob at most: what a column of Spark's can hold."""

_ENTRIES = {"version", "options", "alarm", "buckets", "n_features", "keys"}
_ARRAYS = ["counts", "sizes", "packed"]


class Learned(NamedTuple):
    """A line for each row that was learned, key by key: what was predicted before it was."""

    keys: list[Hashable]
    seq: Integers
    distance: Array
    threshold: Array
    probability: Array
    predicted: NDArray[np.int8]
    right: NDArray[np.bool_]
    alarm: list[str | None]


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
    >>> rows = np.array(["ann", "bob", "ann"]), np.array([2, 1, 1]), np.eye(3), np.array([1.0, -1.0, -1.0])
    >>> learned = bucket.learn(*rows)
    >>> list(zip(learned.keys, learned.seq.tolist(), learned.predicted.tolist()))
    [('ann', 1, 1), ('ann', 2, 1), ('bob', 1, 1)]
    >>> again = Bucket(FleetOptions(), bucket.write())
    >>> len(again.learn(*rows).keys), again.t
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

    def learn(self, keys: Sequence[Hashable] | NDArray[Any], seq: Integers, u: Array, y: Array) -> Learned:
        """Learn rows that have been checked: differences u of (m, n) and labels +1 and -1, in any order."""
        keys = keys.tolist() if isinstance(keys, np.ndarray) else keys
        if len(keys) and self.n_features is None:
            self.n_features = u.shape[1]
        known, index = len(self.index), self.index
        if known and len(keys) and isinstance(keys[0], str) != isinstance(next(iter(index)), str):
            raise FileError(
                f"{self.name}: it has key {next(iter(index))!r}, and now there is {keys[0]!r}: keys must "
                "stay strings, or whole numbers"
            )
        codes = np.fromiter((index.setdefault(key, len(index)) for key in keys), np.int64, len(keys))
        fresh = len(index) - known
        self.counts = np.vstack([self.counts, np.zeros((fresh, 2), dtype=np.int64)])
        self.records += [b""] * fresh
        self.alarms += [b""] * fresh
        order = _in_order(codes, seq, u, y, ~self._learned(codes, seq))
        return self._learn_in_order(codes[order], seq[order], u[order], y[order])

    def _learned(self, codes: Integers, seq: Integers) -> NDArray[np.bool_]:
        """Whether these numbers of these keys have been learned, or passed over."""
        last, t = self.counts[codes].T
        return (seq <= last) & (t > 0)

    def has_learned(self, key: Hashable, seq: int) -> bool:
        """Whether this number of a key has been learned, or passed over."""
        code = self.index.get(key)
        return code is not None and bool(self._learned(np.array([code]), np.array([seq]))[0])

    def _learn_in_order(self, codes: Integers, seq: Integers, u: Array, y: Array) -> Learned:
        names, table = list(self.index), np.empty((len(codes), EXPERTS))
        alarm: list[str | None] = [None] * len(codes)
        starts = [0, *(np.flatnonzero(np.diff(codes)) + 1).tolist(), len(codes)] if len(codes) else []
        tracker: MetricTracker | None = None
        for start, end in pairwise(starts):
            code, at = int(codes[start]), slice(start, end)
            tracker, trace = self._tracker(code, names[code], unused=tracker), Trace(end - start)
            tracker._learn(u[at], y[at], trace=trace, named=u)
            table[at] = trace.table[:, :EXPERTS]
            self.records[code] = pack(tracker)
            self.counts[code] = seq[end - 1], tracker._engine.t
            if self.options.alarm is not None:
                alarm[at] = self._watch(code, names[code], trace, y[at])
        square, limit, probability = (table[:, column] for column in (SQUARED_DISTANCE, THRESHOLD, PROBABILITY))
        similar = square <= limit
        return Learned(
            keys=[names[code] for code in codes.tolist()],
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
        packed = np.frombuffer(b"".join([*self.records, *self.alarms]), dtype=np.uint8)
        arrays: container.Arrays = {
            **self.options.arrays,
            "counts": self.counts,
            "sizes": np.array(sizes, np.int64).reshape(-1, 2),
            "packed": packed,
        }
        blob = b"".join(container.write_record(entries, arrays))
        if len(blob) >= LIMIT:
            raise ValueError(f"{self.name}: its {len(self.index)} keys take {len(blob)} bytes: use more buckets")
        return blob

    def _read(self, blob: memoryview, expected: FleetOptions | None) -> None:
        entries, arrays = container.read_record(blob, 64 * LIMIT)
        if header.estimator(entries) != "Bucket":
            raise ValueError("it is not a bucket of trackers")
        if (version := entries.get("version")) != VERSION:
            raise ValueError(f"it has format version {version}; this ocelad reads version {VERSION}")
        header.check_keys(entries, _ENTRIES)
        keys, n = entries["keys"], entries["n_features"]
        if not isinstance(keys, list) or not all(type(key) in (str, int) for key in keys):
            raise ValueError("keys must be strings or whole numbers")
        if type(n) is not int or n < 1:
            raise ValueError(f"n_features must be a whole number >= 1, got {n!r}")
        if expected is None:
            self.options = FleetOptions.of(entries, arrays)
        else:
            expected.check(entries, arrays)
        self.n_features = n
        self.index = {key: code for code, key in enumerate(keys)}
        if len(self.index) < len(keys) or list(arrays) != [*self.options.arrays, *_ARRAYS]:
            raise ValueError("keys must be different, and its arrays counts, sizes and packed")
        self.counts = take(arrays, "counts", (len(keys), 2), np.int64).copy()
        sizes, packed = take(arrays, "sizes", (len(keys), 2), np.int64), arrays["packed"]
        if packed.dtype != np.uint8 or packed.ndim != 1 or (sizes < 0).any() or int(sizes.sum()) != packed.size:
            raise ValueError("packed must be bytes, as many as sizes says")
        if (sizes[:, 0] == 0).any() or ((sizes[:, 1] > 0) != (self.options.alarm is not None)).any():
            raise ValueError("every key must have a tracker, and an alarm where there are alarms")
        ends = list(accumulate(sizes.T.ravel().tolist(), initial=0))
        pieces: list[bytes | memoryview] = [packed.data[start:end] for start, end in pairwise(ends)]
        self.records, self.alarms = pieces[: len(keys)], pieces[len(keys) :]


def _in_order(codes: Integers, seq: Integers, u: Array, y: Array, due: NDArray[np.bool_]) -> Integers:
    """Which of the rows that are due to learn, key by key and by number, each number once.

    If rows of the same number differ, which of them is taken must not depend on the order in which they came.
    """
    fresh = np.flatnonzero(due)
    order = fresh[np.lexsort((seq[fresh], codes[fresh]))]
    if not _again(codes[order], seq[order]).any():
        return order
    order = fresh[np.lexsort((*u[fresh].T, y[fresh], seq[fresh], codes[fresh]))]
    return order[~_again(codes[order], seq[order])]


def _again(codes: Integers, seq: Integers) -> NDArray[np.bool_]:
    """Whether each row has the key and the number of the one before it."""
    again = np.zeros(len(codes), dtype=bool)
    again[1:] = (codes[1:] == codes[:-1]) & (seq[1:] == seq[:-1])
    return again
