"""How good is a metric? The two measures of the paper, on points placed in the metric's embedding."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import normalized_mutual_info_score
from sklearn.neighbors import NearestNeighbors

from ..protocols import Array


def knn_error(Z: Array, labels: NDArray[np.int64], k: int = 5) -> float:
    """Leave-one-out error of k-nearest-neighbour classification; among classes with equal votes the nearest wins.

    >>> knn_error(np.array([[0.0], [0.1], [5.0], [5.1]]), np.array([0, 0, 1, 1]), k=1)
    0.0
    """
    # The nearest neighbour of a point is itself only while no other coincides with it: exclude it by its index.
    neighbours = NearestNeighbors(n_neighbors=k).fit(Z).kneighbors(return_distance=False)
    votes = labels[neighbours][:, :, None] == np.arange(labels.max() + 1)  # point, rank, class
    nearness = np.arange(k, 0, -1) / (k + 1)  # less than a vote
    score = votes.sum(axis=1) + (votes * nearness[:, None]).max(axis=1)
    return float((score.argmax(axis=1) != labels).mean())


def cluster_nmi(Z: Array, labels: NDArray[np.int64], seed: int = 0) -> float:
    """Normalised mutual information of k-means clusters with the labels, k the number of labels.

    >>> cluster_nmi(np.array([[0.0], [0.1], [5.0], [5.1]]), np.array([0, 0, 1, 1]))
    1.0
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a metric that maps all points to one: NMI 0
        clusters = KMeans(len(np.unique(labels)), n_init=10, random_state=seed).fit_predict(Z)
    return float(normalized_mutual_info_score(labels, clusters))
