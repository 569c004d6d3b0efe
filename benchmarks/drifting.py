"""Streams to time: pairs, labels, and the pairs of a slice as a tracker is given them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from ocelad.data import DriftingClusters

Stream = tuple[Any, Any, Callable[[slice], Any]]


def clusters(steps: int) -> Stream:
    """Scenario S: two clusterings of a noisy, rotating space of 25 dimensions."""
    stream = DriftingClusters.draw(np.random.default_rng(0)).stream(np.random.default_rng(1))
    taken = [next(stream) for _ in range(steps)]
    pairs = np.array([step.pair for step in taken])
    return pairs, np.array([step.y for step in taken]), lambda part: pairs[part]


def text(steps: int, n: int = 194, words: int = 8) -> Stream:
    """Short texts: a few of n words each, some more frequent than others, a third of them peculiar to a topic.

    As in a stream of posts, each is compared with the next, which is on the same topic two times out of three.
    """
    rng = np.random.default_rng(0)
    chance = 1.0 / (4.0 + np.arange(n))
    chance /= chance.sum()
    topics = [rng.permutation(n)[:40] for _ in range(4)]
    topic = np.cumsum(np.where(rng.random(steps + 1) < 2 / 3, 0, rng.integers(1, 4, size=steps + 1))) % 4
    points = np.zeros((steps + 1, n))
    for point, own in zip(points, topic, strict=True):
        drawn = rng.choice(n, size=words, p=chance)
        drawn = np.where(rng.random(words) < 1 / 3, topics[own][drawn % 40], drawn)
        np.add.at(point, drawn, -np.log(chance[drawn]))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    pairs, rows = np.stack([points[:-1], points[1:]], axis=1), sparse.csr_array(points)
    y = np.where(topic[:-1] == topic[1:], 1, -1)
    return pairs, y, lambda part: (rows[:-1][part], rows[1:][part])


def embeddings(steps: int, n: int) -> Stream:
    """Unit vectors around ten centres, with a decaying spectrum."""
    rng = np.random.default_rng(0)
    spread = 1.0 / np.sqrt(1.0 + np.arange(n) / 20.0)
    centres, label = rng.normal(size=(10, n)), rng.integers(10, size=(steps, 2))
    pairs = (centres[label] + rng.normal(size=(steps, 2, n))) * spread
    pairs /= np.linalg.norm(pairs, axis=2, keepdims=True)
    return pairs, np.where(label[:, 0] == label[:, 1], 1, -1), lambda part: pairs[part]
