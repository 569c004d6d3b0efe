"""Snapshots of a stream: where its fold stood at some entry of the log, so that not all has to be learned again.

A snapshot is a zip file with ``about.json``, what `dumps` gives of the tracker, and what was said about items. One
that is damaged, of another log, or of before an undo, is left out: the log has it all.
"""

from __future__ import annotations

import json
import sys
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..files import atomic_write, remove_unfinished

FORMAT, VERSION = "ocelad serve", 1
KEPT = 3
LARGEST = 1 << 30


@dataclass(frozen=True)
class Snapshot:
    """The state after entry ``position`` of the log."""

    position: int
    about: dict[str, Any]
    tracker: bytes
    judgements: bytes


class Snapshots:
    """Those of a stream, the newest ones, in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, snapshot: Snapshot) -> None:
        """Keep a snapshot, and remove the oldest; if that cannot be done, it is said, and nothing is lost."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            remove_unfinished(self.folder)
            about = {"format": FORMAT, "version": VERSION, "position": snapshot.position, **snapshot.about}
            with atomic_write(self._path(snapshot.position)) as file, zipfile.ZipFile(file, "w") as archive:
                archive.writestr("about.json", json.dumps(about))
                archive.writestr("tracker", snapshot.tracker)
                archive.writestr("judgements", snapshot.judgements)
            for path in self._paths()[KEPT:]:
                path.unlink()
        except OSError as error:
            print(f"{self.folder}: a snapshot could not be written: {error}", file=sys.stderr, flush=True)

    def newest(self, before: int | None = None) -> Iterator[Snapshot]:
        """Those of positions before a number, the newest first; the damaged ones are left out."""
        for path in self._paths():
            if before is None or int(path.stem) < before:
                try:
                    yield _read(path)
                except Exception as error:  # a bit that flipped can make nearly any of a zip file
                    left_out(path, f"it is damaged: {error!r}")

    def forget(self, since: int) -> None:
        """Remove those of a position, and of later ones: they hold what was undone."""
        for path in self._paths():
            if int(path.stem) >= since:
                with suppress(OSError):
                    path.unlink()

    def _path(self, position: int) -> Path:
        return self.folder / f"{position:012d}.zip"

    def _paths(self) -> list[Path]:
        return sorted(self.folder.glob("[0-9]*.zip"), reverse=True)


def left_out(path: Path, why: str) -> None:
    """Say that a snapshot is of no use."""
    print(f"{path}: this snapshot is left out, an older one or the log takes its place: {why}", file=sys.stderr)
    sys.stderr.flush()


def _read(path: Path) -> Snapshot:
    with zipfile.ZipFile(path) as archive:
        if sum(info.file_size for info in archive.infolist()) > LARGEST:
            raise ValueError(f"it would take more than {LARGEST} bytes")
        about = json.loads(archive.read("about.json"))
        if not isinstance(about, dict) or (about.get("format"), about.get("version")) != (FORMAT, VERSION):
            raise ValueError("it is not a snapshot of this version of ocelad")
        position = about["position"]
        if position != int(path.stem):
            raise ValueError(f"it is of entry {position}")
        return Snapshot(position, about, archive.read("tracker"), archive.read("judgements"))
