"""The paper's synthetic stream: two clusterings in orthogonal subspaces of a noisy, rotating space.

Every point has a label in clustering A, visible in three dimensions, and an independent one in clustering B,
visible in three others; the rest is noise. Comparisons follow one clustering at a time, and all points rotate.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..protocols import Array
from .rotation import haar, rotation_walk

Labels = NDArray[np.int64]


@dataclass(frozen=True)
class Segment:
    """A stretch of the stream: how long, which clustering, and how far the rotation moves per step."""

    steps: int
    clustering: Literal["A", "B"]
    drift: float


SCENARIO = (
    Segment(1300, "A", 0.0),
    Segment(1000, "B", 0.05),
    Segment(1000, "B", 0.15),
    Segment(1000, "B", 0.05),
    Segment(1200, "A", 0.02),
)
"""Static, then a jump, moderate, fast and moderate drift, then a jump back and slow drift. The changes keep away
from powers of two, which would coincide with the restarts of the levels."""


@dataclass(frozen=True)
class Step:
    """One comparison, and the world at that time: ``points @ rotation.T`` are the points as they are now."""

    t: int
    segment: int
    pair: Array
    y: int
    rotation: Array
    labels: Labels


@dataclass(frozen=True, eq=False)
class DriftingClusters:
    """A data set with two clusterings, and the stream of comparisons drawn from it.

    >>> data = DriftingClusters.draw(np.random.default_rng(0), points=100)
    >>> step = next(data.stream(np.random.default_rng(1)))
    >>> step.pair.shape, step.y in (-1, 1)
    ((2, 25), True)
    """

    points: Array
    A: Labels
    B: Labels

    @classmethod
    def draw(
        cls,
        rng: np.random.Generator,
        points: int = 2000,
        dimension: int = 25,
        separation: float = 6.0,
        noise: float = 2.0,
        shares: tuple[float, ...] = (0.5, 0.3, 0.2),
    ) -> DriftingClusters:
        """Draw the points, in units in which a random difference has mean square 1."""
        k = len(shares)
        if dimension < 2 * k:
            raise ValueError(f"dimension must be at least {2 * k}, got {dimension}")
        p = np.array(shares)
        means = separation / math.sqrt(2) * (np.eye(k) - p)  # blob means, their weighted mean taken off
        A, B = rng.choice(k, size=points, p=p), rng.choice(k, size=points, p=p)
        X = np.hstack(
            [
                means[A] + rng.normal(size=(points, k)),
                means[B] + rng.normal(size=(points, k)),
                noise * rng.normal(size=(points, dimension - 2 * k)),
            ]
        )
        between = float(p @ (means**2).sum(axis=1))
        variance = 2 * (between + k) + (dimension - 2 * k) * noise**2
        return cls(X / math.sqrt(2 * variance), A, B)

    def labels(self, clustering: Literal["A", "B"]) -> Labels:
        return self.A if clustering == "A" else self.B

    def random_pair(self, rng: np.random.Generator) -> tuple[int, int]:
        """The numbers of two different points."""
        i = int(rng.integers(len(self.points)))
        j = int(rng.integers(len(self.points) - 1))
        return i, j + (j >= i)

    def stream(self, rng: np.random.Generator, segments: tuple[Segment, ...] = SCENARIO) -> Iterator[Step]:
        """One uniformly random pair per time step, as the clustering in force compares it."""
        plan = [(number, segment) for number, segment in enumerate(segments) for _ in range(segment.steps)]
        start = haar(self.points.shape[1], rng)
        walk = rotation_walk((segment.drift for _, segment in plan), start, rng)
        for t, ((number, segment), D) in enumerate(zip(plan, walk, strict=True)):
            labels = self.labels(segment.clustering)
            i, j = self.random_pair(rng)
            y = 1 if labels[i] == labels[j] else -1
            yield Step(t, number, self.points[[i, j]] @ D.T, y, D, labels)
