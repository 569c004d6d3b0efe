"""Alarms: what they report, what they do not, and that scale does not matter."""

import builtins
import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ocelad import ChangeAlarm, Event, History, MetricTracker, RiverAlarm
from ocelad.data import SCENARIO, DriftingClusters
from ocelad.engine.trace import EXPERT
from ocelad.watch.prequential import progressive


def feed(alarm, wrong, levels=None):
    rows = [None] * len(wrong) if levels is None else levels
    return [event for each, row in zip(wrong, rows, strict=True) if (event := alarm.update(each, row))]


def levels(rng, steps, excess, scale=1.0):
    """Four levels of which the longest loses ``excess`` more than the others, in the mean."""
    for _ in range(steps):
        loss = scale * (1.0 + rng.random(4) + excess * np.array([0.0, 0.0, 0.0, 1.0]))
        yield np.array(
            list(zip(["rice"] * 4, [8.0, 16.0, 32.0, 64.0], [0.25] * 4, loss, strict=True)), dtype=EXPERT
        )


def pool(rng, steps, sliding, others=0.0):
    """A pool of which the longest sliding window and the longest of all others lose so much more, in the mean."""
    kinds = ["replay"] * 5 + ["euclid"] + ["rice"] * 3
    lengths = [8.0, 32.0, 128.0, 64.0, 128.0, np.inf, 8.0, 16.0, 32.0]
    excess = np.array([0.0, 0.0, sliding, 0.0, others, others, 0.0, 0.0, others])
    for _ in range(steps):
        loss = 1.0 + rng.random(9) + excess
        yield np.array(list(zip(kinds, lengths, [1 / 9] * 9, loss, strict=True)), dtype=EXPERT)


def direction(seed, steps, n, turn=0.0, jump=0, noise=0.0):
    """What is heard of pairs that are similar if they are close in one direction, which turns or jumps."""
    rng = np.random.default_rng([20, seed])
    pairs, t = rng.normal(size=(steps, 2, n)), np.arange(steps)
    angle = turn * t + (np.pi / 2) * ((jump > 0) & (t >= jump))
    difference = pairs[:, 0] - pairs[:, 1]
    close = np.abs(np.cos(angle) * difference[:, 0] + np.sin(angle) * difference[:, 1]) < 0.95
    y, alarm = np.where(close ^ (rng.random(steps) < noise), 1, -1), ChangeAlarm()
    trace = progressive(MetricTracker(), pairs, y)
    wrong, costs = (trace.similar != (y > 0)).tolist(), trace.log_loss(y).tolist()
    return [event for k in range(steps) if (event := alarm.update(wrong[k], trace.after(k), costs[k]))]


@pytest.mark.parametrize("usual", [0.02, 0.1, 0.2])
def test_jumps_are_reported(usual):
    """In 20 streams: soon, with their beginning and their size; nothing else more often than was asked for."""
    found, others, off = 0, 0, []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        wrong = rng.random(3000) < np.where(np.arange(3000) < 1500, usual, 0.45)
        events = feed(ChangeAlarm(steps=1000), wrong)
        assert {event.kind for event in events} == {"jump"}
        hit = next((event for event in events if 1500 < event.t <= 1600), None)
        found += hit is not None
        others += len(events) - (hit is not None)
        if hit is not None:
            off.append(abs(hit.onset - 1501))
            assert hit.strength == pytest.approx(wrong[hit.onset - 1 : hit.t].mean() - usual, abs=0.05)
    assert found >= 18  # nine in ten
    assert others < 20 * 3000 / 1000
    assert np.median(off) <= 10


@pytest.mark.parametrize("usual", [0.01, 0.1, 0.3, 0.5])
def test_false_alarms_are_rarer_than_asked_for(usual):
    """Lorden's bound for a known rate: at least ``steps`` comparisons apart in the mean."""
    for steps in (30, 1000):
        wrong = np.random.default_rng(0).random(60_000) < usual
        assert len(feed(ChangeAlarm(steps=steps), wrong)) < 60_000 / steps


def test_fewer_errors_are_no_alarm():
    wrong = np.random.default_rng(1).random(4000) < np.linspace(0.5, 0.02, 4000)
    assert feed(ChangeAlarm(), wrong) == []


def test_only_the_drift_of_a_long_memory_is_an_alarm():
    rng = np.random.default_rng(2)
    right = [False] * 1500
    assert feed(ChangeAlarm(), right, levels(rng, 1500, -0.1)) == []
    events = feed(ChangeAlarm(), right, levels(rng, 1500, 0.3))
    assert {event.kind for event in events} == {"drift"}
    assert events[0].strength > 0.2
    assert events[0].onset < events[0].t < 400


@settings(deadline=None, max_examples=10)
@given(st.sampled_from([1e-150, 1e-9, 1e9, 1e150]), st.integers(0, 100))
def test_the_scale_of_losses_does_not_matter(scale, seed):
    right = [False] * 600
    one = feed(ChangeAlarm(), right, levels(np.random.default_rng(seed), 600, 0.3))
    other = feed(ChangeAlarm(), right, levels(np.random.default_rng(seed), 600, 0.3, scale))
    assert len(one) > 0
    assert [(event.t, event.onset) for event in one] == [(event.t, event.onset) for event in other]


