"""A job on Spark for tests, run as a program: it may be killed at any moment and started again.

python spark_job.py FOLDER stream     learns the files of FOLDER/in, one each batch, into FOLDER/out
python spark_job.py FOLDER compare    the same, and compares trackers and outcomes with one process
python spark_job.py FOLDER check      the same, and compares all else that can be done on Spark
"""

import doctest
import os
import re
import sys
import time
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

os.environ["PYSPARK_PYTHON"] = sys.executable  # before Spark is imported

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import ocelad.spark
from ocelad import ChangeAlarm, KeyedTrackers, dumps
from ocelad.spark import (
    SETTINGS,
    backfill,
    from_trackers,
    join_items,
    last_seqs,
    rebucket,
    score,
    states,
    track,
)
from ocelad.spark.chunks import DROPPED, checked, outcome, to_rows
from ocelad.spark.learning import learn
from ocelad.spark.options import FleetOptions

N, ROWS, BUCKETS, LATE = 3, 120, 3, 5
ALARM = ChangeAlarm(steps=20)
OPTIONS = dict(alarm=ALARM, n_features=N, buckets=BUCKETS)
COLUMNS = "key INT, seq BIGINT, x ARRAY<DOUBLE>, z ARRAY<DOUBLE>, y BIGINT"
WIDER = "note STRING, key BIGINT, seq BIGINT, x ARRAY<DOUBLE>, z ARRAY<DOUBLE>, y BIGINT"
"""The same after a change: one more column, and keys are wider."""
NAME = "concat('key ', key)"


def comparisons(seed):
    """Rows in any order, some of them bad."""
    rng = np.random.default_rng(seed)
    seq = rng.permutation(ROWS) + seed * ROWS
    rows = {
        "key": (seq % 7).tolist(),
        "seq": seq,
        "x": rng.normal(size=(ROWS, N)).astype(np.float32).tolist(),
        "z": rng.normal(size=(ROWS, N)).tolist(),
        "y": rng.choice([-1, 1], size=ROWS),
    }
    rows["x"][3], rows["z"][4], rows["y"][5], rows["key"][6] = [np.nan] * N, [0.0], 0, None
    return pa.table(rows, schema=schema())


def schema(x="double", y="int64"):
    lists = [("x", pa.list_(pa.type_for_alias(x))), ("z", pa.list_(pa.float64()))]
    return pa.schema([("key", pa.int32()), ("seq", pa.int64()), *lists, ("y", pa.type_for_alias(y))])


def write_files(folder):
    """One comes twice, one is empty, one has other types and a column more, and the last comes too late."""
    folder = Path(folder)
    folder.mkdir()
    first, second, third, fourth = (comparisons(seed) for seed in range(4))
    other = fourth.cast(schema("float", "int32")).append_column("note", [["new"] * ROWS])
    tables = [first, second, first, first.slice(0, 0), other, third]
    for number, table in enumerate(tables):
        path = folder / f"{number}.parquet"
        pq.write_table(table, path)
        os.utime(path, (1e9 + number, 1e9 + number))  # Spark takes the oldest first


def read_files(folder):
    return [pq.read_table(path).select(schema().names).cast(schema()) for path in sorted(Path(folder).iterdir())]


