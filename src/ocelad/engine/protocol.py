"""The interface between a tracker and the engine that learns for it."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from ..geometry.comid import Recipe
from ..geometry.losses import MarginLoss
from ..geometry.metric import Metric
from ..geometry.quadratic import Dense, Parts
from ..platt import Decision
from ..protocols import Array, Weights
from .trace import Trace

Arrays = dict[str, np.ndarray[Any, Any]]


class Judgement(NamedTuple):
    """The experts' predictions: squared distances, a row for each difference and a column for each expert; their
    thresholds and weights; and both of the mixture, which is linear in them."""

    squared_distance: Array
    threshold: Array
    weight: Array
    mixture: tuple[Array, float]


class Engine(Protocol):
    """Algorithm 1 over metric learners, which owns all that has been learned: time, experts, weights.

    Differences are in the tracker's unit of length, dense or CSR. They have been validated by the tracker.
    """

    @property
    def recipe(self) -> Recipe: ...

    @property
    def loss(self) -> MarginLoss: ...

    @property
    def weights(self) -> Weights: ...

    @property
    def memory(self) -> int | None:
        """The longest window that a pool replays."""

    @property
    def nonlinear(self) -> str | None:
        """Whether it has experts on feature maps: then rows are (u, x, z), a difference and its two points."""

    @property
    def t(self) -> int:
        """The number of comparisons learned."""

    def run(
        self,
        u: Any,
        y: Array | None,
        weight: Array | None = None,
        trace: Trace | None = None,
        implied: bool = False,
    ) -> None:
        """Learn comparisons in order, each a time step, and fill the trace.

        Parameters
        ----------
        u
            Pairs: differences of shape (m, n). Orders, "closer than": (m, 2n), near and far side by side.
        y
            +1 or -1 for each pair, None for orders.
        weight
            By what each loss is multiplied, > 0; None for 1.
        implied
            Whether nobody was asked: then the calibration of a pool's mixture stays as it is.
        """

    def judge(self, u: Any) -> Judgement:
        """What each expert predicts for these differences; nothing changes."""

    @property
    def pooled(self) -> bool:
        """Whether its experts speak log odds (`GroupedShare`)."""

    def mixture_odds(self, u: Any) -> Array:
        """Log odds that these differences are of similar pairs, by the mixture of the probabilities of a pool."""

    def mixture(self) -> tuple[Dense | Parts, float]:
        """The quadratic form and the threshold that are in charge now."""

    def mixture_of_maps(self) -> tuple[Any, list[Array]]:
        """The feature maps, if there are any yet, and of each the matrix that is in charge now."""

    def observe(self, points: Array, refresh: bool = False) -> None:
        """Points that nobody has compared: landmarks come from them if there are none yet, or if asked for."""

    def decision(self, judged: Judgement | None = None) -> Decision:
        """What squared distances say now; experts that have just judged something need not be asked again."""

    def experts(self) -> np.ndarray[Any, np.dtype[np.void]]:
        """Kind, length, weight and latest loss of each expert (`EXPERT`)."""

    def metrics(self) -> list[Metric]:
        """What each expert believes by itself."""

    @property
    def discarded(self) -> Array:
        """What each expert has cut off from the trace of its matrix to stay within ``max_rank``."""

    @property
    def learned(self) -> tuple[str, ...]:
        """The names of the arrays of a snapshot."""

    def reserve(self, levels: int, columns: int) -> None:
        """Reserve capacity for this number of levels, and of columns in each."""

    def snapshot(self) -> Arrays:
        """All that has been learned, as a few plain arrays without spare capacity."""

    def restored(self, t: int, learned: Arrays) -> Self:
        """An engine of the same parts, at the time of a snapshot, which is checked in full. It may have the memory
        of this one, which must not be used afterwards."""

    def __copy__(self) -> Self: ...
