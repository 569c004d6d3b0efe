"""Histories, alarms and indexes as bytes: what comes back goes on as if nothing had happened."""

import numpy as np
import pytest
from scipy.sparse import csr_array

import ocelad
from forge import assert_memory_within_the_limit, forged, option, put
from ocelad import ChangeAlarm, FileError, History, MetricTracker, SquaredFrobenius, SupervisedMetricTracker
from ocelad.neighbors import MovingIndex
from streams import comparisons
from trackers import either, rice

N, STEPS = 6, 300
PAIRS, Y = comparisons(seed=1, steps=STEPS, n=N)


def watched(new=MetricTracker, **options):
    tracker = new(base=4)
    return tracker, History(tracker, **options)


def learn(tracker, start, stop):
    return tracker.partial_fit(PAIRS[start:stop], Y[start:stop])


def seen(history):
    """All that a history shows, and what it keeps for its next row."""
    return (
        *(array.tobytes() for array in (history.records, history.weights, history.relevance, history.lengths)),
        (history.events, history.stride, history.every, history.capacity, len(history)),
        (history._outcomes, None if history.alarm is None else history.alarm.state()),
    )


@either
@pytest.mark.parametrize("cut", [1, 6, 7, 100, 151, 299])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"every": 7},
        {"every": 3, "capacity": 5},
        {"alarm": ChangeAlarm(steps=20.0)},
        {"every": 5, "alarm": ChangeAlarm(steps=5.0, memory=16), "capacity": 4},
    ],
    ids=["plain", "every", "full", "alarm", "events"],
)
def test_a_history_goes_on_bit_for_bit(options, cut, new):
    tracker, history = watched(new, **options)
    learn(tracker, 0, cut)
    data = ocelad.dumps(tracker)
    again = ocelad.loads(data)
    assert ocelad.dumps(again) == data
    assert again._history.tracker is again
    assert seen(again._history) == seen(history)
    for each in (tracker, again):
        learn(each, cut, STEPS)
    assert seen(again._history) == seen(history)
    assert ocelad.dumps(again) == ocelad.dumps(tracker)
    for each in (tracker, again):  # fit begins a record anew, with an alarm as it was at first
        each.fit(PAIRS[:50], Y[:50])
    assert seen(again._history) == seen(history)


@either
def test_an_alarm_was_heard(new):
    tracker, history = watched(new, alarm=ChangeAlarm(steps=5.0))
    learn(tracker, 0, STEPS)
    assert history.events
    assert ocelad.loads(ocelad.dumps(tracker))._history.events == history.events


def test_a_history_that_began_late_or_looks_no_more():
    tracker = learn(MetricTracker(), 0, 50)
    plain = ocelad.dumps(tracker)
    history = History(tracker, every=10)
    again = ocelad.loads(ocelad.dumps(tracker))
    for each in (tracker, again):
        learn(each, 50, 100)
    assert seen(again._history) == seen(history)
    assert len(history) == 5
    history.stop()
    assert ocelad.loads(ocelad.dumps(tracker))._history is None
    assert len(plain) < len(ocelad.dumps(again))


def test_histories_of_slow_engines_and_of_trackers_behind():
    tracker = rice(regularizer=SquaredFrobenius(0.05), step=0.5)
    history = History(tracker, every=3)
    again = ocelad.loads(ocelad.dumps(learn(tracker, 0, 40)))
    for each in (tracker, again):
        learn(each, 40, 80)
    assert seen(again._history) == seen(history)
    front = SupervisedMetricTracker(random_state=0).partial_fit(PAIRS[:40, 0], Y[:40])
    history = History(front.tracker_, every=2)
    front.partial_fit(PAIRS[40:60, 0], Y[40:60])
    again = ocelad.loads(ocelad.dumps(front))
    assert seen(again.tracker_._history) == seen(history)


