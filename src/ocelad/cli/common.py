"""What several subcommands share: options, saved trackers, and the columns of tables."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from glob import escape
from pathlib import Path
from typing import TextIO, get_args

import click

from .. import MetricTracker, SupervisedMetricTracker, load
from ..data.tables import BadRow, Columns, Comparisons, Rows, comparisons, read_items, read_rows
from ..data.tables.reading import Format
from ..data.tables.rows import listed, no_column
from ..files import named
from .failures import reading, writing
from .options import option, to_file

ITEMS = option("items", None, "Table of what id_a and id_b name, with a column id.", metavar="FILE")
FORMAT = option(
    "format",
    None,
    "csv, jsonl or parquet, if the name does not tell.",
    type=click.Choice(get_args(Format)),
    metavar="WORD",
)
OUT = option("out", "-", "Where to write; - is standard output.", metavar="FILE", callback=to_file)


def saved_metric(path: str) -> MetricTracker:
    """The tracker in a file, or in the folder of a run."""
    where = Path(path) / "tracker.ocelad" if Path(path).is_dir() else Path(path)
    if where != Path(path) and not where.exists():
        raise ValueError(f"{path}: there is no tracker in it: nothing has been learned there yet")
    with reading("TRACKER"):
        found = load(where)
    tracker = found.tracker_ if isinstance(found, SupervisedMetricTracker) else found
    if not isinstance(tracker, MetricTracker):
        raise ValueError(f"{where}: it holds a {type(found).__name__}, and a file of a single tracker is needed")
    return tracker


def form_for(
    rows: Rows, known: str | None, features: Sequence[str] = (), y: bool = True, like: MetricTracker | None = None
) -> tuple[Comparisons, str]:
    """How the comparisons of a table are meant, and what its items are known by; of more features than those of a
    metric, if all of these are there, the others are left out."""
    own = list(getattr(like, "feature_names_in_", ()))
    sides = {name[2:] for name in rows.header if name.startswith("x_")}
    names: list[str] = []
    points, digest = None, ""
    if known:
        with closing(open_table("--items", known)) as table:
            try:
                names, points = read_items(table, features or _these(own, table.header))
            except ValueError as error:
                others = [name for name in table.header if name != "id"]
                raise ValueError(f"--items: {error}{leave_out(error, others)}") from None
            digest = table.used.digest
    try:
        return comparisons(rows.header, points, names if known else features or _these(own, sides), y), digest
    except ValueError as error:
        raise ValueError(f"{rows.name}: {error}") from None


def _these(own: Sequence[str], there: Collection[str]) -> list[str]:
    return [escape(name) for name in own] if set(own) <= set(there) else []


def said_empty(rows: Rows) -> str:
    return f"{rows.name}: there are no rows after the header"


def open_table(option: str, path: str, format: Format | None = None) -> Rows:
    """The rows of the table that an option, or an argument, names."""
    with reading(option):
        return read_rows(path, format)


def leave_out(error: BaseException, features: Collection[str]) -> str:
    """How to go on after an error about a cell of a feature."""
    column = error.__cause__.column if isinstance(error.__cause__, BadRow) else ""
    for name in (column, column[2:] if column[:2] in ("x_", "z_") else ""):
        if name in features:
            return f"; {without([name])} leaves the column out"
    return ""


def without(names: Sequence[str]) -> str:
    """The options that leave features out."""
    return " ".join(f"--features '!{escape(name)}'" for name in names)


def columns_like(tracker: MetricTracker, features: Sequence[str]) -> None:
    """The features of a table must be those of the metric, in its order; where something stands between points
    and metric, that has to say whether it can use them."""
    if tracker.features is not None:
        return
    own = getattr(tracker, "feature_names_in_", None)
    if len(features) != tracker.n_features_in_ or (own is not None and list(own) != list(features)):
        expected = f"{tracker.n_features_in_} features" + ("" if own is None else f", {listed(own)}")
        raise ValueError(f"the metric has {expected}; the table has {len(features)}, {listed(features)}")


def feature_columns(tracker: MetricTracker, rows: Rows, *others: str) -> Columns:
    """Where a table of points has the metric's features: by name, or all columns but the others."""
    names = getattr(tracker, "feature_names_in_", [name for name in rows.header if name not in others])
    missing = [name for name in (*names, *others) if name not in rows.header]
    if missing and missing[0] in others:
        raise ValueError(f"{rows.name}: {no_column(missing[0], rows.header)}")
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
        with writing("--out"), named(path), open(path, "w", encoding="utf-8", newline="") as file:
            yield file
