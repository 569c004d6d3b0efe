"""Predict, score, learn: how far inside the threshold each comparison was, under the metric just before it.

    margin_t = mu_t - u_t' M_t u_t,      M_t and mu_t learned from the comparisons before t.

The squared distance is linear in M, so the margin of the mixture is the mixture of the learners' margins. Those of
a hinge can be read off the losses that the ensemble reports: it is flat on one side only, so that either "similar" or
"different" tells.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse

from ..learner import Array
from ..metric import Hinge, Metric, MetricTracker, PairLoss
from ..metric.losses import MarginLoss
from ..ocelad import Ocelad


def prequential(tracker: MetricTracker, pairs: Any, y: ArrayLike) -> Array:
    """The margin of each comparison before it is learned; positive for those that would be called similar.

    The tracker learns exactly what ``partial_fit(pairs, y)`` would teach it.

    >>> rng = np.random.default_rng(0)
    >>> pairs = rng.normal(size=(400, 2, 3))
    >>> y = np.where(np.abs(pairs[:, 0, 0] - pairs[:, 1, 0]) < 1, 1, -1)  # only the first feature matters
    >>> margins = prequential(MetricTracker(), pairs, y)
    >>> float(np.mean((margins[200:] >= 0) == (y[200:] > 0))) > 0.8
    True
    """
    if tracker._history is not None:
        raise ValueError("tracker must not have a history: stop() it first")
    tracker._history = watcher = _Watcher()
    try:
        tracker.partial_fit(pairs, y)
    finally:
        tracker._history = None
    return np.array(watcher.margins)


class _Watcher:
    """Sees comparisons, in the tracker's unit of length, before they are learned, as a `History` does."""

    def __init__(self) -> None:
        self.margins: list[float] = []

    def learn(
        self, ocelad: Ocelad[Metric], loss: MarginLoss, u: Any, y: Sequence[float], teach: Callable[[slice], None]
    ) -> None:
        margin = _by_losses if type(loss) is Hinge else _by_estimate
        for k in range(len(y)):
            row = u[k : k + 1].toarray()[0] if issparse(u) else u[k]
            self.margins.append(margin(ocelad, row))
            teach(slice(k, k + 1))


def _by_losses(ocelad: Ocelad[Metric], u: Array) -> float:
    similar, different = (ocelad.ensemble.losses(PairLoss(u, y, Hinge())) for y in (1, -1))
    margins = np.where(different > 0, different - 1.0, 1.0 - similar)
    return float(ocelad.weights.mixture(ocelad.state) @ margins)


def _by_estimate(ocelad: Ocelad[Metric], u: Array) -> float:
    estimate = ocelad.estimate
    return estimate.mu - estimate.squared_distance(u)
