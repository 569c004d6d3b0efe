"""The loss of LMNN, and the points that it is about.

Each point i has targets j, its nearest of the same class, and impostors l of other classes that come within a
margin of them. With d for squared distances,

    F = (1 - push) sum_ij d_ij + push sum_ijl hinge(1 + d_ij - d_il).

In the coordinates used here the first sum, with a trifle that makes it definite, is tr M.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from sklearn.neighbors import NearestNeighbors

from ...protocols import Array, Integers

BLOCK = 512
"""Block size: how many rows of the distance matrix are held at a time."""


def targets(X: Array, labels: Integers, k: int) -> Integers:
    """The k nearest points of each point's class, of shape (n, k), the nearest first; -1 where a class has fewer.

    >>> targets(np.array([[0.0], [1.0], [3.0], [9.0]]), np.array([0, 0, 0, 1]), k=2)
    array([[ 1,  2],
           [ 0,  2],
           [ 1,  0],
           [-1, -1]])
    """
    found = np.full((len(X), k), -1)
    for label in np.unique(labels):
        own = np.flatnonzero(labels == label)
        few = min(k, len(own) - 1)
        if few:
            nearest = NearestNeighbors(n_neighbors=few).fit(X[own]).kneighbors(return_distance=False)
            found[own, :few] = own[nearest]
    return found


@dataclass(frozen=True, eq=False)
class MarginLoss:
    """F and its gradient, with a hinge whose corner is rounded off (h^2 / 2 rounding below h = rounding)."""

    X: Array
    labels: Integers
    targets: Integers
    push: float
    rounding: float

    def impostors(self, L: Array, slack: float) -> Integers:
        """All (i, l) that come within the margin, and so much more, of i's farthest target, as i n + l."""
        Z = self.X @ L.T
        own = np.square(Z).sum(axis=1)
        reach = 1.0 + slack + self._target_squares(Z).max(axis=1)
        found, n = [], len(Z)
        for start in range(0, n, BLOCK):
            rows = slice(start, start + BLOCK)
            near = own[rows, None] + own - 2.0 * Z[rows] @ Z.T < reach[rows, None]
            near &= self.labels[rows, None] != self.labels
            i, other = np.nonzero(near)
            found.append((i + start) * n + other)
        return np.concatenate(found)

    def __call__(self, L: Array, impostors: Integers) -> tuple[float, Array]:
        """F over these impostors, in ascending order, and its gradient with respect to M = L'L."""
        from .margins import pushing

        Y = np.zeros(self.X.shape)
        hinges = pushing(self.X, self.X @ L.T, self.targets, impostors, self.rounding, Y)
        G, pull = self.X.T @ Y, 1.0 - self.push
        F = pull * np.square(L).sum() + self.push * hinges
        return float(F), pull * np.eye(len(G)) + self.push * (G + G.T) / 2.0

    def _target_squares(self, Z: Array) -> Array:
        return np.where(self.targets >= 0, np.square(Z[:, None] - Z[self.targets]).sum(axis=2), -np.inf)


def scatter(X: Array, of: Integers, to: Integers, weights: Array) -> Array:
    """The sum of w (x - z)(x - z)' over pairs of points, by the Laplacian of their graph: no difference is formed.

    >>> scatter(np.array([[1.0, 2.0], [0.0, 0.0]]), np.array([0]), np.array([1]), np.array([3.0]))
    array([[ 3.,  6.],
           [ 6., 12.]])
    """
    half = sparse.coo_array((weights, (of, to)), shape=(len(X), len(X))).tocsr()
    both = half + half.T
    G = X.T @ (both.sum(axis=1)[:, None] * X - both @ X)
    return (G + G.T) / 2.0
