"""The items of a service as they are kept in its folder: points for the learner, and what people are shown.

``items/items.json`` has words, and names the file of the points, ``items/points-*.npy``, which is written first:
after a crash there are the old items or the new ones, whole. Each has a checksum. The process that answers
requests imports this, so it needs numpy alone.
"""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from ..files import atomic_write, remove_unfinished
from ..protocols import Array
from .image_folder import find_images, inside, is_relative

Kind = Literal["table", "text", "image", "points"]
Scale = Literal["features", "auto"]

LONGEST_ID = 200
SHOWN = 20_000
"""The largest number of characters of a text, or of a cell, that is shown."""

HOVER = 80
LARGEST = 1e30
"""As in tables: numbers beyond it are refused there, and exported items are read back as a table."""

FORMAT = 1
_FOLDER, _WORDS = "items", "items.json"


@dataclass(frozen=True, eq=False)
class StoredItems:
    """Items to compare, by number: 0, 1, ... in their order.

    Parameters
    ----------
    ids
        Their names: printable, different, at most 200 characters.
    points, features
        An array of shape (m, n), read-only, and the names of the n features.
    columns, cells
        What is shown of each, as words. Of images it is their sub-folder, which is also in their names: it colours
        the map, and is not shown once more.
    texts, images
        What is shown large: a text each, or the path of an image each, relative to ``folder``.
    kind, scale
        What they are, and the ``scale`` of a `MetricTracker` for them.
    digest
        Of the source, see `source_digest`.
    """

    ids: list[str]
    points: Array
    features: tuple[str, ...]
    columns: tuple[str, ...]
    cells: list[list[str]]
    texts: list[str] | None
    images: list[str] | None
    folder: str | None
    kind: Kind
    scale: Scale
    digest: str

    def __post_init__(self) -> None:
        check_ids(self.ids)
        m, names = len(self.ids), self.features
        if m < 2:
            raise ValueError(f"two or more items are needed, got {m}")
        if self.points.dtype != np.float64 or self.points.shape != (m, len(names)) or not names:
            got = f"{self.points.dtype} of shape {self.points.shape}"
            raise ValueError(
                f"points must be float64 of shape ({m}, {len(names)}), with a feature or more, got {got}"
            )
        if odd := [name for name in names if name != clean_name(name)]:
            raise ValueError(f"features must have names that a table can have, got {odd[0]!r}")
        if len(set(names)) < len(names) or len(set(self.columns)) < len(self.columns):
            raise ValueError("features and columns must have different names")
        if len(self.cells) != m or any(len(row) != len(self.columns) for row in self.cells):
            raise ValueError(f"cells must be {m} rows of {len(self.columns)}")
        for name, given in (("texts", self.texts), ("images", self.images)):
            if given is not None and len(given) != m:
                raise ValueError(f"{name} must be as many as items, {m}, got {len(given)}")
        if self.images is not None and not self.folder:
            raise ValueError("images must be in a folder")
        if bad := [name for name in self.images or () if not is_relative(name)]:
            raise ValueError(f"images must be paths in a folder, without backslashes or drives, got {bad[0]!r}")
        if self.kind not in get_args(Kind) or self.scale not in get_args(Scale):
            raise ValueError(f"kind and scale must be ones that there are, got {self.kind!r} and {self.scale!r}")
        points = self.points.view()
        points.flags.writeable = False
        object.__setattr__(self, "points", points)

    @cached_property
    def number(self) -> dict[str, int]:
        """The number of each id."""
        return {id: number for number, id in enumerate(self.ids)}

    def item(self, number: int) -> dict[str, Any]:
        """What a person is shown of an item."""
        pairs = [] if self.images is not None else zip(self.columns, self.cells[number], strict=True)
        return {
            "id": self.ids[number],
            "text": None if self.texts is None else _cut(self.texts[number], SHOWN),
            "image": None if self.images is None else f"/images/{number}",
            "cells": [[name, _cut(cell, SHOWN)] for name, cell in pairs],
        }

    def label(self, number: int) -> str:
        """A few words for an item, at most 80 characters."""
        shown = [] if self.images is not None else self.cells[number]
        if self.texts is not None:
            shown = [self.texts[number][: 4 * HOVER]]
        words = " ".join(", ".join(cell for cell in shown if cell).split())
        return _cut(f"{self.ids[number]}: {words}" if words else self.ids[number], HOVER)

    def column(self, name: str) -> list[str]:
        """The cells of a column, an item each."""
        if name not in self.columns:
            raise ValueError(f"there is no column {name!r}: there are {', '.join(self.columns) or 'none'}")
        place = self.columns.index(name)
        return [row[place] for row in self.cells]

    def image_path(self, number: int) -> Path:
        """The file of an item's image, which is in the folder, also when links have been followed."""
        if self.images is None or self.folder is None:
            raise ValueError("these items have no images")
        return inside(self.folder, self.images[number])

    @staticmethod
    def exists(folder: str | os.PathLike[str]) -> bool:
        """Whether the folder of a service has items."""
        return Path(folder, _FOLDER, _WORDS).exists()

    def write(self, folder: str | os.PathLike[str]) -> None:
        """Keep them in the folder of a service, whole or not at all."""
        room = Path(folder, _FOLDER)
        room.mkdir(parents=True, exist_ok=True)
        remove_unfinished(room)
        words: dict[str, Any] = {each.name: getattr(self, each.name) for each in fields(self)}
        points = np.ascontiguousarray(self.points, dtype="<f8")
        name = f"points-{hashlib.sha256(points.data).hexdigest()[:16]}.npy"
        with atomic_write(room / name) as file:
            np.save(file, points, allow_pickle=False)
        words |= {"format": FORMAT, "points": name, "points_crc32": _checksum(room / name)}
        body = json.dumps(words)[1:].encode() + b"\n"
        with atomic_write(room / _WORDS) as file:
            file.write(_START % zlib.crc32(body) + body)
        for old in room.glob("points-*.npy"):
            if old.name != name:
                with suppress(OSError):  # some systems keep what another process has open
                    old.unlink()

    @classmethod
    def read(cls, folder: str | os.PathLike[str]) -> StoredItems:
        """The items that are in the folder of a service; their points are mapped, not loaded."""
        path = Path(folder, _FOLDER, _WORDS)
        try:
            return cls._read(path)
        except FileNotFoundError as error:
            raise ValueError(f"{error.filename}: it is missing; {_ADVICE}") from None
        except (ValueError, KeyError, TypeError, AttributeError, EOFError) as error:
            raise ValueError(f"{path.parent}: the items are damaged ({error}); {_ADVICE}") from None

    @classmethod
    def _read(cls, path: Path) -> StoredItems:
        data = path.read_bytes()
        body = data[len(_START % 0) :]
        if data[: len(_START % 0)] != _START % zlib.crc32(body):
            raise ValueError(f"{path.name} is not what was written")
        words = json.loads(b"{" + body)
        if words.pop("format") != FORMAT:
            raise ValueError(f"{path.name} has another format, of another version of ocelad")
        file = path.parent / os.path.basename(words.pop("points"))
        if _checksum(file) != words.pop("points_crc32"):
            raise ValueError(f"{file.name} is not what was written")
        points = np.asarray(np.load(file, mmap_mode="r", allow_pickle=False))
        words |= {name: tuple(words[name]) for name in ("features", "columns")}
        return cls(points=points, **words)


