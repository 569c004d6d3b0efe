"""One trial of a study: a function of the study and of the trial's number, and of nothing else.

Methods learn all comparisons between two evaluations in one call. Nothing is evaluated twice: a method that places
the points as it did the last time has the same error and the same NMI.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from time import process_time
from typing import Literal

import numpy as np
from scipy.linalg.lapack import dsyevr
from threadpoolctl import threadpool_limits

from ..baselines import Euclid, Oracle, Windowed
from ..baselines.streaming import Tracker
from ..data import Block, blocks
from ..evaluate import cluster_nmi, knn_error
from ..geometry import Mahalanobis
from ..protocols import Array, Integers
from ..tracker.vocabulary import MetricVocabulary
from .methods import make
from .options import Study


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
        if (
            isinstance(tracker, Windowed) and learned is None
        ):  # not fitted yet: judged as Euclid, whose metric it has
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


def run_trial(study: Study, trial: int) -> Outcome:
    """Run one trial. Trials of the default scenario go through the same worlds as those of `Trial`.

    >>> from ocelad.data import Segment
    >>> short = Study(methods=("Euclid", "oracle"), segments=(Segment(98, "A", 0.0),))
    >>> run_trial(short, 0).measures[:, :, 0].round(3)
    array([[0.077, 0.077],
           [0.   , 0.   ]])
    """
    with threadpool_limits(1):  # sums in one order, whatever else runs; and small matrices are faster so
        return _run_trial(study, trial)


def _run_trial(study: Study, trial: int) -> Outcome:
    data, rng = study.world(trial)
    sample, points = rng.choice(study.points, size=study.sample, replace=False), np.asfortranarray(data.points)
    entrants = [_Entrant(make(name, seed=trial), len(study.shares)) for name in study.methods]
    measures = np.empty((len(entrants), len(study.times), 2))
    seconds, clock = np.zeros(2 + len(entrants)), process_time()
    stream = blocks(
        data,
        rng,
        study.every,
        study.segments,
        pairs_per_step=study.pairs_per_step,
        label_noise=study.label_noise,
    )
    for evaluation, block in enumerate(stream):
        clock = _charge(seconds, 0, clock)
        for k, entrant in enumerate(entrants):
            entrant.learn(block)
            clock = _charge(seconds, 2 + k, clock)
        labels = data.labels(block.clustering)
        for k, entrant in enumerate(entrants):
            Z = entrant.place(points, block.rotation, block.clustering)
            if not np.isfinite(Z).all():
                raise FloatingPointError(f"{study.methods[k]} is not finite at step {block.t} of trial {trial}")
            measures[k, evaluation] = entrant.evaluate(Z, block.clustering, labels, sample)
        clock = _charge(seconds, 1, clock)
    return Outcome(trial, measures, seconds)


def _charge(seconds: Array, account: int, since: float) -> float:
    now = process_time()
    seconds[account] += now - since
    return now
