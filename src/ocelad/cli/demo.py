"""``ocelad demo``: the main job at a glance, as a trial of the synthetic study."""

from __future__ import annotations

from pathlib import Path

import click
from threadpoolctl import threadpool_limits

from .. import data, plots
from ..studies import Results, Study, Trial, write_table
from . import study_common as o
from .failures import save_figure, writing
from .progress import progress

METHODS = ("ocelad", "paper's setting", "COMID, high rate", "COMID, low rate", "Euclid")


@click.command()
@o.with_options(*o.figure_options("demo"))
def demo(seed: int, trials: int, out: Path) -> None:
    """Track the paper's drifting clusters against the baselines: a table and a figure.

    A few seconds a trial. Ctrl-C stops early and shows what there is.
    """
    with writing("--out"):
        o.figure_folder(out)
    study = Study(METHODS, segments=data.SCENARIO)
    done: list[Trial] = []
    try:
        next(iter(Trial(study, seed)))  # compiles, if need be: the bar would take that for the pace to come
        for number in range(seed, seed + trials):
            done.append(Trial(study, number))
            _run(done[-1], f"trial {len(done)}/{trials}")
    except KeyboardInterrupt:
        click.echo("\nStopped early.", err=True)
    # of the first trial what there is, of the others those that are complete
    evaluated = done[0].evaluated if done else 0
    if not evaluated:
        raise click.ClickException("stopped before the first evaluation: nothing to show")
    shown = study.until(evaluated)
    outcomes = [trial.outcome for trial in done if trial.evaluated == evaluated]
    results = Results.of(shown, outcomes)
    click.echo(o.summary_table(results))
    click.echo(f"always the most frequent cluster: error {1 - max(study.shares):.4f}")
    with writing("--out"):
        write_table(out / "table.csv", shown, outcomes)
    save_figure(plots.tracking(results, done[0].levels), out / "tracking.png", 110)
    click.echo(f"figure: {out / 'tracking.png'}\ntable:  {out / 'table.csv'}")


def _run(trial: Trial, name: str) -> None:
    """Run a trial, and say how it goes."""
    steps = trial.study.steps
    with threadpool_limits(1), progress(total=steps, unit=" comparisons", desc=name) as bar:
        for block in trial:  # many small matrices: one BLAS thread is faster than several
            errors = zip(trial.study.methods[:2], trial.measures[:, trial.evaluated - 1, 0], strict=False)
            words = "5-NN error: " + ", ".join(f"{method} {error:.3f}" for method, error in errors)
            bar.set_postfix_str(words, refresh=False)
            bar.update(block.t + 1 - bar.n)
        bar.update(steps - bar.n)  # what is left after the last evaluation, which nobody sees
