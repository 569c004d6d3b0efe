"""A metric that was set, not learned: where learners begin once comparisons come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..geometry.mahalanobis import Mahalanobis, both_sides
from ..geometry.metric import Metric
from ..platt import Decision
from ..protocols import Array


@dataclass(frozen=True, eq=False)
class WarmStart:
    """Components as they were set, and the threshold tracked until then, if there was any.

    That of a pool may be less than 1, which a learner's cannot be.
    """

    components: Any
    mu: float | None

    def view(self, rank: int | None = None) -> Mahalanobis:
        return Mahalanobis.embedding(self.components, rank, None if self.mu is None else Decision(self.mu))

    def metric(self, n: int, unit: float | Array) -> Metric:
        """The metric of differences in this unit, to start from; nothing of features whose unit is not known."""
        M = self.view().M
        if len(M) != n:
            raise ValueError(f"pairs must have {len(M)} features, as components_ has, got {n}")
        own = isinstance(unit, np.ndarray)
        M = both_sides(M, np.where(np.isinf(unit), 0.0, unit)) if own else M * unit * unit
        return Metric(M, 1.0 if self.mu is None else max(1.0, self.mu))
