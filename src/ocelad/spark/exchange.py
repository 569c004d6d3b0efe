"""Trackers back into states: from a fleet of one process, or into another number of buckets.

A row for each key, (key, last seq, t, record, alarm), finds its bucket by Spark's own hash. So the type that keys
have in the stream has to be told: 1 as an int and 1 as a bigint are in different buckets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ..fleet import KeyedTrackers
from ..fleet.saved import n_features
from ..state.header import to_json
from ..tracker import MetricTracker
from ..watch.alarms import ChangeAlarm
from .bucket import VERSION, Bucket
from .options import FleetOptions
from .stored import SCHEMA, TABLE
from .stream import count

ROWS = "key {key}, last BIGINT, t BIGINT, record BINARY, alarm BINARY"


def from_trackers(
    spark: SparkSession,
    fleet: KeyedTrackers,
    last: Mapping[Any, int],
    *,
    key_type: str = "string",
    alarm: ChangeAlarm | None = None,
    buckets: int | None = None,
) -> DataFrame:
    """States of the trackers of one process, for a stream to begin with: what `states` gives, and back.

    Parameters
    ----------
    spark
        A session.
    fleet
        Trackers, without histories. All of them go through this process.
    last
        The last ``seq`` that each key has learned.
    key_type
        The type of keys in the stream, as Spark calls it.
    alarm, buckets
        As for `track`. Alarms begin anew.
    """
    if fleet.history is not None or fleet.prior is not None:
        raise ValueError("fleet must have no histories and no prior: states have none")
    options = FleetOptions(fleet.tracker, alarm, n_features(fleet) or None, count(buckets))
    begun = b"" if alarm is None else to_json(alarm.state())
    records = [(key, fleet._packed(key)) for key in fleet]
    rows = [
        dict(key=key, last=last[key], t=fleet[key]._fitted().t, record=record, alarm=begun)
        for key, record in records
    ]
    return _gathered(spark.createDataFrame(rows, ROWS.format(key=key_type)), options)


def rebucket(
    frame: DataFrame,
    buckets: int,
    *,
    key_type: str = "string",
    tracker: MetricTracker | None = None,
    alarm: ChangeAlarm | None = None,
    was: int | None = None,
) -> DataFrame:
    """The same states in another number of buckets, for a new checkpoint.

    Parameters
    ----------
    frame
        States, as from `read_states`.
    buckets
        How many there are to be.
    key_type
        The type of keys in the stream, as Spark calls it.
    tracker, alarm
        As they were for `track`.
    was
        How many buckets there are.
    """
    options = FleetOptions(tracker or MetricTracker.rice(), alarm, None, count(was))

    def rows(batches: Iterable[Any]) -> Iterator[Any]:
        for batch in batches:
            for number, blob in zip(batch["bucket"].to_pylist(), batch["blob"].to_pylist(), strict=True):
                bucket = Bucket(options, blob, f"bucket {number}")
                columns = {
                    "key": list(bucket.index),
                    "last": bucket.counts[:, 0],
                    "t": bucket.counts[:, 1],
                    "record": [bytes(record) for record in bucket.records],
                    "alarm": [bytes(state) for state in bucket.alarms],
                }
                yield pa.RecordBatch.from_pydict(columns)

    found = frame.select("bucket", "blob").mapInArrow(rows, ROWS.format(key=_stored(key_type)))
    return _gathered(
        found.withColumn("key", F.col("key").cast(key_type)), replace(options, buckets=count(buckets))
    )


def _stored(key_type: str) -> str:
    """The type of the same keys in a bucket."""
    return "string" if key_type == "string" else "bigint"


def _gathered(rows: DataFrame, options: FleetOptions) -> DataFrame:
    def bucket(group: tuple[Any, ...], table: pa.Table) -> pa.Table:
        made = Bucket(options, name=f"bucket {group[0].as_py()}")
        for row in table.sort_by("key").to_pylist():
            made.add(row["key"], (row["last"], row["t"]), row["record"], row["alarm"])
        line = dict(bucket=group[0].as_py(), version=VERSION, t=made.t, blob=made.write())
        return pa.Table.from_pylist([line], TABLE)

    number = F.pmod(F.xxhash64(F.col("key")), F.lit(options.buckets)).cast("int")
    return rows.withColumn("bucket", number).groupBy("bucket").applyInArrow(bucket, SCHEMA)
