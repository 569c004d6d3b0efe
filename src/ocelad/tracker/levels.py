"""What the ensemble behind a tracker believes, level by level."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..engine.stack import StackedRice, mixture
from ..geometry.metric import Metric
from ..protocols import Array

if TYPE_CHECKING:
    from ..ocelad import Ocelad
    from .units import Scale

LEVEL = np.dtype([("length", np.float64), ("weight", np.float64), ("loss", np.float64)])


class LevelVocabulary:
    """Time-scales, their weights and their metrics, as they stand before the next comparison."""

    if TYPE_CHECKING:
        _scale: Scale

        def _fitted(self) -> Ocelad[Metric]: ...

    @property
    def mu_(self) -> float:
        """The tracked threshold on squared distances."""
        return max(1.0, mixture(self._fitted())[1])  # an average of numbers >= 1, but for rounding

    @property
    def level_metrics_(self) -> list[Metric]:
        """What each level believes by itself, M in the units of the features."""
        ocelad, unit = self._fitted(), self._scale.value
        alone = [ocelad.ensemble.mix(p) for p in np.eye(len(ocelad.lengths))]
        return [Metric(metric.M / unit / unit, metric.mu) for metric in alone]

    @property
    def discarded_(self) -> Array:
        """What each level has cut off from its matrix's trace since it opened, to stay within ``max_rank``."""
        ensemble: Any = self._fitted().ensemble
        if isinstance(ensemble, StackedRice):
            return ensemble.discarded
        return np.array([learner.discarded for learner in ensemble.learners])

    @property
    def scale_(self) -> float:
        """The present unit of length."""
        self._fitted()
        return self._scale.value

    @property
    def levels_(self) -> np.ndarray[Any, np.dtype[np.void]]:
        """Which time-scale is in charge: ``length`` of memory (inf for a learner that never restarts), normalised
        ``weight`` and latest ``loss`` of each level."""
        ocelad = self._fitted()
        levels = np.zeros(len(ocelad.lengths), dtype=LEVEL)
        levels["length"], levels["weight"], levels["loss"] = ocelad.lengths, ocelad.probabilities, ocelad.losses
        levels.setflags(write=False)
        return levels
