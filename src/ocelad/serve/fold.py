"""What a stream has learned: a fold over its log, without the entries that were undone.

    state = snapshot at some entry, then the comparisons after it, in blocks, each predicted before it is learned.

It is a function of the log alone: however entries came, in whatever blocks, and whenever it was interrupted, the
tracker has the same bits. An undo goes back to a snapshot from before the entry that it takes back.
"""

from __future__ import annotations

import copy
import math
import sqlite3
import sys
import time
from pathlib import Path

import numpy as np

from .. import MetricTracker, dumps, loads
from ..protocols import Array
from ..watch.prequential import progressive
from .course import Course
from .items import StoredItems
from .judgements import Judgements
from .log import Entry, read, undone
from .snapshots import Snapshot, Snapshots, left_out

EVERY = 1000
"""Comparisons between two snapshots."""

FAR = 20 * EVERY
"""The same while a long log is learned."""

BLOCK = 512
"""Entries that are read and learned at a time."""

CHECKPOINT = 200
"""Entries about items between two states that an undo can go back to."""


class Fold:
    """A stream, loaded: its tracker, and what is said about it.

    Parameters
    ----------
    stream
        Its name.
    db
        The log, for reading.
    folder
        For snapshots.
    items
        What ids stand for; None if there are none.
    repeats
        Of how many people a pair is to be asked.
    """

    def __init__(
        self, stream: str, db: sqlite3.Connection, folder: Path, items: StoredItems | None, repeats: int = 1
    ):
        self.stream, self._db, self._items, self._repeats = stream, db, items, repeats
        self.snapshots = Snapshots(folder)
        self._scale = "features" if items is None else items.scale
        self._begin()
        for snapshot in self.snapshots.newest():
            if self._restore(snapshot):
                break
        self._saved = self.t

    def _begin(self) -> None:
        self.position = 0
        """The last entry of the log that is in here."""
        self.t = 0
        """Comparisons learned."""
        self.by_points = False
        """Whether any of them is about points, not items."""
        self.tracker, self.course = MetricTracker(scale=self._scale), Course()
        self._left_out: set[int] = set()  # entries that were undone before they were reached
        self._said_at, self._said = 0, Judgements(self._repeats)
        self._marks: list[tuple[int, bytes]] = []  # what was said about items, at some entries

    # The log

    def catch_up(self, to: int | None = None, most: int | None = None) -> bool:
        """Learn what the log has, up to an entry or to its end; ``most`` entries at most. Whether that is all."""
        done = 0
        while to is None or self.position < to:
            entries = read(
                self._db, self.stream, self.position, BLOCK if most is None else min(BLOCK, most - done)
            )
            if not entries:
                break
            self._take(entries)
            done += len(entries)
            if most is not None and done >= most:
                return False
        return True

    def _take(self, entries: list[Entry]) -> None:
        gone = undone(self._db, self.stream, self.position)
        taken_back = [e.undoes for e in entries if e.kind == "undo" and e.undoes not in self._left_out]
        old = [number for number in taken_back if number is not None and number <= self.position]
        if old:  # it has been learned: without it, then
            self._go_back(min(old))
            return
        # by their numbers: of a log that was salvaged, an entry may be missing whose undo is there
        self._left_out |= {number for number in gone if number <= entries[-1].id}
        self._left_out -= {e.undoes for e in entries if e.undoes is not None}
        heard = [e for e in entries if e.id not in gone]
        said = [e for e in heard if e.kind == "comparison"]
        changes = [(e.id, self.t + sum(s.id < e.id for s in said), e.by) for e in heard if e.kind == "change"]
        if said:
            self._learn(said)
        for change in changes:
            self.course.change(*change)
        self.by_points = self.by_points or any(e.x is not None for e in said)
        self.position = entries[-1].id
        if self.t - self._saved >= (EVERY if len(entries) < BLOCK else FAR):
            self.save()

    def _go_back(self, to: int) -> None:
        """As it was before an entry, so that what follows is learned without what was undone."""
        end, marks = self.position, [(at, data) for at, data in self._marks if at < to]
        said_at, said = self._said_at, self._said
        self._begin()
        self.snapshots.forget(to)
        for snapshot in self.snapshots.newest(to):
            if self._restore(snapshot):
                break
        self._saved = self.t
        self._marks = marks
        if said_at < to:
            self._said_at, self._said = said_at, said
        elif marks and marks[-1][0] > self._said_at:
            self._said_at, self._said = marks[-1][0], Judgements.loads(marks[-1][1], self._repeats)
        self._said.keep_reservations(said)
        self.catch_up(end)

    # Learning

    def _learn(self, entries: list[Entry]) -> None:
        pairs, y = self._pairs(entries), np.array([entry.y for entry in entries])
        try:
            self._learn_block(pairs, y)
        except ValueError as error:
            if len(entries) > 1:  # nothing has been learned; all but the one that cannot be used
                for entry in entries:
                    self._learn([entry])
            else:
                print(
                    f"entry {entries[0].id} of {self.stream} cannot be learned: {error}",
                    file=sys.stderr,
                    flush=True,
                )

    def _learn_block(self, pairs: Array, y: Array) -> None:
        trace = progressive(self.tracker, pairs, y)
        self.t += len(y)
        self.course.add(trace, y)

    def _pairs(self, entries: list[Entry]) -> Array:
        width = len(entries[0].x or b"") // 8 if self._items is None else self._items.points.shape[1]
        pairs = np.empty((len(entries), 2, width))
        by_points = [entry.x is not None for entry in entries]
        for side, points, names in ((0, "x", "a"), (1, "z", "b")):
            blobs = b"".join(getattr(entry, points) or b"" for entry in entries)
            pairs[by_points, side] = np.frombuffer(blobs).reshape(-1, width)
            if self._items is not None and not all(by_points):
                numbers = [self._items.number[getattr(e, names)] for e in entries if e.x is None]
                pairs[np.logical_not(by_points), side] = self._items.points[numbers]
        return pairs

    def features(self, width: int) -> list[str]:
        """The names of the features: those of the items, or numbers."""
        return [str(k) for k in range(width)] if self._items is None else list(self._items.features)

    def name(self, number: int) -> str:
        """The id of an item."""
        assert self._items is not None
        return self._items.ids[number]

    @property
    def items(self) -> int:
        """How many items there are."""
        return 0 if self._items is None else len(self._items.ids)

    def undone(self) -> int:
        """Entries that were taken back."""
        return len(undone(self._db, self.stream))

    # What was said about items

    @property
    def is_behind(self) -> bool:
        """Whether there is more to know of who said what about which items."""
        return self._said_at < self.position and self._items is not None

    def said(self, patience: float = math.inf) -> Judgements:
        """Who said what about which items: up to the same entry, or as far as some seconds reach."""
        end = time.monotonic() + patience
        while self._said_at < self.position and self._items is not None and time.monotonic() < end:
            entries = read(self._db, self.stream, self._said_at, CHECKPOINT)
            gone = undone(self._db, self.stream, self._said_at)
            for entry in entries:
                if entry.id <= self.position and entry.id not in gone:
                    self._hear(entry, self._items)
            self._said_at = min(entries[-1].id, self.position)
            if len(entries) == CHECKPOINT and self.position - self._said_at < 5 * CHECKPOINT:
                self._marks = [*self._marks[-3:], (self._said_at, self._said.dumps())]
        return self._said

    def _hear(self, entry: Entry, items: StoredItems) -> None:
        if entry.kind == "change":
            self._said.change()
        elif entry.a is not None and entry.b is not None and entry.kind != "undo":
            i, j = items.number[entry.a], items.number[entry.b]
            if entry.kind == "skip":
                self._said.skip(i, j)
            else:
                self._said.answer(entry.id, i, j, int(entry.y or 0), entry.by)

    # Snapshots

    def save(self) -> None:
        """Write a snapshot, if anything was learned since the last."""
        if self.t and self.t != self._saved:
            about = {
                "stream": self.stream,
                "t": self.t,
                "scale": self._scale,
                "by_points": self.by_points,
                "seal": self._seal(self.position).hex(),
                "course": self.course.state(),
                "said_at": self._said_at,
            }
            self.snapshots.write(Snapshot(self.position, about, dumps(self.tracker), self._said.dumps()))
            self._saved = self.t

    def _restore(self, snapshot: Snapshot) -> bool:
        """Go on from a snapshot, if it is one of this log and holds nothing that was undone."""
        path, about = self.snapshots._path(snapshot.position), snapshot.about
        query = "SELECT 1 FROM entries WHERE stream = ? AND id > ? AND undoes <= ? LIMIT 1"
        if self._db.execute(query, (self.stream, snapshot.position, snapshot.position)).fetchone():
            return False
        if about.get("stream") != self.stream or about.get("scale") != self._scale:
            left_out(path, "it is of another stream, or of other settings")
            return False
        if about.get("seal") != self._seal(snapshot.position).hex():
            left_out(path, "it is of another log")
            return False
        try:
            tracker, course = loads(snapshot.tracker), Course()
            course.restore(about["course"])
            said, said_at = Judgements.loads(snapshot.judgements, self._repeats), int(about["said_at"])
            t, by_points = int(about["t"]), bool(about["by_points"])
        except Exception as error:  # whatever damage makes of it
            left_out(path, f"it is damaged: {error!r}")
            return False
        self.tracker, self.course, self.t, self.position = tracker, course, t, snapshot.position
        self._said, self._said_at, self.by_points = said, said_at, by_points
        return True

    def _seal(self, position: int) -> bytes:
        found = self._db.execute("SELECT seal FROM entries WHERE id = ?", (position,)).fetchone()
        return found[0] if found else b""

    def exported(self) -> bytes:
        """The tracker as `dumps` gives it, with the names of its features: here it is asked about plain arrays."""
        tracker = copy.copy(self.tracker)
        tracker.feature_names_in_ = np.array(self.features(tracker.n_features_in_), dtype=object)
        return dumps(tracker)
