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

from ..protocols import Array, Integers
from .rotation import cayley, haar, skew


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
    labels: Integers


@dataclass(frozen=True, eq=False)
class DriftingClusters:
    """A data set with two clusterings, and the stream of comparisons drawn from it.

    >>> data = DriftingClusters.draw(np.random.default_rng(0), points=100)
    >>> step = next(data.stream(np.random.default_rng(1)))
    >>> step.pair.shape, step.y in (-1, 1)
    ((2, 25), True)
    """

    points: Array
    A: Integers
    B: Integers

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

    def labels(self, clustering: Literal["A", "B"]) -> Integers:
        return self.A if clustering == "A" else self.B

    def random_pair(self, rng: np.random.Generator) -> tuple[int, int]:
        """The numbers of two different points."""
        i = int(rng.integers(len(self.points)))
        j = int(rng.integers(len(self.points) - 1))
        return i, j + (j >= i)

    def stream(self, rng: np.random.Generator, segments: tuple[Segment, ...] = SCENARIO) -> Iterator[Step]:
        """One uniformly random pair per time step, as the clustering in force compares it."""
        for block in blocks(self, rng, 1, segments):
            labels = self.labels(block.clustering)
            yield Step(block.t, block.segment, block.pairs[0], int(block.y[0]), block.rotation, labels)


@dataclass(frozen=True)
class Block:
    """The comparisons of some steps, the rotation at each of them, and the world at the last, which is step t.

    ``labels`` are the clusters of each pair's points.
    """

    t: int
    segment: int
    clustering: Literal["A", "B"]
    pairs: Array
    y: Integers
    labels: Integers
    rotations: Array

    @property
    def rotation(self) -> Array:
        return self.rotations[-1]


def blocks(
    data: DriftingClusters,
    rng: np.random.Generator,
    steps: int,
    segments: tuple[Segment, ...] = SCENARIO,
    pairs_per_step: int = 1,
    label_noise: float = 0.0,
) -> Iterator[Block]:
    """The stream in blocks of ``steps`` time steps; what is left over at the end is not drawn.

    All rotations of a block are solved for in one call, and all its points turned in another: by themselves they
    would take most of the time. A label is turned with probability ``label_noise``.

    >>> data = DriftingClusters.draw(np.random.default_rng(0), points=100)
    >>> [block.pairs.shape for block in blocks(data, np.random.default_rng(1), 40, (Segment(100, "A", 0.1),))]
    [(40, 2, 25), (40, 2, 25)]
    """
    plan = [(number, segment) for number, segment in enumerate(segments) for _ in range(segment.steps)]
    D = haar(data.points.shape[1], rng)
    gauss = np.empty((steps, *D.shape))
    for first in range(0, len(plan) - steps + 1, steps):
        part, rotations = plan[first : first + steps], np.empty(gauss.shape)
        chosen, turned = [], []
        drifts: list[float] = []
        for _, segment in part:
            for _ in range(pairs_per_step):
                chosen.append(data.random_pair(rng))
                turned.append(label_noise > 0 and rng.random() < label_noise)
            if segment.drift > 0:
                rng.standard_normal(out=gauss[len(drifts)])
                drifts.append(segment.drift)
        turns = iter(cayley(skew(gauss[: len(drifts)], drifts)) if drifts else ())
        for step, (_, segment) in enumerate(part):
            rotations[step] = D
            D = next(turns) @ D if segment.drift > 0 else D
        pairs = np.array(chosen)
        sides = data.points[pairs].reshape(steps, pairs_per_step, 2, -1) @ rotations[:, None].swapaxes(2, 3)
        by_A = np.repeat([segment.clustering == "A" for _, segment in part], pairs_per_step)
        classes = np.where(by_A[:, None], data.A[pairs], data.B[pairs])
        y = np.where((classes[:, 0] == classes[:, 1]) != np.array(turned), 1, -1)
        number, segment = part[-1]
        places = sides.reshape(-1, 2, len(D))
        yield Block(first + steps - 1, number, segment.clustering, places, y, classes, rotations)
