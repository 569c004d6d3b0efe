"""Ensembles of black boxes: retro-initialised on dyadic intervals, restarted there, fixed, or joined.

RICE keeps one slot per dyadic level. When levels 0, ..., v open, retro-initialisation is a shift of that stack:
level j takes the last estimate of level j - 1.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Generic, Self

import numpy as np

from .checked_parts import Shape, check_estimate, is_own, shown
from .intervals import Intervals, Start, length, opening
from .protocols import Array, E, Ensemble, Learner, Opening, Spawn, check_part, combine


class Slots(Generic[E]):
    """The three verbs that do not depend on when a slot opens. A copy has learners of its own."""

    def __init__(self, learners: Sequence[Learner[E]] = ()) -> None:
        self.learners = list(learners)

    def __copy__(self) -> Self:
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__, learners=[copied(learner) for learner in self.learners])
        return other

    def losses(self, loss: Any) -> Array:
        losses: list[Any] = []
        try:
            for learner in self.learners:
                losses.append(loss(learner.estimate))
        except Exception as error:
            learner = self.learners[len(losses)]
            if not is_own(type(learner)):
                error.add_note(
                    f"The loss was asked at {type(learner).__name__}.estimate, {shown(learner.estimate)}"
                )
            raise
        try:
            array = np.array(losses, dtype=np.float64)
        except (TypeError, ValueError):
            array = np.zeros(())
        if array.ndim != 1:
            raise ValueError(f"loss must be a number at every learner's estimate, got {losses[0]!r}")
        return array

    def update(self, loss: Any) -> None:
        before = [copied(learner) for learner in self.learners]
        try:
            for learner in self.learners:
                learner.update(loss)
            self._check_estimates()
        except BaseException:  # also Ctrl-C: all have learned, or none
            self.learners = before
            raise

    def _check_estimates(self) -> None:
        """Those of learners of others' making, which must be numbers that can be mixed with all others."""
        own = [is_own(type(learner)) for learner in self.learners]
        if all(own):
            return
        shape: Shape | None = None
        for k in sorted(range(len(own)), key=own.__getitem__, reverse=True):  # ocelad's own say what is right
            shape = check_estimate(self.learners[k], shape)

    def mix(self, p: Array) -> E:
        return combine(p, [learner.estimate for learner in self.learners])


def copied(learner: Learner[E]) -> Learner[E]:
    """``copy.copy``, several times as fast for an ordinary object: every step of every learner begins with one."""
    kind = type(learner)
    if not _is_ordinary(kind):
        return copy.copy(learner)
    other: Learner[E] = object.__new__(kind)
    other.__dict__.update(learner.__dict__)
    return other


_COPYING = ("__copy__", "__reduce__", "__reduce_ex__", "__getstate__", "__setstate__", "__getnewargs__")


@cache
def _is_ordinary(kind: type) -> bool:
    """Whether ``__dict__`` is all that there is to copy."""
    names = (*_COPYING, "__getnewargs_ex__", "__new__", "__slots__")
    return all(getattr(kind, name, None) is getattr(object, name, None) for name in names)


_LEARNER = "a learner, with estimate and update(loss)"


def _checked_spawn(spawn: Any) -> Any:
    if not callable(spawn):
        raise ValueError(
            f"spawn must be a function of a length and a start, such as on_intervals(GradientDescent, ...), "
            f"got {spawn!r}"
        )
    return spawn


def _check_spawned(learners: list[Any]) -> None:
    """Only the first ones: the same function makes the others."""
    for learner in learners:
        check_part(learner, Learner, "what spawn returns", _LEARNER)


def dyadic_opening(t: int, base: int) -> Opening:
    """What opens before step t on a clock that starts at ``base``: slot = level."""
    return Opening(t, *_levels(opening(base + t, base), base))


@cache
def _levels(count: int, base: int) -> tuple[tuple[int, ...], tuple[float, ...]]:
    return tuple(range(count)), tuple(float(length(level, base)) for level in range(count))


class Rice(Slots[E]):
    """The retro-initialised ensemble of the paper, over any black-box learners.

    Parameters
    ----------
    spawn
        Makes the learner of an interval, ``spawn(length, start) -> learner``, where ``start`` is the estimate to
        begin from, or None for the origin. `on_intervals` makes one from a learner class.
    base
        Length of the shortest intervals, I_0.
    start
        What level 0 does when it re-opens: ``"fresh"``, from the origin, or ``"continue"``, from its own last
        estimate.
    """

    def __init__(self, spawn: Spawn[E], base: int = 1, start: Start = "fresh") -> None:
        super().__init__()
        intervals = Intervals(base, start)
        self.spawn, self.base, self.start = _checked_spawn(spawn), intervals.base, intervals.start

    def open(self, t: int) -> Opening:
        now = dyadic_opening(t, self.base)
        last: list[E | None] = [learner.estimate for learner in self.learners[: len(now.slots)]]
        lowest = last[0] if last and self.start == "continue" else None
        starts = [lowest, *last][: len(now.slots)]
        learners = list(map(self.spawn, now.lengths, starts))
        if not last:
            _check_spawned(learners)
        self.learners[: len(now.slots)] = learners
        return now


