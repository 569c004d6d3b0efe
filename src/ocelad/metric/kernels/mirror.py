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

from ...learner import Array
from ..divergences import CONDITION, FLOOR
from .codes import CLOCK, LEADER, LENGTH, LOG_DET, ORDER, RANK, STEP, STRENGTH, TIME, VON_NEUMANN
from .jit import kernel
from .layout import Stack

TINY = float(np.finfo(np.float64).tiny)


@kernel
def diffuse(a: float, s: Array, r: int, n: int, sigma: float) -> float:
    """What is expected after a random rotation; returns the new sigma."""
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
    """The eigenvalues of the leader's metric, into s."""
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
def longest_step(geometry: int, step: float, slope: float, square: float, d2: float) -> float:
    """The step, shortened where the divergence needs it."""
    growth = slope * (d2 if geometry == LOG_DET else square)
    if growth <= 0.0 or geometry == LEADER:
        return step
    return min(step, (0.5 if geometry == LOG_DET else 1.0) / growth)


@kernel
def link(geometry: int, s: Array, r: int, z: Array, slope: float, a: float) -> float:
    """Make s and z ready for the rank-one term of a step, and return its weight."""
    if geometry == LEADER:
        return slope
    _floor(s, r, CONDITION if geometry == LOG_DET else FLOOR)
    if geometry == LOG_DET:
        d2 = 0.0
        for i in range(r):
            d2 += s[i] * z[i] * z[i]
            z[i] *= s[i]
        return a / (1.0 - a * d2)
    for i in range(r):
        s[i] = np.log(s[i])
    return a


@kernel
def unlink(geometry: int, s: Array, r: int, tau: float) -> None:
    """The eigenvalues of M again, shrunk."""
    if geometry == LOG_DET:
        for i in range(r):
            s[i] /= 1.0 + tau * s[i]
    elif geometry == VON_NEUMANN:
        for i in range(r):
            s[i] = np.exp(s[i] - tau)
