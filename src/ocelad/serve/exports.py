"""What can be taken away: answers and items that ``ocelad track`` reads, and groups."""

from __future__ import annotations

import csv
import io
import sqlite3
from collections.abc import Iterable
from typing import Any

import numpy as np

from . import log
from .items import StoredItems, track_items


def answers(db: sqlite3.Connection, stream: str, items: StoredItems | None) -> bytes:
    """The answers that count, in order: by the ids of items or, if any is about points, by features."""
    gone = log.undone(db, stream)
    said = [entry for entry in log.read(db, stream) if entry.kind == "comparison" and entry.id not in gone]
    if not any(entry.x for entry in said):
        return _csv(["id_a", "id_b", "y"], ([entry.a, entry.b, entry.y] for entry in said))
    width = len(next(entry.x for entry in said if entry.x)) // 8
    names = [str(k) for k in range(width)] if items is None else items.features
    header = [f"{side}_{name}" for side in "xz" for name in names]
    rows = ([*_point(e.x, e.a, items), *_point(e.z, e.b, items), e.y] for e in said)
    return _csv([*header, "y"], rows)


def _point(x: bytes | None, id: str | None, items: StoredItems | None) -> list[float]:
    if x is not None:
        return np.frombuffer(x).tolist()
    assert items is not None
    assert id is not None
    return items.points[items.number[id]].tolist()


def items(stored: StoredItems) -> bytes:
    """The items and their features."""
    header, rows = track_items(stored)
    return _csv(header, rows)


def groups(stored: StoredItems, groups: list[list[int]]) -> bytes:
    """The group of each item; an item that has not been placed yet has none."""
    number = {item: k for k, group in enumerate(groups, 1) for item in group}
    return _csv(["id", "group"], ([id, number.get(k, "")] for k, id in enumerate(stored.ids)))


def _csv(header: Iterable[str], rows: Iterable[Iterable[Any]]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue().encode()
