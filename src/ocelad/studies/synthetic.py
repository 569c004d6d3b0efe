"""Tracking of a changing metric: the paper's synthetic experiment, one trial at a time.

Every method learns the same comparisons. Every 49 steps (a number that keeps away from powers of two) the points
are placed in the metric's first three dimensions, and the leave-one-out 5-NN error of 300 of them and the NMI of
k-means on all of them are taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..baselines import Euclid, comid
from ..baselines.streaming import Tracker
from ..data import SCENARIO, DriftingClusters, Segment, Step
from ..evaluate import cluster_nmi, knn_error
from ..protocols import Array
from ..tracker import MetricTracker

EVERY = 49


METHODS: Mapping[str, Callable[[], Tracker]] = {
    "ocelad": MetricTracker,
    "paper's setting": lambda: MetricTracker.paper(step=8.0, strength=0.01),
    "COMID, high rate": lambda: comid(step=1.0),
    "COMID, low rate": lambda: comid(step=0.25),
    "Euclid": Euclid,
}


@dataclass(frozen=True)
class Record:
    """How a method stood after step t."""

    trial: int
    method: str
    t: int
    segment: int
    knn_error: float
    nmi: float


@dataclass
class Trial:
    """One trial under way: iterate over it to run it; what it has found so far is always there.

    >>> short = (Segment(98, "A", 0.0),)
    >>> trial = Trial(seed=0, methods={"Euclid": Euclid}, segments=short)
    >>> steps = sum(1 for _ in trial)
    >>> steps, [record.t for record in trial.records]
    (98, [48, 97])
    """

    seed: int
    methods: Mapping[str, Callable[[], Tracker]] = field(default_factory=lambda: METHODS)
    segments: tuple[Segment, ...] = SCENARIO
    records: list[Record] = field(default_factory=list)
    levels: list[tuple[int, Any]] = field(default_factory=list)  # of the first method that has any

    def __len__(self) -> int:
        return sum(segment.steps for segment in self.segments)

    def __iter__(self) -> Iterator[Step]:
        rng = np.random.default_rng([2016, self.seed])
        data = DriftingClusters.draw(rng)
        sample = rng.choice(len(data.points), size=300, replace=False)
        trackers = {name: make() for name, make in self.methods.items()}
        for step in data.stream(rng, self.segments):
            for tracker in trackers.values():
                tracker.partial_fit(step.pair[None], [step.y])
            if (step.t + 1) % EVERY == 0:
                points = data.points @ step.rotation.T
                for name, tracker in trackers.items():
                    self.records.append(self._evaluate(name, tracker, step, points, sample))
                shown = next((t.levels_ for t in trackers.values() if isinstance(t, MetricTracker)), None)
                self.levels.append((step.t, shown))
            yield step

    def _evaluate(self, name: str, tracker: Tracker, step: Step, points: Array, sample: Any) -> Record:
        # Euclid has no first three dimensions: it is judged in all of them.
        Z = tracker.transform(points)[:, : None if isinstance(tracker, Euclid) else 3]
        error = knn_error(Z[sample], step.labels[sample])
        return Record(self.seed, name, step.t, step.segment, error, cluster_nmi(Z, step.labels))


@dataclass(frozen=True)
class Summary:
    """A method's means over the trials: k-NN error per segment and in all, its standard error, P(NMI > 0.8)."""

    method: str
    trials: int
    segments: tuple[float, ...]
    error: float
    standard_error: float
    p_nmi: float


def summary(records: Iterable[Record]) -> list[Summary]:
    """One line per method, in the order in which they appear."""
    records = list(records)
    lines = []
    for method in dict.fromkeys(record.method for record in records):
        own = [record for record in records if record.method == method]
        trials = [
            np.mean([record.knn_error for record in own if record.trial == trial])
            for trial in dict.fromkeys(record.trial for record in own)
        ]
        lines.append(
            Summary(
                method,
                len(trials),
                tuple(
                    float(np.mean([record.knn_error for record in own if record.segment == segment]))
                    for segment in dict.fromkeys(record.segment for record in own)
                ),
                float(np.mean(trials)),
                float(np.std(trials, ddof=1) / np.sqrt(len(trials))) if len(trials) > 1 else float("nan"),
                float(np.mean([record.nmi > 0.8 for record in own])),
            )
        )
    return lines
