"""What Spark runs for each group of rows: a bucket of keys, or one key with a state of its own.

state = (version, t, blob),        t: how many comparisons it has learned; blob: a `Bucket`, as ASCII text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import NoneType
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.streaming import StatefulProcessor
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from ..state import FileError
from ..tracker import MetricTracker
from ..watch.alarms import ChangeAlarm
from . import frames
from .ascii_text import from_text, to_text
from .bucket import VERSION, Bucket
from .learning import Outcome, Rows, learn
from .options import FleetOptions
from .rows import Ragged, check
from .worker import prepare_worker

STATE = "trackers"
"""The name of the state, for Spark's reader of checkpoints."""

STATE_SCHEMA = StructType(
    [StructField("version", IntegerType()), StructField("t", LongType()), StructField("blob", StringType())]
)


class _Processor(StatefulProcessor):  # type: ignore[misc]  # it has no types here
    """Learns rows by the trackers of the state of their group."""

    _one = "bucket"

    def __init__(self, options: FleetOptions, ttl: int | None = None) -> None:
        self._options, self._ttl = options, ttl

    def init(self, handle: Any) -> None:
        self.handle = handle
        self._state = handle.getValueState(STATE, STATE_SCHEMA, self._ttl)
        prepare_worker()

    def _learn(self, key: tuple[Any, ...], rows: Rows) -> Outcome:
        name, held = f"{self._one} {key[0]!r}", self._state.get()
        done = learn(self._options, None if held is None else _blob(held[2], name), rows, name)
        if done.blob is not None:  # else nothing has changed, and nothing has to be written
            self._keep(done.t, done.blob)
        return done

    def _keep(self, t: int, blob: bytes) -> None:
        self._state.update((VERSION, t, to_text(blob)))

    def handleInitialState(self, key: tuple[Any, ...], initialState: Any, timerValues: Any) -> None:  # noqa: ARG002
        """Begin with what `backfill` has learned, or another stream."""
        if self._state.exists():
            raise ValueError(f"initial must have one state for each {self._one}, and has two for {key[0]!r}")
        blob = bytes(initialState.blob)
        self._keep(Bucket(self._options, blob, f"{self._one} {key[0]!r}").t, blob)

    def close(self) -> None:
        """There is nothing to close."""


def _blob(text: str, name: str) -> bytes:
    try:
        return from_text(text)
    except ValueError as error:
        raise FileError(f"{name}: {error}") from None


class BucketProcessor(_Processor):
    """For rows of bucket and frame; gives rows of one frame. `track` uses it.

    With initial states, Spark gives the rows of a large group in parts, each of which would be put in order alone.
    """

    def __init__(self, options: FleetOptions, key_type: Any, initial: bool = False) -> None:
        super().__init__(options)
        self._key_type, self._initial = key_type, initial

    def init(self, handle: Any) -> None:
        super().init(handle)
        self._latest: tuple[Any, ...] | None = None

    def handleInputRows(self, key: tuple[Any, ...], rows: Iterable[Any], timerValues: Any) -> Iterator[Any]:  # noqa: ARG002
        if self._initial and key == self._latest:
            raise ValueError(
                f"bucket {key[0]} has come in several parts, which cannot be put in order: set "
                "spark.sql.execution.arrow.maxRecordsPerBatch to 0"
            )
        self._latest = key
        done = self._learn(key, frames.rows_of(bytes(row.frame) for row in rows))
        lines = frames.outcome(done, self._key_type)
        if lines.num_rows:
            yield Row(frame=frames.write(lines))


class TrackerProcessor(_Processor):
    """One key per group: for timers, and for keys that are to be forgotten.

    ``events.groupBy("key").transformWithState(TrackerProcessor(), schema, "Append", "ProcessingTime")``, where the
    schema is ``output_schema(StringType())``, say. It takes several times as long for a key as a bucket does.
    Subclasses may have a ``handleExpiredTimer``, which has ``self.handle``.

    Parameters
    ----------
    tracker, alarm, n_features
        As for `track`.
    ttl
        Milliseconds after which a key that has had no rows is forgotten; None for never.
    seq, x, z, y
        The names of columns.
    """

    _one = "key"

    def __init__(
        self,
        tracker: MetricTracker | None = None,
        *,
        alarm: ChangeAlarm | None = None,
        n_features: int | None = None,
        ttl: int | None = None,
        seq: str = "seq",
        x: str = "x",
        z: str = "z",
        y: str = "y",
    ) -> None:
        super().__init__(FleetOptions(tracker or MetricTracker.rice(), alarm, n_features), ttl)
        self._names = seq, x, z, y

    def handleInputRows(self, key: tuple[Any, ...], rows: Iterable[Any], timerValues: Any) -> Iterator[Any]:  # noqa: ARG002
        given = [tuple(row[name] for name in self._names) for row in rows]
        seq, x, z, y = zip(*given, strict=True) if given else ((), (), (), ())
        if len(key) != 1 or not isinstance(key[0], (str, int, NoneType)) or isinstance(key[0], bool):
            raise TypeError(f"keys must be strings or whole numbers, one to a group, got {key!r}")
        if wrong := [s for s in seq if not isinstance(s, (int, NoneType))]:
            raise TypeError(f"column {self._names[0]!r} must have whole numbers, got {wrong[0]!r}")
        if wrong := [label for label in y if not isinstance(label, (int, float, NoneType))]:
            raise TypeError(f"column {self._names[3]!r} must have labels 1 and -1, got {wrong[0]!r}")
        labels = np.array([np.nan if label is None else label for label in y], dtype=np.float64)
        no_key, no_seq = np.full(len(given), key[0] is None), np.array([s is None for s in seq], dtype=bool)
        u, reasons = check(no_key, no_seq, Ragged.of(x), Ragged.of(z), labels)
        numbers = np.array([s or 0 for s in seq], dtype=np.int64)
        done = self._learn(key, Rows([key[0]] * len(given), numbers, u, labels, reasons))
        kind = pa.int64() if isinstance(key[0], int) else pa.string()
        yield from (Row(**line) for line in frames.outcome(done, kind).to_pylist())
