"""The service behind its addresses: two child processes, and what is known of each stream.

request -> log writer (durable) -> acknowledged -> learner (told) -> estimate (published) -> scores, pictures.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ..protocols import Array
from . import log
from .child import Child
from .estimate import Estimate, plain_plane
from .frames import Frame
from .items import StoredItems
from .log import Entry, Refusal

T = TypeVar("T")

WAITING = 2000
"""Requests that may wait for the disk at a time."""

BEHIND = 20_000
"""Entries that may wait to be learned."""

STREAMS = 10_000
WATCHERS = 200
MAPPED = 5000
"""Items that are drawn at most."""


@dataclass(eq=False)
class Stream:
    """What the front knows of a stream."""

    name: str
    last: int = 0
    estimate: Estimate | None = None
    watchers: set[asyncio.Event] = field(default_factory=set)
    shown: tuple[int, dict[str, Any]] | None = None  # a state, and the entry it is of
    asking: asyncio.Task[dict[str, Any]] | None = None
    asked: int = 0  # the entry that it is to be of, at least
    unlearned: deque[int] = field(default_factory=deque)  # entries since the last publication
    drawn: tuple[int, Array] | None = None  # the picture of a version
    told: bool = False  # whether the learner has to know of it

    def wake(self) -> None:
        for event in self.watchers:
            event.set()


@dataclass(frozen=True)
class Settings:
    """What a service was started with."""

    data: Path
    title: str = "ocelad"
    aim: str = "metric"
    repeats: int = 1

    def kept(self) -> dict[str, Any]:
        """What the next start is to know."""
        return {"title": self.title, "aim": self.aim, "repeats": self.repeats}


class Service:
    """All streams of a folder."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.items: StoredItems | None = None
        self.streams: dict[str, Stream] = {}
        self.counts = {"comparisons": 0, "skips": 0, "changes": 0, "undos": 0, "scores": 0}
        self.closing = False
        self._reading = threading.Lock()

    # Beginning and end

    def launch(self) -> None:
        """Start the child processes; they can import what they need meanwhile."""
        data, repeats = str(self.settings.data), str(self.settings.repeats)
        self.writer = Child("ocelad.serve.log_writer", [data])
        self.learner = Child("ocelad.serve.learner", [data, repeats], self._published, self._catch_up)

    async def begin(self) -> None:
        """Read the items, and begin to take comparisons; they can be learned a moment later."""
        if StoredItems.exists(self.settings.data):
            self.items = StoredItems.read(self.settings.data)
        self.writer.begin()
        await _first(self.writer)
        self._db = log.connect(self.settings.data)
        if self.items is not None and (other := await self.reading(log.widths) - {self.items.points.shape[1]}):
            raise ValueError(
                f"{self.settings.data}: its log has points with {min(other)} features, and the items have "
                f"{self.items.points.shape[1]}: start with another --data folder"
            )
        found = await self.reading(log.streams)
        self.streams = {name: Stream(name, last) for name, last in found.items()}
        self.streams.setdefault("default", Stream("default"))
        self.learner.begin()

    async def close(self) -> None:
        """Let both processes end; what was acknowledged is in the log."""
        self.closing = True
        for stream in self.streams.values():
            stream.wake()
        await asyncio.gather(self.writer.close(), self.learner.close())
        if hasattr(self, "_db"):
            self._db.close()

    @property
    def ready(self) -> bool:
        return self.writer.ready.is_set() and self.learner.ready.is_set() and not self.closing

    def _catch_up(self) -> None:
        """A learner that was started again has to be told what there is."""
        for stream in self.streams.values():
            if stream.told:
                self.learner.tell({"entries": stream.name, "last": stream.last})

    def _published(self, frame: Frame) -> None:
        stream = self.streams.get(str(frame.message.get("estimate", frame.message.get("away"))))
        if stream is None:
            return
        if "away" in frame.message:  # so that not all metrics of all streams are kept here
            stream.estimate = stream.shown = stream.drawn = None
            stream.told = False
        else:
            stream.estimate = Estimate.of(frame)
            while stream.unlearned and stream.unlearned[0] <= frame.message["version"]:
                stream.unlearned.popleft()
            stream.wake()

    async def reading(self, query: Callable[..., T], *given: Any) -> T:
        """Read the log, in a thread."""

        def read() -> T:
            with self._reading:
                return query(self._db, *given)

        return await asyncio.to_thread(read)

    # Streams

    def stream(self, name: str) -> Stream:
        """A stream that there is."""
        found = self.streams.get(name)
        if found is None:
            raise Refusal(404, f"there is no stream {name!r}: its first comparison would make it", "name")
        return found

    def open(self, name: str) -> Stream:
        """A stream, which may be empty: people are asked before there is an answer."""
        if name not in self.streams:
            self._make_room()
            self.streams[name] = Stream(name)
        return self.streams[name]

    def _make_room(self) -> None:
        """Forget empty streams that nobody looks at."""
        if len(self.streams) < STREAMS:
            return
        for name, stream in list(self.streams.items()):
            if not stream.last and not stream.watchers and name != "default":
                del self.streams[name]
        if len(self.streams) >= STREAMS:
            raise Refusal(503, f"there are {STREAMS} streams: no more can be made")

    def number(self, id: str, field: str) -> int:
        """The number of an item."""
        found = None if self.items is None else self.items.number.get(id)
        if found is None:
            there = "this service has no items" if self.items is None else "there is no such item"
            raise Refusal(422, f"{field}: {there}, got {id[:80]!r}", field)
        return found

    # What is said

    async def add(self, name: str, entries: list[Entry]) -> list[tuple[int, bool]]:
        """Add entries to the log: their numbers, and whether they were known. They are on the disk then."""
        self._check_load(name)
        width = None if self.items is None else self.items.points.shape[1]
        message = {"stream": name, "width": width, "entries": [_plain(entry) for entry in entries]}
        blobs = [point for entry in entries for point in (entry.x, entry.z) if point is not None]
        frame = await self.writer.ask(message, blobs)
        added = [(number, known) for number, known in frame.message["added"]]
        for entry, (_, known) in zip(entries, added, strict=True):
            self.counts[f"{entry.kind}s"] += not known
        self._told(name, [number for number, known in added if not known] or [number for number, _ in added][-1:])
        return added

    async def undo(self, name: str, id: int, by: str | None) -> tuple[int, bool]:
        """Add an entry that takes another one back."""
        self._check_load(name)
        self.stream(name)
        frame = await self.writer.ask({"stream": name, "undo": id, "by": by})
        number, known = frame.message["added"][0]
        self.counts["undos"] += not known
        self._told(name, [number])
        return number, known

    def _check_load(self, name: str) -> None:
        if self.writer.waiting >= WAITING:
            raise Refusal(503, "too many answers are waiting for the disk: try again in a moment")
        stream = self.streams.get(name)
        if stream is None:
            self._make_room()
        elif len(stream.unlearned) > BEHIND:
            raise Refusal(503, "learning is far behind: try again in a moment")

    def _told(self, name: str, numbers: list[int]) -> None:
        stream = self.streams.setdefault(name, Stream(name))
        stream.unlearned.extend(number for number in numbers if number > stream.last)
        stream.last, stream.told = max(stream.last, *numbers), True
        self.learner.tell({"entries": name, "last": stream.last})
        stream.wake()

    # What is known

    async def ask(self, stream: Stream, verb: str, **more: Any) -> Frame:
        """Ask the learner about a stream."""
        stream.told = True
        return await self.learner.ask({"verb": verb, "stream": stream.name, "last": stream.last, **more})

    async def estimate(self, name: str) -> Estimate:
        """The metric as it was last published."""
        stream = self.stream(name)
        if stream.estimate is None and stream.last:
            await self.ask(stream, "publish")
        if stream.estimate is None:
            raise Refusal(409, f"stream {name!r} has learned nothing yet: it needs a comparison first")
        return stream.estimate

    async def state(self, name: str) -> dict[str, Any]:
        """All that is shown of a stream; who asks at the same time shares one answer."""
        stream = self.open(name)
        if stream.shown is not None and stream.shown[0] == stream.last:
            return stream.shown[1]
        if stream.asking is None or stream.asking.done() or stream.asked < stream.last:
            stream.asking, stream.asked = asyncio.create_task(self._state(stream)), stream.last
        return await asyncio.shield(stream.asking)

    async def _state(self, stream: Stream) -> dict[str, Any]:
        state: dict[str, Any] = (await self.ask(stream, "state")).message["state"]
        state |= {"last": max(stream.last, state["version"]), "track": self.track_command(state.pop("by_points"))}
        stream.shown = (state["version"], state)
        return state

    def track_command(self, by_points: bool) -> str:
        """How to learn the exported answers again, from the files alone."""
        items = "" if self.items is None or by_points else " --items items.csv"
        scale = "" if self.items is None or self.items.scale == "features" else f" --scale {self.items.scale}"
        return f"ocelad track answers.csv{items}{scale}"

    async def plane(self, name: str) -> tuple[Estimate | None, Array]:
        """The items in two dimensions: by the metric or, before there is one, by their largest variance."""
        stream = self.open(name)
        assert self.items is not None
        points = self.items.points[:MAPPED]
        if stream.last and (stream.estimate is None or stream.estimate.version < stream.last):
            await self.ask(stream, "publish")  # so that the picture is of the state that is shown beside it
        estimate = stream.estimate
        version = 0 if estimate is None else estimate.version
        if stream.drawn is None or stream.drawn[0] != version:
            reference = None if stream.drawn is None else stream.drawn[1]
            stream.drawn = version, await asyncio.to_thread(_plane, points, estimate, reference)
        return estimate, stream.drawn[1]

    def point(self, id: str, field: str) -> Array:
        """The features of an item."""
        number = self.number(id, field)
        assert self.items is not None
        return self.items.points[number]


def _plane(points: Array, estimate: Estimate | None, reference: Array | None) -> Array:
    start = plain_plane(points) if reference is None else reference
    return start if estimate is None else estimate.plane(points, start)


def _plain(entry: Entry) -> dict[str, Any]:
    """An entry for the log writer: its points go as they are in memory."""
    said = {name: value for name, value in entry._asdict().items() if value is not None}
    for name in ("id", "at", "seal"):
        del said[name]
    return {**said, **({name: True for name in ("x", "z") if name in said})}


async def _first(child: Child) -> None:
    """Wait until a child is ready, or has been given up."""
    ready: asyncio.Future[Any] = asyncio.ensure_future(child.ready.wait())
    both: list[asyncio.Future[Any]] = [ready, child.failed]
    await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
    if child.failed.done():
        ready.cancel()
        raise ValueError(child.failed.result())


def points_of(x: list[float]) -> bytes:
    """A point as it is in memory."""
    return np.array(x, dtype=np.float64).tobytes()
