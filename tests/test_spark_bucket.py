"""Buckets of trackers: any cut into batches, any order within one, and anything delivered twice give what one
process learns in order, bit for bit. No Spark is needed for these."""

import copy
import struct
import sys
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import ocelad.spark
from ocelad import ChangeAlarm, History, KeyedTrackers, MetricTracker, dumps
from ocelad.spark.bucket import Bucket
from ocelad.spark.learning import learn
from ocelad.spark.options import FleetOptions
from ocelad.spark.rows import Ragged, Rows, check, codes
from ocelad.spark.sizing import size
from ocelad.state import FileError, container, pack, unpack
from ocelad.watch.prequential import progressive
from trackers import rice

N = 3
TRACKERS = {"rice": rice(), "pool": MetricTracker(memory=32), "features": rice(scale="features")}


def stream(m, keys=4, seed=0):
    """Keys, sequence numbers of each, pairs and labels."""
    rng = np.random.default_rng(seed)
    which = rng.integers(keys, size=m)
    seq = np.zeros(m, dtype=np.int64)
    for key in range(keys):
        seq[which == key] = 3 * np.arange((which == key).sum()) - 5  # with gaps, and not from 0 on
    return [f"key {k}" for k in which], seq, rng.normal(size=(m, 2, N)), rng.choice([-1.0, 1.0], size=m)


def rows_of(keys, seq, pairs, y, at=slice(None)):
    at = np.arange(len(keys))[at]
    seq, y, nothing = seq[at], y[at], np.zeros(len(at), dtype=bool)
    u, reasons = check(nothing, nothing, Ragged.of(pairs[at][:, 0]), Ragged.of(pairs[at][:, 1]), y)
    index = {}
    of = codes([keys[i] for i in at], index)
    return Rows(list(index), of, seq, u, y, reasons)


def trackers_of(blob, options):
    bucket = Bucket(options, blob)
    return {key: dumps(unpack(bytes(bucket.records[i]), options.tracker)) for key, i in bucket.index.items()}


def one_process(keys, pairs, y, tracker):
    fleet = KeyedTrackers(tracker).partial_fit(keys, pairs, y)
    return {key: dumps(fleet[key]) for key in fleet}


def lines(learned):
    """By key and number, to the bit."""
    columns = [learned.distance, learned.threshold, learned.probability, learned.predicted, learned.right]
    values = zip(*[column.tolist() for column in columns], learned.alarm, strict=True)
    return dict(zip(zip(learned.keys, learned.seq.tolist(), strict=True), values, strict=True))


@pytest.mark.parametrize("name", TRACKERS)
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_any_delivery_is_one_process_in_order(name, data):
    m = data.draw(st.integers(1, 40))
    keys, seq, pairs, y = stream(m, data.draw(st.integers(1, 5)), data.draw(st.integers(0, 99)))
    options = FleetOptions(TRACKERS[name])
    cuts = sorted(data.draw(st.lists(st.integers(0, m), max_size=4)))
    blob, found = None, {}
    for start, end in zip([0, *cuts], [*cuts, m], strict=True):
        again = data.draw(
            st.lists(st.integers(0, m - 1) if end == m else st.integers(0, max(0, end - 1)), max_size=5)
        )
        again = [row for row in again if row < end]  # what has been delivered before, or twice now
        at = data.draw(st.permutations([*range(start, end), *again]))
        done = learn(options, blob, rows_of(keys, seq, pairs, y, np.array(at, dtype=int)))
        assert not done.refused
        assert done.dropped == len(at) - (end - start)
        assert not found.keys() & lines(done.learned).keys()  # nothing is learned twice
        found |= lines(done.learned)
        blob = done.blob or blob
    assert trackers_of(blob, options) == one_process(keys, pairs, y, TRACKERS[name])
    whole = learn(options, None, rows_of(keys, seq, pairs, y))
    assert found == lines(whole.learned)
    assert done.t == m