@pytest.mark.parametrize("cut", [0, 3, 8, 11])
def test_a_history_of_pairs_and_triplets_goes_on(cut):
    tracker, history = watched(every=7, alarm=ChangeAlarm(steps=5.0))
    again = tracker
    for t in range(0, 240, 20):
        if t == 20 * cut and t:
            data = ocelad.dumps(tracker)
            again = ocelad.loads(data)
            assert ocelad.dumps(again) == data
        for each in {id(tracker): tracker, id(again): again}.values():
            learn(each, t, t + 11).partial_fit_triplets(
                np.concatenate([PAIRS, PAIRS[::-1, :1]], axis=1)[t : t + 9]
            )
    assert seen(again._history) == seen(history)


def many_features():
    rng, n = np.random.default_rng(0), 3000
    rows = np.where(rng.random((2, 40, n)) < 0.005, rng.normal(size=(2, 40, n)), 0.0)
    return [csr_array(side) for side in rows], rng.choice([-1, 1], size=40)


@pytest.mark.parametrize("origin", [0.0, 0.1])
def test_a_history_of_many_features_goes_on(origin):
    """What is saved of its last look has as many columns as the metric has dimensions."""
    (left, right), y = many_features()
    tracker = MetricTracker(origin=origin)
    history = History(tracker, every=3)
    data = ocelad.dumps(tracker.partial_fit((left[:20], right[:20]), y[:20]))
    assert len(data) < 8 * 3000**2
    again = ocelad.loads(data)
    assert ocelad.dumps(again) == data
    for each in (tracker, again):
        each.partial_fit((left[20:], right[20:]), y[20:])
    assert seen(again._history) == seen(history)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (put(lambda a: a[:, 1:], "history.columns"), "columns must be"),
        (put(lambda a: a * np.nan, "history.columns"), "columns must be finite"),
        (put(lambda a: np.concatenate([a, a]), "history.sigma"), "sigma must be"),
        (put(lambda a: -0.0 * a, "history.lengths"), "lengths must be >= 0"),
    ],
)
def test_forged_histories_of_many_features_are_refused(change, message):
    tracker = MetricTracker()
    History(tracker, every=3)
    data = ocelad.dumps(tracker.partial_fit(*many_features()))
    assert forged(data, lambda *_: None) == data
    with pytest.raises(FileError, match=message):
        ocelad.loads(forged(data, change))


def test_alarms_of_others_are_refused():
    class Mine(ChangeAlarm):
        pass

    class Silent:
        def update(self, wrong, levels=None):
            pass

    for alarm in (Mine(), Silent()):
        tracker, history = watched(alarm=alarm)
        learn(tracker, 0, 20)
        with pytest.raises(ValueError, match=r"alarm=.* cannot be saved: a file holds a ChangeAlarm"):
            ocelad.dumps(tracker)
        history.stop()
        ocelad.dumps(tracker)
    pytest.importorskip("river")
    tracker, _ = watched(alarm=ocelad.RiverAlarm())
    with pytest.raises(ValueError, match="cannot be saved"):
        ocelad.dumps(learn(tracker, 0, 20))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (put("x", "history", "every"), "every"),
        (put(0, "history", "every"), "every"),
        (put({}, "history"), "does not have the entries"),
        (put([], "history"), "does not have the entries"),
        (put(None, "history"), "its arrays are"),
        (put(1, "history", "capacity"), "capacity"),
        (put(3, "history", "stride"), "room for"),
        (put(0, "history", "stride"), "stride must be >= 1"),
        (put(2**64, "history", "alarm", "memory"), "too large"),
        (put([-1.0, 40.0], "history", "alarm", "state", "square"), "negative mean of squares"),
        (put([1.0, -40.0], "history", "new_alarm", "state", "square"), "negative mean of squares"),
        (put(None, "history", "pending"), "pending"),
        (put([[1, "rise", 1, 1.0]], "history", "events"), "events must have"),
        (put({}, "history", "events"), "events must have"),
        (put({"steps": 2.0}, "history", "alarm"), "alarm is not one"),
        (put(1.0, "history", "alarm", "steps"), "steps must be"),
        (put([0.0, 0.0], "history", "alarm", "state", "errors"), "no error rate"),
        (put([1.0, [[1]]], "history", "alarm", "state", "jump"), "must have numbers"),
        (put(["a"], "history", "alarm", "state", "weights"), "must have numbers"),
        (put(lambda a: a[:-1], "history.numbers"), "numbers must be"),
        (put(lambda a: a[:, :-1], "history.counts"), "counts must be"),
        (put(lambda a: a - 10**6, "history.counts"), "counts must be >= 1"),
        (put(lambda a: a[1:], "history.weights"), "weights must be"),
        (put(lambda a: a[1:], "history.M"), "M must be"),
        (put(lambda a: a.ravel(), "history.outcomes"), "outcomes must be"),
        (put(lambda a: a + 0.5, "history.outcomes"), "errors of 0 or 1"),
        (put(lambda a: a + np.array([0.5, 0, 0]), "history.outcomes"), "different times"),
        (put(lambda a: a + np.array([100.0, 0, 0]), "history.outcomes"), "different times"),
        (put(lambda a: a[::-1].copy(), "history.outcomes"), "different times"),
        (put(1, "history", "alarm", "x"), "alarm is not one"),
        (put(lambda a: a * np.nan, "history.relevance"), "relevance must be finite"),
        (put(np.zeros(1), "history.more"), "history's arrays are"),
    ],
)
def test_forged_histories_are_refused(change, message):
    tracker, _ = watched(every=4, alarm=ChangeAlarm(steps=5.0))
    data = ocelad.dumps(learn(tracker, 0, 103))
    assert forged(data, lambda *_: None) == data
    with pytest.raises(FileError, match=message):
        ocelad.loads(forged(data, change))


