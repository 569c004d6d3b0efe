"""Closures of answers against a literal one, which goes through the window anew for every question."""

from __future__ import annotations

import copy
import pickle
from collections import Counter
from collections.abc import Hashable
from itertools import pairwise
from math import log
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ocelad
from ocelad.closure import Closure, Reset

ITEMS = st.integers(0, 7)
ANSWERS = st.lists(st.tuples(ITEMS, ITEMS, st.sampled_from([1, -1])).filter(lambda a: a[0] != a[1]), max_size=60)
WINDOWS = st.sampled_from([1, 2, 5, 12, 100, None])


def literal(answers: list[tuple[Hashable, Hashable, int]]) -> tuple[dict[Any, set[Any]], set[frozenset[Any]]]:
    """Groups and pairs of different items, taking the newest first and skipping what contradicts."""
    group = {item: {item} for i, j, _ in answers for item in (i, j)}
    different: set[frozenset[Any]] = set()

    def apart(i: Any, j: Any) -> bool:
        return any(frozenset((a, b)) in different for a in group[i] for b in group[j])

    for i, j, y in reversed(answers):
        if y > 0 and not apart(i, j):
            joined = group[i] | group[j]
            group.update(dict.fromkeys(joined, joined))
        elif y < 0 and group[i] is not group[j]:
            different.add(frozenset((i, j)))
    return group, different


def literal_implied(answers: list[Any], a: Any, b: Any) -> int:
    group, different = literal(answers)
    if a == b:
        return 1
    if a not in group or b not in group:
        return 0
    if group[a] is group[b]:
        return 1
    return -1 if any(frozenset((c, d)) in different for c in group[a] for d in group[b]) else 0


def told(closure: Closure, answers: list[Any]) -> Closure:
    for answer in answers:
        closure.answer(*answer)
    return closure


def state(closure: Closure) -> Any:
    """Everything that later answers and draws depend on."""
    groups = {frozenset(own) for own in closure.groups()}
    pairs = [(a, b, closure.implied(a, b)) for a in range(8) for b in range(8)]
    return closure.answers(), list(closure._count.items()), groups, pairs, ocelad.dumps(closure)


@settings(max_examples=300)
@given(ANSWERS, WINDOWS)
def test_equals_going_through_the_window_anew(answers: Any, window: int | None) -> None:
    closure = Closure(window=window, odds=1e300)
    for k, (i, j, y) in enumerate(answers, start=1):
        closure.answer(i, j, y)
        counts = answers[:k] if window is None else answers[:k][-window:]
        assert closure.answers() == counts
        group, _ = literal(counts)
        assert {frozenset(own) for own in closure.groups()} == {frozenset(own) for own in group.values()}
        for a in range(8):
            for b in range(8):
                assert closure.implied(a, b) == literal_implied(counts, a, b)


# Resets


def literal_resets(answers: list[Any], window: int | None, odds: float) -> list[int]:
    """Page's test as it is written down: when it resets."""
    kept: list[Any] = []
    wrong, checks, S, resets = 1.0, 20.0, 0.0, []
    for t, (i, j, y) in enumerate(answers, start=1):
        implied = literal_implied(kept, i, j)
        kept = [*kept, (i, j, y)]
        if implied:
            f0 = min(max(wrong / checks, 0.05), 0.4)
            f1 = f0 + 5 / 9 * (0.5 - f0)
            S = max(0.0, S + (log(f1 / f0) if implied != y else log((1 - f1) / (1 - f0))))
            forget = 1 - 1 / 200 if checks >= 200 else 1.0
            wrong, checks = forget * wrong + (implied != y), forget * checks + 1
            if log(odds) < S:
                resets.append(t)
                kept, S = kept[-8:], 0.0
        kept = kept if window is None else kept[-window:]
    return resets


@settings(max_examples=200)
@given(ANSWERS, WINDOWS, st.sampled_from([1.5, 5.0, 20.0, 200.0]))
def test_page_test_is_what_is_written_down(answers: Any, window: int | None, odds: float) -> None:
    closure = Closure(window=window, odds=odds)
    events = [closure.answer(*answer) for answer in answers]
    assert [event.t for event in events if event is not None] == literal_resets(answers, window, odds)
    assert window is None or len(closure.answers()) <= window


