"""Tables whose rows are lines, CSV or JSON objects: from a file, a gzipped file or a pipe."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from typing import Any, BinaryIO

from .rows import Row, Used, flat, in_order

CHUNK = 1 << 16
LONGEST = 1 << 24
"""So many bytes a line has at most: what is longer is no row of numbers."""


class Lines:
    """Lines in pieces: as many as one read gives."""

    def __init__(self, name: str, file: BinaryIO, closes: bool = True) -> None:
        self.name, self.used = name, Used()
        self._file, self._closes = file, closes
        self._read = self._pieces(getattr(file, "read1", file.read))
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
            yield [last]

    def take(self, most: int | None = None) -> list[bytes]:
        """The next lines, at most so many; none at the end."""
        if not self._waiting:
            self._waiting = next(self._read, [])
        taken, self._waiting = self._waiting[:most], self._waiting[len(self._waiting[:most]) :]
        return taken

    def put_back(self, line: bytes) -> None:
        self._waiting.insert(0, line)

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
        self.close = lines.close

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
            return Row(number, self._dialect.cells(line.decode("utf-8")), raw, count)
        except UnicodeDecodeError:
            return Row(number, [], raw, count, "it is not UTF-8 text")
        except (ValueError, csv.Error) as error:
            return Row(number, [], raw, count, str(error))


class Csv:
    """Cells between commas, or semicolons or tabs if the header has more of these; a row is a line."""

    def __init__(self, lines: Lines) -> None:
        first = b"".join(lines.take(1))
        lines.used.add(first)
        text = first.decode("utf-8-sig", "replace")
        self.delimiter = max(",;\t", key=text.count)
        self.header: list[str] = []
        self.header = [name.strip() for name in self.cells(text)]

    def cells(self, line: str) -> list[Any]:
        line = line.rstrip("\r\n")
        if '"' in line:
            cells = next(csv.reader([line], delimiter=self.delimiter, strict=True))
        else:
            cells = line.split(self.delimiter)
        if self.header and len(cells) != len(self.header):
            raise ValueError(f"it has {len(cells)} cells, expected {len(self.header)}")
        return cells


class JsonLines:
    """A JSON object per line, all with the names of the first."""

    def __init__(self, lines: Lines) -> None:
        first = b"".join(lines.take(1))
        lines.put_back(first)
        try:
            self.header = list(flat(_parsed(first.decode("utf-8"))))
        except ValueError as error:
            raise ValueError(f"{lines.name}: line 1: {error}") from None

    def cells(self, line: str) -> list[Any]:
        return in_order(_parsed(line), self.header)


def _parsed(line: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"it is not JSON: {error}") from None
    if not isinstance(record, dict):
        raise ValueError(f"it must be a JSON object, got {line.strip()[:40]}")
    return record
