"""Predict, score, learn: each comparison is judged by the metric just before it, and only then learned.

judged_t = (x_t - z_t)' M_t (x_t - z_t) <= mu_t,        M_t and mu_t from comparisons 1, ..., t - 1.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from ..engine import Trace
from ..tracker import MetricTracker


def progressive(tracker: MetricTracker, pairs: Any, y: ArrayLike) -> Trace:
    """Learn comparisons as ``tracker.partial_fit`` does, and return what was predicted for each just before.

    These are the predictions of ``tracker.predict`` and ``pair_distance`` between any two of them. Before its very
    first comparison a tracker, which then knows nothing, is asked where its learners start.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> pairs = rng.normal(size=(400, 2, 3))
    >>> y = np.where(np.abs(pairs[:, 0, 0] - pairs[:, 1, 0]) < 1, 1, -1)
    >>> right = progressive(MetricTracker(), pairs, y).similar == (y > 0)
    >>> bool(right[:100].mean() < right[-100:].mean())
    True
    """
    if tracker._history is not None:
        raise ValueError("tracker already has a history: stop() that one first")
    u, labels = tracker._pairs(pairs, y)
    trace = Trace(u.shape[0])
    tracker._learn(u, labels, trace=trace, named=pairs)
    return trace