def test_after_a_jump_old_memories_are_no_witnesses():
    """A level of length 64 may remember 128 comparisons: so long after a jump, what it loses is no drift."""
    alarm, rng = ChangeAlarm(), np.random.default_rng(3)
    feed(alarm, rng.random(500) < 0.05)
    wrong = np.ones(40, dtype=bool)
    (jump,) = feed(alarm, wrong[: next(k for k in range(1, 41) if feed(copy.deepcopy(alarm), wrong[:k]))])
    events = feed(alarm, [False] * 400, levels(rng, 400, 3.0))
    assert events[0].kind == "drift"
    assert events[0].onset >= jump.t + 128


def test_of_a_pool_only_the_windows_that_slide_bear_witness():
    """The others begin anew when they lose, and what calibrated levels lose says little of their memory."""
    rng, right = np.random.default_rng(7), [False] * 1500
    assert feed(ChangeAlarm(), right, pool(rng, 1500, -0.1, others=3.0)) == []
    events = feed(ChangeAlarm(), right, pool(rng, 1500, 0.3))
    assert {event.kind for event in events} == {"drift"}
    assert 128 <= events[0].onset < events[0].t < 600


def test_after_a_jump_a_window_has_to_unlearn():
    """At first a window is a witness once it is full, after a jump once that has happened twice."""
    alarm, rng = ChangeAlarm(), np.random.default_rng(8)
    feed(alarm, rng.random(500) < 0.05)
    (jump,) = feed(alarm, np.ones(30, dtype=bool))[:1]
    events = feed(alarm, [False] * 600, pool(rng, 600, 3.0))
    assert events[0].kind == "drift"
    assert events[0].onset >= jump.t + 256


@pytest.mark.parametrize("noise", [0.0, 0.1, 0.3])
@pytest.mark.parametrize("n", [2, 3, 5])
def test_small_streams_that_stay_have_no_events(n, noise):
    """With a seed that nothing was chosen on."""
    assert direction(300, 3000, n, noise=noise) == []


@pytest.mark.parametrize("n", [2, 3])
def test_a_jump_is_no_drift(n):
    """Not even when the longest window has forgotten what was before it."""
    events = direction(302, 7000, n, jump=1000)
    assert [event.kind for event in events] == ["jump"]
    assert 1000 < events[0].t < 1100


@pytest.mark.parametrize(("n", "noise", "turn"), [(3, 0.0, 0.001), (5, 0.1, 0.003)])
def test_a_direction_that_turns_is_a_drift(n, noise, turn):
    for seed in (303, 304):
        events = direction(seed, 3000, n, turn=turn, noise=noise)
        assert events[0].kind == "drift"
        assert events[0].t < 2500


def test_a_level_is_judged_by_the_weights_before_its_loss():
    """Weights that have seen the loss make the mixture look good: a fair race must not become a drift."""
    rng, alarm = np.random.default_rng(4), ChangeAlarm()
    rows = []
    for row in levels(rng, 3000, 0.0):
        seen = row.copy()
        seen["weight"] = row["loss"] == row["loss"].min()
        rows.append(seen)
    assert len(feed(alarm, [False] * 3000, rows)) <= 3


def test_jumps_of_scenario_s_are_reported():
    """One trial of those that the alarm was developed on; docs/alarms.md has the others, and fresh ones."""
    rng = np.random.default_rng([2016, 1000])
    data = DriftingClusters.draw(rng)
    steps = list(data.stream(rng, SCENARIO))
    tracker = MetricTracker()
    history = History(tracker, every=4, alarm=ChangeAlarm())
    tracker.partial_fit(np.array([step.pair for step in steps]), [step.y for step in steps])
    jumps = [event.t for event in history.events if event.kind == "jump"]
    assert [t // 100 for t in jumps] == [13, 43]


@pytest.mark.parametrize("how", [copy.deepcopy, lambda alarm: pickle.loads(pickle.dumps(alarm))])
def test_a_copy_goes_on_alike(how):
    alarm, rng = ChangeAlarm(), np.random.default_rng(5)
    feed(alarm, rng.random(1000) < 0.1, levels(rng, 1000, 0.05))
    other = how(alarm)
    wrong, rows = rng.random(1000) < 0.4, list(levels(rng, 1000, 0.3))
    events = feed(alarm, wrong, rows)
    assert {event.kind for event in events} == {"jump", "drift"}
    assert feed(other, wrong, rows) == events


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": 1}, "steps must be a finite number > 1, got 1"),
        ({"steps": np.inf}, "steps must be"),
        ({"odds": 0.5}, "odds must be a finite number > 1, got 0.5"),
        ({"odds": "2"}, "odds must be"),
        ({"memory": 1}, "memory must be an integer >= 2, got 1"),
        ({"memory": 9.5}, "memory must be"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        ChangeAlarm(**options)


def test_bad_input_changes_nothing():
    alarm = ChangeAlarm()
    for wrong in (2, np.nan, "yes", None, np.array([True, False])):
        with pytest.raises(ValueError, match="wrong must be True or False"):
            alarm.update(wrong)
    with pytest.raises(ValueError, match="experts must be a tracker's experts_"):
        alarm.update(True, [1.0, 2.0])
    assert alarm.t == 0


def test_river():
    pytest.importorskip("river")
    rng = np.random.default_rng(6)
    wrong = rng.random(3000) < np.where(np.arange(3000) < 1000, 0.5, np.where(np.arange(3000) < 2000, 0.1, 0.5))
    (event,) = feed(RiverAlarm(), wrong)  # not when errors became rarer
    assert isinstance(event, Event)
    assert 2000 < event.t < 2200
    assert event.strength > 0


def test_river_missing(monkeypatch):
    real = builtins.__import__

    def missing(name, *rest):
        if name == "river":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(ImportError, match=r"ocelad\[river\]"):
        RiverAlarm()
