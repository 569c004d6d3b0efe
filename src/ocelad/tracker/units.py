"""The unit of length in which a tracker learns, so that the common scale of the features does not matter.

    unit = median of the first |u|,  then  unit^2 <- unit^2 + (|u|^2 - unit^2) / count,   the present u included.

A step that suits differences of size one suits nothing else. The median keeps one odd difference at the beginning
from setting the unit; from then on the unit tends to the root mean square. Only ratios enter, so features of size
1e-150 and 1e+150 behave like features of size one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Protocol

import numpy as np
from scipy import sparse

from ..geometry.mahalanobis import FARTHEST, TINY
from ..protocols import Array

FIRST = 16
"""The number of differences that enter the median."""

LONGEST = 10.0
"""A difference counts, and is learned from, as if it were at most this many units long. One wild value must
neither set the unit nor throw M far away."""

VERY_FAR = 1e70
"""In units of length: the squares of such differences are still far from the largest number."""

LARGEST = 1e35
"""With a scale that is not learned, the longest difference whose eighth power is still a number."""


HUGE = 1e308
"""Longer differences, the diagonal of a cube of huge numbers say, count as this long."""


SIZE, COUNT = range(2)
"""Rows of a table of feature sizes; after them come the first differences of each feature, in order."""

FIRST_OF_FEATURE = 5
"""The number of differences of a feature that enter its median."""

LARGEST_SIZE = 1e300
"""Larger entries of a difference count as this large: many of them together still have a length."""


class Scale(Protocol):
    """A unit of length, and how it is updated."""

    longest: ClassVar[float]
    """In units: no expert has been shown a longer difference."""

    @property
    def value(self) -> float | Array: ...

    def normalise(self, u: Any, parts: int = 1, before: bool = False, /) -> tuple[Any, Scale, list[float]]:
        """The differences in units of length, each in the unit of its own time, or from before it; the scale after
        them; and for each row the factor that converts it to the unit from before that row.

        A row may be several differences side by side: then their root mean square is measured.
        """

    def check(self, u: Any, /) -> None:
        """Raise if a difference is too long."""


@dataclass(frozen=True, slots=True)
class RunningScale:
    """The typical |u|, learned as it goes.

    >>> u = np.array([[3.0, 4.0], [0.0, 0.0], [0.0, 10.0], [6.0, 0.0]])
    >>> differences, scale, _ = RunningScale().normalise(u)
    >>> scale.value
    6.0
    """

    longest: ClassVar[float] = LONGEST

    value: float = 1.0
    count: int = 0
    first: tuple[float, ...] = ()

    def normalise(self, u: Any, parts: int = 1, before: bool = False) -> tuple[Any, RunningScale, list[float]]:
        value, count, first, factors, ratios = self.value, self.count, self.first, [], []
        for norm in norms(u, parts):
            old, known = value, count > 0
            if norm > 0.0:  # else it says nothing about the unit
                count += 1
                if count <= FIRST:
                    first = (*first, norm)
                    value = sorted(first)[count // 2]
                else:
                    ratio = min(norm / value, LONGEST)
                    value, first = value * math.sqrt(1.0 + (ratio * ratio - 1.0) / count), ()
            unit = old if before and known else value
            factor = into_units(norm, unit, LONGEST)
            factors.append(factor)
            ratios.append(min(1.0 / old / factor, FARTHEST))
        return scaled(u, factors), RunningScale(value, count, first), ratios

    def check(self, u: Any) -> None:
        """No difference is too long."""


@dataclass(frozen=True, slots=True, eq=False)
class FeatureScale:
    """A size for each feature (`feature_sizes`), and a common unit for differences that have been divided by them.

    Every difference is measured by the sizes from before it, and only then counts among them. So a feature that
    has always been the same is ignored, and the first comparison says nothing but how large features are.

    >>> u = np.array([[3.0, 1000.0], [-3.0, 1000.0], [6.0, 0.0]])
    >>> differences, scale, _ = FeatureScale.new(2).normalise(u)
    >>> differences.round(3)
    array([[ 0.   ,  0.   ],
           [-0.707,  0.707],
           [ 1.414,  0.   ]])
    """

    longest: ClassVar[float] = LONGEST

    sizes: Array
    common: RunningScale = RunningScale()

    @classmethod
    def new(cls, n: int) -> FeatureScale:
        return cls(np.zeros((COUNT + 1 + FIRST_OF_FEATURE, n)))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, FeatureScale)
            and self.common == other.common
            and np.array_equal(self.sizes, other.sizes)
        )

    @property
    def value(self) -> Array:
        """The unit of each feature, infinite while it is not known."""
        size = self.sizes[SIZE]
        with np.errstate(over="ignore"):
            return np.where(size > 0.0, np.clip(size * self.common.value, TINY, HUGE), math.inf)

    def normalise(
        self,
        u: Any,
        parts: int = 1,
        before: bool = True,  # noqa: ARG002 it always is
    ) -> tuple[Any, FeatureScale, list[float]]:
        from .feature_sizes import divide  # and with it the compiler

        self.check(u)
        shape = (u.shape[0], parts, u.shape[1] // parts)
        sizes, divided = self.sizes.copy(), np.empty(shape)
        divide(np.ascontiguousarray(u).reshape(shape), sizes, divided)
        divided, first = divided.reshape(u.shape), -1
        if self.common.count == 0 and u.any():  # measured by itself, it says what the common unit is, and no more
            first = int(u.any(axis=1).argmax())
            divided[first] = np.sign(u[first])
        rows, common, ratios = self.common.normalise(divided, parts, True)
        if first >= 0:
            rows[first] = 0.0
        sizes.setflags(write=False)
        return rows, FeatureScale(sizes, common), ratios

    def check(self, u: Any) -> None:
        if sparse.issparse(u):
            raise ValueError("scale='features' needs dense points, got sparse ones: scale='auto' takes them")


@dataclass(frozen=True)
class FixedScale:
    """A unit chosen beforehand."""

    longest: ClassVar[float] = VERY_FAR

    value: float

    def normalise(
        self,
        u: Any,
        parts: int = 1,  # noqa: ARG002
        before: bool = False,  # noqa: ARG002
    ) -> tuple[Any, FixedScale, list[float]]:
        self.check(u)
        return u / self.value, self, [1.0] * u.shape[0]

    def check(self, u: Any) -> None:
        entries = u.data if sparse.issparse(u) else u
        if np.abs(entries).max(initial=0.0) / self.value * math.sqrt(u.shape[1]) <= LARGEST:
            return  # no row is longer either
        longest = [norm / self.value for norm in norms(u)]
        row = int(np.argmax(longest)) if longest else 0
        if longest and longest[row] > LARGEST:
            raise ValueError(
                f"pairs: the difference of pair {row} is {longest[row]:.1g} times the unit of length, expected at "
                f"most {LARGEST:.0g}; scale='auto' measures the unit from the stream"
            )


def norms(u: Any, parts: int = 1) -> list[float]:
    """|u| row by row, safe from overflow and underflow of the squares; of several parts the root mean square."""
    rows = u if isinstance(u, np.ndarray) else [u.data[a:b] for a, b in pairwise(u.indptr.tolist())]
    # one product per row: a sum along an axis may round differently in a batch than in a single row
    squares = [square(row) for row in rows]
    return [
        math.sqrt(s / parts) if 1e-200 < s < 1e200 else _careful_norm(row) / math.sqrt(parts)
        for s, row in zip(squares, rows, strict=True)
    ]


def into_units(norm: float, unit: float, longest: float) -> float:
    """The factor that a difference of this length is multiplied by, to be at most ``longest`` units long."""
    return longest / norm if norm > longest * unit else 1.0 / unit


def square(array: Array) -> float:
    """The sum of the squares, which may overflow: of that vdot does not warn."""
    return float(np.vdot(array, array))


def _careful_norm(row: Array) -> float:
    size = float(np.abs(row).max(initial=0.0))
    return min(size * math.sqrt(float(np.square(row / size).sum())), HUGE) if size > TINY else 0.0


def scaled(u: Any, factors: list[float]) -> Any:
    """Each row times its factor."""
    if isinstance(u, np.ndarray):
        return u * factors[0] if len(factors) == 1 else u * np.array(factors)[:, None]
    data = u.data * np.repeat(factors, np.diff(u.indptr))
    return type(u)((data, u.indices, u.indptr), shape=u.shape)