def judge(rng: Any, steps: int, change: int, slips: float = 0.0, items: int = 60) -> list[tuple[int, int, int]]:
    """Three groups, and from some answer on three others."""
    before, after = rng.integers(3, size=(2, items))
    answers = []
    for t in range(steps):
        i, j = (int(item) for item in rng.choice(items, size=2, replace=False))
        kind = before if t < change else after
        y = 1 if kind[i] == kind[j] else -1
        answers.append((i, j, -y if rng.random() < slips else y))
    return answers


@pytest.mark.parametrize("seed", range(4))
def test_a_change_is_noticed_and_nothing_else(seed: int) -> None:
    closure = Closure(window=150)
    answers = judge(np.random.default_rng(seed), 700, 400)
    events = [event for answer in answers if (event := closure.answer(*answer))]
    assert [400 < event.t <= 430 for event in events] == [True]
    assert events[0] == Reset(events[0].t, 143)  # all but the last eight of the window and of the answer itself
    assert closure.implied(*answers[-1][:2]) == answers[-1][2]


@pytest.mark.parametrize("seed", range(3))
def test_slips_are_tolerated(seed: int) -> None:
    """One answer in twenty is wrong: resets are few, and nothing is derived where little can be relied on."""
    rng, closure = np.random.default_rng(seed), Closure(window=150)
    answers, resets, derived = judge(rng, 3000, 3000, slips=0.05), 0, []
    for answer in answers:
        resets += closure.answer(*answer) is not None
        derived.append(len(closure.derived(2)))
    assert resets <= 3000 / 400
    assert np.mean(derived[1000:]) < 0.1
    clean = Closure(window=150)
    for answer in judge(np.random.default_rng(seed), 1000, 1000):
        assert clean.answer(*answer) is None
        derived.append(len(clean.derived(2)))
    assert np.mean(derived[-500:]) == 2.0


def test_a_reset_that_is_asked_for() -> None:
    closure = told(Closure(), [(0, 1, 1), (1, 2, 1), (2, 3, -1)])
    assert closure.reset(keep=2) == Reset(3, 1)
    assert closure.answers() == [(1, 2, 1), (2, 3, -1)]
    assert closure.groups() == [[1, 2], [3]]
    assert closure.reset(keep=0) == Reset(3, 2)
    assert (closure.groups(), closure.derived(8)) == ([], [])
    small = told(Closure(window=2), [(0, 1, 1), (1, 2, 1), (2, 3, -1)])
    assert small.reset() == Reset(3, 0)


# Derived pairs


@given(ANSWERS, WINDOWS, st.integers(0, 9))
def test_derived_pairs_are_implied_and_alternate(answers: Any, window: int | None, k: int) -> None:
    closure = Closure(window=window, random_state=0)
    for answer in answers:
        closure.answer(*answer)
        drawn = closure.derived(k)
        for i, j, y in drawn:
            assert i != j
            assert closure.implied(i, j) == y
        signs = [y for *_, y in drawn]
        items = [item for own in closure.groups() for item in own]
        known = {closure.implied(i, j) for i in items for j in items if i != j}
        if closure.evidence > 0.0 or closure._wrong > 0.1 * closure._checks:
            assert not drawn
        else:
            turns = [y for turn in range(k) if (y := 1 if turn % 2 == 0 else -1) in known]
            assert signs == turns


def test_groups_are_drawn_by_their_size() -> None:
    """A group of 5, one of 3, one of 2, and one item alone; the first is known apart from the two after it."""
    groups = [[0, 1, 2, 3, 4], [5, 6, 7], [8, 9], [10]]
    chains = [(a, b, 1) for group in groups for a, b in pairwise(group)]
    closure = told(Closure(random_state=1), [*chains, (0, 5, -1), (4, 9, -1), (10, 0, -1)])
    drawn = [closure.derived(2) for _ in range(6000)]
    similar, different = (Counter(pair[turn][:2] for pair in drawn) for turn in (0, 1))
    assert len(similar) == 5 * 4 + 3 * 2 + 2 * 1
    for group in groups[:3]:
        for i in group:
            share = sum(count for (a, _), count in similar.items() if a == i) / 6000
            assert share == pytest.approx(1 / 10, abs=0.02)
            assert {b for a, b in similar if a == i} == set(group) - {i}
    assert len(different) == 2 * 5 * 6
    for i in range(5):  # each of its partners is as likely
        assert different[i, 10] / 6000 == pytest.approx(1 / 11 / 6, abs=0.008)


