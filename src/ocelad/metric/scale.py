"""The unit of length in which a tracker learns, so that nobody has to scale features.

    scale^2 = mean of |u|^2 over the comparisons so far, the present one included.

A step that suits differences of size one suits nothing else. Only ratios enter, so features of size 1e-150 and
1e+150 behave like features of size one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ..learner import Array

OUTLIER = 10.0
"""A difference counts as at most this many times the scale so far: one wild value must not set the unit."""

LONGEST = 1e3
"""A difference is learned from as if it were at most this many units long: beyond, rounding would ruin M."""

LARGEST = 1e70
"""With a scale that is not learned, the longest difference whose fourth power is still a number."""


class Scale(Protocol):
    """A unit of length, and how it goes on."""

    @property
    def value(self) -> float: ...

    def normalise(self, u: Array, /) -> tuple[Array, Scale]:
        """The differences in units of length, each in the unit of its own time, and the scale after them."""


@dataclass(frozen=True)
class RunningScale:
    """The root mean square of |u|, learned as it goes.

    >>> differences, scale = RunningScale().normalise(np.array([[3.0, 4.0], [0.0, 0.0], [0.0, 10.0]]))
    >>> round(scale.value**2, 9)  # the mean of 25 and 100
    62.5
    """

    value: float = 1.0
    count: int = 0

    def normalise(self, u: Array) -> tuple[Array, RunningScale]:
        value, count, factors = self.value, self.count, []
        for norm in norms(u):
            if norm > 0:  # a zero difference says nothing about the unit
                ratio = min(norm / value, OUTLIER) if count else norm / value
                count += 1
                value *= math.sqrt(1.0 + (ratio * ratio - 1.0) / count) if count > 1 else ratio
            factors.append((value, min(1.0, LONGEST * value / norm) if norm > 0 else 1.0))
        values, shortening = np.array(factors).reshape(-1, 2).T
        return u / values[:, None] * shortening[:, None], RunningScale(value, count)


@dataclass(frozen=True)
class FixedScale:
    """A unit chosen beforehand."""

    value: float

    def normalise(self, u: Array) -> tuple[Array, FixedScale]:
        longest = norms(u / self.value)
        row = int(np.argmax(longest)) if longest else 0
        if longest and longest[row] > LARGEST:
            raise ValueError(
                f"pairs: the difference of pair {row} is {longest[row]:.1g} times the unit of length, expected at "
                f"most {LARGEST:.0g}; scale='auto' measures the unit from the stream"
            )
        return u / self.value, self


def norms(u: Array) -> list[float]:
    """|u| row by row, safe from overflow and underflow of the squares."""
    largest = np.abs(u).max(axis=1)
    unit = np.where(largest > 0, largest, 1.0)
    # one product per row: a sum along an axis may round differently in a batch than in a single row
    return [size * math.sqrt(float(row @ row)) for size, row in zip(unit.tolist(), u / unit[:, None], strict=True)]
