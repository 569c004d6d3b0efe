"""``ocelad score``: distances and decisions of pairs under a saved metric."""

from __future__ import annotations

from contextlib import closing

import click
import numpy as np

from ..data.tables import parsed, read_rows
from ..data.tables.reading import Format
from .common import FORMAT, ITEMS, OUT, columns_like, form_for, judged, opened, saved_metric


@click.command()
@click.argument("tracker")
@click.argument("table")
@OUT
@ITEMS
@FORMAT
def score(tracker: str, table: str, out: str, items: str | None, format: Format | None) -> None:
    """Measure the pairs of TABLE with the metric of TRACKER, which does not change.

    TRACKER is a file of ocelad.save, or the folder of a run of ocelad track. The table has columns x_* and z_*, or
    id_a and id_b with --items. If it has y, too, accuracy and AUC are printed at the end.

    \b
    ocelad score run pairs.csv --out distances.csv
    """
    with closing(read_rows(table, format)) as rows:
        own = saved_metric(tracker)
        form, _ = form_for(rows, items, y=False)
        columns_like(own, form.features)
        seen, known = [], form.y is not None
        with opened(out, table, items, tracker) as file:
            file.write("line,distance,threshold,predicted\n")
            for piece in parsed(rows, form.parse):
                block = form.block(piece)
                distances, threshold = own.pair_distance(block.pairs), own.threshold_
                similar = np.where(distances <= threshold, 1, -1).tolist()
                file.writelines(
                    f"{line},{d!r},{threshold!r},{sign}\n"
                    for line, d, sign in zip(block.lines, distances.tolist(), similar, strict=True)
                )
                if known:
                    seen.append(np.stack([block.y, -distances, similar]))
        if seen:
            y, scores, predicted = np.concatenate(seen, axis=1)
            click.echo(f"{len(y)} pairs: {judged(y, scores, predicted)}", err=True)
