"""Which pair to ask about next, so that an answer teaches more than that about a random pair.

    query: of a few random candidates the pair of which the tracker is least sure,
    wants: on a stream, ask with probability  beta / (beta + |log odds|),  beta <- beta exp(.05 (budget - asked)).

Only a few candidates: of the least certain pair among many, answers are coin tosses before a change and after it,
and nobody notices that there was one.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist
from scipy.special import entr

from . import validation as validate
from .closure import Closure
from .grouped_share import GroupedShare
from .protocols import Array, is_number
from .tracker import MetricTracker
from .weights import uniform

PACE = 0.05
"""How fast the readiness to ask follows the budget."""

CLOSEST = 3
"""Members of a group, the closest ones, whose mean distance is that of the group."""


class Strategy(Protocol):
    """What an answer about each of some pairs would be worth: the one with the largest score is asked."""

    def __call__(self, tracker: MetricTracker, pairs: Any, /) -> Array: ...


def log_odds(tracker: MetricTracker, pairs: Any) -> Array:
    """Log odds that pairs are similar, by all that the tracker knows: a pool's mixture, or its distance."""
    p = tracker.mixture_proba(pairs) if isinstance(tracker.weights, GroupedShare) else tracker.predict_proba(pairs)
    with np.errstate(divide="ignore"):
        return np.log(p[:, 1]) - np.log(p[:, 0])


def uncertainty(tracker: MetricTracker, pairs: Any) -> Array:
    """An answer is worth more, the less sure the tracker is: the pair nearest its threshold is asked."""
    return -np.abs(log_odds(tracker, pairs))


def vote_entropy(tracker: MetricTracker, pairs: Any) -> Array:
    """An answer is worth more, the less experts agree: the entropy of their votes, each with its weight."""
    similar = (tracker.expert_odds(pairs) >= 0.0) @ tracker.experts_["weight"]
    share = np.clip(similar, 0.0, 1.0)
    return entr(share) + entr(1.0 - share)


def at_random(tracker: MetricTracker, pairs: Any) -> Array:  # noqa: ARG001
    """All answers are worth the same."""
    return np.zeros(_count(pairs))


class Queries:
    """Choose the pairs to ask about.

    Parameters
    ----------
    tracker
        The `MetricTracker` that learns the answers. It is only looked at: teach it by ``partial_fit``.
    candidates
        Of how many pairs, drawn at random, the best is asked. More than a few make changes hard to notice.
    budget
        For ``wants``: the share of pairs to ask about.
    random_state
        A seed, or a ``numpy.random.Generator`` to draw one from.
    strategy
        What an answer is worth: `uncertainty`, `vote_entropy`, `at_random`, or a function of one's own.

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
    >>> 200 < sum(queries.wants(pair) for pair in stream) < 300
    True
    """

    def __init__(
        self,
        tracker: MetricTracker,
        candidates: int = 4,
        budget: float | None = None,
        random_state: Any = None,
        strategy: Strategy = uncertainty,
    ) -> None:
        if not isinstance(tracker, MetricTracker):
            raise ValueError(f"tracker must be a MetricTracker, got {type(tracker).__name__}")
        if budget is not None and not (is_number(budget) and 0 < budget <= 1):
            raise ValueError(f"budget must be None or a share in (0, 1], got {budget!r}")
        if not callable(strategy):
            raise ValueError(f"strategy must be a function of a tracker and pairs, got {strategy!r}")
        self.tracker, self.budget, self.strategy = tracker, budget, strategy
        self.candidates = validate.integer(candidates, "candidates")
        self.seed = int(np.random.default_rng(random_state).integers(2**62))
        self.drawn, self.beta, self.seen, self.asked = 0, 1.0, 0, 0

    # Draws are a function of the seed and of their number, so that two numbers are all there is to save.

    def _draw(self) -> float:
        self.drawn += 1
        return uniform(self.seed, self.drawn)

    def _integer(self, count: int) -> int:
        return min(int(count * self._draw()), count - 1)

    def query(self, pairs: Any) -> int:
        """The number of the pair to ask about, of pairs in any form that ``partial_fit`` takes."""
        count = _count(pairs)
        if not count:
            raise ValueError("pairs must be one or more, got none")
        left = list(range(count))
        chosen: list[int] = []
        while left and len(chosen) < self.candidates:
            chosen.append(left.pop(self._integer(len(left))))
        return chosen[self._best(_select(pairs, chosen))]

    def query_pool(self, X: Any) -> tuple[int, int]:
        """The numbers of two points to ask about, of points of shape (m, n), m >= 2."""
        X = X.tocsr() if sparse.issparse(X) else np.asarray(X)
        if X.ndim != 2 or X.shape[0] < 2:
            raise ValueError(f"X must be two or more points, of shape (m, n), got shape {X.shape}")
        chosen: list[tuple[int, int]] = []
        for _ in range(self.candidates):
            i, j = self._integer(X.shape[0]), self._integer(X.shape[0] - 1)
            chosen.append((i, j + (j >= i)))
        sides = [X[list(side)] for side in zip(*chosen, strict=True)]
        return chosen[self._best(sides if sparse.issparse(X) else np.stack(sides, axis=1))]

    def _best(self, pairs: Any) -> int:
        """The first before anything has been learned, and of equals."""
        if not self.tracker.__sklearn_is_fitted__():
            return 0
        return int(np.argmax(self.strategy(self.tracker, pairs)))

    def wants(self, pair: Any) -> bool:
        """Whether to ask about this pair of a stream, of shape (2, n). In the long run the budget is kept."""
        if self.budget is None:
            raise ValueError("wants() needs a budget: Queries(tracker, budget=0.25) asks about one pair in four")
        ask = True
        if self.tracker.__sklearn_is_fitted__():
            sure = abs(float(log_odds(self.tracker, np.asarray(pair)[None])[0]))
            ask = self._draw() * (self.beta + sure) < self.beta
        self.beta *= math.exp(PACE * (self.budget - ask))
        self.seen, self.asked = self.seen + 1, self.asked + ask
        return ask


