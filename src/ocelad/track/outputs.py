"""Text files that only grow, and can be cut back to where they were."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from ..files import named


class Output:
    """A file of lines under a header. It is made when there is something to write; ``size`` is what it had when a
    run was last safe: what came after is dropped, and will come again."""

    def __init__(self, path: Path, header: str, size: int = 0) -> None:
        self.path, self.header, self.size = path, header, size
        self._file: BinaryIO | None = None
        if size == 0:
            path.unlink(missing_ok=True)
            return
        if not path.exists() or path.stat().st_size < size:
            raise ValueError(f"{path}: it must have the {size} bytes that were written to it, and has fewer")
        self._file = path.open("r+b")
        self._file.truncate(size)
        self._file.seek(size)

    def write(self, lines: Iterable[str]) -> None:
        """Lines without their ends; other programs can see them at once."""
        text = "".join(f"{line}\n" for line in lines)
        if not text:
            return
        if self._file is None:
            self._file, text = self.path.open("wb"), f"{self.header}\n{text}"
        data = text.encode()
        with named(self.path):
            self._file.write(data)
            self._file.flush()
        self.size += len(data)

    def sync(self) -> int:
        """Wait until all is on the disk: how much that is."""
        if self._file is not None:
            with named(self.path):
                os.fsync(self._file.fileno())
        return self.size

    def close(self) -> None:
        if self._file is not None:
            with named(self.path):  # what could not be written is tried once more
                self._file.close()
