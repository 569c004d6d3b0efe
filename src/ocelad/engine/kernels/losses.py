"""The loss of a comparison, its slope, and the step that it allows, as `geometry.losses` and `Descent` have it."""

from __future__ import annotations

import math

from ...compiled import kernel
from ...geometry.losses import TIE
from ...protocols import Array
from .layout import CAPPED, HINGE, LOSS, SQUARED_HINGE


@kernel
def margin_loss(kind: int, m: float) -> tuple[float, float]:
    """A margin loss and its slope."""
    if kind == HINGE:
        return (1.0 - m, -1.0) if m < 1.0 else (0.0, 0.0)
    if kind == SQUARED_HINGE:
        short = max(0.0, 1.0 - m)
        return short * short, -2.0 * short
    decay = math.exp(-abs(m))
    return max(-m, 0.0) + math.log1p(decay), -(1.0 if m < 0.0 else decay) / (1.0 + decay)


@kernel
def margin(y: float, above: float, below: float) -> float:
    """y (above - below): the threshold above a squared distance, or a far one above a near one. Ties are 1."""
    m = y * (above - below)
    return 1.0 if abs(1.0 - m) <= TIE * (1.0 + above + below) else m


@kernel
def effective_step(step: float, slope: float, loss: float, weight: float, steep: float, options: Array) -> float:
    """As `Descent.effective_step` has it, of a loss times a weight; steep: (the margin's gradient)^2."""
    if options[LOSS] == SQUARED_HINGE and slope != 0.0 and steep > 0.0:
        step = min(step, 0.5 / (weight * steep))
    if options[CAPPED] > 0.0:
        steep *= weight * slope * slope
        step = min(step, loss / steep) if steep > 0.0 else 0.0
    return step
