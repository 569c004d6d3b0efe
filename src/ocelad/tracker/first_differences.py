"""Whether some features are so much larger than all others that these can hardly count, seen from the first
differences.

    size_i = median of |u_i| > 0,    p_i = share of differences with |u_i| > 0,    energy_i = p_i size_i^2.

A few features, at most half, drown the others if each of them is at least `RATIO` times as large as any other, is
there in most differences, all together have all but `REST` of the energy, and where they are there, `MOST` of the
square of a difference on average. A unit of length that all features share is theirs then. Medians do not look at
wild values; features that are seldom there, such as words, or seldom far from zero, such as kernels, are not
called small.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..protocols import Array
from ..validation import levels_up
from .units import RunningScale

ENOUGH = 100
"""The number of differences that are looked at."""

RATIO = 10.0
REST = 0.01
MOST = 0.9
FEW = 10
"""Where more than one feature in this many is large, the rest may be small on purpose: they must be `FAR` times
as large then."""

FAR = 100.0

WIDEST = 4096
"""Of more features nothing is kept: that many are rarely measured in units of their own."""


class FeatureScaleWarning(UserWarning):
    """A few features are so large that others can hardly count: ``scale="features"`` gives each its own unit.

    Its only argument says which they are.

    >>> from ocelad import MetricTracker
    >>> rng = np.random.default_rng(0)
    >>> pairs = rng.normal(size=(200, 2, 3)) * [1.0, 1.0, 1000.0]
    >>> y = np.where(np.abs(pairs[:, 0, 0] - pairs[:, 1, 0]) < 1, 1, -1)
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     _ = MetricTracker().partial_fit(pairs, y)
    ...     _ = MetricTracker(scale="features").partial_fit(pairs, y)
    >>> [each.category.__name__ for each in caught]
    ['FeatureScaleWarning']
    """

    def __str__(self) -> str:
        hint = "scale='features' measures each feature in a unit of its own; or standardise features beforehand"
        return f"{self.args[0]}. {hint}"


@dataclass(eq=False, slots=True)
class FirstDifferences:
    """The first differences of a tracker that measures all features in one unit, as long as they are too few."""

    rows: tuple[Array, ...] = ()

    @classmethod
    def of(cls, scale: Any, u: Any) -> FirstDifferences | None:
        """To begin with; None where each feature has its unit, or may not have one."""
        dense = isinstance(u, np.ndarray) and 1 < u.shape[1] <= WIDEST
        return cls() if isinstance(scale, RunningScale) and dense else None

    def after(self, u: Any, names: Sequence[Any] | None = None) -> FirstDifferences | None:
        """With some more, dense; once there are enough, None, and a warning if there is something to be said."""
        if not isinstance(u, np.ndarray):
            return None
        if len(u) == 1 and len(self.rows) < ENOUGH - 1:  # fast path for one at a time
            return FirstDifferences((*self.rows, u[0])) if u.any() else self
        rows = (*self.rows, *u[u.any(axis=1)][:ENOUGH].copy())[:ENOUGH]
        if len(rows) < ENOUGH:
            return FirstDifferences(rows)
        if text := verdict(np.abs(rows), names):
            warnings.warn(FeatureScaleWarning(text), stacklevel=levels_up())
        return None


def verdict(sizes: Array, names: Sequence[Any] | None = None) -> str | None:
    """What there is to be said of features with these absolute differences.

    >>> differences = np.abs(np.random.default_rng(0).normal(size=(100, 4))) * [1.0, 2.0, 1000.0, 1.0]
    >>> print(verdict(differences, ["height", "width", "price", "age"]).partition(":")[0])
    feature 'price' is about 600 times as large as any other
    >>> verdict(differences[:, :2]) is None
    True
    """
    there = (sizes > 0.0).mean(axis=0) if len(sizes) else np.zeros(0)
    kept = np.flatnonzero(there > 0.0)
    if len(kept) < 2:
        return None
    with np.errstate(invalid="ignore"):
        size = np.nanmedian(np.where(sizes[:, kept] > 0.0, sizes[:, kept], np.nan), axis=0)
    order = np.argsort(-size, kind="stable")
    size, p, kept = size[order] / size[order[0]], there[kept][order], kept[order]
    energy = p * size * size
    for few in range(1, len(kept) // 2 + 1):
        share, ratio = energy[:few].sum() / energy.sum(), RATIO if few <= max(1, len(kept) // FEW) else FAR
        large = size[few] * ratio <= size[few - 1] and share >= 1.0 - REST and p[:few].min() >= 0.5
        if large and _mean_share(sizes, kept[:few]) >= MOST:
            return _text(_called(np.sort(kept[:few]).tolist(), names), size[few - 1] / size[few], share)
    return None


def _mean_share(sizes: Array, large: Any) -> float:
    """Of these features, in the squares of the differences that they are in."""
    there = sizes[(sizes[:, large] > 0.0).any(axis=1)]
    squares = np.square(there / there.max(axis=1, keepdims=True))
    return float((squares[:, large].sum(axis=1) / squares.sum(axis=1)).mean())


def _text(large: str, ratio: float, share: float) -> str:
    return (
        f"{large} about {float(f'{ratio:.2g}'):g} times as large as any other: {min(100 * share, 99.99):.4g} % of "
        f"the squares of the first {ENOUGH} differences, so that other features can hardly count"
    )


def _called(large: list[int], names: Sequence[Any] | None) -> str:
    known = names is not None and len(names) > large[-1]
    which = ", ".join(repr(str(names[i])) if known and names is not None else str(i) for i in large)
    counted = "" if known else " (counted from 0)"
    return f"feature {which}{counted} is" if len(large) == 1 else f"features {which}{counted} are"
