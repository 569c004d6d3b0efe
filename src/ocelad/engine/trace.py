"""The record of a run: a row per comparison, with its prediction and the experts' weights after it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..geometry.losses import MarginLoss
from ..protocols import Array

EXPERT = np.dtype([("length", np.float64), ("weight", np.float64), ("loss", np.float64)])

SQUARED_DISTANCE, THRESHOLD, LOSS, EXPERTS = range(4)
"""Columns of the table: three numbers of the mixture, then the weights of all experts, then their losses."""


class Trace:
    """A table that `Engine.run` fills, a row per comparison.

    ``squared_distance`` and ``threshold`` are those of the mixture just before it learned the comparison, and
    ``loss`` is what they cost; ``weights`` has each expert's weight just after, and ``losses`` what its own
    estimate had cost. Experts that were not there yet have nan.

    >>> trace = Trace(rows=2)
    >>> trace.reserve(experts=3)
    >>> trace.weights.shape, bool(np.isnan(trace.loss).all())
    ((2, 3), True)
    """

    def __init__(self, rows: int) -> None:
        self.experts = 0
        self.table: Array = np.full((rows, EXPERTS), np.nan)
        self.lengths: Array = np.zeros(0)
        """The time-scale of each expert."""

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
        one.experts, one.table, one.lengths = self.experts, self.table[row : row + 1], self.lengths
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
    def loss(self) -> Array:
        return self.table[:, LOSS]

    @property
    def weights(self) -> Array:
        return self.table[:, EXPERTS : EXPERTS + self.experts]

    @property
    def losses(self) -> Array:
        return self.table[:, EXPERTS + self.experts :]

    @property
    def similar(self) -> NDArray[np.bool_]:
        """Whether each comparison was predicted to be similar."""
        return np.asarray(self.squared_distance <= self.threshold)

    def rescale(self, ratio: Array, y: Array, loss: MarginLoss, weight: Array | None = None) -> None:
        """Predictions and losses as for differences ``ratio`` times as long."""
        self.table[:, SQUARED_DISTANCE] = np.maximum(self.squared_distance, 0.0) * ratio * ratio
        self.table[:, THRESHOLD] = np.maximum(self.threshold, 1.0)
        margins = (y * (self.threshold - self.squared_distance)).tolist()
        self.table[:, LOSS] = [loss.value(margin) for margin in margins]
        if weight is not None:
            self.table[:, LOSS] *= weight

    def levels(self, row: int) -> np.ndarray[Any, np.dtype[np.void]]:
        """Length, weight and loss of the experts that were there after a comparison (`EXPERT`)."""
        there = int((~np.isnan(self.weights[row])).sum())  # experts are only ever added
        table = np.zeros(there, dtype=EXPERT)
        for name, column in (("length", self.lengths), ("weight", self.weights[row]), ("loss", self.losses[row])):
            table[name] = column[:there]
        return table
