"""The combiners of `ocelad.weights` that have a compiled form: the same rules on the same states, in place."""

from __future__ import annotations

import numpy as np

from ...compiled import kernel
from ...protocols import Array
from ...weights import TIE
from .layout import ENDLESS, FIXED_SHARE, LOG_WEIGHT, NO_RULE, OCELAD_MEAN, RATE, RESET, RULE, SHARE, SPAN


@kernel
def probabilities(combiner: Array, k: int, p: Array) -> None:
    """The normalised weights of the first k experts."""
    largest, total = -np.inf, 0.0
    for j in range(k):
        largest = max(largest, combiner[j, LOG_WEIGHT])
    for j in range(k):
        p[j] = np.exp(combiner[j, LOG_WEIGHT] - largest)
        total += p[j]
    for j in range(k):
        p[j] /= total


@kernel
def _fixed_share(combiner: Array, losses: Array, k: int, rate: float, share: float) -> None:
    best = worst = losses[0]
    for j in range(1, k):
        best, worst = min(best, losses[j]), max(worst, losses[j])
    tied = worst - best <= TIE * max(abs(best), abs(worst))
    largest, total = -np.inf, 0.0
    for j in range(k):
        if not tied:
            combiner[j, LOG_WEIGHT] -= rate * ((losses[j] - best) / (worst - best))
        largest = max(largest, combiner[j, LOG_WEIGHT])
    for j in range(k):
        total += np.exp(combiner[j, LOG_WEIGHT] - largest)
    shift = largest + np.log(total)
    for j in range(k):
        v = combiner[j, LOG_WEIGHT] - shift
        combiner[j, LOG_WEIGHT] = np.log((1.0 - share) * np.exp(v) + share / k) if share > 0.0 else v


@kernel
def reweight(options: Array, combiner: Array, losses: Array, k: int, p: Array, mixed: float) -> None:
    """After the losses of k experts in one step; p were their probabilities, mixed the loss of the mixture."""
    rule = int(options[RULE])
    if rule == FIXED_SHARE:
        _fixed_share(combiner, losses, k, options[RATE], options[SHARE])
    elif rule != NO_RULE:
        mean = largest = 0.0
        for j in range(k):
            mean += p[j] * losses[j]
        reference = mean if rule == OCELAD_MEAN else mixed
        size = abs(reference)
        for j in range(k):
            largest, size = max(largest, abs(reference - losses[j])), max(size, abs(losses[j]))
        for j in range(k):
            r = 0.0 if largest <= TIE * size else (reference - losses[j]) / largest
            combiner[j, LOG_WEIGHT] += np.log1p(min(0.5, 1.0 / np.sqrt(combiner[j, SPAN])) * r)
            combiner[j, SPAN] += combiner[j, ENDLESS]


@kernel
def reopen(options: Array, combiner: Array, lengths: Array, k: int, opens: int) -> None:
    """The first levels start anew, as many as open; k were there before."""
    rule = int(options[RULE])
    if rule == FIXED_SHARE and opens > k:  # one more enters with the mean weight of those present
        total = 0.0
        for j in range(k):
            total += np.exp(combiner[j, LOG_WEIGHT])
        combiner[k, LOG_WEIGHT] = np.log(total / k)
        shift = np.log(total + total / k)
        for j in range(k + 1):
            combiner[j, LOG_WEIGHT] -= shift
    elif rule not in (FIXED_SHARE, NO_RULE):
        for j in range(opens):
            combiner[j, SPAN], combiner[j, ENDLESS] = lengths[j], 0.0
            if options[RESET] > 0.0 or j >= k:
                combiner[j, LOG_WEIGHT] = np.log(min(0.5, 1.0 / np.sqrt(lengths[j])))
