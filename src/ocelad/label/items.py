"""A table of items to compare: the columns that are numbers are their features, and all can be shown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..data.tables import BadRow, Columns, Row, Rows, matching, parsed
from ..data.tables.rows import listed, no_column
from ..protocols import Array


class NoNumbers(ValueError):
    """A table of items without a column that could be a feature."""


@dataclass(frozen=True, eq=False)
class Items:
    """Items, by their ids: points of shape (m, n), the names of the n features, and the cells to show.

    ``columns`` are those of the table, and ``named`` is the one that has the ids, if there is one.
    """

    columns: tuple[str, ...]
    named: str | None
    ids: list[str]
    points: Array
    features: tuple[str, ...]
    shown: tuple[str, ...]
    cells: list[list[str]]

    @classmethod
    def read(
        cls, rows: Rows, id: str | None = None, features: Sequence[str] = (), shown: Sequence[str] = ()
    ) -> Items:
        """The items of a table.

        Parameters
        ----------
        rows
            The table.
        id
            The column that names items; if None, the column ``id``, or where there is none the number of the line.
        features, shown
            Patterns of column names. Features are, if none is given, all columns whose cells are numbers; all
            columns are shown.
        """
        id, ids, table = named_rows(rows, id)
        others = [name for name in rows.header if name != id]
        try:
            chosen = [name for name in matching(rows.header, features) if name != id]
        except ValueError as error:
            raise ValueError(f"{rows.name}: {error}") from None
        named = any(not pattern.startswith("!") for pattern in features)
        names = chosen if named else _numeric(rows, chosen if features else others, table)
        look, cells = shown_cells(rows, table, id, shown)
        if not names:
            there = listed(rows.header)
            raise NoNumbers(f"{rows.name}: no column has numbers, which features must be: there are {there}")
        columns = Columns.of(rows.header, names)
        try:
            points = np.array([columns.numbers(row) for row in table])
        except BadRow as error:
            hint = "" if features else "; --features chooses the columns that count"
            raise ValueError(f"{rows.name}: {error}{hint}") from None
        return cls(tuple(rows.header), id, ids, points, tuple(names), tuple(look), cells)


def named_rows(rows: Rows, id: str | None = None) -> tuple[str | None, list[str], list[Row]]:
    """The column that names items, if there is one, and the ids and rows of all items; see `Items.read`."""
    if id is None and "id" in rows.header:
        id = "id"
    if id is not None and id not in rows.header:
        raise ValueError(f"{rows.name}: {no_column(id, rows.header)}")
    key = Columns.of(rows.header, [] if id is None else [id])
    seen: set[str] = set()

    def read(row: Row) -> tuple[str, Row]:
        name = key.words(row)[0] if id is not None else str(row.line)
        if name in seen:
            raise BadRow(row, f"item {name!r} is there twice", id or "")
        if not name.isprintable():
            raise BadRow(row, f"it must be a word that can be printed, got {name!r}", id or "")
        seen.add(name)
        return name, row

    found: list[tuple[str, Row]] = [each for piece in parsed(rows, read) for each in piece]
    if len(found) < 2:
        raise ValueError(f"{rows.name}: two or more items are needed, there {_are(len(found))}")
    return id, [name for name, _ in found], [row for _, row in found]


def shown_cells(
    rows: Rows, table: Sequence[Row], id: str | None, patterns: Sequence[str] = ()
) -> tuple[list[str], list[list[str]]]:
    """The columns that match, or all but the ids, and what they show of each row."""
    try:
        names = [name for name in matching(rows.header, patterns or ["*"]) if name != id]
    except ValueError as error:
        raise ValueError(f"{rows.name}: {error}") from None
    places = Columns.of(rows.header, names).places
    return names, [[_text(row.cells[place]) for place in places] for row in table]


def _are(count: int) -> str:
    return "is one" if count == 1 else "are none"


def _numeric(rows: Rows, names: list[str], table: list[Row]) -> list[str]:
    """The columns that have numbers, and no words; what is missing among numbers is said when they are read."""
    places = Columns.of(rows.header, names).places
    kinds = ({_kind(_plain(row, place)) for row in table} for place in places)
    return [name for name, kind in zip(names, kinds, strict=True) if "number" in kind and "word" not in kind]


def _plain(row: Row, place: int) -> Any:
    """A cell, with a decimal point if it has a decimal comma."""
    cell = row.cells[place]
    return cell if row.decimals is None else row.decimals.plain([cell])[0]


def _kind(cell: Any) -> str:
    if cell is None or not str(cell).strip():
        return "nothing"
    try:
        return "nothing" if math.isnan(float(cell)) else "number"
    except (TypeError, ValueError, OverflowError):
        return "nothing" if str(cell).strip().lower() in ("na", "n/a", "null", "none") else "word"


def _text(cell: Any) -> str:
    """As it can be shown: in one line, and nothing that a terminal would take for a command."""
    text = "" if cell is None else str(cell).strip()
    return "".join(letter if letter.isprintable() else " " for letter in text)
