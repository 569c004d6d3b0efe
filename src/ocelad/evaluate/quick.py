"""The measures of `embedding`, compiled: a study takes them hundreds of times in every trial.

The error is that of `knn_error`, exactly. Clusters come from k-means as in `cluster_nmi`: greedy k-means++ starts,
which here run on a quarter of the points first; where they end in different places, each goes on with all points,
and the one with the least sum of squares counts.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from ..learner import Array
from ..metric.kernels.jit import kernel

Labels = NDArray[np.int64]

STARTS, CANDIDATES = 10, 3  # k-means++ starts, and how many points are tried for each centre
THINNED = 4  # starts are tried on every fourth point
SAME = 1e-9  # sums of squares as close as this belong to the same clusters
ITERATIONS = 300


def quick_knn_error(Z: Array, labels: Labels, k: int = 5) -> float:
    """As `knn_error`; of points at exactly the same distance the first in order is the nearer.

    >>> quick_knn_error(np.array([[0.0], [0.1], [5.0], [5.1]]), np.array([0, 0, 1, 1]), k=1)
    0.0
    """
    if not 1 <= k < len(Z):
        raise ValueError(f"k must be an integer from 1 to {len(Z) - 1}, one less than there are points, got {k!r}")
    return float(_errors(np.ascontiguousarray(Z.T), labels, int(labels.max()) + 1, k) / len(Z))


def quick_cluster_nmi(Z: Array, labels: Labels, seed: int = 0) -> float:
    """As `cluster_nmi`, with fewer starts.

    >>> quick_cluster_nmi(np.array([[0.0], [0.1], [5.0], [5.1]]), np.array([0, 0, 1, 1]))
    1.0
    """
    k = int(np.count_nonzero(np.bincount(labels)))
    every = THINNED if len(Z) >= 100 * THINNED else 1
    X = np.ascontiguousarray(Z.T)
    return nmi(_clusters(X, np.ascontiguousarray(X[:, ::every]), k, _draws(seed, k)), labels)


@cache
def _draws(seed: int, k: int) -> Array:
    return np.random.default_rng(seed).random((STARTS, k, CANDIDATES))


def nmi(a: Labels, b: Labels) -> float:
    """Mutual information of two labellings, divided by the mean of their entropies; 1 if both are constant.

    >>> nmi(np.array([0, 0, 1, 1]), np.array([1, 1, 0, 0]))
    1.0
    """
    rows, columns = int(a.max()) + 1, int(b.max()) + 1
    joint = np.bincount(a * columns + b, minlength=rows * columns).reshape(rows, columns) / len(a)
    entropies = [_entropy(joint.sum(axis=1)), _entropy(joint.sum(axis=0)), _entropy(joint.ravel())]
    if entropies[0] == entropies[1] == 0.0:
        return 1.0
    information = entropies[0] + entropies[1] - entropies[2]
    return float(min(1.0, max(0.0, 2.0 * information / (entropies[0] + entropies[1]))))


def _entropy(p: Array) -> float:
    p = p[p > 0]
    return float(-(p * np.log(p)).sum())


# Points are columns here, so that a loop over points runs over neighbours in memory.


@kernel
def _errors(X: Array, labels: Labels, classes: int, k: int) -> int:
    n = X.shape[1]
    far, near, who = np.empty(n), np.empty(k), np.zeros(k, dtype=np.int64)
    votes, wrong = np.empty(classes), 0
    for i in range(n):
        _squares(X, X[:, i], far)
        far[i] = np.inf
        near[:] = np.inf
        for j in range(n):
            if far[j] < near[k - 1]:
                at = k - 1
                while at > 0 and far[j] < near[at - 1]:
                    near[at], who[at] = near[at - 1], who[at - 1]
                    at -= 1
                near[at], who[at] = far[j], j
        votes[:] = 0.0
        for rank in range(k - 1, -1, -1):
            label = labels[who[rank]]
            # A vote, and less than a vote for the nearest of the class.
            votes[label] = np.floor(votes[label]) + 1.0 + (k - rank) / (k + 1.0)
        wrong += np.argmax(votes) != labels[i]
    return wrong


@kernel
def _squares(X: Array, x: Array, out: Array) -> None:
    """Squared distances of all points from one."""
    n = X.shape[1]
    for j in range(n):
        out[j] = (X[0, j] - x[0]) ** 2
    for e in range(1, X.shape[0]):
        for j in range(n):
            out[j] += (X[e, j] - x[e]) ** 2


@kernel
def _clusters(X: Array, some: Array, k: int, draws: Array) -> Labels:
    n, m, starts = X.shape[1], some.shape[1], draws.shape[0]
    labels, best = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    least, square, inertia, lowest = np.empty(n), np.empty(n), np.empty(starts), np.inf
    for start in range(starts):
        centres = _plus_plus(some, k, draws[start])
        inertia[start] = _lloyd(some, centres, labels[:m], least[:m], square[:m])
        known = False
        for other in range(start):
            known = known or abs(inertia[start] - inertia[other]) <= SAME * inertia[start]
        if not known:
            total = _lloyd(X, centres, labels, least, square)
            if total < lowest or start == 0:
                lowest = total
                best[:] = labels
    return best


@kernel
def _plus_plus(X: Array, k: int, draws: Array) -> Array:
    """Each centre the best of a few points, drawn with chances as their squared distance from those so far."""
    d, n = X.shape
    centres, least, square, chosen = np.empty((k, d)), np.full(n, np.inf), np.empty(n), np.empty(n)
    for c in range(k):
        lowest, pick = np.inf, 0
        total = least.sum()
        for trial in range(draws.shape[1] if c > 0 else 1):
            i = int(draws[c, trial] * n) if c == 0 or total <= 0.0 else _drawn(least, draws[c, trial] * total)
            _squares(X, X[:, i], square)
            potential = 0.0
            for j in range(n):
                square[j] = min(square[j], least[j])
                potential += square[j]
            if potential < lowest:
                lowest, pick = potential, i
                chosen[:] = square
        least[:] = chosen
        centres[c] = X[:, pick]
    return centres


@kernel
def _drawn(weights: Array, at: float) -> int:
    for j in range(weights.shape[0]):
        at -= weights[j]
        if at < 0.0:
            return j
    return weights.shape[0] - 1


@kernel
def _assign(X: Array, centres: Array, labels: Labels, least: Array, square: Array) -> int:
    """Each point to its nearest centre; returns how many have moved."""
    n, moved = X.shape[1], 0
    nearest = np.zeros(n, dtype=np.int64)
    _squares(X, centres[0], least)
    for c in range(1, centres.shape[0]):
        _squares(X, centres[c], square)
        for j in range(n):
            nearest[j] = c if square[j] < least[j] else nearest[j]
            least[j] = min(least[j], square[j])
    for j in range(n):
        moved += nearest[j] != labels[j]
        labels[j] = nearest[j]
    return moved


@kernel
def _lloyd(X: Array, centres: Array, labels: Labels, least: Array, square: Array) -> float:
    """Move the centres until no point changes sides; returns the sum of squared distances."""
    d, n = X.shape
    sums, counts = np.empty(centres.shape), np.empty(centres.shape[0])
    labels[:] = -1
    for _ in range(ITERATIONS):
        if _assign(X, centres, labels, least, square) == 0:
            break
        sums[:] = 0.0
        counts[:] = 0.0
        for j in range(n):
            counts[labels[j]] += 1.0
        for e in range(d):
            for j in range(n):
                sums[labels[j], e] += X[e, j]
        for c in range(centres.shape[0]):
            if counts[c] > 0.0:  # a centre that nobody is nearest to stays
                for e in range(d):
                    centres[c, e] = sums[c, e] / counts[c]
    return least.sum()
