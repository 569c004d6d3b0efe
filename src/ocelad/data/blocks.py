"""The stream of `DriftingClusters` many steps at a time, with the same numbers: what a study needs of it, no more.

All rotations of a block are solved for in one call, which takes most of the time that a step by itself would.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..learner import Array, Integers
from .clusters import SCENARIO, DriftingClusters, Segment
from .rotation import cayley, haar, random_skew


@dataclass(frozen=True)
class Block:
    """The comparisons of some steps, and the world at the last of them, which is step t.

    ``labels`` are the clusters of each pair's points.
    """

    t: int
    segment: int
    clustering: Literal["A", "B"]
    pairs: Array
    y: Integers
    labels: Integers
    rotation: Array


def blocks(
    data: DriftingClusters,
    rng: np.random.Generator,
    steps: int,
    segments: tuple[Segment, ...] = SCENARIO,
    *,
    pairs_per_step: int = 1,
    label_noise: float = 0.0,
) -> Iterator[Block]:
    """Blocks of so many steps each; what is left over at the end is not drawn.

    A label is turned with probability ``label_noise``. With the defaults the comparisons are those of ``stream``.

    >>> data = DriftingClusters.draw(np.random.default_rng(0), points=100)
    >>> [block.pairs.shape for block in blocks(data, np.random.default_rng(1), 40, (Segment(100, "A", 0.1),))]
    [(40, 2, 25), (40, 2, 25)]
    """
    plan = [(number, segment) for number, segment in enumerate(segments) for _ in range(segment.steps)]
    D = haar(data.points.shape[1], rng)
    for first in range(0, len(plan) - steps + 1, steps):
        part = plan[first : first + steps]
        chosen, y, classes, skew = [], [], [], []
        for _, segment in part:
            labels = data.labels(segment.clustering)
            for _ in range(pairs_per_step):
                i, j = data.random_pair(rng)
                turned = label_noise > 0 and rng.random() < label_noise
                chosen.append((i, j))
                classes.append((labels[i], labels[j]))
                y.append(1 if (labels[i] == labels[j]) != turned else -1)
            if segment.drift > 0:
                skew.append(random_skew(len(D), segment.drift, rng))
        turns = iter(cayley(np.array(skew)) if skew else ())
        pairs = np.empty((len(chosen), 2, len(D)))
        for step, (_, segment) in enumerate(part):
            now = D
            for k in range(step * pairs_per_step, (step + 1) * pairs_per_step):
                pairs[k] = data.points[list(chosen[k])] @ D.T
            if segment.drift > 0:
                D = next(turns) @ D
        number, segment = part[-1]
        yield Block(first + steps - 1, number, segment.clustering, pairs, np.array(y), np.array(classes), now)
