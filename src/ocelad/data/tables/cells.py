"""Cells as numbers, signs and words, or a `BadRow` that says which one is not."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, time
from fnmatch import fnmatchcase
from typing import Any

from .rows import BadRow, Decimals, Row, listed

LARGEST = 1e30
"""A number in a table is at most so large: beyond that it is a mistake, and its squares would overflow."""

_SIGNS = {"1": 1, "+1": 1, "1.0": 1, "true": 1, "-1": -1, "-1.0": -1, "0": -1, "0.0": -1, "false": -1}
_SIGNS |= {word.replace(".", ","): y for word, y in _SIGNS.items()}

_DATE = re.compile(r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}\b|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}\b|\d{1,2}:\d{2}\b")
_WITH_MARKS = re.compile(r"[+-]?\d[\d.,]*")
_WITH_SPACES = re.compile(r"[+-]?\d{1,3}(['\u2019\s]\d{3})+([.,]\d*)?")  # \s: also the spaces that do not break


@dataclass(frozen=True)
class Columns:
    """Some of the columns of a table, by name, and where they are."""

    names: tuple[str, ...]
    places: tuple[int, ...]

    @classmethod
    def of(cls, header: Sequence[str], names: Sequence[str]) -> Columns:
        return cls(tuple(names), tuple(header.index(name) for name in names))

    def numbers(self, row: Row) -> list[float]:
        cells = given = [row.cells[place] for place in self.places]
        if row.decimals is not None:
            cells = row.decimals.plain(given)
        try:
            values = list(map(float, cells))
            sound = sum(map(abs, values)) < LARGEST and b"_" not in row.raw
        except (TypeError, ValueError, OverflowError):
            sound = False
        if not sound:
            for name, cell, said in zip(self.names, cells, given, strict=True):
                size = _size(cell)
                if not size < LARGEST:
                    expected = "a finite number" if not math.isfinite(size) else f"at most {LARGEST:g} in size"
                    raise BadRow(
                        row, f"it must be {expected}, got {_shown(said)}{_kind(said, row.decimals)}", name
                    )
        if row.decimals is not None and (odd := row.decimals.odd(given, row.line, self.names)) is not None:
            expected = f"a decimal {'comma' if row.decimals.mark == ',' else 'point'}, as {row.decimals.first}"
            thousands = " (is one a mark between thousands?)"
            raise BadRow(row, f"it must have {expected}, got {_shown(given[odd])}{thousands}", self.names[odd])
        return values

    def words(self, row: Row) -> list[str]:
        cells = [row.cells[place] for place in self.places]
        for name, cell in zip(self.names, cells, strict=True):
            if cell is None or not str(cell).strip():
                raise BadRow(row, "it must not be empty", name)
        return [str(cell).strip() for cell in cells]

    def sign(self, row: Row) -> int:
        cell = row.cells[self.places[0]]
        y = _SIGNS.get(str(cell).strip().lower())
        if y is None:
            expected = "1 (similar) or -1 (different; 0 will do)"
            raise BadRow(row, f"it must be {expected}, got {_shown(cell)}", self.names[0])
        return y


def _size(cell: Any) -> float:
    """|x|, or infinity if it is no number; 1_000 is one to Python alone."""
    try:
        size = abs(float(cell))
    except (TypeError, ValueError, OverflowError):
        return math.inf
    return math.inf if math.isnan(size) or (isinstance(cell, str) and "_" in cell) else size


def _shown(cell: Any) -> str:
    text = "nothing" if cell is None or cell == "" else repr(cell)
    if isinstance(cell, (date, time)):  # of Parquet
        text = str(cell).removesuffix(" 00:00:00")
    return text if len(text) <= 40 else text[:37] + "..."


def _kind(cell: Any, decimals: Decimals | None) -> str:
    """What a cell that is no number might be."""
    if isinstance(cell, (date, time)):
        return ", a date or a time"
    if not isinstance(cell, str):
        return ""
    if _DATE.match(cell.strip()):
        return ", a date or a time"
    marks = _WITH_MARKS.fullmatch(cell.strip()) and ("," in cell or "." in cell)
    if _WITH_SPACES.fullmatch(cell.strip()) or (marks and decimals is not None):
        return ": numbers must have no mark between thousands"
    if marks:
        return ": decimal commas need ; or tabs between the cells, and thousands no mark at all"
    return ""


def matching(header: Sequence[str], patterns: Sequence[str]) -> list[str]:
    """The columns whose names match one of the patterns, in the table's order.

    A pattern that begins with ``!`` leaves out those that match the rest of it.

    >>> matching(["id", "f0", "f1"], ["f*"])
    ['f0', 'f1']
    >>> matching(["id", "f0", "f1"], ["!id"])
    ['f0', 'f1']
    """
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern.removeprefix("!")) for name in header):
            each = "; repeat the option for each pattern" if "," in pattern else ""
            raise ValueError(f"no column matches {pattern!r}: there are {listed(header)}{each}")
    out = [pattern[1:] for pattern in patterns if pattern.startswith("!")]
    wanted = [pattern for pattern in patterns if not pattern.startswith("!")] or ["*"]
    return [
        name
        for name in header
        if any(fnmatchcase(name, pattern) for pattern in wanted)
        and not any(fnmatchcase(name, pattern) for pattern in out)
    ]
