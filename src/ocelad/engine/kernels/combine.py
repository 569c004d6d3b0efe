"""The combiners of `ocelad.weights` that have a compiled form: the same rules on the same states, in place.

Columns of the state: log_weight; for the paper's weights and SAOL also span and endless; for SAOL who is drawn.
"""

from __future__ import annotations

import numpy as np

from ...protocols import Array
from ...weights import TIE
from .codes import (
    BOUND,
    DRAWN,
    ENDLESS,
    FIXED_SHARE,
    LEADING_HISTORY,
    LENGTH,
    LOG_WEIGHT,
    OCELAD_MEAN,
    RATE,
    RESET,
    RULE,
    SAOL,
    SHARE,
    SPAN,
)
from .jit import Mode, kernel


@kernel
def probabilities(state: Array, k: int, p: Array) -> None:
    largest = state[0, 0]
    for j in range(1, k):
        largest = max(largest, state[j, 0])
    total = 0.0
    for j in range(k):
        p[j] = np.exp(state[j, 0] - largest)
        total += p[j]
    for j in range(k):
        p[j] /= total


@kernel
def _fixed_share(state: Array, losses: Array, k: int, rate: float, share: float) -> None:
    best = worst = losses[0]
    for j in range(1, k):
        best, worst = min(best, losses[j]), max(worst, losses[j])
    tied = worst - best <= TIE * max(abs(best), abs(worst))
    largest = -np.inf
    for j in range(k):
        if not tied:
            state[j, 0] -= rate * ((losses[j] - best) / (worst - best))
        largest = max(largest, state[j, 0])
    total = 0.0
    for j in range(k):
        total += np.exp(state[j, 0] - largest)
    shift = largest + np.log(total)
    for j in range(k):
        p = np.exp(state[j, 0] - shift)
        state[j, 0] = np.log((1.0 - share) * p + share / k) if share > 0.0 else state[j, 0] - shift


@kernel
def _advance(state: Array, j: int, r: float) -> None:
    """w <- w (1 + rate * r), and an endless slot grows older."""
    state[j, LOG_WEIGHT] += np.log1p(min(0.5, 1.0 / np.sqrt(state[j, SPAN])) * r)
    state[j, SPAN] += state[j, ENDLESS]


@kernel
def _ocelad(state: Array, losses: Array, k: int, reference: float) -> None:
    largest, size = 0.0, abs(reference)
    for j in range(k):
        largest, size = max(largest, abs(reference - losses[j])), max(size, abs(losses[j]))
    for j in range(k):
        _advance(state, j, 0.0 if largest <= TIE * size else (reference - losses[j]) / largest)


@kernel
def _saol(state: Array, losses: Array, k: int, bound: float) -> None:
    """Losses clipped to [0, bound] and divided by it; if that is infinite, regrets divided, if beyond 1."""
    drawn, largest = 0.0, 1.0
    unit = 1.0 if bound == np.inf else bound
    for j in range(k):
        if state[j, DRAWN] > 0.0:
            drawn = min(max(losses[j], 0.0), bound) / unit
    for j in range(k if bound == np.inf else 0):
        largest = max(largest, abs(drawn - losses[j]))
    for j in range(k):
        _advance(state, j, (drawn - min(max(losses[j], 0.0), bound) / unit) / largest)


@kernel
def update(state: Array, losses: Array, k: int, p: Array, mixed: float, options: Array, other: Mode) -> None:
    """After the losses of one step; p are the probabilities before, mixed the loss of the mixture."""
    rule = int(options[RULE])
    if other is not None:  # noqa: SIM102 (a condition of its own: else the compiler sees no None)
        if rule == SAOL:
            _saol(state, losses, k, options[BOUND])
            return
    if rule in (FIXED_SHARE, LEADING_HISTORY):
        _fixed_share(state, losses, k, options[RATE], options[SHARE])
    elif rule == OCELAD_MEAN:
        mean = 0.0
        for j in range(k):
            mean += p[j] * losses[j]
        _ocelad(state, losses, k, mean)
    else:
        _ocelad(state, losses, k, mixed)


@kernel
def _newcomer(state: Array, k: int) -> None:
    """Slot k enters with the mean weight of those present."""
    total = 0.0
    for j in range(k):
        total += np.exp(state[j, LOG_WEIGHT])
    state[k, LOG_WEIGHT] = np.log(total / k)
    shift = np.log(total + total / k)
    for j in range(k + 1):
        state[j, LOG_WEIGHT] -= shift


@kernel
def _newborn(state: Array, k: int, first: int, last: int, t: int) -> None:
    """Who opens takes 1 / (t + 1), and who held its slot before leaves all to the others."""
    share, total, largest = 1.0, 0.0, -np.inf
    for j in range(k):
        if j < first or j >= last:
            largest = max(largest, state[j, LOG_WEIGHT])
    if largest > -np.inf:
        for j in range(k):
            if j < first or j >= last:
                total += np.exp(state[j, LOG_WEIGHT] - largest)
        share = 1.0 / (t + 1)
        shift = np.log1p(-share) - np.log(total) - largest
        for j in range(k):
            state[j, LOG_WEIGHT] += shift
    for j in range(first, last):
        state[j, LOG_WEIGHT] = np.log(share / (last - first))


@kernel
def uniform(seed: int, t: int) -> float:
    """As `ocelad.weights.uniform` has it, of a seed that has been multiplied there already."""
    word = np.uint64(seed) + np.uint64(t + 1) * np.uint64(0x9E3779B97F4A7C15)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return float((word ^ (word >> np.uint64(31))) >> np.uint64(11)) * 2.0**-53


@kernel
def _draw(state: Array, k: int, p: Array, number: float) -> None:
    probabilities(state, k, p)
    total, chosen = 0.0, k - 1
    for j in range(k):
        state[j, DRAWN] = 0.0
    for j in range(k):
        total += p[j]
        if number < total:
            chosen = j
            break
    state[chosen, DRAWN] = 1.0


@kernel
def reopen(
    state: Array, k: int, first: int, last: int, t: int, seed: int, p: Array, options: Array, other: Mode
) -> None:
    """Levels first, ..., last - 1 start anew before step t; k levels were there before."""
    rule = int(options[RULE])
    if rule == FIXED_SHARE:
        if last > k:
            _newcomer(state, k)
        return
    if other is not None:  # noqa: SIM102
        if rule == LEADING_HISTORY:
            if last > first:
                _newborn(state, k, first, last, t)
            return
    for j in range(first, last):
        span = state[j, LENGTH]
        state[j, SPAN], state[j, ENDLESS] = span, 0.0
        if rule == SAOL or options[RESET] > 0.0 or j >= k:
            state[j, LOG_WEIGHT] = np.log(min(0.5, 1.0 / np.sqrt(span)))
    if other is not None:  # noqa: SIM102
        if rule == SAOL:
            _draw(state, max(k, last), p, uniform(seed, t))
