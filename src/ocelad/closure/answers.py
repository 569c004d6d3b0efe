"""What answers about recurring items imply: similar is transitive, and different is inherited.

    i ~ j, j ~ k  =>  i ~ k,          i ~ j, j != k  =>  i != k.

The last ``window`` answers count, the newest first: one that contradicts newer ones is skipped. Those that say
"similar" are kept as a forest, in which of every cycle the oldest answer is left out. So the oldest answer of all,
when it leaves the window, either is not in the forest or parts a group in two. Only a contradiction makes it
necessary to go through the window again.

An answer that was implied already is a free check of whether people still judge as they did. Page's test on these
checks tells a few slips from a changed mind,

    S <- max(0, S + log f_1(x) / f_0(x)),        x: is it contradicted,

and when S > log(odds), all but the last answers are forgotten. f_0 is the share of checks that were contradicted
lately, at least 1 in 20; f_1 is five ninths of the way from there to a coin toss.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass
from itertools import pairwise
from math import inf, log
from typing import Any

import numpy as np

from .. import validation as validate
from ..interrupt import hold_interrupts
from ..protocols import is_number
from ..weights import uniform

FEWEST, MOST = 0.05, 0.4
"""The least and the largest share of checks that are taken to be contradicted by mistake."""

CHANGED = 5 / 9
"""How far the share is on its way to a coin toss, once people have changed their minds."""

FIRST, MEMORY = 20, 200
"""As how many checks the first guess of that share counts, and over how many it is estimated later."""

DOUBT = 0.1
"""No pairs are derived where more checks than this were contradicted: one wrong answer joins two groups."""

KEPT = 8
"""Answers that are kept where people have changed their minds."""

Edge = tuple[Hashable, Hashable]
Answer = tuple[Hashable, Hashable, int]


@dataclass(frozen=True)
class Reset:
    """People judge differently now: after ``t`` answers, ``forgotten`` of them were forgotten."""

    t: int
    forgotten: int


class Closure:
    """What the last answers about recurring items imply.

    Parameters
    ----------
    window
        The number of answers that count, the last ones; None counts all. It should be more than the number of
        items: answers that no others imply check nothing, and a change is noticed late.
    odds
        How much more likely the checks must have become, if people judge differently now than if they do not, for
        the closure to forget. More odds make false resets rarer, and true ones later.
    random_state
        For ``derived``, which draws: a seed, or a ``numpy.random.Generator`` to draw one from.

    Attributes
    ----------
    t
        The number of answers taken.
    evidence
        The sum of Page's test: 0 while nothing speaks for a change, ``log(odds)`` at a reset.

    Examples
    --------
    >>> closure = Closure()
    >>> closure.answer("cat", "lion", +1)
    >>> closure.answer("lion", "tiger", +1)
    >>> closure.answer("tiger", "dog", -1)
    >>> closure.implied("cat", "tiger"), closure.implied("cat", "dog"), closure.implied("dog", "wolf")
    (1, -1, 0)
    >>> closure.groups()
    [['cat', 'lion', 'tiger'], ['dog']]
    >>> closure
    Closure(window=500, odds=200.0): 3 answers about 4 items, 2 groups
    """

    def __init__(self, window: int | None = 500, odds: float = 200.0, random_state: Any = None) -> None:
        if window is not None:
            window = validate.integer(window, "window")
        if not (is_number(odds) and 1 < odds < inf):
            raise ValueError(f"odds must be a finite number > 1, got {odds!r}")
        self.window, self.odds = window, float(odds)
        self.seed, self.drawn = int(np.random.default_rng(random_state).integers(2**62)), 0
        self.t = 0
        self._answers: deque[tuple[int, Hashable, Hashable, int]] = deque()
        self._count: dict[Hashable, int] = {}  # answers about each item, in the order in which items came
        self.evidence = 0.0
        self._wrong, self._checks = FEWEST * FIRST, float(FIRST)  # checks that were contradicted, lately, and all
        self._rebuild()

    def __repr__(self) -> str:
        known = f"{len(self._answers)} answers about {len(self._count)} items, {len(self._members)} groups"
        return f"Closure(window={self.window}, odds={self.odds}): {known}"

    # Answers

    @hold_interrupts()
    def answer(self, i: Hashable, j: Hashable, y: int) -> Reset | None:
        """Take an answer, +1 or True for similar and -1 or False for different. Returns a `Reset` if people judge
        differently."""
        self._check_items(i, j)
        if i == j:
            raise ValueError(f"i and j must be two items, got {i!r} twice")
        y = validate.label(y)
        implied = self.implied(i, j)
        self.t += 1
        self._answers.append((self.t, i, j, y))
        for item in (i, j):
            self._count[item] = self._count.get(item, 0) + 1
        if implied and self._check(implied != y):
            return self.reset()
        if implied == -y:
            self._rebuild()
        else:
            self._take(self.t, i, j, y)
        if self.window is not None and len(self._answers) > self.window:
            self._drop(*self._answers.popleft())
        return None

    @hold_interrupts()
    def reset(self, keep: int = KEPT) -> Reset:
        """Forget all answers but the last ones: people judge differently now."""
        keep = validate.integer(keep, "keep", least=0)
        if self.window is not None:
            keep = min(keep, self.window)
        forgotten = max(0, len(self._answers) - keep)
        for _ in range(forgotten):
            self._drop(*self._answers.popleft())
        self.evidence = 0.0
        self._rebuild()
        return Reset(self.t, forgotten)

    def _check(self, wrong: bool) -> bool:
        """Page's test with one more check: whether people judge differently now."""
        usual = min(max(self._wrong / self._checks, FEWEST), MOST)
        changed = usual + CHANGED * (0.5 - usual)
        ratio = log(changed / usual) if wrong else log((1.0 - changed) / (1.0 - usual))
        self.evidence = max(0.0, self.evidence + ratio)
        keep = 1.0 - 1.0 / MEMORY if self._checks >= MEMORY else 1.0
        self._wrong, self._checks = keep * self._wrong + wrong, keep * self._checks + 1.0
        return self.evidence > log(self.odds)

    @staticmethod
    def _check_items(*items: Any) -> None:
        for name, item in zip("ij", items, strict=True):
            try:
                hash(item)
            except TypeError:
                raise ValueError(
                    f"{name} must be an item that can be a key of a dictionary, got {item!r}"
                ) from None

    def _rebuild(self) -> None:
        """Take all answers of the window again, the newest first."""
        self._forest: dict[Hashable, dict[Hashable, int]] = {}  # an item's neighbours, and when they were named
        self._group: dict[Hashable, int] = {}
        self._members: dict[int, set[Hashable]] = {}
        self._apart: dict[int, dict[int, dict[Edge, int]]] = {}  # groups known apart, by which answers, and when
        self._groups = 0
        for item in self._count:
            self._found(item)
        for t, i, j, y in reversed(self._answers):
            if self.implied(i, j) in (0, min(y, 0)):  # else it says nothing new, or contradicts newer ones
                self._take(t, i, j, y)

    def _take(self, t: int, i: Hashable, j: Hashable, y: int) -> None:
        """Take an answer that contradicts nothing."""
        for item in (i, j):
            if item not in self._group:
                self._found(item)
        if y < 0:
            self._separate((i, j), t)
            return
        if self._group[i] == self._group[j]:  # of a cycle the oldest answer is not needed
            self._cut(*min(pairwise(self._path(i, j)), key=lambda edge: self._forest[edge[0]][edge[1]]))
        else:
            small, large = sorted((self._group[i], self._group[j]), key=lambda group: len(self._members[group]))
            self._move(self._members[small], large)
        self._forest[i][j] = self._forest[j][i] = t

    def _drop(self, t: int, i: Hashable, j: Hashable, y: int) -> None:
        """Drop the oldest answer."""
        a, b = self._group[i], self._group[j]
        if y < 0 and self._apart[a].get(b, {}).get((i, j)) == t:
            del self._apart[a][b][i, j]
            if not self._apart[a][b]:
                del self._apart[a][b], self._apart[b][a]
        elif y > 0 and self._forest[i].get(j) == t:
            self._cut(i, j)
            self._move(set(self._reached(i)), self._new_group())
        for item in (i, j):
            self._count[item] -= 1
            if not self._count[item]:
                group = self._group.pop(item)
                del self._count[item], self._forest[item], self._members[group], self._apart[group]

    def _found(self, item: Hashable) -> None:
        self._forest[item], self._group[item] = {}, self._new_group()
        self._members[self._group[item]] = {item}

    def _new_group(self) -> int:
        self._groups += 1
        self._members[self._groups], self._apart[self._groups] = set(), {}
        return self._groups

    def _move(self, items: set[Hashable], to: int) -> None:
        """Move items of one group to another, and with them what keeps them apart from others."""
        old = self._group[next(iter(items))]
        self._group.update(dict.fromkeys(items, to))
        self._members[to] |= items
        self._members[old] -= items
        why = self._apart[old]
        self._apart[old] = {}
        for other, answers in why.items():
            del self._apart[other][old]
            for edge, t in answers.items():
                self._separate(edge, t)
        if not self._members[old]:
            del self._members[old], self._apart[old]

    def _separate(self, edge: Edge, t: int) -> None:
        a, b = self._group[edge[0]], self._group[edge[1]]
        answers = self._apart[a].setdefault(b, {})
        answers[edge] = max(t, answers.get(edge, 0))
        self._apart[b][a] = answers

    def _cut(self, i: Hashable, j: Hashable) -> None:
        del self._forest[i][j], self._forest[j][i]

    def _reached(self, i: Hashable) -> dict[Hashable, Hashable]:
        """All items of the tree of i, and from where they are reached."""
        reached, ends = {i: i}, [i]
        for item in ends:
            for near in self._forest[item]:
                if near not in reached:
                    reached[near] = item
                    ends.append(near)
        return reached

    def _path(self, i: Hashable, j: Hashable) -> list[Hashable]:
        back, path = self._reached(i), [j]
        while path[-1] != i:
            path.append(back[path[-1]])
        return path

    # What they imply

    def implied(self, i: Hashable, j: Hashable) -> int:
        """+1 if answers imply that two items are similar, -1 if different, and 0 if neither."""
        self._check_items(i, j)
        a, b = self._group.get(i), self._group.get(j)
        if i == j or (a is not None and a == b):
            return 1
        return -1 if a is not None and b in self._apart[a] else 0

    def groups(self) -> list[list[Hashable]]:
        """The items of the last answers by groups, in the order in which they came."""
        groups: dict[int, list[Hashable]] = {}
        for item in self._count:
            groups.setdefault(self._group[item], []).append(item)
        return list(groups.values())

    def answers(self) -> list[Answer]:
        """The answers that count, the oldest first."""
        return [(i, j, y) for _, i, j, y in self._answers]

    def derived(self, k: int = 4) -> list[Answer]:
        """Draw k pairs whose answers are implied, by turns similar, from a group drawn by its size, and different.

        They are for ``MetricTracker.partial_fit_implied``. There are fewer where there are no groups of two, or
        none known apart; and none while it is in doubt what answers imply: where the last checks speak for a
        change, or more than 1 in 10 of the last 200 were contradicted.
        """
        k = validate.integer(k, "k", least=0)
        if self.evidence > 0.0 or self._wrong > DOUBT * self._checks:
            return []
        group = self._group
        together = [item for item in self._count if len(self._members[group[item]]) > 1]
        separate = [item for item in self._count if self._apart[group[item]]]
        drawn: list[Answer] = []
        for turn in range(k):
            y, some = (1, together) if turn % 2 == 0 else (-1, separate)
            if some:
                i = some[self._draw(len(some))]
                a = group[i]
                groups = (a,) if y > 0 else self._apart[a]
                others = [item for item in some if group[item] in groups and item != i]
                drawn.append((i, others[self._draw(len(others))], y))
        return drawn

    def _draw(self, count: int) -> int:
        """A function of the seed and of how many were drawn, so that two numbers are all there is to save."""
        self.drawn += 1
        return min(int(count * uniform(self.seed, self.drawn)), count - 1)
