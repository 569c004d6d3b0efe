"""`track`: a stream of comparisons in, a line for each out, predicted before it was learned."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DoubleType,
    IntegerType,
    IntegralType,
    LongType,
    NumericType,
    StringType,
    StructField,
    StructType,
)

from .. import validation as validate
from ..tracker import MetricTracker
from ..watch.alarms import ChangeAlarm
from .chunks import from_chunks, to_chunks
from .options import BUCKETS, FleetOptions
from .processors import ALL, BucketProcessor
from .settings import check_settings

CHUNKS = StructType([StructField("bucket", IntegerType()), StructField("chunk", BinaryType())])
ANSWERS = StructType([StructField("chunk", BinaryType())])


def output_schema(key: Any) -> Any:
    """The columns of `track`, for keys of this type.

    >>> output_schema(StringType()).fieldNames()[:4]
    ['key', 'seq', 'distance', 'threshold']
    """
    columns = {
        "key": key,
        "seq": LongType(),
        "distance": DoubleType(),
        "threshold": DoubleType(),
        "probability": DoubleType(),
        "predicted": ByteType(),
        "right": BooleanType(),
        "alarm": StringType(),
        "rejected": StringType(),
    }
    return StructType([StructField(name, kind) for name, kind in columns.items()])


def track(
    events: DataFrame,
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
    initial: DataFrame | None = None,
) -> DataFrame:
    """Learn a stream of comparisons by a tracker for each key, on Spark; exactly once, whatever fails.

    The session needs `SETTINGS`.

    The outcome is a DataFrame with a row for each that was learned: key, seq, distance, threshold, probability,
    predicted and right, as they were just before, and alarm, "jump" or "drift" where there is one. A row that
    cannot be learned from has nothing but its reason, in ``rejected``. A row with a seq that is not above the last
    one learned by its key is dropped: it has come before, or too late. How many were is said in ``rejected``, once
    for each bucket and batch, without key and seq.

    Parameters
    ----------
    events
        A streaming DataFrame.
    key
        The column of keys: strings or whole numbers.
    seq
        The column of whole numbers that order the rows of a key, each of which has another one.
    x, z, y
        The columns of points, arrays of numbers, and of labels, +1 and -1.
    tracker
        What the tracker of each key is like; by default ``MetricTracker.rice()``, as in `KeyedTrackers`.
    alarm
        A `ChangeAlarm` of which each key has a copy. It is told every comparison, which takes as long as learning.
    n_features
        The length of x and z; None for that of most rows when a bucket begins.
    buckets
        The number of states that keys are divided among; by default 256. For the life of a checkpoint.
    initial
        States to begin with where there is no checkpoint, from `backfill` or `read_states`, with the same options.

    Examples
    --------
    >>> columns = "key STRING, seq BIGINT, x ARRAY<DOUBLE>, z ARRAY<DOUBLE>, y INT"
    >>> events = spark.readStream.schema(columns).parquet("comparisons")  # doctest: +SKIP
    >>> outcome = track(events, n_features=25)  # doctest: +SKIP
    >>> outcome.isStreaming, outcome.columns[:4]  # doctest: +SKIP
    (True, ['key', 'seq', 'distance', 'threshold'])
    """
    like = MetricTracker.rice() if tracker is None else tracker
    options = FleetOptions(like, alarm, n_features, number_of_buckets(buckets))
    check_settings(events.sparkSession)
    rows = with_bucket(events, (key, seq, x, z, y), options.buckets)
    kind = events.schema[key].dataType
    answers = (
        rows.mapInArrow(_to_chunks, CHUNKS)
        .groupBy("bucket")
        .transformWithState(
            BucketProcessor(options, to_arrow_type(kind), initial is not None),
            ANSWERS,
            "Append",
            "None",
            None if initial is None else initial.groupBy("bucket"),
        )
    )
    return answers.mapInArrow(from_chunks, output_schema(kind))


def number_of_buckets(buckets: int | None) -> int:
    """What is given, if there can be so many, or the usual number."""
    return BUCKETS if buckets is None else validate.integer(buckets, "buckets")


def _to_chunks(batches: Iterable[Any]) -> Iterator[Any]:
    """`to_chunks`, and a row for the bucket that says how all have begun."""
    some = False
    for chunks in to_chunks(batches):
        some = True
        yield chunks
    if some:
        yield pa.record_batch([pa.array([ALL], pa.int32()), pa.array([b""], pa.binary())], ["bucket", "chunk"])


def with_bucket(events: DataFrame, names: tuple[str, ...], buckets: int) -> DataFrame:
    """The columns that are needed, under their usual names, if they are of types that can be."""
    kinds = {name: _kind(events, name) for name in names}
    key, seq, x, z, *rest = names
    if not isinstance(kinds[key], (StringType, IntegralType)):
        raise TypeError(
            f"keys must be strings or whole numbers, and column {key!r} is of type {kinds[key].simpleString()}: "
            "cast it to a string"
        )
    if not isinstance(kinds[seq], IntegralType):
        raise TypeError(
            f"column {seq!r} must have whole numbers, and is of type {kinds[seq].simpleString()}: of a timestamp "
            "take unix_micros"
        )
    for name in (x, z):
        if not (isinstance(kinds[name], ArrayType) and isinstance(kinds[name].elementType, NumericType)):
            raise TypeError(f"column {name!r} must have arrays of numbers, and is {kinds[name].simpleString()}")
    for name in rest:
        if not isinstance(kinds[name], NumericType):
            raise TypeError(f"column {name!r} must have labels 1 and -1, and is {kinds[name].simpleString()}")
    numbers = [F.col(name).cast("array<double>").alias(usual) for name, usual in ((x, "x"), (z, "z"))]
    labels = [F.col(name).cast("double").alias("y") for name in rest]
    bucket = bucket_of(key, buckets).alias("bucket")
    return events.select(bucket, F.col(key).alias("key"), F.col(seq).cast("long").alias("seq"), *numbers, *labels)


def bucket_of(key: str, buckets: int) -> Any:
    """The bucket of each key: of 7 that of "7", so that a column that changes its type is noticed there."""
    return F.pmod(F.xxhash64(F.col(key).cast("string")), F.lit(buckets)).cast("int")


def _kind(events: DataFrame, name: str) -> Any:
    if name not in events.columns:
        raise ValueError(f"there is no column {name!r}: the columns are {', '.join(events.columns)}")
    return events.schema[name].dataType
