"""Which pair of items to ask a person about next.

question = f(seed, events so far, tracker, closure, pairs asked, pairs one was unsure of, pairs to avoid).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import combinations
from typing import Any, Literal, get_args

import numpy as np

from .. import validation as validate
from ..active import GroupQuestions, Queries
from ..closure import Closure
from ..protocols import Array
from ..tracker import MetricTracker

Aim = Literal["metric", "groups"]
Pair = tuple[int, int]

LATER = 20
"""Events after which a pair that a person was unsure of is asked again."""

CHECK = 5
"""Every so many questions, one may be asked whose answer is implied: else nobody would notice that it is wrong."""

TRIES = 64
"""Draws of a question that need not be asked, after which those that must be are searched for."""


class Questions:
    """Which pair to ask about next.

    Parameters
    ----------
    tracker, closure
        What was learned of the answers, and what they imply. Both are only looked at.
    X
        The points, of shape (m, n).
    aim, candidates
        As of a `Session`.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(5, 3))
    >>> questions = Questions(MetricTracker(), Closure(window=None), X)
    >>> pair = questions.ask()
    >>> questions.ask(avoid=[either(*pair)]) == pair
    False
    """

    def __init__(
        self, tracker: MetricTracker, closure: Closure, X: Array, aim: Aim = "metric", candidates: int = 4
    ) -> None:
        if aim not in get_args(Aim):
            raise ValueError(f"aim must be one of {', '.join(get_args(Aim))}, got {aim!r}")
        self.tracker, self.closure, self.X, self.aim = tracker, closure, X, aim
        self.candidates = validate.integer(candidates, "candidates")
        self._groups = GroupQuestions(tracker, closure, X) if aim == "groups" else None

    def ask(
        self,
        seed: Any = 0,
        events: int = 0,
        asked: Collection[Pair] = (),
        unsure: Mapping[Pair, int] | None = None,
        avoid: Collection[Pair] = (),
    ) -> Pair | None:
        """The numbers of two items to ask about; None if there is nothing left to ask.

        Pairs have the lower number first.

        Parameters
        ----------
        seed, events
            Of the draws: a seed or several, and how much has been said so far.
        asked
            Pairs that have been answered.
        unsure
            Pairs that the person was unsure of, and the number of the event, the oldest first. They are asked
            again when there have been `LATER` events since, or nothing else is left.
        avoid
            Pairs that are not asked about now, whatever is left.
        """
        waiting = {
            pair: when
            for pair, when in (unsure or {}).items()
            if pair not in avoid and pair not in asked and not self.closure.implied(*pair)
        }
        oldest = next(iter(waiting), None)
        if oldest is not None and events - waiting[oldest] > LATER:
            return oldest
        if self._groups is not None:
            new = self._groups.query([*waiting, *avoid])  # as if they were different, so that others come first
        else:
            new = self._least_sure(seed, events, asked, {*waiting, *avoid})
        return oldest if new is None else new

    def _least_sure(self, seed: Any, events: int, asked: Collection[Pair], avoid: set[Pair]) -> Pair | None:
        """Of a few random pairs the one of which the tracker is least sure, unless its answer is known."""
        queries = Queries(self.tracker, self.candidates, random_state=[*np.atleast_1d(seed).tolist(), events])

        def is_open(pair: Pair, check: bool = False) -> bool:
            key = either(*pair)
            return key not in asked and key not in avoid and (check or not self.closure.implied(*pair))

        def drawn(check: bool) -> Pair | None:
            for _ in range(TRIES):
                pair = queries.query_pool(self.X)
                if is_open(pair, check):
                    return pair
            return None

        pair = drawn(check=events % CHECK == CHECK - 1)
        if pair is not None:
            return pair
        # Most pairs are implied, so that there are few groups.
        groups: Any = self.closure.groups()
        seen = {item for group in groups for item in group}
        some = sorted([group[0] for group in groups] + [i for i in range(len(self.X)) if i not in seen])
        left = [pair for pair in combinations(some, 2) if is_open(pair)]
        return left[queries.query(self.X[np.array(left)])] if left else drawn(check=True)


def either(i: int, j: int) -> Pair:
    """The pair, whichever item was named first."""
    return (i, j) if i < j else (j, i)
