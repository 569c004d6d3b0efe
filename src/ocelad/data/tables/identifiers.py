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

_THINGS = "user|client|customer|person|patient|case|order|item|product|session|number|num|no|nr|code"
_NAME = re.compile(
    rf"|id|uid|uuid|guid|(?!.*diameter).*_id|id_({_THINGS})|index|idx|row|row_?(number|no|nr|id)|unnamed:_?\d+"
    r"|batch|batch_?(number|no|nr)|.*_nr|.*nummer|ean|isbn|phone|phone_(number|no|nr)|telephone|telefon"
    r"|zip|zip_?code|post_?code|postal_code|plz"
    r"|date|datetime|time|timestamp|.*_(date|timestamp)|date_of_.*|birth_?date|.*ed_at|year"
)
"""With ``_`` between words. An ID after a diameter is a measure, as is a ratio after an id."""


def by_name(names: Sequence[str], rows: Array | None = None) -> list[str]:
    """The columns whose names say so, and whose numbers in the first rows are not just 0 and 1, as of an answer.

    >>> by_name(["PassengerId", "age", "covid", "user id", "OrderDate"])
    ['PassengerId', 'user id', 'OrderDate']
    """
    found = [k for k, name in enumerate(names) if _NAME.fullmatch(_snake(name))]
    return [names[k] for k in found if rows is None or set(rows[:, k].tolist()) != {0.0, 1.0}]


def _snake(name: str) -> str:
    """Small letters, and ``_`` between words.

    >>> _snake("user-id"), _snake("OrderDate"), _snake("customerID")
    ('user_id', 'order_date', 'customer_id')
    """
    parted = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name.strip())
    return re.sub(r"[\s.\-]+", "_", parted).lower()


def by_values(names: Sequence[str], rows: Array) -> dict[str, str]:
    """The columns whose numbers in the first rows, of shape (rows, columns), say so, and what these are.

    >>> rows = np.column_stack([np.arange(60), np.sin(np.arange(60))])
    >>> by_values(["position", "height"], rows)
    {'position': 'numbers that never fall from row to row'}
    """
    if len(rows) < FEW:
        return {}
    found = {name: _told(column) for name, column in zip(names, rows.T, strict=True)}
    return {name: told for name, told in found.items() if told}


def _told(column: Array) -> str:
    steps, levels = np.diff(column), np.unique(column)
    whole = bool((column == np.round(column)).all())
    if len(levels) >= LEVELS:
        if (steps >= 0).all():
            return "numbers that never fall from row to row"
        if (steps <= 0).all():
            return "numbers that never rise from row to row"
        if whole and len(levels) == len(column) and np.ptp(column) < 1.5 * len(column):
            return "numbers like those of rows, in another order"
    return "numbers like dates, such as 20240131" if whole and _dates(column) else ""


def _dates(column: Array) -> bool:
    if not ((column > 19000100) & (column < 21001232)).all():
        return False
    month, day = column // 100 % 100, column % 100
    return bool(((month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)).all() and len(np.unique(column)) > 1)


class FirstRows:
    """The first rows of a table as they are read: `look` says once which of its features say which row it is, and
    by what numbers; nothing where the name tells. Of a comparison a feature has two columns."""

    def __init__(self, columns: Columns, features: Sequence[str]) -> None:
        self.columns, self.features = columns, features
        self._names = [name if name in features else name[2:] for name in columns.names]
        self._seen: list[list[float]] | None = []

    def look(self, rows: Sequence[Row], last: bool = False) -> dict[str, str]:
        """Rows that have been read, or that there are no more."""
        if self._seen is None:
            return {}
        for row in rows[: MOST - len(self._seen)]:
            with suppress(BadRow):
                self._seen.append(self.columns.numbers(row.checked()))
        if len(self._seen) < LEAST and not last:
            return {}
        seen, self._seen = np.array(self._seen).reshape(len(self._seen), len(self._names)), None
        if not self._names:  # the features are those of items
            return dict.fromkeys(by_name(self.features), "")
        return by_values(self._names, seen) | dict.fromkeys(by_name(self._names, seen), "")
