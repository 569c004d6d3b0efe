"""What the rows of a table say: a comparison of two points each, given by their features or as two items."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np

from ...protocols import Array, Integers
from .cells import Columns, matching
from .rows import BadRow, Row, Rows, listed, unseparated


@dataclass(frozen=True, eq=False)
class Batch:
    """Comparisons, in order: pairs of shape (m, 2, n), labels, and the lines they come from.

    A labelled row is compared with earlier rows: those are the ``others``, 0 where there is none.
    """

    pairs: Array
    y: Integers
    lines: list[int]
    others: list[int]


class Form(Protocol):
    """How rows become comparisons of points with these features."""

    @property
    def features(self) -> Sequence[str]: ...

    def parse(self, row: Row, /) -> Any:
        """What a row says, or a `BadRow`."""

    def block(self, parsed: Sequence[Any], /) -> Batch: ...

    def state(self) -> Any:
        """What is remembered of earlier rows, in words of JSON."""

    def restore(self, state: Any, /) -> None: ...


@dataclass(frozen=True)
class Comparisons:
    """Two points a row, one after the other in ``numbers``, and y; y is 0 where only distances are asked for."""

    features: tuple[str, ...]
    numbers: Callable[[Row], list[float]]
    y: Columns | None

    def parse(self, row: Row) -> tuple[int, list[float], int]:
        return row.line, self.numbers(row), 0 if self.y is None else self.y.sign(row)

    def block(self, parsed: Sequence[tuple[int, list[float], int]]) -> Batch:
        lines, numbers, y = zip(*parsed, strict=True)
        return Batch(np.array(numbers).reshape(len(y), 2, -1), np.array(y), list(lines), [0] * len(y))

    def state(self) -> None:
        return None

    def restore(self, state: Any) -> None:
        assert state is None


def _of_items(points: Mapping[str, list[float]], ids: Columns, row: Row) -> list[float]:
    """The two points that a row names."""
    a, b = names = ids.words(row)
    for column, name in zip(ids.names, names, strict=True):
        if name not in points:
            raise BadRow(row, f"there is no item {name!r}", column)
    return points[a] + points[b]


def comparisons(
    header: Sequence[str],
    items: Mapping[str, list[float]] | None = None,
    features: Sequence[str] = (),
    needs_y: bool = True,
) -> Comparisons:
    """How the columns of a table of comparisons are meant.

    Parameters
    ----------
    header
        The table's columns: x_*, z_* and y, or id_a, id_b and y.
    items
        What the ids mean; see `read_items`.
    features
        Those of the items; of columns x_* and z_*, patterns of their names without x_ and z_, for all if empty.
    needs_y
        Whether a table without y is refused.

    Examples
    --------
    >>> comparisons(["x_a", "x_b", "z_b", "z_a", "y"]).features
    ('a', 'b')
    """
    y = Columns.of(header, ["y"]) if "y" in header else None
    if unseparated(header):
        raise ValueError(f"comparisons need several columns: {unseparated(header)}")
    if needs_y and y is None:
        raise ValueError(f"there is no column y, only {listed(header)}; for labelled rows, give --label COLUMN")
    if {"id_a", "id_b"} <= set(header):
        if items is None:
            raise ValueError("columns id_a and id_b need a table of items: --items FILE")
        return Comparisons(tuple(features), partial(_of_items, items, Columns.of(header, ["id_a", "id_b"])), y)
    if items is not None:
        raise ValueError(f"items are for columns id_a and id_b, there are {listed(header)}")
    left, right = ([name[2:] for name in header if name.startswith(side)] for side in ("x_", "z_"))
    odd = sorted(set(left) ^ set(right))
    if odd:
        raise ValueError(f"there is no column {'z_' if odd[0] in left else 'x_'}{odd[0]} to compare with")
    if not left:
        others = "; for labelled rows, give --label COLUMN" if needs_y else ""
        raise ValueError(f"comparisons need columns x_* and z_*, or id_a and id_b, not {listed(header)}{others}")
    left = matching(left, features or ["*"])
    if not left:
        raise ValueError("no feature is left")
    both = [f"{side}{name}" for side in ("x_", "z_") for name in left]
    return Comparisons(tuple(left), Columns.of(header, both).numbers, y)


def read_items(rows: Rows, patterns: Sequence[str] = ()) -> tuple[list[str], dict[str, list[float]]]:
    """The features and the points of a table of items, by their column id."""
    if "id" not in rows.header:
        raise ValueError(f"{rows.name}: items need a column id, there are {listed(rows.header)}")
    names = [name for name in matching(rows.header, patterns or ["*"]) if name != "id"]
    key, features = Columns.of(rows.header, ["id"]), Columns.of(rows.header, names)
    found: dict[str, list[float]] = {}

    def read(row: Row) -> None:
        name = key.words(row)[0]
        if name in found:
            raise BadRow(row, f"item {name!r} is there twice", "id")
        found[name] = features.numbers(row)

    for _ in parsed(rows, read):
        pass
    if not found:
        raise ValueError(f"{rows.name}: it has a header and no rows, so no items")
    return names, found


def parsed(rows: Rows, parse: Callable[[Row], Any]) -> Any:
    """What the rows say, piece by piece; a bad one is an error."""
    for piece in rows.pieces():
        said = []
        for row in piece:
            try:
                said.append(parse(row.checked()))
            except BadRow as error:
                raise ValueError(f"{rows.name}: {error}") from error
            rows.used.add(row.raw, row.lines)
        yield said
