"""The stream of `DriftingClusters` many steps at a time, with the same numbers: what a study needs of it, no more.

All rotations of a block are solved for in one call, and all its points turned in another: by themselves they would
take most of the time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..protocols import Array, Integers
from .clusters import SCENARIO, DriftingClusters, Segment
from .rotation import cayley, haar, skew


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
    gauss, rotations = np.empty((2, steps, *D.shape))
    for first in range(0, len(plan) - steps + 1, steps):
        part = plan[first : first + steps]
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
        now, places = rotations[-1].copy(), sides.reshape(-1, 2, len(D))
        yield Block(first + steps - 1, number, segment.clustering, places, y, classes, now)
