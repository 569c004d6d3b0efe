"""Experts that speak log odds: those that replay windows, the Euclidean distance, and RICE's levels, calibrated.

    odds_j = threshold_j - square_j,      p_j = floor_j + (1 - 2 floor_j) sigmoid(odds_j)  that a pair is similar,
    loss_j = -log p_j(y),                 the mixture:  sum_j w_j p_j,  and as a metric  sum_j w_j odds_j.

Of an order, "the first is closer than the second", the odds are the difference of its squares.
"""

from __future__ import annotations

import math

from ... import platt
from ...compiled import entry, kernel, sums
from ...platt import CALIBRATED_FLOOR, LEAST_SLOPE, MIXTURE_RIDGE, RIDGE, SHIFT, SLOPE, STEEPEST
from ...protocols import Array, Integers
from ...raw_array import view
from .layout import (
    AVERAGE_B,
    EUCLID,
    FIXED,
    FLOOR,
    GROUPED_SHARE,
    LEVEL,
    LEVELS,
    LOSS,
    MARGIN,
    PROBABILITY,
    RANK,
    REPLAYED,
    RULE,
    N,
    Stack,
    stack_of,
)
from .losses import margin, margin_loss
from .replay import replay, shown
from .scratch import Scratch

NEAR, FAR = range(2)  # the differences of an order; a pair has only the first

sigmoid, recalibrate, compress = kernel(platt.sigmoid), kernel(platt.recalibrate), kernel(platt.compress)


@sums
def squared_distance(L: Array, u: Array, at: int, n: int) -> float:
    """|L u|^2 of the n features from ``at`` on, in double precision."""
    square = 0.0
    for a in range(RANK):
        s = 0.0
        for e in range(n):
            s += L[a, e] * u[at + e]
        square += s * s
    return square


@kernel
def judge_experts(terms: int, stack: Stack, scratch: Scratch) -> None:
    """Every expert's threshold, and its squared distance of each difference, once levels have judged."""
    header, calibration, thresholds, margins = stack.header, stack.calibration, scratch.thresholds, scratch.margins
    replayed, fixed = header[REPLAYED], header[FIXED]
    pooled = int(stack.options[RULE]) == GROUPED_SHARE
    for j in range(replayed):
        thresholds[j], (at, n) = stack.numbers[j, AVERAGE_B], shown(j, header)
        for term in range(terms):
            margins[term, j] = squared_distance(stack.average[j], scratch.differences[term], at, n)
    if fixed > 0:
        a, c = calibration[EUCLID, SLOPE], calibration[EUCLID, SHIFT]
        thresholds[replayed] = a + c
        for term in range(terms):
            margins[term, replayed] = a * scratch.lengths[term]
    for j in range(header[LEVELS]):
        a, c, mu = 1.0, 0.0, stack.mu[stack.order[j]]
        if pooled:
            a, c = calibration[LEVEL + j, SLOPE], calibration[LEVEL + j, SHIFT]
        thresholds[fixed + j] = a * mu + c
        for term in range(terms):
            margins[term, fixed + j] = a * scratch.squares[term, j]


@kernel
def predict(
    y: float, weight: float, terms: int, stack: Stack, scratch: Scratch
) -> tuple[float, float, float, float]:
    """Every expert's loss; of the mixture the squared distance, the threshold, the probability and the loss."""
    experts, p, margins = stack.header[FIXED] + stack.header[LEVELS], scratch.p, scratch.margins
    pooled = int(stack.options[RULE]) == GROUPED_SHARE
    square = threshold = probability = likelihood = 0.0
    least = math.inf
    for j in range(experts):
        above = scratch.thresholds[j] if terms == 1 else margins[FAR, j]
        square += p[j] * margins[NEAR, j]
        threshold += p[j] * above
        if pooled:
            floor = stack.settings[j, FLOOR] if j < stack.header[REPLAYED] else CALIBRATED_FLOOR
            q = floor + (1.0 - 2.0 * floor) * sigmoid(above - margins[NEAR, j])
            stack.losses[j] = -weight * math.log(q if y > 0.0 else 1.0 - q)
            probability += p[j] * q
            least = min(least, stack.losses[j])
        else:
            stack.losses[j] = scratch.level_losses[j]
    if pooled:
        for j in range(experts):  # relative to the least loss: those of heavy comparisons are large
            likelihood += p[j] * math.exp(least - stack.losses[j])
        return square, threshold, probability, least - math.log(likelihood)
    kind = int(stack.options[LOSS])
    return square, threshold, math.nan, weight * margin_loss(kind, margin(y, threshold, square))[0]


@kernel
def calibrate_experts(y: float, weight: float, stack: Stack, scratch: Scratch) -> None:
    """Learn how far the margins of the experts that do not know are to be believed."""
    calibration, similar, header = stack.calibration, y > 0.0, stack.header
    if header[FIXED] > 0:
        recalibrate(calibration[EUCLID], 1.0 - scratch.lengths[NEAR], similar, weight, RIDGE, 0.0)
    for j in range(header[LEVELS]):
        m = stack.mu[stack.order[j]] - scratch.squares[NEAR, j]
        recalibrate(calibration[LEVEL + j], m, similar, weight, RIDGE, 0.0)


@kernel
def calibrate_mixture(
    y: float, weight: float, square: float, threshold: float, probability: float, calibration: Array
) -> None:
    """Learn how far the margin and the probability of the mixture are to be believed."""
    similar = y > 0.0
    recalibrate(calibration[MARGIN], compress(threshold - square), similar, weight, MIXTURE_RIDGE, LEAST_SLOPE)
    odds = math.log(probability / (1.0 - probability))
    recalibrate(calibration[PROBABILITY], odds, similar, weight, MIXTURE_RIDGE, LEAST_SLOPE)


@entry
def replay_one(
    u: Array,
    y: float,
    mixed: float,
    p: Array,
    floats: Array,
    integers: Integers,
    singles: Array,
    single_work: Array,
) -> None:
    """`replay` of one comparison, for experts that stand alone."""
    stack = stack_of(floats, integers, singles)
    z, G = view(single_work, 0, (RANK,)), view(single_work, RANK, (RANK, stack.header[N]))
    replay(u, y, mixed, p, stack, G, z)


@kernel
def calibrated_threshold(threshold: float, calibration: Array) -> float:
    """The squared distance at which the calibrated odds are even."""
    x = max(-STEEPEST, min(STEEPEST, -calibration[MARGIN, SHIFT] / calibration[MARGIN, SLOPE]))
    return threshold - math.copysign(math.expm1(abs(x)), x)


@kernel
def calibrated_probability(probability: float, calibration: Array) -> float:
    odds = math.log(probability / (1.0 - probability))
    return sigmoid(calibration[PROBABILITY, SLOPE] * odds + calibration[PROBABILITY, SHIFT])
