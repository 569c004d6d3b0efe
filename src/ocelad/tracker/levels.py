"""The experts of a tracker, level by level: time-scales, weights, metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..engine import Engine
from ..geometry.mahalanobis import in_features
from ..geometry.metric import Metric
from ..protocols import Array
from .lock import locked

if TYPE_CHECKING:
    from .units import Scale


class LevelVocabulary:
    """Time-scales, their weights and their metrics, as they stand before the next comparison."""

    if TYPE_CHECKING:
        _scale: Scale
        _engine: Engine

        def _fitted(self) -> Engine: ...

    @property
    @locked
    def n_seen_(self) -> int:
        """How many comparisons have been learned, pairs, triplets and quadruplets, since the first, or since
        ``fit`` or set ``components_`` began anew; those of weight 0 are not counted."""
        return self._engine.t if "_engine" in self.__dict__ else 0

    @property
    @locked
    def mu_(self) -> float:
        """The tracked threshold on squared distances, that of the mixture of all experts."""
        return self._fitted().decision().threshold

    @property
    @locked
    def expert_metrics_(self) -> list[Metric]:
        """What each expert believes by itself, M in the units of the features, or of the features of its map."""
        engine, unit = self._fitted(), self._scale.value
        mapped = engine.experts()["kind"] == "kernel"
        return [
            metric if own else Metric(in_features(metric.M, unit), metric.mu)
            for metric, own in zip(engine.metrics(), mapped, strict=True)
        ]

    @property
    @locked
    def discarded_(self) -> Array:
        """What each level has cut off from its matrix's trace since it opened, to stay within ``max_rank``."""
        return self._fitted().discarded

    @property
    @locked
    def scale_(self) -> float | Array:
        """The present unit of length; with ``scale="features"`` that of each, inf while it has never changed."""
        self._fitted()
        return self._scale.value

    @property
    @locked
    def experts_(self) -> np.ndarray[Any, np.dtype[np.void]]:
        """Who is in charge: of each expert the ``kind`` ("replay", "kernel", "euclid", "rice"), the ``length`` of
        its memory (inf if it never restarts), normalised ``weight`` and latest ``loss``."""
        levels = self._fitted().experts()
        levels.setflags(write=False)
        return levels
