"""The first comparisons and points that an engine sees, kept until there are enough of them for feature maps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..protocols import Array
from .checks import take
from .landmarks import POINTS, FeatureMaps, feature_maps
from .protocol import Arrays

U = 3  # the first column of a comparison's numbers

NAMES = ("maps", "gathered", "observed")
"""In a snapshot: the maps, if there are any; else a row per comparison, with its label (0 for an order), its
weight, whether it is implied, and its numbers; and points that nobody has compared."""


class Comparison(NamedTuple):
    u: Any
    y: Array | None
    weight: Array | None
    implied: bool


@dataclass(frozen=True, eq=False)
class Gathered:
    """Comparisons as `Engine.run` was given them, each a difference with its two points, or two of those."""

    comparisons: tuple[Comparison, ...] = ()
    observed: Array | None = None

    def with_comparison(self, u: Any, y: Array | None, weight: Array | None, implied: bool) -> Gathered:
        labels, weights = (None if own is None else own.copy() for own in (y, weight))
        kept = Comparison(u.copy(), labels, weights, implied)
        return Gathered((*self.comparisons, kept), self.observed)

    def with_points(self, points: Array) -> Gathered:
        """With more points than are needed, some of them, evenly spread."""
        if len(points) > POINTS:
            points = points[np.linspace(0, len(points) - 1, POINTS).astype(int)]
        before = points[:0] if self.observed is None else self.observed
        return Gathered(self.comparisons, np.concatenate([before, points]))

    @property
    def pairs(self) -> Array:
        """The two points of each difference, of shape (m, 2, n)."""
        rows = [u.reshape(1 if y is not None else 2, 3, -1)[:, 1:] for u, y, *_ in self.comparisons]
        return np.concatenate(rows)

    @property
    def enough(self) -> bool:
        compared = sum(2 if one.y is not None else 4 for one in self.comparisons)
        return compared + (0 if self.observed is None else len(self.observed)) >= POINTS

    def maps(self, by_feature: bool) -> Array:
        """Those that suit all of these points."""
        seen = [] if self.observed is None else [self.observed]
        if not self.comparisons:  # consecutive points stand for pairs
            pairs = np.stack([seen[0][:-1], seen[0][1:]], axis=1)
        else:
            pairs = self.pairs
            seen.insert(0, pairs.reshape(-1, pairs.shape[2]))
        return feature_maps(np.concatenate(seen), pairs, by_feature).flat


def arrays(gathered: Gathered | None, maps: Array, n: int) -> Arrays:
    found = gathered or Gathered()
    table = np.zeros((len(found.comparisons), U + 6 * n))
    for row, (u, y, weight, implied) in zip(table, found.comparisons, strict=True):
        row[:U] = 0.0 if y is None else y[0], 1.0 if weight is None else weight[0], implied
        row[U : U + u.size] = u.ravel()
    observed = np.zeros((0, n)) if found.observed is None else found.observed
    return {"maps": maps.copy(), "gathered": table, "observed": observed.copy()}


def restored(learned: Arrays, n: int, t: int) -> tuple[Gathered | None, Array]:
    """What was gathered, or None and the maps."""
    rows, seen = (len(learned[name]) if learned[name].ndim else 0 for name in ("gathered", "observed"))
    table, points = take(learned, "gathered", (rows, U + 6 * n)), take(learned, "observed", (seen, n))
    size = sum(int(np.prod(shape)) for shape in FeatureMaps.shapes(n))
    maps = take(learned, "maps", (size if learned["maps"].size else 0,))
    if maps.size:
        found = FeatureMaps.of(maps, n)
        if rows or seen or not ((found.inverse >= 0.0).all() and (found.rates > 0.0).all()):
            raise ValueError("maps must have units and widths > 0, and nothing that is still gathered")
        return None, maps.copy()  # a read-only array would be compiled for again
    y, weight, implied = table[:, :U].T
    labels = np.isin(y, (-1.0, 0.0, 1.0)).all() and np.isin(implied, (0.0, 1.0)).all()
    if not (labels and (weight > 0.0).all() and rows == t):
        raise ValueError("gathered must have all comparisons, with labels of -1, 0 or 1 and weights > 0")
    comparisons = tuple(
        Comparison(
            row[None, U : U + 3 * n * (1 if label else 2)].copy(),
            row[:1].copy() if label else None,
            row[1:2].copy(),
            bool(row[2]),
        )
        for row, label in zip(table, y, strict=True)
    )
    gathered = Gathered(comparisons, points.copy() if seen else None)
    if arrays(gathered, maps, n)["gathered"].tobytes() != table.tobytes():
        raise ValueError("gathered must have zeros where pairs have no second difference")
    if gathered.enough:
        raise ValueError(f"gathered and observed must be less than {POINTS} points")
    return gathered, maps.copy()
