"""``ocelad score``: distances and decisions of pairs under a saved metric."""

from __future__ import annotations

from contextlib import closing

import click
import numpy as np

from .. import GroupedShare
from ..data.tables import parsed
from ..data.tables.reading import Format
from .common import FORMAT, ITEMS, OUT, columns_like, form_for, open_table, opened, said_empty, saved_metric
from .measures import Measures


@click.command()
@click.argument("tracker")
@click.argument("table")
@OUT
@ITEMS
@FORMAT
def score(tracker: str, table: str, out: str, items: str | None, format: Format | None) -> None:
    """Measure the pairs of TABLE with the metric of TRACKER, which does not change.

    TRACKER is a file of ocelad.save, or the folder of a run of ocelad track. The table has columns x_* and z_*, or
    id_a and id_b with --items. If it has y, too, it is said at the end how right the decisions were.

    \b
    ocelad score run pairs.csv --out distances.csv
    """
    with closing(open_table("TABLE", table, format)) as rows:
        own = saved_metric(tracker)
        form, _ = form_for(rows, items, y=False, like=own)
        columns_like(own, form.features)
        seen, known, count = [], form.y is not None, 0
        pooled = isinstance(own.weights, GroupedShare)
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
                count += len(block.y)
                if known:
                    probability = own.predict_proba(block.pairs)[:, 1] if pooled else np.full(len(block.y), np.nan)
                    seen.append(np.stack([block.y, -distances, similar, probability]))
        if seen:
            y, scores, predicted, probability = np.concatenate(seen, axis=1)
            first, *rest = Measures.exactly(y, scores, predicted, probability if pooled else None).lines()
            click.echo("\n".join([f"{len(y)} pairs: {first}", *rest]), err=True)
        if not count:
            click.echo(said_empty(rows), err=True)