def test_draws_are_a_function_of_seed_and_number() -> None:
    answers = judge(np.random.default_rng(0), 100, 100)
    one, other = (told(Closure(random_state=3), answers) for _ in range(2))
    assert one.derived(12) == other.derived(4) + other.derived(8)
    assert one.derived(8) != told(Closure(random_state=4), answers).derived(8)
    again = Closure(random_state=np.random.default_rng(3))
    assert again.seed == one.seed


# Cost


def test_the_work_of_an_answer_does_not_grow_with_their_number(monkeypatch: Any) -> None:
    """Counted in items that are touched, without a clock."""
    work = Counter[str]()
    for name in ("_reached", "_move", "_separate", "_take", "_drop", "_rebuild"):
        plain = getattr(Closure, name)

        def counted(self: Any, *given: Any, plain: Any = plain, name: str = name) -> Any:
            found = plain(self, *given)
            size = {"_reached": lambda: len(found), "_move": lambda: len(given[0])}.get(name, lambda: 1)()
            work[name] += size
            return found

        monkeypatch.setattr(Closure, name, counted)
    closure, seen = Closure(window=150), []
    for t, answer in enumerate(judge(np.random.default_rng(0), 6000, 6000), start=1):
        closure.answer(*answer)
        if t % 2000 == 0:
            seen.append(sum(work.values()))
            work.clear()
    assert seen[2] < 1.1 * seen[1]
    assert seen[2] / 2000 < 150  # of an answer, less than going through the window once


# What is given


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (([1], 2, 1), r"i must be an item that can be a key of a dictionary, got \[1\]"),
        ((1, {}, 1), "j must be an item"),
        ((1, 1, 1), "i and j must be two items, got 1 twice"),
        ((1, np.int64(1), 1), "i and j must be two items"),
        ((1, 2, 0), "y must be .* got 0: say -1 or False for 'different'"),
        ((1, 2, 2), "y must be"),
        ((1, 2, None), "y must be"),
        ((1, 2, "similar"), "y must be"),
        ((1, 2, float("nan")), "y must be"),
        ((1, 2, np.array([1, 1])), "y must be"),
    ],
)
def test_what_is_refused_changes_nothing(given: Any, message: str) -> None:
    closure = told(Closure(random_state=0), [(0, 1, 1), (1, 2, 1), (2, 3, -1)])
    before = state(closure)
    with pytest.raises(ValueError, match=message):
        closure.answer(*given)
    assert state(closure) == before


@pytest.mark.parametrize("k", [-1, 1.5, "4", None, True])
def test_derived_wants_a_number(k: Any) -> None:
    closure = told(Closure(random_state=0), [(0, 1, 1)])
    with pytest.raises(ValueError, match="k must be"):
        closure.derived(k)
    with pytest.raises(ValueError, match="keep must be"):
        closure.reset(k)
    assert (closure.drawn, closure.groups()) == (0, [[0, 1]])


def test_implied_wants_items() -> None:
    with pytest.raises(ValueError, match="j must be an item"):
        Closure().implied(1, [])


@pytest.mark.parametrize("options", [{"window": 0}, {"window": 2.5}, {"odds": 1}, {"odds": np.inf}, {"odds": "2"}])
def test_bad_options(options: Any) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        Closure(**options)


def test_numbers_of_numpy_are_numbers() -> None:
    closure = Closure()
    closure.answer(np.int64(1), 2, np.int64(1))
    closure.answer(np.int32(2), np.int64(3), np.float64(-1.0))
    assert (closure.implied(1, 3), closure.answers()) == (-1, [(1, 2, 1), (2, 3, -1)])
    assert all(type(y) is int for *_, y in closure.answers())
    assert ocelad.loads(ocelad.dumps(closure)).groups() == [[1, 2], [3]]


# Files


