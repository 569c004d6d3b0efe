"""Follow the leading history (Hazan and Seshadhri 2009): a new learner at every time, few of which are kept.

The learner born at time i = r 2^k, r odd, lives for 2^(k+2) steps, so that about 2 log2(t) are alive, and for any
s <= t one of them was born in [s, (s + t)/2]. Weights are exponential, and each newcomer enters with 1/(t + 1):

    p <- p exp(-rate x) / sum,     p(newcomer) = 1/(t + 1),  p(others) <- (1 - 1/(t + 1)) p.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..ensemble import Slots, check_base
from ..geometry import Metric
from ..protocols import Array, E, Opening, Spawn, is_number
from ..tracker import MetricTracker
from ..weights import relative, softmax
from .diagonal import diagonal
from .fixed_rate import comid


def birth(i: int) -> tuple[int, int]:
    """The slot of the learner born at time i = 1, 2, ..., and how long it lives.

    Learners of one k are born 2^(k+1) steps apart and live twice as long: two slots take turns, and no slot is
    ever empty. They are numbered in the order in which they are first taken.

    >>> [birth(i) for i in range(1, 9)]
    [(0, 4), (1, 8), (2, 4), (3, 16), (0, 4), (4, 8), (2, 4), (5, 32)]
    """
    k = (i & -i).bit_length() - 1
    first = (i >> (k + 1)) % 2 == 0
    return (max(0, 2 * k - 1) if first else 2 * k + 2), 4 << k


class Histories(Slots[E]):
    """The learners that follow the leading history keeps, each from the origin, a new one every ``base`` steps."""

    def __init__(self, spawn: Spawn[E], base: int = 1) -> None:
        super().__init__()
        self.spawn, self.base = spawn, check_base(base)

    def open(self, t: int) -> Opening:
        periods, rest = divmod(t, self.base)
        if rest:
            return Opening(t, (), ())
        slot, life = birth(periods + 1)
        length = float(life * self.base)
        self.learners[slot : slot + 1] = [self.spawn(length, None)]
        return Opening(t, (slot,), (length,))


@dataclass(frozen=True)
class LeadingHistory:
    """The weights: exponential in the losses, scaled to [0, 1] in each step, with a prior for newcomers.

    Who opens at time t takes 1/(t + 1), shared if several do; who dies leaves its weight to the others.

    >>> rule = LeadingHistory(rate=1.0)
    >>> state = rule.open(np.zeros((0, 1)), Opening(0, (0,), (4.0,)))
    >>> rule.probabilities(rule.open(state, Opening(3, (1,), (8.0,))))
    array([0.75, 0.25])
    """

    rate: float = 0.3
    fields: ClassVar[tuple[str, ...]] = ("log_weight",)

    def __post_init__(self) -> None:
        if not (is_number(self.rate) and 0 < self.rate < np.inf):
            raise ValueError(f"rate must be positive and finite, got {self.rate!r}")

    def open(self, state: Array, opening: Opening) -> Array:
        if not opening.slots:
            return state
        opens = list(opening.slots)
        v = np.full(max(len(state), max(opens) + 1), -np.inf)
        v[: len(state)] = state[:, 0]
        v[opens] = -np.inf
        share = 1.0
        if np.isfinite(v).any():
            share = 1.0 / (opening.t + 1)
            v -= v.max()
            v += np.log1p(-share) - np.log(np.exp(v).sum())
        v[opens] = np.log(share / len(opens))
        return v[:, None]

    def update(self, state: Array, losses: Array, mixed: Callable[[], float]) -> Array:  # noqa: ARG002
        v = state[:, 0] - self.rate * relative(losses)
        v = v - v.max()
        return (v - np.log(np.exp(v).sum()))[:, None]

    def probabilities(self, state: Array) -> Array:
        return softmax(state[:, 0])

    def mixture(self, state: Array) -> Array:
        return self.probabilities(state)


@dataclass(frozen=True)
class ComidHistories:
    """COMID learners, one born every ``base`` steps."""

    base: int = 1

    def __post_init__(self) -> None:
        check_base(self.base)

    def __call__(self, spawn: Spawn[Metric]) -> Histories[Metric]:
        return Histories(diagonal(spawn), self.base)


def leading_history(step: float, strength: float = 0.01, base: int = 1, rate: float = 0.3) -> MetricTracker:
    """Follow the leading history with COMID learners.

    Parameters
    ----------
    step
        A learner's step is ``step / sqrt(its life span)``.
    strength
        Of the nuclear norm.
    base
        How many steps there are between two births.
    rate
        How fast the weights trust.

    Examples
    --------
    >>> tracker = leading_history(step=1.0).partial_fit([[[0.0], [1.0]]] * 3, [-1] * 3)
    >>> tracker.experts_["length"].tolist()
    [4.0, 8.0, 4.0, 16.0]
    """
    return comid(step, strength).set_params(ensemble=ComidHistories(base), weights=LeadingHistory(rate))
