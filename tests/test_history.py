"""A record of what a tracker goes through: it changes nothing, it is bounded, and it says what it promises."""

import builtins
import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone

from ocelad import (
    ChangeAlarm,
    CoinBetting,
    History,
    LogDet,
    MetricTracker,
    Pool,
    SaolWeights,
    time_scale,
)
from ocelad.engine import Trace
from ocelad.engine.stack_engine import StackEngine
from ocelad.geometry import quadratic
from ocelad.geometry.quadratic import Parts, frobenius_distance
from ocelad.watch.history import RECORD
from ocelad.watch.prequential import progressive
from streams import comparisons

SETTINGS = {
    "defaults": MetricTracker(),  # all in one compiled call
    "paper": MetricTracker.paper(step=2.0),
    "coin": MetricTracker(weights=CoinBetting()),  # step by step on the stack
    "logdet": MetricTracker(divergence=LogDet(), origin=1.0, step=1.0),  # black boxes
    "pool": MetricTracker(ensemble=lambda spawn: Pool([spawn(4.0**k, None) for k in range(4)])),
    "saol": MetricTracker(weights=SaolWeights()),
}


def learned(tracker):
    return tracker.experts_.tobytes(), tracker.get_mahalanobis_matrix().tobytes(), tracker.mu_, tracker.scale_


def same(one, other):
    for part in ("records", "weights", "relevance"):
        a, b = getattr(one, part), getattr(other, part)
        assert a.shape == b.shape
        assert a.tobytes() == b.tobytes(), part
    assert (one.events, one.stride) == (other.events, other.stride)


@pytest.mark.parametrize("every", [1, 7, 1000])
@pytest.mark.parametrize("setting", SETTINGS)
def test_recording_changes_nothing(setting, every):
    pairs, y = comparisons(seed=0, steps=120, n=5)
    plain, watched = clone(SETTINGS[setting]), clone(SETTINGS[setting])
    history = History(watched, every=every, capacity=16, alarm=ChangeAlarm())
    for part in (slice(0, 50), slice(50, 51), slice(51, 120)):
        plain.partial_fit(pairs[part], y[part])
        watched.partial_fit(pairs[part], y[part])
        assert learned(plain) == learned(watched)
    assert len(history) == {1: 15, 7: 8, 1000: 0}[every]


@pytest.mark.parametrize("every", [1, 5])
def test_a_record_does_not_depend_on_batches(every):
    pairs, y = comparisons(seed=1, steps=203, n=4)
    histories = []
    for cuts in ([], [1, 2, 3, 50, 202], list(range(1, 203))):
        tracker = MetricTracker()
        histories.append(History(tracker, every=every, capacity=12, alarm=ChangeAlarm()))
        for part in np.split(np.arange(203), cuts):
            tracker.partial_fit(pairs[part], y[part])
    same(histories[0], histories[1])
    same(histories[0], histories[2])


def test_what_is_recorded():
    """Against the public methods, one comparison at a time."""
    pairs, y = comparisons(seed=2, steps=80, n=4)
    tracker, other = (MetricTracker.rice().set_params(scale=1.0) for _ in range(2))
    history = History(tracker)
    tracker.partial_fit(pairs, y)
    M, mu = np.zeros((4, 4)), 1.0
    for row, weights, relevance, pair, label in zip(
        history.records, history.weights, history.relevance, pairs, y, strict=True
    ):
        u = pair[0] - pair[1]
        assert row["loss"] == pytest.approx(max(0.0, 1.0 - label * (mu - u @ M @ u)))
        assert row["error"] == ((u @ M @ u <= mu) != (label > 0))
        other.partial_fit(pair[None], [label])
        after, levels = other.get_mahalanobis_matrix(), other.experts_
        assert row["movement"] == pytest.approx(np.linalg.norm(after - M))
        assert row["threshold"] == other.mu_
        assert row["time_scale"] == time_scale(levels, row["t"])
        np.testing.assert_array_equal(weights[: len(levels)], levels["weight"])
        assert np.isnan(weights[len(levels) :]).all()
        np.testing.assert_allclose(relevance, after.diagonal() / max(after.trace(), 1e-300))
        M, mu = after, other.mu_
    assert history.records["t"].tolist() == list(range(1, 81))
    assert history.lengths.tolist() == levels["length"].tolist()


