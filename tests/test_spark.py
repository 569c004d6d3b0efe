"""Trackers on Spark: processors without Java, and one job that is killed and started again."""

import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pyspark", reason="there is no Spark: make spark installs it", minversion="4.3")
pytest.importorskip("google.protobuf", reason="there is no Spark: make spark installs it")

import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.streaming.tws_tester import TwsTester

from ocelad import ChangeAlarm, KeyedTrackers, MetricTracker, dumps
from ocelad.spark import TrackerProcessor, from_trackers
from ocelad.spark.ascii_text import from_text
from ocelad.spark.bucket import Bucket
from ocelad.spark.chunks import DROPPED, from_chunks, read, to_chunks
from ocelad.spark.options import FleetOptions
from ocelad.spark.processors import ALL, STATE, BucketProcessor
from ocelad.state import FileError

pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")

N = 3


def comparisons(m, keys=5, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "key": rng.integers(keys, size=m),
        "seq": np.arange(m),
        "x": rng.normal(size=(m, N)),
        "z": rng.normal(size=(m, N)),
        "y": rng.choice([-1.0, 1.0], size=m),
    }


def one_process(rows, tracker=None):
    pairs = np.stack([rows["x"], rows["z"]], axis=1)
    return KeyedTrackers(tracker).partial_fit(rows["key"], pairs, rows["y"])


def chunks_of(rows, buckets, at, chunk=7):
    """What Spark sends to each bucket."""
    key = rows["key"][at]
    table = pa.table(
        {
            "bucket": pa.array(key % buckets, pa.int32()),
            "key": key,
            "seq": rows["seq"][at],
            "x": list(rows["x"][at]),
            "z": list(rows["z"][at]),
            "y": rows["y"][at],
        }
    )
    for batch in to_chunks(table.to_batches(max_chunksize=chunk)):
        yield from zip(batch["bucket"].to_pylist(), batch["chunk"].to_pylist(), strict=True)


def lines_of(answers):
    """What Spark makes of the answers of a bucket."""
    batch = pa.record_batch({"chunk": pa.array([row.chunk for row in answers], pa.binary())})
    return [line for lines in from_chunks([batch]) for line in lines.to_pylist()]


def blob_in(tester, group):
    return from_text(tester.peekValueState(STATE, group)[2])


def parted(lines):
    """Lines of rows, and how many rows were dropped by what the others say."""
    dropped = [int(line["rejected"].split()[0]) for line in lines if str(line["rejected"]).endswith(DROPPED)]
    return [line for line in lines if not str(line["rejected"]).endswith(DROPPED)], dropped


def learned_by(tester, options, buckets):
    found = {}
    for bucket in range(buckets):
        held = Bucket(options, blob_in(tester, bucket))
        found |= {key: dumps(held.tracker(key)) for key in held.index}
    return found


def test_buckets_learn_what_one_process_learns():
    rows, options = comparisons(200), FleetOptions(MetricTracker(memory=32), buckets=2)
    tester, lines, rng = TwsTester(BucketProcessor(options, pa.int64())), [], np.random.default_rng(1)
    for start in (0, 50, 50, 120):  # the second comes twice
        for bucket, chunk in chunks_of(rows, 2, start + rng.permutation(80 if start else 50)):
            lines += lines_of(tester.test(bucket, [Row(chunk=chunk)]))
    fleet = one_process(rows, MetricTracker(memory=32))
    assert learned_by(tester, options, 2) == {key: dumps(fleet[key]) for key in fleet}
    lines, dropped = parted(lines)
    assert sum(dropped) == 90  # all 80 of the second, and ten of the last
    assert sorted(line["seq"] for line in lines) == list(range(200))
    assert all(line["right"] == (line["predicted"] == rows["y"][line["seq"]]) for line in lines)
    assert {line["rejected"] for line in lines} == {None}


