"""``ocelad demo``: the main job at a glance."""

from __future__ import annotations

from pathlib import Path

import click
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from .. import data, plots
from ..studies import EVERY, Record, Summary, Trial, summary


@click.command()
@click.option("--seed", default=0, show_default=True, type=click.IntRange(min=0), help="Seed of the first trial.")
@click.option("--trials", default=1, show_default=True, type=click.IntRange(min=1), help="How many trials.")
@click.option(
    "--out",
    default="demo",
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the figure and the table.",
)
def demo(seed: int, trials: int, out: Path) -> None:
    """Track the paper's drifting clusters against the baselines: a table and a figure.

    About a quarter of a minute a trial. Ctrl-C stops early and shows what there is.
    """
    try:  # what would fail at the end had better fail at once
        plots.pyplot()
        out.mkdir(parents=True, exist_ok=True)
    except (ImportError, OSError) as error:
        raise click.ClickException(str(error)) from None
    done: list[Trial] = []
    try:
        next(iter(Trial(seed)))  # compiles, if need be: the bar would take it for the pace of things to come
        for number in range(trials):
            done.append(Trial(seed + number, segments=data.SCENARIO))
            _run(done[-1], f"trial {number + 1}/{trials}")
    except KeyboardInterrupt:
        click.echo("\nStopped early.", err=True)
    records = [record for trial in done for record in trial.records]
    if not records:
        raise click.ClickException("stopped before the first evaluation: nothing to show")
    click.echo(_table(summary(records), [f"{s.clustering} {s.drift:g}" for s in data.SCENARIO]))
    _write(records, out / "table.csv")
    plots.tracking(records, done[0].levels, data.SCENARIO).savefig(out / "tracking.png", dpi=110)
    click.echo(f"figure: {out / 'tracking.png'}\ntable:  {out / 'table.csv'}")


def _run(trial: Trial, name: str) -> None:
    """Run a trial, and say how it goes."""
    with threadpool_limits(1), tqdm(trial, unit=" comparisons", desc=name, mininterval=0.5) as bar:
        for step in bar:  # many small matrices: one BLAS thread is faster than several
            if (step.t + 1) % EVERY == 0:
                now = {record.method: f"{record.method} {record.knn_error:.3f}" for record in trial.records}
                bar.set_postfix_str("5-NN error: " + ", ".join(list(now.values())[:2]), refresh=False)


def _write(records: list[Record], path: Path) -> None:
    with path.open("w") as file:
        file.write("method,trial,t,segment,knn_error,nmi\n")
        file.writelines(f'"{r.method}",{r.trial},{r.t},{r.segment},{r.knn_error!r},{r.nmi!r}\n' for r in records)


def _table(lines: list[Summary], segments: list[str]) -> str:
    """Mean 5-NN error per segment (clustering and drift), in all, its standard error, and P(NMI > 0.8)."""
    rows = [["5-NN error", *segments[: len(lines[0].segments)], "all", "+-", "P(NMI>.8)"]]
    for line in lines:
        spread = f"{line.standard_error:.4f}" if line.trials > 1 else "-"
        errors = [f"{error:.3f}" for error in line.segments]
        rows.append([line.method, *errors, f"{line.error:.4f}", spread, f"{line.p_nmi:.2f}"])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in rows
    )
