"""Metrics for tests of what uses a metric."""

import numpy as np


class Given:
    """A metric that is what it is told to be."""

    def __init__(self, M, mu=1.0):
        self.M, self.mu_, self.asked = np.asarray(M, dtype=float), mu, 0

    def get_mahalanobis_matrix(self):
        self.asked += 1
        return self.M


def semidefinite(rng, n, rank):
    B = rng.normal(size=(rank, n))
    return B.T @ B