def session(folder, master="local[2]"):
    settings = {
        **SETTINGS,
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.local.dir": f"{folder}/local",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.driver.memory": "512m",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # to start in less time
    }
    builder = SparkSession.builder.master(master)
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def run(events, target, **options):
    """Until all files have been learned."""
    query = (
        track(events, **OPTIONS, **options)
        .writeStream.format("parquet")
        .option("checkpointLocation", f"{target}-checkpoint")
        .option("path", target)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


def stream(spark, folder, columns=COLUMNS, **kinds):
    """Learn files with these columns, some of them cast to other types."""
    events = spark.readStream.schema(columns).option("maxFilesPerTrigger", 1).parquet(f"{folder}/in")
    cast = {name: F.col(name).cast(kind) for name, kind in kinds.items()}
    run(events.withColumns(cast), f"{folder}/out")


def bits(fleet):
    return {key: dumps(fleet[key]) for key in fleet}


@contextmanager
def stage(name):
    start = time.monotonic()
    yield
    print(f"{name}: {time.monotonic() - start:.1f} s", flush=True)


def check(spark, folder):
    """What needs no stream first; the stream when standard input ends: until then another process may have it."""
    check_batches(spark, folder, read_files(f"{folder}/in"))
    with stage("docs"):
        check_docs(spark)
    with stage("waiting"):
        sys.stdin.read()
    compare(spark, folder)


def compare(spark, folder):
    tables = read_files(f"{folder}/in")
    with stage("stream"):
        stream(spark, folder, WIDER, seq="int", x="array<float>", y="float")
    with stage("trackers"):
        found = states(f"{folder}/out-checkpoint")
        assert bits(found) == bits(one_process(pa.concat_tables(tables[:LATE]))[0]), "trackers differ"
    with stage("outcomes"):
        check_outcomes(spark.read.schema(WIDER_OUTCOME).parquet(f"{folder}/out").toArrow().to_pylist(), tables)


def check_batches(spark, folder, tables):
    """Trackers learned in batch, asked and moved, and a stream that goes on from them. Keys are strings."""
    fleet, keys, good = one_process(pa.concat_tables(tables), "key {}".format)
    history = spark.read.schema(COLUMNS).parquet(f"{folder}/in").withColumn("key", F.expr(NAME))
    with stage("backfill"):
        learned = backfill(history, **OPTIONS).cache()
        assert bits(states(learned)) == bits(fleet), "backfill differs"
    with stage("score"):
        check_scores(score(history, learned).toArrow().to_pylist(), fleet, keys, good)
        check_scores(score(history, fleet).toArrow().to_pylist(), fleet, keys, good)
    with stage("items"):
        check_items(spark)
    with stage("rebucket"):
        moved = rebucket(learned, 5)
        assert bits(states(moved)) == bits(fleet), "other buckets differ"
        with pytest.raises(ValueError, match="there are two states of key"):
            states(moved.union(moved))
    with stage("from trackers"):
        last = last_seqs(learned)
        assert last == {key: max(good["seq"].to_numpy()[np.array(keys) == key]) for key in fleet}
        back = from_trackers(spark, fleet, last, alarm=ALARM, buckets=BUCKETS).cache()
        assert bits(states(back)) == bits(fleet), "what came back differs"
        places, expected = ({row.bucket: row.t for row in frame.collect()} for frame in (back, learned))
        assert places == expected, "keys are in other buckets"
    with stage("refusals"):
        refuse(spark, folder, history)
        refuse_file(spark, folder, tables[0])
    with stage("initial states"):
        first = backfill(history.where(f"seq < {ROWS + 50}"), **OPTIONS)
        events = spark.readStream.schema(COLUMNS).parquet(f"{folder}/in").withColumn("key", F.expr(NAME))
        run(events, f"{folder}/later", initial=first)
        found = states(f"{folder}/later-checkpoint")
        assert bits(found) == bits(fleet), "initial states differ"


WIDER_OUTCOME = (
    "key BIGINT, seq BIGINT, distance DOUBLE, threshold DOUBLE, probability DOUBLE, predicted TINYINT, "
    "right BOOLEAN, alarm STRING, rejected STRING"
)


def one_process(table, name=lambda key: key):
    """Trackers that have learned each good row once, in order; and the keys and the table of these rows."""
    rows = to_rows(in_bucket(table))
    at = np.flatnonzero(rows.reasons == None)  # noqa: E711
    good = table.take(pa.array(at[np.unique(rows.seq[at], return_index=True)[1]]))
    keys = [name(key) for key in good["key"].to_pylist()]
    return KeyedTrackers().partial_fit(keys, pairs_of(good), good["y"].to_numpy()), keys, good


def pairs_of(table):
    return np.array([table["x"].to_pylist(), table["z"].to_pylist()]).transpose(1, 0, 2)


def in_bucket(table):
    return checked(table.append_column("bucket", pa.array(np.zeros(len(table), dtype=np.int32))))


def check_outcomes(lines, tables):
    """To the bit those of one process that is given a file after the other."""
    expected, blob = [], None
    for table in tables:
        done = learn(FleetOptions(**OPTIONS), blob, to_rows(in_bucket(table)))
        expected, blob = expected + outcome(done, pa.int64()).to_pylist(), done.blob or blob
    (lines, dropped), (expected, expected_dropped) = map(parted, (lines, expected))
    assert dropped == expected_dropped >= ROWS
    of = lambda lines: {(line["key"], line["seq"], line["rejected"]): line for line in lines}  # noqa: E731
    assert of(lines) == of(expected), "outcomes differ"
    assert len(lines) == len(expected), "outcomes are there twice"
    assert any(line["alarm"] for line in lines)
    # Of what came too late, or again, there is a line only if its key is not known
    late = [line for line in lines if 2 * ROWS <= line["seq"] < 3 * ROWS]
    assert [line["rejected"] for line in late] == ["key is null"]
    again = [line["seq"] for line in lines if line["seq"] in tables[0]["seq"].to_pylist()]
    assert len(again) == ROWS + 1
    assert sum(line["rejected"] is not None for line in lines) == 3 * 4 + 2


def parted(lines):
    """Lines of rows, and how many rows the other lines count, which are for each bucket and batch."""
    of_rows = [line for line in lines if not str(line["rejected"]).endswith(DROPPED)]
    counted = [line for line in lines if str(line["rejected"]).endswith(DROPPED)]
    assert all(line["key"] is line["seq"] is line["distance"] is None for line in counted)
    return of_rows, sum(int(line["rejected"].split()[0]) for line in counted)


def check_scores(judged, fleet, keys, good):
    of = {(line["key"], line["seq"]): line for line in judged if line["distance"] is not None}
    distances, predicted = fleet.pair_distance(keys, pairs_of(good)), fleet.predict(keys, pairs_of(good))
    for key, seq, distance, label in zip(keys, good["seq"].to_pylist(), distances, predicted, strict=True):
        assert abs(of[key, seq]["distance"] - distance) < 1e-12
        assert of[key, seq]["predicted"] == label
    assert len(judged) == 5 * ROWS


def check_items(spark):
    """Points in place of ids; an id that is not known leaves a null, which is a reason."""
    items = spark.createDataFrame([("p", [0.0, 1.0]), ("q", [1.0, 1.0])], "item STRING, at ARRAY<DOUBLE>")
    asked = spark.createDataFrame(
        [("u", 1, "p", "q", 1), ("u", 2, "q", "?", -1)], "key STRING, seq INT, a STRING, b STRING, y INT"
    )
    rows = join_items(asked, items, id="item", point="at").orderBy("seq").collect()
    assert [(row.key, row.seq, row.x, row.z, row.y) for row in rows] == [
        ("u", 1, [0.0, 1.0], [1.0, 1.0], 1),
        ("u", 2, [1.0, 1.0], None, -1),
    ]


def refuse(spark, folder, history):
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
    for kind in ("tinyint", "smallint", "int", "bigint", "string", "varchar(9)"):
        backfill(history.withColumn("key", F.lit(1).cast(kind)), **OPTIONS)
    streamed = spark.readStream.schema(COLUMNS).parquet(f"{folder}/in")
    assert refused(ValueError, streamed) == "history must be a table, and is a stream"
    assert refused(ValueError, history.drop("z")) == "there is no column 'z': the columns are key, seq, x, y"


def refused(kind, wrong):
    """What is said of a history that is wrong."""
    try:
        backfill(wrong, **OPTIONS)
    except kind as error:
        return str(error)
    return "nothing"


def refuse_file(spark, folder, table):
    """What Spark does about files: one of other types it refuses, by name; a column that is not there is null."""
    pq.write_table(table.cast(schema(y="double")), f"{folder}/other.parquet")
    said = ""
    try:
        spark.read.schema(COLUMNS).parquet(f"{folder}/other.parquet").collect()
    except Exception as error:  # of Java, or already of Python
        said = str(error)
    assert "other.parquet" in said, said or "labels of another type were read"
    pq.write_table(table.drop_columns(["z"]), f"{folder}/less.parquet")
    less = spark.read.schema(COLUMNS).parquet(f"{folder}/less.parquet")
    assert {row.z for row in less.collect()} == {None}, "a column that is not there must be null"


def check_docs(spark):
    """The blocks of docs/spark.md, one after the other, and the examples of all functions."""
    rng, m = np.random.default_rng(0), 80
    points = {name: rng.normal(size=(m, 25)).tolist() for name in ("x", "z")}
    of = {"key": ["ann", "bob"] * (m // 2), "seq": np.repeat(np.arange(m // 2), 2)}
    label = pa.array(rng.choice([-1, 1], size=m), pa.int32())
    for name, table in {
        "comparisons": {**of, **points, "y": label},
        "years": {**of, **points, "y": label},
        "items": {"id": ["p", "q"], "point": points["x"][:2]},
        "answers": {"key": ["ann"], "seq": [0], "a": ["p"], "b": ["q"], "y": label[:1]},
    }.items():
        os.mkdir(name)
        pq.write_table(pa.table(table), f"{name}/0.parquet")
    text = (Path(__file__).parent.parent / "docs" / "spark.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(blocks) == 4
    names = {}
    for number, block in enumerate(blocks):
        with stage(f"block {number}"):
            exec(compile(block, f"docs/spark.md, block {number}", "exec"), names)
    assert spark.read.parquet("outcome").count() == m
    check_examples(spark)


def check_examples(spark):
    """Examples that other tests skip, as they need a session."""
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for name in ("stream", "stored", "exchange", "items", "processors"):
        module = import_module(f"ocelad.spark.{name}")
        for test in doctest.DocTestFinder().find(module, extraglobs={"spark": spark, **ALL}):
            for example in test.examples:
                example.options.pop(doctest.SKIP, None)
            runner.run(test)
    assert runner.tries > 20
    assert not runner.failures


ALL = {name: getattr(ocelad.spark, name) for name in ocelad.spark.__all__}


if __name__ == "__main__":
    folder, command, *master = sys.argv[1:]
    folder = os.path.abspath(folder)
    if command == "check":  # Java stays where it is started
        os.mkdir(f"{folder}/docs")
        os.chdir(f"{folder}/docs")
    with stage("session"):
        spark = session(folder, *master)
    {"stream": stream, "compare": compare, "check": check}[command](spark, folder)
    spark.stop()