@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize("capacity", [2, 5, 16])
def test_a_full_record_halves_its_resolution(capacity, every):
    """Rows are joined two by two: means of the means, states of the later one; the whole course stays covered."""
    pairs, y = comparisons(seed=3, steps=200, n=4)
    small, large = MetricTracker(), MetricTracker()
    bounded = History(small, every=every, capacity=capacity)
    full = History(large, every=every, capacity=10**6)
    for t in range(200):
        small.partial_fit(pairs[t : t + 1], y[t : t + 1])
        large.partial_fit(pairs[t : t + 1], y[t : t + 1])
        assert len(bounded) <= capacity
        looks = bounded.stride // every
        assert looks & (looks - 1) == 0  # a power of two
        whole = full.records[: len(full) // looks * looks].reshape(-1, looks)
        assert bounded.records["t"].tolist() == whole["t"][:, -1].tolist()
        for name in ("time_scale", "threshold"):
            np.testing.assert_array_equal(bounded.records[name], whole[name][:, -1])
        for name in ("loss", "error", "movement"):
            np.testing.assert_allclose(bounded.records[name], whole[name].mean(axis=1), rtol=1e-12)
    assert len(bounded) >= capacity // 2
    assert len(full) == 200 // every


def test_watching_from_the_middle():
    pairs, y = comparisons(seed=4, steps=100, n=4)
    tracker = MetricTracker().partial_fit(pairs[:37], y[:37])
    history = History(tracker, every=10)
    tracker.partial_fit(pairs[37:], y[37:])
    assert history.records["t"].tolist() == [40, 50, 60, 70, 80, 90, 100]
    assert history.stop() is history
    tracker.partial_fit(pairs, y)
    assert len(history) == 7
    assert history.weights.shape[1] == len(history.lengths) < len(tracker.experts_)
    again = History(tracker, every=10)
    tracker.partial_fit(pairs[:10], y[:10])
    assert again.records["t"].tolist() == [210]


def test_comparisons_learned_unseen_are_not_counted():
    pairs, y = comparisons(seed=4, steps=90, n=4)
    tracker = MetricTracker()
    history = History(tracker, every=10)
    tracker.partial_fit(pairs[:25], y[:25])
    tracker._history = None
    tracker.partial_fit(pairs[25:57], y[25:57])
    tracker._history = history
    tracker.partial_fit(pairs[57:], y[57:])
    assert history.records["t"].tolist() == [10, 20, 60, 70, 80, 90]
    assert history.records["error"][2] in (0.0, 1 / 3, 2 / 3, 1.0)


@pytest.mark.parametrize("how", ["copy", "pickle"])
def test_a_copy_goes_on_alike(how):
    pairs, y = comparisons(seed=5, steps=100, n=4)
    tracker = MetricTracker()
    history = History(tracker, every=3, capacity=8, alarm=ChangeAlarm())
    tracker.partial_fit(pairs[:50], y[:50])
    other = copy.deepcopy(tracker) if how == "copy" else pickle.loads(pickle.dumps(tracker))
    tracker.partial_fit(pairs[50:], y[50:])
    assert len(other._history) < len(history) or other._history.stride < history.stride
    other.partial_fit(pairs[50:], y[50:])
    same(other._history, history)
    assert clone(tracker)._history is None


def test_a_new_course_is_a_new_record():
    pairs, y = comparisons(seed=6, steps=60, n=4)
    tracker = MetricTracker()
    history = History(tracker, capacity=16, alarm=ChangeAlarm())
    tracker.partial_fit(pairs, y)
    del tracker._engine  # what a reset does
    tracker.partial_fit(pairs[:5], y[:5])
    assert history.records["t"].tolist() == [1, 2, 3, 4, 5]
    assert history.alarm.t == 5


def test_a_rejected_batch_leaves_no_trace():
    pairs, y = comparisons(seed=7, steps=30, n=4)
    tracker = MetricTracker()
    history = History(tracker, alarm=ChangeAlarm())
    tracker.partial_fit(pairs[:20], y[:20])
    before = learned(tracker), history.records.tobytes()
    spoiled = pairs[20:].copy()
    spoiled[-1, 0, 0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        tracker.partial_fit(spoiled, y[20:])
    assert before == (learned(tracker), history.records.tobytes())


def test_an_interrupt_keeps_what_was_learned():
    class CtrlC:
        pressed, seen = False, 0

        def update(self, _wrong, _levels=None):
            self.seen += 1
            if self.seen == 15 and not CtrlC.pressed:
                CtrlC.pressed = True
                raise KeyboardInterrupt

    pairs, y = comparisons(seed=7, steps=40, n=4)
    tracker, plain = MetricTracker(), MetricTracker()
    history = History(tracker, every=5, alarm=CtrlC())
    with pytest.raises(KeyboardInterrupt):
        tracker.partial_fit(pairs, y)
    assert learned(tracker) == learned(plain.partial_fit(pairs[:15], y[:15]))
    tracker.partial_fit(pairs[15:], y[15:])
    assert history.records["t"].tolist() == [5, 10, 15, 20, 25, 30, 35, 40]


@pytest.mark.parametrize(
    ("new", "kinds"), [(MetricTracker, {"jump", "drift"}), (MetricTracker.rice, {"jump"})], ids=["pool", "rice"]
)
@pytest.mark.parametrize("every", [7, 10_000])
def test_an_alarm_hears_the_same_however_seldom_there_is_a_look(new, kinds, every):
    pairs = np.random.default_rng(5).normal(size=(2400, 2, 3))
    angle = np.arange(2400) * 0.003
    along = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    y = np.where(np.abs(np.sum((pairs[:, 0, :2] - pairs[:, 1, :2]) * along, axis=1)) < 1, 1, -1)
    y[2000:] = np.where(np.abs(pairs[2000:, 0, 2] - pairs[2000:, 1, 2]) < 1, 1, -1)
    found = []
    for often in (1, every):
        tracker = new()
        history = History(tracker, every=often, alarm=ChangeAlarm(steps=100.0))
        for start in range(0, 2400, 60):
            tracker.partial_fit(pairs[start : start + 60], y[start : start + 60])
        found.append((history.events, history.alarm.state()))
    assert found[0] == found[1]
    assert {event.kind for event in found[0][0]} == kinds


@pytest.mark.parametrize("known", [False, True])
def test_a_fit_that_fails_leaves_the_record(known, monkeypatch):
    pairs, y = comparisons(seed=7, steps=40, n=4)
    tracker = MetricTracker()
    history = History(tracker, every=5, alarm=ChangeAlarm())
    if known:
        tracker.partial_fit(pairs, y)
    before, seen, run = copy.deepcopy(tracker), [], StackEngine.run

    def stopped(self, rows, *rest):
        seen.append(rows)
        if len(seen) == 4:
            raise KeyboardInterrupt
        run(self, rows, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(StackEngine, "run", stopped)
        with pytest.raises(KeyboardInterrupt):
            tracker.fit(pairs, y)
    assert tracker._history is history
    same(history, before._history)
    for each in (tracker, before):
        each.partial_fit(pairs, y)
    same(history, before._history)
    tracker.fit(pairs, y)
    assert tracker._history is history
    assert history.records["t"].tolist() == [5, 10, 15, 20, 25, 30, 35, 40]
    another = MetricTracker()
    fresh = History(another, every=5, alarm=ChangeAlarm())
    another.fit(pairs, y)
    same(history, fresh)


def test_events_count_the_trackers_comparisons():
    pairs, y = comparisons(seed=8, steps=1600, n=10)
    late, early = MetricTracker().partial_fit(pairs[:300], y[:300]), MetricTracker()
    histories = [History(late, alarm=ChangeAlarm()), History(early, alarm=ChangeAlarm(), every=4)]
    late.partial_fit(pairs[300:], y[300:])
    early.partial_fit(pairs, y)
    for history in histories:
        jumps = [event for event in history.events if event.kind == "jump"]
        assert [800 < event.t <= 900 for event in jumps] == [True]
        assert 700 < jumps[0].onset <= jumps[0].t


def without_matrix(_):
    raise AssertionError("the matrix is multiplied out")


def test_many_features_need_no_matrix(monkeypatch):
    """What is recorded agrees with the matrices, and none is formed."""
    rng, n = np.random.default_rng(0), 2500
    sides = [csr_array(np.where(rng.random((40, n)) < 0.005, rng.normal(size=(40, n)), 0.0)) for _ in range(2)]
    y, histories = rng.choice([-1, 1], size=40), []
    for formed in (False, True):
        tracker = MetricTracker()
        histories.append(History(tracker, every=4))
        with monkeypatch.context() as patch:
            if formed:
                patch.setattr(quadratic, "SQUARE", n)
            else:
                patch.setattr(Parts, "M", property(without_matrix))
            tracker.partial_fit(sides, y)
    for name in RECORD.names:
        np.testing.assert_allclose(histories[0].records[name], histories[1].records[name], rtol=1e-9)
    np.testing.assert_allclose(histories[0].relevance, histories[1].relevance)
    assert len(histories[0]) == 10


@pytest.mark.parametrize("sigma", [0.0, 0.3])
@pytest.mark.parametrize("change", [1.0, 1e-6, 0.0])
def test_distance_of_matrices_of_low_rank(sigma, change, monkeypatch):
    rng = np.random.default_rng(0)
    C, more = rng.normal(size=(30, 4)), rng.normal(size=(30, 1))
    C[::3] = more[::3] = 0.0
    one = Parts(C, np.array([2.0, 1.0, 0.5, -0.1]), 0.5)
    other = Parts(np.hstack([C[:, ::-1], more]), np.array([-0.1, 0.5, 1.0, 2.0, change]), 0.5 + change * sigma)
    wanted = np.linalg.norm(one.M - other.M)
    np.testing.assert_allclose(one.diagonal, one.M.diagonal())
    monkeypatch.setattr(quadratic, "SQUARE", 1)
    monkeypatch.setattr(Parts, "M", property(without_matrix))
    assert frobenius_distance(one, other) == pytest.approx(wanted, rel=1e-7, abs=1e-12)


def triplets(steps, n):
    return np.random.default_rng(5).normal(size=(steps, 3, n))


class Heard:
    """An alarm that says nothing."""

    def __init__(self):
        self.heard = []

    def update(self, wrong, experts=None):
        self.heard.append((wrong, experts is not None))


@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize("new", [MetricTracker, MetricTracker.rice], ids=["pool", "rice"])
def test_implied_pairs_are_learned_and_not_judged(new, every):
    """The alarm hears of every comparison, and of nothing else; the record covers the whole course."""
    pairs, y = comparisons(seed=9, steps=300, n=4)
    tracker, plain = new(), new()
    history = History(tracker, every=every, capacity=1000, alarm=Heard())
    judged = {}
    for k in range(0, 300, 5):
        trace, u = Trace(1), pairs[k : k + 1, 0] - pairs[k : k + 1, 1]
        plain._learn(u, y[k : k + 1].astype(float), trace=trace)
        judged[k + 1] = float(trace.loss[0]), bool(trace.similar[0] != (y[k] > 0))
        tracker.partial_fit(pairs[k : k + 1], y[k : k + 1])
        for each in (plain, tracker):
            each.partial_fit_implied(pairs[k + 1 : k + 5], -y[k + 1 : k + 5])
    assert learned(plain) == learned(tracker)
    assert history.records["t"].tolist() == list(range(every, 301, every))
    for row in history.records:
        of_row = [judged[t] for t in range(row["t"] - every + 1, row["t"] + 1) if t in judged]
        loss, error = np.mean(of_row, axis=0) if of_row else (np.nan, np.nan)
        assert row["loss"] == pytest.approx(loss, rel=1e-12, nan_ok=True)
        assert row["error"] == pytest.approx(error, nan_ok=True)
    assert history.alarm.heard == [(wrong, True) for _, wrong in judged.values()]


@pytest.mark.parametrize("every", [1, 2, 10])
def test_triplets_are_comparisons_too(every):
    """Whatever comes when the tracker is to be looked at; outcomes are those of pairs."""
    pairs, y = comparisons(seed=8, steps=200, n=4)
    orders, tracker, alone = triplets(200, 4), MetricTracker(scale=1.0), MetricTracker(scale=1.0)
    history, errors = History(tracker, every=every, capacity=32, alarm=ChangeAlarm()), []
    for t in range(200):
        errors.append(t > 0 and alone.predict(pairs[t : t + 1])[0] != y[t])
        for each in (tracker, alone):
            each.partial_fit(pairs[t : t + 1], y[t : t + 1]).partial_fit_triplets(orders[t : t + 1])
        assert len(history._outcomes) < every
    stride = history.stride
    assert history.records["t"].tolist() == list(range(stride, 401, stride))
    if stride > 1:
        means = np.array(errors[: 400 // stride * stride // 2]).reshape(-1, stride // 2).mean(axis=1)
        np.testing.assert_allclose(history.records["error"], means)
    assert history.alarm.t == 399


def test_rows_of_triplets_alone():
    pairs, y = comparisons(seed=8, steps=10, n=4)
    tracker = MetricTracker()
    history = History(tracker, every=5)
    tracker.partial_fit_triplets(triplets(10, 4)).partial_fit(pairs, y)
    assert np.isnan(history.records["error"]).tolist() == [True, True, False, False]
    assert np.isnan(history.records["loss"]).tolist() == [True, True, False, False]
    assert (history.records["movement"][1:] > 0).all()


def test_events_of_a_stream_with_triplets_are_on_the_trackers_clock():
    """Between the pairs there are as many triplets, and one more; the notion changes with the 2501st pair."""
    pairs = np.random.default_rng(0).normal(size=(5000, 2, 4))
    y = np.where(np.abs(pairs[:, 0, 0] - pairs[:, 1, 0]) < 1, 1, -1)
    y[2500:] = np.where(np.abs(pairs[2500:, 0, 3] - pairs[2500:, 1, 3]) < 1, 1, -1)
    orders = pairs[np.random.default_rng(1).integers(0, 5000, size=(5000, 3)), 0]
    relevant = np.where(np.arange(5000) < 2500, 0, 3)
    near, far = (np.abs(orders[:, 0] - orders[:, k])[np.arange(5000), relevant] for k in (1, 2))
    orders[near > far] = orders[near > far][:, [0, 2, 1]]
    tracker = MetricTracker()
    history = History(tracker, every=100, alarm=ChangeAlarm())
    for k in range(0, 5000, 50):
        tracker.partial_fit(pairs[k : k + 50], y[k : k + 50]).partial_fit_triplets(orders[k : k + 51])
    assert history.records["t"].tolist() == list(range(100, tracker._engine.t + 1, 100))
    jumps = [event for event in history.events if event.kind == "jump"]
    assert [5050 < event.onset <= event.t < 5400 for event in jumps] == [True]


def test_sparse_rows_are_judged_like_dense_ones():
    pairs, y = comparisons(seed=9, steps=40, n=4)
    histories = []
    for given in (pairs, tuple(csr_array(pairs[:, side]) for side in (0, 1))):
        tracker = MetricTracker(ensemble=lambda spawn: Pool([spawn(4.0, None)]), origin=1.0, step=1.0, scale=1.0)
        histories.append(History(tracker, every=8))
        tracker.partial_fit(given, y)
    assert len(histories[0]) == 5
    same(*histories)


def test_nothing_is_imported_before_it_is_needed():
    code = "import sys; from ocelad import *; print([m for m in ('river', 'matplotlib') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_effective_time_scale():
    levels = np.array([(4.0, 0.25), (64.0, 0.25), (np.inf, 0.5)], dtype=[("length", float), ("weight", float)])
    assert time_scale(levels, 256) == pytest.approx((4 * 64 * 256 * 256) ** 0.25)
    assert time_scale(levels, 2) == pytest.approx(2)


def test_what_is_recorded_of_a_pool():
    """Against its own trace."""
    pairs, y = comparisons(seed=2, steps=80, n=4)
    tracker, other = MetricTracker(), MetricTracker()
    history = History(tracker)
    tracker.partial_fit(pairs, y)
    trace = progressive(other, pairs, y)
    assert history.records["loss"].tolist() == trace.loss.tolist()
    assert history.records["error"].tolist() == (trace.similar != (y > 0)).tolist()
    np.testing.assert_array_equal(history.weights, trace.weights)
    experts = other.experts_
    assert history.kinds == tuple(experts["kind"])
    assert history.lengths.tolist() == experts["length"].tolist()
    assert history.records["time_scale"][-1] == time_scale(experts, 80)
    assert set(history.kinds) == {"replay", "euclid", "rice"}


def test_frame():
    pd = pytest.importorskip("pandas")
    pairs, y = comparisons(seed=9, steps=50, n=4)
    tracker = MetricTracker()
    history = History(tracker, every=5)
    tracker.partial_fit(pairs, y)
    frame = history.frame()
    assert isinstance(frame, pd.DataFrame)
    rice = ["rice 8", "rice 16", "rice 32"]
    replay = [f"replay {2**k}" for k in range(5, 12)]
    assert list(frame.columns) == [*RECORD.names[1:], *replay, "euclid", *rice]
    assert frame.index.name == "t"
    assert frame.index.tolist() == list(range(5, 51, 5))
    np.testing.assert_array_equal(frame[rice], history.weights[:, -3:])
    both = np.flatnonzero(history.lengths == 128)
    np.testing.assert_allclose(frame["replay 128"], history.weights[:, both[:2]].sum(axis=1))
    np.testing.assert_array_equal(frame["loss"], history.records["loss"])


def test_frame_without_pandas(monkeypatch):
    real = builtins.__import__

    def missing(name, *rest):
        if name == "pandas":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(ImportError, match=r"ocelad\[frames\]"):
        History(MetricTracker()).frame()


def test_an_empty_record_is_empty():
    history = History(MetricTracker())
    assert (len(history), len(history.records), len(history.weights), len(history.relevance)) == (0, 0, 0, 0)


def test_what_is_handed_out_is_read_only():
    pairs, y = comparisons(seed=9, steps=20, n=4)
    tracker = MetricTracker()
    history = History(tracker)
    tracker.partial_fit(pairs, y)
    for array in (history.records["loss"], history.weights, history.relevance, history.lengths):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"every": 0}, "every must be an integer >= 1, got 0"),
        ({"every": 2.5}, "every must be an integer >= 1, got 2.5"),
        ({"every": True}, "every must be"),
        ({"capacity": 1}, "capacity must be an integer >= 2, got 1"),
        ({"alarm": 3}, "alarm must be None or an alarm"),
    ],
)
def test_bad_options(options, message):
    tracker = MetricTracker()
    with pytest.raises(ValueError, match=message):
        History(tracker, **options)
    History(tracker)  # the failed attempt has left no hook behind


def test_one_history_at_a_time():
    tracker = MetricTracker()
    History(tracker)
    with pytest.raises(ValueError, match="already has a history"):
        History(tracker)
    with pytest.raises(ValueError, match="tracker must be a MetricTracker"):
        History("tracker")
