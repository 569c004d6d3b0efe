"""Files that appear whole or not at all.

A file is written under a temporary name in the same folder, flushed to the disk (fsync), and then renamed. Whoever
reads finds the old content or the new one, also after a crash or a power cut.
"""

from __future__ import annotations

import csv
import os
import secrets
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

_UNFINISHED = ".ocelad-{}.tmp"

WINDOWS = sys.platform == "win32"
PAUSES = (0.01, 0.03, 0.1, 0.3, 1.0)
"""Seconds between attempts to rename."""


@contextmanager
def atomic_write(path: str | os.PathLike[str], *, text: bool = False) -> Iterator[IO[Any]]:
    """A file to write to, of bytes or of UTF-8 text; it takes its name at the end of the block.

    If anything fails, what was at ``path`` before is still there, and nothing else is. A link stays a link.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_write(f"{folder}/words", text=True) as file:
    ...         _ = file.write("all of it")
    ...     os.listdir(folder), Path(folder, "words").read_text()
    (['words'], 'all of it')
    """
    path = os.path.realpath(path)
    folder = os.path.dirname(path)
    beside = os.path.join(folder, _UNFINISHED.format(secrets.token_hex(8)))
    try:
        with named(path), _opened(beside, path, text) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        replace(beside, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(beside)
        raise
    with suppress(OSError):  # some systems cannot open a folder
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)  # so that the new name survives a power cut
        finally:
            os.close(handle)


def replace(source: str | os.PathLike[str], target: str | os.PathLike[str]) -> None:
    """Rename a file, in the place of another. On Windows that fails while someone reads it: it is tried again."""
    for pause in PAUSES if WINDOWS else ():
        with suppress(PermissionError):
            os.replace(source, target)
            return
        time.sleep(pause)
    os.replace(source, target)


def _opened(beside: str, path: str, text: bool) -> IO[Any]:
    try:
        return open(beside, "x", encoding="utf-8", newline="") if text else open(beside, "xb")
    except OSError as error:
        error.filename = path  # which the caller knows
        raise


@contextmanager
def named(path: str | os.PathLike[str]) -> Iterator[None]:
    """An `OSError` of what is written to a file names it; that a disk is full, say, comes without a name."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename is None:
            error.filename = os.fspath(path)
        raise


def write_text(path: str | os.PathLike[str], words: str) -> None:
    """Write a text file, whole or not at all."""
    with atomic_write(path, text=True) as file:
        file.write(words)


def write_csv(path: str | os.PathLike[str], header: Iterable[str], rows: Iterable[Iterable[Any]]) -> None:
    """Write a CSV file, whole or not at all: numbers as short as they can be read back from to the bit."""
    with atomic_write(path, text=True) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def remove_unfinished(folder: Path) -> None:
    """Remove what a process that was killed had not finished writing to a folder."""
    for path in folder.glob(_UNFINISHED.format("*")):
        with suppress(OSError):
            path.unlink()
