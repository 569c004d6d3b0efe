"""What a study has found, as numbers: a row per evaluation, and a line per method and segment.

Recovery: how many steps after a change of clustering a trial's error is at most ``RECOVERED`` for two evaluations
in a row, counted to the first of them; never, if that does not come about before the segment ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from ..files import write_csv
from ..protocols import Array
from .synthetic import Study
from .trial import Outcome

RECOVERED = 0.05
GOOD = 0.8
COLUMNS = ("method", "trial", "t", "segment", "knn_error", "nmi")


@dataclass(frozen=True)
class Results:
    """All trials of a study at once."""

    study: Study
    trials: tuple[int, ...]
    error: Array  # (trial, method, evaluation)
    nmi: Array
    seconds: Array  # (trial, account), see Outcome

    @classmethod
    def of(cls, study: Study, outcomes: Iterable[Outcome]) -> Results:
        """Gather the outcomes."""
        found = list(outcomes)
        if not found:
            raise ValueError("there is no finished trial yet")
        measures = np.array([outcome.measures for outcome in found])
        seconds = np.array([outcome.seconds for outcome in found])
        return cls(study, tuple(o.trial for o in found), measures[..., 0], measures[..., 1], seconds)

    @property
    def good(self) -> Array:
        """1 where k-means has found the clusters, else 0."""
        return (self.nmi > GOOD).astype(np.float64)


@dataclass(frozen=True)
class Summary:
    """A method in a segment, numbered from 0, or in all of them: means over time and trials, with standard errors.

    ``recovery`` is the median over trials in steps, infinite if most never recover, nan where no change begins the
    segment; ``recovered`` is the share of trials that do.
    """

    method: str
    segment: str
    trials: int
    knn_error: float
    knn_error_se: float
    p_nmi: float
    p_nmi_se: float
    recovery: float
    recovered: float


def summarise(results: Results, threshold: float = RECOVERED) -> list[Summary]:
    """A line per method and segment, and one per method for all segments."""
    study, lines = results.study, []
    at = np.array(study.evaluated_segments)
    for k, method in enumerate(study.methods):
        for segment in (*range(len(study.segments)), None):
            where = np.ones(len(at), dtype=bool) if segment is None else at == segment
            if not where.any():
                continue
            recovered = np.nan, np.nan
            if segment in study.jumps:
                steps = recovery(results, k, study.jumps.index(segment), threshold)
                recovered = float(np.median(steps)), float(np.isfinite(steps).mean())
            error, good = (mean(values[:, k, where].mean(axis=1)) for values in (results.error, results.good))
            name = "all" if segment is None else str(segment)
            lines.append(Summary(method, name, len(results.trials), *error, *good, *recovered))
    return lines


def mean(values: Array) -> tuple[float, float]:
    """The mean over trials and its standard error, which one trial does not tell.

    >>> mean(np.array([1.0, 3.0]))
    (2.0, 1.0)
    """
    error = float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")
    return float(values.mean()), error


def spelled(centre: float, error: float, form: str) -> str:
    """A mean with its standard error, if there is one.

    >>> spelled(0.5, 0.012, ".2f"), spelled(0.5, float("nan"), "+.1f")
    ('0.50 ± 0.01', '+0.5')
    """
    return f"{centre:{form}}" + ("" if np.isnan(error) else f" ± {error:{form.lstrip('+')}}")


def recovery(results: Results, method: int, jump: int, threshold: float = RECOVERED) -> Array:
    """For each trial, the steps from the change of that number until the method has recovered; inf if never."""
    study = results.study
    segment = study.jumps[jump]
    where = np.flatnonzero(np.array(study.evaluated_segments) == segment)
    low = results.error[:, method, where] <= threshold
    twice = low[:, :-1] & low[:, 1:]
    steps = np.array(study.times)[where] + 1 - study.starts[segment]
    first = twice.argmax(axis=1) if twice.shape[1] else np.zeros(len(low), dtype=np.int64)
    return np.where(twice.any(axis=1), steps[first], np.inf)


def write_table(path: Path, study: Study, outcomes: Iterable[Outcome]) -> None:
    """Every evaluation, trial by trial."""
    where = list(zip(study.times, study.evaluated_segments, strict=True))

    def rows() -> Iterator[Sequence[Any]]:
        for outcome in outcomes:
            for name, measures in zip(study.methods, outcome.measures.tolist(), strict=True):
                for (t, segment), (error, nmi) in zip(where, measures, strict=True):
                    yield name, outcome.trial, t, segment, error, nmi

    write_csv(path, COLUMNS, rows())


def write_summary(path: Path, lines: Iterable[Summary]) -> None:
    """The lines of `summarise`; a field is empty where there is nothing to say."""
    rows = (["" if value != value else value for value in astuple(line)] for line in lines)
    write_csv(path, [field.name for field in fields(Summary)], rows)