def test_what_comes_too_late_is_dropped():
    rows, options = comparisons(100, keys=1), FleetOptions(buckets=1)
    rows["y"][::10] = 0  # bad rows are no exception
    tester, lines = TwsTester(BucketProcessor(options, pa.int64())), []
    for at in (np.arange(40, 60), np.arange(20, 50), np.arange(55, 100)):
        ((bucket, chunk),) = chunks_of(rows, 1, at)
        lines += lines_of(tester.test(bucket, [Row(chunk=chunk)]))
    lines, dropped = parted(lines)
    assert dropped == [30, 5]
    assert sorted(line["seq"] for line in lines) == list(range(40, 100))
    good = {name: column[40:][rows["y"][40:] != 0] for name, column in rows.items()}
    assert learned_by(tester, options, 1) == {0: dumps(one_process(good)[0])}


def test_a_key_may_have_very_many_rows_in_a_batch():
    rows, options = comparisons(100_000, keys=1), FleetOptions(buckets=1)
    ((bucket, chunk),) = chunks_of(rows, 1, np.random.default_rng(1).permutation(100_000), chunk=10_000)
    tester = TwsTester(BucketProcessor(options, pa.int64()))
    assert len(lines_of(tester.test(bucket, [Row(chunk=chunk)]))) == 100_000
    assert learned_by(tester, options, 1) == {0: dumps(one_process(rows)[0])}


@pytest.mark.parametrize(
    ("kind", "keys"),
    [
        (pa.int8(), [1, -128]),
        (pa.int16(), [1, -(2**15)]),
        (pa.int32(), [1, -(2**31)]),
        (pa.int64(), [1, -(2**63)]),
        (pa.string(), ["", "1", "\x00", "ü \N{GRINNING FACE}", "a" * 10**5]),
    ],
    ids=str,
)
def test_keys_of_every_type(kind, keys):
    rows = comparisons(len(keys), keys=1)
    columns = {"bucket": pa.array(rows["key"], pa.int32()), "key": pa.array(keys, kind), "seq": rows["seq"]}
    points = {"x": list(rows["x"]), "z": list(rows["z"]), "y": rows["y"]}
    (sent,) = to_chunks(pa.table({**columns, **points}).to_batches())
    options = FleetOptions(buckets=1)
    tester = TwsTester(BucketProcessor(options, kind))
    (answer,) = tester.test(0, [Row(chunk=sent["chunk"][0].as_py())])
    assert read(answer.chunk)["key"].type == kind
    assert [line["key"] for line in lines_of([answer])] == keys
    assert list(learned_by(tester, options, 1)) == keys


def test_a_state_that_is_damaged_stops_with_its_name():
    rows, options = comparisons(40, keys=2), FleetOptions(buckets=2)
    tester = TwsTester(BucketProcessor(options, pa.int64()))
    sent = list(chunks_of(rows, 2, np.arange(40)))
    for bucket, chunk in sent:
        tester.test(bucket, [Row(chunk=chunk)])
    version, t, blob = tester.peekValueState(STATE, 1)
    for damaged, said in (
        (blob[:50] + chr(ord(blob[50]) ^ 1) + blob[51:], "its checksum does not match"),
        (blob[:-1], "it is not text that bytes were made into"),
        ("\x7f" + blob[1:], "it is not text that bytes were made into"),
        (blob[:50] + "ü" + blob[51:], "'ascii' codec"),
        ("", "it is not text that bytes were made into"),
    ):
        tester.updateValueState(STATE, 1, (version, t, damaged))
        with pytest.raises(FileError, match=f"bucket 1: {said}"):
            tester.test(1, [Row(chunk=sent[1][1])])
    other = TwsTester(BucketProcessor(FleetOptions(buckets=3), pa.int64()))
    other.updateValueState(STATE, 0, tester.peekValueState(STATE, 0))
    with pytest.raises(FileError, match="bucket 0: it is of 2 buckets"):
        other.test(0, [Row(chunk=sent[0][1])])


