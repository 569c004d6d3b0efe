"""Closures of answers against a literal one, which goes through the window anew for every question."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ocelad.closure import Closure

ITEMS = st.integers(0, 7)
ANSWERS = st.lists(st.tuples(ITEMS, ITEMS, st.sampled_from([1, -1])).filter(lambda a: a[0] != a[1]), max_size=60)


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


@settings(max_examples=300)
@given(ANSWERS, st.sampled_from([1, 2, 5, 12, 100]))
def test_equals_going_through_the_window_anew(answers: Any, window: int) -> None:
    closure = Closure(window=window, odds=1e300)
    for k, (i, j, y) in enumerate(answers, start=1):
        closure.answer(i, j, y)
        group, different = literal(answers[:k][-window:])
        assert {frozenset(own) for own in closure.groups()} == {frozenset(own) for own in group.values()}
        for a in range(8):
            for b in range(8):
                if a not in group or b not in group:
                    expected = 1 if a == b else 0
                elif group[a] is group[b]:
                    expected = 1
                else:
                    expected = -1 if any(frozenset((c, d)) in different for c in group[a] for d in group[b]) else 0
                assert closure.implied(a, b) == expected
