"""The compiled loop over comparisons: predict, score, learn.

    u, y -> a squared distance and a threshold per expert -> losses -> weights -> COMID steps, replayed steps ->
    open levels -> trace.

The experts are the levels of RICE, alone or in a pool (`kernels.pool`).
"""

from __future__ import annotations

import math

from ...compiled import entry, inlined, kernel
from ...protocols import Array, Integers
from ..trace import EXPERTS, PROBABILITY, SQUARED_DISTANCE, THRESHOLD
from ..trace import LOSS as TRACED_LOSS
from . import combine, pool
from .dictionary import height, remember, widen
from .factored import distance, dot, extend, project, rank_one, shrink, truncate
from .layout import (
    BASE,
    FIXED,
    GROUPED_SHARE,
    LEVELS,
    LOSS,
    MAPPED,
    MAPS,
    MAX_RANK,
    RECENT,
    REPLAYED,
    RULE,
    STEP,
    STRENGTH,
    THRESHOLD_STEP,
    TIME,
    N,
    Stack,
    stack_of,
)
from .levels import fits, opening, shift
from .losses import effective_step, margin, margin_loss
from .pool import FAR, NEAR
from .replay import replay
from .scratch import COORDINATES, RECENTLY, RESIDUAL, SECOND, Mode, Scratch, scratch_of

CHECK_EVERY = 1024  # steps between two checks that columns are orthonormal, which Python does


@kernel
def load(
    i: int, term: int, header: Integers, values: Array, start: Integers, feature: Integers, scratch: Scratch
) -> None:
    """Read a difference of comparison i: its features, their number, and its squared length."""
    n, width = header[N], header[N] + header[MAPS] * header[MAPPED]
    u, rows, count, square = scratch.differences[term], scratch.nonzero[term], n, 0.0
    if start.shape[0] == 0:
        for e in range(width):
            u[e] = values[i * width + e]
        for e in range(n):
            square += u[e] * u[e]
    else:
        for k in range(scratch.counts[term]):  # of the comparison before
            u[rows[k]] = 0.0
        count = 0
        for at in range(start[i], start[i + 1]):
            e = feature[at] - term * n
            if 0 <= e < n:
                u[e] = values[at]
                rows[count] = e
                count += 1
                square += values[at] * values[at]
    scratch.counts[term], scratch.lengths[term] = count, square


@kernel
def judge_levels(term: int, stack: Stack, scratch: Scratch, dictionary: Mode) -> None:
    """Every level's squared distance of a difference; its projection stays in Z for the step."""
    u, rows, count = scratch.differences[term], scratch.nonzero[term], scratch.counts[term]
    recently, G = scratch.vectors[RECENTLY], scratch.vectors[COORDINATES]
    if dictionary is not None:
        project(stack.recent, stack.header[RECENT], u, rows, count, recently)
    for j in range(stack.header[LEVELS]):
        slot, z = stack.order[j], scratch.Z[term, j]
        r = stack.rank[slot]
        if dictionary is not None:
            k, since = stack.own[slot], stack.since[slot]
            project(stack.columns[slot], k, u, rows, count, G)
            for i in range(stack.header[RECENT] - since):
                G[k + i] = recently[since + i]
            project(stack.factors[slot], r, G, scratch.arange, height(slot, stack), z)
        else:
            project(stack.columns[slot], r, u, rows, count, z)
        scratch.squares[term, j] = distance(
            stack.eigenvalues[slot], r, stack.sigma[slot], z, scratch.lengths[term]
        )


@kernel
def rotated(slot: int, stack: Stack, dictionary: Mode) -> tuple[Array, int]:
    """The matrix whose columns a learner's steps rotate, and its number of rows."""
    if dictionary is not None:
        return stack.factors[slot], height(slot, stack)
    return stack.columns[slot], stack.header[N]


