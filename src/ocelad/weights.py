"""Combiners: a vector of losses in, probabilities out. All of them work on logarithms of weights.

    p(I) = exp(v(I)) / sum_J exp(v(J)),       v the logarithm of the weight.

Over an interval of 2^19 steps a weight itself under- or overflows; its logarithm does not. Each rule is a frozen
option with pure functions of its state, an array with a row per slot (see `Weights`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Literal

import numpy as np

from .protocols import Array, Opening, Order, check_order, is_number

TIE = 1e-12
"""Losses closer than this, relative to their size, are equal, but for rounding."""


def relative(losses: Array) -> Array:
    """The losses of one step mapped to [0, 1], best to worst; 0 if all are equal.

    >>> relative(np.array([3.0, 1.0, 2.0]))
    array([1. , 0. , 0.5])
    """
    best, worst = losses.min(), losses.max()
    if worst - best <= TIE * max(abs(best), abs(worst)):
        return np.zeros_like(losses)
    return (losses - best) / (worst - best)


def softmax(v: Array) -> Array:
    """Weights from their logarithms, normalised."""
    w = np.exp(v - v.max())
    return w / w.sum()


def _reopen(state: Array, opening: Opening, rows: Any) -> Array:
    """Write fresh rows for the slots that open, adding those that are new."""
    if not opening.slots:
        return state
    missing = max(opening.slots) + 1 - len(state)
    grown = np.concatenate([state, np.zeros((missing, state.shape[1]))]) if missing > 0 else state.copy()
    for slot, row in zip(opening.slots, rows, strict=True):
        grown[slot] = row
    return grown


def _interval_rate(span: Any) -> Any:
    """eta_I = min(1/2, 1/sqrt|I|)."""
    return np.minimum(0.5, 1.0 / np.sqrt(span))


@cache
def _interval_row(length: float) -> tuple[float, float, float]:
    """An interval that has just opened: log_weight = log rate; a slot that never closes takes its age for |I|."""
    span = 1.0 if length == np.inf else length
    return float(np.log(_interval_rate(span))), span, float(length == np.inf)


def advanced(state: Array, r: Array) -> Array:
    """w <- w (1 + rate * r), and endless slots grow older."""
    state = state.copy()
    state[:, 0] += np.log1p(_interval_rate(state[:, 1]) * r)
    state[:, 1] += state[:, 2]
    return state


@dataclass(frozen=True)
class OceladWeights:
    """The paper's weights, eq. (estreg).

        w <- w (1 + rate * r / max|r|),   w = rate = min(1/2, 1/sqrt|I|) when the interval opens.

    Parameters
    ----------
    regret
        What r compares a learner's loss with: the ``"mean"`` of the losses, as in the text, or the loss of the
        ``"mixture"``, as in the appendix.
    reset
        Whether a level's weight goes back to its rate when the level re-opens (the paper) or is kept.
    order
        Whether it sees losses from ``"before"`` the learners' update, as the analysis assumes, or ``"after"``, as
        the paper's listing says.

    Examples
    --------
    >>> rule = OceladWeights()
    >>> state = rule.open(np.zeros((0, 3)), Opening(0, (0, 1), (1.0, 16.0)))
    >>> rule.probabilities(rule.update(state, np.array([1.0, 0.0]), lambda: 0.5)).round(3)
    array([0.545, 0.455])
    """

    regret: Literal["mean", "mixture"] = "mean"
    reset: bool = True
    order: Order = "before"
    fields: ClassVar[tuple[str, ...]] = ("log_weight", "span", "endless")

    def __post_init__(self) -> None:
        if self.regret not in ("mean", "mixture"):
            raise ValueError(f"regret must be 'mean' or 'mixture', got {self.regret!r}")
        check_order(self.order)

    def open(self, state: Array, opening: Opening) -> Array:
        rows = [_interval_row(length) for length in opening.lengths]
        if not self.reset:
            for k, slot in enumerate(opening.slots):
                rows[k] = (state[slot, 0] if slot < len(state) else rows[k][0], *rows[k][1:])
        return _reopen(state, opening, rows)

    def update(self, state: Array, losses: Array, mixed: Callable[[], float]) -> Array:
        reference = self.probabilities(state) @ losses if self.regret == "mean" else mixed()
        r = reference - losses
        largest = np.abs(r).max()
        tied = largest <= TIE * max(abs(reference), np.abs(losses).max())  # 0 / 0 is 0: nobody is better
        return advanced(state, 0.0 * r if tied else r / largest)

    def probabilities(self, state: Array) -> Array:
        return softmax(state[:, 0])

    def mixture(self, state: Array) -> Array:
        return self.probabilities(state)


_WORD = (1 << 64) - 1


def uniform(seed: int, t: int) -> float:
    """A number in [0, 1) as if drawn, a function of both: the t-th of a splitmix64 generator (Steele et al. 2014).

    >>> [round(uniform(0, t), 3) for t in range(3)]
    [0.883, 0.432, 0.026]
    """
    word = (int(seed) * 0xD1342543DE82EF95 + (t + 1) * 0x9E3779B97F4A7C15) & _WORD
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & _WORD
    return ((word ^ (word >> 31)) >> 11) * 2.0**-53


@dataclass(frozen=True)
class SaolWeights:
    """Strongly Adaptive Online Learning (Daniely, Gonen, Shalev-Shwartz, ICML 2015).

        w <- w (1 + rate * (l(drawn) - l)),   one slot is drawn at random by weight, and is the estimate.

    It needs losses in [0, 1]: they are clipped to [0, ``bound``] and divided by it. The draw before step t is a
    function of (seed, t) and the weights, so that a run can be repeated and continued.
    """

    seed: int = 0
    bound: float = 1.0
    fields: ClassVar[tuple[str, ...]] = ("log_weight", "span", "endless", "drawn")

    def __post_init__(self) -> None:
        if not (is_number(self.seed) and self.seed == int(self.seed) >= 0):
            raise ValueError(f"seed must be an integer >= 0, got {self.seed!r}")
        if not (is_number(self.bound) and 0 < self.bound < np.inf):
            raise ValueError(f"bound must be positive and finite, got {self.bound!r}")

    def open(self, state: Array, opening: Opening) -> Array:
        opened = _reopen(state, opening, [(*_interval_row(length), 0.0) for length in opening.lengths])
        drawn = state.copy() if opened is state else opened
        chosen = self.probabilities(drawn).cumsum().searchsorted(uniform(self.seed, opening.t), side="right")
        drawn[:, 3] = 0.0
        drawn[min(int(chosen), len(drawn) - 1), 3] = 1.0
        return drawn

    def update(self, state: Array, losses: Array, mixed: Callable[[], float]) -> Array:  # noqa: ARG002
        drawn = state[:, 3]
        x = np.minimum(np.maximum(losses, 0.0), self.bound) / self.bound
        return advanced(state, drawn @ x - x)

    def probabilities(self, state: Array) -> Array:
        return softmax(state[:, 0])

    def mixture(self, state: Array) -> Array:
        return state[:, 3]


@dataclass(frozen=True)
class FixedShare:
    """Exponential weights with a share given back to all (Herbster and Warmuth 1998), one per slot, never reset.

        p <- p exp(-rate x) / sum,   p <- (1 - share) p + share / k,   x = losses scaled to [0, 1] in each step.

    A slot that becomes active for the first time enters with the mean weight of those present.
    """

    rate: float = 0.3
    share: float = 0.01
    fields: ClassVar[tuple[str, ...]] = ("log_weight",)

    def __post_init__(self) -> None:
        if not (is_number(self.rate) and 0 < self.rate < np.inf):
            raise ValueError(f"rate must be positive and finite, got {self.rate!r}")
        if not (is_number(self.share) and 0 <= self.share < 1):
            raise ValueError(f"share must lie in [0, 1), got {self.share!r}")

    def open(self, state: Array, opening: Opening) -> Array:
        newcomers = [slot for slot in opening.slots if slot >= len(state)]
        if not newcomers:
            return state
        mean = np.log(np.exp(state[:, 0]).mean()) if len(state) else 0.0
        v = np.concatenate([state[:, 0], np.full(len(newcomers), mean)])
        return (v - np.log(np.exp(v).sum()))[:, None]

    def update(self, state: Array, losses: Array, mixed: Callable[[], float]) -> Array:  # noqa: ARG002
        if len(losses) == 1:
            return state  # one alone has all the weight
        v = state[:, 0] - self.rate * relative(losses)
        v = v - v.max()
        v = v - np.log(np.exp(v).sum())
        if self.share > 0:
            v = np.logaddexp(np.log1p(-self.share) + v, np.log(self.share / len(v)))
        return v[:, None]

    def probabilities(self, state: Array) -> Array:
        return softmax(state[:, 0])

    def mixture(self, state: Array) -> Array:
        return self.probabilities(state)


def _log_prior(opening: Opening) -> Array:
    """1 / (s^2 (1 + floor(log2 s))) for an interval that starts at the s-th step: summable, no horizon."""
    s = opening.t + 1
    return np.full(len(opening.slots), -2.0 * np.log(s) - np.log(s.bit_length()))


def _normalised(v: Array, log_prior: Array) -> Array:
    """Weights from their logarithms; the prior decides where no slot has any."""
    return softmax(v if np.isfinite(v).any() else log_prior)


@dataclass(frozen=True)
class CoinBetting:
    """Coin betting for changing environments, CBCE (Jun, Orabona, Wright, Willett, AISTATS 2017).

        bet = wealth * sum(g) / (age + 1),   wealth <- wealth + g * bet,   p ~ prior * max(bet, 0),

    where g is the regret on losses scaled to [0, 1] in each step, its negative part ignored while bet <= 0.
    No rate to choose.
    """

    fields: ClassVar[tuple[str, ...]] = ("log_prior", "log_wealth", "sum", "age")

    def open(self, state: Array, opening: Opening) -> Array:
        prior = _log_prior(opening)
        zero = np.zeros_like(prior)
        return _reopen(state, opening, np.column_stack([prior, zero, zero, zero]))

    def update(self, state: Array, losses: Array, mixed: Callable[[], float]) -> Array:  # noqa: ARG002
        prior, wealth, total, age = state.T
        x = relative(losses)
        g = self.probabilities(state) @ x - x
        g = np.where(total > 0, g, np.maximum(g, 0.0))
        return np.column_stack([prior, wealth + np.log1p(g * total / (age + 1)), total + g, age + 1])

    def probabilities(self, state: Array) -> Array:
        prior, wealth, total, age = state.T
        betting = total > 0
        stake = np.log(np.where(betting, total, 1.0) / (age + 1))
        return _normalised(np.where(betting, prior + wealth + stake, -np.inf), prior)

    def mixture(self, state: Array) -> Array:
        return self.probabilities(state)


@dataclass(frozen=True)
class AdaNormalHedge:
    """AdaNormalHedge (Luo and Schapire, COLT 2015) on the intervals of the ensemble.

        p ~ prior * (Phi(R + 1, C + 1) - Phi(R - 1, C + 1)) / 2,   Phi(R, C) = exp(max(R, 0)^2 / 3C),

    R the sum of regrets on losses scaled to [0, 1] in each step, C the sum of their sizes. No rate to choose.
    """

    fields: ClassVar[tuple[str, ...]] = ("log_prior", "R", "C")

    def open(self, state: Array, opening: Opening) -> Array:
        prior = _log_prior(opening)
        zero = np.zeros_like(prior)
        return _reopen(state, opening, np.column_stack([prior, zero, zero]))

    def update(self, state: Array, losses: Array, mixed: Callable[[], float]) -> Array:  # noqa: ARG002
        prior, R, C = state.T
        x = relative(losses)
        r = self.probabilities(state) @ x - x
        return np.column_stack([prior, R + r, C + np.abs(r)])

    def probabilities(self, state: Array) -> Array:
        prior, R, C = state.T
        up = np.maximum(R + 1, 0.0) ** 2 / (3 * (C + 1))
        down = np.maximum(R - 1, 0.0) ** 2 / (3 * (C + 1))
        alive = up > 0
        gap = -np.expm1(np.where(alive, down - up, -1.0))  # log(e^up - e^down) = up + log(1 - e^(down - up))
        return _normalised(np.where(alive, prior + up + np.log(gap), -np.inf), prior)

    def mixture(self, state: Array) -> Array:
        return self.probabilities(state)
