"""Timestamped, labelled texts: a stream as it lies in a CSV file."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

TIMES = ("t", "time", "timestamp", "date", "created_at")
"""The columns looked for, unless one is named."""


@dataclass(frozen=True, eq=False)
class LabelledTexts:
    """Texts in order of time; ``labels`` numbers the ``classes``.

    >>> texts = LabelledTexts.of(["2017-11-02", "2017-11-01"], ["b", "a"], ["second", "first"])
    >>> texts.texts, texts.classes, texts.labels.tolist()
    (('first', 'second'), ('a', 'b'), [0, 1])
    """

    times: NDArray[np.datetime64]
    labels: NDArray[np.int64]
    texts: tuple[str, ...]
    classes: tuple[str, ...]
    synthetic: bool = False

    def __len__(self) -> int:
        return len(self.texts)

    @classmethod
    def of(
        cls, times: Sequence[Any], labels: Sequence[str], texts: Sequence[str], synthetic: bool = False
    ) -> LabelledTexts:
        """From columns of equal length, in any order of time."""
        if not len(times) == len(labels) == len(texts):
            raise ValueError(
                f"times, labels and texts must have one length, got {len(times)}, {len(labels)}, {len(texts)}"
            )
        when = np.array(times, dtype="datetime64[s]")
        classes, numbers = np.unique(np.array(labels, dtype=str), return_inverse=True)
        order = np.argsort(when, kind="stable")
        return cls(
            when[order],
            numbers[order].astype(np.int64),
            tuple(texts[k] for k in order),
            tuple(classes.tolist()),
            synthetic,
        )

    @classmethod
    def read(
        cls, path: str | Path, time: str | None = None, label: str = "label", text: str = "text"
    ) -> LabelledTexts:
        """From a CSV file, plain or compressed (.gz), with a header; times as ISO 8601 or seconds since 1970.

        ``time``, ``label`` and ``text`` name the columns; an error names file, line and column.
        """
        path = Path(path)
        with gzip.open(path, "rt", encoding="utf-8", newline="") if path.suffix == ".gz" else path.open(
            encoding="utf-8", newline=""
        ) as file:
            times, labels, texts = zip(*_rows(file, str(path), time, label, text), strict=True) or ((), (), ())
        return cls.of(times, labels, texts)


def _rows(file: Any, name: str, time: str | None, label: str, text: str) -> Iterator[tuple[datetime, str, str]]:
    table = csv.DictReader(file)
    header = table.fieldnames or []
    if time is None:
        time = next((column for column in TIMES if column in header), TIMES[0])
    for column in (time, label, text):
        if column not in header:
            raise ValueError(f"{name}, line 1: no column {column!r} among {', '.join(header) or 'none at all'}")
    for row in table:
        where = f"{name}, line {table.line_num}, column"
        for column in (time, label, text):
            if row[column] is None:
                raise ValueError(f"{where} {column}: nothing there, the line is too short")
        try:
            when = _time(row[time])
        except ValueError:
            raise ValueError(f"{where} {time}: expected a time such as 2017-11-02T09:30:00Z, got {row[time]!r}") from None
        if not row[label]:
            raise ValueError(f"{where} {label}: expected a label, got nothing")
        yield when, row[label], row[text]


def _time(word: str) -> datetime:
    """In UTC, and without saying so, as NumPy's times are."""
    try:
        when = datetime.fromtimestamp(float(word), UTC)
    except (ValueError, OverflowError, OSError):
        when = datetime.fromisoformat(word.strip())
    return when.astimezone(UTC).replace(tzinfo=None) if when.tzinfo else when
