"""The log of the service: what was said, in order, in SQLite; entries are only ever added.

    seal_k = hash(seal_{k-1}, entry_k),

so that an entry that was changed, or is missing, is found out. An entry is a *comparison* (two items by their ids,
or two points; y is +1 or -1), a *skip* (unsure about two items), a *change* ("I judge differently now"), or an
*undo* of an earlier entry. Entries are on the disk when `Log.commit` returns (WAL, synchronous=FULL).
"""

from __future__ import annotations

import hashlib
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple

Kind = Literal["comparison", "skip", "change", "undo"]

NAME = "log.sqlite"
VERSION = 1
COLUMNS = "id, stream, request, kind, a, b, x, z, y, by, at, undoes, seal"
_SCHEMA = """
CREATE TABLE entries (
  id INTEGER PRIMARY KEY, stream TEXT NOT NULL, request TEXT, kind TEXT NOT NULL, a TEXT, b TEXT, x BLOB, z BLOB,
  y INTEGER, by TEXT, at REAL NOT NULL, undoes INTEGER, seal BLOB NOT NULL);
CREATE UNIQUE INDEX requests ON entries (stream, request);
CREATE UNIQUE INDEX undone ON entries (undoes) WHERE undoes IS NOT NULL;
CREATE INDEX streams ON entries (stream, id);
"""


class Entry(NamedTuple):
    """A line of the log; x and z are float64 as they are in memory."""

    id: int
    stream: str
    request: str | None
    kind: Kind
    a: str | None = None
    b: str | None = None
    x: bytes | None = None
    z: bytes | None = None
    y: int | None = None
    by: str | None = None
    at: float = 0.0
    undoes: int | None = None
    seal: bytes = b""

    def sealed(self, before: bytes) -> bytes:
        """The seal of this entry after one with that seal."""
        return hashlib.blake2b(before + repr(self[:-1]).encode(), digest_size=16).digest()

    @property
    def content(self) -> tuple[Any, ...]:
        """What must be the same if a request comes again."""
        return self.kind, self.a, self.b, self.x, self.z, self.y, self.by


class Refusal(Exception):
    """An entry that cannot be taken: the HTTP status, what is wrong, and which field it is about."""

    def __init__(self, status: int, detail: str, field: str = "") -> None:
        super().__init__(detail)
        self.status, self.detail, self.field = status, detail, field


class Added(NamedTuple):
    """The number of an entry, and whether it was there before."""

    id: int
    known: bool


