"""A tracker for each of many users on Spark: files of comparisons in, predictions and alarms out.

    python examples/spark/users_job.py work --make     on a laptop: 1,000 users, whose notions jump
    spark-submit users_job.py work               on a cluster, where work is a folder that all machines see

Comparisons are Parquet files in work/in, of which there may be more at any time; predictions go to work/out, and
alarms to the terminal. Kill it whenever you like: started again, it goes on as if nothing had happened.
It needs ``pip install "ocelad[spark]"`` and Java 17 or later.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
from pathlib import Path

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # the workers' Python: that of this environment

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from ocelad import ChangeAlarm, MetricTracker
from ocelad.spark import track

USERS, N, ROWS = 1000, 8, 20

SETTINGS = {
    # states in RocksDB on local disk, not on Java's heap; transformWithState knows no other store
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    # a batch uploads what it has changed, not all of the store
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # like the number of buckets, fixed for the life of a checkpoint: a small multiple of the cores
    "spark.sql.shuffle.partitions": "4",
    # on a cluster, how often a task is tried before the query stops
    "spark.task.maxFailures": "4",
}
# Kernels are compiled once for each machine. Where workers cannot write to site-packages, say where to keep them:
# spark.executorEnv.NUMBA_CACHE_DIR=/a/local/folder, and run `ocelad warmup` there ahead of time.


def make_files(folder: Path, seconds: float) -> None:
    """A file of comparisons every so many seconds. User k changes in file 5 + k % 20."""
    while True:
        number = len(list(folder.glob("*.parquet")))
        rng = np.random.default_rng(number)
        user = rng.permutation(np.repeat(np.arange(USERS), ROWS))
        x, z = rng.normal(size=(2, len(user), N))
        at = np.where(number < 5 + user % 20, 0, N - 1)  # the feature that matters to a user now
        y = np.where(np.abs(x - z)[np.arange(len(user)), at] < 1, 1, -1)
        seq = np.arange(len(user)) + number * len(user)
        table = pa.table({"key": [f"user {k}" for k in user], "seq": seq, "x": list(x), "z": list(z), "y": y})
        pq.write_table(table, folder / ".next")
        os.rename(folder / ".next", folder / f"{number:06}.parquet")  # files appear whole
        time.sleep(seconds)


def keep(outcome: DataFrame, number: int, folder: str) -> None:
    """Write a batch where it belongs: if it is done again after a crash, it takes its own place."""
    outcome.persist()
    outcome.write.mode("overwrite").parquet(f"{folder}/out/batch={number}")
    wrong = outcome.where("NOT right").count() / max(1, outcome.where("right IS NOT NULL").count())
    found = outcome.where("alarm IS NOT NULL").select("key", "seq", "alarm")
    print(f"batch {number}: {outcome.count()} comparisons, {wrong:.1%} wrong, {found.count()} alarms", flush=True)
    found.orderBy("seq").show(5, truncate=False)
    outcome.where("rejected IS NOT NULL").groupBy("rejected").count().show(5, truncate=False)
    outcome.unpersist()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--make", action="store_true", help="make comparisons, too")
    parser.add_argument("--every", type=float, default=10.0, help="seconds between batches")
    parser.add_argument("--batches", type=int, help="end after so many")
    given = parser.parse_args()
    builder = SparkSession.builder.appName("ocelad")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    source = Path(given.folder).absolute() / "in"
    if given.make:
        source.mkdir(parents=True, exist_ok=True)
        threading.Thread(target=make_files, args=(source, given.every), daemon=True).start()
    columns = "key STRING, seq BIGINT, x ARRAY<DOUBLE>, z ARRAY<DOUBLE>, y BIGINT"
    events = spark.readStream.schema(columns).option("maxFilesPerTrigger", 10).parquet(str(source))
    outcome = track(events, tracker=MetricTracker.rice(), alarm=ChangeAlarm(), n_features=N, buckets=16)
    query = (
        outcome.writeStream.foreachBatch(lambda frame, number: keep(frame, number, given.folder))
        .option("checkpointLocation", f"{given.folder}/checkpoint")
        .trigger(processingTime=f"{given.every} seconds")
        .start()
    )
    done = 0
    while query.isActive and (given.batches is None or done < given.batches):
        query.awaitTermination(1)
        done = sum(progress["numInputRows"] > 0 for progress in query.recentProgress)
    query.stop()


if __name__ == "__main__":
    main()