class GroupQuestions:
    """Ask for the partition of a set of points rather than for the metric: an item against its nearest group.

    Groups that are known apart from one another are the core. Of all other items the one nearest to a group of the
    core is asked about, and if it belongs there, one answer has placed it.

    Parameters
    ----------
    tracker
        The `MetricTracker` that learns the answers, and says what is near.
    closure
        The `Closure` that is told the answers; its window must hold them all (``Closure(window=None)``). Items are
        the numbers of the points.
    X
        The points, of shape (m, n).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> kind = rng.integers(3, size=60)
    >>> X = np.eye(3)[kind] * 4 + rng.normal(size=(60, 3))
    >>> tracker, closure = MetricTracker(), Closure(window=None)
    >>> questions, answers = GroupQuestions(tracker, closure, X), 0
    >>> while (asked := questions.query()) is not None:
    ...     i, j = asked
    ...     y = 1 if kind[i] == kind[j] else -1
    ...     tracker, answers = tracker.partial_fit([X[[i, j]]], [y]), answers + 1
    ...     _ = closure.answer(i, j, y)
    >>> sorted(len(group) for group in closure.groups()) == sorted(np.bincount(kind).tolist())
    True
    >>> answers < 90
    True
    """

    def __init__(self, tracker: MetricTracker, closure: Closure, X: Any) -> None:
        self.tracker, self.closure, self.X = tracker, closure, np.asarray(X, dtype=np.float64)
        if self.X.ndim != 2 or not len(self.X):
            raise ValueError(f"X must be points, of shape (m, n), got shape {self.X.shape}")

    def query(self) -> tuple[int, int] | None:
        """The numbers of two points to ask about; None if all groups are known."""
        core, others = self._core()
        if not others:
            return None
        Z = self.tracker.transform(self.X) if self.tracker.__sklearn_is_fitted__() else self.X
        items = [group[0] for group in others]
        known = np.array([[self.closure.implied(i, group[0]) != 0 for group in core] for i in items])
        begun = np.flatnonzero(known.any(axis=1))
        if len(begun):  # finish those first: that founds new groups
            items, known = [items[k] for k in begun], known[begun]
        far = np.array([np.sort(cdist(Z[items], Z[group]))[:, :CLOSEST].mean(axis=1) for group in core]).T
        far[known] = np.inf
        item, group = np.unravel_index(far.argmin(), far.shape)
        i, members = items[item], core[group]
        return i, members[int(cdist(Z[[i]], Z[members]).argmin())]

    def _core(self) -> tuple[list[list[int]], list[list[int]]]:
        """Groups that are known apart from one another, the larger first, and the rest."""
        known: Any = self.closure.groups()
        placed = {item for group in known for item in group}
        known += [[i] for i in range(len(self.X)) if i not in placed]
        core: list[list[int]] = []
        others: list[list[int]] = []
        for group in sorted(known, key=len, reverse=True):
            apart = all(self.closure.implied(group[0], other[0]) < 0 for other in core)
            (core if apart else others).append(group)
        return core, others


def _count(pairs: Any) -> int:
    if isinstance(pairs, (tuple, list)) and sparse.issparse(pairs[0]):
        return int(pairs[0].shape[0])
    return len(pairs)


def _select(pairs: Any, rows: list[int]) -> Any:
    if isinstance(pairs, (tuple, list)) and sparse.issparse(pairs[0]):
        return [side.tocsr()[rows] for side in pairs]
    return np.asarray(pairs)[rows]
