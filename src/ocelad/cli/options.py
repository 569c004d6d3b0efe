"""Options that the commands of ``ocelad study`` share."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from ..data import Segment
from ..studies import ENGINES, StoreError, Study
from ..studies.methods import named

LAST, MOST = 2**32 - 1, 1_000_000
"""The greatest number of a first trial, and how many there may be: all of them must fit into a file and a list."""


def segments(_context: Any, _option: Any, words: str) -> tuple[Segment, ...]:
    """STEPS:CLUSTERING:DRIFT,... as segments."""
    try:
        parts = [word.split(":") for word in words.split(",")]
        return tuple(Segment(int(n), which.strip().upper(), float(drift)) for n, which, drift in parts)  # type: ignore[arg-type]
    except ValueError:
        form = "STEPS:CLUSTERING:DRIFT,... such as 1300:A:0,1000:B:0.05"
        raise click.BadParameter(f"expected {form}, got {words!r}") from None


def numbers(_context: Any, _option: Any, words: str) -> tuple[float, ...]:
    """Numbers separated by commas."""
    try:
        return tuple(float(word) for word in words.split(","))
    except ValueError:
        raise click.BadParameter(f"expected numbers separated by commas, got {words!r}") from None


def methods(_context: Any, _option: Any, words: str) -> tuple[str, ...]:
    """Methods as `named` spells them, separated by commas."""
    try:
        return named(word for word in words.split(",") if word)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def first_trial(default: int) -> Callable[[Any], Any]:
    return click.option(
        "--seed",
        default=default,
        show_default=True,
        type=click.IntRange(0, LAST),
        help="Number of the first trial.",
    )


def trial_count(words: str) -> Callable[[Any], Any]:
    return click.option("--trials", default=24, show_default=True, type=click.IntRange(1, MOST), help=words)


_DEFAULT = Study()


def _scenario(name: str, words: str, **more: Any) -> Callable[[Any], Any]:
    default = getattr(_DEFAULT, name.replace("-", "_"))
    if isinstance(default, tuple):
        default = ",".join(map(str, default))
    return click.option(f"--{name}", default=default, show_default=True, help=words, **more)


SCENARIO = (
    _scenario("points", "Points of the data set."),
    _scenario("dimension", "Dimensions of the space."),
    _scenario("shares", "Share of each cluster, one per cluster.", callback=numbers),
    _scenario("separation", "Distance of two blobs, in standard deviations of one."),
    _scenario("noise", "Standard deviation of the noise dimensions."),
    _scenario("label-noise", "Probability that a label is turned."),
    _scenario("pairs-per-step", "Comparisons per time step."),
    _scenario("every", "Steps between evaluations; keep away from powers of two."),
    _scenario("sample", "Points on which the error is taken."),
)

ENGINE = (
    click.option(
        "--jobs",
        default=os.cpu_count() or 1,
        type=click.IntRange(min=1),
        help="Processes.  [default: one per core]",
    ),
    click.option(
        "--engine", default="loky", show_default=True, type=click.Choice(list(ENGINES)), help="Where trials run."
    ),
    click.option(
        "--scheduler",
        default=None,
        help="Address of a Dask scheduler, for --engine dask; else a cluster of --jobs processes is started here.",
    ),
    click.option(
        "--out",
        required=True,
        type=click.Path(file_okay=False, path_type=Path),
        help="Folder of the study; the same command with the same folder goes on where it stopped.",
    ),
)


def with_options(*options: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """All these options, and errors of input in one line each."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def wrapped(*args: Any, **kwargs: Any) -> None:
            try:
                command(*args, **kwargs)
            except (ValueError, ImportError, OSError, StoreError) as error:
                raise click.ClickException(str(error)) from None

        for option in reversed(options):
            wrapped = option(wrapped)
        return wrapped

    return decorate


def engine(options: dict[str, Any]) -> Any:
    """The engine that the options ask for; they are taken out."""
    name, jobs, address = options.pop("engine"), options.pop("jobs"), options.pop("scheduler")
    if address is not None and name != "dask":
        raise click.BadParameter("--scheduler is for --engine dask")
    return ENGINES[name](jobs, **({} if address is None else {"address": address}))