@settings(max_examples=60, deadline=None)
@given(ANSWERS, ANSWERS, WINDOWS, st.booleans())
def test_a_closure_that_is_loaded_goes_on_alike(first: Any, then: Any, window: Any, named: bool) -> None:
    def name(answers: Any) -> Any:
        return [(f"item {i}", f"item {j}", y) for i, j, y in answers] if named else answers

    closure = Closure(window=window, odds=5.0, random_state=1)
    for answer in name(first):
        closure.answer(*answer)
        closure.derived(3)
    data = ocelad.dumps(closure)
    others = [ocelad.loads(data), copy.deepcopy(closure), pickle.loads(pickle.dumps(closure))]
    assert ocelad.dumps(others[0]) == data
    for other in others:
        assert other.groups() == closure.groups()
    for answer in name(then):
        events = [each.answer(*answer) for each in (closure, *others)]
        derived = [each.derived(3) for each in (closure, *others)]
        assert events == [events[0]] * 4
        assert derived == [derived[0]] * 4
    for other in others:
        assert ocelad.dumps(other) == ocelad.dumps(closure)


@pytest.mark.parametrize("item", [1.5, (1, 2), None, True, frozenset()])
def test_items_that_a_file_cannot_hold(item: Any) -> None:
    closure = told(Closure(), [(item, "a", 1)])
    with pytest.raises(ValueError, match="cannot be saved: a file holds items that are integers or strings"):
        ocelad.dumps(closure)


def test_a_file(tmp_path: Any) -> None:
    closure = told(Closure(), [("cat", "lion", 1), ("lion", 7, -1)])
    ocelad.save(closure, tmp_path / "closure.ocelad")
    assert ocelad.load(tmp_path / "closure.ocelad").implied("cat", 7) == -1
    with pytest.raises(ocelad.FileError, match="may take more than"):
        ocelad.loads(ocelad.dumps(told(Closure(None), [(k, k + 1, 1) for k in range(2000)])), limit=2**21)


FORGED: dict[str, tuple[dict[str, Any], str]] = {
    "window": ({"window": 1}, "more than were given or the window holds"),
    "window is a float": ({"window": 500.0}, "window must be null or an integer"),
    "window is nothing": ({"window": 0}, "window"),
    "odds": ({"odds": 1.0}, "odds must be"),
    "odds are an integer": ({"odds": 200}, "must be numbers"),
    "seed": ({"seed": -1}, "seed must be an integer"),
    "drawn": ({"drawn": 0.5}, "drawn must be an integer"),
    "t": ({"t": 2}, "more than were given"),
    "evidence": ({"evidence": 6.0}, "evidence must be between"),
    "less evidence than none": ({"evidence": -0.5}, "evidence must be between"),
    "wrong": ({"wrong": 21.0}, "wrong must be above 0"),
    "checks": ({"checks": 0.0}, "wrong must be above 0"),
    "items twice": ({"items": ["a", "b", "a", 3]}, "different ones"),
    "items of a kind": ({"items": ["a", "b", "c", True]}, "integers or strings"),
    "no items": ({"items": None}, "integers or strings"),
    "an item more": ({"items": ["a", "b", "c", 3, 4]}, "about each of them"),
    "an item less": ({"items": ["a", "b", "c"]}, "about the items"),
    "an answer": ({"answers": [[0, 1, 1], [1, 2, 0], [2, 3, -1]]}, "must be \\+1 or -1"),
    "an item with itself": ({"answers": [[0, 1, 1], [2, 2, 1], [2, 3, -1]]}, "two items each"),
    "a number of no item": ({"answers": [[0, 1, 1], [1, 2, 1], [2, -1, -1]]}, "about the items"),
    "answers of two": ({"answers": [[0, 1], [1, 2], [2, 3]]}, "answers must be int64 of shape"),
    "an entry": ({"more": 1}, "does not have the entries of this version"),
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_files_are_refused(name: str) -> None:
    from ocelad.closure import saved
    from ocelad.state import container

    changed, message = FORGED[name]
    settings, entries, arrays = saved.describe(told(Closure(), [("a", "b", 1), ("b", "c", 1), ("c", 3, -1)]))
    answers = np.array(changed.get("answers", arrays["answers"]), dtype=np.int64)
    entries |= {key: value for key, value in changed.items() if key != "answers"}
    pieces = container.write_file(settings.text, {"estimator": "Closure", **entries}, {"answers": answers})
    with pytest.raises(ocelad.FileError, match=message):
        ocelad.loads(b"".join(pieces))
