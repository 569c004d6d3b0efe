"""Safe files: what a tracker has learned, in a form that no reader has to trust.

See ``docs/files.md`` for the format.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from typing import Any

from ..files import atomic_write
from ..tracker import MetricTracker, SupervisedMetricTracker
from . import container, contents, supervised
from .header import from_json, to_json

__all__ = ["FileError", "load", "save"]

LIMIT = 2**32
"""So many bytes `load` takes at most, unless told otherwise."""

_HEADER = "header.json"
_JSON = 64  # a byte of JSON becomes at most so many bytes of objects
_REBUILD: dict[str, Callable[[dict[str, Any], contents.Arrays, int], MetricTracker | SupervisedMetricTracker]] = {
    "MetricTracker": contents.rebuild,
    "SupervisedMetricTracker": supervised.rebuild,
}


class FileError(ValueError):
    """A file that is not, or no longer, what `save` has written. The message says which file and what is wrong."""


def save(tracker: MetricTracker | SupervisedMetricTracker, path: str | os.PathLike[str]) -> None:
    """Write what a tracker has learned, and its options, to a file.

    The file appears whole or not at all: if anything fails, what was at ``path`` before is still there. The same
    state always gives the same bytes.

    Parameters
    ----------
    tracker
        A `MetricTracker` that has seen a comparison, or a `SupervisedMetricTracker` that has seen a point. Its
        options must be parts of this library: an ``ensemble``, a loss or a preprocessing function of your own
        cannot be written to a file. A `History` that watches it is not saved.
    path
        Where to; an existing file is replaced.

    Examples
    --------
    >>> import tempfile, ocelad
    >>> tracker = ocelad.MetricTracker().partial_fit([[[0.0, 1.0], [1.0, 1.0]]], [-1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ocelad.save(tracker, f"{folder}/tracker.ocelad")
    ...     again = ocelad.load(f"{folder}/tracker.ocelad")
    >>> again.pair_distance([[[0.0, 1.0], [1.0, 1.0]]]) == tracker.pair_distance([[[0.0, 1.0], [1.0, 1.0]]])
    array([ True])
    """
    if type(tracker) is MetricTracker:
        entries, arrays = contents.describe(tracker)
    elif type(tracker) is SupervisedMetricTracker:
        entries, arrays = supervised.describe(tracker)
    else:
        raise ValueError(f"tracker must be a MetricTracker or a SupervisedMetricTracker, got {tracker!r}")
    words = to_json(type(tracker).__name__, entries)
    members = {_HEADER: [memoryview(words)]}
    members |= {f"{name}.npy": container.from_array(array) for name, array in arrays.items()}
    with atomic_write(path) as file:
        file.writelines(container.body(members))
        file.write(container.seal(container.body(members)))


def load(path: str | os.PathLike[str], *, limit: int = LIMIT) -> MetricTracker | SupervisedMetricTracker:
    """The tracker that `save` wrote to a file, of the same class; it continues bit for bit.

    Everything in the file is checked before it is used, nothing in it is executed, and no more memory is taken
    than ``limit`` (and less than a megabyte besides, once the compiled kernels are there), whatever the file
    claims. Raises `FileError` if the file is not in order.

    Parameters
    ----------
    path
        A file written by `save`.
    limit
        Bytes: a file whose tracker would need more is refused.
    """
    if not isinstance(limit, int) or limit < 1:
        raise ValueError(f"limit must be a number of bytes, got {limit!r}")
    found = os.stat(path)  # before opening: a pipe would wait for ever
    name = os.fspath(path)
    if not stat.S_ISREG(found.st_mode):
        raise FileError(f"{name}: it is not a regular file")
    if found.st_size > limit:
        raise FileError(f"{name}: it has {found.st_size} bytes, and the limit is {limit}")
    with open(path, "rb") as file:
        data = file.read(found.st_size)
    try:
        return _read(memoryview(data), limit)
    except ValueError as error:
        raise FileError(f"{name}: {error}") from None


def _read(data: memoryview, limit: int) -> MetricTracker | SupervisedMetricTracker:
    members = container.unpack(data)
    names = list(members)
    if names[:1] != [_HEADER] or not all(name.endswith(".npy") for name in names[1:]):
        raise ValueError(f"its members are {', '.join(names)}, expected {_HEADER} and then arrays, each an .npy")
    words = members.pop(_HEADER)
    left = limit - len(data) - _JSON * len(words)
    if left < 0:
        raise ValueError(f"its header of {len(words)} bytes is too long for a limit of {limit}")
    estimator, entries = from_json(bytes(words))
    if estimator not in _REBUILD:
        raise ValueError(f"it holds a {estimator}, which is not one of {', '.join(_REBUILD)}")
    arrays = {name.removesuffix(".npy"): container.to_array(name, view) for name, view in members.items()}
    return _REBUILD[estimator](entries, arrays, left)
