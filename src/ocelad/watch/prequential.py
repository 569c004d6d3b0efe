"""Predict, score, learn: each comparison is judged by the metric just before it, and only then learned.

judged_t = (x_t - z_t)' M_t (x_t - z_t) <= mu_t,        M_t and mu_t from comparisons 1, ..., t - 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from ..engine.kernels import codes
from ..engine.stack import StackedRice, mixture
from ..geometry import Metric
from ..geometry.losses import MarginLoss, PairLoss
from ..ocelad import Ocelad
from ..protocols import Array, Integers
from ..tracker import MetricTracker, inputs
from ..tracker.algorithm_2 import first_scale
from ..tracker.units import norms, scaled


@dataclass(eq=False)
class Foreseen:
    """What a tracker thought of each comparison before it learned it, and what its levels thought after.

    ``squares`` are squared distances, ``thresholds`` the mu they are compared with, ``losses`` those of the
    estimate; ``weights`` and ``level_losses`` have an entry per comparison with a number per level, after it.
    """

    squares: list[float] = field(default_factory=list)
    thresholds: list[float] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    weights: list[Array] = field(default_factory=list)
    level_losses: list[Array] = field(default_factory=list)
    lengths: list[Array] = field(default_factory=list)

    @property
    def similar(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Whether each comparison was judged similar."""
        return np.array(self.squares) <= np.array(self.thresholds)


def progressive(tracker: MetricTracker, pairs: Any, y: ArrayLike, judged: ArrayLike | None = None) -> Foreseen:
    """Learn comparisons as ``tracker.partial_fit`` does, and say what was foreseen of each just before.

    It is what ``tracker.predict`` and ``pair_distance`` would have said between any two of them. Before its very
    first comparison a tracker, which then knows nothing, is asked where its learners start. With ``judged``, one
    truth value per comparison, only those are judged and told of; the others are learned at full speed.

    >>> rng = np.random.default_rng(0)
    >>> pairs = rng.normal(size=(400, 2, 3))
    >>> y = np.where(np.abs(pairs[:, 0, 0] - pairs[:, 1, 0]) < 1, 1, -1)
    >>> right = progressive(MetricTracker(), pairs, y).similar == (y > 0)
    >>> bool(right[:100].mean() < right[-100:].mean())
    True
    """
    if tracker._history is not None:
        raise ValueError("tracker already has a history: stop() that one first")
    u = inputs.differences(pairs, type(tracker).__name__, tracker._first_form())
    scale = tracker._scale if "_scale" in vars(tracker) else first_scale(tracker)
    units = [scale.value, *scale.units(norms(u))[0][:-1]]
    asked = np.ones(u.shape[0], dtype=np.bool_) if judged is None else np.asarray(judged)
    if asked.shape != (u.shape[0],) or asked.dtype != np.bool_:
        raise ValueError(f"judged must be {u.shape[0]} truth values, got {asked.dtype} of shape {asked.shape}")
    witness = _Witness(scaled(u, 1.0 / np.array(units[: u.shape[0]])), np.flatnonzero(asked))
    tracker._history = witness
    try:
        tracker.partial_fit(pairs, y)
    finally:
        tracker._history = None
    return witness.seen


class _Witness:
    """Stands where a `History` would, and sees every comparison."""

    def __init__(self, rows: Any, judged: Integers) -> None:
        self.rows = rows  # in the unit from before each of them
        self.judged = judged
        self.seen = Foreseen()

    def learn(
        self, ocelad: Ocelad[Metric], loss: MarginLoss, u: Any, y: Array, teach: Callable[[slice], None]
    ) -> None:
        """Instead of all at once, one by one: each judged, and then learned, with those after it that are not."""
        seen, rows, p, stack = self.seen, self.rows, ocelad.probabilities, None
        if isinstance(ocelad.ensemble, StackedRice) and ocelad.ensemble.compiles(ocelad, loss):
            stack = ocelad.ensemble
        if (before := int(self.judged[0]) if len(self.judged) else len(y)) > 0:
            teach(slice(0, before))
            p = ocelad.probabilities
        for k, stop in pairwise([*self.judged.tolist(), len(y)]):
            row = rows[[k]].toarray()[0] if sparse.issparse(rows) else rows[k]
            if stack is not None:
                square, mu = _judge(stack, ocelad.weights.mixture(ocelad.state), row, loss)
                stack.run(ocelad, u[k:stop], y[k:stop])  # as teach does, without its detours
            else:
                form, mu = mixture(ocelad)
                square = float(form.squares(row[None])[0])
                teach(slice(k, stop))
            p, square, mu = ocelad.probabilities, max(0.0, square), max(1.0, mu)
            seen.squares.append(square)
            seen.thresholds.append(mu)
            seen.losses.append(float(loss.value(y[k] * (mu - square))))
            seen.weights.append(p)
            seen.level_losses.append(ocelad.losses)
            seen.lengths.append(ocelad.lengths)


def _judge(stack: StackedRice, p: Array, u: Array, loss: MarginLoss) -> tuple[float, float]:
    """Squared distance and threshold of the mixture, which need not be formed: both are linear in the levels."""
    stack.losses(PairLoss(u, 1, loss))  # leaves each level's squared distance behind its projections
    levels = len(p)
    squares = stack.arrays[codes.AT_Z][:levels, stack.S.shape[1] + 1]
    return float(p @ squares), float(p @ stack.scalars[stack.meta[codes.ORDER, :levels], codes.MU])