def test_other_options_are_noticed_by_buckets_without_a_state():
    options, row = FleetOptions(buckets=2), Row(chunk=b"")
    tester = TwsTester(BucketProcessor(options, pa.int64()))
    assert tester.test(ALL, [row, row]) == tester.test(ALL, [row]) == []
    held = tester.peekValueState(STATE, ALL)
    for other, said in (
        (FleetOptions(buckets=3), "is of 2 buckets, and now there are 3"),
        (FleetOptions(MetricTracker(), buckets=2), "other options than these: memory was None and is 2048"),
        (FleetOptions(alarm=ChangeAlarm(), buckets=2), "other options than these: alarm was None and is "),
    ):
        changed = TwsTester(BucketProcessor(other, pa.int64()))
        changed.updateValueState(STATE, ALL, held)
        with pytest.raises(FileError, match=f"the checkpoint: it .*{said}"):
            changed.test(ALL, [row])
    told = TwsTester(BucketProcessor(FleetOptions(buckets=2, n_features=N), pa.int64()))
    told.updateValueState(STATE, ALL, held)
    assert told.test(ALL, [row]) == []


def test_what_changes_nothing_is_not_written():
    rows, options = comparisons(20, keys=1), FleetOptions(buckets=1)
    processor = BucketProcessor(options, pa.int64())
    tester, ((bucket, chunk),) = TwsTester(processor), chunks_of(rows, 1, np.arange(20))
    tester.test(bucket, [Row(chunk=chunk)])
    before = tester.peekValueState(STATE, bucket)
    assert parted(lines_of(tester.test(bucket, [Row(chunk=chunk)]))) == ([], [20])
    assert tester.peekValueState(STATE, bucket) is before


@pytest.mark.parametrize(
    ("keys", "said"), [([7, "7"], "keys of one type"), ([(1, 2)], "strings or whole numbers")]
)
def test_a_fleet_of_other_keys_is_refused(keys, said):
    fleet = KeyedTrackers()
    for key in keys:
        fleet.partial_fit([key], np.ones((1, 2, N)), [1])
    with pytest.raises(ValueError, match=said):
        from_trackers(None, fleet, dict.fromkeys(fleet, 0))


def test_a_stream_goes_on_from_states():
    rows, options = comparisons(100), FleetOptions(buckets=1)
    first = TwsTester(BucketProcessor(options, pa.int64()))
    ((_, chunk),) = chunks_of(rows, 1, np.arange(60))
    first.test(0, [Row(chunk=chunk)])
    begun = [(0, Row(bucket=0, blob=blob_in(first, 0)))]
    second = TwsTester(BucketProcessor(options, pa.int64()), initialStateRow=begun)
    ((_, chunk),) = chunks_of(rows, 1, np.arange(30, 100))
    second.test(0, [Row(chunk=chunk)])
    fleet = one_process(rows)
    assert learned_by(second, options, 1) == {key: dumps(fleet[key]) for key in fleet}


def test_a_bucket_that_comes_in_parts_stops():
    """As Spark does with initial states: what is below the last number of the first part would be lost."""
    sent = [Row(chunk=chunk) for _, chunk in chunks_of(comparisons(20), 1, np.arange(20))]
    tester = TwsTester(BucketProcessor(FleetOptions(buckets=1), pa.int64(), initial=True))
    tester.test(0, sent)
    with pytest.raises(ValueError, match=r"bucket 0 has come in several parts.*maxRecordsPerBatch"):
        tester.test(0, sent)