_ADVICE = "restore the folder from a copy, or start with another --data folder"
_START = b'{"crc32": "%08x", '  # of all that follows


def check_ids(ids: Sequence[str]) -> None:
    """Check that these can name items."""
    seen: set[str] = set()
    for id in ids:
        if not id.isprintable() or not id or id != id.strip() or len(id) > LONGEST_ID:
            expected = f"1 to {LONGEST_ID} characters that can be printed, without spaces around them"
            raise ValueError(f"the id of an item must be {expected}, got {_cut(repr(id), 2 * HOVER)}")
        if id in seen:
            raise ValueError(f"item {id!r} is there twice")
        seen.add(id)


def clean_name(name: str) -> str:
    """A name that a column of numbers can have beside the column id, in CSV whose separator is told by its header.

    >>> clean_name("id"), clean_name("width;\\tcm "), clean_name("")
    ('id (feature)', 'width  cm', 'unnamed')
    """
    name = "".join(letter if letter.isprintable() and letter != ";" else " " for letter in name).strip()
    name = name[:LONGEST_ID].strip() or "unnamed"
    return "id (feature)" if name == "id" else name


def track_items(items: StoredItems) -> tuple[list[str], Iterator[list[str]]]:
    """A header and rows, of which ``ocelad track ANSWERS --items ITEMS`` reads the same points, bit for bit."""
    rows = ([id, *map(repr, point.tolist())] for id, point in zip(items.ids, items.points, strict=True))
    return ["id", *items.features], rows


