"""What ``ocelad demo`` and the commands of ``ocelad study`` share: options, and the table that they print."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click

from .. import plots
from ..data import Segment
from ..studies import BACKENDS, Results, Study, summarise
from ..studies.methods import named, slug
from .failures import writing
from .options import Option, count, option

LAST, MOST = 2**32 - 1, 1_000_000
"""The greatest number of a first trial, and how many there may be: all of them must fit into a file and a list."""


def folder(words: str, **more: Any) -> Option:
    return click.option("--out", type=click.Path(file_okay=False, path_type=Path), help=words, **more)


def listed(parse: Callable[[str], Any], expected: str) -> Callable[[Any, Any, str], tuple[Any, ...]]:
    """The callback of an option whose values are separated by commas."""

    def callback(_context: Any, _option: Any, words: str) -> tuple[Any, ...]:
        try:
            return tuple(map(parse, words.split(",")))
        except ValueError:
            raise click.BadParameter(f"expected {expected}, got {words!r}") from None

    return callback


def segment(word: str) -> Segment:
    """STEPS:CLUSTERING:DRIFT."""
    steps, clustering, drift = word.split(":")
    return Segment(int(steps), clustering.strip().upper(), float(drift))  # type: ignore[arg-type]


def methods(_context: Any, _option: Any, words: str) -> tuple[str, ...]:
    """Methods as `named` spells them, separated by commas."""
    try:
        return named(word for word in words.split(",") if word)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def methods_option(default: Iterable[str], words: str) -> Option:
    return option("methods", tuple(map(slug, default)), words, callback=methods)


def first_trial(default: int) -> Option:
    return option("seed", default, "Number of the first trial.", type=click.IntRange(0, LAST))


def trial_count(words: str, default: int = 24) -> Option:
    return option("trials", default, words, type=click.IntRange(1, MOST))


def one_per_core(name: str, words: str) -> Option:
    return count(name, os.cpu_count() or 1, f"{words}  [default: one per core]", show_default=False)


_DEFAULT = Study()


def _scenario(name: str, words: str, **more: Any) -> Option:
    return option(name, getattr(_DEFAULT, name.replace("-", "_")), words, **more)


SCENARIO = (
    _scenario("points", "Points of the data set."),
    _scenario("dimension", "Dimensions of the space."),
    _scenario(
        "shares", "Share of each cluster, one per cluster.", callback=listed(float, "numbers separated by commas")
    ),
    _scenario("separation", "Distance of two blobs, in standard deviations of one."),
    _scenario("noise", "Standard deviation of the noise dimensions."),
    _scenario("label-noise", "Probability that a label is turned."),
    _scenario("pairs-per-step", "Comparisons per time step."),
    _scenario("every", "Steps between evaluations; keep away from powers of two."),
    _scenario("sample", "Points on which the error is taken."),
)

RUNNING = (
    one_per_core("jobs", "Processes."),
    option("backend", "loky", "Where trials run.", also=("--engine",), type=click.Choice(list(BACKENDS))),
    option(
        "scheduler",
        None,
        "Address of a Dask scheduler, for --backend dask; else --jobs processes are started here.",
    ),
    folder("Folder of the study; the same command with the same folder goes on where it stopped.", required=True),
)


def figure_options(name: str) -> tuple[Option, ...]:
    """Options of a command that runs a few trials here and now, and draws."""
    out = folder("Folder for the figure and the table.", default=name, show_default=True)
    return first_trial(0), trial_count("How many trials.", default=1), out


def figure_folder(out: Path) -> None:
    """What would fail at the end had better fail at once."""
    plots.pyplot()
    with writing("--out"):
        out.mkdir(parents=True, exist_ok=True)


def with_options(*options: Option) -> Callable[[Any], Any]:
    """All these options, in this order."""

    def decorate(command: Any) -> Any:
        for each in reversed(options):
            command = each(command)
        return command

    return decorate


def backend(options: dict[str, Any]) -> Any:
    """The backend that the options ask for; they are taken out."""
    name, jobs, address = options.pop("backend"), options.pop("jobs"), options.pop("scheduler")
    if address is not None and name != "dask":
        raise click.BadParameter("--scheduler is for --backend dask")
    return BACKENDS[name](jobs, **({} if address is None else {"address": address}))


def summary_table(results: Results) -> str:
    """Mean 5-NN error per segment (clustering and drift), in all, and P(NMI > 0.8), with their standard errors."""
    rows: list[list[str]] = []
    for method in results.study.methods:
        *parts, whole = [line for line in summarise(results) if line.method == method]
        numbers = [part.knn_error for part in (*parts, whole)] + [whole.knn_error_se, whole.p_nmi, whole.p_nmi_se]
        if not rows:
            segments = [results.study.segments[int(part.segment)] for part in parts]
            names = [f"{segment.clustering} {segment.drift:g}" for segment in segments]
            rows.append(["5-NN error", *names, "all", "+-", "P(NMI>.8)", "+-"])
        rows.append([method, *("-" if math.isnan(number) else f"{number:.4f}" for number in numbers)])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows)
