"""Records: what trackers have learned, without the options, which many of them share.

A record has the arrays of a file, and a header. What changes with every comparison is in arrays too, so that a
fleet's records have few different headers, and each of these is parsed once (`container`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..tracker import MetricTracker
from . import container, contents, header, options
from .container import Arrays

CHANGING = ("time", "unit")
"""t, and how many differences the unit of length was learned from; the unit, if it is not fixed, and the first of
those differences, while they count."""


def write(tracker: MetricTracker) -> container.Pieces:
    settings, entries, arrays = contents.describe(tracker)
    t, scale = entries.pop("t"), entries.pop("scale")
    unit = [] if scale is None else [scale["value"], *scale["first"]]
    changing = np.array([t, scale["count"] if scale else 0], np.int64), np.array(unit, np.float64)
    learned = {name: array for name, array in arrays.items() if name not in settings.arrays}
    named = {"estimator": "MetricTracker", **entries}
    return container.write_record(named, dict(zip(CHANGING, changing, strict=True)) | learned)


def read(data: memoryview, like: MetricTracker, limit: int, unused: MetricTracker | None) -> MetricTracker:
    """The tracker, in the memory of an unused one if it can have that."""
    settings = options.of(like, contents.UNSAVED)
    entries, arrays = container.read_record(data, limit)
    if header.estimator(entries) != "MetricTracker" or list(arrays)[: len(CHANGING)] != [*CHANGING]:
        raise ValueError("it is not what pack has made of a MetricTracker")
    entries |= _changing(arrays)
    engine = None if unused is None else unused._engine
    arrays = {**settings.arrays, **arrays}
    return contents.rebuilt(settings, entries, arrays, limit - len(data), like.features, engine)


def _changing(arrays: Arrays) -> dict[str, Any]:
    """The entries that these arrays, which are taken out, stand for."""
    time, values = (arrays.pop(name) for name in CHANGING)
    if (time.dtype, time.shape, values.dtype, values.ndim) != (np.int64, (2,), np.float64, 1):
        raise ValueError("time must be two integers, and unit numbers")
    (t, count), unit = time.tolist(), values.tolist()
    if not unit and count:
        raise ValueError(f"time has {count} differences for a unit that is fixed")
    return {"t": t, "scale": {"value": unit[0], "count": count, "first": unit[1:]} if unit else None}
