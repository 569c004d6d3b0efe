"""The item nearest to a group, the mean distance from the closest members being the distance from a group:

    d(i, G) = mean of the CLOSEST smallest |z_i - z_j|, j in G   >=   min |z_i - z_j|.

The bound on the right is cheap, in single precision. Only the few items that it leaves are compared by the
definition, in double.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, pairwise

import numpy as np

from ..protocols import Array

CLOSEST = 3
"""Members of a group, the closest ones, whose mean distance is that of the group."""

MANY = 1 << 16
"""Distances of items and members from which on it pays to look at bounds first."""

FIRST = 32
"""Items with the least bounds, of which the nearest shows how many others have to be looked at."""

BLOCK = 512
"""Items that are looked at together: a block is to stay in the processor's cache."""

ROUNDING = np.float32(2e-6)
"""Relative errors of sums of products in single precision, of which a usual one is a tenth."""

Groups = Sequence[list[int]]


def squared(a: Array, b: Array) -> Array:
    """Squared distances of all rows from all others."""
    square = (a * a).sum(axis=1)[:, None] + (b * b).sum(axis=1) - 2.0 * (a @ b.T)
    return np.maximum(square, 0.0)


def distances(a: Array, groups: Sequence[Array]) -> Array:
    """Of each row from each group: the mean distance from its closest members."""
    far = np.empty((len(a), len(groups)))
    for start in range(0, len(a), BLOCK):
        rows = slice(start, start + BLOCK)
        for k, members in enumerate(groups):
            square, closest = squared(a[rows], members), min(CLOSEST, len(members))
            far[rows, k] = np.sqrt(np.partition(square, closest - 1, axis=1)[:, :closest]).mean(axis=1)
    return far


class Bounds:
    """Points in single precision, and from below how far they are from groups under metrics L'L.

    Single precision resolves differences best in the middle, and where features are of one size.
    """

    def __init__(self, points: Array) -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            middle = points - points.mean(axis=0)
            size = np.abs(middle).max(axis=0)
            self._size = np.where(size > 0.0, size, 1.0)
            self._rows = np.divide(middle, self._size, out=middle).astype(np.float32)
            self._length = np.linalg.norm(self._rows, axis=1)

    def below(self, L: Array | None, items: list[int], groups: Groups) -> Array:
        """Lower bounds, of shape (items, groups): -inf where numbers are too large to tell."""
        members = list(chain.from_iterable(groups))
        ends = np.cumsum([0, *map(len, groups)]).tolist()
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = (np.diag(self._size) if L is None else L * self._size).astype(np.float32)
            a, b = self._rows[items] @ scaled.T, self._rows[members] @ scaled.T
            error = ROUNDING * np.linalg.norm(scaled) * self._length
            own, other = ((1.0 - 8.0 * ROUNDING) * np.einsum("ij,ij->i", c, c) for c in (a, b))
            bounds = np.empty((len(items), len(groups)))
            b *= -2.0
            for start in range(0, len(items), BLOCK):
                rows = slice(start, start + BLOCK)
                square = b @ a[rows].T
                square += other[:, None]
                for k, (first, last) in enumerate(pairwise(ends)):
                    bounds[rows, k] = square[first:last].min(axis=0)
            bounds += own[:, None]
            bounds = np.sqrt(np.maximum(bounds, 0.0)) - (error[items][:, None] + error[members].max())
        bounds[~np.isfinite(bounds)] = -np.inf
        return bounds
