"""The combiners of `ocelad.weights` that have a compiled form: the same rules on the same states, in place."""

from __future__ import annotations

import math

from ...compiled import inlined, kernel
from ...protocols import Array, Integers
from ...weights import TIE
from .layout import (
    BETWEEN,
    ENDLESS,
    FIXED,
    FIXED_SHARE,
    GROUPED_SHARE,
    LEVELS,
    LOG_WEIGHT,
    MAPS,
    NO_RULE,
    OCELAD_MEAN,
    OCELAD_MIXTURE,
    RATE,
    RESET,
    RULE,
    SHARE,
    SPAN,
)
from .replay import first_of


@kernel
def probabilities(combiner: Array, k: int, p: Array) -> None:
    """The normalised weights of the first k experts."""
    largest, total = -math.inf, 0.0
    for j in range(k):
        largest = max(largest, combiner[j, LOG_WEIGHT])
    for j in range(k):
        p[j] = math.exp(combiner[j, LOG_WEIGHT] - largest)
        total += p[j]
    for j in range(k):
        p[j] /= total


@inlined
def _fixed_share(combiner: Array, losses: Array, k: int, rate: float, share: float) -> None:
    best = worst = losses[0]
    for j in range(1, k):
        best, worst = min(best, losses[j]), max(worst, losses[j])
    tied = worst - best <= TIE * max(abs(best), abs(worst))
    largest, total = -math.inf, 0.0
    for j in range(k):
        if not tied:
            combiner[j, LOG_WEIGHT] -= rate * ((losses[j] - best) / (worst - best))
        largest = max(largest, combiner[j, LOG_WEIGHT])
    for j in range(k):
        total += math.exp(combiner[j, LOG_WEIGHT] - largest)
    shift = largest + math.log(total)
    for j in range(k):
        v = combiner[j, LOG_WEIGHT] - shift
        combiner[j, LOG_WEIGHT] = math.log((1.0 - share) * math.exp(v) + share / k) if share > 0.0 else v


@kernel
def _end(group: int, header: Integers) -> int:
    """Where the experts of a group end: those that replay given features, those of each map, Euclid, levels."""
    maps = header[MAPS]
    if group <= maps:
        return first_of(group + 1, header)
    return header[FIXED] if group == maps + 1 else header[FIXED] + header[LEVELS]


@inlined
def _grouped_share(
    combiner: Array, losses: Array, header: Integers, p: Array, share: float, between: float
) -> None:
    maps, experts = header[MAPS], header[FIXED] + header[LEVELS]
    least, total, groups = math.inf, 0.0, 0
    for j in range(experts):
        least = min(least, losses[j])
    for j in range(experts):
        p[j] *= math.exp(least - losses[j])
        total += p[j]
    for g in range(3 + maps):
        groups += _end(g, header) > _end(g - 1, header)
    for g in range(3 + maps):
        start, end, weight = _end(g - 1, header), _end(g, header), 0.0
        size = end - start
        for j in range(start, end):
            p[j] /= total
            weight += p[j]
        for j in range(start, end):
            within = (1.0 - share) * (p[j] / weight) + share / size if weight > 0.0 else 1.0 / size
            combiner[j, LOG_WEIGHT] = math.log(within * ((1.0 - between) * weight + between / groups))


@inlined
def reweight(options: Array, combiner: Array, losses: Array, header: Integers, p: Array, mixed: float) -> None:
    """After the losses of all experts in one step; p were their probabilities, mixed the loss of the mixture.

    Afterwards p may be anything.
    """
    rule, k = int(options[RULE]), header[FIXED] + header[LEVELS]
    if rule == GROUPED_SHARE:
        _grouped_share(combiner, losses, header, p, options[SHARE], options[BETWEEN])
        return
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
            combiner[j, LOG_WEIGHT] += math.log1p(min(0.5, 1.0 / math.sqrt(combiner[j, SPAN])) * r)
            combiner[j, SPAN] += combiner[j, ENDLESS]


@kernel
def reopen(options: Array, combiner: Array, lengths: Array, header: Integers, opens: int) -> None:
    """The first levels start again, as many as open; one that is new enters with the mean weight of the others."""
    rule, fixed, k = int(options[RULE]), header[FIXED], header[LEVELS]
    if rule in (FIXED_SHARE, GROUPED_SHARE) and opens > k:
        total = 0.0
        for j in range(fixed, fixed + k):
            total += math.exp(combiner[j, LOG_WEIGHT])
        combiner[fixed + k, LOG_WEIGHT] = math.log(total / k)
        shift = math.log1p(1.0 / k)  # so that together they have the weight that they had
        for j in range(fixed, fixed + k + 1):
            combiner[j, LOG_WEIGHT] -= shift
    elif rule in (OCELAD_MEAN, OCELAD_MIXTURE):
        for j in range(opens):
            combiner[j, SPAN], combiner[j, ENDLESS] = lengths[j], 0.0
            if options[RESET] > 0.0 or j >= k:
                combiner[j, LOG_WEIGHT] = math.log(min(0.5, 1.0 / math.sqrt(lengths[j])))