@pytest.mark.parametrize("name", TRACKERS)
def test_predictions_are_those_before_learning(name):
    keys, seq, pairs, y = stream(60)
    learned = learn(FleetOptions(TRACKERS[name]), None, rows_of(keys, seq, pairs, y)).learned
    for key in set(keys):
        at, mine = [k == key for k in keys], [k == key for k in learned.keys]
        tracker = copy.copy(TRACKERS[name])
        trace = progressive(tracker, pairs[at], y[at])
        np.testing.assert_array_equal(learned.distance[mine], np.sqrt(trace.squared_distance))
        np.testing.assert_array_equal(learned.predicted[mine] > 0, trace.similar)
        np.testing.assert_array_equal(learned.right[mine], trace.similar == (y[at] > 0))
        np.testing.assert_array_equal(learned.seq[mine], seq[at])
        before = copy.copy(TRACKERS[name]).partial_fit(pairs[at][:-1], y[at][:-1])
        last = [column[mine][-1] for column in (learned.distance, learned.threshold, learned.probability)]
        proba = before.mixture_proba if name == "pool" else before.predict_proba
        expected = [before.pair_distance(pairs[at][-1:])[0], before.threshold_, proba(pairs[at][-1:])[0, 1]]
        if name != "pool":  # whose trace has the mixture's threshold before it is calibrated
            np.testing.assert_allclose(last, expected, rtol=1e-9)
        np.testing.assert_allclose(last[::2], expected[::2], rtol=1e-6)


@pytest.mark.parametrize("tracker", [MetricTracker(memory=32), rice()], ids=["pool", "rice"])
def test_alarms_are_those_of_a_history(tracker):
    rng, m = np.random.default_rng(0), 900
    pairs = rng.normal(size=(m, 2, N))
    u = np.abs(pairs[:, 0] - pairs[:, 1])
    y = np.where(np.where(np.arange(m) < 500, u[:, 0], u[:, 2]) < 1, 1.0, -1.0)
    options, blob, found = FleetOptions(tracker, ChangeAlarm(steps=100)), None, []
    for start in range(0, m, 130):
        done = learn(options, blob, rows_of(["ann"] * m, np.arange(m), pairs, y, slice(start, start + 130)))
        found += [(int(s) + 1, a) for s, a in zip(done.learned.seq, done.learned.alarm, strict=True) if a]
        blob = done.blob
    history = History(copy.copy(tracker), alarm=ChangeAlarm(steps=100))
    history.tracker.partial_fit(pairs, y)
    assert found == [(event.t, event.kind) for event in history.events]
    assert found


def test_bad_rows_are_put_aside_with_a_reason():
    of = np.array([0, -1, 0, 0, 0, 0, 0, 0, 0])
    x = [[0.0, 1.0], [0.0, 1.0], [0.0, 1.0], [np.nan, 1.0], [1.0], None, [1e308, 0.0], [0.0], [0.5, 0.5]]
    z = [[1.0, 1.0], [1.0, 1.0], [1.0, 1.0], [1.0, 1.0], [1.0, 1.0], [1.0, 1.0], [-1e308, 0.0], [1.0], [0.0, 1.0]]
    y = np.array([1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0])
    seq, no_seq = np.arange(9), np.arange(9) == 2
    u, reasons = check(of < 0, no_seq, Ragged.of(x), Ragged.of(z), y)
    done = learn(FleetOptions(n_features=2), None, Rows(["ann"], of, seq, u, y, reasons))
    assert done.learned.seq.tolist() == [0]
    assert sorted(done.refused, key=str) == [
        ("ann", 3, "x or z has a null, a NaN or an infinity"),
        ("ann", 4, "x has 1 numbers and z has 2"),
        ("ann", 5, "x or z is null"),
        ("ann", 6, "x - z is too large for a number"),
        ("ann", 7, "x and z have 1 numbers, expected 2"),
        ("ann", 8, "y must be 1 or -1, got 0"),
        ("ann", None, "seq is null"),
        (None, 1, "key is null"),
    ]
    expected = MetricTracker.rice().partial_fit([[x[0], z[0]]], [1])
    assert trackers_of(done.blob, FleetOptions(n_features=2)) == {"ann": dumps(expected)}


def test_a_good_row_takes_the_place_of_a_bad_one():
    keys, seq, pairs, y = stream(3, keys=1)
    broken = pairs.copy()
    broken[:, 0, 0] = np.nan
    options = FleetOptions()
    bad, good = rows_of(keys, seq, broken, y), rows_of(keys, seq, pairs, y, [0, 1])
    done = learn(options, None, Rows.joined([bad, good, bad]))
    assert done.dropped == 4  # of two bad rows twice; that of the third one is a line, which is there once
    assert done.learned.seq.tolist() == seq[:2].tolist()
    assert [line[1] for line in done.refused] == [seq[2]]
    again = learn(options, done.blob, rows_of(keys, seq, broken, y))
    assert (again.blob, [line[1] for line in again.refused], again.dropped) == (None, [seq[2]], 2)


