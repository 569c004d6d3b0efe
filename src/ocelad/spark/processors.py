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
from . import chunks
from .ascii_text import from_text, to_text
from .bucket import VERSION, Bucket
from .learning import Outcome, learn
from .options import FleetOptions
from .rows import Ragged, Rows, check
from .worker import prepare_worker

STATE = "trackers"
"""The name of the state, for Spark's reader of checkpoints."""

STATE_SCHEMA = StructType(
    [StructField("version", IntegerType()), StructField("t", LongType()), StructField("blob", StringType())]
)

ALL = -1
"""The bucket that has no keys, and a row in every batch: its state says with which options all have begun."""


class _Processor(StatefulProcessor):  # type: ignore[misc]  # it has no types here
    """Learns rows by the trackers of the state of their group."""

    _one = "bucket"

    def __init__(self, options: FleetOptions, ttl: int | None = None, initial: bool = False) -> None:
        self._options, self._ttl, self._initial = options, ttl, initial

    def init(self, handle: Any) -> None:
        self.handle = handle
        self._state = handle.getValueState(STATE, STATE_SCHEMA, self._ttl)
        self._latest: Any = ()
        prepare_worker()

    def _name(self, group: Any) -> str:
        return f"{self._one} {group!r}"

    def _held(self, group: Any) -> bytes | None:
        held = self._state.get()
        try:
            return None if held is None else from_text(held[2])
        except ValueError as error:
            raise FileError(f"{self._name(group)}: {error}") from None

    def _keep(self, t: int, blob: bytes) -> None:
        self._state.update((VERSION, t, to_text(blob)))

    def _learn(self, group: Any, rows: Rows) -> Outcome:
        if self._initial and group == self._latest:  # with initial states Spark divides the rows of large groups
            raise ValueError(
                f"{self._name(group)} has come in several parts, which cannot be put in order: set "
                "spark.sql.execution.arrow.maxRecordsPerBatch to 0"
            )
        self._latest = group
        done = learn(self._options, self._held(group), rows, self._name(group))
        if done.blob is not None:  # else nothing has changed, and nothing has to be written
            self._keep(done.t, done.blob)
        return done

    def handleInitialState(self, key: tuple[Any, ...], initialState: Any, timerValues: Any) -> None:  # noqa: ARG002
        """Begin with what `backfill` has learned, or another stream."""
        if self._state.exists():
            raise ValueError(f"initial must have one state for each {self._one}, and has two for {key[0]!r}")
        self._initial, blob = True, bytes(initialState.blob)
        self._keep(Bucket(self._options, blob, self._name(key[0])).t, blob)

    def close(self) -> None:
        """There is nothing to close."""


class BucketProcessor(_Processor):
    """For rows of bucket and chunk; gives rows of one chunk. `track` uses it."""

    def __init__(self, options: FleetOptions, key_type: Any, initial: bool = False) -> None:
        super().__init__(options, initial=initial)
        self._key_type = key_type

    def handleInputRows(self, key: tuple[Any, ...], rows: Iterable[Any], timerValues: Any) -> Iterator[Any]:  # noqa: ARG002
        if key[0] == ALL:
            self._check_options()
            return
        done = self._learn(key[0], chunks.rows_of(bytes(row.chunk) for row in rows))
        lines = chunks.outcome(done, self._key_type)
        if lines.num_rows:
            yield Row(chunk=chunks.write(lines))

    def _check_options(self) -> None:
        """A bucket that has no state yet could not notice other options, or another number of buckets."""
        held = self._held(ALL)
        if held is None:
            self._keep(0, Bucket(self._options).write())
        else:
            Bucket(self._options, held, "the checkpoint")


class TrackerProcessor(_Processor):
    """One key per group: for timers, and for keys that are to be forgotten.

    It takes several times as long for a key as a bucket does. Subclasses may have a ``handleExpiredTimer``, which
    has ``self.handle``.

    Parameters
    ----------
    tracker, alarm, n_features
        As for `track`.
    ttl
        Milliseconds after which a key that has had no rows is forgotten; None for never.
    seq, x, z, y
        The names of columns.

    Examples
    --------
    >>> from pyspark.sql.types import StringType
    >>> from ocelad.spark import output_schema
    >>> columns = "key STRING, seq BIGINT, x ARRAY<DOUBLE>, z ARRAY<DOUBLE>, y INT"
    >>> events = spark.readStream.schema(columns).parquet("comparisons")  # doctest: +SKIP
    >>> outcome = events.groupBy("key").transformWithState(
    ...     TrackerProcessor(ttl=86_400_000), output_schema(StringType()), "Append", "ProcessingTime"
    ... )  # doctest: +SKIP
    >>> outcome.isStreaming  # doctest: +SKIP
    True
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
        like = MetricTracker.rice() if tracker is None else tracker
        super().__init__(FleetOptions(like, alarm, n_features), ttl)
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
        of = np.full(len(given), -1 if key[0] is None else 0)
        done = self._learn(key[0], Rows([key[0]], of, numbers, u, labels, reasons))
        kind = pa.int64() if isinstance(key[0], int) else pa.string()
        yield from (Row(**line) for line in chunks.outcome(done, kind).to_pylist())