def test_outcomes_of_an_earlier_version_load():
    """They had a fourth column, which an alarm is told at once by now."""
    tracker, _ = watched(every=4, alarm=ChangeAlarm(steps=5.0))
    data = ocelad.dumps(learn(tracker, 0, 103))
    older = forged(data, put(lambda a: np.column_stack([a, np.ones(len(a))]), "history.outcomes"))
    assert older != data
    assert ocelad.dumps(ocelad.loads(older)) == data


def rows(count):
    """A change: a history of this many rows."""

    def change(options, entries, arrays):  # noqa: ARG001
        entries["history"]["capacity"] = count
        shapes = {"numbers": (count, 5), "weights": (count,), "relevance": (count, N)}
        arrays["history.counts"] = np.ones((count, 4), np.int64)
        arrays.update({f"history.{name}": np.zeros(shape) for name, shape in shapes.items()})

    return change


def test_memory_of_a_history_is_limited(tmp_path):
    """Of rows, and of pairs that wait for a look."""
    tracker, _ = watched(every=4)
    (tmp_path / "rows").write_bytes(forged(ocelad.dumps(learn(tracker, 0, 103)), rows(3000)))
    waiting, _ = watched(every=10**6)
    waiting.partial_fit(np.tile(PAIRS, (100, 1, 1)), np.tile(Y, 100))
    ocelad.save(waiting, tmp_path / "outcomes")
    for name in ("rows", "outcomes"):
        assert_memory_within_the_limit(tmp_path / name)


# Indexes


@pytest.mark.parametrize("ids", [None, [4, 9, 2], ["a", "", "ü"]], ids=["counted", "integers", "strings"])
def test_an_index_comes_back(ids, tmp_path):
    index = MovingIndex(learn(MetricTracker(), 0, 100))
    index.add(PAIRS[:3, 0], ids)
    index.export()
    learn(index.metric, 100, 120)
    data = ocelad.dumps(index)
    ocelad.save(index, tmp_path / "index")
    assert (tmp_path / "index").read_bytes() == data
    again = ocelad.load(tmp_path / "index")
    assert ocelad.dumps(again) == data
    assert isinstance(again, MovingIndex)
    assert again.ids.tolist() == index.ids.tolist()
    assert (again.fingerprint, again.moved, again.stale) == (index.fingerprint, index.moved, True)
    for each in (index, again):
        learn(each.metric, 120, 150)
        each.add(PAIRS[3:5, 0], ["b", "c"] if ids and ids[0] == "a" else None)
        each.remove(each.ids[:1])
    for one, other in zip(index.kneighbors(PAIRS[:9, 1], 6), again.kneighbors(PAIRS[:9, 1], 6), strict=True):
        assert one.tolist() == other.tolist()
    assert ocelad.dumps(again) == ocelad.dumps(index)


