"""The loss of a comparison, its slope, and how long a step it allows, as `metric.losses` and `Descent` have it."""

from __future__ import annotations

import numpy as np

from ...geometry.losses import TIE
from ...protocols import Array
from .codes import CAPPED, HINGE, LOSS, SQUARED_HINGE, THRESHOLD_STEP
from .jit import kernel


@kernel
def margin_loss(kind: int, m: float) -> tuple[float, float]:
    """A margin loss and its slope."""
    if kind == HINGE:
        return (1.0 - m, -1.0) if m < 1.0 else (0.0, 0.0)
    if kind == SQUARED_HINGE:
        short = max(0.0, 1.0 - m)
        return short * short, -2.0 * short
    decay = np.exp(-abs(m))
    return max(-m, 0.0) + np.log1p(decay), -(1.0 if m < 0.0 else decay) / (1.0 + decay)


@kernel
def margin(y: float, mu: float, d2: float) -> float:
    m = y * (mu - d2)
    return 1.0 if abs(1.0 - m) <= TIE * (1.0 + mu + d2) else m


@kernel
def effective_step(step: float, slope: float, loss: float, square: float, options: Array) -> float:
    """As `Descent.effective_step` has it."""
    steepness = square * square + options[THRESHOLD_STEP]
    if options[LOSS] == SQUARED_HINGE and slope != 0.0 and steepness > 0.0:
        step = min(step, 0.5 / steepness)
    if options[CAPPED] > 0.0:
        steepness *= slope * slope
        step = min(step, loss / steepness) if steepness > 0.0 else 0.0
    return step
