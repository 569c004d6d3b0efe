"""Knowing the truth: the subspace in which the clusters are, as nobody who learns from comparisons can."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import NotFittedError

from .. import validation as validate
from ..protocols import Array
from .euclid import embedded_distance

PLACES = ("A", "B")
"""The clusterings, in the order of their dimensions before the rotation."""


class Oracle:
    """A tracker that learns nothing from comparisons, and is told what is true now instead.

    Parameters
    ----------
    dimensions
        In how many dimensions each clustering can be seen.

    Examples
    --------
    >>> quarter_turn = np.array([[0.0, -1.0], [1.0, 0.0]])  # points are x @ quarter_turn.T now
    >>> oracle = Oracle(dimensions=1).tell(quarter_turn, "A")
    >>> oracle.transform([[0.0, 5.0]])
    array([[5.]])
    """

    def __init__(self, dimensions: int = 3) -> None:
        self.dimensions = dimensions
        self.directions: Array | None = None

    def tell(self, rotation: ArrayLike, clustering: Literal["A", "B"]) -> Oracle:
        """How the points have been turned, and which clustering the comparisons follow."""
        if clustering not in PLACES:
            raise ValueError(f"clustering must be 'A' or 'B', got {clustering!r}")
        D = validate.real(rotation, "rotation", "a square matrix of finite numbers")
        first = PLACES.index(clustering) * self.dimensions
        if D.ndim != 2 or D.shape[0] != D.shape[1] or len(D) < first + self.dimensions:
            raise ValueError(f"rotation must be a square matrix of enough dimensions, got shape {D.shape}")
        self.directions = np.array(D[:, first : first + self.dimensions])
        return self

    def partial_fit(self, pairs: ArrayLike, y: ArrayLike) -> Oracle:  # noqa: ARG002
        return self

    def transform(self, X: ArrayLike) -> Array:
        if self.directions is None:
            raise NotFittedError("This Oracle has been told nothing yet: call tell first.")
        return validate.points(np.asarray(X), len(self.directions)) @ self.directions

    def pair_distance(self, pairs: ArrayLike) -> Array:
        """The distance of each pair in the subspace."""
        return embedded_distance(self, np.asarray(pairs, dtype=np.float64))
