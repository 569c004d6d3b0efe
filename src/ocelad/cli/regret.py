"""``ocelad study regret``: how regret grows with the interval, and how far below its bounds it stays."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import astuple, fields
from pathlib import Path

import click
import numpy as np
from threadpoolctl import threadpool_limits

from .. import data, plots
from ..files import write_csv
from ..studies import regret as study
from . import study_common as o
from .failures import save_figure
from .options import count
from .progress import progress


@click.command()
@o.with_options(
    *o.figure_options("regret"),
    count("shortest", study.SHORTEST, "Length of the shortest intervals."),
)
def regret(seed: int, trials: int, shortest: int, out: Path) -> None:
    """Regret on the paper's drifting clusters: its growth exponents, a table and a figure.

    Under a minute a trial. Ctrl-C stops early and shows the trials that are complete.
    """
    if shortest > sum(segment.steps for segment in data.SCENARIO):
        raise click.BadParameter("longer than the stream", param_hint="--shortest")
    o.figure_folder(out)
    lines: list[study.WorstInterval] = []
    try:
        for k in range(trials):
            with threadpool_limits(1):  # many small matrices: one BLAS thread is faster than several
                lines += study.trial(seed + k, None, data.SCENARIO, shortest, _bars(f"trial {k + 1}/{trials}"))
            header = [field.name for field in fields(study.WorstInterval)]
            write_csv(out / "table.csv", header, map(astuple, lines))
    except KeyboardInterrupt:
        click.echo("\nStopped early.", err=True)
    if not lines:
        raise click.ClickException("stopped before the first trial was complete: nothing to show")
    click.echo(_report(lines))
    _draw(lines, out / "regret.png")
    click.echo(f"figure: {out / 'regret.png'}\ntable:  {out / 'table.csv'}")


def _bars(trial: str) -> Callable[[Iterable[int], str], Iterable[int]]:
    """A progress bar per piece of work."""
    return lambda items, name: progress(items, desc=f"{trial}, {name}", mininterval=0.5, leave=False)


def _report(lines: list[study.WorstInterval]) -> str:
    """Exponents per method, and whether regret stays below the bounds where a theorem speaks."""
    text = [f"{'growth exponent':<20}{'against':<18}{'exponent':>9}{'+-':>7}{'lengths':>12}"]
    for e in study.exponents(lines):
        spread = f"{e.standard_error:.3f}" if e.trials > 1 else "-"
        span = f"{e.shortest}-{e.longest}"
        omitted = f"  ({e.omitted} lengths without positive regret left out)" if e.omitted else ""
        text.append(f"{e.method:<20}{e.comparator:<18}{e.exponent:>9.3f}{spread:>7}{span:>12}{omitted}")
    known = [line for line in lines if not np.isnan(line.paper)]
    for reading in ("paper", "corrected") if known else ():
        ratios = [line.regret / getattr(line, reading) for line in known]
        above = sum(ratio > 1 for ratio in ratios)
        text.append(
            f"largest regret / bound ({reading}): {max(ratios):.3g}; lengths above it: {above} of {len(ratios)}"
        )
    return "\n".join(text)


def _draw(lines: list[study.WorstInterval], path: Path) -> None:
    """The first trial of them, against the true metric in the loss."""
    shown = [line for line in lines if line.trial == lines[0].trial and line.comparator == "truth, l"]
    methods = dict.fromkeys(line.method for line in shown)

    def curve(method: str, measure: str) -> tuple[list[int], list[float]]:
        own = [line for line in shown if line.method == method]
        return [line.length for line in own], [getattr(line, measure) for line in own]

    covered = [line.method for line in shown if not np.isnan(line.paper)]
    bounds = {f"Theorem 2, {reading}": curve(covered[0], reading) for reading in ("paper", "corrected") if covered}
    curves = {method: curve(method, "regret") for method in methods}
    axes = plots.regret_by_length(curves, bounds, exponents={e.method: e.exponent for e in study.exponents(shown)})
    save_figure(axes.figure, path, 110)
