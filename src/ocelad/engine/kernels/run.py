"""The compiled loop over comparisons: predict, score, learn.

    u, y -> a squared distance and a threshold per expert -> losses -> weights -> COMID steps -> open levels ->
    trace.

RICE's levels are the experts here. Others can stand beside them: who fills ``squares`` as `judge_levels`
does, and takes part in `learn`, is weighted and written down like them.
"""

from __future__ import annotations

import numpy as np

from ...compiled import entry, inlined, kernel
from ...protocols import Array, Integers
from ..trace import EXPERTS, SQUARED_DISTANCE, THRESHOLD
from ..trace import LOSS as TRACED_LOSS
from . import combine
from .dictionary import height, remember, widen
from .factored import distance, dot, extend, project, rank_one, shrink, truncate
from .layout import BASE, LEVELS, LOSS, MAX_RANK, RECENT, STEP, STRENGTH, THRESHOLD_STEP, TIME, N, Stack, stack_of
from .levels import fits, opening, shift
from .losses import effective_step, margin, margin_loss
from .scratch import COORDINATES, RECENTLY, RESIDUAL, SECOND, Mode, Scratch, scratch_of

CHECK_EVERY = 1024  # steps between two checks that columns are orthonormal, which Python does
NEAR, FAR = range(2)  # the differences of an order; a pair has only the first


@kernel
def load(i: int, term: int, n: int, values: Array, start: Integers, feature: Integers, scratch: Scratch) -> None:
    """Read a difference of comparison i: its features, their number, and its squared length."""
    u, rows, count, square = scratch.differences[term], scratch.nonzero[term], n, 0.0
    if start.shape[0] == 0:
        for e in range(n):
            u[e] = values[i * n + e]
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


@kernel
def learn(y: float, weight: float, terms: int, stack: Stack, scratch: Scratch, dictionary: Mode) -> None:
    """One COMID step of every level, after `judge_levels`."""
    options, levels, slopes, steps = stack.options, stack.header[LEVELS], scratch.slopes, scratch.steps
    near, far = scratch.lengths[NEAR], scratch.lengths[FAR]
    steepness, moves = near * near + options[THRESHOLD_STEP], False
    if terms > 1:
        across = dot(scratch.differences[NEAR], scratch.differences[FAR], stack.header[N])
        steepness = near * near + far * far - 2.0 * across * across
    for j in range(levels):
        step = options[STEP] / np.sqrt(stack.lengths[j])
        steps[j] = effective_step(step, slopes[j], stack.losses[j] / weight, weight, steepness, options)
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
def evaluate_losses(y: float, weight: float, stack: Stack, scratch: Scratch) -> tuple[float, float, float]:
    """Every level's loss and slope; the squared distance of the mixture, its threshold, and the loss of both.

    Of orders the far squared distance stands for the threshold.
    """
    near, far, p, kind = scratch.squares[NEAR], scratch.squares[FAR], scratch.p, int(stack.options[LOSS])
    above = below = 0.0
    for j in range(stack.header[LEVELS]):
        loss, scratch.slopes[j] = margin_loss(kind, margin(y, far[j], near[j]))
        stack.losses[j] = weight * loss
        above += p[j] * far[j]
        below += p[j] * near[j]
    return below, above, weight * margin_loss(kind, margin(y, above, below))[0]


@entry
def run(
    values: Array,
    start: Integers,
    feature: Integers,
    y: Array,
    weight: Array,
    trace: Array,
    squares: Array,
    floats: Array,
    integers: Integers,
    work: Array,
    index: Integers,
    arange: Integers,
    dictionary: Mode,
) -> int:
    """Learn a block of comparisons, until the arrays are too small or to be checked; returns the number learned.

    Differences are in ``values`` one after the other; if sparse, the nonzeros of number i are at start[i], ...,
    start[i + 1] - 1, and ``feature`` says of which features; if not, both are empty. Without ``y`` there are two
    differences to each, "the first is closer than the second". Without ``weight`` each weighs 1.

    If there are rows for ``squares``, nothing is learned: they become every expert's squared distance of each
    difference, and the last two its threshold and its weight; the last column is for the mixture.
    """
    stack = stack_of(floats, integers)
    scratch, header = scratch_of(work, index, arange, stack.header), stack.header
    sparse, n, learns = start.shape[0] > 0, header[N], squares.shape[0] == 0
    terms = 2 if learns and y.shape[0] == 0 else 1
    count = start.shape[0] - 1 if sparse else values.shape[0] // (n * terms)
    experts, p, base = (trace.shape[1] - EXPERTS) // 2, scratch.p, int(stack.options[BASE])
    for term in range(terms):
        scratch.counts[term] = 0
        for e in range(n):
            scratch.differences[term, e], scratch.nonzero[term, e] = 0.0, e
    for i in range(count):
        opens, levels = opening(base + header[TIME] + 1, base), header[LEVELS]
        if learns and not fits(opens, terms, header, stack.order, stack.rank):
            return i
        for term in range(terms):
            load(i if sparse else i * terms + term, term, n, values, start, feature, scratch)
            judge_levels(term, stack, scratch, dictionary)
        if not learns:
            for j in range(levels):
                squares[i, j] = scratch.squares[NEAR, j]
            continue
        label, weighs = y[i] if terms == 1 else 1.0, weight[i] if weight.shape[0] > 0 else 1.0
        combine.probabilities(stack.combiner, levels, p)
        for j in range(levels if terms == 1 else 0):
            scratch.squares[FAR, j] = stack.mu[stack.order[j]]
        square, threshold, mixed = evaluate_losses(label, weighs, stack, scratch)
        combine.reweight(stack.options, stack.combiner, stack.losses, levels, p, mixed)
        learn(label, weighs, terms, stack, scratch, dictionary)
        header[TIME] += 1
        combine.reopen(stack.options, stack.combiner, stack.lengths, levels, opens)
        if opens > levels:
            stack.losses[levels] = np.nan
        shift(stack, opens, dictionary)
        if experts > 0:
            if terms == 1:
                trace[i, SQUARED_DISTANCE], trace[i, THRESHOLD] = square, threshold
            trace[i, TRACED_LOSS] = mixed
            combine.probabilities(stack.combiner, header[LEVELS], p)
            for j in range(header[LEVELS]):
                trace[i, EXPERTS + j] = p[j]
                trace[i, EXPERTS + experts + j] = stack.losses[j]
        if header[TIME] % CHECK_EVERY == 0:
            return i + 1
    if not learns:
        combine.probabilities(stack.combiner, header[LEVELS], p)
        for j in range(header[LEVELS]):
            squares[count, j], squares[count + 1, j] = stack.mu[stack.order[j]], p[j]
        for i in range(count + 1):
            squares[i, header[LEVELS]] = 0.0
            for j in range(header[LEVELS]):
                squares[i, header[LEVELS]] += p[j] * squares[i, j]
    return count
