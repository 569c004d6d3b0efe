"""The record of a run: a row per comparison, with its prediction and the experts' weights after it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..geometry.losses import MarginLoss
from ..protocols import Array

LEAST = 1e-300
"""A probability of which the logarithm is a number."""

KINDS = ("replay", "euclid", "rice", "learner", "kernel")

EXPERT = np.dtype([("kind", "U7"), ("length", np.float64), ("weight", np.float64), ("loss", np.float64)])

SQUARED_DISTANCE, THRESHOLD, PROBABILITY, LOSS, EXPERTS = range(5)
"""Columns of the table: four numbers of the mixture, then the weights of all experts, then their losses."""


class Trace:
    """A table that `Engine.run` fills, a row per comparison.

    ``squared_distance`` and ``threshold`` are those of the mixture just before it learned the comparison, and of
    a pool ``probability`` is the mixture of its experts' probabilities that the pair is similar; ``loss`` is what
    they cost. ``weights`` has each expert's weight just after, and ``losses`` what its own estimate had cost.
    Experts that were not there yet have nan.

    >>> trace = Trace(rows=2)
    >>> trace.reserve(experts=3)
    >>> trace.weights.shape, bool(np.isnan(trace.loss).all())
    ((2, 3), True)
    """

    def __init__(self, rows: int) -> None:
        self.experts = 0
        self.table: Array = np.full((rows, EXPERTS), np.nan)
        self.kinds: list[str] = []
        self.lengths: Array = np.zeros(0)
        """What each expert is, and its time-scale."""

    def reserve(self, experts: int) -> None:
        """Make columns for this number of experts; what has been written is kept."""
        if experts > self.experts:
            before, kept = self.table, self.experts
            self.table = np.full((len(before), EXPERTS + 2 * experts), np.nan)
            self.table[:, : EXPERTS + kept] = before[:, : EXPERTS + kept]
            self.table[:, EXPERTS + experts : EXPERTS + experts + kept] = before[:, EXPERTS + kept :]
            self.experts = experts

    def __getitem__(self, row: int) -> Trace:
        """One row, to be written through."""
        one = Trace(0)
        one.experts, one.table = self.experts, self.table[row : row + 1]
        one.kinds, one.lengths = self.kinds, self.lengths
        return one

    def __len__(self) -> int:
        return len(self.table)

    @property
    def squared_distance(self) -> Array:
        return self.table[:, SQUARED_DISTANCE]

    @property
    def threshold(self) -> Array:
        return self.table[:, THRESHOLD]

    @property
    def probability(self) -> Array:
        return self.table[:, PROBABILITY]

    @property
    def loss(self) -> Array:
        return self.table[:, LOSS]

    @property
    def weights(self) -> Array:
        return self.table[:, EXPERTS : EXPERTS + self.experts]

    @property
    def losses(self) -> Array:
        return self.table[:, EXPERTS + self.experts :]

    def log_loss(self, y: Array) -> Array:
        """Minus the logarithm of the probability that each comparison's label had been given; nan without one."""
        p = np.where(np.asarray(y) > 0, self.probability, 1.0 - self.probability)
        return -np.log(np.maximum(p, LEAST))

    @property
    def similar(self) -> NDArray[np.bool_]:
        """Whether each comparison was predicted to be similar."""
        return np.asarray(self.squared_distance <= self.threshold)

    def rescale(self, ratio: Array, y: Array, loss: MarginLoss | None, weight: Array | None = None) -> None:
        """Predictions, and losses if they are margin losses, as for differences ``ratio`` times as long."""
        self.table[:, SQUARED_DISTANCE] = np.maximum(self.squared_distance, 0.0) * ratio * ratio
        if loss is None:
            return
        self.table[:, THRESHOLD] = np.maximum(self.threshold, 1.0)
        margins = (y * (self.threshold - self.squared_distance)).tolist()
        self.table[:, LOSS] = [loss.value(margin) for margin in margins]
        if weight is not None:
            self.table[:, LOSS] *= weight

    def after(self, row: int) -> np.ndarray[Any, np.dtype[np.void]]:
        """Kind, length, weight and loss of the experts that were there after a comparison (`EXPERT`)."""
        there = int((~np.isnan(self.weights[row])).sum())  # experts are only ever added
        table = np.zeros(there, dtype=EXPERT)
        table["kind"] = self.kinds[:there]
        for name, column in (("length", self.lengths), ("weight", self.weights[row]), ("loss", self.losses[row])):
            table[name] = column[:there]
        return table
