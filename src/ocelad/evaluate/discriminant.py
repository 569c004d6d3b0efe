"""A few dimensions of a metric in which labels are told apart: Fisher's discriminant, within the metric.

With M = L'L the metric is Euclidean where x -> Lx. There, with B the scatter of the labels' means and W that
within labels,

    maximise  v' (B + W / 1000) v    subject to    v' (W + ridge tr(W) / n I) v = 1.

The more ridge, the more is left to the metric. A label weighs as the root of its number: the rare ones are neither
lost nor in charge. C labels have C - 1 directions between them; W / 1000 makes the next those of greatest spread.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh

from ..protocols import Array, Integers

SPREAD = 1e-3


def discriminant(metric: Array, X: Array, labels: Integers, dimensions: int = 3, ridge: float = 3.0) -> Array:
    """A linear map P of shape (dimensions, n): X @ P.T are coordinates, the most discriminative first.

    Parameters
    ----------
    metric
        The matrix M, as ``get_mahalanobis_matrix`` returns it, or a mean of several.
    X, labels
        Points to tell apart, and whole numbers >= 0.
    dimensions
        How many rows to return.
    ridge
        How far to trust the metric more than these points.

    Examples
    --------
    >>> X = np.array([[0.0, 3.0, 0.0], [0.1, -3.0, 1.0], [1.0, 3.0, 0.5], [1.1, -3.0, 0.5]])
    >>> P = discriminant(np.eye(3), X, np.array([0, 0, 1, 1]), dimensions=1, ridge=0.1)
    >>> bool(abs(P[0, 0]) > 10 * abs(P[0, 1]))
    True
    """
    X, labels = np.asarray(X, dtype=np.float64), np.asarray(labels)
    if labels.shape != X.shape[:1]:
        raise ValueError(f"labels must be one for each of {len(X)} points, got {len(labels)}")
    if not 1 <= dimensions <= len(metric):
        raise ValueError(f"dimensions must be between 1 and {len(metric)}, got {dimensions}")
    if not ridge > 0:
        raise ValueError(f"ridge must be positive, got {ridge!r}")
    squares, axes = np.linalg.eigh(metric)
    L = (axes * np.sqrt(np.maximum(squares, 0.0))).T
    Y = X @ L.T
    _, own, counts = np.unique(labels, return_inverse=True, return_counts=True)
    share = np.sqrt(counts) / np.sqrt(counts).sum()
    means = np.zeros((len(counts), Y.shape[1]))
    np.add.at(means, own, Y)
    means /= counts[:, None]
    apart, within = means - share @ means, (Y - means[own]) * np.sqrt((share / counts)[own])[:, None]
    B, W = apart.T @ (share[:, None] * apart), within.T @ within
    round_ = ridge * max(float(np.trace(W)), 1e-12 * float(np.trace(B)), 1e-300) / len(W)
    _, V = eigh(B + SPREAD * W, W + round_ * np.eye(len(W)))
    return V[:, : -dimensions - 1 : -1].T @ L
