"""What several subcommands share: options, saved trackers, and the columns of tables."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TextIO, get_args

import click
import numpy as np
from sklearn.metrics import roc_auc_score

from .. import MetricTracker, SupervisedMetricTracker, load
from ..data.tables import Columns, Comparisons, Rows, comparisons, read_items, read_rows
from ..data.tables.reading import Format
from .options import option

ITEMS = option("items", None, "Table of items, with a column id, for columns id_a and id_b.", metavar="FILE")
FORMAT = option(
    "format", None, "Format of the input, if its name does not tell.", type=click.Choice(get_args(Format))
)
OUT = option("out", "-", "Where to write; - is standard output.", metavar="FILE")


def auc_in_words(auc: float, digits: int = 4) -> str:
    return "unknown (all y are the same)" if math.isnan(auc) else f"{auc:.{digits}f}"


def judged(y: Any, scores: Any, predicted: Any, digits: int = 4) -> str:
    """How right predictions were: exactly, over all of them."""
    auc = float(roc_auc_score(y, scores)) if len(np.unique(y)) == 2 else math.nan
    return f"accuracy {np.mean(y == predicted):.{digits}f}, AUC {auc_in_words(auc, digits)}"


def saved_metric(path: str) -> MetricTracker:
    """The tracker in a file, or in the folder of a run."""
    where = Path(path) / "tracker.ocelad" if Path(path).is_dir() else Path(path)
    if where != Path(path) and not where.exists():
        raise ValueError(f"{path}: there is no tracker in it: nothing has been learned there yet")
    found = load(where)
    tracker = found.tracker_ if isinstance(found, SupervisedMetricTracker) else found
    if not isinstance(tracker, MetricTracker):
        raise ValueError(f"{where}: it holds a {type(found).__name__}, and a file of a single tracker is needed")
    return tracker


def form_for(
    rows: Rows, known: str | None, features: Sequence[str] = (), y: bool = True
) -> tuple[Comparisons, str]:
    """How the comparisons of a table are meant, and what its items are known by."""
    names: list[str] = []
    points, digest = None, ""
    if known:
        with closing(read_rows(known)) as table:
            names, points = read_items(table, features)
            digest = table.used.digest
    try:
        return comparisons(rows.header, points, names, y), digest
    except ValueError as error:
        raise ValueError(f"{rows.name}: {error}") from None


def columns_like(tracker: MetricTracker, features: Sequence[str]) -> None:
    """The features of a table must be those of the metric, in its order; where something stands between points
    and metric, that has to say whether it can use them."""
    if tracker.features is not None:
        return
    own = getattr(tracker, "feature_names_in_", None)
    if len(features) != tracker.n_features_in_ or (own is not None and list(own) != list(features)):
        expected = f"{tracker.n_features_in_} features" + ("" if own is None else f", {', '.join(own)}")
        raise ValueError(f"the metric has {expected}; the table has {len(features)}, {', '.join(features)}")


def feature_columns(tracker: MetricTracker, rows: Rows, *others: str) -> Columns:
    """Where a table of points has the metric's features: by name, or all columns but the others."""
    names = getattr(tracker, "feature_names_in_", [name for name in rows.header if name not in others])
    missing = [name for name in (*names, *others) if name not in rows.header]
    if missing:
        few = ", ".join(names[:6]) + (", ..." if len(names) > 6 else "")
        raise ValueError(f"{rows.name}: there is no column {missing[0]}; the metric's features are {few}")
    return Columns.of(rows.header, list(names))


@contextmanager
def opened(path: str, *read: str | None) -> Iterator[TextIO]:
    """A file to write to, which must be none of those that are read."""
    for other in filter(None, read):
        if Path(path).exists() and Path(other).exists() and Path(path).samefile(other):
            raise ValueError(f"{path}: --out must be another file than those that are read")
    if path == "-":
        yield sys.stdout
        sys.stdout.flush()
    else:
        with open(path, "w", encoding="utf-8") as file:
            yield file
