"""Whether a log is whole, and what can be saved of one that is damaged."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from .log import COLUMNS, NAME, Entry, Log, exists

SALVAGED = "salvaged"


class DamagedLog(ValueError):
    """A log in which entries were changed or are missing."""


def check(folder: Path) -> int:
    """The number of entries of a log, all of them checked. Raises `DamagedLog`, and says what is whole."""
    if not exists(folder):
        return 0
    path = folder / NAME
    whole = damaged = 0
    first = ""
    for entry, problem in _checked(folder):
        whole, damaged = whole + (not problem), damaged + bool(problem)
        first = first or (problem and f"entry {entry.id if entry else '?'}: {problem}")
    if damaged:
        raise DamagedLog(
            f"{path}: the log is damaged ({first}). {whole} entries are whole: ocelad serve --data {folder} "
            "--salvage keeps them, and moves the damaged file aside"
        )
    return whole


def salvage(folder: Path) -> tuple[int, Path]:
    """Put the entries that are whole into a new log: how many there are, and where the old one is now."""
    path, new = folder / NAME, folder / SALVAGED
    with suppress(FileNotFoundError):
        (new / NAME).unlink()
    count = 0
    with closing(Log(new)) as log:  # when it is closed, all of it is in one file
        for entry, problem in _checked(folder):
            if entry is not None and not problem:
                log.keep(entry)
                count += 1
        log.commit()
    aside = folder / f"log.damaged-{time.strftime('%Y%m%d-%H%M%S')}.sqlite"
    for suffix in ("", "-wal", "-shm"):
        with suppress(FileNotFoundError):
            Path(f"{path}{suffix}").rename(f"{aside}{suffix}")
    finish_salvage(folder)
    return count, aside


def finish_salvage(folder: Path) -> None:
    """Put the new log where it belongs, also if that was interrupted when the old one had just been moved."""
    new = folder / SALVAGED
    if not exists(folder) and exists(new):
        (new / NAME).rename(folder / NAME)
        with suppress(OSError):
            new.rmdir()


def _checked(folder: Path) -> Iterator[tuple[Entry | None, str]]:
    """All entries that can be read, each with what is wrong with it."""
    try:
        with closing(sqlite3.connect(folder / NAME, timeout=5.0)) as db:
            rows: Iterable[Any] = db.execute(f"SELECT {COLUMNS} FROM entries ORDER BY id")
            before = b""
            for row in rows:
                entry = Entry._make(row)
                whole = entry.seal == entry.sealed(before)
                yield entry, "" if whole else "it was changed, or one before it is missing"
                before = entry.seal
            words = db.execute("PRAGMA quick_check(1)").fetchone()[0]
            if words != "ok":
                yield None, str(words)
    except sqlite3.DatabaseError as error:
        yield None, str(error)
