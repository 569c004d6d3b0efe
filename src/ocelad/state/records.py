"""Records: what trackers have learned, without the options, which many of them share.

A record has the arrays of a file, and a header. What changes with every comparison is in arrays too, so that a
fleet's records have few different headers, and each of these is parsed once (`container`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..engine.checks import take
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
    return contents.rebuild(settings.text, entries, arrays, limit - len(data), like.features, engine)


def _changing(arrays: Arrays) -> dict[str, Any]:
    """The entries that these arrays, which are taken out, stand for."""
    t, count = take(arrays, "time", (2,), np.int64).tolist()
    unit = take(arrays, "unit", (arrays["unit"].size,)).tolist()
    if not unit and count:
        raise ValueError(f"time has {count} differences for a unit that is fixed")
    for name in CHANGING:
        del arrays[name]
    return {"t": t, "scale": {"value": unit[0], "count": count, "first": unit[1:]} if unit else None}
