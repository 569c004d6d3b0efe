"""A lock on a folder, of a run or of a service, or on an open file: one process works with it at a time.

SQLite locks a file on every system. Each of these locks vanishes with its process, also after ``kill -9``.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

LOCK = ".lock"
"""It stays, empty: if it were removed, two runs could each lock a file of that name."""

PATIENCE = 0.5
"""Seconds: of two that begin at the same moment, one gets through."""


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Lock the folder, which is made if need be; it is an error if another process has locked it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as name:  # doctest: +ELLIPSIS
    ...     with lock_folder(Path(name)), lock_folder(Path(name)):
    ...         pass
    Traceback (most recent call last):
    ...
    OSError: another run is under way in ...: wait until it ends, stop it, or use another folder
    """
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        try:
            connection = sqlite3.connect(folder / LOCK, timeout=PATIENCE, isolation_level=None)
            stack.enter_context(closing(connection)).execute("begin exclusive")
        except sqlite3.Error as error:
            if error.sqlite_errorcode == sqlite3.SQLITE_BUSY:
                raise OSError(
                    f"another run is under way in {folder}: wait until it ends, stop it, or use another folder"
                ) from None
            if not os.access(folder, os.W_OK | os.X_OK):  # SQLite does not say why it cannot open a file
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder)) from None
            raise OSError(f"{folder / LOCK} cannot be locked: {error}") from None
        yield


BEYOND = 2**31 - 2
"""The byte that Windows locks, beyond the end: nobody, not even its own process, can read what is locked there."""


def lock_file(file: int) -> None:
    """Lock an open file, by its descriptor, until it is closed; `BlockingIOError` if another has locked it."""
    try:
        fcntl: Any = import_module("fcntl")
    except ImportError:  # Windows
        windows: Any = import_module("msvcrt")
        os.lseek(file, BEYOND, os.SEEK_SET)
        try:
            windows.locking(file, windows.LK_NBLCK, 1)
        except OSError as error:
            raise BlockingIOError(error.errno, "it is locked") from None
        finally:
            os.lseek(file, 0, os.SEEK_SET)
    else:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
