"""The process that writes the log, and does nothing else: it acknowledges what is on the disk.

Requests that have come while it was busy are committed together, so that many share one wait for the disk.
"""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

from .frames import Frame, packed
from .log import Entry, Log, Refusal
from .pipes import Pipes
from .salvage import check


def main(folder: str) -> None:
    """Write the log of a folder until the service goes away."""
    pipes = Pipes()
    pipes.wait_to_begin()
    try:
        check(Path(folder))
        log = Log(Path(folder))
    except (ValueError, OSError, sqlite3.Error) as error:
        pipes.send(packed({"failed": f"{error}"}))
        sys.exit(1)
    with closing(log):
        pipes.send(packed({"ready": log.last}))
        while frames := pipes.receive():
            pipes.send(_commit(log, frames))


def _commit(log: Log, frames: list[Frame]) -> bytes:
    """Write what is asked for in one transaction; what cannot be taken does not hinder the others."""
    replies = []
    try:
        for frame in frames:
            replies.append({"n": frame.message["n"], **_one(log, frame)})
        log.commit()
    except (sqlite3.Error, OSError) as error:  # the disk is full, or broken: nothing of it was written
        log.rollback()
        detail = f"the answer could not be saved ({error}): try again when there is room on the disk"
        replies = [{"n": frame.message["n"], "refused": [503, detail, ""]} for frame in frames]
    return b"".join(map(packed, replies))


def _one(log: Log, frame: Frame) -> dict[str, Any]:
    """One request: all of its entries, or none."""
    message, stream = frame.message, frame.message["stream"]
    try:
        if "undo" in message:
            added = [log.undo(stream, message["undo"], message["by"])]
        else:
            with log.together():
                added = [log.add(stream, entry, message["width"]) for entry in _entries(frame)]
    except Refusal as refusal:
        return {"refused": [refusal.status, refusal.detail, refusal.field]}
    return {"added": added}


def _entries(frame: Frame) -> list[Entry]:
    blobs = iter(frame.blobs)
    points = ("x", "z")
    return [
        Entry(0, **{**entry, **({name: next(blobs) for name in points} if entry.get("x") else {})})
        for entry in frame.message["entries"]
    ]


if __name__ == "__main__":
    main(*sys.argv[1:])