def test_of_different_rows_with_one_number_the_choice_does_not_depend_on_their_order():
    keys, seq, pairs, y = ["ann"] * 6, np.array([1, 1, 1, 2, 2, 3]), *stream(6)[2:]
    blobs = {
        learn(FleetOptions(), None, rows_of(keys, seq, pairs, y, np.random.default_rng(s).permutation(6))).blob
        for s in range(20)
    }
    assert len(blobs) == 1


def test_a_fixed_unit_refuses_what_is_too_long():
    keys, seq, pairs, y = stream(4, keys=1)
    pairs[1] *= 1e60
    done = learn(FleetOptions(rice(scale=1.0)), None, rows_of(keys, seq, pairs, y))
    assert done.refused == [("key 0", seq[1], "x - z is too long for scale=1")]
    assert done.t == 3


@pytest.mark.parametrize("keys", [["a", "b"], [1, -(2**62)], ["", "ü \N{GRINNING FACE}"]])
def test_keys_are_strings_or_whole_numbers(keys):
    _, seq, pairs, y = stream(2, keys=1)
    done = learn(FleetOptions(), None, rows_of(keys, seq, pairs, y))
    assert list(Bucket(FleetOptions(), done.blob).index) == keys


@pytest.mark.parametrize(("before", "after"), [("1", 1), (1, "1")])
def test_a_type_of_keys_that_changes_is_refused(before, after):
    _, seq, pairs, y = stream(2, keys=1)
    blob = learn(FleetOptions(), None, rows_of([before] * 2, seq, pairs, y)).blob
    with pytest.raises(
        FileError, match=f"bucket: it has key {before!r}, and now there is {after!r}: keys must stay"
    ):
        learn(FleetOptions(), blob, rows_of([after] * 2, seq + 100, pairs, y))


def blob_of(options, **stream_options):
    return learn(options, None, rows_of(*stream(20, **stream_options))).blob


def parts_of(blob):
    """The entries and arrays of the index, and the records."""
    end = 8 + struct.unpack_from("<Q", blob)[0]
    entries, arrays = container.read_record(memoryview(blob)[8:end], 2**40)
    return entries, arrays, blob[end:]


def rewritten(blob, **changes):
    entries, arrays, records = parts_of(blob)
    arrays = {name: changes.pop(name, array) for name, array in arrays.items()}
    records = changes.pop("records", records)
    index = b"".join(container.write_record({**entries, **changes}, arrays))
    return struct.pack("<Q", len(index)) + index + records


def test_what_is_damaged_is_refused_with_its_name():
    options = FleetOptions()
    blob = blob_of(options)
    end = len(blob) - len(parts_of(blob)[2])
    for at in range(8, end, 7):
        changed = blob[:at] + bytes([blob[at] ^ 1]) + blob[at + 1 :]
        with pytest.raises(FileError, match="bucket 7: its checksum"):
            Bucket(options, changed, "bucket 7")
    for changed in (b"\xff" + blob[1:], b"", *(blob[:end] for end in (0, 3, 100, len(blob) - 1)), blob + b"x"):
        with pytest.raises(FileError, match="bucket 7: "):
            Bucket(options, changed, "bucket 7")


def test_every_byte_of_a_tracker_is_checked_when_its_key_comes():
    options = FleetOptions()
    blob = blob_of(options, keys=1)
    end = len(blob) - len(parts_of(blob)[2])
    for at in range(end, len(blob), 61):
        bucket = Bucket(options, blob[:at] + bytes([blob[at] ^ 1]) + blob[at + 1 :], "bucket 7")
        with pytest.raises(FileError, match="bucket 7: the tracker of key 'key 0': data: its checksum"):
            bucket.tracker("key 0")


