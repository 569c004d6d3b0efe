"""Trackers back into states: from a fleet of one process, or into another number of buckets.

A row for each key, (key, last seq, t, record, alarm), finds its bucket by Spark's own hash.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from ..fleet import KeyedTrackers
from ..fleet.saved import n_features
from ..state.header import to_json
from ..watch.alarms import ChangeAlarm
from .bucket import VERSION, Bucket
from .options import FleetOptions
from .stored import SCHEMA, TABLE, States, frame_of, one_of
from .stream import bucket_of, number_of_buckets

ROWS = "key {key}, last BIGINT, t BIGINT, record BINARY, alarm BINARY"


def from_trackers(
    spark: SparkSession,
    fleet: KeyedTrackers,
    last: Mapping[Any, int],
    *,
    alarm: ChangeAlarm | None = None,
    buckets: int | None = None,
) -> DataFrame:
    """States of the trackers of one process, for a stream to begin with: what `states` gives, and back.

    Parameters
    ----------
    spark
        A session.
    fleet
        Trackers, without histories, of keys that are strings or whole numbers. All of them go through
        this process.
    last
        The last ``seq`` that each key has learned: the stream drops what is not above it.
    alarm, buckets
        As for `track`. Alarms begin anew.

    Examples
    --------
    >>> trackers = states("checkpoint")  # doctest: +SKIP
    >>> back = from_trackers(spark, trackers, last_seqs("checkpoint"))  # doctest: +SKIP
    >>> back.columns  # doctest: +SKIP
    ['bucket', 'version', 't', 'blob']
    """
    if fleet.history is not None or fleet.prior is not None:
        raise ValueError("fleet must have no histories and no prior: states have none")
    options = FleetOptions(fleet.tracker, alarm, n_features(fleet) or None, number_of_buckets(buckets))
    if missing := [key for key in fleet if key not in last]:
        raise ValueError(f"last must have the last seq of every key, and has none for {missing[0]!r}")
    begun = b"" if alarm is None else to_json(alarm.state())
    rows = [
        dict(
            key=_plain(key),
            last=int(last[key]),
            t=fleet[key]._fitted().t,
            record=fleet._packed(key),
            alarm=begun,
        )
        for key in fleet
    ]
    if len({type(row["key"]) for row in rows}) > 1:
        raise ValueError("fleet must have keys of one type, and has strings and whole numbers")
    kind = _kind(rows[0]["key"]) if rows else "string"
    return _gathered(spark.createDataFrame(rows, ROWS.format(key=kind)), options)


def rebucket(states: States, buckets: int) -> DataFrame:
    """The same states in another number of buckets, for ``initial`` of a new checkpoint.

    Parameters
    ----------
    states
        The path of a checkpoint, or states.
    buckets
        How many there are to be.

    Examples
    --------
    >>> few = rebucket("checkpoint", 2)  # doctest: +SKIP
    >>> few.columns  # doctest: +SKIP
    ['bucket', 'version', 't', 'blob']
    """
    frame = frame_of(states)
    one = one_of(frame)

    def rows(batches: Iterable[Any]) -> Iterator[Any]:
        for batch in batches:
            for number, blob in zip(batch["bucket"].to_pylist(), batch["blob"].to_pylist(), strict=True):
                bucket = Bucket(one.options, blob, f"bucket {number}")
                columns = {
                    "key": list(bucket.index),
                    "last": bucket.counts[:, 0],
                    "t": bucket.counts[:, 1],
                    "record": [bytes(record) for record in bucket.records],
                    "alarm": [bytes(state) for state in bucket.alarms],
                }
                yield pa.RecordBatch.from_pydict(columns)

    kind = ROWS.format(key=_kind(next(iter(one.index))))
    options = replace(one.options, buckets=number_of_buckets(buckets))
    return _gathered(frame.select("bucket", "blob").mapInArrow(rows, kind), options)


def _plain(key: Any) -> str | int:
    if isinstance(key, (int, np.integer)) and not isinstance(key, bool):
        return int(key)
    if not isinstance(key, str):
        raise ValueError(f"fleet must have keys that are strings or whole numbers, got {key!r}")
    return str(key)


def _kind(key: Any) -> str:
    """The type of such keys, as Spark calls it."""
    return "string" if isinstance(key, str) else "bigint"


def _gathered(rows: DataFrame, options: FleetOptions) -> DataFrame:
    def bucket(group: tuple[Any, ...], table: pa.Table) -> pa.Table:
        made = Bucket(options, name=f"bucket {group[0].as_py()}")
        for row in table.sort_by("key").to_pylist():
            made.add(row["key"], (row["last"], row["t"]), row["record"], row["alarm"])
        line = dict(bucket=group[0].as_py(), version=VERSION, t=made.t, blob=made.write())
        return pa.Table.from_pylist([line], TABLE)

    return (
        rows.withColumn("bucket", bucket_of("key", options.buckets)).groupBy("bucket").applyInArrow(bucket, SCHEMA)
    )
