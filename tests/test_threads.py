"""One tracker and many threads: whatever they do, it is as if they had taken turns."""

import copy
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import ocelad
from ocelad import ChangeAlarm, History, MetricTracker, SupervisedMetricTracker
from ocelad.engine.stack_engine import StackEngine
from streams import comparisons
from trackers import either

WRITERS, READERS, CALLS = 2, 4, 500


def writes(number, n):
    """What a writer learns: single comparisons and blocks, of pairs, weighted pairs and triplets, by turns."""
    rng = np.random.default_rng(number)
    pairs, y = comparisons(seed=number, steps=4, n=n)
    for call in range(CALLS):
        size = int(rng.integers(1, 4)) if call % 5 == 0 else 1
        own = pairs[:size] * rng.normal(size=(size, 1, 1))
        if call % 7 == 3:
            yield "partial_fit_triplets", (np.concatenate([own, -own[:, :1]], axis=1),)
        elif call % 7 == 5:
            yield "partial_fit", (own, y[:size], np.full(size, 0.5))
        else:
            yield "partial_fit", (own, y[:size])


def state(tracker):
    return tracker._engine.t, tracker.get_mahalanobis_matrix().tobytes(), tracker.experts_.tobytes()


@either
@pytest.mark.parametrize("n", [5, 104], ids=["columns", "dictionary"])
def test_writers_and_readers_take_turns(n, new, tmp_path, monkeypatch):
    run, turns, owner = StackEngine.run, [], {}

    def noted(self, rows, *rest):
        if self is engine:
            turns.append(owner[threading.get_ident()])
        run(self, rows, *rest)

    pairs, y = comparisons(seed=9, steps=20, n=n)
    tracker = new().partial_fit(pairs, y)
    alone, engine, seen = copy.copy(tracker), tracker._engine, set()
    monkeypatch.setattr(StackEngine, "run", noted)

    def write(number):
        owner[threading.get_ident()] = number
        for name, given in writes(number, n):
            getattr(tracker, name)(*given)

    def read(number):
        rng, path = np.random.default_rng(number), tmp_path / str(number)
        for call in range(CALLS):
            what = (call + number) % 5
            if what == 0:
                tracker.predict(pairs[: rng.integers(1, 20)])
            elif what == 1:
                assert np.isfinite(tracker.transform(pairs[:, 0])).all()
            elif what == 2:
                assert tracker.experts_["weight"].sum() == pytest.approx(1.0)
            elif what == 3 and call % 4 == 0:
                ocelad.save(tracker, path)
                seen.add(state(ocelad.load(path)))
            else:
                seen.add(state(copy.copy(tracker)))

    with ThreadPoolExecutor(WRITERS + READERS) as pool:
        tasks = [pool.submit(write, number) for number in range(WRITERS)]
        tasks += [pool.submit(read, number) for number in range(READERS)]
        for task in tasks:
            task.result()
    monkeypatch.setattr(StackEngine, "run", run)
    assert sorted(turns) == sorted(number for number in range(WRITERS) for _ in range(CALLS))

    streams, states = [writes(number, n) for number in range(WRITERS)], {state(alone)}
    for number in turns:
        name, given = next(streams[number])
        states.add(state(getattr(alone, name)(*given)))
    assert state(alone) == state(tracker)
    assert seen <= states  # readers have seen nothing half done
    assert len(seen) > 1


@either
def test_trackers_of_many_sizes_share_the_scratch_of_a_thread(new):
    """Whatever one has left there is nothing to another, also in threads that work at the same time."""
    sizes = (3, 104, 5, 40, 120)
    streams = {n: comparisons(seed=n, steps=60, n=n) for n in sizes}

    def by_turns(_):
        trackers = {n: new() for n in sizes}
        for t in range(60):
            for n, tracker in trackers.items():
                pairs, y = streams[n]
                tracker.partial_fit(pairs[t : t + 1], y[t : t + 1])
        return {n: state(tracker) for n, tracker in trackers.items()}

    wanted = {n: state(new().partial_fit(*streams[n])) for n in sizes}
    with ThreadPoolExecutor(3) as pool:
        for found in pool.map(by_turns, range(3)):
            assert found == wanted


