"""Ctrl-C at any line of the package: what is left has learned whole comparisons, each by all or by none."""

import copy
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import ocelad
from ocelad import (
    Closure,
    CoinBetting,
    FixedShare,
    GradientDescent,
    MetricTracker,
    Ocelad,
    OceladWeights,
    Pool,
    Rice,
    SaolWeights,
    SquaredFrobenius,
    Union,
    on_intervals,
)
from ocelad.baselines import leading_history, online_itml
from ocelad.engine import BoxEngine
from ocelad.interrupt import hold_interrupts
from regression import drifting_regressor, play
from streams import comparisons

PACKAGE = str(Path(ocelad.__file__).parent)
SPAWN = on_intervals(GradientDescent, np.zeros(3), 0.5, radius=0.5)


def stopped_at(number, work):
    """Do the work, and press Ctrl-C at the line of this number; false if there are not so many."""
    seen = 0

    def trace(frame, event, _arg):
        nonlocal seen
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        if event == "line":
            seen += 1
            if seen == number:
                signal.raise_signal(signal.SIGINT)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    assert seen < number, "it was pressed, and not heard"
    return False


ENSEMBLES = {
    "rice": lambda: Rice(SPAWN),
    "union": lambda: Union(Rice(SPAWN, base=2), Pool([SPAWN(4.0, None)])),
    "nested": lambda: Pool([SPAWN(4.0, None), Ocelad(Rice(SPAWN, base=2), FixedShare())]),
}


@pytest.mark.parametrize("ensemble", ENSEMBLES)
@pytest.mark.parametrize("order", ["before", "after"])
def test_algorithm_1_takes_whole_steps(ensemble, order):
    losses, _ = drifting_regressor(seed=7, steps=8)
    wholes = [Ocelad(ENSEMBLES[ensemble](), OceladWeights(), order)]
    for loss in losses:
        wholes.append(copy.deepcopy(wholes[-1]))
        wholes[-1].update(loss)
    line, some = 1, copy.deepcopy(wholes[5])
    while stopped_at(line, lambda some=some: play(some, losses[5:])):  # new levels on the way
        whole = wholes[some.t]
        np.testing.assert_array_equal(some.state, whole.state)
        np.testing.assert_array_equal(some.losses, whole.losses)
        np.testing.assert_array_equal(some.lengths, whole.lengths)
        np.testing.assert_array_equal(some.estimate, whole.estimate)
        line, some = line + 1, copy.deepcopy(wholes[5])
    assert some.t == 8


SETTINGS = {
    "compiled": MetricTracker(base=2),
    "drawn": MetricTracker(base=2, weights=SaolWeights()),
    "baseline": leading_history(step=1.0, base=2),
    "online ITML": online_itml(rate=1.0),
    "features": MetricTracker(base=2, scale="features"),
    "feature boxes": MetricTracker(base=2, regularizer=SquaredFrobenius(0.1), scale="features", memory=None),
    "stack": MetricTracker(base=2, weights=CoinBetting()),
    "boxes": MetricTracker(base=2, regularizer=SquaredFrobenius(0.1), memory=32),  # four windows, and not ten
    "boxes-after": MetricTracker(base=2, weights=OceladWeights(order="after")),
    "other boxes-after": MetricTracker(
        base=2, regularizer=SquaredFrobenius(0.1), weights=OceladWeights(order="after")
    ),
}
PAIRS, Y = comparisons(seed=13, steps=30, n=4)


def learned(tracker):
    metrics = [(metric.M.tobytes(), metric.mu) for metric in tracker.expert_metrics_]
    engine = tracker._engine
    state = (engine.ocelad if isinstance(engine, BoxEngine) else engine).state
    return engine.t, state.tobytes(), tracker.experts_.tobytes(), metrics, tracker._scale


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_tracker_learns_whole_comparisons(setting):
    start = copy.deepcopy(SETTINGS[setting]).partial_fit(PAIRS[:28], Y[:28])
    wholes = [learned(copy.deepcopy(start).partial_fit(PAIRS[28:end], Y[28:end])) for end in (28, 29, 30)]
    line, some = 1, copy.deepcopy(start)
    while stopped_at(line, lambda some=some: some.partial_fit(PAIRS[28:], Y[28:])):  # at 30 there is a new level
        assert learned(some) in wholes
        line, some = line + 1, copy.deepcopy(start)
    assert learned(some) == wholes[-1]


