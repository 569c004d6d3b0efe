"""What combiners and learners of others' making answer, checked where they are asked; ocelad's own are trusted."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from .protocols import Array, Opening, Weights

Shape = tuple[tuple[int, ...], ...]


@cache
def is_own(kind: type) -> bool:
    """Whether this is a class of ocelad's."""
    return kind.__module__.partition(".")[0] == __name__.partition(".")[0]


def combiner(weights: Weights) -> Weights:
    """The rule, or one that checks what it answers."""
    return weights if is_own(type(weights)) else CheckedWeights(weights)


class CheckedWeights:
    """A rule whose states and probabilities are checked as soon as it makes them.

    >>> class Leader:
    ...     fields = ("loss",)
    ...     def open(self, state, opening): return np.zeros((len(opening.slots), 1))
    ...     def probabilities(self, state): return np.ones(len(state))
    ...     mixture = probabilities
    >>> CheckedWeights(Leader()).open(np.zeros((0, 1)), Opening(0, (0, 1), (1.0, 2.0)))
    Traceback (most recent call last):
        ...
    ValueError: weights: Leader.probabilities must return 2 probabilities, which sum to 1, got array([1., 1.])
    """

    def __init__(self, weights: Any) -> None:
        self._weights, self._name = weights, type(weights).__name__

    @property
    def fields(self) -> tuple[str, ...]:
        return tuple(self._weights.fields)

    def open(self, state: Array, opening: Opening) -> Array:
        rows = max(len(state), max(opening.slots, default=-1) + 1)
        return self._state("open", self._weights.open(state, opening), rows)

    def update(self, state: Array, losses: Array, mixed: Callable[[], float]) -> Array:
        return self._state("update", self._weights.update(state, losses, mixed), len(state))

    def probabilities(self, state: Array) -> Array:
        return self._probabilities("probabilities", self._weights.probabilities(state), len(state))

    def mixture(self, state: Array) -> Array:
        return self._probabilities("mixture", self._weights.mixture(state), len(state))

    def _state(self, method: str, given: Any, rows: int) -> Array:
        state, shape = _numbers(given), (rows, len(self.fields))
        if state is None or state.shape != shape or np.isnan(state).any():
            raise self._error(
                method, f"an array of numbers of shape {shape}: a row per slot, a column per field", given
            )
        self.probabilities(state), self.mixture(state)
        return state

    def _probabilities(self, method: str, given: Any, count: int) -> Array:
        p = _numbers(given)
        if p is None or p.shape != (count,) or not (p >= 0.0).all() or not abs(p.sum() - 1.0) <= 1e-6:
            raise self._error(method, f"{count} probabilities, which sum to 1", given)
        return p

    def _error(self, method: str, expected: str, given: Any) -> ValueError:
        return ValueError(f"weights: {self._name}.{method} must return {expected}, got {shown(given)}")


def check_estimate(learner: Any, before: Shape | None) -> Shape | None:
    """The shape of a learner's estimate; raise unless it is of finite numbers that can be mixed with those before.

    A metric has two shapes, of M and mu; what is neither a metric nor numbers is left to whoever made it.
    """
    estimate = learner.estimate
    parts = [estimate.M, estimate.mu] if hasattr(estimate, "M") and hasattr(estimate, "mu") else [estimate]
    arrays = list(map(_numbers, parts))
    if estimate is not None and any(array is None for array in arrays) and not isinstance(estimate, (str, bytes)):
        return before
    found = tuple(np.shape(array) for array in arrays)
    if all(array is not None and np.isfinite(array).all() for array in arrays) and (
        before is None or _can_be_mixed(found, before)
    ):
        return found
    expected = "finite numbers" if before is None else f"finite numbers of shape {before[0]}"
    if before is not None and len(before) > 1:
        expected = f"a Metric of {expected}"
    raise ValueError(
        f"{type(learner).__name__}.estimate must be {expected} after an update, got {shown(estimate)}: "
        "the learners are as they were before it"
    )


def _can_be_mixed(one: Shape, other: Shape) -> bool:
    try:
        list(map(np.broadcast_shapes, one, other))
    except ValueError:
        return False
    return len(one) == len(other)


def _numbers(given: Any) -> Any:
    """As an array of numbers; None if it is not one."""
    try:
        array = np.asarray(given)
    except ValueError:  # ragged lists
        return None
    return array if array.dtype.kind in "fiub" else None


def shown(given: Any) -> str:
    """On one line, and not much of it."""
    text = " ".join(repr(given).split())
    return text if len(text) <= 200 else f"{text[:100]}... (a {type(given).__name__})"