@pytest.mark.parametrize("name", ["predict", "predict_proba"])
def test_a_threshold_and_its_metric_are_of_one_moment(name):
    """Learning, which ends a threshold that was set, waits until the pairs are judged."""
    pairs, y = comparisons(seed=9, steps=60, n=5)
    threads = []

    class Disturbed(MetricTracker):
        def decision_function(self, given):
            threads.append(threading.Thread(target=self.partial_fit, args=(pairs, y)))
            threads[-1].start()
            threads[-1].join(0.2)
            return super().decision_function(given)

    tracker, plain = (
        kind().partial_fit(pairs[:20], y[:20]).set_threshold(0.5) for kind in (Disturbed, MetricTracker)
    )
    found = getattr(tracker, name)(pairs)
    threads[0].join()
    assert tracker._engine.t == 80
    assert found.tolist() == getattr(plain, name)(pairs).tolist()


def test_a_threshold_is_read_once():
    pairs, y = comparisons(seed=9, steps=60, n=5)

    class Forgetful(MetricTracker):
        """What another thread may do between any two reads."""

        @property
        def _threshold(self):
            return self.__dict__.pop("_once", None)

        @_threshold.setter
        def _threshold(self, value):
            self._once = value

    tracker = Forgetful().partial_fit(pairs, y)
    assert tracker.set_threshold(0.5).threshold_ == 0.5
    assert tracker.set_threshold(0.5)._judge(pairs[:, 0] - pairs[:, 1])[1] == 0.5


def test_a_history_is_read_while_its_tracker_learns():
    pairs, y = comparisons(seed=9, steps=60, n=5)
    tracker = MetricTracker()
    history, done = History(tracker, capacity=8), threading.Event()

    def write():
        for _ in range(40):
            tracker.partial_fit(pairs, y)
        done.set()

    with ThreadPoolExecutor(1) as pool:
        task = pool.submit(write)
        while not done.is_set():
            for rows in (history.records["t"], history.weights, history.relevance):
                assert len(rows) <= 8
            t = history.records["t"]
            assert (np.diff(t) == np.diff(t)[:1]).all()
        task.result()


class Disturbance:
    """Something to pickle along, during which another thread learns."""

    def __init__(self, learn=None):
        self.learn = learn

    def __reduce__(self):
        thread = threading.Thread(target=self.learn)
        thread.start()
        thread.join()
        return Disturbance, ()


def recorded(history):
    return history.records.tobytes(), history._outcomes, history.alarm.state(), history._t


COPIES = {"deepcopy": copy.deepcopy, "pickle": lambda given: pickle.loads(pickle.dumps(given))}


@pytest.mark.parametrize("n", [5, 104], ids=["columns", "dictionary"])
@pytest.mark.parametrize("how", COPIES)
def test_what_is_pickled_is_of_one_moment(how, n):
    pairs, y = comparisons(seed=9, steps=80, n=n)
    tracker = MetricTracker()
    tracker.disturbance = Disturbance(lambda: tracker.partial_fit(pairs[60:], y[60:]))
    history = History(tracker, every=7, alarm=ChangeAlarm())
    tracker.partial_fit(pairs[:60], y[:60])
    before = state(tracker), copy.deepcopy(recorded(history))
    other = COPIES[how](tracker)
    assert (state(other), recorded(other._history)) == before
    assert other._history.tracker is other
    assert tracker._engine.t == 80
    other.partial_fit(pairs[60:], y[60:])
    assert (state(other), recorded(other._history)) == (state(tracker), recorded(history))


@pytest.mark.parametrize("how", COPIES)
def test_a_history_takes_its_tracker_along(how):
    pairs, y = comparisons(seed=9, steps=40, n=5)
    tracker = MetricTracker()
    history = History(tracker, every=3, alarm=ChangeAlarm())
    tracker.partial_fit(pairs, y)
    other = COPIES[how](history)
    assert other.tracker._history is other
    assert (state(other.tracker), recorded(other)) == (state(tracker), recorded(history))
    alone = copy.copy(history)
    stopped = COPIES[how](history.stop())
    tracker.partial_fit(pairs, y)
    assert recorded(stopped) == recorded(history) == recorded(alone)
    assert stopped.tracker._history is None


@pytest.mark.parametrize("how", COPIES)
def test_what_is_pickled_of_a_tracker_of_labelled_points_is_of_one_moment(how):
    pairs, y = comparisons(seed=9, steps=40, n=5)
    tracker = SupervisedMetricTracker(random_state=np.random.RandomState(0))
    tracker.disturbance = Disturbance(lambda: tracker.partial_fit(pairs[20:, 0], y[20:]))
    tracker.partial_fit(pairs[:20, 0], y[:20])
    before = state(tracker.tracker_)
    other = COPIES[how](tracker)
    assert state(other.tracker_) == before
    assert other._random is other.random_state
    other.partial_fit(pairs[20:, 0], y[20:])
    assert state(other.tracker_) == state(tracker.tracker_)
