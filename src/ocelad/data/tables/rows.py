"""What a table is here: rows that come in pieces, and a record of how much of it has been used.

A piece is what one read gives. A pipe that pauses is never waited for while rows are at hand; one that does not
comes in large pieces. How far a table has been used is a number of lines and the SHA-256 of them, so that going on
later can check that it is the same table.
"""

from __future__ import annotations

import hashlib
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Row:
    """Cells, as text or as numbers, or the problem that there is with them.

    ``raw`` is all the input that is used up with this row, and ``lines`` the number of its lines. ``decimals`` is
    there where numbers may have decimal commas.
    """

    line: int
    cells: list[Any]
    raw: bytes
    lines: int = 1
    problem: str = ""
    decimals: Decimals | None = None

    def checked(self) -> Row:
        if self.problem:
            raise BadRow(self, self.problem)
        return self


_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}[.,]\d{3}")


class Decimals:
    """What separates the decimals of a table's numbers, a point or a comma: the first number that has one decides.

    That ``1.500`` is one and a half in one row and fifteen hundred in the next cannot be, so both are an error.
    ``mark`` is what has been decided: empty, a point or a comma; ``first`` says by which number.
    """

    mark, first = "", "numbers before it"

    def plain(self, cells: list[Any]) -> list[Any]:
        """The cells with points for commas."""
        return [cell.replace(",", ".") if isinstance(cell, str) else cell for cell in cells]

    def odd(self, cells: list[Any], line: int, names: Sequence[str]) -> int | None:
        """Which of these numbers of a line has the other mark than those before it, if one has."""
        marked = [str(cell).strip() for cell in cells if "," in str(cell) or "." in str(cell)]
        if not self.mark and marked and all(map(_THOUSANDS.fullmatch, marked)):  # one that cannot be would tell
            cell = marked[0]
            taken = f"{cell} is taken for {self.plain([cell])[0]}, not {re.sub('[.,]', '', cell)}"
            warnings.warn(f"{taken}: numbers must have no mark between thousands", stacklevel=2)
        for place, cell in enumerate(cells):
            for mark in ",.":
                if mark in str(cell):
                    if not self.mark:
                        self.mark, self.first = mark, f"{cell!r} in line {line}, column {names[place]}"
                    if mark != self.mark:
                        return place
        return None


class BadRow(ValueError):
    """A row that cannot be used: which line, which column, and what is wrong."""

    def __init__(self, row: Row, problem: str, column: str = "") -> None:
        self.row, self.problem, self.column = row, problem, column
        super().__init__(f"line {row.line}{column and f', column {column}'}: {problem}")


class Used:
    """How much of a table has been used."""

    def __init__(self) -> None:
        self.lines, self._hash = 0, hashlib.sha256()

    def add(self, raw: bytes, lines: int = 1) -> None:
        self._hash.update(raw)
        self.lines += lines

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()

    def check(self, name: str, lines: int, digest: str) -> None:
        """Whether it is what another reader had used."""
        if self.lines < lines:
            raise ValueError(f"{name}: another input: it has {self.lines} lines, and {lines} were used before")
        if self.digest != digest:
            raise ValueError(f"{name}: another input: its first {lines} lines are not those that were used before")


class Rows(Protocol):
    """A table that is read once: ``skip``, if at all, and then ``pieces``. Whoever has used rows says so to
    ``used``."""

    @property
    def name(self) -> str: ...

    @property
    def header(self) -> list[str]: ...

    @property
    def used(self) -> Used: ...

    @property
    def decimals(self) -> Decimals | None: ...

    def skip(self, lines: int, digest: str, /) -> None:
        """Go to where an earlier reader stopped, if that one read the same."""

    def pieces(self) -> Iterator[list[Row]]: ...

    def close(self) -> None: ...


SHOWN = 12
"""How many names of columns are shown in an error."""


def listed(names: Sequence[str]) -> str:
    """Names of columns for an error: all, or the first of many and the last, which often is the label.

    >>> listed(["a", "b"]), listed([f"f{k}" for k in range(100)])
    ('a, b', 'f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, ..., f99')

    Where most are numbers such as 5.1, the header is missing, and that is said, too.
    """
    few = list(names) if len(names) <= SHOWN else [*names[: SHOWN - 1], "...", names[-1]]
    numbers = sum(bool(re.fullmatch(r"[+-]?\d*[.,]\d+", name)) for name in names)
    hint = " (line 1 must have the names of the columns)" if 2 * numbers >= len(names) > 0 else ""
    return ", ".join(few) + hint


def no_column(name: str, header: Sequence[str]) -> str:
    """What an error says of a column that is missing.

    >>> no_column("class", ["a", "CLASS"]), no_column("class", ["a", "b"])
    ('there is no column class: did you mean CLASS?', 'there is no column class: there are a, b')
    >>> no_column("class", ["a b class"])
    "there is no column class: there is only one, 'a b class': separate cells by , ; or tab"
    """
    like = [other for other in header if other.lower() == name.lower()]
    there = f"did you mean {like[0]}?" if like else unseparated(header) or f"there are {listed(header)}"
    return f"there is no column {name}: {there}"


def unseparated(header: Sequence[str]) -> str:
    """What is said of a header whose names spaces separate."""
    one = len(header) == 1 and len(header[0].split()) > 1
    return f"there is only one, {header[0]!r}: separate cells by , ; or tab" if one else ""


def flat(record: dict[str, Any]) -> dict[str, Any]:
    """Lists as columns of their own.

    >>> flat({"x": [1.0, 2.0], "y": 1})
    {'x_0': 1.0, 'x_1': 2.0, 'y': 1}
    """
    cells: dict[str, Any] = {}
    for name, value in record.items():
        cells |= (
            {f"{name}_{k}": each for k, each in enumerate(value)} if isinstance(value, list) else {name: value}
        )
    return cells


def in_order(record: dict[str, Any], header: list[str]) -> list[Any]:
    """The cells of a record, if it has the columns of the header."""
    cells = flat(record)
    if cells.keys() != set(header):
        odd = min(cells.keys() ^ set(header))
        raise ValueError(f"column {odd} is {'not in the first row' if odd in cells else 'missing'}")
    return [cells[name] for name in header]
