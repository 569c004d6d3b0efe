"""States of a fleet, a DataFrame of (bucket, version, t, blob): learned in batch, read from a checkpoint, asked.

A stream can begin with them, and they come out of Spark as `KeyedTrackers`.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Iterator
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, ByteType, DoubleType, IntegerType, LongType, StructField, StructType

from ..fleet import KeyedTrackers
from ..fleet.saved import with_records
from ..tracker import MetricTracker
from ..watch.alarms import ChangeAlarm
from .ascii_text import from_text
from .bucket import VERSION, Bucket
from .chunks import checked, rows_of, to_chunks, to_rows
from .learning import learn
from .options import FleetOptions
from .processors import STATE
from .rows import Rows, runs
from .stream import CHUNKS, number_of_buckets, with_bucket

States: TypeAlias = "DataFrame | str | os.PathLike[str]"
"""States, or the path of the checkpoint that they are in."""

SCHEMA = StructType(
    [
        StructField("bucket", IntegerType()),
        StructField("version", IntegerType()),
        StructField("t", LongType()),
        StructField("blob", BinaryType()),
    ]
)


def backfill(
    history: DataFrame,
    *,
    key: str = "key",
    seq: str = "seq",
    x: str = "x",
    z: str = "z",
    y: str = "y",
    tracker: MetricTracker | None = None,
    alarm: ChangeAlarm | None = None,
    n_features: int | None = None,
    buckets: int | None = None,
) -> DataFrame:
    """Learn a table of comparisons in batch: the states that `track` would have after them, bit for bit.

    Rows that cannot be learned from are left out. The rows of a bucket are in memory together: use more buckets
    for a longer history.

    Parameters
    ----------
    history
        A DataFrame that is not streaming.
    key, seq, x, z, y, tracker, alarm, n_features, buckets
        As for `track`, which must have the same to go on from here.

    Examples
    --------
    >>> history = spark.read.parquet("comparisons")  # doctest: +SKIP
    >>> learned = backfill(history, n_features=25, buckets=4)  # doctest: +SKIP
    >>> sum(row.t for row in learned.collect())  # doctest: +SKIP
    80
    """
    like = MetricTracker.rice() if tracker is None else tracker
    options = FleetOptions(like, alarm, n_features, number_of_buckets(buckets))
    _check_table(history, "history")

    def learned(group: tuple[Any, ...], table: pa.Table) -> pa.Table:
        bucket = group[0].as_py()
        done = learn(options, None, rows_of(table["chunk"].to_pylist()), f"bucket {bucket}")
        found = [] if done.blob is None else [dict(bucket=bucket, version=VERSION, t=done.t, blob=done.blob)]
        return pa.Table.from_pylist(found, TABLE)

    rows = with_bucket(history, (key, seq, x, z, y), options.buckets)
    return rows.mapInArrow(to_chunks, CHUNKS).groupBy("bucket").applyInArrow(learned, SCHEMA)


def _check_table(frame: DataFrame, name: str) -> None:
    if frame.isStreaming:
        raise ValueError(f"{name} must be a table, and is a stream")


TABLE = pa.schema([("bucket", pa.int32()), ("version", pa.int32()), ("t", pa.int64()), ("blob", pa.binary())])


def read_states(spark: SparkSession, checkpoint: str) -> DataFrame:
    """The states in the checkpoint of a query with `track`, after its latest batch: for ``initial`` of another.

    >>> read_states(spark, "checkpoint").columns  # doctest: +SKIP
    ['bucket', 'version', 't', 'blob']
    """
    frame = spark.read.format("statestore").option("stateVarName", STATE).load(checkpoint)
    group = frame.schema["key"].dataType.fieldNames()[0]  # the bucket, or with `TrackerProcessor` the key
    value = "value.value" if "ttlExpirationMs" in frame.schema["value"].dataType.fieldNames() else "value"
    columns = [f"{value}.{name}" for name in ("version", "t", "blob")]
    texts = frame.select(F.col(f"key.{group}").alias("bucket"), *columns).where("t > 0")  # one has no keys
    return texts.mapInArrow(_in_bytes, StructType([texts.schema["bucket"], *SCHEMA.fields[1:]]))


def _in_bytes(batches: Iterable[Any]) -> Iterator[Any]:
    """States with their blobs as bytes."""
    for batch in batches:
        blobs = pa.array([from_text(text) for text in batch["blob"].to_pylist()], pa.binary())
        yield batch.set_column(batch.schema.get_field_index("blob"), "blob", blobs)


def states(checkpoint: States) -> KeyedTrackers:
    """The trackers of a checkpoint, out of Spark; all of them come to this process. Alarms stay behind.

    Parameters
    ----------
    checkpoint
        Its path, or states, all or some of them, from `backfill` or `read_states`.

    Examples
    --------
    >>> trackers = states("checkpoint")  # doctest: +SKIP
    >>> sorted(trackers), trackers["ann"].n_features_in_  # doctest: +SKIP
    (['ann', 'bob'], 25)
    """
    records: dict[Hashable, bytes] = {}
    options, n = None, 0
    for bucket in _buckets(checkpoint):
        if twice := records.keys() & bucket.index.keys():
            raise ValueError(f"there are two states of key {min(twice, key=str)!r}")
        records |= {key: bytes(bucket.records[code]) for key, code in bucket.index.items()}
        options, n = bucket.options, bucket.n_features or n
    return with_records(KeyedTrackers(None if options is None else options.tracker), records, n)


def last_seqs(checkpoint: States) -> dict[Hashable, int]:
    """The last ``seq`` that each key of a checkpoint, or of states, has learned: what `from_trackers` asks for.

    >>> sorted(last_seqs("checkpoint").items())  # doctest: +SKIP
    [('ann', 39), ('bob', 39)]
    """
    return {
        key: last
        for bucket in _buckets(checkpoint)
        for key, last in zip(bucket.index, bucket.counts[:, 0].tolist(), strict=True)
    }


def _buckets(checkpoint: States) -> Iterator[Bucket]:
    options = None
    for row in frame_of(checkpoint).toLocalIterator():
        bucket = Bucket(options, bytes(row.blob), f"bucket {row.bucket!r}")
        options = bucket.options
        yield bucket


def frame_of(found: States) -> DataFrame:
    """States, or those of a checkpoint."""
    if isinstance(found, DataFrame):
        return found
    if not isinstance(found, (str, os.PathLike)):
        raise TypeError(f"states must be a DataFrame or the path of a checkpoint, got {found!r}")
    return read_states(SparkSession.active(), os.fspath(found))


def one_of(frame: DataFrame) -> Bucket:
    """Any of the buckets: all have the same options."""
    row = frame.select("bucket", "blob").head()
    if row is None:
        raise ValueError("there are no states")
    return Bucket(None, bytes(row.blob), f"bucket {row.bucket!r}")


def score(
    pairs: DataFrame,
    states: States | KeyedTrackers,
    *,
    key: str = "key",
    seq: str = "seq",
    x: str = "x",
    z: str = "z",
) -> DataFrame:
    """Judge pairs by trackers that do not change: key, seq, distance, probability and predicted of each.

    Of a key that has learned nothing, and of a pair that is not in order, all three are null.

    Parameters
    ----------
    pairs
        A DataFrame that is not streaming, with columns as `track` has, but for labels; ``seq`` may be any number
        by which rows are told apart.
    states
        The path of a checkpoint; states, from `backfill` or `read_states`; or the trackers of one process.

    Examples
    --------
    >>> judged = score(spark.read.parquet("comparisons"), "checkpoint")  # doctest: +SKIP
    >>> judged.columns  # doctest: +SKIP
    ['key', 'seq', 'distance', 'probability', 'predicted']
    """
    if isinstance(states, KeyedTrackers):
        from .exchange import from_trackers  # which imports this file

        states = from_trackers(pairs.sparkSession, states, dict.fromkeys(states, 0))
    frame = frame_of(states)
    _check_table(pairs, "pairs")
    buckets = one_of(frame).options.buckets
    if not buckets:
        raise ValueError("states must be of buckets, and these are of single keys: give score states(...) of them")

    def judged(group: tuple[Any, ...], rows: pa.Table, held: pa.Table) -> pa.Table:
        distance, probability, predicted = (np.full(rows.num_rows, np.nan) for _ in range(3))
        if held.num_rows > 1:
            raise ValueError(f"there are two states of bucket {group[0].as_py()}")
        if held.num_rows and rows.num_rows:
            given = to_rows(checked(rows.append_column("y", pa.array(np.ones(rows.num_rows)))))
            bucket = Bucket(None, held["blob"][0].as_py(), f"bucket {group[0].as_py()}")
            for key, at, u in _groups(given, bucket):
                far, limit, odds = bucket.tracker(key)._judge(u)
                distance[at], probability[at] = far, 0.5 + 0.5 * np.tanh(0.5 * odds)
                predicted[at] = np.where(far <= limit, 1, -1)
        columns = {"distance": distance, "probability": probability, "predicted": predicted}
        kinds = {"distance": pa.float64(), "probability": pa.float64(), "predicted": pa.int8()}
        judgements = {name: pa.array(c, from_pandas=True).cast(kinds[name]) for name, c in columns.items()}
        return pa.table({"key": rows["key"], "seq": rows["seq"], **judgements})

    rows = with_bucket(pairs, (key, seq, x, z), buckets)
    kinds = {"distance": DoubleType(), "probability": DoubleType(), "predicted": ByteType()}
    fields = [rows.schema["key"], rows.schema["seq"], *[StructField(name, kind) for name, kind in kinds.items()]]
    return rows.groupBy("bucket").cogroup(frame.groupBy("bucket")).applyInArrow(judged, StructType(fields))


def _groups(rows: Rows, bucket: Bucket) -> Iterator[tuple[Hashable, Any, Any]]:
    """The good rows of each key that the bucket has: the key, which they are, and their differences."""
    good = np.flatnonzero((rows.reasons == None) & (rows.u.lengths == bucket.n_features))  # noqa: E711
    good = good[np.argsort(rows.of[good], kind="stable")]
    for number, run in runs(rows.of[good]):
        if rows.keys[number] in bucket.index:
            yield rows.keys[number], good[run], rows.u.dense(good[run], bucket.n_features or 0)
