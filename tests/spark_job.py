"""A job on Spark for tests, run as a program: it may be killed at any moment and started again.

python spark_job.py FOLDER stream     learns the files of FOLDER/in, one each batch, into FOLDER/out
python spark_job.py FOLDER check      the same, and then compares everything with one process
"""

import os
import sys
from pathlib import Path

os.environ["PYSPARK_PYTHON"] = sys.executable  # before Spark is imported

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from ocelad import ChangeAlarm, KeyedTrackers, dumps
from ocelad.spark import backfill, from_trackers, rebucket, score, states, track
from ocelad.spark.frames import checked, outcome, to_rows
from ocelad.spark.learning import learn
from ocelad.spark.options import FleetOptions

N, FILES, ROWS, BUCKETS = 3, 3, 120, 3
OPTIONS = dict(alarm=ChangeAlarm(steps=20), n_features=N, buckets=BUCKETS)


def write_files(folder):
    """Each with rows in any order, some of them bad; one comes twice, and one is empty."""
    rng, folder = np.random.default_rng(0), Path(folder)
    folder.mkdir()
    tables = []
    for number in range(FILES):
        seq = rng.permutation(ROWS) + number * ROWS
        rows = {
            "key": [f"key {k}" for k in seq % 7],
            "seq": seq,
            "x": rng.normal(size=(ROWS, N)).tolist(),
            "z": rng.normal(size=(ROWS, N)).tolist(),
            "y": rng.choice([-1, 1], size=ROWS),
        }
        rows["x"][3], rows["z"][4], rows["y"][5], rows["key"][6] = [np.nan] * N, [0.0], 0, None
        tables.append(pa.table(rows, schema=SCHEMA))
    tables = [*tables[:2], tables[0], tables[0].slice(0, 0), *tables[2:]]
    for number, table in enumerate(tables):
        path = folder / f"{number}.parquet"
        pq.write_table(table, path)
        os.utime(path, (1e9 + number, 1e9 + number))  # Spark takes the oldest first
    return tables


SCHEMA = pa.schema(
    [
        ("key", pa.string()),
        ("seq", pa.int64()),
        ("x", pa.list_(pa.float64())),
        ("z", pa.list_(pa.float64())),
        ("y", pa.int64()),
    ]
)


def session(folder):
    store = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.streaming.stateStore.providerClass": store,
        "spark.local.dir": f"{folder}/local",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.driver.memory": "512m",
    }
    builder = SparkSession.builder.master("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def run(spark, folder, target="out", files=1, **options):
    """Until all files have been learned."""
    schema = spark.read.parquet(f"{folder}/in").schema
    events = spark.readStream.schema(schema).option("maxFilesPerTrigger", files).parquet(f"{folder}/in")
    query = (
        track(events, **OPTIONS, **options)
        .writeStream.format("parquet")
        .option("checkpointLocation", f"{folder}/{target}-checkpoint")
        .option("path", f"{folder}/{target}")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return states(f"{folder}/{target}-checkpoint")


def bits(fleet):
    return {key: dumps(fleet[key]) for key in fleet}


def check(spark, folder):
    found = run(spark, folder)
    table = pq.read_table(f"{folder}/in", schema=SCHEMA)
    rows = to_rows(checked(table.append_column("bucket", pa.array(np.zeros(len(table), dtype=np.int32)))))
    whole = learn(FleetOptions(**OPTIONS), None, rows)
    # The trackers, to the bit, as one process learns them
    at = np.flatnonzero(rows.reasons == None)  # noqa: E711
    at = at[np.unique(rows.seq[at], return_index=True)[1]]  # each once, in order
    good = table.take(pa.array(at))
    keys, pairs = good["key"].to_pylist(), np.array([good["x"].to_pylist(), good["z"].to_pylist()])
    pairs = pairs.transpose(1, 0, 2)
    fleet = KeyedTrackers().partial_fit(keys, pairs, good["y"].to_numpy())
    assert bits(found) == bits(fleet), "trackers differ"
    # What came out, to the bit
    expected = outcome(whole, pa.string()).to_pylist()
    lines = spark.read.parquet(f"{folder}/out").toArrow().to_pylist()
    order = lambda line: (str(line["key"]), line["seq"], str(line["rejected"]))  # noqa: E731
    upserted = {order(line): line for line in lines}  # without a key nobody knows that a row has come before
    assert upserted == {order(line): line for line in expected}, "outcomes differ"
    assert sum(line["rejected"] is not None for line in upserted.values()) == 4 * FILES
    assert len(lines) == len(upserted) + 1
    assert any(line["alarm"] for line in lines)
    # The same in batch; and a stream that goes on from there
    history = spark.read.parquet(f"{folder}/in")
    learned = backfill(history, **OPTIONS).cache()
    given = dict(alarm=OPTIONS["alarm"], buckets=BUCKETS)
    again = states(learned)
    assert bits(again) == bits(fleet), "backfill differs"
    first = backfill(history.where(f"seq < {ROWS + 50}"), **OPTIONS)
    later = run(spark, folder, "later", files=9, initial=first)
    assert bits(later) == bits(fleet), "initial states differ"
    # Pairs that are judged
    judged = score(history, learned).toArrow().to_pylist()
    of = {(line["key"], line["seq"]): line for line in judged if line["distance"] is not None}
    distances, predicted = fleet.pair_distance(keys, pairs), fleet.predict(keys, pairs)
    for key, seq, distance, label in zip(keys, good["seq"].to_pylist(), distances, predicted, strict=True):
        assert abs(of[key, seq]["distance"] - distance) < 1e-12
        assert of[key, seq]["predicted"] == label
    assert len(judged) == history.count()
    # Into another number of buckets, and out of Spark and back
    moved = states(rebucket(learned, 5))
    assert bits(moved) == bits(fleet), "other buckets differ"
    last = dict.fromkeys(fleet, 10**6)
    back = from_trackers(spark, fleet, last, **given)
    assert bits(states(back)) == bits(fleet), "what came back differs"
    found, expected = ({row.bucket: row.t for row in frame.collect()} for frame in (back, learned))
    assert found == expected, "keys are in other buckets"
    refuse(history)


def refuse(history):
    """Keys of every type, and columns that are not what they must be."""
    for name, kind, said in [
        ("key", "double", "keys must be strings or whole numbers"),
        ("key", "binary", "keys must be strings or whole numbers"),
        ("key", "date", "keys must be strings or whole numbers"),
        ("key", "boolean", "keys must be strings or whole numbers"),
        ("seq", "timestamp", "take unix_micros"),
        ("seq", "string", "must have whole numbers"),
        ("x", "array<string>", "must have arrays of numbers"),
        ("y", "string", "must have labels"),
    ]:
        wrong = history.withColumn(name, F.lit(None).cast(kind))
        assert said in refused(TypeError, wrong), f"{name} of type {kind}"
    for kind in ("tinyint", "int", "bigint", "string", "varchar(9)"):
        backfill(history.withColumn("key", F.lit(1).cast(kind)), **OPTIONS)
    assert refused(ValueError, history.drop("z")) == "there is no column 'z': the columns are key, seq, x, y"


def refused(kind, wrong):
    """What is said of a history that is wrong."""
    try:
        backfill(wrong, **OPTIONS)
    except kind as error:
        return str(error)
    return "nothing"


if __name__ == "__main__":
    folder, stage = sys.argv[1:]
    spark = session(folder)
    (check if stage == "check" else run)(spark, folder)
    spark.stop()
