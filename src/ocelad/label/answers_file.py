"""The answers of a person, in a file that survives a crash after every single one.

A line each, ``id_a,id_b,y``, with y 1 (similar), -1 (different) or ``unsure``; ``,,changed`` says that the person
judges differently from there on. A line is appended and flushed to the disk (fsync) before anyone relies on it; to
undo it, the file is cut back to where it was. So a crash leaves nothing worse than half a last line, which is
mended when the file is opened again.

Unsure is a word and not 0, which ``ocelad track`` takes for "different".
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from ..files import named
from ..folder_lock import lock_file
from .session import Answer, Changed, Event

HEADER = b"id_a,id_b,y\n"
Y = {"1": 1, "-1": -1, "unsure": 0}
WORDS = {y: word for word, y in Y.items()}
CHANGED = "changed"


class _Half(ValueError):
    """A line that may be the beginning of one."""


class AnswersFile:
    """A file of answers about items, opened to go on with; one process at a time.

    Parameters
    ----------
    path
        The file. It is made if need be.
    ids
        What the items are called. An answer about others is an error.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with AnswersFile(f"{folder}/answers.csv", ["cat", "lion", "dog"]) as file:
    ...         for event in (Answer(0, 1, +1), Answer(2, 1, 0), Answer(0, 2, -1)):
    ...             file.append(event)
    ...         file.undo()
    ...     with AnswersFile(f"{folder}/answers.csv", ["cat", "lion", "dog"]) as file:
    ...         print(file.log, Path(file.path).read_text(), sep="\\n")
    [Answer(i=0, j=1, y=1), Answer(i=2, j=1, y=0)]
    id_a,id_b,y
    cat,lion,1
    dog,lion,unsure
    <BLANKLINE>
    """

    def __init__(self, path: str | os.PathLike[str], ids: Sequence[str]) -> None:
        self.path, self.ids = os.fspath(path), list(ids)
        self._number = {name: number for number, name in enumerate(self.ids)}
        self.log: list[Event] = []
        self.mended = ""
        """What was amiss with the end of the file, in words."""
        new = not os.path.exists(self.path)
        binary = getattr(os, "O_BINARY", 0)
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | binary, 0o666)
        try:
            self._lock()
            self._read(Path(self.path).read_bytes())
        except BaseException:
            self.close()
            raise
        if new:
            self._sync_folder()

    def __enter__(self) -> AnswersFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        os.close(self._file)

    # Writing

    def append(self, event: Event) -> None:
        """Keep an event: it is on the disk when this returns."""
        self._write(self._line(event))
        self._ends.append(self._ends[-1] + len(self._line(event)))
        self.log.append(event)

    def undo(self) -> None:
        """Cut the last event off."""
        if self.log:
            self._cut(self._ends[-2])
            self._ends.pop()
            self.log.pop()

    def _line(self, event: Event) -> bytes:
        if isinstance(event, Changed):
            return f",,{CHANGED}\n".encode()
        text = io.StringIO()
        names = [self.ids[event.i], self.ids[event.j]]
        csv.writer(text, lineterminator="\n").writerow([*names, WORDS[event.y]])
        return text.getvalue().encode()

    def _write(self, line: bytes) -> None:
        """Write at the end, all of it or nothing."""
        try:
            with named(self.path):
                os.lseek(self._file, self._ends[-1], os.SEEK_SET)
                if os.write(self._file, line) < len(line):
                    raise OSError(f"{self.path}: it cannot be written to: the disk is full")
                os.fsync(self._file)
        except BaseException:
            with suppress(OSError):
                self._cut(self._ends[-1])
            raise

    def _cut(self, size: int) -> None:
        os.ftruncate(self._file, size)
        os.fsync(self._file)

    # Reading

    def _read(self, data: bytes) -> None:
        self._ends = [0]
        if HEADER.startswith(data):  # nothing yet, or it was killed at the very beginning
            self._cut(0)
            self._write(HEADER)
            self._ends = [len(HEADER)]
            return
        *whole, rest = data.split(b"\n")
        for number, line in enumerate([*whole, rest] if rest else whole, 1):
            size = len(line) + (number <= len(whole))
            try:
                event = self._event(line, number)
            except ValueError as error:
                if number <= len(whole) or not isinstance(error, _Half):
                    raise ValueError(f"{self.path}: line {number}{error}") from None
                self._cut(self._ends[-1])
                self.mended = f"line {number} was only half written, and is left out"
                return
            if event is not None:
                self.log.append(event)
                self._ends.append(self._ends[-1] + size)
            else:
                self._ends[-1] += size  # the header, or an empty line, goes with what is before it
        if rest:
            self._write(b"\n")
            self._ends[-1] += 1
            self.mended = f"line {len(whole) + 1} was complete but for its end, and counts"

    def _event(self, line: bytes, number: int) -> Event | None:
        """What a line says; the text of an error goes on after the number of the line."""
        try:
            text = line.decode("utf-8-sig").rstrip("\r")
            if not text.strip():
                return None
            cells = [cell.strip() for cell in next(csv.reader([text], strict=True))]
        except (UnicodeDecodeError, csv.Error) as error:
            raise _Half(f": it is not a line of CSV: {error}") from None
        if number == 1:
            header = HEADER.decode().strip()
            if cells != header.split(","):
                raise ValueError(f": it is not a file of answers, which begins with {header}")
            return None
        if len(cells) != 3:
            raise (_Half if len(cells) < 3 else ValueError)(f": it has {len(cells)} cells, expected 3")
        *names, word = cells
        if cells == ["", "", CHANGED]:
            return Changed()
        if word not in Y:
            half = any(whole.startswith(word) for whole in (*Y, CHANGED))
            expected = "1 (similar), -1 (different) or unsure"
            raise (_Half if half else ValueError)(f", column y: it must be {expected}, got {word!r}")
        for column, name in zip(("id_a", "id_b"), names, strict=True):
            if name not in self._number:
                raise ValueError(f", column {column}: there is no item {name!r}: these answers are about others")
        if names[0] == names[1]:
            raise ValueError(f": it compares item {names[0]!r} with itself")
        return Answer(self._number[names[0]], self._number[names[1]], Y[word])

    # Safety

    def _lock(self) -> None:
        """Two that write at the same time would cut off each other's answers."""
        try:
            lock_file(self._file)
        except BlockingIOError:
            raise OSError(f"{self.path}: someone else is answering into this file now") from None

    def _sync_folder(self) -> None:
        with suppress(OSError):  # some systems cannot open a folder
            folder = os.open(os.path.dirname(os.path.realpath(self.path)), os.O_RDONLY)
            try:
                os.fsync(folder)  # so that the new name survives a power cut
            finally:
                os.close(folder)
