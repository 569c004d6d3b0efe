"""Tables with named columns, of pandas, polars or pyarrow, as arrays of numbers.

Whole numbers, fractions and truth values count, also in columns that could hold missing values. A column that
holds anything else is named in the error: an array would only say that it is made of objects, and a date or a
category would silently pass for a number.
"""

from __future__ import annotations

import re
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from .protocols import Array

NUMERIC = re.compile(r"(sparse\[)?(u?int(?!erval)|float|double|halffloat|bool|decimal)", re.IGNORECASE)
"""How the types of numeric columns begin, in all three libraries."""

KINDS = {
    "intervals": re.compile(r"interval", re.IGNORECASE),
    "dates or times": re.compile(r"date|time|duration|period", re.IGNORECASE),
    "categories": re.compile(r"categor|enum|dictionary", re.IGNORECASE),
    "text": re.compile(r"str(?!uct)|utf8", re.IGNORECASE),
}
"""What the other columns hold, by the names of their types."""


def is_frame(value: Any) -> bool:
    """Whether this is a table with named columns: of pandas, polars, pyarrow, ..."""
    return hasattr(value, "columns") and hasattr(value, "shape") and not isinstance(value, np.ndarray)


def column_names(frame: Any) -> list[Any]:
    """The names of the columns, in order."""
    return list(getattr(frame, "column_names", frame.columns))  # pyarrow's columns are the columns themselves


def numbers(frame: Any, name: str, expected: str) -> Array:
    """The table as an array of floats, in which missing values are NaN."""
    kinds = [str(kind) for kind in _types(frame)]
    if all(map(NUMERIC.match, kinds)) and not any(kind.endswith("Int128") for kind in kinds):
        array = np.asarray(frame)
        if array.dtype.kind in "fiu":
            return array.astype(np.float64, copy=False)
    columns = [
        _column(_values(frame, k, kind), kind, str(column), f"{name} must be {expected}")
        for k, (kind, column) in enumerate(zip(kinds, column_names(frame), strict=True))
    ]
    return np.column_stack(columns) if columns else np.zeros(frame.shape)


def finite_numbers(frame: Any, name: str, expected: str) -> Array:
    """The same of a table in which nothing is missing."""
    array = numbers(frame, name, expected)
    check_finite(array, column_names(frame), np.arange(len(array)), f"{name} must be {expected}")
    return array


def check_finite(array: Array, columns: list[Any], rows: Any, problem: str) -> None:
    """Raise with the name of a column that lacks a value, and the number that its row has in the table."""
    if np.isfinite(array).all():
        return
    row, k = (int(i) for i in np.argwhere(~np.isfinite(array))[0])
    found = "a missing value (NaN)" if np.isnan(array[row, k]) else f"{array[row, k]:g}"
    raise ValueError(f"{problem}: column {str(columns[k])!r} has {found} in row {rows[row]}")


def _types(frame: Any) -> list[Any]:
    return list(frame.schema.types if hasattr(frame, "column_names") else frame.dtypes)


def _values(frame: Any, k: int, kind: str) -> Any:
    if hasattr(frame, "iloc"):
        return np.asarray(frame.iloc[:, k])
    if kind.endswith("Int128"):  # polars has it, numpy has not
        return np.array(frame[:, k].to_list(), dtype=object)
    return np.asarray(frame.column(k) if hasattr(frame, "column_names") else frame[:, k])


def _column(values: Any, kind: str, column: str, problem: str) -> Array:
    for held, pattern in KINDS.items():
        if pattern.search(kind) and not NUMERIC.match(kind):
            first = f", {str(values[0])!r} in row 0" if len(values) else ""
            raise ValueError(f"{problem}: column {column!r} holds {held} ({kind}){first}")
    if values.dtype.kind in "fiub":
        return values.astype(np.float64)
    numeric = np.empty(len(values))
    for row, value in enumerate(values.tolist()):
        if isinstance(value, (Real, Decimal)):
            try:
                numeric[row] = value
            except (OverflowError, ValueError):  # 10**400, a signalling NaN
                reason = "a number that no float can hold"
                raise ValueError(f"{problem}: column {column!r} holds {reason} in row {row}") from None
        elif _is_missing(value):
            numeric[row] = np.nan
        else:
            held = "text" if isinstance(value, str) else f"a {type(value).__name__}"
            raise ValueError(f"{problem}: column {column!r} holds {held}, {value!r} in row {row}")
    return numeric


def _is_missing(value: Any) -> bool:
    """None, and pandas' NA: the only value of which nothing is known, not even whether it equals itself."""
    return value is None or type(value).__name__ == "NAType"
