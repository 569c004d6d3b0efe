"""What an answer about a pair would be worth, its utility: a number >= 0, in nats.

    uncertainty      H(p),           p the probability that the pair is similar,
    vote_entropy     H(v),           v the weight of the experts that call it similar,
    committee        H(p) + H(v),

with the entropy H(p) = -p log p - (1 - p) log(1 - p).
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from scipy.special import entr

from ..grouped_share import GroupedShare
from ..protocols import Array
from ..tracker import MetricTracker


class Strategy(Protocol):
    """The utility of an answer about each of some pairs, numbers >= 0: the pair with the largest one is asked."""

    def __call__(self, tracker: MetricTracker, pairs: Any, /) -> Array: ...


def uncertainty(tracker: MetricTracker, pairs: Any) -> Array:
    """The less sure the tracker is, the more an answer is worth: the pair nearest its threshold is asked."""
    pool = isinstance(tracker.weights, GroupedShare)
    return _entropy((tracker.mixture_proba if pool else tracker.predict_proba)(pairs)[:, 1])


def vote_entropy(tracker: MetricTracker, pairs: Any) -> Array:
    """The less experts agree, the more an answer is worth; each has as many votes as it has weight."""
    return _entropy((tracker.expert_odds(pairs) >= 0.0) @ tracker.experts_["weight"])


def committee(tracker: MetricTracker, pairs: Any) -> Array:
    """The sum of both: the tracker is unsure, and its experts would answer differently."""
    with tracker._lock:  # both of one moment
        return uncertainty(tracker, pairs) + vote_entropy(tracker, pairs)


def at_random(tracker: MetricTracker, pairs: Any) -> Array:
    """All answers are worth the same."""
    return np.ones(len(tracker.pair_distance(pairs)))


def _entropy(p: Array) -> Array:
    p = np.clip(p, 0.0, 1.0)
    return np.asarray(entr(p) + entr(1.0 - p))


STRATEGIES: dict[str, Strategy] = {
    strategy.__name__: strategy for strategy in (committee, uncertainty, vote_entropy, at_random)
}
"""Those that a file can name."""
