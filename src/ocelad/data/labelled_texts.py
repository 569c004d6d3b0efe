"""Timestamped, labelled texts: a stream as it lies in a table."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .tables import BadRow, Columns, Row, parsed, read_rows
from .tables.reading import Format

TIMES = ("t", "time", "timestamp", "date", "created_at")
"""Names of columns that are taken for the time, unless one is named."""


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
        path: str,
        time: str | None = None,
        label: str = "label",
        text: str = "text",
        format: Format | None = None,
    ) -> LabelledTexts:
        """From a table as `read_rows` takes it; ``time``, ``label`` and ``text`` name its columns.

        Times are in ISO 8601 or in seconds since 1970. A text may be empty, a time and a label not.
        """
        with closing(read_rows(path, format)) as rows:
            if time is None:
                time = next((name for name in TIMES if name in rows.header), TIMES[0])
            for name in (time, label, text):
                if name not in rows.header:
                    raise ValueError(f"{rows.name}: no column {name}: there are {', '.join(rows.header)}")
            words, said = Columns.of(rows.header, [time, label]), rows.header.index(text)

            def parse(row: Row) -> tuple[datetime, str, str]:
                when, which = words.words(row)
                try:
                    return _time(when), which, str(row.cells[said] or "")
                except ValueError:
                    raise BadRow(row, f"it must be a time such as 2017-11-02T09:30Z, got {when!r}", time) from None

            found = [each for piece in parsed(rows, parse) for each in piece]
        times, labels, texts = zip(*found, strict=True) if found else ((), (), ())
        return cls.of(times, labels, texts, rows.name)


def _time(word: str) -> datetime:
    """In UTC, and without saying so, as NumPy's times are."""
    try:
        when = datetime.fromtimestamp(float(word), UTC)
    except (ValueError, OverflowError, OSError):
        when = datetime.fromisoformat(word)
    return when.astimezone(UTC).replace(tzinfo=None) if when.tzinfo else when
