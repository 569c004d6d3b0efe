"""Preprocessors: from indicators, the numbers of rows say, to points."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from .. import validation as validate
from ..dataframes import check_finite, column_names, is_frame, numbers

_EXPECTED = "preprocessor must be a table of finite numbers, at least in the rows that are asked for"


class PreprocessorError(ValueError):
    """A preprocessor failed on the indicators it was given."""


@dataclass(frozen=True, eq=False)
class Rows:
    """The preprocessor that looks points up by their row number.

    Of a table, points are numbers, with NaN where a value is missing, and ``columns`` has the names. If a column
    holds anything else, ``problem`` says so: ``features`` may be able to take it.
    """

    points: Any
    columns: list[Any] | None = None
    problem: ValueError | None = None

    def __call__(self, rows: Any) -> Any:
        return self.points[rows]

    def numbers(self, rows: Any) -> Any:
        """Points of which each value is known; if not, the column is named, and the row of the table."""
        if self.problem is not None:
            raise self.problem
        made = called(self, rows)
        if self.columns is not None and not np.isfinite(made).all():
            check_finite(made, self.columns, np.arange(len(self.points))[rows], _EXPECTED)
        return made


def read_preprocessor(given: Any) -> Callable[[Any], Any] | None:
    """A function from indicators to points."""
    if sparse.issparse(given):
        return Rows(given.tocsr())
    if isinstance(given, Mapping):
        raise ValueError(
            "preprocessor must be an array, a table or a function, got a dictionary: give a function of its keys, "
            "lambda keys: np.array([points[key] for key in keys])"
        )
    if is_frame(given):
        try:
            return Rows(numbers(given, "preprocessor", "a table of finite numbers"), column_names(given))
        except ValueError as problem:
            return Rows(np.asarray(given), None, problem)
    if any(hasattr(given, name) for name in ("__len__", "shape", "__array__")):
        return Rows(np.asarray(given))
    if given is None or callable(given):
        return given
    raise ValueError(
        f"Invalid type for the preprocessor: {type(given)}. You should provide either None, an array-like object, "
        "or a callable."
    )


def check_rows(form: Any, rows: Any, name: str) -> None:
    """Raise where a row number is none of a table's: -1 is what others write for one that is missing."""
    if not isinstance(form, Rows) or rows.dtype.kind not in "iu" or not rows.size or not np.ndim(form.points):
        return
    count = form.points.shape[0]
    if rows.min() < 0 or rows.max() >= count:
        where = validate.first((rows < 0) | (rows >= count))
        raise PreprocessorError(
            f"{name} must be row numbers from 0 to {count - 1}, found {rows[where]} at index {where}"
        )


def formed(form: Callable[[Any], Any], indicators: Any) -> Any:
    """Points, dense or CSR, not checked further."""
    made = form.numbers(indicators) if isinstance(form, Rows) else called(form, indicators)
    if is_frame(made):
        return validate.real(made, "what preprocessor returns", "a table of finite numbers")
    return made.tocsr() if sparse.issparse(made) else np.asarray(made)


def called(form: Callable[[Any], Any], indicators: Any) -> Any:
    """What a preprocessor gives, as it gives it."""
    try:
        return form(indicators)
    except Exception as error:
        hint = "" if isinstance(form, Rows) else ". It is given an array of indicators, and returns a row for each"
        text = f"An error occurred when trying to use the preprocessor: {error!r}{hint}"
        raise PreprocessorError(text) from error
