"""Tables whose rows are lines, CSV or JSON objects: from a file, a gzipped file or a pipe."""

from __future__ import annotations

import csv
import gzip
import json
import re
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO

from .rows import Decimals, Row, Used, flat, in_order

CHUNK = 1 << 16
GZIPPED = b"\x1f\x8b"
"""So a gzipped file begins, and no table."""

LONGEST = 1 << 24
"""The largest number of bytes in a line: what is longer is no row of numbers."""


class Lines:
    """Lines in pieces: as many as one read gives. What is gzipped is unzipped, whatever its name."""

    def __init__(self, name: str, file: BinaryIO, closes: bool = True) -> None:
        self.name, self.used = name, Used()
        self._file, self._closes = file, closes
        peek = getattr(file, "peek", None)  # a file in memory has none
        plain: Any = gzip.GzipFile(fileobj=file, mode="rb") if peek and peek(2)[:2] == GZIPPED else file
        self._read = self._pieces(getattr(plain, "read1", plain.read))
        self._waiting: list[bytes] = []

    def _pieces(self, read: Any) -> Iterator[list[bytes]]:
        parts: list[bytes] = []
        while chunk := read(CHUNK):
            parts.append(chunk)
            if b"\n" in chunk:
                *lines, rest = b"".join(parts).split(b"\n")
                parts = [rest]
                yield [line + b"\n" for line in lines]
            elif sum(map(len, parts)) > LONGEST:
                raise ValueError(f"{self.name}: it has a line of more than {LONGEST} bytes")
        if last := b"".join(parts):
            yield [last + b"\n"]  # so that it is the same line when others have been added

    def take(self, most: int | None = None) -> list[bytes]:
        """The next lines, at most ``most`` of them; none at the end."""
        if not self._waiting:
            try:
                self._waiting = next(self._read, [])
            except (EOFError, zlib.error) as error:
                raise ValueError(f"{self.name}: {error}") from None
        taken, self._waiting = self._waiting[:most], self._waiting[len(self._waiting[:most]) :]
        return taken

    def begin(self, advice: str = "save it as UTF-8") -> list[bytes]:
        """The first line that is not empty, after those that are; ``advice`` is for what is no text."""
        taken: list[bytes] = []
        while not any(map(bytes.strip, taken)) and (line := self.take(1)):
            taken += line
        if any(b"\0" in line for line in taken):
            raise ValueError(f"{self.name}: it is not UTF-8 text: {advice}")
        return taken

    def put_back(self, lines: list[bytes]) -> None:
        self._waiting = lines + self._waiting

    def close(self) -> None:
        if self._closes:
            self._file.close()

    def skip(self, lines: int, digest: str) -> None:
        while self.used.lines < lines and (part := self.take(lines - self.used.lines)):
            self.used.add(b"".join(part), len(part))
        self.used.check(self.name, lines, digest)


class TextRows:
    """Rows that are lines, taken apart by their dialect."""

    def __init__(self, lines: Lines, dialect: Csv | JsonLines) -> None:
        self._lines, self._dialect = lines, dialect
        self.name, self.used, self.header, self.skip = lines.name, lines.used, dialect.header, lines.skip
        self.close, self.decimals = lines.close, dialect.decimals

    def pieces(self) -> Iterator[list[Row]]:
        number, before, count = self.used.lines, b"", 1
        while lines := self._lines.take():
            rows = []
            for line in lines:
                number += 1
                if not line.strip():  # an empty line is used up with the row after it
                    before, count = before + line, count + 1
                    continue
                rows.append(self._row(number, before + line, line, count))
                before, count = b"", 1
            if rows:
                yield rows

    def _row(self, number: int, raw: bytes, line: bytes, count: int) -> Row:
        try:
            cells = self._dialect.cells(line.decode("utf-8"))
            return Row(number, cells, raw, count, decimals=self._dialect.decimals)
        except UnicodeDecodeError:
            return Row(number, [], raw, count, "it is not UTF-8 text")
        except (ValueError, csv.Error) as error:
            return Row(number, [], raw, count, str(error))


