"""What a closure over numbered items says of them all: groups known apart, and pairs that follow from answers."""

from __future__ import annotations

from collections.abc import Iterable
from math import comb
from typing import Any

from .answers import Closure


def groups_apart(closure: Closure) -> list[list[int]]:
    """Groups that are known apart from one another, the largest first; items in none have yet to be placed.

    >>> closure = Closure()
    >>> for i, j, y in [(0, 1, 1), (1, 2, 1), (2, 3, -1)]:
    ...     _ = closure.answer(i, j, y)
    >>> groups_apart(closure), implied_pairs(closure, [(0, 1), (1, 2), (2, 3)])
    ([[0, 1, 2], [3]], 3)
    """
    known: Any = closure.groups()
    apart: list[list[int]] = []
    for group in sorted(known, key=len, reverse=True):
        if all(closure.implied(group[0], other[0]) < 0 for other in apart):
            apart.append(group)
    return apart


def implied_pairs(closure: Closure, answered: Iterable[tuple[int, int]]) -> int:
    """How many pairs follow from those answered: within groups, and between groups known apart."""
    groups: Any = closure.groups()
    number = {item: k for k, group in enumerate(groups) for item in group}
    known = {(min(pair), max(pair)) for pair in answered if closure.implied(*pair)}
    # Two groups are known apart by an answer about two of their items.
    apart = {frozenset((number[i], number[j])) for i, j in known if number[i] != number[j]}
    within = sum(comb(len(group), 2) for group in groups)
    between = sum(len(groups[a]) * len(groups[b]) for a, b in apart)
    return within + between - len(known)
