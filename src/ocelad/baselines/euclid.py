"""The Euclidean distance: what one has before learning anything."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..learner import Array


class Euclid:
    """A tracker that ignores every comparison."""

    def partial_fit(self, pairs: ArrayLike, y: ArrayLike) -> Euclid:  # noqa: ARG002
        return self

    def transform(self, X: ArrayLike) -> Array:
        return np.array(X, dtype=np.float64)
