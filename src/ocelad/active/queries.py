"""Choose the pairs to ask about: of a list, of a pool of points, or of a stream.

    query, query_pool: of a few random candidates the pair whose answer has the largest utility (`strategies`),
    wants: on a stream, ask with probability
           budget (utility / usual + FLOOR) / (1 + FLOOR) exp(PACE (unspent + sum of unspent / BALANCE)),

usual being the mean utility of late, and  unspent = budget seen - asked  the answers that were not asked for yet.

Only a few candidates: of the least certain pair among many, answers are coin tosses before a change and after it,
and nobody notices that there was one. On a stream a change, when much is uncertain, is asked about at once, and
paid for later.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import sparse

from .. import validation as validate
from ..dataframes import is_frame
from ..protocols import Array, is_number
from ..tracker import MetricTracker
from ..tracker.lock import locked
from ..weights import uniform
from .strategies import Strategy, committee

PACE = 0.05
"""How much readier to ask each answer makes that has not been asked for, though the budget allowed it."""

FLOOR = 0.05
"""What the least answer is worth, as a share of the usual utility: each pair of a stream may be asked about."""

LATE = 5000
"""The number of pairs over which the usual utility is estimated."""

BALANCE = 500.0
"""The number of pairs over which the budget is balanced."""

MOST = 10_000
"""Candidates: they are all drawn, whatever a file says."""

STEEPEST = 50.0
"""Exponents are cut off here: they never come near it, unless the budget is changed on the way."""


class Queries:
    """Choose the pairs to ask about.

    Parameters
    ----------
    tracker
        The `MetricTracker` that learns the answers. It is only looked at: teach it by ``partial_fit``.
    candidates
        Of how many pairs, drawn at random, the one with the largest utility is asked about. More than a few make
        changes hard to notice; 1 asks at random.
    budget
        For ``wants``: the share of pairs to ask about.
    random_state
        A seed, or a ``numpy.random.Generator`` to draw one from.
    strategy
        What an answer is worth: `committee`, `uncertainty`, `vote_entropy`, `at_random`, or a function of one's
        own of a tracker and a few pairs that gives each a number >= 0 (`Strategy`).

    Examples
    --------
    Thirty points, of which only the first of four features matters to whoever is asked:

    >>> X = np.random.default_rng(0).normal(size=(30, 4))
    >>> tracker = MetricTracker()
    >>> queries = Queries(tracker, random_state=0)
    >>> for _ in range(300):
    ...     i, j = queries.query_pool(X)
    ...     y = 1 if abs(X[i, 0] - X[j, 0]) < 1 else -1
    ...     tracker = tracker.partial_fit([X[[i, j]]], [y])
    >>> tracker.get_mahalanobis_matrix().diagonal().argmax().item()
    0

    On a stream, ask about one pair in four:

    >>> queries = Queries(tracker, budget=0.25, random_state=0)
    >>> stream = np.random.default_rng(1).normal(size=(1000, 2, 4))
    >>> 245 <= sum(queries.wants(pair) for pair in stream) <= 255
    True
    """

    tracker: MetricTracker

    def __init__(
        self,
        tracker: Any,
        candidates: int = 4,
        budget: float | None = None,
        random_state: Any = None,
        strategy: Strategy = committee,
    ) -> None:
        if not isinstance(tracker, MetricTracker):  # a tracker of labelled points takes no answers about pairs
            hint = "; give its tracker_" if hasattr(tracker, "tracker_") else ""
            raise ValueError(f"tracker must be a MetricTracker, got {type(tracker).__name__}{hint}")
        if budget is not None and not (is_number(budget) and 0 < budget <= 1):
            raise ValueError(f"budget must be None or a share in (0, 1], got {budget!r}")
        if not callable(strategy):
            raise ValueError(f"strategy must be a function of a tracker and pairs, got {strategy!r}")
        self.candidates = validate.integer(candidates, "candidates")
        if self.candidates > MOST:
            raise ValueError(f"candidates must be at most {MOST}, got {candidates}")
        self.tracker, self.strategy = tracker, strategy
        self.budget = None if budget is None else float(budget)
        try:
            self.seed = int(np.random.default_rng(random_state).integers(2**62))
        except (TypeError, ValueError):
            raise ValueError(
                f"random_state must be None, a seed or a numpy.random.Generator, got {random_state!r}"
            ) from None
        self.drawn = 0
        """Random numbers drawn. They are a function of the seed and of their number, so that both are all there is
        to save."""
        self.seen = 0
        """Pairs of the stream so far."""
        self.asked = 0
        """Those of them to ask about."""
        self.judged = 0
        """Those of them of which the tracker knew something."""
        self.usual = 0.0
        """Their mean utility, of late."""
        self.owed = 0.0
        """The sum of unspent / BALANCE: without it, answers would be missing for good where few are worth much."""

    @property
    def _lock(self) -> Any:
        return self.tracker._lock

    @locked
    def query(self, pairs: Any) -> int:
        """The number of the pair to ask about, of pairs in any form that ``partial_fit`` takes.

        Only the candidates are looked at: a long list costs no more than a short one.
        """
        count = _count(pairs, "pairs")
        if not count:
            raise ValueError("pairs must be one or more, got none")
        drawn, rows = self._sample(min(self.candidates, count), count)
        best = self._best(_rows(pairs, rows), f" (candidates are pairs {', '.join(map(str, rows))})")
        self.drawn = drawn
        return rows[best]

    @locked
    def query_pool(self, X: Any) -> tuple[int, int]:
        """The numbers of two points to ask about, of two or more points of shape (m, n).

        They may be indicators, if the tracker has a preprocessor. Only the candidates are looked at.
        """
        count = _count(X, "X")
        if count < 2 or len(getattr(X, "shape", ())) > 2:
            found = f"shape {X.shape}" if hasattr(X, "shape") else f"{count}"
            raise ValueError(f"X must be two or more points, of shape (m, n), got {found}")
        drawn, chosen = self.drawn, []
        for _ in range(self.candidates):
            drawn, (i, j) = self._sample(2, count, drawn)
            chosen.append((i, j))
        sides: list[Any] = [_rows(X, list(side)) for side in zip(*chosen, strict=True)]
        pairs = sides if _is_table(X) else list(zip(*sides, strict=True))
        best = self._best(pairs, f" (X has the points of candidates {chosen})")
        self.drawn = drawn
        return chosen[best]

    @locked
    def wants(self, pair: Any) -> bool:
        """Whether to ask about this pair of a stream: of shape (2, n), two indicators, or two sparse rows."""
        if self.budget is None:
            raise ValueError("wants() needs a budget: Queries(tracker, budget=0.25) asks about one pair in four")
        if not _has_sides(pair):
            if _count(pair, "pair") != 2:
                raise ValueError(f"pair must be two points, of shape (2, n), got {_count(pair, 'pair')}")
            pair = pair[None] if isinstance(pair, np.ndarray) else [pair]
        elif _count(pair, "pair") != 1:
            raise ValueError(f"pair must be two points, got {_count(pair, 'pair')} pairs")
        utility = float(self._utilities(pair, " (of one pair)")[0])
        relative = 1.0
        if "_engine" in vars(self.tracker):
            self.judged += 1
            self.usual += (utility - self.usual) / min(self.judged, LATE)
            relative = utility / self.usual if self.usual > 0.0 else 1.0
        unspent = self.budget * self.seen - self.asked
        self.owed += unspent / BALANCE
        ready = math.exp(min(max(PACE * (unspent + self.owed), -STEEPEST), STEEPEST))
        self.drawn += 1
        chance = self.budget * (relative + FLOOR) / (1.0 + FLOOR) * ready
        ask = self.budget == 1.0 or uniform(self.seed, self.drawn) < chance
        self.seen, self.asked = self.seen + 1, self.asked + ask
        return ask

    def _sample(self, size: int, count: int, drawn: int | None = None) -> tuple[int, list[int]]:
        """Different numbers below count, by a shuffle that is not finished; and how many draws there were then."""
        drawn = self.drawn if drawn is None else drawn
        moved: dict[int, int] = {}
        chosen = []
        for last in range(count, count - size, -1):
            drawn += 1
            k = min(int(last * uniform(self.seed, drawn)), last - 1)
            chosen.append(moved.get(k, k))
            moved[k] = moved.get(last - 1, last - 1)
        return drawn, chosen

    def _best(self, pairs: Any, which: str) -> int:
        """The first of equals."""
        return int(np.argmax(self._utilities(pairs, which)))

    def _utilities(self, pairs: Any, which: str) -> Array:
        """Checked, both pairs and what the strategy says of them. All are 1 before anything has been learned."""
        tracker = self.tracker
        try:
            u = tracker._differences(pairs)
            if "_engine" not in vars(tracker):
                return np.ones(u.shape[0])
            validate.same_width(u, tracker.n_features_in_, "pairs", 3 if tracker._wide else 1)
        except ValueError as error:
            raise type(error)(f"{error}{which}") from None
        expected = f"{u.shape[0]} numbers >= 0, one per pair"
        utilities = validate.real(self.strategy(tracker, pairs), "what strategy returns", expected)
        if utilities.shape != (u.shape[0],) or (utilities < 0).any():
            raise ValueError(f"what strategy returns must be {expected}, got {utilities!r}")
        return utilities


# Pairs and points in all their forms, of which a few are picked.


def _is_table(value: Any) -> bool:
    return sparse.issparse(value) or is_frame(value)


def _has_sides(pairs: Any) -> bool:
    return isinstance(pairs, (tuple, list)) and len(pairs) == 2 and any(_is_table(side) for side in pairs)


def _count(value: Any, name: str) -> int:
    if _has_sides(value):
        counts = {int(np.shape(side)[0]) for side in value}
        if len(counts) > 1:
            raise ValueError(f"{name} must be matrices of one shape (m, n), got {sorted(counts)} rows")
        return counts.pop()
    shape = getattr(value, "shape", None)
    if shape == () or (shape is None and not hasattr(value, "__len__")):
        raise ValueError(f"{name} must be an array or a list, got {value!r}")
    return int(shape[0]) if shape else len(value)


def _rows(pairs: Any, rows: list[int]) -> Any:
    """A few of many, which are neither copied nor converted."""
    if _has_sides(pairs):
        return [_rows(side, rows) for side in pairs]
    if sparse.issparse(pairs):
        return pairs.tocsr()[rows]
    if is_frame(pairs):
        return pairs.take(rows) if hasattr(pairs, "take") else pairs[rows]  # pandas and pyarrow; polars
    return pairs[rows] if isinstance(pairs, np.ndarray) else [pairs[row] for row in rows]
