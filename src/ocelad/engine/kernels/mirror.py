"""Other ways to move a learner that is kept by its eigenpairs: other geometries, the leader, and diffusion.

    von Neumann   log M <- log M + a u u' - tau I
    LogDet        M^-1  <- M^-1  - a u u' + tau I,      so that  M <- M + a (Mu)(Mu)' / (1 - a u'Mu)  but for tau
    leader        T     <- T + y slope u u',            M = step_t max(T - t strength I, 0)
    diffusion     M     <- (1 - a) M + a tr(M)/n I

All of them turn the eigenvectors by a rank-one term or not at all. Of the leader S holds the eigenvalues of T; the
others but diffusion are for definite matrices, which have all of their columns.
"""

from __future__ import annotations

import numpy as np

from ...geometry.divergences import CONDITION, FLOOR
from ...protocols import Array
from .codes import (
    ADAPTS,
    CLOCK,
    FROBENIUS,
    GEOMETRY,
    LEADER,
    LENGTH,
    LOG_DET,
    MU,
    ORDER,
    RANK,
    SLOPES,
    STEP,
    STRENGTH,
    THRESHOLD_STEP,
    TIME,
    VON_NEUMANN,
)
from .jit import kernel
from .layout import Stack
from .losses import effective_step

TINY = float(np.finfo(np.float64).tiny)


@kernel
def diffuse(a: float, s: Array, r: int, n: int, sigma: float) -> float:
    """What is expected after a random rotation; returns the new sigma."""
    if a == 0.0:
        return sigma
    trace = sigma * (n - r)
    for i in range(r):
        trace += s[i]
    for i in range(r):
        s[i] = (1.0 - a) * s[i] + a * trace / n
    return (
        (1.0 - a) * sigma + a * trace / n if r < n else 0.0
    )  # of nothing, it would count nowhere but in rounding


@kernel
def shown(level: int, stack: Stack, s: Array) -> Array:
    """The eigenvalues of a learner's metric; of the leader's, into s."""
    if stack[7][GEOMETRY] != LEADER:
        return stack[2][stack[4][ORDER, level]]
    meta, options, squares = stack[4], stack[7], stack[6][level, LENGTH]
    slot, step = meta[ORDER, level], options[STEP] / np.sqrt(squares) if squares > 0.0 else 0.0
    for i in range(meta[RANK, slot]):
        s[i] = max(0.0, step * stack[2][slot, i] - meta[CLOCK, TIME] * step * options[STRENGTH])
    return s


@kernel
def _floor(s: Array, n: int, fraction: float) -> None:
    """As `divergences` has it: below, there is only rounding."""
    largest = 0.0
    for i in range(n):
        largest = max(largest, s[i])
    least = max(fraction * largest, TINY)
    for i in range(n):
        s[i] = max(s[i], least)


@kernel
def begins(level: int, slope: float, square: float, stack: Stack) -> bool:
    """Where steps adapt, the sum of squared gradients stands for a length; while it is 0, nothing is learned."""
    state = stack[6]
    if stack[7][ADAPTS] == 0.0:
        return True
    state[level, LENGTH] += slope * slope * (square * square + 1.0)
    return state[level, LENGTH] > 0.0


@kernel
def _longest_step(geometry: int, step: float, slope: float, square: float, d2: float) -> float:
    """The step, shortened where the divergence needs it."""
    growth = slope * (d2 if geometry == LOG_DET else square)
    if growth <= 0.0 or geometry in (FROBENIUS, LEADER):
        return step
    return min(step, (0.5 if geometry == LOG_DET else 1.0) / growth)


@kernel
def link(
    step: float, slope: float, loss: float, square: float, z: Array, room: int, s: Array, r: int, options: Array
) -> tuple[float, float]:
    """Make s and z ready for the rank-one term of a step; returns how long it may be, and the weight of the term.

    The slope is y times that of the loss.
    """
    geometry = int(options[GEOMETRY])
    if geometry == LEADER:
        return step, slope
    step = _longest_step(geometry, step, slope, square, z[room + 1])
    step = effective_step(step, slope, loss, square, options)
    weight = step * slope
    if geometry == FROBENIUS:
        return step, weight
    _floor(s, r, CONDITION if geometry == LOG_DET else FLOOR)
    if geometry == LOG_DET:
        d2 = 0.0
        for i in range(r):
            d2 += s[i] * z[i] * z[i]
            z[i] *= s[i]
        return step, weight / (1.0 - weight * d2)
    for i in range(r):
        s[i] = np.log(s[i])
    return step, weight


@kernel
def unlink(s: Array, r: int, tau: float, options: Array) -> bool:
    """The eigenvalues of M again, shrunk; False if there is nothing to be done but to shrink them."""
    geometry = int(options[GEOMETRY])
    if geometry == LOG_DET:
        for i in range(r):
            s[i] /= 1.0 + tau * s[i]
    elif geometry == VON_NEUMANN:
        for i in range(r):
            s[i] = np.exp(s[i] - tau)
    return geometry != FROBENIUS


@kernel
def threshold(level: int, mu: float, step: float, slope: float, stack: Stack) -> float:
    """The threshold after a step; the leader's is that of all slopes together."""
    options, state = stack[7], stack[6]
    if options[GEOMETRY] != LEADER:
        return mu
    state[level, SLOPES] += slope
    return stack[3][0, MU] - options[THRESHOLD_STEP] * step * state[level, SLOPES]
