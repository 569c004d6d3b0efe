"""How good is a metric? The two measures of the paper, on points placed in the metric's embedding.

They are compiled, because a study takes them hundreds of times in every trial. Points that lie in memory
coordinate by coordinate, as the transpose of such an array, are taken as they are.
"""

from __future__ import annotations

import math
from functools import cache, lru_cache

import numpy as np

from ..protocols import Array, Integers
from . import kmeans, knn

STARTS, CANDIDATES = 10, 3  # k-means++ starts, and how many points are tried for each centre
THINNED = 4  # starts are tried on every fourth point


def knn_error(Z: Array, labels: Integers, k: int = 5) -> float:
    """Leave-one-out error of k-nearest-neighbour classification; among classes with equal votes the nearest wins.

    Of points at exactly the same distance the first in order is the nearer.

    >>> knn_error(np.array([[0.0], [0.1], [5.0], [5.1]]), np.array([0, 0, 1, 1]), k=1)
    0.0
    """
    if not 1 <= k < len(Z):
        raise ValueError(f"k must be an integer from 1 to {len(Z) - 1}, one less than there are points, got {k!r}")
    _check(Z, labels)
    return float(knn.errors(np.ascontiguousarray(Z.T), labels, int(labels.max()) + 1, k) / len(Z))


def cluster_nmi(Z: Array, labels: Integers, seed: int = 0) -> float:
    """Normalised mutual information of k-means clusters with the labels, k the number of labels.

    Ten k-means++ starts run on a quarter of the points first; where they end in different places, each goes on
    with all points, and the one with the least sum of squares counts.

    >>> cluster_nmi(np.array([[0.0], [0.1], [5.0], [5.1]]), np.array([0, 0, 1, 1]))
    1.0
    """
    _check(Z, labels)
    k = int(np.count_nonzero(np.bincount(labels)))
    every = THINNED if len(Z) >= 100 * THINNED else 1
    X = np.ascontiguousarray(Z.T)
    return nmi(kmeans.clusters(X, np.ascontiguousarray(X[:, ::every]), k, _draws(seed, k)), labels)


def nmi(a: Integers, b: Integers) -> float:
    """Mutual information of two labellings, divided by the mean of their entropies; 1 if both are constant.

    >>> nmi(np.array([0, 0, 1, 1]), np.array([1, 1, 0, 0]))
    1.0
    """
    rows, columns = int(a.max()) + 1, int(b.max()) + 1
    joint = np.bincount(a * columns + b, minlength=rows * columns).reshape(rows, columns).tolist()
    share = _shares(len(a))
    # Rounded once: labellings that are the same but for the labels' names have the same entropy.
    h = math.fsum(share[sum(row)] for row in joint)
    k = math.fsum(share[sum(column)] for column in zip(*joint, strict=True))
    both = math.fsum(share[count] for row in joint for count in row)
    return min(1.0, max(0.0, 2.0 * (h + k - both) / (h + k))) if h + k > 0.0 else 1.0


def _check(Z: Array, labels: Integers) -> None:
    """Compiled code would read, and write, wherever these say."""
    if Z.ndim != 2 or not Z.shape[1] or Z.dtype != np.float64:
        raise ValueError(
            f"Z must be an array of floats with a row for each point, got shape {Z.shape} of {Z.dtype}"
        )
    if labels.shape != Z.shape[:1] or labels.dtype != np.int64 or labels.min(initial=0) < 0:
        raise ValueError(
            f"labels must be {len(Z)} integers (int64) from 0 on, got {labels.dtype} of shape {labels.shape}"
        )


@cache
def _draws(seed: int, k: int) -> Array:
    return np.random.default_rng(seed).random((STARTS, k, CANDIDATES))


@lru_cache(maxsize=4)
def _shares(n: int) -> list[float]:
    """What a cell contributes to the entropy, by how many of the n points it holds."""
    return [0.0, *(-count / n * math.log(count / n) for count in range(1, n + 1))]