def test_what_is_newer_or_other_is_refused():
    options = FleetOptions()
    blob = blob_of(options)
    for changed, said in [
        (rewritten(blob, version=3), "it has format version 3; this ocelad reads version 2"),
        (rewritten(blob, estimator="MetricTracker"), "it is not a bucket"),
        (rewritten(blob, keys=["a"] * 4), "keys must be different"),
        (rewritten(blob, keys=[1.5] * 4), "keys must be strings"),
        (rewritten(blob, more=1), "entries"),
        (rewritten(blob, n_features=0), "n_features must be a whole number >= 1"),
        (rewritten(blob, n_features=None), "n_features must be a whole number >= 1"),
        (rewritten(blob, sizes=np.zeros((4, 2), dtype=np.int64)), "every key must have a tracker"),
        (rewritten(blob, sizes=np.ones((4, 2), dtype=np.int64)), "an alarm where there are alarms"),
        (rewritten(blob, sizes=np.array([[9, 0]] * 4)), "bytes of trackers or alarms, and 36 belong there"),
        (rewritten(blob, sizes=np.array([[2**62, 0]] * 4)), "bytes of trackers or alarms"),
        (rewritten(blob, alarms=np.zeros(1, np.uint8)), "1 bytes of trackers or alarms, and 0 belong"),
        (rewritten(blob, alarms=np.zeros(0)), "alarms must be bytes"),
    ]:
        with pytest.raises(FileError, match=said):
            Bucket(options, changed)
    for other, said in [
        (FleetOptions(MetricTracker()), "other options"),
        (FleetOptions(alarm=ChangeAlarm()), "other options"),
        (FleetOptions(n_features=4), "its trackers have 3 features"),
        (FleetOptions(buckets=8), "it is of 0 buckets, and now there are 8"),
    ]:
        with pytest.raises(FileError, match=said):
            Bucket(other, blob)


def test_a_damaged_tracker_is_named_and_only_met_when_its_key_comes():
    options = FleetOptions()
    blob = blob_of(options)
    entries, _, records = parts_of(blob)
    blob = rewritten(blob, records=records[:100] + bytes([records[100] ^ 1]) + records[101:])  # of the first key
    keys, seq, pairs, y = stream(20)
    others = [i for i, key in enumerate(keys) if key != entries["keys"][0]]
    assert learn(options, blob, rows_of(keys, seq + 1000, pairs, y, others)).blob
    with pytest.raises(FileError, match=f"bucket: the tracker of key '{entries['keys'][0]}': data: its checksum"):
        learn(options, blob, rows_of(keys, seq + 1000, pairs, y))


def test_options_that_cannot_be_kept_are_refused():
    for wrong, said in [
        (dict(tracker="rice"), "tracker must be a MetricTracker"),
        (dict(tracker=MetricTracker(preprocessor=np.eye(3))), "no preprocessor"),
        (dict(tracker=MetricTracker(nonlinear=True)), "nonlinear"),
        (dict(alarm=True), "alarm must be"),
        (dict(n_features=0), "n_features"),
        (dict(buckets=-1), "buckets"),
    ]:
        with pytest.raises(ValueError, match=said):
            FleetOptions(**wrong)


def test_a_bucket_is_as_large_as_its_trackers():
    options = FleetOptions()
    keys, seq, pairs, y = stream(400)
    blob = learn(options, None, rows_of(keys, seq, pairs, y)).blob
    fleet = KeyedTrackers().partial_fit(keys, pairs, y)
    assert len(blob) < sum(len(pack(fleet[key])) for key in fleet) + len(dumps(KeyedTrackers())) + 400


def test_an_empty_batch_changes_nothing():
    keys, seq, pairs, y = stream(4)
    assert learn(FleetOptions(), None, rows_of(keys, seq, pairs, y, slice(0))).blob is None
    assert learn(FleetOptions(), blob_of(FleetOptions()), rows_of(keys, seq, pairs, y, slice(0))).t == 20


def test_what_a_fleet_needs_grows_as_it_must():
    small, large = size(1e4, 1e6, 10, t=100), size(1e6, 1e8, 10, t=100)
    assert large.state == 100 * small.state
    assert 50 * small.cores < large.cores < 100 * small.cores  # what a batch costs by itself is there once
    assert large.buckets > small.buckets
    assert size(1e4, 1e6, 10, t=100, trigger=60).checkpoint > 10 * small.checkpoint
    with pytest.raises(ValueError, match="keys must be a finite number > 0"):
        size(0, 1e6, 10)


