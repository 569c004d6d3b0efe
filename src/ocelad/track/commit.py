"""A tracker and the progress of its run, on disk together: at any moment both are there, and belong together.

tracker.ocelad.next -> progress.json, which has its SHA-256 (from here on the new state counts) -> tracker.ocelad.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from ..files import remove_unfinished, replace, write_text
from ..state import load, save
from ..tracker import MetricTracker

TRACKER, NEXT, PROGRESS = "tracker.ocelad", "tracker.ocelad.next", "progress.json"
FORMAT, VERSION = "ocelad track", 1

_SHAPE = {
    "tracker": str | None,  # its SHA-256
    "settings": {"tracker": dict, "form": dict},
    "input": [int, str],
    "counts": [int, int, int],
    "sizes": {"predictions": int, "timeline": int, "rejected": int},
    "running": {"count": int, "right": int, "loss": float, "bins": [list, list, list]},
    "row": {"alarm": dict, "sums": [int, int, float], "events": list},
    "form": object,
}


def commit(folder: Path, tracker: MetricTracker | None, progress: dict[str, Any]) -> None:
    """Write both; whatever happens meanwhile, either the old state or the new one is there."""
    digest = None
    if tracker is not None:
        save(tracker, folder / NEXT)
        digest = _sha256(folder / NEXT)
    words = {"format": FORMAT, "version": VERSION, "tracker": digest, **progress}
    write_text(folder / PROGRESS, json.dumps(words, sort_keys=True) + "\n")
    if tracker is not None:
        replace(folder / NEXT, folder / TRACKER)


def read_progress(path: Path) -> dict[str, Any]:
    """What ``commit`` wrote down; anything else is an error."""
    try:
        progress = json.loads(path.read_text(encoding="ascii"))
    except (ValueError, RecursionError):
        progress = None
    known = isinstance(progress, dict) and (progress.get("format"), progress.get("version")) == (FORMAT, VERSION)
    if not known:
        raise ValueError(f"{path}: it is not the progress of a run that this version of ocelad can go on with")
    if not _fits(progress, _SHAPE):
        raise ValueError(f"{path}: it is damaged")
    return progress


def _fits(value: Any, shape: Any) -> bool:
    if isinstance(shape, dict):
        return isinstance(value, dict) and all(name in value and _fits(value[name], shape[name]) for name in shape)
    if isinstance(shape, list):
        return isinstance(value, list) and len(value) == len(shape) and all(map(_fits, value, shape))
    return isinstance(value, shape)


def recover(folder: Path) -> tuple[MetricTracker | None, dict[str, Any]] | None:
    """What was committed last; None if nothing was."""
    remove_unfinished(folder)
    path = folder / PROGRESS
    if not path.exists():
        return None
    progress = read_progress(path)
    digest = progress["tracker"]
    if digest is None:
        return None, progress
    if _sha256(folder / NEXT) == digest:
        replace(folder / NEXT, folder / TRACKER)
    if _sha256(folder / TRACKER) != digest:
        raise ValueError(f"{folder / TRACKER}: it is not the tracker that {path} goes with")
    tracker = load(folder / TRACKER)
    assert isinstance(tracker, MetricTracker)
    return tracker, progress


def _sha256(path: Path) -> str | None:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else None
