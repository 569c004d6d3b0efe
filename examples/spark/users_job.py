"""A tracker for each of many users on Spark: files of comparisons in, predictions and alarms out.

    ocelad spark-demo demo                                        makes files to try it with
    spark-submit examples/spark/users_job.py demo/in work         on a laptop
    spark-submit --master ... users_job.py s3a://bucket/comparisons s3a://bucket/work

Comparisons are Parquet files in the first folder, of which there may be more at any time. Predictions go to out in
the second one, alarms and bad rows to the terminal. Kill it whenever you like: started again, it goes on as if
nothing had happened. It needs ``pip install ".[spark]"`` in a clone, on all machines, and Java 17 or later.
"""

from __future__ import annotations

import argparse
import os
import sys

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # the workers' Python; on a cluster, its path there

from pyspark import SparkConf
from pyspark.sql import DataFrame, SparkSession

import ocelad.spark
from ocelad import ChangeAlarm, MetricTracker

SETTINGS = {
    # spark.sql.streaming.stateStore.providerClass: states in RocksDB on local disk, not on Java's heap
    # spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled: a batch uploads what it has changed
    # spark.sql.execution.arrow.maxBytesPerBatch: rows go to Python 10,000 at a time, and are not measured before
    **ocelad.spark.SETTINGS,
    # like the number of buckets, fixed for the life of a checkpoint: a small multiple of the cores
    "spark.sql.shuffle.partitions": "4",
    # on a cluster, how often a task is tried before the query stops
    "spark.task.maxFailures": "4",
    # batches can wait for a collection of garbage; the driver is told by spark-submit --driver-java-options
    "spark.executor.extraJavaOptions": "-XX:+UseParallelGC",
    # kernels are compiled once for each machine, and kept here: run `ocelad warmup` with it ahead of time
    # "spark.executorEnv.NUMBA_CACHE_DIR": "/a/local/folder",
}
COLUMNS = "key STRING, seq BIGINT, x ARRAY<DOUBLE>, z ARRAY<DOUBLE>, y BIGINT"


def keep(outcome: DataFrame, number: int, folder: str) -> None:
    """Write a batch where it belongs: if it is done again after a crash, it takes its own place."""
    place = f"{folder}/out/batch={number}"
    outcome.write.mode("overwrite").parquet(place)
    written = outcome.sparkSession.read.parquet(place)
    print(f"batch {number}: {written.where('rejected IS NULL').count()} comparisons", flush=True)
    written.where("alarm IS NOT NULL OR rejected IS NOT NULL").select("key", "seq", "alarm", "rejected").show(
        5, False
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("comparisons", help="folder of Parquet files")
    parser.add_argument("folder", help="where to write")
    parser.add_argument("--features", type=int, default=4, help="the length of x and z")
    parser.add_argument(
        "--buckets", type=int, default=16, help="see ocelad spark-size; for the life of a checkpoint"
    )
    parser.add_argument("--every", type=float, default=10.0, help="seconds between batches")
    given = parser.parse_args()
    builder = SparkSession.builder.appName("ocelad")
    given_to_submit = SparkConf()
    for name, value in SETTINGS.items():
        builder = builder.config(name, given_to_submit.get(name, value))
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    events = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 10).parquet(given.comparisons)
    outcome = ocelad.spark.track(
        events,
        tracker=MetricTracker(memory=256),
        alarm=ChangeAlarm(),
        n_features=given.features,
        buckets=given.buckets,
    )
    query = (
        outcome.writeStream.foreachBatch(lambda frame, number: keep(frame, number, given.folder))
        .option("checkpointLocation", f"{given.folder}/checkpoint")
        .trigger(processingTime=f"{given.every} seconds")
        .start()
    )
    try:
        query.awaitTermination()
    except KeyboardInterrupt:
        query.stop()
        print("Stopped: the same command goes on.")


if __name__ == "__main__":
    main()
