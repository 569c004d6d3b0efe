"""One trial of a study: a function of the study and of the trial's number, and of nothing else.

Methods learn all comparisons between two evaluations in one call. Nothing is evaluated twice: a method that places
the points as it did the last time has the same error and the same NMI.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from time import process_time
from typing import Any, Literal

import numpy as np
from scipy.linalg.lapack import dsyevr
from threadpoolctl import threadpool_limits

from ..baselines import Euclid, Oracle, Windowed
from ..baselines.streaming import Tracker
from ..data import Block, blocks
from ..evaluate import cluster_nmi, knn_error
from ..geometry import Mahalanobis
from ..protocols import Array, Integers
from ..tracker import MetricTracker
from ..tracker.vocabulary import MetricVocabulary
from .methods import make
from .synthetic import Study


@dataclass(frozen=True)
class Outcome:
    """What a trial has found: error and NMI of every method at every evaluation; and the CPU time it took.

    ``seconds`` are those of the stream and of evaluating, then of each method's learning.
    """

    trial: int
    measures: Array  # (method, evaluation, 2)
    seconds: Array


@dataclass
class _Entrant:
    """A method, in how many dimensions it is judged, and where it placed the points the last time."""

    tracker: Tracker
    dimensions: int
    placed: Array = field(default_factory=lambda: np.zeros(0))
    clustering: str = ""
    measures: tuple[float, float] = (np.nan, np.nan)

    def learn(self, block: Block) -> None:
        if isinstance(self.tracker, Windowed):
            self.tracker.partial_fit(block.pairs, block.y, block.labels)
        else:
            self.tracker.partial_fit(block.pairs, block.y)

    def place(self, points: Array, rotation: Array, clustering: Literal["A", "B"]) -> Array:
        """Where the method places the points, which have been turned. They come, and go, column by column."""
        tracker = self.tracker
        learned = tracker.fitted if isinstance(tracker, Windowed) else tracker
        if isinstance(learned, MetricVocabulary):
            return (_first(learned.get_metric(), self.dimensions) @ rotation @ points.T).T  # a few of n are cheap
        # To these a rotation is all the same, and without it nothing changes from one evaluation to the next.
        if isinstance(tracker, Oracle):
            tracker.dimensions = self.dimensions
            tracker.tell(np.eye(len(rotation)), clustering)
        if learned is None:  # not fitted yet: judged as Euclid, whose metric it has
            return Euclid().transform(points)
        if isinstance(tracker, (Euclid, Oracle)):
            return tracker.transform(points)
        return tracker.transform(points @ rotation.T)[:, : self.dimensions]

    def evaluate(self, Z: Array, clustering: str, labels: Integers, sample: Integers) -> tuple[float, float]:
        if self.clustering != clustering or not np.array_equal(Z, self.placed):
            self.placed, self.clustering = Z, clustering
            self.measures = knn_error(Z[sample], labels[sample]), cluster_nmi(Z, labels)
        return self.measures


def _first(metric: Mahalanobis, dimensions: int) -> Array:
    """The first of its components: the largest eigenvalues of the matrix, and no other, cost half of all."""
    s, V, found, _, failed = dsyevr(metric.M, range="I", il=metric.n - dimensions + 1, iu=metric.n)
    if failed or found < dimensions:
        return metric.components[:dimensions]
    return (V * np.sqrt(np.maximum(s[:dimensions], 0.0))).T[::-1] / metric.unit


class Trial:
    """A trial under way: iterate over it to run it, an evaluation at a time; what it has found is always there.

    >>> from ocelad.data import Segment
    >>> trial = Trial(Study(methods=("Euclid", "oracle"), segments=(Segment(98, "A", 0.0),)), 0)
    >>> [block.t for block in trial]
    [48, 97]
    >>> trial.measures[:, :, 0].round(3)
    array([[0.077, 0.077],
           [0.   , 0.   ]])
    """

    def __init__(self, study: Study, number: int) -> None:
        self.study, self.number, self.evaluated = study, number, 0
        self.measures = np.empty((len(study.methods), len(study.times), 2))
        self.seconds = np.zeros(2 + len(study.methods))
        self.levels: list[tuple[int, Any]] = []  # steps done, and the levels of the first method that has any

    def __iter__(self) -> Iterator[Block]:
        study, clock = self.study, process_time()
        data, sample, rng = study.world(self.number)
        entrants = [_Entrant(make(name, seed=self.number), len(study.shares)) for name in study.methods]
        leader = next((e.tracker for e in entrants if isinstance(e.tracker, MetricTracker)), None)
        points = np.asfortranarray(data.points)
        options = study.every, study.segments, study.pairs_per_step, study.label_noise
        for block in blocks(data, rng, *options):
            clock = self._charge(0, clock)
            for k, entrant in enumerate(entrants):
                entrant.learn(block)
                clock = self._charge(2 + k, clock)
            labels = data.labels(block.clustering)
            for k, entrant in enumerate(entrants):
                Z = entrant.place(points, block.rotation, block.clustering)
                if not np.isfinite(Z).all():
                    where = f"step {block.t} of trial {self.number}"
                    raise FloatingPointError(f"{study.methods[k]} is not finite at {where}")
                self.measures[k, self.evaluated] = entrant.evaluate(Z, block.clustering, labels, sample)
            self.evaluated += 1
            if leader is not None:
                self.levels.append((block.t + 1, leader.experts_))
            clock = self._charge(1, clock)
            yield block

    def _charge(self, account: int, since: float) -> float:
        now = process_time()
        self.seconds[account] += now - since
        return now

    @property
    def outcome(self) -> Outcome:
        """What has been found so far: of a trial of ``study.until(evaluated)``."""
        return Outcome(self.number, self.measures[:, : self.evaluated], self.seconds)


def run_trial(study: Study, number: int) -> Outcome:
    """Run one trial to its end."""
    with threadpool_limits(1):  # sums in one order, whatever else runs; and small matrices are faster so
        trial = Trial(study, number)
        for _ in trial:
            pass
    return trial.outcome