@inlined
def add_rank_one(j: int, term: int, weight: float, stack: Stack, scratch: Scratch, dictionary: Mode) -> None:
    """M <- M + weight u u' for level j, which may be indefinite until the step is done."""
    slot, z, n, vec = stack.order[j], scratch.Z[term, j], stack.header[N], scratch.vectors
    r = before = stack.rank[slot]
    if dictionary is not None:
        if r < n:
            r = widen(slot, term, z, stack, scratch)
    elif r < n:
        u, square = scratch.differences[term], scratch.lengths[term]
        r = extend(stack.columns[slot], scratch.arange, n, r, u, square, z, vec[RESIDUAL], vec[SECOND])
    if r > before:
        stack.eigenvalues[slot, before] = stack.sigma[slot]
    stack.rank[slot], (Q, tall) = r, rotated(slot, stack, dictionary)
    rank_one(Q, tall, stack.eigenvalues[slot], r, z, weight, scratch)


@inlined
def learn(y: float, weight: float, terms: int, stack: Stack, scratch: Scratch, dictionary: Mode) -> None:
    """One COMID step of every level, after `judge_levels`."""
    options, levels, slopes, steps = stack.options, stack.header[LEVELS], scratch.slopes, scratch.steps
    near, far = scratch.lengths[NEAR], scratch.lengths[FAR]
    steepness, moves = near * near + options[THRESHOLD_STEP], False
    if terms > 1:
        across = dot(scratch.differences[NEAR], scratch.differences[FAR], stack.header[N])
        steepness = near * near + far * far - 2.0 * across * across
    for j in range(levels):
        step = options[STEP] / math.sqrt(stack.lengths[j])
        steps[j] = effective_step(step, slopes[j], scratch.level_losses[j] / weight, weight, steepness, options)
        moves = moves or (slopes[j] != 0.0 and steps[j] > 0.0)
    for term in range(terms - 1, -1, -1):  # what adds comes first: then at most one eigenvalue is negative
        if not moves or scratch.lengths[term] == 0.0:
            continue
        if term < terms - 1:
            judge_levels(term, stack, scratch, dictionary)
        if dictionary is not None:
            remember(term, scratch.nonzero[term], stack, scratch)
        sign = y if term == NEAR else -y
        for j in range(levels):
            if slopes[j] != 0.0 and steps[j] > 0.0:
                add_rank_one(j, term, sign * weight * steps[j] * slopes[j], stack, scratch, dictionary)
    for j in range(levels):
        slot, most = stack.order[j], int(options[MAX_RANK])
        (Q, tall), eigenvalues = rotated(slot, stack, dictionary), stack.eigenvalues[slot]
        tau = steps[j] * options[STRENGTH]
        r, sigma = shrink(Q, tall, eigenvalues, stack.rank[slot], stack.sigma[slot], tau)
        if r > most:
            r, discarded = truncate(Q, tall, eigenvalues, r, sigma, most)
            stack.discarded[slot] += discarded
        stack.rank[slot], stack.sigma[slot] = r, sigma
        if terms == 1:
            mu = stack.mu[slot] - options[THRESHOLD_STEP] * steps[j] * y * weight * slopes[j]
            stack.mu[slot] = max(1.0, mu)


@kernel
def evaluate_levels(y: float, weight: float, terms: int, stack: Stack, scratch: Scratch) -> None:
    """Every level's loss and slope; of orders the far squared distance stands for the threshold."""
    near, kind = scratch.squares[NEAR], int(stack.options[LOSS])
    for j in range(stack.header[LEVELS]):
        above = stack.mu[stack.order[j]] if terms == 1 else scratch.squares[FAR, j]
        loss, scratch.slopes[j] = margin_loss(kind, margin(y, above, near[j]))
        scratch.level_losses[j] = weight * loss