class Log:
    """The log of a folder, opened to add entries to it. One process at a time has it open so.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, closing(Log(Path(folder))) as log:
    ...     first = log.add("default", Entry(0, "default", "r1", "comparison", "cat", "dog", y=1))
    ...     again = log.add("default", Entry(0, "default", "r1", "comparison", "cat", "dog", y=1))
    ...     log.commit()
    ...     undo = log.undo("default", first.id)
    ...     log.commit()
    ...     first, again, undo, [(entry.id, entry.kind) for entry in read(Path(folder), "default")]
    (Added(id=1, known=False), Added(id=1, known=True), Added(id=2, known=False), [(1, 'comparison'), (2, 'undo')])
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / NAME
        self._db = sqlite3.connect(self.path, isolation_level=None, timeout=5.0)
        try:
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=FULL")
            if not self._version():
                self._db.executescript(f"BEGIN; {_SCHEMA} PRAGMA user_version={VERSION}; COMMIT;")
            if self._version() != VERSION:
                raise ValueError(f"{self.path}: it is of another version of ocelad ({self._version()})")
            self.last, self._seal = self._end()
        except BaseException:
            self._db.close()
            raise
        self._widths: dict[str, int] = {}
        self._before: tuple[int, bytes] | None = None  # while a transaction is open: the end before it

    def _version(self) -> int:
        return int(self._db.execute("PRAGMA user_version").fetchone()[0])

    def _end(self) -> tuple[int, bytes]:
        found = self._db.execute("SELECT id, seal FROM entries ORDER BY id DESC LIMIT 1").fetchone()
        return (int(found[0]), found[1]) if found else (0, b"")

    def close(self) -> None:
        self._db.close()

    # Adding

    def add(self, stream: str, entry: Entry, width: int | None = None) -> Added:
        """Add an entry, or find that it is there; ``width`` is the number of features of the items.

        It is safe after `commit`. Raises `Refusal` if it contradicts what is there.
        """
        self._begin()
        known = self._one("stream = ? AND request = ?", stream, entry.request)
        if known is not None:
            if known.content != entry.content:
                detail = f"request_id {entry.request!r} was used for another entry, {known.id}: choose a new one"
                raise Refusal(409, detail, "request_id")
            return Added(known.id, True)
        if entry.x is not None:
            self._check_width(stream, entry, width)
        return Added(self._insert(entry._replace(stream=stream)), False)

    def undo(self, stream: str, id: int, by: str | None = None) -> Added:
        """Add an entry that takes an earlier one back, or find that it is there."""
        self._begin()
        entry = self._one("stream = ? AND id = ?", stream, id)
        if entry is None:
            raise Refusal(404, f"there is no entry {id} in stream {stream!r}", "id")
        if entry.kind == "undo":
            raise Refusal(409, f"entry {id} is an undo, which cannot be undone: answer again", "id")
        known = self._one("undoes = ?", id)
        if known is not None:
            return Added(known.id, True)
        return Added(self._insert(Entry(0, stream, None, "undo", by=by, undoes=id)), False)

    @contextmanager
    def together(self) -> Iterator[None]:
        """What is added within is added whole or, if anything is refused, not at all."""
        self._begin()
        end = self.last, self._seal
        self._db.execute("SAVEPOINT together")
        try:
            yield
        except Refusal:
            self._db.execute("ROLLBACK TO together")
            self.last, self._seal = end
            self._widths.clear()
            raise
        finally:
            if self._db.in_transaction:
                self._db.execute("RELEASE together")

    def commit(self) -> None:
        """Make all that was added durable; if that fails (the disk is full), nothing was added."""
        if self._before is not None:
            try:
                self._db.execute("COMMIT")
            except BaseException:
                self.rollback()
                raise
            self._before = None

    def rollback(self) -> None:
        """Take back what was added since the last commit."""
        if self._before is not None:
            (self.last, self._seal), self._before = self._before, None
            self._widths.clear()
            with suppress(sqlite3.Error):  # SQLite itself may have rolled back
                self._db.execute("ROLLBACK")

    def _begin(self) -> None:
        if self._before is None:
            self._db.execute("BEGIN IMMEDIATE")
            self._before = self.last, self._seal

    def _one(self, where: str, *values: Any) -> Entry | None:
        found = self._db.execute(f"SELECT {COLUMNS} FROM entries WHERE {where}", values).fetchone()
        return None if found is None else Entry(*found)

    def _check_width(self, stream: str, entry: Entry, width: int | None) -> None:
        """All points of a stream have as many features as its first, or as the items."""
        expected = width or self._widths.get(stream)
        if expected is None:
            first = self._one("stream = ? AND x IS NOT NULL ORDER BY id LIMIT 1", stream) or entry
            expected = len(first.x or b"") // 8
        for name, point in (("x", entry.x), ("z", entry.z)):
            found = len(point or b"") // 8
            if found != expected:
                detail = f"{name} must have {expected} features, as stream {stream!r} has, got {found}"
                raise Refusal(422, detail, name)
        self._widths[stream] = expected

    def keep(self, entry: Entry) -> None:
        """Add an entry of another log as it is, under its own number."""
        self._begin()
        self._write(entry)

    def _insert(self, entry: Entry) -> int:
        return self._write(entry._replace(id=self.last + 1, at=time.time()))

    def _write(self, entry: Entry) -> int:
        entry = entry._replace(seal=entry.sealed(self._seal))
        self._db.execute(f"INSERT INTO entries ({COLUMNS}) VALUES ({','.join('?' * len(entry))})", entry)
        self.last, self._seal = entry.id, entry.seal
        return entry.id


# Reading


def exists(folder: Path) -> bool:
    """Whether a folder has a log."""
    return (folder / NAME).exists()


def connect(folder: Path) -> sqlite3.Connection:
    """The log for reading alone."""
    path = (folder / NAME).resolve()
    return sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=5.0, check_same_thread=False)


def read(source: Path | sqlite3.Connection, stream: str, after: int = 0, limit: int = -1) -> list[Entry]:
    """The entries of a stream after a number, in order."""
    if isinstance(source, Path):
        with closing(connect(source)) as db:
            return read(db, stream, after, limit)
    query = f"SELECT {COLUMNS} FROM entries WHERE stream = ? AND id > ? ORDER BY id LIMIT ?"
    return list(map(Entry._make, source.execute(query, (stream, after, limit))))


def undone(db: sqlite3.Connection, stream: str, after: int = 0) -> set[int]:
    """The numbers of the entries of a stream that were undone, of those after a number."""
    query = "SELECT undoes FROM entries INDEXED BY undone WHERE undoes IS NOT NULL AND undoes > ? AND stream = ?"
    return {number for (number,) in db.execute(query, (after, stream))}


def widths(db: sqlite3.Connection) -> set[int]:
    """How many features points have."""
    return {size // 8 for (size,) in db.execute("SELECT DISTINCT length(x) FROM entries WHERE x IS NOT NULL")}


def streams(db: sqlite3.Connection) -> dict[str, int]:
    """The streams, and the number of the last entry of each."""
    return dict(db.execute("SELECT stream, max(id) FROM entries GROUP BY stream ORDER BY stream"))
