"""Who said what, what to ask whom next, and how far people agree."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ocelad import MetricTracker
from ocelad.label.questions import LATER, either
from ocelad.serve.judgements import Judgements

X = np.random.default_rng(0).normal(size=(8, 3))
KIND = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0.5)
NEW = MetricTracker()


def truth(i, j):
    return 1 if KIND[i] == KIND[j] else -1


@st.composite
def entries(draw):
    """Answers of three people about eight items, now and then unsure, or judging differently."""
    pair = st.tuples(st.integers(0, 7), st.integers(0, 7)).filter(lambda ij: ij[0] != ij[1])
    one = st.tuples(st.sampled_from(["answer"] * 8 + ["skip", "change"]), pair, st.sampled_from([1, -1]),
                    st.sampled_from(["Ann", "Bob", None]))  # fmt: skip
    return draw(st.lists(one, max_size=40))


def take(judgements, number, entry):
    kind, (i, j), y, by = entry
    if kind == "answer":
        judgements.answer(number, i, j, y, by)
    elif kind == "skip":
        judgements.skip(i, j)
    else:
        judgements.change()


def folded(said):
    judgements = Judgements()
    for number, entry in enumerate(said, 1):
        take(judgements, number, entry)
    return judgements


@settings(max_examples=60, deadline=None)
@given(entries(), st.integers(0, 40))
def test_saved_and_gone_on_with_is_as_never_interrupted(said, cut):
    whole, half = folded(said), folded(said[:cut])
    again = Judgements.loads(half.dumps())
    for number, entry in enumerate(said[cut:], cut + 1):
        take(again, number, entry)
    assert again.dumps() == whole.dumps()
    assert again.summary(8) == whole.summary(8)


@settings(max_examples=60, deadline=None)
@given(entries())
def test_agreement_is_what_counting_gives(said):
    """Krippendorff's alpha from the matrix of coincidences, and the share of pairs of people that agree."""
    latest = {}
    for kind, pair, y, by in said:
        if kind == "answer":
            latest.setdefault(either(*pair), {})[by] = y
        elif kind == "change":
            latest.clear()
    units = [list(labels.values()) for labels in latest.values() if len(labels) > 1]
    found = folded(said).agreement()
    assert found["pairs"] == len(units)
    if not units:
        assert found["share"] is found["alpha"] is None
        return
    agree = [a == b for labels in units for a, b in combinations(labels, 2)]
    assert found["share"] == pytest.approx(np.mean(agree))
    o = np.zeros((2, 2))
    for labels in units:
        for a, first in enumerate(labels):
            for b, second in enumerate(labels):
                if a != b:
                    o[int(first > 0), int(second > 0)] += 1 / (len(labels) - 1)
    n = o.sum(axis=1)
    if n.prod() == 0:
        assert found["alpha"] is None
    else:
        assert found["alpha"] == pytest.approx(1 - (n.sum() - 1) * o[0, 1] / n.prod())


def test_contradictions_say_what_was_said_before():
    judgements = Judgements()
    judgements.answer(1, 0, 1, 1, "Ann")
    judgements.answer(2, 1, 0, -1, "Bob")
    judgements.answer(3, 2, 3, 1, "Ann")
    judgements.answer(4, 3, 4, 1, "Ann")
    judgements.answer(5, 2, 4, -1, None)
    first, second = judgements.contradictions
    assert first == {"id": 2, "a": 1, "b": 0, "y": -1, "by": "Bob", "before": {"id": 1, "by": "Ann", "y": 1}}
    assert second["before"] == {"id": None, "by": None, "y": 1}  # by what several say together


@pytest.mark.parametrize("aim", ["metric", "groups"])
def test_nobody_is_asked_what_another_is_asked(aim):
    judgements = Judgements()
    asked = {by: judgements.questions(NEW, X, by, aim, 0.0, 3) for by in ("Ann", "Bob", "Eve")}
    every = [pair for pairs in asked.values() for pair in pairs]
    assert len(set(every)) == len(every) > 4
    assert judgements.questions(NEW, X, "Ann", aim, 1.0, 3) == asked["Ann"]  # after a reload
    again = Judgements()
    again.keep_reservations(judgements)
    assert again.questions(NEW, X, "Bob", aim, 1.0, 3) == asked["Bob"]
    i, j = asked["Ann"][0]
    judgements.answer(1, i, j, truth(i, j), "Ann")
    assert asked["Ann"][0] not in judgements.questions(NEW, X, "Ann", aim, 2.0, 3)
    late = judgements.questions(NEW, X, "Zoe", aim, 1e6, 4)  # reservations end
    assert asked["Ann"][0] not in late


@pytest.mark.parametrize("repeats", [1, 2, 3])
def test_each_pair_is_asked_of_so_many_people(repeats):
    judgements, times, number = Judgements(repeats), {}, 0
    people = ["Ann", "Bob", "Eve"]
    for turn in range(400):
        by = people[turn % 3]
        found = judgements.questions(NEW, X, by, "metric", float(turn))
        if not found:
            continue
        number += 1
        times.setdefault(found[0], []).append(by)
        judgements.answer(number, *found[0], truth(*found[0]), by)
    assert all(len(set(who)) == len(who) for who in times.values())
    assert max(map(len, times.values())) == repeats
    if repeats > 1:
        assert min(map(len, times.values())) == repeats
        assert judgements.agreement()["share"] == judgements.agreement()["alpha"] == 1.0


def test_what_somebody_is_unsure_of_is_asked_of_the_others_first():
    judgements = Judgements(repeats=2)
    (pair,) = judgements.questions(NEW, X, "Ann", "metric", 0.0)
    judgements.answer(1, *pair, 1, "Ann")
    assert judgements.questions(NEW, X, "Bob", "metric", 1.0) == [pair]
    judgements.skip(*pair)
    (other,) = judgements.questions(NEW, X, "Bob", "metric", 2.0)
    assert other != pair


def test_with_another_aim_others_are_asked():
    judgements = Judgements()
    before = judgements.questions(NEW, X, "Ann", "metric", 0.0, 3)
    assert judgements.questions(NEW, X, "Ann", "groups", 1.0, 3) != before


def test_groups_are_found_by_several_people():
    judgements = Judgements()
    for turn in range(200):
        by = ["Ann", "Bob"][turn % 2]
        found = judgements.questions(NEW, X, by, "groups", float(turn))
        if not found:
            break
        judgements.answer(turn, *found[0], truth(*found[0]), by)
    assert sorted(map(len, judgements.groups())) == sorted(np.unique(KIND, return_counts=True)[1].tolist())
    assert judgements.summary(8)["groups"]["placed"] == 8


def test_the_unsure_are_asked_again_later():
    judgements, many = Judgements(), np.random.default_rng(1).normal(size=(60, 3))
    (pair,) = judgements.questions(NEW, many, "Ann", "metric", 0.0)
    judgements.skip(*pair)
    seen = []
    for number in range(1, 40):
        (asked,) = judgements.questions(NEW, many, "Ann", "metric", float(number))
        seen.append(asked)
        judgements.answer(number, *asked, -1, "Ann")  # which implies little
    assert pair not in seen[:LATER]
    assert pair in seen[LATER : LATER + 2]


@pytest.mark.parametrize("data", [b"", b"\0" * 8, (10).to_bytes(8, "big") + b"[]        " + b"x", b"\xff" * 40])
def test_damaged_bytes_are_refused(data):
    with pytest.raises(ValueError, match=r"damaged|data"):
        Judgements.loads(data)
