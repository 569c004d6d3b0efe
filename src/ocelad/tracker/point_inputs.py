"""From points as they are given to what is learned from: preprocessor, features, differences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from .. import validation as validate
from ..engine import Engine
from ..protocols import Array
from . import inputs
from .preprocessor import read_preprocessor


class PointInputs:
    """How a tracker reads pairs, triplets and quadruplets; options count until its first comparison."""

    if TYPE_CHECKING:
        preprocessor: Any
        preprocessor_: Any
        features: Any
        features_: Any
        nonlinear: bool
        _engine: Engine

    def _current_preprocessor(self) -> Any:
        return self.preprocessor_ if "_engine" in self.__dict__ else read_preprocessor(self.preprocessor)

    def _features(self) -> Any:
        return self.features_ if "_engine" in self.__dict__ else inputs.features(self.features)

    @property
    def _wide(self) -> bool:
        return self._engine.nonlinear is not None if "_engine" in self.__dict__ else self.nonlinear is True

    def _tuples(self, given: Any, size: int, made: bool = False) -> list[Any]:
        form, features = self._current_preprocessor(), None if made else self._features()
        return inputs.tuples(given, size, type(self).__name__, form, features)

    def _row(self, x: Any, z: Any, name: str) -> Any:
        return inputs.with_points(x, z, name) if self._wide else inputs.difference(x, z, name)

    def _differences(self, pairs: Any, made: bool = False) -> Any:
        """Of pairs as they are given, or of what ``features`` has made of them."""
        if self._wide:
            x, z = self._tuples(pairs, 2, made)
            return self._row(x, z, "pairs")
        form, features = self._current_preprocessor(), None if made else self._features()
        return inputs.differences(pairs, type(self).__name__, form, features)

    def _pairs(self, pairs: Any, y: ArrayLike, made: bool = False) -> tuple[Any, Array]:
        u = self._differences(pairs, made)
        return u, validate.labels(y, u.shape[0])
