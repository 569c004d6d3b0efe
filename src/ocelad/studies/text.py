"""Tracking of a metric on a stream of labelled texts: the paper's section on Twitter.

Each text becomes a row of TF-IDF weights of stems, and is compared with texts just before it: similar if they have
the same label. Every tracker predicts a comparison before it learns it; the AUC is that of adjacent texts, by the
probability that a tracker gives, or by the score d^2 / mu. The window, the last quarter of the stream, is placed
in the metric learned up to its midpoint: the mean since the window began, and of that the three dimensions which
best tell apart its texts seen so far (`evaluate.discriminant`). The paper's tracker is looked at as there: its
first dimensions, at the midpoint. Nothing after the midpoint enters, nor in LDA.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from ..data import LabelledTexts, TextStream
from ..evaluate import aligned_series, discriminant, knn_error
from ..protocols import Array, Integers
from .text_course import Course
from .text_options import TextStudy


@dataclass(frozen=True, eq=False)
class TextResults:
    """All that the study finds; nothing is drawn.

    ``words`` has the most frequent word of each stem, for people to read; ``embeddings`` are places of the
    window's texts; ``looks`` says how many texts had been seen each time the metric was looked at, ``relevance``
    is each stem's share of its diagonal then, ``maps`` its first two dimensions, each turned towards the one
    before.
    """

    study: TextStudy
    texts: LabelledTexts
    stems: list[str]
    words: list[str]
    window: slice
    unique: Integers  # texts of the window that are no repetition of another, counted from its start
    loo_knn_error: dict[str, dict[str, float]]
    auc: dict[str, float]
    embeddings: dict[str, Array]
    looks: Integers
    relevance: Array  # look, stem
    maps: Array  # look, dimension, stem
    leaning: Integers  # look, stem: in the texts of which label it has weighed most of late; -1: in none
    seconds: float

    @property
    def midpoint(self) -> int:
        """How many texts come before the middle of the window."""
        return (self.window.start + self.window.stop) // 2

    def times(self, looks: Any = slice(None)) -> Any:
        """When the metric was looked at."""
        return self.texts.times[self.looks[looks] - 1]

    def event(self) -> np.datetime64:
        """When the metric changed most from one twentieth of the stream to the next, after the first quarter."""
        span = max(1, len(self.looks) // 20)
        moved = np.abs(self.relevance[2 * span :] - self.relevance[: -2 * span]).sum(axis=1)
        first = max(0, len(self.looks) // 4 - span)
        return self.times()[first + int(moved[first:].argmax()) + span]

    def moments(self, event: np.datetime64 | None = None, name: str = "the event") -> dict[str, int]:
        """Looks worth a picture: early, before and after an event of that name, and at the end."""
        span, last = max(1, len(self.looks) // 20), len(self.looks) - 1
        at = int(np.searchsorted(self.times(), self.event() if event is None else event))
        at = min(max(at, 1), last)
        return {"early": span, f"before {name}": at - 1, f"after {name}": min(at + span, last), "end": last}

    @property
    def smooth_relevance(self) -> Array:
        """The median of ``relevance`` over the latest twentieth of the looks, nothing later: experts change places
        at each comparison, so that a single look is noisy."""
        span = max(1, len(self.looks) // 20)
        return np.array(
            [np.median(self.relevance[max(0, k - span) : k], axis=0) for k in range(1, len(self.looks) + 1)]
        )

    def telling(self, count: int) -> Integers:
        """The stems that matter, and whose weight changes: by their mean share times how far it ranges, smoothed
        and but for the lowest and the highest twentieth. Those that count most at the end come first."""
        later = self.smooth_relevance[len(self.looks) // 20 :]
        low, high = np.percentile(later, [5, 95], axis=0)
        chosen = np.argsort(-later.mean(axis=0) * (high - low), kind="stable")[:count]
        return chosen[np.argsort(-later[-1, chosen], kind="stable")]

    def summary(self) -> dict[str, Any]:
        """The figures, as summary.json has them; None for what too few texts say nothing about."""
        counts = np.bincount(self.texts.labels).tolist()
        return {
            "loo_knn_error": {name: _known(errors) for name, errors in self.loo_knn_error.items()},
            "auc": _known(self.auc),
            "rows": len(self.texts),
            "seconds": round(self.seconds, 2),
            "source": self.texts.source,
            "labels": dict(zip(self.texts.classes, counts, strict=True)),
            "features": len(self.stems),
            "window": {
                "rows": self.window.stop - self.window.start,
                "unique": len(self.unique),
                "start": str(self.texts.times[self.window.start]),
                "midpoint": str(self.texts.times[self.midpoint]),
            },
        }


def run_text(
    texts: LabelledTexts,
    study: TextStudy | None = None,
    progress: Callable[[int, int], object] | None = None,
    threads: int = 2,
    folder: Path | None = None,
) -> TextResults:
    """Run the study.

    Parameters
    ----------
    texts
        The stream.
    study
        The options.
    progress
        Told now and then how many comparisons, of how many, have been learned.
    threads
        How many trackers learn at a time.
    folder
        Where to keep what each tracker has come to, so that a study that was stopped can go on.

    Examples
    --------
    >>> from ocelad.data import DriftingTopics
    >>> texts = DriftingTopics(texts=300).draw(np.random.default_rng(0))
    >>> results = run_text(texts, TextStudy(features=40, rates=(1.0,)))
    >>> sorted(results.loo_knn_error), sorted(results.auc)
    (['lda', 'learned', 'learned_paper', 'pca', 'raw'], ['comid_1', 'learned', 'learned_paper', 'learned_rice'])
    """
    started, study = time.perf_counter(), study or TextStudy()
    many = len(texts)
    window = slice(many - round(study.window * many), many)
    _check(texts, study, window)
    front = TextStream(study.features).fit(texts.texts[: study.first])
    if front.width < study.dimensions:
        raise ValueError(f"texts must have at least {study.dimensions} different stems, got {front.width}")
    X = front.transform(texts.texts).toarray()
    course = Course(X, texts.labels, study, window)
    outcomes = course.run(study.trackers(X.shape[1]), threads, progress, folder)

    stems = [tuple(front.stems(text)) for text in texts.texts[window]]
    unique = np.array(sorted({each: k for k, each in reversed(list(enumerate(stems)))}.values()))
    many_unique = len(unique) > study.k
    places = _places(X, texts.labels, study, window, course.midpoint)
    seen = slice(window.start, course.midpoint)
    P = discriminant(outcomes["learned"].metric, X[seen], texts.labels[seen], study.dimensions)
    places |= {
        "learned": X[window] @ P.T,
        "learned_paper": _first(outcomes["learned_paper"].metric, X[window], study),
    }
    ours, labels = outcomes["learned"], texts.labels[window]
    order = ("learned", "learned_paper", "pca", "lda", "raw")
    return TextResults(
        study=study,
        texts=texts,
        stems=front.names,
        words=front.spelled(texts.texts),
        window=window,
        unique=unique,
        loo_knn_error={
            name: {
                "all": knn_error(places[name], labels, study.k),
                "unique": knn_error(places[name][unique], labels[unique], study.k) if many_unique else np.nan,
            }
            for name in order
        },
        auc={name: float(outcome.auc) for name, outcome in outcomes.items()},
        embeddings={name: places[name] for name in order[:-1]},
        looks=course.looks,
        relevance=ours.relevance,
        maps=np.array(aligned_series(ours.maps)),
        leaning=_leaning(X, texts.labels, course.looks),
        seconds=time.perf_counter() - started,
    )


def _known(figures: dict[str, float]) -> dict[str, float | None]:
    return {name: None if np.isnan(value) else value for name, value in figures.items()}


def _leaning(X: Array, labels: Integers, looks: Integers) -> Integers:
    """For each look and stem the label in whose texts, of the tenth of the stream before, it has most weight;
    -1 if none of them uses it."""
    span = max(1, len(X) // 10)
    leaning = np.zeros((len(looks), X.shape[1]), dtype=np.int64)
    for line, stop in zip(leaning, looks, strict=True):
        recent = slice(max(0, stop - span), stop)
        own = np.eye(labels.max() + 1)[labels[recent]]
        weight = own.T @ X[recent] / np.maximum(own.sum(axis=0), 1.0)[:, None]
        line[:] = np.where(weight.max(axis=0) > 0, weight.argmax(axis=0), -1)
    return leaning


def _check(texts: LabelledTexts, study: TextStudy, window: slice) -> None:
    where = f"{texts.source}: " if texts.source else ""
    if len(texts.classes) < 2:
        raise ValueError(f"{where}texts must have at least two labels, got {len(texts.classes)}")
    least = 4 * study.k
    if window.stop - window.start < least or window.start < least:
        raise ValueError(
            f"{where}texts must be at least {least} in and before the window, got {len(texts)} in all"
        )
    before = texts.labels[: (window.start + window.stop) // 2]
    if len(np.unique(before)) < 2:
        raise ValueError(f"{where}texts must have at least two labels before the middle of the window")


def _first(metric: Array, X: Array, study: TextStudy) -> Array:
    """The rows of X in the dimensions that count most in a metric."""
    squares, axes = np.linalg.eigh(metric)
    kept = slice(None, -study.dimensions - 1, -1)
    return X @ (axes[:, kept] * np.sqrt(np.maximum(squares[kept], 0.0)))


def _places(X: Array, labels: Integers, study: TextStudy, window: slice, midpoint: int) -> dict[str, Array]:
    """Where those without comparisons place the window's texts: PCA of the window, LDA of all the past."""
    pca = PCA(study.dimensions).fit(X[window])
    past = labels[:midpoint]
    lda = LinearDiscriminantAnalysis(n_components=min(study.dimensions, len(np.unique(past)) - 1))
    return {
        "pca": pca.transform(X[window]),
        "lda": lda.fit(X[:midpoint], past).transform(X[window]),
        "raw": X[window],
    }
