"""Columns that say which row it is, and not how it is: ids, batch numbers, dates. As features they mislead.

A name tells, as ``id``, ``user_id`` or ``timestamp`` do, or the first rows: numbers that never fall (or never
rise) from row to row, different whole numbers from hardly more than there are rows, and dates such as 20240131.
What is only likely is not reported: a warning that is often wrong is not read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress

import numpy as np

from ...protocols import Array
from .cells import Columns
from .rows import BadRow, Row

LEAST, MOST = 50, 1000
"""With so many rows it is decided, and on no more."""

FEW = 20
"""A shorter table says nothing."""

LEVELS = 8
"""Different numbers that a column has at least if its order means something."""

_NAME = re.compile(
    r"|id|uuid|guid|.*_id|id_.*|index|idx|row|row_?(number|no|nr|id)|batch|batch_?(number|no|nr)|date|datetime|time"
    r"|timestamp|.*_(date|timestamp)|year|unnamed: ?\d+"
)
_CAMEL = re.compile(r".*[a-z]I[dD]")


def by_name(names: Sequence[str]) -> list[str]:
    """The columns whose names say so.

    >>> by_name(["PassengerId", "age", "covid", "user_id", "date"])
    ['PassengerId', 'user_id', 'date']
    """
    return [name for name in names if _NAME.fullmatch(name.strip().lower()) or _CAMEL.fullmatch(name)]


def by_values(names: Sequence[str], rows: Array) -> list[str]:
    """The columns whose numbers in the first rows, of shape (rows, columns), say so.

    >>> rows = np.column_stack([np.arange(60), np.sin(np.arange(60))])
    >>> by_values(["position", "height"], rows)
    ['position']
    """
    if len(rows) < FEW:
        return []
    return [name for name, column in zip(names, rows.T, strict=True) if _ordered(column) or _dates(column)]


def _ordered(column: Array) -> bool:
    steps, levels = np.diff(column), np.unique(column)
    if len(levels) < LEVELS:
        return False
    whole = bool((column == np.round(column)).all())
    successive = whole and len(levels) == len(column) and np.ptp(column) < 1.5 * len(column)
    return bool((steps >= 0).all() or (steps <= 0).all() or successive)


def _dates(column: Array) -> bool:
    if not ((column == np.round(column)) & (column > 19000100) & (column < 21001232)).all():
        return False
    month, day = column // 100 % 100, column % 100
    return bool(((month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)).all() and len(np.unique(column)) > 1)


class FirstRows:
    """The first rows of a table as they are read: `look` says once which of its columns, by their numbers, say
    which row it is."""

    def __init__(self, columns: Columns) -> None:
        self.columns = columns
        self._seen: list[list[float]] | None = []

    def look(self, rows: Sequence[Row], last: bool = False) -> list[str]:
        """Rows that have been read, or that there are no more."""
        if self._seen is None:
            return []
        for row in rows[: MOST - len(self._seen)]:
            with suppress(BadRow):
                self._seen.append(self.columns.numbers(row.checked()))
        if len(self._seen) < LEAST and not last:
            return []
        seen, self._seen = self._seen, None
        return by_values(self.columns.names, np.array(seen).reshape(len(seen), len(self.columns.names)))
