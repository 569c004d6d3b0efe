"""Timestamped, labelled texts: a stream as it lies in a table."""

from __future__ import annotations

import codecs
import csv
import gzip
import re
import sys
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from io import TextIOWrapper
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .mojibake import windows_1252
from .tables import BadRow, Columns, Row, read_rows
from .tables.reading import Format
from .tables.rows import no_column

TIMES = ("t", "time", "timestamp", "date", "created_at")
"""Names of columns that are taken for the time, unless one is named."""

_NOT_UTF_8 = "ocelad.windows-1252"
codecs.register_error(_NOT_UTF_8, windows_1252)


@dataclass(frozen=True, eq=False)
class LabelledTexts:
    """Texts in order of time; ``labels`` are numbers of ``classes``.

    >>> texts = LabelledTexts.of(["2017-11-02", "2017-11-01"], ["b", "a"], ["second", "first"])
    >>> texts.texts, texts.classes, texts.labels.tolist()
    (('first', 'second'), ('a', 'b'), [0, 1])
    """

    times: NDArray[np.datetime64]
    labels: NDArray[np.int64]
    texts: tuple[str, ...]
    classes: tuple[str, ...]
    source: str = ""

    def __len__(self) -> int:
        return len(self.texts)

    @classmethod
    def of(cls, times: Any, labels: Sequence[str], texts: Sequence[str], source: str = "") -> LabelledTexts:
        """From columns of equal length, in any order of time; ``source`` says where they are from."""
        if not len(times) == len(labels) == len(texts):
            lengths = f"{len(times)}, {len(labels)} and {len(texts)}"
            raise ValueError(f"times, labels and texts must be of one length, got {lengths}")
        when = np.array(times, dtype="datetime64[s]")
        classes, numbers = np.unique(np.array(labels, dtype=str), return_inverse=True)
        order = np.argsort(when, kind="stable")
        ordered = tuple(texts[k] for k in order)
        return cls(when[order], numbers[order].astype(np.int64), ordered, tuple(classes.tolist()), source)

    @classmethod
    def read(
        cls,
        path: str | Path,
        time: str | None = None,
        label: str = "label",
        text: str = "text",
        format: Format | None = None,
    ) -> LabelledTexts:
        """From a table (CSV, JSON lines, Parquet); ``time``, ``label`` and ``text`` name its columns.

        Times are in ISO 8601 or in seconds since 1970. A text may be empty, a time and a label not.
        """
        name, header, rows = _opened(str(path), format)
        if not header:
            raise ValueError(f"{name}: it is empty; the first line must name the columns")
        if time is None:
            time = next((column for column in TIMES if column in header), TIMES[0])
        for column in (time, label, text):
            if column not in header:
                known = f"; {', '.join(TIMES[1:])} are known, too" if column is time is TIMES[0] else ""
                raise ValueError(f"{name}: {no_column(column, header)}{known}")
        words, said = Columns.of(header, [time, label]), header.index(text)
        found = []
        try:
            for row in rows:
                when, which = words.words(row.checked())
                try:
                    found.append((_time(when), which, str(row.cells[said] or "")))
                except ValueError:
                    raise BadRow(row, f"it must be a time such as 2017-11-02T09:30Z, got {when!r}", time) from None
        except BadRow as error:
            raise ValueError(f"{name}: {error}") from None
        if not found:
            raise ValueError(f"{name}: it has no texts, only the names of columns")
        times, labels, texts = zip(*found, strict=True)
        return cls.of(times, labels, texts, name)


def _opened(path: str, format: Format | None) -> tuple[str, Sequence[str], Iterator[Row]]:
    """Name, columns and rows of a table. In CSV a text may go over several lines, between quotes."""
    plain = path.lower().removesuffix(".gz")
    if format == "csv" or (format is None and (path == "-" or plain.endswith((".csv", ".tsv")))):
        name, rows = "standard input" if path == "-" else path, _csv(path, plain.endswith(".tsv"))
        return name, next(rows, Row(1, [], b"")).cells, rows
    table = read_rows(path, format)

    def rest() -> Iterator[Row]:
        with closing(table):
            yield from (row for piece in table.pieces() for row in piece)

    return table.name, table.header, rest()


def _csv(path: str, tabs: bool) -> Iterator[Row]:
    zipped = path.lower().endswith(".gz")
    binary = sys.stdin.buffer if path == "-" else gzip.open(path) if zipped else open(path, "rb")  # noqa: SIM115
    with TextIOWrapper(binary, encoding="utf-8-sig", errors=_NOT_UTF_8, newline="") as file:
        reader = csv.reader(file, delimiter="\t" if tabs else ",", strict=True)
        line, width = 1, 0
        try:
            for cells in reader:
                width = width or len(cells)
                if cells:
                    wrong = "" if len(cells) == width else f"it must have {width} cells, got {len(cells)}"
                    yield Row(line, cells, b"", problem=wrong)
                line = reader.line_num + 1
        except csv.Error as error:
            raise BadRow(Row(line, [], b""), str(error)) from None
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise ValueError(f"{path}: after line {line - 1}: {error}") from None


def _time(word: str) -> datetime:
    """In UTC, and without saying so, as NumPy's times are. Eight digits are a date, if they can be one."""
    try:
        if re.fullmatch(r"(19|20)\d{6}", word):
            return datetime.strptime(word, "%Y%m%d")
    except ValueError:
        pass
    try:
        when = datetime.fromtimestamp(float(word), UTC)
    except (ValueError, OverflowError, OSError):
        when = datetime.fromisoformat(word)
    return when.astimezone(UTC).replace(tzinfo=None) if when.tzinfo else when