def test_an_index_without_points():
    index = MovingIndex(learn(MetricTracker(), 0, 20))
    assert len(ocelad.loads(ocelad.dumps(index))) == 0
    index.remove(index.add(PAIRS[:2, 0]))
    again = ocelad.loads(ocelad.dumps(index))
    assert again.add(PAIRS[:1, 0]).tolist() == [2]  # it counts on
    with pytest.raises(ValueError, match="X must be"):
        again.add(np.zeros((1, 3)))


def test_an_index_with_a_metric_of_ones_own_is_refused():
    class Plain:
        mu_ = 1.0

        def get_mahalanobis_matrix(self):
            return np.eye(2)

    with pytest.raises(ValueError, match=r"metric=.* cannot be saved: a file holds an index with a MetricTracker"):
        ocelad.dumps(MovingIndex(Plain()))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (put(["a"], "ids"), "its arrays are"),
        (option("x", 1), "an index has no options"),
        (lambda *parts: parts[2].update(points=parts[2].pop("points")), "those of metric. after the others"),
        (put(2, "next"), "next must be above all ids"),
        (put(None, "next"), "next must be an integer"),
        (put("1", "exported"), "exported must be"),
        (put({}, "metric"), "and a metric's"),
        (put(lambda a: a[:, 1:], "points"), "points must be"),
        (put(lambda a: a[1:], "points"), "ids must be"),
        (put(lambda a: a * 0, "ids"), "ids must differ"),
        (put(lambda a: -a - 1, "ids"), "ids must be .* >= 0"),
        (put(lambda a: a.astype(float), "ids"), "ids must be int64"),
        (put(lambda a: a * np.inf, "points"), "points must be finite"),
        (put(lambda a: a[1:], "exported"), "exported must be"),
    ],
)
def test_forged_indexes_are_refused(change, message):
    index = MovingIndex(learn(MetricTracker(), 0, 20))
    index.add(PAIRS[:3, 0])
    index.export()
    data = ocelad.dumps(index)
    assert forged(data, lambda *_: None) == data
    with np.errstate(invalid="ignore"), pytest.raises(FileError, match=message):
        ocelad.loads(forged(data, change))


def test_points_that_do_not_suit_the_tracker_are_refused():
    index = MovingIndex(learn(MetricTracker(), 0, 20))
    with pytest.raises(ValueError, match=rf"X must be .* of shape \(m, {N}\), got shape \(1, 3\)"):
        index.add(np.zeros((1, 3)))
    assert len(ocelad.loads(ocelad.dumps(index))) == 0
    early = MovingIndex(MetricTracker())
    early.add(np.zeros((1, 3)))
    learn(early.metric, 0, 20)
    with pytest.raises(ValueError, match="metric must have the 3 features of the stored points"):
        ocelad.dumps(early)


def test_memory_of_an_index_is_limited(tmp_path):
    index = MovingIndex(learn(MetricTracker(), 0, 20))
    index.add(np.zeros((10_000, N)))
    narrow = MovingIndex(MetricTracker().partial_fit(PAIRS[:20, :, :1], Y[:20]))  # ids take more than its points
    narrow.add(np.zeros((10_000, 1)))
    for number, each in enumerate((index, narrow)):
        ocelad.save(each, tmp_path / f"{number}")
        assert_memory_within_the_limit(tmp_path / f"{number}")
    data = ocelad.dumps(index)
    with pytest.raises(FileError, match="its points take more than"):
        ocelad.loads(data, limit=len(data) + 100_000)