class Restarted(Slots[E]):
    """Learners on the same dyadic intervals, each starting from the origin: no retro-initialisation."""

    def __init__(self, spawn: Spawn[E], base: int = 1) -> None:
        super().__init__()
        self.spawn, self.base = _checked_spawn(spawn), check_base(base)

    def open(self, t: int) -> Opening:
        now = dyadic_opening(t, self.base)
        learners = [self.spawn(size, None) for size in now.lengths]
        if not self.learners:
            _check_spawned(learners)
        self.learners[: len(now.slots)] = learners
        return now


class Pool(Slots[E]):
    """A fixed set of learners that never restart, such as one learner at several rates.

    ``lengths`` tells the combiner each learner's time-scale, where it has one (a sliding window, say).
    """

    def __init__(self, learners: Sequence[Learner[E]], lengths: Sequence[float] | None = None) -> None:
        super().__init__(learners)
        if not self.learners:
            raise ValueError("learners must hold at least one learner")
        for number, learner in enumerate(self.learners):
            check_part(learner, Learner, f"learners[{number}]", _LEARNER)
        self.lengths = tuple(math.inf for _ in self.learners) if lengths is None else tuple(lengths)
        if len(self.lengths) != len(self.learners) or not all(size >= 1 for size in self.lengths):
            raise ValueError("lengths must give a number >= 1 for every learner")

    def open(self, t: int) -> Opening:
        if t > 0:
            return Opening(t, (), ())
        return Opening(t, tuple(range(len(self.learners))), self.lengths)


def _undo(ensemble: Ensemble[E]) -> Callable[[], Ensemble[E]]:
    """What gives an ensemble back as it is now: a copy, or what the ensemble says, where a copy costs too much."""
    if hasattr(ensemble, "undo"):
        own: Callable[[], Ensemble[E]] = ensemble.undo()
        return own
    before = copy.copy(ensemble)
    return lambda: before


class Union(Generic[E]):
    """Several ensembles side by side, each with its own clock, under one set of weights."""

    def __init__(self, *ensembles: Ensemble[E]) -> None:
        if not ensembles:
            raise ValueError("ensembles: at least one is needed")
        for number, ensemble in enumerate(ensembles):
            check_part(ensemble, Ensemble, f"ensembles[{number}]", "an ensemble such as Rice(spawn)")
        self.ensembles = ensembles
        # Slots are numbered in the order in which they first open: an ensemble that grows late must not
        # renumber its neighbours.
        self.slots: list[tuple[int, int]] = []

    def __copy__(self) -> Self:
        other = object.__new__(type(self))
        ensembles = tuple(copy.copy(ensemble) for ensemble in self.ensembles)
        other.__dict__.update(self.__dict__, ensembles=ensembles, slots=list(self.slots))
        return other

    def open(self, t: int) -> Opening:
        numbers, lengths, groups = [], [], []
        for part, ensemble in enumerate(self.ensembles):
            inner = ensemble.open(t)
            for slot, size in zip(inner.slots, inner.lengths, strict=True):
                if (part, slot) not in self.slots:
                    self.slots.append((part, slot))
                numbers.append(self.slots.index((part, slot)))
                lengths.append(size)
                groups.append(part)
        return Opening(t, tuple(numbers), tuple(lengths), tuple(groups))

    def losses(self, loss: Any) -> Array:
        inner = [ensemble.losses(loss) for ensemble in self.ensembles]
        return np.array([inner[part][slot] for part, slot in self.slots])

    def told(self, losses: Array, before: Array, after: Array) -> None:
        """Tell the parts that want to know it what the mixture has lost, -log sum p exp(-loss), and the weights
        after that."""
        for part, ensemble in enumerate(self.ensembles):
            if hasattr(ensemble, "told_mixture"):
                own = [number for number, (owner, _) in enumerate(self.slots) if owner == part]
                mixed = losses.min() - np.log(before @ np.exp(losses.min() - losses))
                ensemble.told_mixture(float(mixed), losses[own], after[own])

    def update(self, loss: Any) -> None:
        undo = [_undo(ensemble) for ensemble in self.ensembles]
        try:
            for ensemble in self.ensembles:
                ensemble.update(loss)
        except BaseException:
            self.ensembles = tuple(take_back() for take_back in undo)
            raise

    def mix(self, p: Array) -> E:
        share = [[0.0] * sum(part == owner for owner, _ in self.slots) for part in range(len(self.ensembles))]
        for weight, (part, slot) in zip(p, self.slots, strict=True):
            share[part][slot] = float(weight)
        mass = [sum(inner) for inner in share]
        return combine(
            [m for m in mass if m > 0],
            [
                ensemble.mix(np.array(inner) / m)
                for ensemble, inner, m in zip(self.ensembles, share, mass, strict=True)
                if m > 0
            ],
        )


def check_base(base: int) -> int:
    """The length of the shortest intervals, if it is one."""
    return Intervals(base).base
