"""``ocelad plot``: figures of a run or of a saved metric."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any, Literal

import click
import numpy as np

from .. import MetricTracker, plots
from ..data.tables import Columns, Rows, parsed, read_rows
from ..data.tables.reading import Format
from ..track import read_timeline
from .common import FORMAT, plain_errors, saved_metric


@click.command()
@click.argument("path", type=click.Path(exists=True))
@click.option(
    "--out", default="plot.png", show_default=True, metavar="FILE", help="The figure: .png, .svg or .pdf."
)
@click.option(
    "--kind",
    type=click.Choice(["timeline", "metric", "embedding"]),
    help="Errors, memory and threshold over time; the matrix; or points. [default: what PATH has]",
)
@click.option("--points", metavar="TABLE", help="For an embedding: a table with the metric's features.")
@click.option("--label", metavar="COLUMN", help="For an embedding: the column that colours the points.")
@FORMAT
def plot(
    path: str,
    out: str,
    kind: Literal["timeline", "metric", "embedding"] | None,
    points: str | None,
    label: str | None,
    format: Format | None,
) -> None:
    """Draw PATH: the folder of a run of ocelad track, its timeline.csv, or a file of ocelad.save.

    \b
    ocelad plot run --out run.png
    ocelad plot run/tracker.ocelad --out metric.png
    ocelad plot run --points points.csv --label kind --out points.png
    """
    with plain_errors():
        where = Path(path)
        line = where / "timeline.csv" if where.is_dir() else where
        if kind is None:
            kind = "embedding" if points else "timeline" if line.suffix == ".csv" else "metric"
        plots.pyplot().switch_backend("agg")
        if kind == "timeline":
            figure: Any = plots.timeline(read_timeline(line))
        elif kind == "metric":
            figure = plots.heat_map(saved_metric(path)).figure
        else:
            if points is None or label is None:
                raise click.UsageError("an embedding needs --points TABLE and --label COLUMN.")
            figure = _embedding(path, points, label, format)
        figure.savefig(out, dpi=110)
    click.echo(out)


def _embedding(path: str, points: str, label: str, format: Format | None) -> Any:
    with closing(read_rows(points, format)) as rows:
        return _drawn(saved_metric(path), rows, label)


def _drawn(tracker: MetricTracker, rows: Rows, label: str) -> Any:
    names = getattr(tracker, "feature_names_in_", [name for name in rows.header if name != label])
    missing = [name for name in (*names, label) if name not in rows.header]
    if missing:
        raise ValueError(f"{rows.name}: there is no column {missing[0]}")
    features, colour = Columns.of(rows.header, list(names)), Columns.of(rows.header, [label])
    found = [
        each for piece in parsed(rows, lambda row: (features.numbers(row), colour.words(row)[0])) for each in piece
    ]
    tracker.__dict__.pop("feature_names_in_", None)  # the columns are in order
    return plots.embedding(tracker, np.array([x for x, _ in found]), [word for _, word in found]).figure
