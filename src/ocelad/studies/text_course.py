"""The comparisons of a stream of texts, and how each tracker goes through them: several at a time, each once.

What a tracker has come to is kept in a folder, if there is one: a study that was stopped does not repeat it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Lock
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from ..data import adjacent
from ..files import atomic_write
from ..protocols import Array, Integers
from ..tracker import MetricTracker
from ..watch.prequential import progressive
from ..watch.scores import similarity
from .text_options import TextStudy

MOMENTS = 16  # of the first half of the window, whose metrics are averaged
BLOCK = 512  # comparisons in one go, dense


@dataclass(frozen=True, eq=False)
class Outcome:
    """How a tracker has done: its AUC, its metric in the window's first half, and at each look, if watched."""

    auc: Array
    metric: Array  # M, its mean over the first half of the window; of the paper's tracker that at the midpoint
    relevance: Array  # look, stem
    maps: Array  # look, dimension, stem


def _outcome(path: Path) -> Outcome | None:
    """The outcome in a file; None if it is not there, or damaged, so that it must be found again."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as found:
            return Outcome(**{field: found[field] for field in found.files})
    except (OSError, ValueError, TypeError, EOFError, BadZipFile):
        return None


class Stopped(Exception):
    """Another tracker has failed, or Ctrl-C was pressed."""


class Course:
    """What every tracker goes through: rows, their labels, and which of them are compared."""

    def __init__(self, X: Array, labels: Integers, study: TextStudy, window: slice) -> None:
        self.X, self.labels, self.study = X, labels, study
        self.start, self.midpoint = window.start, (window.start + window.stop) // 2
        looks = np.unique(np.linspace(0, len(X), study.looks + 1).astype(np.int64))
        self.looks = looks[looks > 1]  # after the first comparison
        half = np.unique(np.linspace(self.start, self.midpoint, MOMENTS + 1).astype(np.int64))[1:]
        self.averaged = {"learned": half.tolist(), "learned_paper": [self.midpoint]}
        self.pairs = {"learned_paper": adjacent(labels)}
        self._others = adjacent(labels, study.back)
        self._stop, self._lock, self._done = Event(), Lock(), 0

    def run(
        self,
        trackers: Mapping[str, Callable[[], MetricTracker]],
        threads: int,
        progress: Callable[[int, int], object] | None = None,
        folder: Path | None = None,
    ) -> dict[str, Outcome]:
        """The outcome of each tracker; ``progress`` is told how many comparisons, of how many, are learned."""
        total = sum(len(self.compared(name)[0]) for name in trackers)
        with ThreadPoolExecutor(threads) as pool:
            futures = {name: pool.submit(self._kept, name, make, folder) for name, make in trackers.items()}
            try:
                running = True
                while running:
                    done, left = wait(futures.values(), timeout=0.25, return_when=FIRST_EXCEPTION)
                    running = bool(left) and not any(future.exception() for future in done)
                    if progress is not None:
                        progress(self._done, total)
            finally:
                self._stop.set()
                pool.shutdown(cancel_futures=True)
        failed = [future.exception() for future in futures.values() if not future.cancelled()]
        for error in failed:
            if error is not None and not isinstance(error, Stopped):
                raise error  # the first cause, not those who were stopped because of it
        return {name: future.result() for name, future in futures.items()}

    def compared(self, name: str) -> tuple[Integers, Integers, NDArray[np.bool_]]:
        """Indices of the texts that a tracker compares, and whether they are adjacent."""
        return self.pairs.get(name, self._others)

    def _kept(self, name: str, make: Callable[[], MetricTracker], folder: Path | None) -> Outcome:
        """The outcome from the folder, or a new one, which is put there."""
        if folder is None:
            return self._follow(name, make())
        content = hashlib.sha256(f"{name} {self.study} {self.start} {self.midpoint} {make()!r}".encode())
        content.update(self.X.tobytes() + self.labels.tobytes())
        path = folder / f"{name}-{content.hexdigest()[:16]}.npz"
        found = _outcome(path)
        if found is not None:
            self._count(len(self.compared(name)[0]))
            return found
        outcome = self._follow(name, make())
        folder.mkdir(parents=True, exist_ok=True)
        with atomic_write(path) as file:
            np.savez(file, **vars(outcome))
        return outcome

    def _follow(self, name: str, tracker: MetricTracker) -> Outcome:
        later, earlier, adjacent = self.compared(name)
        y = np.where(self.labels[later] == self.labels[earlier], 1, -1)
        looks = set(self.looks.tolist()) if name == "learned" else set()
        half = set(self.averaged.get(name, []))
        scores, metric, relevance, maps = [], np.zeros((self.X.shape[1],) * 2), [], []
        texts = np.array(sorted(looks | half | {len(self.X)}))
        seen = dict(zip(np.searchsorted(later, texts).tolist(), texts.tolist(), strict=True))
        done = 0
        for stop in sorted({*seen, *range(BLOCK, len(y), BLOCK)}):
            if self._stop.is_set():
                raise Stopped
            part = slice(done, stop)
            pairs = np.stack([self.X[later[part]], self.X[earlier[part]]], axis=1)
            trace = progressive(tracker, pairs, y[part])
            scores.append(similarity(trace)[adjacent[part]])
            self._count(stop - done)
            done, now = stop, seen.get(stop)
            if now in half:
                metric += tracker.get_mahalanobis_matrix() / len(half)
            if now in looks:
                diagonal = tracker.get_mahalanobis_matrix().diagonal()
                relevance.append(diagonal / (diagonal.sum() or 1.0))
                maps.append(tracker.components_[:2])
        judged = y[adjacent]
        auc = roc_auc_score(judged, np.concatenate(scores)) if len(np.unique(judged)) > 1 else np.nan
        return Outcome(np.array(auc), metric, np.array(relevance), np.array(maps))

    def _count(self, more: int) -> None:
        with self._lock:
            self._done += more