def check_continues(old: StoredItems, new: StoredItems) -> None:
    """Check that answers about the old items hold for the new: those as they were, and perhaps more after them."""
    if old.features != new.features:
        odd = [name for name in old.features if name not in new.features]
        odd += [name for name in new.features if name not in old.features]
        raise ValueError(f"the features are others than before{f', such as {odd[0]!r}' if odd else ''}; {_OTHER}")
    if old.scale != new.scale:
        raise ValueError(f"the features come from elsewhere than before; {_OTHER}")
    for number, id in enumerate(old.ids):
        if number >= len(new.ids) or new.ids[number] != id:
            problem = "has another place than before" if id in new.number else "is no longer there"
            raise ValueError(f"item {id!r} {problem}; {_OTHER}")
    ours, theirs = (np.ascontiguousarray(each.points[: len(old.ids)]).view(np.uint64) for each in (old, new))
    if len(changed := np.flatnonzero((ours != theirs).any(axis=1))):
        number = int(changed[0])
        feature = old.features[int(np.flatnonzero(ours[number] != theirs[number])[0])]
        why = {"text": " (words count by how rare they are in all texts)", "image": " (they depend on all images)"}
        told = f"item {old.ids[number]!r} has other features than before, such as {feature!r}"
        raise ValueError(f"{told}{why.get(new.kind, '')}; {_OTHER}")


_OTHER = "the answers so far are about the items as they were: start with another --data folder"


def source_digest(
    path: str | None,
    id: str | None = None,
    features: Sequence[str] = (),
    show: Sequence[str] = (),
    points: str | None = None,
    text: str | None = None,
) -> str:
    """The SHA-256 of all that `read_items` reads, so that an unchanged source need not be read again.

    Of images these are names, sizes and times, not the content.
    """
    told = hashlib.sha256(json.dumps([FORMAT, id, list(features), list(show), text]).encode())
    for source in (path, points):
        if source is None:
            told.update(b"\0nothing")
        elif os.path.isdir(source):
            root = os.path.realpath(source)
            told.update(b"\0folder" + os.fsencode(root))
            for name in find_images(root):
                about = os.stat(os.path.join(root, name))
                told.update(b"\0" + os.fsencode(name) + b"\0%d %d" % (about.st_size, about.st_mtime_ns))
        else:
            with open(source, "rb") as file:
                content = hashlib.file_digest(file, "sha256").digest()
            told.update(b"\0file" + "".join(Path(source).suffixes[-2:]).lower().encode() + b"\0" + content)
    return told.hexdigest()


def _checksum(path: Path) -> str:
    checksum = 0
    with open(path, "rb") as file:  # not through the map, whose pages would count as memory of this process
        while piece := file.read(1 << 20):
            checksum = zlib.crc32(piece, checksum)
    return f"{checksum:08x}"


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "\u2026"
