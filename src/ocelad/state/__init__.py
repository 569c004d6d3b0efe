"""Bytes and files that no reader has to trust: what trackers, fleets and indexes have learned.

See ``docs/files.md`` for the format.
"""

from __future__ import annotations

import os
import stat
from typing import Any

from ..files import atomic_write
from ..tracker import MetricTracker, inputs
from . import container, header, records, zipped
from .kinds import ROOMS, room

Saved = Any  # trackers, and what rooms above this one have

__all__ = ["FileError", "dumps", "load", "loads", "pack", "save", "unpack"]

LIMIT = 2**32
"""Bytes of memory that `load` takes at most, unless told otherwise."""

_WHOLE = [name for name in ROOMS if name != "History"]  # which goes with its tracker


_WRONG = (ValueError, OverflowError, RecursionError)  # the last of JSON that is nested too deeply


class FileError(ValueError):
    """A file, or bytes, that are not, or no longer, what `save` has written. The message says what is wrong."""


def dumps(tracker: Saved) -> bytes:
    """What a tracker has learned, its options and its `History`, as bytes; the same state gives the same bytes.

    Parameters
    ----------
    tracker
        A `MetricTracker` that has seen a comparison, a `SupervisedMetricTracker` that has seen a point, a
        `MovingIndex`, a `KeyedTrackers`, a `Closure`, or `Queries` with their tracker. Options must be parts of
        this library: an ``ensemble``, a loss, an alarm, a strategy or a preprocessing function of your own cannot
        be written. ``features`` that are a `StandardScaler`, `PCA`, `RBFSampler` or (RBF) `Nystroem` of
        scikit-learn's are written, of others their name.

    Examples
    --------
    >>> import ocelad
    >>> tracker = ocelad.MetricTracker().partial_fit([[[0.0, 1.0], [1.0, 1.0]]], [-1])
    >>> again = ocelad.loads(ocelad.dumps(tracker))
    >>> again.pair_distance([[[0.0, 1.0], [1.0, 1.0]]]) == tracker.pair_distance([[[0.0, 1.0], [1.0, 1.0]]])
    array([ True])
    """
    return b"".join(_pieces(tracker))


def loads(data: bytes, *, limit: int = LIMIT, features: Any = None) -> Saved:
    """What `dumps` made bytes of, of the same class; it continues bit for bit.

    Everything is checked before it is used, nothing is executed, and no more memory is taken than ``limit`` (and
    less than a megabyte besides, once the compiled kernels are there), whatever the bytes claim. Raises
    `FileError` if they are not in order.

    Parameters
    ----------
    data
        Bytes from `dumps`, or those of a file.
    limit
        Bytes: what would need more is refused.
    features
        The function, or the transformer, that a tracker was saved with, where the file has but its name. It also
        takes the place of one that is in the file.
    """
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise ValueError(f"data must be bytes, got {type(data).__name__}")
    return _read(data, limit, "data", features)


def save(tracker: Saved, path: str | os.PathLike[str]) -> None:
    """Write to a file what `dumps` gives.

    The file appears whole or not at all: if anything fails, what was at ``path`` before is still there.

    Parameters
    ----------
    tracker
        As for `dumps`.
    path
        Where to; an existing file is replaced.

    Examples
    --------
    >>> import tempfile, ocelad
    >>> tracker = ocelad.MetricTracker().partial_fit([[[0.0, 1.0], [1.0, 1.0]]], [-1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ocelad.save(tracker, f"{folder}/tracker.ocelad")
    ...     again = ocelad.load(f"{folder}/tracker.ocelad")
    >>> ocelad.dumps(again) == ocelad.dumps(tracker)
    True
    """
    pieces = _pieces(tracker)
    with atomic_write(path) as file:
        file.writelines(pieces)


def load(path: str | os.PathLike[str], *, limit: int = LIMIT, features: Any = None) -> Saved:
    """What `save` wrote to a file, also in ocelad 0.1.0; see `loads`."""
    _check_limit(limit)
    found = os.stat(path)  # before opening: a pipe would wait for ever
    name = os.fspath(path)
    if not stat.S_ISREG(found.st_mode):
        raise FileError(f"{name}: it is not a regular file")
    if found.st_size > limit:
        raise FileError(f"{name}: it has {found.st_size} bytes, and the limit is {limit}")
    with open(path, "rb") as file:
        data = file.read(found.st_size)
    return _read(data, limit, str(name), features)


def pack(tracker: MetricTracker) -> bytes:
    """What a tracker has learned, without its options: for stores that hold many trackers alike.

    >>> import ocelad
    >>> tracker = ocelad.MetricTracker().partial_fit([[[0.0, 1.0], [1.0, 1.0]]], [-1])
    >>> again = unpack(pack(tracker), ocelad.MetricTracker())
    >>> ocelad.dumps(again) == ocelad.dumps(tracker)
    True
    """
    return b"".join(records.write(tracker))


def unpack(
    data: bytes | memoryview, like: MetricTracker, *, limit: int = LIMIT, unused: MetricTracker | None = None
) -> MetricTracker:
    """The tracker of `pack`, with the options of another one; checked as by `loads`.

    It may take over the memory of an ``unused`` tracker, which must not be used any more: to bring back many
    trackers, one after the other, takes less time so.
    """
    try:
        return records.read(memoryview(data), like, limit, unused)
    except _WRONG as error:
        raise FileError(f"data: {error}") from None


def _pieces(tracker: Any) -> container.Pieces:
    name = type(tracker).__name__
    if name not in _WHOLE or not type(tracker).__module__.startswith("ocelad."):
        raise ValueError(f"tracker must be one of {', '.join(_WHOLE)}, got {tracker!r}")
    settings, entries, arrays = room(name).describe(tracker)
    return container.write_file(settings.text, {"estimator": name, **entries}, arrays)


def _read(data: bytes | bytearray | memoryview, limit: int, name: str, features: Any) -> Any:
    _check_limit(limit)
    inputs.features(features)  # refuses what is none
    view = memoryview(data).cast("B")
    try:
        left = limit - len(view)
        if left < 0:
            raise ValueError(f"it has {len(view)} bytes, and the limit is {limit}")
        if bytes(view[:4]) == b"PK\3\4":
            estimator, entries, arrays = zipped.read(view, left)
            text = header.to_json(entries.pop("options", {}))
        else:
            text, entries, arrays = container.read_file(view, left)
            estimator = header.estimator(entries)
        if estimator not in _WHOLE:
            raise ValueError(f"it holds a {estimator}, which is not one of {', '.join(_WHOLE)}")
        return room(estimator).rebuild(text, entries, arrays, left, features)
    except _WRONG as error:
        raise FileError(f"{name}: {error}") from None


def _check_limit(limit: int) -> None:
    if not isinstance(limit, int) or limit < 1:
        raise ValueError(f"limit must be a number of bytes, got {limit!r}")
