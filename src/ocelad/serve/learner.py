"""The process that learns: it follows the log, publishes what it has learned, and says what to ask next.

It is told which streams have new entries, learns them a block at a time, and sends the metric as it is now
whenever that is worth its time. So nobody who reads waits for it, and it waits for nobody.
"""

from __future__ import annotations

import queue
import sqlite3
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .. import MetricTracker
from .fold import Fold
from .frames import Frame, packed
from .items import StoredItems
from .log import Refusal, connect
from .pipes import Pipes
from .stream_state import PATIENCE, state

BLOCK = 256
"""Entries that are learned before messages are looked at again."""

SHARE = 0.1
"""The share of its time in which it may publish what it has learned."""

SLICE = 0.02
"""Seconds for what was said of items, between two looks at messages."""

AT_MOST = 64
"""Streams in memory; of more, those that were idle longest are put away."""

IDLE = 600.0
"""Seconds after which an idle stream is put away."""

BEHIND = 2000
"""Entries that a question about a stream waits for, at most."""


@dataclass
class Loaded:
    """A stream in memory: its fold, the last entry that there is to learn, and what was published of it."""

    fold: Fold
    last: int
    used: float
    published: int = 0
    due: float = 0.0


class Learner:
    """All streams that are loaded, and what is to be done for them."""

    def __init__(self, folder: Path, repeats: int, pipes: Pipes, db: sqlite3.Connection) -> None:
        self.folder, self.repeats, self.pipes, self.db = folder, repeats, pipes, db
        self.items = StoredItems.read(folder) if StoredItems.exists(folder) else None
        self.streams: dict[str, Loaded] = {}
        self.verbs = {
            "state": self._state,
            "publish": self._published,
            "next": self._next,
            "groups": self._groups,
            "tracker": self._tracker,
        }

    def warm_up(self) -> None:
        """Load the kernels, or compile them: nobody is to wait for that with their first answer."""
        width = 2 if self.items is None else self.items.points.shape[1]
        MetricTracker().partial_fit(np.ones((1, 2, width)), [1])

    def run(self, frames: queue.SimpleQueue[list[Frame]]) -> None:
        """Until the front has gone."""
        while True:
            try:
                found = frames.get(timeout=self._patience())
            except queue.Empty:
                found = None
            if found is not None and not found:
                break
            for frame in found or []:
                self._handle(frame)
            self._learn()
            self._publish()
            self._put_away()
        for stream in self.streams.values():
            stream.fold.save()

    def _patience(self) -> float:
        """Seconds to wait for a message: none while there is something to learn."""
        if any(stream.fold.position < stream.last or stream.fold.is_behind for stream in self.streams.values()):
            return 0.0
        due = [stream.due for stream in self.streams.values() if stream.published < stream.fold.position]
        return min(max(min(due, default=1e9) - time.monotonic(), 0.0), 30.0)

    def _handle(self, frame: Frame) -> None:
        message = frame.message
        if "entries" in message:
            with self._apart(message["entries"]):
                stream = self.load(message["entries"])
                stream.last = max(stream.last, message["last"])
            return
        reply: dict[str, Any] = {"n": message["n"]}
        blobs: list[bytes] = []
        try:
            stream = self.load(message["stream"])
            stream.last = max(stream.last, message["last"])
            stream.fold.catch_up(stream.last, BEHIND)
            said, blobs = self.verbs[message["verb"]](stream, message)
            reply |= said
        except Refusal as refusal:
            reply["refused"] = [refusal.status, refusal.detail, refusal.field]
        except Exception as error:  # an error of ours: whoever asks hears of it, and the stream is loaded anew
            traceback.print_exc()
            self.streams.pop(message["stream"], None)
            reply["refused"] = [500, f"something went wrong in the service: {type(error).__name__}", ""]
        self.pipes.send(packed(reply, blobs))

    def load(self, name: str) -> Loaded:
        """A stream, from memory, or from its snapshot and the log."""
        stream = self.streams.get(name)
        if stream is None:
            fold = Fold(name, self.db, self.folder / "snapshots" / name, self.items, self.repeats)
            stream = self.streams[name] = Loaded(fold, fold.position, 0.0)
        stream.used = time.monotonic()
        return stream

    @contextmanager
    def _apart(self, name: str) -> Iterator[None]:
        """An error of ours in one stream is told, and the stream is loaded anew: the others go on."""
        try:
            yield
        except Exception:
            traceback.print_exc()
            self.streams.pop(name, None)

    def _learn(self) -> None:
        for name, stream in list(self.streams.items()):
            with self._apart(name):
                if stream.fold.position < stream.last:
                    stream.fold.catch_up(stream.last, BLOCK)
                elif stream.fold.is_behind:
                    stream.fold.said(SLICE)

    def _publish(self) -> None:
        now = time.monotonic()
        for name, stream in list(self.streams.items()):
            if stream.published < stream.fold.position and now >= stream.due:
                with self._apart(name):
                    self.publish(stream)
                stream.due = time.monotonic() + (time.monotonic() - now) / SHARE

    def publish(self, stream: Loaded) -> None:
        """Send the metric as it is now to the front."""
        fold, stream.published = stream.fold, stream.fold.position
        message: dict[str, Any] = {"estimate": fold.stream, "t": fold.t, "version": fold.position}
        blobs = []
        if fold.t:
            metric = fold.tracker.get_metric()
            L = metric.components
            message |= {"decision": list(metric.decision or ()), "shape": list(L.shape)}
            message["features"] = fold.features(L.shape[1])
            blobs.append(L.tobytes())
        self.pipes.send(packed(message, blobs))

    def _put_away(self) -> None:
        """Save and forget streams that nobody has asked for."""
        now, old = time.monotonic(), sorted(self.streams, key=lambda name: self.streams[name].used)
        for k, name in enumerate(old):
            idle = now - self.streams[name].used > IDLE or len(old) - k > AT_MOST
            if idle and self.streams[name].fold.position >= self.streams[name].last:
                self.streams.pop(name).fold.save()
                self.pipes.send(packed({"away": name}))

    # What can be asked for

    def _state(self, stream: Loaded, _: dict[str, Any]) -> tuple[dict[str, Any], list[bytes]]:
        return {"state": state(stream.fold)}, []

    def _published(self, stream: Loaded, _: dict[str, Any]) -> tuple[dict[str, Any], list[bytes]]:
        self.publish(stream)  # which is there before this answer
        return {}, []

    def _groups(self, stream: Loaded, _: dict[str, Any]) -> tuple[dict[str, Any], list[bytes]]:
        return {"groups": stream.fold.said().groups(), "version": stream.fold.position}, []

    def _tracker(self, stream: Loaded, _: dict[str, Any]) -> tuple[dict[str, Any], list[bytes]]:
        if not stream.fold.t:
            raise Refusal(409, f"stream {stream.fold.stream!r} has learned nothing yet: it needs a comparison")
        stream.fold.catch_up(stream.last)
        return {"t": stream.fold.t, "version": stream.fold.position}, [stream.fold.exported()]

    def _next(self, stream: Loaded, message: dict[str, Any]) -> tuple[dict[str, Any], list[bytes]]:
        if self.items is None:
            raise Refusal(409, "there are no items to ask about: start the service with a table of them")
        fold = stream.fold
        pairs = fold.said(PATIENCE).questions(
            fold.tracker, self.items.points, message["by"], message["aim"], time.monotonic(), message["count"]
        )
        return {"pairs": pairs}, []


def main(folder: str, repeats: str) -> None:
    """Follow the log of a folder until the service goes away."""
    pipes = Pipes()
    pipes.wait_to_begin()
    frames: queue.SimpleQueue[list[Frame]] = queue.SimpleQueue()

    def listen() -> None:
        while found := pipes.receive():
            frames.put(found)
        frames.put([])

    threading.Thread(target=listen, daemon=True).start()
    try:
        db = connect(Path(folder))
        learner = Learner(Path(folder), int(repeats), pipes, db)
        learner.warm_up()
        stream = learner.load("default")
        stream.fold.catch_up()
        learner.publish(stream)
    except (ValueError, OSError, sqlite3.Error) as error:
        pipes.send(packed({"failed": f"{error}"}))
        sys.exit(1)
    pipes.send(packed({"ready": stream.fold.position}))
    with closing(db):
        learner.run(frames)


if __name__ == "__main__":
    main(*sys.argv[1:])
