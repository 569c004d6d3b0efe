"""Rates by cross-validation, as the paper sets them: on streams of their own, before the experiment.

RICE's step is chosen where nothing drifts; COMID's low rate too, its high rate under moderate drift. To choose is
to run a small study whose methods are the candidates, so that it is stored and resumed like any other.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..data import SCENARIO, Segment
from ..files import write_text
from .methods import DEFAULT, plain
from .synthetic import Study
from .tables import Results, mean

STEPS = 2000
FIRST_TRIAL = 1_000_000  # none that a study will come to


@dataclass(frozen=True)
class Tuning:
    """Which rates to try, and how fast the stream drifts on which they are tried."""

    grid: tuple[float, ...]
    drift: float

    def study(self, base: Study, method: str) -> Study:
        """The candidates on a stream of one segment, with all other options of a study."""
        segments = (Segment(STEPS, "A", self.drift),)
        return replace(base, methods=tuple(f"{method}@{step:g}" for step in self.grid), segments=segments)


MODERATE = SCENARIO[1].drift
_FINE = (0.03125, 0.0625, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0)
_COARSE = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)

TUNINGS: Mapping[str, Tuning] = {
    "ocelad": Tuning(_COARSE, 0.0),
    "paper's setting": Tuning(_COARSE, 0.0),
    "COMID, high rate": Tuning(_FINE, MODERATE),
    "COMID, low rate": Tuning(_FINE, 0.0),
    "SAOL": Tuning(_COARSE, 0.0),
    "online ITML": Tuning(_FINE, MODERATE),
}


@dataclass(frozen=True)
class Choice:
    """The rate of a method with the lowest mean error, and what each rate has come to."""

    method: str
    step: float
    drift: float
    trials: int
    errors: tuple[tuple[float, float, float], ...]  # step, mean error, standard error

    @property
    def at_the_edge(self) -> bool:
        """Whether a rate outside the grid might have been better."""
        return self.step in (self.errors[0][0], self.errors[-1][0])


def choose(results: Results) -> Choice:
    """The best of the candidates of a tuning study; of equals, the lowest."""
    study = results.study
    errors = tuple(
        (float(name.partition("@")[2]), *mean(results.error[:, k].mean(axis=1)))
        for k, name in enumerate(study.methods)
    )
    best = min(errors, key=lambda candidate: candidate[1])
    return Choice(plain(study.methods[0]), best[0], study.segments[0].drift, len(results.trials), errors)


def write_rates(path: Path, choices: Iterable[Choice]) -> None:
    """As a file that ``--rates`` takes; rates of other methods that are there already stay."""
    rates: dict[str, Any] = {}
    with suppress(OSError, ValueError):  # there is no such file, or what is in it are no rates
        read_rates(path)
        rates = json.loads(path.read_text(encoding="utf-8"))
    for choice in choices:
        words = asdict(choice)
        words["errors"] = [[None if np.isnan(value) else value for value in line] for line in choice.errors]
        rates[words.pop("method")] = words
    write_text(path, json.dumps(rates, indent=1) + "\n")


def read_rates(path: Path) -> dict[str, float]:
    """The chosen rate of each method in such a file."""
    words = path.read_bytes()
    try:
        found = json.loads(words)
        return {str(method): float(choice["step"]) for method, choice in found.items()}
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"{path} is not a file of rates as 'ocelad study tune' writes it: {error}") from None


def with_rates(methods: Iterable[str], rates: Mapping[str, float]) -> tuple[str, ...]:
    """Methods at their chosen rates; those without one, or with one given, stay.

    >>> with_rates(["SAOL", "Euclid", "ocelad@2"], {"SAOL": 4.0, "ocelad": 8.0})
    ('SAOL@4', 'Euclid', 'ocelad@2')
    """
    spelled = {name: np.format_float_positional(rate, trim="-") for name, rate in rates.items()}
    return tuple(f"{name}@{spelled[name]}" if name in rates else name for name in methods)


TUNED = tuple(name for name in DEFAULT if name in TUNINGS)
