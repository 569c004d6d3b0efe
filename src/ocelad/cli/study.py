"""``ocelad study``: the paper's synthetic experiment at any size, its rates, and its report."""

from __future__ import annotations

from concurrent.futures import BrokenExecutor
from pathlib import Path
from typing import Any

import click

from .. import plots, studies
from ..data import SCENARIO
from ..files import write_text
from ..studies import Results, Store, Study
from ..studies.methods import DEFAULT, METHODS, slug
from ..studies.tuning import FIRST_TRIAL, TUNED
from . import study_common as o
from .failures import reading, save_figure
from .options import Grouped, group, option
from .progress import progress
from .regret import regret
from .text import text

_SEGMENTS = tuple(f"{s.steps}:{s.clustering}:{s.drift:g}" for s in SCENARIO)
_listed = o.listed(o.segment, "STEPS:CLUSTERING:DRIFT,... such as 1300:A:0,1000:B:0.05")


@click.group()
def study() -> None:
    """Run the paper's experiments, choose their rates, and report on them."""


study.add_command(regret)
study.add_command(text)


@study.command(cls=Grouped)
@o.with_options(
    o.trial_count("How many trials; more can be added later."),
    o.first_trial(0),
    o.methods_option(
        DEFAULT,
        f"Who takes part, of {', '.join(map(slug, METHODS))}; NAME@STEP sets a rate; 'all' is all but refits "
        "and readings of the paper.",
    ),
    option("rates", None, "Rates as 'ocelad study tune' wrote them.", type=click.Path(path_type=Path)),
    group(
        "Streams",
        option("segments", _SEGMENTS, "STEPS:CLUSTERING:DRIFT of each segment.", callback=_listed),
        *o.SCENARIO,
    ),
    group("Running", *o.RUNNING),
)
def synthetic(
    trials: int, seed: int, rates: Path | None, methods: tuple[str, ...], out: Path, **options: Any
) -> None:
    """Track the paper's drifting clusters with every method, over many trials.

    Leaves table.csv, summary.csv, tracking.png and data.png in the folder. Finished trials are kept: after Ctrl-C,
    a crash or a reboot the same command goes on, and ends with the same numbers to the last bit.
    """
    plots.pyplot()  # what would fail at the end had better fail at once
    backend = o.backend(options)
    if rates is not None:
        with reading("--rates"):
            methods = studies.with_rates(methods, studies.read_rates(rates))
    with Store(out / "trials.sqlite", Study(methods=methods, **options)) as store:
        last = seed + trials - 1
        _run(store, range(seed, last + 1), backend, "trials")
        stored = progress(store.outcomes(seed, last), "table", total=trials, delay=2, unit=" trials")
        studies.write_table(out / "table.csv", store.study, stored)
        results = Results.of(store.study, store.outcomes(seed, last))
    studies.write_summary(out / "summary.csv", studies.summarise(results))
    save_figure(plots.experiment(results), out / "tracking.png", 120)
    data, *_ = results.study.world(seed)
    save_figure(plots.clusterings(data, len(results.study.shares)), out / "data.png", 120)
    click.echo(o.summary_table(results))
    click.echo(f"in {out}: table.csv, summary.csv, tracking.png, data.png; see also: ocelad study report {out}")


@study.command(cls=Grouped)
@o.with_options(
    o.trial_count("Trials per candidate."),
    o.first_trial(FIRST_TRIAL),
    o.methods_option(TUNED, f"Whose rates to choose, of {', '.join(map(slug, studies.TUNINGS))}."),
    group("Streams", *o.SCENARIO),
    group("Running", *o.RUNNING),
)
def tune(trials: int, seed: int, methods: tuple[str, ...], out: Path, **options: Any) -> None:
    """Choose rates by cross-validation, as the paper does, on streams of their own.

    RICE's and SAOL's step and COMID's low rate where nothing drifts, COMID's high rate under moderate drift.
    Leaves rates.json in the folder, for --rates of 'ocelad study synthetic'. What has been run is kept.
    """
    backend, choices = o.backend(options), []
    if not methods:
        raise click.BadParameter("names no method", param_hint="--methods")
    if others := [slug(method) for method in methods if method not in studies.TUNINGS]:
        known = ", ".join(map(slug, studies.TUNINGS))
        raise click.BadParameter(f"{others[0]} has no rates to try: choose of {known}")
    for method in methods:
        candidates = studies.TUNINGS[method].study(Study(methods=(method,), **options), method)
        with Store(out / f"tune-{slug(method)}.sqlite", candidates) as store:
            _run(store, range(seed, seed + trials), backend, slug(method))
            choice = studies.choose(Results.of(candidates, store.outcomes(seed, seed + trials - 1)))
        choices.append(choice)
        tried = ", ".join(f"{step:g}: {error:.4f}" for step, error, _ in choice.errors)
        edge = " (the edge of the grid)" if choice.at_the_edge else ""
        click.echo(f"{method}: step {choice.step:g}{edge} at drift {choice.drift:g}; 5-NN errors {tried}")
    studies.write_rates(out / "rates.json", choices)
    click.echo(f"rates: {out / 'rates.json'}")


@study.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
def report(folder: Path) -> None:
    """Write FOLDER/report.html: figures, tables, and which of the paper's claims hold, in one file.

    It shows the trials that are finished; the study may still be running.
    """
    plots.pyplot()
    with Store(folder / "trials.sqlite") as store:
        results, made_with = Results.of(store.study, store.outcomes()), store.made_with
    rates = folder / "rates.json"
    chosen = studies.read_rates(rates) if rates.exists() else {}
    at = set(results.study.methods)  # rates that were chosen, but not used, are none of this study's
    chosen = {name: rate for name, rate in chosen.items() if at & {*studies.with_rates([name], chosen)}}
    write_text(folder / "report.html", plots.synthetic_page(results, made_with, chosen or None))
    click.echo(f"report: {folder / 'report.html'}")


def _run(store: Store, trials: range, backend: Any, name: str) -> None:
    """Run what is missing, and say how it goes and how long it will take."""
    there = sum(trial in trials for trial in store.finished())
    if there == len(trials):
        return
    with progress(total=len(trials), initial=there, desc=name, unit=" trials", smoothing=0.02) as bar:
        try:
            for _ in studies.run_study(store.study, trials, store, backend):
                bar.update()
        except (KeyboardInterrupt, BrokenExecutor) as stop:
            bar.close()
            there = sum(trial in trials for trial in store.finished())
            why = "Stopped" if isinstance(stop, KeyboardInterrupt) else "A process was killed"
            click.echo(f"\n{why}: {there} of {len(trials)} trials are stored; the same command goes on.", err=True)
            raise SystemExit(130 if isinstance(stop, KeyboardInterrupt) else 1) from None