@pytest.mark.parametrize("setting", ["compiled", "boxes"])
def test_a_tracker_learns_whole_implied_pairs(setting):
    start = copy.deepcopy(SETTINGS[setting]).partial_fit(PAIRS[:28], Y[:28])
    wholes = [learned(copy.deepcopy(start).partial_fit_implied(PAIRS[28:end], Y[28:end])) for end in (28, 29, 30)]
    line, some = 1, copy.deepcopy(start)
    while stopped_at(line, lambda some=some: some.partial_fit_implied(PAIRS[28:], Y[28:])):
        assert learned(some) in wholes
        line, some = line + 1, copy.deepcopy(start)
    assert learned(some) == wholes[-1]


@pytest.mark.parametrize("setting", ["compiled", "stack", "boxes", "feature boxes"])
def test_a_tracker_learns_whole_orders(setting):
    """And its unit is that of the orders that it has learned."""
    triplets = np.concatenate([PAIRS, 3.0 * PAIRS[::-1, :1]], axis=1)
    start = copy.deepcopy(SETTINGS[setting]).partial_fit_triplets(triplets[:28])
    wholes = [learned(copy.deepcopy(start).partial_fit_triplets(triplets[28:end])) for end in (28, 29, 30)]
    line, some, seen = 1, copy.deepcopy(start), set()
    while stopped_at(line, lambda some=some: some.partial_fit_triplets(triplets[28:])):
        assert learned(some) in wholes
        seen.add(some._engine.t)
        line, some = line + 1, copy.deepcopy(start)
    assert learned(some) == wholes[-1]
    assert 29 in seen or setting == "compiled"


def test_a_closure_takes_whole_answers():
    answers = [
        (0, 1, 1),
        (1, 2, 1),
        (2, 3, -1),
        (3, 4, 1),
        (0, 4, 1),
        (1, 3, 1),
        (0, 2, -1),
    ]  # the last contradict
    wholes = [Closure(window=4, odds=5.0, random_state=0)]
    for answer in answers:
        wholes.append(copy.deepcopy(wholes[-1]))
        wholes[-1].answer(*answer)
    states, some, line = [ocelad.dumps(whole) for whole in wholes], copy.deepcopy(wholes[3]), 1

    def go_on(some):
        for answer in answers[3:]:
            some.answer(*answer)

    while stopped_at(line, lambda some=some: go_on(some)):
        assert ocelad.dumps(some) == states[some.t]
        assert some.groups() == wholes[some.t].groups()
        line, some = line + 1, copy.deepcopy(wholes[3])
    assert ocelad.dumps(some) == states[-1]


def test_pressed_twice_it_is_heard_at_once():
    reached = []

    @hold_interrupts()
    def press():
        for time in ("first", "second", "third"):
            reached.append(time)
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        press()
    assert reached == ["first", "second"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_between_two_steps_it_is_heard_and_held_again():
    heard = []
    before = signal.signal(signal.SIGINT, lambda number, _: heard.append(number))
    try:
        with hold_interrupts() as pause:
            for step in range(3):
                with hold_interrupts() as inner:  # does nothing of its own
                    signal.raise_signal(signal.SIGINT)
                    inner()
                assert len(heard) == step
                pause()
                assert len(heard) == step + 1
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("ignored", [False, True])
def test_whoever_listens_still_does(ignored):
    heard = []
    usual = signal.SIG_IGN if ignored else lambda number, _: heard.append(number)
    before = signal.signal(signal.SIGINT, usual)
    try:
        with hold_interrupts():
            signal.raise_signal(signal.SIGINT)
            assert not heard
        assert heard == ([] if ignored else [signal.SIGINT])
        assert signal.getsignal(signal.SIGINT) is usual
    finally:
        signal.signal(signal.SIGINT, before)


def test_other_threads_learn_as_well():
    losses, _ = drifting_regressor(seed=7, steps=20)
    one, other = (Ocelad(Rice(SPAWN), FixedShare()) for _ in range(2))
    with ThreadPoolExecutor(1) as pool:
        pool.submit(play, one, losses).result()
    play(other, losses)
    np.testing.assert_array_equal(one.estimate, other.estimate)