@entry
def run(
    values: Array,
    start: Integers,
    feature: Integers,
    y: Array,
    weight: Array,
    implied: bool,
    trace: Array,
    squares: Array,
    floats: Array,
    integers: Integers,
    singles: Array,
    work: Array,
    index: Integers,
    arange: Integers,
    single_work: Array,
    dictionary: Mode,
) -> int:
    """Learn a block of comparisons, until the arrays are too small or to be checked; returns the number learned.

    Differences are in ``values`` one after the other, each with the features of maps, if there are any; if sparse,
    the nonzeros of number i are at start[i], ..., start[i + 1] - 1, and ``feature`` says of which features they
    are, else both are empty. Without ``y`` there are two differences to each, "the first is closer than the
    second". Without ``weight`` each weighs 1. If they are ``implied``, the calibration of a pool's mixture stays.

    If there are rows for ``squares``, nothing is learned: they become every expert's squared distance of each
    difference, and the last two its threshold and its weight; the last column is for the mixture.
    """
    stack = stack_of(floats, integers, singles)
    scratch, header = scratch_of(work, index, arange, single_work, stack.header), stack.header
    sparse, n, learns, fixed = start.shape[0] > 0, header[N], squares.shape[0] == 0, header[FIXED]
    terms = 2 if learns and y.shape[0] == 0 else 1
    count = start.shape[0] - 1 if sparse else values.shape[0] // ((n + header[MAPS] * header[MAPPED]) * terms)
    columns, p, base = (trace.shape[1] - EXPERTS) // 2, scratch.p, int(stack.options[BASE])
    pooled = int(stack.options[RULE]) == GROUPED_SHARE
    for term in range(terms):
        scratch.counts[term] = 0
        for e in range(n):
            scratch.differences[term, e], scratch.nonzero[term, e] = 0.0, e
    for i in range(count):
        opens, levels = opening(base + header[TIME] + 1, base), header[LEVELS]
        if learns and not fits(opens, terms, header, stack.order, stack.rank):
            return i
        for term in range(terms):
            load(i if sparse else i * terms + term, term, header, values, start, feature, scratch)
            judge_levels(term, stack, scratch, dictionary)
        pool.judge_experts(terms, stack, scratch)
        if not learns:
            for j in range(fixed + levels):
                squares[i, j] = scratch.margins[NEAR, j]
            continue
        label, weighs = y[i] if terms == 1 else 1.0, weight[i] if weight.shape[0] > 0 else 1.0
        combine.probabilities(stack.combiner, fixed + levels, p)
        evaluate_levels(label, weighs, terms, stack, scratch)
        square, threshold, probability, mixed = pool.predict(label, weighs, terms, stack, scratch)
        if columns > 0:
            trace[i, TRACED_LOSS] = mixed
            if terms == 1:
                trace[i, SQUARED_DISTANCE], trace[i, THRESHOLD] = square, threshold
                if pooled:
                    trace[i, THRESHOLD] = pool.calibrated_threshold(threshold, stack.calibration)
                    trace[i, PROBABILITY] = pool.calibrated_probability(probability, stack.calibration)
        combine.reweight(stack.options, stack.combiner, stack.losses, header, p, mixed)
        if pooled and terms == 1:
            pool.calibrate_experts(label, weighs, stack, scratch)
            if not implied:
                pool.calibrate_mixture(label, weighs, square, threshold, probability, stack.calibration)
        learn(label, weighs, terms, stack, scratch, dictionary)
        if header[REPLAYED] > 0 and terms == 1:
            combine.probabilities(stack.combiner, fixed + levels, p)
            replay(scratch.differences[NEAR], label * weighs, mixed, p, stack, scratch.G, scratch.z)
        header[TIME] += 1
        combine.reopen(stack.options, stack.combiner, stack.lengths, header, opens)
        if opens > levels:
            stack.losses[fixed + levels] = math.nan
        shift(stack, opens, dictionary)
        if columns > 0:
            experts = fixed + header[LEVELS]
            combine.probabilities(stack.combiner, experts, p)
            for j in range(experts):
                trace[i, EXPERTS + j] = p[j]
                trace[i, EXPERTS + columns + j] = stack.losses[j]
        if header[TIME] % CHECK_EVERY == 0:
            return i + 1
    if not learns:
        experts = fixed + header[LEVELS]
        combine.probabilities(stack.combiner, experts, p)
        for j in range(experts):
            squares[count, j], squares[count + 1, j] = scratch.thresholds[j], p[j]
        for i in range(count + 1):
            squares[i, experts] = 0.0
            for j in range(experts):
                squares[i, experts] += p[j] * squares[i, j]
    return count