@pytest.mark.parametrize("missing", ["pyspark.sql.streaming", "google.protobuf"])
def test_what_is_not_installed_is_said(monkeypatch, missing):
    for name in ("pyspark", "pyspark.sql", "pyspark.sql.streaming", "pandas", "pyarrow", "google.protobuf"):
        monkeypatch.setitem(sys.modules, name, None if name == missing else ModuleType(name))
    with pytest.raises(ImportError, match=r'pip install "ocelad\[spark\]"'):
        ocelad.spark.track  # noqa: B018
    with pytest.raises(AttributeError, match="no attribute 'tracks'"):
        ocelad.spark.tracks  # noqa: B018


def test_trackers_can_come_from_elsewhere():
    keys, seq, pairs, y = stream(30)
    fleet, options = KeyedTrackers().partial_fit(keys, pairs, y), FleetOptions()
    bucket, last = Bucket(options), dict(zip(keys, seq.tolist(), strict=True))
    for key in fleet:
        bucket.add(key, (last[key], fleet[key]._engine.t), pack(fleet[key]), b"")
    done = learn(options, bucket.write(), rows_of(keys * 2, np.concatenate([seq, seq + 1000]), *twice(pairs, y)))
    assert done.t == 60
    assert trackers_of(done.blob, options) == one_process(keys * 2, *twice(pairs, y), MetricTracker.rice())


@pytest.mark.parametrize("tracker", [MetricTracker(memory=32), rice(origin=np.diag([1.0, 2.0, 3.0]), scale=2.0)])
def test_a_bucket_says_with_which_options_it_was_learned(tracker):
    keys, seq, pairs, y = stream(40)
    options = FleetOptions(tracker, ChangeAlarm(steps=50), buckets=7)
    blob = learn(options, None, rows_of(keys, seq, pairs, y)).blob
    found = Bucket(None, blob)
    assert {key: dumps(found.tracker(key)) for key in found.index} == one_process(keys, pairs, y, tracker)
    assert (found.options.alarm.steps, found.options.buckets, found.n_features) == (50, 7, N)
    assert found.write() == blob
    Bucket(options, blob)
    for last, scale in ((4.0, 2.0), (3.0, 2)):  # another matrix, and an integer in place of a float
        other = rice(origin=np.diag([1.0, 2.0, last]), scale=scale)
        with pytest.raises(FileError, match="learned with other options than these"):
            Bucket(FleetOptions(other, ChangeAlarm(steps=50), buckets=7), blob)
    with pytest.raises(FileError, match=r"than these: alarm was \{.*\} and is None, step was 8.0 and is 9.0$"):
        Bucket(FleetOptions(clone(tracker).set_params(step=9.0), buckets=7), blob)
    with pytest.raises(FileError, match=r"of 7 buckets, and now there are 8: .*; rebucket\(\) divides them anew"):
        Bucket(FleetOptions(tracker, ChangeAlarm(steps=50), buckets=8), blob)
    for wrong in ({"options": []}, {"options": {"step": 1.0}}, {"alarm": {"steps": 1.0}}, {"buckets": -1}):
        with pytest.raises(FileError):
            Bucket(None, rewritten(blob, **wrong))
        with pytest.raises(FileError):
            Bucket(options, rewritten(blob, **wrong))


def test_what_an_alarm_has_seen_is_not_for_new_keys():
    keys, seq, pairs, y = stream(60, keys=1)
    used = ChangeAlarm(steps=50)
    for _ in range(30):
        used.update(True)
    blobs = [
        learn(FleetOptions(rice(), alarm), None, rows_of(keys, seq, pairs, y)).blob
        for alarm in (used, ChangeAlarm(steps=50))
    ]
    assert blobs[0] == blobs[1]


def test_options_that_do_not_suit_are_refused_at_once():
    with pytest.raises(ValueError, match="origin"):
        FleetOptions(rice(origin=np.eye(3)), n_features=2)
    bucket = Bucket(FleetOptions(), blob_of(FleetOptions()))
    key = next(iter(bucket.index))
    with pytest.raises(ValueError, match="is there twice"):
        bucket.add(key, (1, 1), bytes(bucket.records[0]), b"")


def twice(*arrays):
    return [np.concatenate([array, array]) for array in arrays]
