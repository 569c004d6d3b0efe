"""What is said when a file cannot be read or written: the option that named it, the file, and why."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..files import WINDOWS, named


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


def save_figure(figure: Any, path: str | Path, dpi: int) -> None:
    """Write a figure to where --out says."""
    with writing("--out"), named(path):
        figure.savefig(path, dpi=dpi)


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
    if error.errno == errno.ENOENT and verb == "read":
        return f"there is no file {path}"
    if error.errno == errno.ENOENT and not path.parent.is_dir():
        return f"there is no folder {path.parent}"
    if error.errno == errno.EISDIR or (WINDOWS and error.errno == errno.EACCES and path.is_dir()):
        return f"{path} is a folder, and a file is needed"
    return f"cannot {verb} {path}: {error.strerror}"
