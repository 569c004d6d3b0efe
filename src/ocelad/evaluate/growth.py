"""How fast regret grows with the length of the interval.

    exponent = slope of the least-squares line through (log length, log A(length)),
    A(length) = max_{|I| = length} R(I),

over lengths that are equally spaced on the logarithmic scale, as far as rounding lets them. A theorem with
sqrt|I| promises at most 1/2, up to logarithms and variation; a learner that never adapts has 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..protocols import Integers


def geometric_lengths(shortest: int, longest: int, per_octave: int = 4) -> Integers:
    """Whole numbers from shortest to longest, ``per_octave`` of them per doubling.

    >>> geometric_lengths(4, 16, per_octave=2)
    array([ 4,  6,  8, 11, 16])
    """
    if not 1 <= shortest <= longest or per_octave < 1:
        raise ValueError(
            f"expected 1 <= shortest <= longest and per_octave >= 1, got {shortest!r}, {longest!r}, {per_octave!r}"
        )
    steps = math.floor(per_octave * math.log2(longest / shortest) + 1e-9)
    return np.unique(np.round(shortest * 2.0 ** (np.arange(steps + 1) / per_octave)).astype(np.int64))


@dataclass(frozen=True)
class Growth:
    """A(length) ~ factor * length^exponent over ``lengths`` lengths, with the standard error of the slope.

    The error is that of the line, not of the experiment: neighbouring lengths share their intervals. Lengths
    without positive regret, to which no power belongs, are ``omitted``.
    """

    exponent: float
    factor: float
    error: float
    lengths: int
    omitted: int


def growth_exponent(lengths: ArrayLike, regrets: ArrayLike) -> Growth:
    """The exponent with which the largest regret grows; nan if fewer than three lengths have a positive one.

    >>> growth_exponent([1, 4, 16, 64], [3.0, 6.0, 12.0, 24.0])
    Growth(exponent=0.5, factor=3.0, error=0.0, lengths=4, omitted=0)
    """
    size, regret = np.asarray(lengths, dtype=np.float64), np.asarray(regrets, dtype=np.float64)
    if size.ndim != 1 or size.shape != regret.shape or not (size > 0).all() or len(np.unique(size)) < len(size):
        raise ValueError(
            "lengths and regrets must be of one shape (k,), lengths positive and distinct, "
            f"got {size} and {regret}"
        )
    kept = regret > 0
    count, omitted = int(kept.sum()), int((~kept).sum())
    if count < 3:
        return Growth(math.nan, math.nan, math.nan, count, omitted)
    x, y = np.log2(size[kept]), np.log2(regret[kept])
    dx = x - x.mean()
    slope = float(dx @ y / (dx @ dx))
    rest = y - y.mean() - slope * dx
    error = math.sqrt(float(rest @ rest) / (count - 2) / float(dx @ dx))
    return Growth(slope, float(2.0 ** (y.mean() - slope * x.mean())), error, count, omitted)
