"""The combiners of `ocelad.weights` that have a compiled form: the same rules on the same states, in place.

Columns of the state: log_weight for fixed share; log_weight, span, endless for the paper's weights.
"""

from __future__ import annotations

import numpy as np

from ...learner import Array
from ...weights import TIE
from .codes import FIXED_SHARE, OCELAD_MEAN
from .jit import kernel


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
def _ocelad(state: Array, losses: Array, k: int, reference: float) -> None:
    largest, size = 0.0, abs(reference)
    for j in range(k):
        largest, size = max(largest, abs(reference - losses[j])), max(size, abs(losses[j]))
    for j in range(k):
        r = 0.0 if largest <= TIE * size else (reference - losses[j]) / largest
        state[j, 0] += np.log1p(min(0.5, 1.0 / np.sqrt(state[j, 1])) * r)


@kernel
def update(
    rule: int, state: Array, losses: Array, k: int, p: Array, mixed: float, rate: float, share: float
) -> None:
    """After the losses of one step; p are the probabilities before, mixed the loss of the mixture."""
    if rule == FIXED_SHARE:
        _fixed_share(state, losses, k, rate, share)
    elif rule == OCELAD_MEAN:
        mean = 0.0
        for j in range(k):
            mean += p[j] * losses[j]
        _ocelad(state, losses, k, mean)
    else:
        _ocelad(state, losses, k, mixed)


@kernel
def reopen(rule: int, state: Array, k: int, opening: int, base: int, reset: bool) -> None:
    """Levels 0, ..., opening - 1 start anew; k levels were there before."""
    if rule == FIXED_SHARE:
        if opening > k:  # the newcomer enters with the mean weight of those present
            total = 0.0
            for j in range(k):
                total += np.exp(state[j, 0])
            state[k, 0] = np.log(total / k)
            shift = np.log(total + total / k)
            for j in range(k + 1):
                state[j, 0] -= shift
        return
    for j in range(opening):
        span = float(base << j)
        state[j, 1], state[j, 2] = span, 0.0
        if reset or j >= k:
            state[j, 0] = np.log(min(0.5, 1.0 / np.sqrt(span)))
