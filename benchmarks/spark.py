"""A fleet on Spark against `KeyedTrackers` in one process: comparisons per CPU second of all processes.

    python benchmarks/spark.py [--keys 10000] [--rows 10] [--tracker rice|pool] [--batches 4] [--backfill]

Every batch has so many rows of each key, in any order. The first batches make Java and the kernels warm; the last
one counts. With ``--backfill`` a history is learned in batch, twice, and the second time counts. Needs Java.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # before Spark is imported

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from ocelad import KeyedTrackers, MetricTracker
from ocelad.spark import SETTINGS, backfill, read_states, track

N = 25
TICK = os.sysconf("SC_CLK_TCK")


def cpu() -> float:
    """CPU seconds of this process and of all that it has started, living or ended."""
    parents, times = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text(encoding="utf-8").rpartition(")")[2].split()
        except OSError:
            continue
        pid = int(path.parent.name)
        parents[pid], times[pid] = int(fields[1]), sum(map(int, fields[11:15])) / TICK
    mine = {os.getpid()}
    while True:
        more = {pid for pid, parent in parents.items() if parent in mine} - mine
        if not more:
            return sum(times[pid] for pid in mine if pid in times)
        mine |= more


def memory() -> float:
    """Bytes of this process and of all that it has started, as far as they are not shared."""
    total, mine = 0.0, {os.getpid()}
    for _ in range(4):
        for path in Path("/proc").glob("[0-9]*/stat"):
            try:
                parent = int(path.read_text(encoding="utf-8").rpartition(")")[2].split()[1])
            except OSError:
                continue
            if parent in mine:
                mine.add(int(path.parent.name))
    for pid in mine:
        try:
            resident, shared = map(int, Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1:3])
        except OSError:
            continue
        total += (resident - shared) * os.sysconf("SC_PAGE_SIZE")
    return total


def batch(rng: np.random.Generator, keys: int, rows: int, number: int) -> tuple[Any, Any, Any, Any]:
    """Keys, numbers, pairs and labels; three features matter."""
    which = rng.permutation(np.repeat(np.arange(keys), rows))
    seq = np.arange(len(which)) + number * len(which)
    pairs = rng.normal(size=(len(which), 2, N))
    square = np.square(pairs[:, 0, :3] - pairs[:, 1, :3]).sum(axis=1)
    return which, seq, pairs, np.where(square < 4.7, 1, -1)


def table(which: Any, seq: Any, pairs: Any, y: Any) -> pa.Table:
    lists = [pa.FixedSizeListArray.from_arrays(pairs[:, side].ravel(), N) for side in (0, 1)]
    x, z = (column.cast(pa.list_(pa.float64())) for column in lists)
    return pa.table({"key": [f"user {k}" for k in which], "seq": seq, "x": x, "z": z, "y": y})


def session(folder: str) -> SparkSession:
    builder = SparkSession.builder.master("local[2]")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.local.dir": f"{folder}/local",
        "spark.driver.memory": "2g",
        "spark.driver.extraJavaOptions": "-XX:+UseParallelGC",  # G1 marks what is old all the time
        **SETTINGS,
    }.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def stream(spark: SparkSession, folder: str, given: argparse.Namespace, tracker: MetricTracker) -> None:
    rng, source = np.random.default_rng(0), Path(folder) / "in"
    source.mkdir()
    fleet, m, query = KeyedTrackers(tracker, threads=1), given.keys * given.rows, None
    for number in range(given.batches):
        rows = batch(rng, given.keys, given.rows, number)
        pq.write_table(table(*rows), f"{folder}/next")
        os.rename(f"{folder}/next", source / f"{number}.parquet")
        if query is None:
            schema = spark.read.parquet(str(source)).schema
            events = spark.readStream.schema(schema).parquet(str(source))
            outcome = track(events, tracker=tracker, n_features=N, buckets=given.buckets)
            writer = outcome.writeStream.format("noop").option("checkpointLocation", f"{folder}/checkpoint")
            query = writer.start()
        before, start = cpu(), time.perf_counter()
        query.processAllAvailable()
        used, took = cpu() - before, time.perf_counter() - start
        before = time.process_time()
        if not given.alone:
            fleet.partial_fit(rows[0], rows[2], rows[3])
        alone = time.process_time() - before
        print(
            f"batch {number}: {m} comparisons, {took:.1f} s; {used:.2f} CPU s on Spark, "
            f"{1e6 * used / given.keys:.0f} us a key, {memory() / 1e9:.2f} GB; {alone:.2f} by KeyedTrackers: "
            f"a share of {alone / used:.2f}",
            flush=True,
        )
    assert query is not None
    query.stop()
    written = sum(path.stat().st_size for path in Path(folder, "checkpoint", "state").rglob("*") if path.is_file())
    print(f"checkpoint: {written / given.batches / 1e6:.1f} MB a batch")
    states = read_states(spark, f"{folder}/checkpoint").selectExpr("sum(length(blob))", "count(*)").collect()[0]
    print(f"states: {states[0] / given.keys / 1e3:.1f} kB a key, in {states[1]} buckets")


def history(spark: SparkSession, folder: str, given: argparse.Namespace, tracker: MetricTracker) -> None:
    rows = batch(np.random.default_rng(0), given.keys, given.rows, 0)
    pq.write_table(table(*rows), f"{folder}/history", row_group_size=len(rows[0]) // 4)
    for number in range(given.batches):
        before = cpu()
        frame = spark.read.parquet(f"{folder}/history")
        learned = backfill(frame, tracker=tracker, n_features=N, buckets=given.buckets)
        learned.write.format("noop").mode("append").save()
        used, before = cpu() - before, time.process_time()
        KeyedTrackers(tracker, threads=1).partial_fit(rows[0], rows[2], rows[3])
        alone = time.process_time() - before
        print(f"backfill {number}: {used:.2f} CPU s on Spark, {alone:.2f} alone: a share of {alone / used:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=10_000)
    parser.add_argument("--rows", type=int, default=10)
    parser.add_argument("--batches", type=int, default=4)
    parser.add_argument("--buckets", type=int, default=32)
    parser.add_argument("--tracker", choices=["rice", "pool"], default="rice")
    parser.add_argument("--backfill", action="store_true")
    parser.add_argument(
        "--alone", action="store_true", help="without KeyedTrackers, whose memory is none of Spark's"
    )
    given = parser.parse_args()
    tracker = MetricTracker.rice() if given.tracker == "rice" else MetricTracker(memory=256)
    warm = np.ones((1, 2, N))
    KeyedTrackers(tracker).partial_fit(["a"], warm, [1])
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        spark = session(folder)
        (history if given.backfill else stream)(spark, folder, given, tracker)
        spark.stop()


if __name__ == "__main__":
    main()
