"""The landmarks of feature maps, from the first points that are seen: Nystroem's features of Gaussian kernels.

    k(x)_l = exp(-|x - landmark_l|^2 / (2 width^2)),      phi(x) = K^-1/2 k(x),     K the kernel of the landmarks,

for two widths, half the median distance of the points and one and a half of it; phi in a unit of length of its
own, in which the comparisons from which the landmarks are taken have root mean square 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from ..protocols import Array
from .kernels.features import map_pairs

WIDTHS = (0.5, 1.5)
"""Of the kernels, in median distances."""

LANDMARKS = 100

POINTS = 200
"""Points that are gathered before there are maps: those of a hundred comparisons."""

SMALLEST = 1e-6
"""Directions in which the landmarks' kernel is less than this say nothing that rounding would not."""

FARTHEST = 1e150


class FeatureMaps(NamedTuple):
    """1 / unit of each feature, the rate of each kernel, the landmarks in units, and K^-1/2 of each."""

    inverse: Array
    rates: Array
    landmarks: Array
    roots: Array

    @classmethod
    def shapes(cls, n: int) -> list[tuple[int, ...]]:
        maps, m = len(WIDTHS), LANDMARKS
        return [(n,), (maps,), (m, n), (maps, m, m)]

    @classmethod
    def of(cls, flat: Array, n: int) -> FeatureMaps:
        """From one array, in which all of them come one after the other."""
        shapes = cls.shapes(n)
        parts = np.split(flat, np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1])
        return cls(*(part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)))

    @property
    def flat(self) -> Array:
        return np.concatenate([part.ravel() for part in self])

    def __call__(self, X: Array) -> Array:
        """phi of points, of one map after the other."""
        with np.errstate(over="ignore", invalid="ignore"):
            squares = cdist(np.clip(X * self.inverse, -FARTHEST, FARTHEST), self.landmarks, "sqeuclidean")
        kernels = [np.exp(-rate * np.nan_to_num(squares, nan=np.inf)) for rate in self.rates]
        return np.hstack([k @ root.T for k, root in zip(kernels, self.roots, strict=True)])


def feature_maps(points: Array, pairs: Array, by_feature: bool) -> FeatureMaps:
    """The maps that suit some points, and pairs of them of shape (m, 2, n); each feature in a unit of its own, if
    asked for."""
    distinct = points[np.sort(np.unique(points, axis=0, return_index=True)[1])]
    inverse = _inverse(distinct, by_feature)
    chosen = np.sort(np.random.default_rng(0).permutation(len(distinct))[:LANDMARKS])
    landmarks = np.zeros((LANDMARKS, points.shape[1]))
    landmarks[: len(chosen)] = np.clip(distinct[chosen] * inverse, -FARTHEST, FARTHEST)
    rates = np.array([0.5 / width**2 for width in WIDTHS])
    found = FeatureMaps(inverse, rates, landmarks, np.zeros((len(rates), LANDMARKS, LANDMARKS)))
    with np.errstate(over="ignore"):
        squares = cdist(landmarks[: len(chosen)], landmarks[: len(chosen)], "sqeuclidean")
    for root, rate in zip(found.roots, rates, strict=True):
        s, V = np.linalg.eigh(np.exp(-rate * squares))
        root[: len(chosen), : len(chosen)] = (V / np.sqrt(np.maximum(s, SMALLEST))) @ V.T
    u = (found(pairs[:, 0]) - found(pairs[:, 1])).reshape(len(pairs), len(rates), LANDMARKS)
    size = np.sqrt(np.square(u).sum(axis=2).mean(axis=0)) if len(pairs) else np.ones(len(rates))
    found.roots[:] /= np.where(size > 0.0, size, 1.0)[:, None, None]
    return found


def joined(rows: Array, maps: Array, n: int) -> Array:
    """Of rows (u, x, z), or of several side by side, each difference and what maps make of its points: nothing,
    while there are none."""
    count, rows = len(WIDTHS), np.ascontiguousarray(rows)
    made = np.zeros((rows.size // (3 * n), n + count * LANDMARKS))
    made[:, :n] = rows.reshape(len(made), 3, n)[:, 0]
    if len(maps):
        work = np.empty(count * LANDMARKS + 2 * n)
        map_pairs(rows.reshape(-1), maps, made.reshape(-1), work, n, count, LANDMARKS)
    return made


def _inverse(points: Array, by_feature: bool) -> Array:
    """1 / unit of each feature: the unit is the median distance, of features as they are or divided by their usual
    deviation. Those that are always the same do not count."""
    largest = np.abs(points).max(axis=0) if by_feature else np.full(points.shape[1], np.abs(points).max())
    down = np.where(largest > 0.0, largest, 1.0)  # squares of huge and tiny numbers must not overflow
    small = points / down
    deviation = small.std(axis=0) if by_feature else np.ones(points.shape[1])
    per = np.where(deviation > 0.0, 1.0 / np.where(deviation > 0.0, deviation, 1.0), 0.0)
    distances = cdist(small * per, small * per)
    positive = distances[distances > 0.0]
    unit = np.median(positive) if len(positive) else 1.0
    with np.errstate(over="ignore"):
        return np.minimum(per / unit / down, 1e300)
