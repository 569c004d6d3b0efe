"""Comparators for the synthetic stream: the true metric, which moves with the data, and the best constant one.

The true metric is the best for the clustering in force, among those that see only its own three dimensions: it
minimises l or f over many random pairs, once, in the data's own coordinates, and then rotates with the data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from ..data import DriftingClusters, Segment, blocks
from ..evaluate import Metrics, Problem, best_constant, dyadic_intervals
from ..protocols import Array, Integers
from .synthetic import Study

PAIRS = 4000
"""How many random pairs are drawn to stand for all of them."""

LARGEST, THRESHOLD = 200.0, 200.0
"""Bounds of the domain: no solution on the synthetic stream comes near them."""

Progress = Callable[[Iterable[int], str], Iterable[int]]


@dataclass(frozen=True, eq=False)
class World:
    """A stream, in full: differences, labels, rotations, and the clustering in force at each step."""

    data: DriftingClusters
    u: Array
    y: Array
    rotations: Array
    clusterings: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.y)

    @classmethod
    def draw(cls, seed: int, segments: tuple[Segment, ...]) -> World:
        """The same stream as the trial of that seed in the synthetic study."""
        data, _, rng = Study().world(seed)
        return cls.of(data, rng, segments)

    @classmethod
    def of(cls, data: DriftingClusters, rng: np.random.Generator, segments: tuple[Segment, ...]) -> World:
        """A stream of comparisons of these points."""
        clusterings = tuple(segment.clustering for segment in segments for _ in range(segment.steps))
        (all_steps,) = blocks(data, rng, len(clusterings), segments)
        u = all_steps.pairs[:, 0] - all_steps.pairs[:, 1]
        return cls(data, u, all_steps.y.astype(np.float64), all_steps.rotations, clusterings)


@dataclass(frozen=True, eq=False)
class Comparator:
    """What a sequence suffers in each step, by loss and by penalty, how far it moves, and how large it gets."""

    losses: Array
    penalties: Array
    moves: Array
    largest: float
    threshold: float


class Truths:
    """The true metric of each step, by l, or by f = l + strength * trace M; each is found once."""

    def __init__(self, world: World, seed: int) -> None:
        self.world, self.seed = world, seed
        self._fits: dict[float, dict[str, tuple[Array, float]]] = {}

    def __call__(self, strength: float, regularized: bool) -> Comparator:
        world, key = self.world, strength if regularized else 0.0
        fits = self._fits[key] = self._fits.get(key) or self._fit(key)
        own, mu = (np.array(part) for part in zip(*map(fits.__getitem__, world.clusterings), strict=True))
        M = world.rotations @ own @ world.rotations.swapaxes(1, 2)
        losses = np.maximum(0.0, 1.0 - world.y * (mu - np.einsum("ti,tij,tj->t", world.u, M, world.u)))
        penalties = strength * np.trace(M, axis1=1, axis2=2)
        moves = np.append(np.hypot(np.linalg.norm(np.diff(M, axis=0), axis=(1, 2)), np.diff(mu)), 0.0)
        largest = float(np.linalg.eigvalsh([own for own, _ in fits.values()]).max())
        return Comparator(losses, penalties, moves, largest, max(mu for _, mu in fits.values()))

    def _fit(self, strength: float) -> dict[str, tuple[Array, float]]:
        rng, data, n = np.random.default_rng([2017, self.seed]), self.world.data, self.world.u.shape[1]
        first, other = rng.integers(len(data.points), size=(2, PAIRS))
        domain, fits = Metrics(3, LARGEST, THRESHOLD, strength), {}
        for clustering, labels, where in (("A", data.A, slice(0, 3)), ("B", data.B, slice(3, 6))):
            u = (data.points[first] - data.points[other])[:, where]
            y = np.where(labels[first] == labels[other], 1.0, -1.0)
            w = best_constant(Problem.comparisons(u, y, domain), tolerance=1e-3).w
            M = np.zeros((n, n))
            M[where, where] = domain.matrix(w)
            fits[clustering] = M, float(w[-1])
        return fits


@dataclass(frozen=True, eq=False)
class Constants:
    """The best constant metric of each dyadic interval of one length: certified lower bounds of its total f."""

    length: int
    first: Integers
    values: Array
    largest: float
    threshold: float


def best_constants(world: World, strength: float, shortest: int, progress: Progress) -> Iterator[Constants]:
    """A length at a time, from ``shortest`` on."""
    domain = Metrics(world.u.shape[1], LARGEST, THRESHOLD, strength)
    problem = Problem.comparisons(world.u, world.y, domain)
    for size, first in dyadic_intervals(len(world)):
        if size < shortest:
            continue
        name = f"best constant metric of {size} steps"
        found = [best_constant(problem[q : q + size], tolerance=1e-3) for q in progress(first.tolist(), name)]
        w = np.array([solution.w for solution in found])
        values = np.array([solution.value - solution.gap for solution in found])
        largest = float(np.linalg.eigvalsh(domain.matrix(w)).max())
        yield Constants(size, first, values, largest, float(w[:, -1].max()))
