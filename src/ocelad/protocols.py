"""Protocols: what the algorithm requires of a loss, a learner, an ensemble and a rule for weights.

An estimate is anything that can be added and multiplied by a number: an array, a float, a `Metric`. Nothing has
to inherit from anything.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
E = TypeVar("E")
E_co = TypeVar("E_co", covariant=True)
E_contra = TypeVar("E_contra", contravariant=True)


Order = Literal["before", "after"]
"""Whether the losses that the weights see are taken before the learners' update or after it."""


def check_order(order: object) -> None:
    if order not in ("before", "after"):
        raise ValueError(f"order must be 'before' or 'after', got {order!r}")


class Loss(Protocol[E_contra]):
    """A convex function of the estimate, seen once.

    Learners that descend also ask for ``gradient(estimate)``; Algorithm 1 itself never does.
    """

    def __call__(self, estimate: E_contra, /) -> float: ...


class DifferentiableLoss(Loss[E], Protocol[E]):
    """A loss that knows a (sub)gradient."""

    def gradient(self, estimate: E, /) -> E: ...


class Learner(Protocol[E_co]):
    """A black box: what it believes now, and how it takes one more loss.

    An estimate that has been handed out must not change any more: ``update`` makes a new one. It is typed with
    ``Any`` because each learner decides what it needs of a loss.
    """

    @property
    def estimate(self) -> E_co: ...

    def update(self, loss: Any, /) -> None: ...


@dataclass(frozen=True)
class Opening:
    """Which slots of an ensemble start anew before step ``t`` (counted from 0), and how long they will run.

    A slot that has not been seen before takes the next free number. ``inf`` says that a slot never closes. If the
    ensemble has parts, ``groups`` has the number of the part of each slot.
    """

    t: int
    slots: tuple[int, ...]
    lengths: tuple[float, ...]
    groups: tuple[int, ...] = ()


@runtime_checkable
class Ensemble(Protocol[E_co]):
    """Several learners in numbered slots, with four methods."""

    def open(self, t: int, /) -> Opening:
        """Start the learners whose time has come, before step t = 0, 1, 2, ..."""

    def losses(self, loss: Any, /) -> Array:
        """The loss of every slot's present estimate."""

    def update(self, loss: Any, /) -> None:
        """Let every learner take the loss."""

    def mix(self, p: Array, /) -> E_co:
        """The convex combination of the estimates."""


@runtime_checkable
class Weights(Protocol):
    """A rule that turns losses into probabilities.

    The rule itself is a frozen option. Its state is an array with a row per slot and a column per field, so
    that time is never hidden in the rule.
    """

    @property
    def fields(self) -> tuple[str, ...]:
        """What the columns of the state hold."""

    def open(self, state: Array, opening: Opening, /) -> Array:
        """The state once the slots of ``opening`` have started."""

    def update(self, state: Array, losses: Array, mixed: Callable[[], float], /) -> Array:
        """The state after these losses; ``mixed()`` gives the loss of the mixture, if the rule wants it."""

    def probabilities(self, state: Array, /) -> Array:
        """The weights, normalised."""

    def mixture(self, state: Array, /) -> Array:
        """How to combine the slots: the probabilities, or the draw of a rule that selects at random."""


Spawn = Callable[[float, E | None], Learner[E]]
"""Makes the learner of an interval from its length and the estimate it starts from (None: the origin)."""


def combine(p: Iterable[float], estimates: Iterable[E]) -> E:
    """The convex combination of estimates; those without weight are left out.

    >>> combine([0.25, 0.75], [np.array([4.0, 0.0]), np.array([0.0, 4.0])])
    array([1., 3.])
    """
    total: Any = None
    for weight, estimate in zip(p, estimates, strict=True):
        if weight != 0.0:
            term = float(weight) * estimate  # type: ignore[operator]
            total = term if total is None else total + term
    return total


def is_number(value: object) -> bool:
    """Whether a parameter is a real number (True and False are not)."""
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def check_part(value: Any, protocol: type, name: str, expected: str) -> None:
    """Raise unless this is an instance (a class is not) of a protocol, with what it lacks."""
    if isinstance(value, type):
        raise ValueError(f"{name} must be {expected}, got the class {value.__name__}, not an instance of it")
    if missing := lacking(value, protocol):
        kind = type(value).__name__
        raise ValueError(f"{name} must be {expected}, got {value!r}: {kind} has no {', '.join(missing)}")


def lacking(value: Any, protocol: type) -> list[str]:
    """The members of a protocol that a value does not have. None of them is called: an estimate may take long.

    >>> class Frozen:
    ...     estimate = 0.0
    >>> lacking(Frozen(), Learner)
    ['update']
    """
    members = {name: member for name, member in vars(protocol).items() if not name.startswith("_")}
    return [name for name, member in members.items() if not _has(value, name, inspect.isfunction(member))]


def _has(value: Any, name: str, method: bool) -> bool:
    if method:
        return callable(getattr(value, name, None))
    return inspect.getattr_static(value, name, None) is not None or hasattr(value, name)


def snapshot(array: Any) -> Array:
    """A private, read-only copy of an array of floats: what is handed out cannot be used to reach inside."""
    copy = np.array(array, dtype=np.float64)
    copy.setflags(write=False)
    return copy
