"""What is said when a file cannot be read or written: the option that named it, the file, and why."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def reading(option: str) -> Iterator[None]:
    """Of an option, or an argument, that names a file to read."""
    with _said(option, "read"):
        yield


@contextmanager
def writing(option: str) -> Iterator[None]:
    """Of an option that names a file, or a folder, to write to."""
    with _said(option, "write"):
        yield


@contextmanager
def _said(option: str, verb: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.filename is None or error.strerror is None:  # it is about no file, or has its own words
            raise
        raise ValueError(f"{option}: {_why(error, verb)}") from None


def _why(error: OSError, verb: str) -> str:
    path = Path(str(error.filename))
    if error.errno == errno.ENOENT:
        return f"there is no file {path}" if verb == "read" else f"there is no folder {path.parent}"
    if error.errno == errno.EISDIR or (error.errno == errno.EACCES and path.is_dir()):  # so on Windows
        return f"{path} is a folder, and a file is needed"
    return f"cannot {verb} {path}: {error.strerror}"