def _next_text(lines: Lines) -> str:
    """The next line that is not empty; it is used."""
    advice = "save it as CSV UTF-8"
    taken = lines.begin(advice)
    for line in taken:
        lines.used.add(line)
    try:
        return b"".join(taken[-1:]).decode("utf-8-sig")
    except UnicodeDecodeError:
        where = f"{lines.name}: line {lines.used.lines}"
        raise ValueError(f"{where}: it is not UTF-8 text: {advice}") from None


class Csv:
    """Cells between commas, or semicolons or tabs if the header has more of these; a row is a line.

    Where commas do not separate cells, numbers may have decimal commas, as Excel writes them in much of Europe. A
    line ``sep=;`` before the header, for Excel, tells the separator.
    """

    def __init__(self, lines: Lines) -> None:
        text = _next_text(lines)
        told = re.fullmatch('"?sep=(.)"?', text.rstrip("\r\n"), re.IGNORECASE)
        if told:
            text = _next_text(lines)
        where = f"{lines.name}: line {lines.used.lines}"
        if text.lstrip().startswith("{"):
            raise ValueError(f"{where} looks like JSON; --format jsonl")
        plain = re.sub('"[^"]*"', "", text)  # a name may have a comma
        counts = {mark: plain.count(mark) for mark in ",;\t"}
        self.delimiter = told[1] if told else max(counts, key=counts.__getitem__)
        if not told and 0 < counts[","] == counts[";"] == max(counts.values()):
            raise ValueError(
                f"{where}: it has as many commas as semicolons, and does not tell "
                "which of them separate the cells: put names that have one in double quotes"
            )
        self.decimals = None if self.delimiter == "," else Decimals()
        self.header: list[str] = []
        try:
            self.header = [name.strip() for name in self.cells(text)]
        except csv.Error as error:
            raise ValueError(f"{where}: {error}") from None

    def cells(self, line: str) -> list[Any]:
        line = line.rstrip("\r\n")
        if '"' in line:
            cells = next(csv.reader([line], delimiter=self.delimiter, strict=True))
        else:
            cells = line.split(self.delimiter)
        if self.header and len(cells) != len(self.header):
            hint = " (cells must be separated by ; if numbers have decimal commas)" if self._torn(cells) else ""
            raise ValueError(f"it has {len(cells)} cells, expected {len(self.header)}{hint}")
        return cells

    def _torn(self, cells: list[str]) -> bool:
        """Whether decimal commas may have made these cells of fewer: then no number has a point, too."""
        more = len(cells) - len(self.header)
        digits = sum(cell.strip().lstrip("+-").isdigit() for cell in cells)
        points = any(re.fullmatch(r"[+-]?\d*\.\d+", cell.strip()) for cell in cells)
        return self.delimiter == "," and 0 < more <= len(self.header) and digits >= 2 * more and not points


class JsonLines:
    """A JSON object per line, all with the names of the first."""

    decimals = None

    def __init__(self, lines: Lines) -> None:
        first = lines.begin()
        lines.put_back(first)
        if not b"".join(first).strip():
            raise ValueError(f"{lines.name}: it is empty")
        try:
            self.header = list(flat(_parsed(b"".join(first[-1:]).decode("utf-8"))))
        except ValueError as error:
            raise ValueError(f"{lines.name}: line {max(1, len(first))}: {error}") from None

    def cells(self, line: str) -> list[Any]:
        return in_order(_parsed(line), self.header)


def _parsed(line: str) -> dict[str, Any]:
    try:
        record = json.loads(line.removeprefix("\ufeff"))
    except (json.JSONDecodeError, RecursionError) as error:
        why = (
            "nested too deeply"
            if isinstance(error, RecursionError)
            else f"{error.msg} at character {error.pos + 1}"
        )
        raise ValueError(f"it is not JSON: {why}") from None
    if not isinstance(record, dict):
        raise ValueError(f"it must be a JSON object, got {line.strip()[:40]}")
    return record
