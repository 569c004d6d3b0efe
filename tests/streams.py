"""Small streams for tests."""

import numpy as np


def comparisons(seed, steps, n=25, change=True):
    """Pairs and labels that depend on one feature subspace, and half-way on another."""
    rng = np.random.default_rng(seed)
    pairs = rng.normal(size=(steps, 2, n)) / np.sqrt(2 * n)
    u = pairs[:, 0] - pairs[:, 1]
    k = max(1, n // 5)
    first, second = (u[:, :k] ** 2).sum(axis=1), (u[:, -k:] ** 2).sum(axis=1)
    matter = np.where(np.arange(steps) < steps // 2, first, second) if change else first
    return pairs, np.where(matter < np.median(matter), 1, -1)
