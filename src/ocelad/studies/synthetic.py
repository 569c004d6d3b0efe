"""The paper's synthetic experiment: a scenario and the methods that go through it, all in one frozen object."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from ..data import SCENARIO, DriftingClusters, Segment
from ..protocols import Integers
from .methods import DEFAULT, make


@dataclass(frozen=True)
class Study:
    """The paper's synthetic experiment, scenario and methods; the defaults are scenario S with the main methods.

    Parameters
    ----------
    methods
        Names from `METHODS`, each with ``@step`` if its rate is chosen.
    segments
        How long, which clustering, and how far the rotation moves per step.
    points, dimension, shares
        How many points, in how many dimensions, and the share of each cluster.
    separation, noise
        The distance of two blobs in standard deviations, and the standard deviation of the other dimensions.
    label_noise, pairs_per_step
        The probability that a label is turned; how many comparisons a time step brings.
    every, sample
        Steps between two evaluations (keep away from powers of two), and on how many points the error is taken.

    Examples
    --------
    >>> Study(methods=("Euclid",)).times[:3]
    (48, 97, 146)
    """

    methods: tuple[str, ...] = DEFAULT
    segments: tuple[Segment, ...] = SCENARIO
    points: int = 2000
    dimension: int = 25
    shares: tuple[float, ...] = (0.5, 0.3, 0.2)
    separation: float = 6.0
    noise: float = 2.0
    label_noise: float = 0.0
    pairs_per_step: int = 1
    every: int = 49
    sample: int = 300

    def __post_init__(self) -> None:
        if not self.methods:
            raise ValueError("methods must be different names, at least one, got none")
        for name in self.methods:
            if self.methods.count(name) > 1:
                raise ValueError(f"methods must be different names, got {name!r} more than once")
            make(name)
        for number, segment in enumerate(self.segments):
            if segment.steps < 1 or segment.clustering not in ("A", "B") or not 0 <= segment.drift <= 10:
                got = f"{segment.steps}:{segment.clustering}:{segment.drift:g}"
                raise ValueError(f"segment {number} needs steps >= 1, A or B, a drift from 0 to 10, got {got}")
        if self.dimension < 2 * len(self.shares) or len(self.shares) < 2:
            raise ValueError(
                f"dimension must be at least twice the number of shares, which is 2 or more, got {self.dimension} "
                f"for {len(self.shares)}"
            )
        if not min(self.shares) > 0 or not abs(sum(self.shares) - 1) <= 1e-9:
            raise ValueError(f"shares must be positive and add up to 1, got {self.shares}")
        if not (0 < self.separation < 1e6 and 0 <= self.noise < 1e6):
            raise ValueError(f"separation must be > 0 and noise >= 0, got {self.separation} and {self.noise}")
        if not 0 <= self.label_noise <= 0.5:
            raise ValueError(f"label_noise must lie in [0, 0.5], got {self.label_noise}")
        if self.pairs_per_step < 1:
            raise ValueError(f"pairs_per_step must be at least 1, got {self.pairs_per_step}")
        if not 10 <= self.sample <= self.points:
            raise ValueError(f"sample must be from 10 to points, got {self.sample} of {self.points} points")
        if not 1 <= self.every <= self.steps:
            raise ValueError(
                f"every must be from 1 to the steps of all segments, got {self.every} of {self.steps}"
            )

    @property
    def steps(self) -> int:
        """How long the stream is."""
        return sum(segment.steps for segment in self.segments)

    @property
    def times(self) -> tuple[int, ...]:
        """After which steps methods are evaluated."""
        return tuple(range(self.every - 1, self.steps, self.every))

    @property
    def starts(self) -> tuple[int, ...]:
        """The first step of each segment."""
        return (0, *accumulate(segment.steps for segment in self.segments))[:-1]

    @property
    def evaluated_segments(self) -> tuple[int, ...]:
        """The segment of each evaluation."""
        return tuple(sum(start <= t for start in self.starts) - 1 for t in self.times)

    @property
    def jumps(self) -> tuple[int, ...]:
        """Segments that begin with a change of clustering."""
        return tuple(k for k, (a, b) in enumerate(pairwise(self.segments), 1) if a.clustering != b.clustering)

    def world(self, trial: int) -> tuple[DriftingClusters, Integers, np.random.Generator]:
        """The data set of a trial, the points on which errors are taken, and the generator of what follows."""
        rng = np.random.default_rng([2016, trial])
        data = DriftingClusters.draw(rng, self.points, self.dimension, self.separation, self.noise, self.shares)
        return data, rng.choice(self.points, size=self.sample, replace=False), rng

    def until(self, evaluation: int) -> Study:
        """The same study, cut after a number of evaluations."""
        left = [evaluation * self.every - start for start in self.starts]
        cut = [replace(s, steps=min(s.steps, steps)) for s, steps in zip(self.segments, left, strict=True)]
        return replace(self, segments=tuple(segment for segment in cut if segment.steps > 0))

    def to_json(self) -> dict[str, Any]:
        """Plain values, for a file."""
        plain = asdict(self)
        plain["segments"] = [[s.steps, s.clustering, s.drift] for s in self.segments]
        return {**plain, "methods": list(self.methods), "shares": list(self.shares)}

    @classmethod
    def from_json(cls, plain: dict[str, Any]) -> Study:
        """The study of such values."""
        segments = tuple(Segment(int(n), c, float(drift)) for n, c, drift in plain["segments"])
        tuples = {"segments": segments, "methods": tuple(plain["methods"]), "shares": tuple(plain["shares"])}
        return cls(**{**plain, **tuples})


def made_with() -> dict[str, str]:
    """The versions on which every bit of a result depends."""
    return {name: version(name) for name in ("ocelad", "numpy", "scipy", "scikit-learn", "numba")}
