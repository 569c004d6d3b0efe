"""Chunks: many rows as one value, so that Spark moves few large ones.

Spark takes tens of microseconds for each row that it sorts, moves and hands to Python. So the rows of a partition
are checked and gathered by bucket where they are read, and sent as tables in Arrow's format, one for each bucket;
what a bucket answers comes back in the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..protocols import Array
from .learning import Outcome
from .rows import Ragged, Rows, check
from .worker import prepare_worker

GATHERED = 2**23
"""Bytes of rows that are gathered in memory before chunks are sent."""


def to_chunks(batches: Iterable[Any]) -> Iterator[Any]:
    """Batches of bucket, key, seq, x, z and y, as batches of bucket and chunk."""
    waiting: list[Any] = []
    prepare_worker()
    for batch in batches:
        waiting.append(checked(pa.Table.from_batches([batch])))
        if sum(each.nbytes for each in waiting) > GATHERED:
            yield _by_bucket(waiting)
            waiting = []
    if any(table.num_rows for table in waiting):
        yield _by_bucket(waiting)


def _by_bucket(tables: list[Any]) -> Any:
    table = pa.concat_tables(tables)
    order = np.argsort(table["bucket"].to_numpy(), kind="stable")
    table = table.take(pa.array(order))
    buckets = table["bucket"].to_numpy()
    starts = np.flatnonzero(np.diff(buckets, prepend=-1))
    rows = table.drop_columns(["bucket"]).combine_chunks()
    chunks = [_chunk(rows.slice(a, b - a)) for a, b in zip(starts, [*starts[1:], len(buckets)], strict=True)]
    return pa.record_batch(
        [pa.array(buckets[starts], pa.int32()), pa.array(chunks, pa.binary())], ["bucket", "chunk"]
    )


def _chunk(rows: Any) -> bytes:
    """Rows, with every key once."""
    place = rows.schema.get_field_index("key")
    return write(rows.set_column(place, "key", rows["key"].dictionary_encode()))


def checked(table: Any) -> Any:
    """The differences in place of points, and the reasons of rows that cannot be learned from."""
    table = table.combine_chunks()
    no_key, no_seq = (_null(table[name]) for name in ("key", "seq"))
    y = table["y"].cast(pa.float64()).to_numpy()
    u, reasons = check(no_key, no_seq, ragged(table["x"]), ragged(table["z"]), y)
    offsets = np.append(u.starts, len(u.values))
    lists = pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), pa.array(u.values))
    columns = {
        "bucket": table["bucket"],
        "key": table["key"],
        "seq": pc.fill_null(table["seq"].cast(pa.int64()), 0),
        "u": lists,
        "y": pa.array(y),
        "reason": pa.array(reasons, pa.string()),
    }
    return pa.table(columns)


def _null(column: Any) -> Any:
    return column.is_null().to_numpy()


def _one_array(column: Any) -> Any:
    """A column that may be in several pieces, in one."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def ragged(column: Any) -> Ragged:
    """Lists of numbers of any type; nulls among the numbers become NaN."""
    array = _one_array(column)
    lengths = pc.fill_null(pc.list_value_length(array), -1).to_numpy(zero_copy_only=False)
    values = array.flatten().cast(pa.float64())
    return Ragged(values.to_numpy(zero_copy_only=False), lengths.astype(np.int64))


def rows_of(chunks: Iterable[bytes]) -> Rows:
    """The rows of all chunks that a bucket has been sent."""
    return Rows.joined([to_rows(read(chunk)) for chunk in chunks])


def to_rows(table: Any) -> Rows:
    """Of a table that `checked` has made."""
    reasons = np.full(table.num_rows, None, dtype=object)
    if table["reason"].null_count < table.num_rows:
        reasons[:] = table["reason"].to_pylist()
    keys = table["key"] if pa.types.is_dictionary(table["key"].type) else table["key"].dictionary_encode()
    keys = _one_array(keys.unify_dictionaries())
    of = pc.fill_null(keys.indices, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    numbers: Array = table["y"].to_numpy()
    return Rows(keys.dictionary.to_pylist(), of, table["seq"].to_numpy(), ragged(table["u"]), numbers, reasons)


DROPPED = "dropped: seq not above the last one that the key has learned"
"""What is said of rows that came again, or too late, after their number."""


def outcome(done: Outcome, key_type: Any) -> Any:
    """A table with a line for each row that was learned, for each that was refused, and for all that were
    dropped."""
    learned, refused = done.learned, done.refused
    if done.dropped:
        refused = [*refused, (None, None, f"{done.dropped} {DROPPED}")]
    nothing: list[None] = [None] * len(refused)
    keys = pa.array(learned.names, key_type).take(pa.array(learned.of))
    seq = pa.array(learned.seq, pa.int64())

    def column(values: Any, kind: Any) -> Any:
        good = pa.array(values, kind)
        return pa.concat_arrays([good, pa.array(nothing, kind)]) if nothing else good

    return pa.table(
        {
            "key": pa.concat_arrays([keys, pa.array([line[0] for line in refused], key_type)]),
            "seq": pa.concat_arrays([seq, pa.array([line[1] for line in refused], pa.int64())]),
            "distance": column(learned.distance, pa.float64()),
            "threshold": column(learned.threshold, pa.float64()),
            "probability": column(learned.probability, pa.float64()),
            "predicted": column(learned.predicted, pa.int8()),
            "right": column(learned.right, pa.bool_()),
            "alarm": column(learned.alarm, pa.string()),
            "rejected": pa.array([None] * len(learned.seq) + [line[2] for line in refused], pa.string()),
        }
    )


def from_chunks(batches: Iterable[Any]) -> Iterator[Any]:
    """Batches of chunks, as batches of the lines in them."""
    prepare_worker()
    for batch in batches:
        tables = [read(chunk.as_py()) for chunk in batch["chunk"]]
        if tables:
            yield from pa.concat_tables(tables).combine_chunks().to_batches()


def write(table: Any) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def read(chunk: bytes) -> Any:
    return pa.ipc.open_stream(pa.py_buffer(chunk)).read_all()