def test_a_group_has_one_initial_state():
    first = TwsTester(BucketProcessor(FleetOptions(buckets=1), pa.int64()))
    first.test(0, [Row(chunk=chunk) for _, chunk in chunks_of(comparisons(20), 1, np.arange(20))])
    state = (0, Row(bucket=0, blob=blob_in(first, 0)))
    with pytest.raises(ValueError, match="one state for each bucket, and has two for 0"):
        TwsTester(BucketProcessor(FleetOptions(buckets=1), pa.int64()), initialStateRow=[state, state])


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"seq": 1.5}, "column 'seq' must have whole numbers, got 1.5"),
        ({"y": "1"}, "column 'y' must have labels 1 and -1, got '1'"),
    ],
)
def test_one_key_per_group_needs_the_right_types(changed, said):
    row = dict(seq=1, x=[0.0], z=[1.0], y=1)
    with pytest.raises(TypeError, match=said):
        TwsTester(TrackerProcessor()).test("ann", [Row(**{**row, **changed})])
    with pytest.raises(TypeError, match="keys must be strings or whole numbers"):
        TwsTester(TrackerProcessor()).test(1.5, [Row(**row)])


@pytest.mark.parametrize("key", ["ann", 7])
def test_one_key_per_group(key):
    rows = comparisons(60, keys=1)
    tester = TwsTester(TrackerProcessor(alarm=ChangeAlarm(), n_features=N, ttl=1000))
    given = [
        Row(seq=s, x=x.tolist(), z=z.tolist(), y=int(y))
        for s, x, z, y in zip(range(60), rows["x"], rows["z"], rows["y"], strict=True)
    ]
    lines = tester.test(key, given[30::-1]) + tester.test(
        key, [*given[20:], Row(seq=99, x=[None] * N, z=[1.0], y=1)]
    )
    tracker = Bucket(FleetOptions(alarm=ChangeAlarm(), n_features=N), blob_in(tester, key)).tracker(key)
    assert dumps(tracker) == dumps(one_process(rows)[0])
    assert [line.seq for line in lines] == [*range(60), 99, None]
    assert lines[0].key == key
    assert [line.rejected for line in lines[-2:]] == ["x has 3 numbers and z has 1", f"11 {DROPPED}"]


def test_chunks_hold_all_rows_however_many(monkeypatch):
    rows = comparisons(300)
    monkeypatch.setattr("ocelad.spark.chunks.GATHERED", 5000)
    sent = list(chunks_of(rows, 4, np.arange(300)))
    assert len(sent) > 8
    assert sorted(seq for _, chunk in sent for seq in read(chunk)["seq"].to_pylist()) == list(range(300))
    assert list(to_chunks([])) == []


def test_an_empty_batch_is_nothing():
    kinds = {"bucket": pa.int32(), "key": pa.string(), "seq": pa.int64(), "y": pa.float64()}
    points = dict.fromkeys("xz", pa.list_(pa.float64()))
    nothing = {name: pa.array([], kind) for name, kind in (kinds | points).items()}
    assert list(to_chunks([pa.record_batch(nothing)])) == []
    assert lines_of([]) == []


@pytest.mark.skipif(shutil.which("java") is None, reason="there is no Java: make spark installs it")
def test_a_job_that_is_killed_goes_on_as_if_nothing_had_happened(tmp_path):
    from spark_job import write_files

    write_files(tmp_path / "in")
    script, log = Path(__file__).parent / "spark_job.py", tmp_path / "log"
    with open(log, "w", encoding="utf-8") as said:
        start = partial(subprocess.Popen, start_new_session=True, stdin=subprocess.PIPE, stdout=said, stderr=said)
        job, check = (start([sys.executable, script, tmp_path, command]) for command in ("stream", "check"))
    checkpoint, until = tmp_path / "out-checkpoint", time.monotonic() + 300
    try:
        while not (checkpoint / "offsets" / "1").exists():  # in the second of six batches
            assert job.poll() is None, log.read_text()
            assert time.monotonic() < until, log.read_text()
            time.sleep(0.05)
        time.sleep(0.3)
        os.killpg(job.pid, signal.SIGKILL)  # the driver and its Java; the workers then end by themselves
        job.wait()
        assert not (checkpoint / "commits" / "5").exists()
        check.communicate(timeout=300)  # which ends its standard input: it may have the stream now
        assert check.returncode == 0, log.read_text()
    finally:
        for process in (job, check):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
