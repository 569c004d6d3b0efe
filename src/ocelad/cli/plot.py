"""``ocelad plot``: figures of a run or of a saved metric."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import click
import numpy as np

from .. import MetricTracker, plots
from ..data.tables import Columns, Rows, parsed
from ..data.tables.reading import Format
from ..track import read_timeline
from .common import FORMAT, feature_columns, open_table, said_empty, saved_metric
from .failures import reading, save_figure
from .options import option, to_file


@click.command()
@click.argument("path", type=click.Path(exists=True))
@option("out", "plot.png", "The figure: .png, .svg or .pdf.", metavar="FILE", callback=to_file)
@option(
    "kind", None, "Errors, memory and threshold over time; the matrix; or points. [default: what PATH has]",
    type=click.Choice(["timeline", "metric", "embedding"]),
)  # fmt: skip
@option("points", None, "Draw the points of a table with the metric's features; needs --label.", metavar="TABLE")
@option("label", None, "With --points: the column of that table that colours them.", metavar="COLUMN")
@FORMAT
def plot(
    path: str, out: str, kind: str | None, points: str | None, label: str | None, format: Format | None
) -> None:
    """Draw PATH: the folder of a run of ocelad track, its timeline.csv, or a file of ocelad.save.

    \b
    ocelad plot run --out run.png
    ocelad plot run/tracker.ocelad --out metric.png
    ocelad plot run --points points.csv --label kind --out points.png
    """
    where = Path(path)
    line = where / "timeline.csv" if where.is_dir() else where
    if kind is None:
        kind = "embedding" if points or label else "timeline" if line.suffix == ".csv" else "metric"
    if kind != "embedding" and (points or label or format):
        raise click.UsageError("--points, --label and --format are for an embedding.")
    plots.pyplot().switch_backend("agg")
    if kind == "timeline":
        if not line.exists():
            raise ValueError(f"{where}: there is no time line: a run writes a row every --every comparisons")
        with reading("PATH"):
            figure: Any = plots.timeline(read_timeline(line), _name(line))
    elif kind == "metric":
        figure = plots.heat_map(saved_metric(path)).figure
    else:
        if points is None or label is None:
            raise click.UsageError("an embedding needs --points TABLE and --label COLUMN.")
        with closing(open_table("--points", points, format)) as rows:
            figure = _embedding(saved_metric(path), rows, label)
    out = out if Path(out).suffix else f"{out}.png"
    save_figure(figure, out, 110)
    click.echo(out)


def _name(line: Path) -> str:
    """What a run is called: as its folder."""
    line = line.resolve()
    return line.parent.name if line.name == "timeline.csv" else line.name


def _embedding(tracker: MetricTracker, rows: Rows, label: str) -> Any:
    features, colour = feature_columns(tracker, rows, label), Columns.of(rows.header, [label])
    found = [
        each for piece in parsed(rows, lambda row: (features.numbers(row), colour.words(row)[0])) for each in piece
    ]
    if not found:
        raise ValueError(said_empty(rows))
    tracker.__dict__.pop("feature_names_in_", None)  # the columns are in order
    return plots.embedding(tracker, np.array([x for x, _ in found]), [word for _, word in found]).figure
