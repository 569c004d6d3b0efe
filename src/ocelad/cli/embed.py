"""``ocelad embed``: points as coordinates under a saved metric."""

from __future__ import annotations

import csv
from contextlib import closing

import click
import numpy as np

from ..data.tables import Columns, parsed
from ..data.tables.reading import Format
from .common import FORMAT, OUT, feature_columns, open_table, opened, said_empty, saved_metric
from .options import count


@click.command()
@click.argument("tracker")
@click.argument("table")
@count("dimensions", 2, "How many, the most important.")
@OUT
@FORMAT
def embed(tracker: str, table: str, dimensions: int, out: str, format: Format | None) -> None:
    """Give the points of TABLE coordinates in which the metric of TRACKER is the Euclidean distance.

    TRACKER is a file of ocelad.save, or the folder of a run of ocelad track. The table must have the metric's
    features by name (what was x_age and z_age in comparisons is age); columns that are no features are passed on.

    \b
    ocelad embed run points.csv --dimensions 3 --out coordinates.csv
    """
    with closing(open_table("TABLE", table, format)) as rows:
        own = saved_metric(tracker)
        metric = own.get_metric()
        transform = metric.transform if own.features is None else own.transform
        points = feature_columns(own, rows)
        if own.features is None and len(points.names) != metric.n:
            found = f"it has {len(points.names)} columns, and the metric has {metric.n} features"
            raise ValueError(f"{rows.name}: {found}")
        if dimensions > max(metric.n, metric.dimensions):
            most = f"{max(metric.n, metric.dimensions)}, the number of features"
            raise ValueError(f"--dimensions must be at most {most}, got {dimensions}")
        others = Columns.of(rows.header, [name for name in rows.header if name not in set(points.names)])
        count = 0
        with opened(out, table, tracker) as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow([*others.names, *(f"dim_{k + 1}" for k in range(dimensions))])
            for piece in parsed(rows, lambda row: (points.numbers(row), [row.cells[k] for k in others.places])):
                Z = transform(np.array([numbers for numbers, _ in piece]))[:, :dimensions].tolist()
                writer.writerows([*rest, *z] for z, (_, rest) in zip(Z, piece, strict=True))
                count += len(piece)
        if not count:
            click.echo(said_empty(rows), err=True)
