"""What a file holds of a `MovingIndex`: points, ids, the tracker behind it, and what was exported last."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..engine.checks import take
from ..state import contents
from ..state.container import Arrays
from ..state.header import check_count, check_keys, to_json
from ..state.options import NONE, Options
from ..tracker import MetricTracker
from .index import MovingIndex

_ENTRIES = {"ids", "next", "exported", "metric"}


def describe(index: MovingIndex) -> tuple[Options, dict[str, Any], Arrays]:
    """Entries and arrays; an index has no options."""
    if type(index.metric) is not MetricTracker:
        raise ValueError(f"metric={index.metric!r} cannot be saved: a file holds an index with a MetricTracker")
    settings, learned, more = contents.describe(index.metric)
    if index._X.shape[1] not in (0, learned["n_features"]):  # they came before it had learned anything
        raise ValueError(f"metric must have the {index._X.shape[1]} features of the stored points")
    strings = index._ids.dtype == object
    entries = {
        "ids": index._ids.tolist() if strings else None,
        "next": index._next,
        "exported": None if index._exported is None else index._exported[1],
        "metric": {"options": settings.entries, **learned},
    }
    arrays: Arrays = {"points": index._X[: len(index)]}
    if not strings:
        arrays["ids"] = index._ids
    if index._exported is not None:
        arrays["exported"] = index._exported[0]
    return NONE, entries, arrays | contents.prefixed("metric.", more)


def rebuild(
    text: bytes, entries: dict[str, Any], arrays: Arrays, limit: int, given_features: Any = None
) -> MovingIndex:
    """The index of entries and arrays, if there can be one, and it takes at most ``limit`` bytes."""
    check_keys(entries, _ENTRIES)
    if text != NONE.text:
        raise ValueError("an index has no options")
    inner, own = contents.split_off("metric.", arrays)
    ids, exported, learned = entries["ids"], entries["exported"], entries["metric"]
    expected = ["points", *(["ids"] if ids is None else []), *(["exported"] if exported is not None else [])]
    if list(own) != expected or not isinstance(learned, dict) or not isinstance(learned.get("options"), dict):
        raise ValueError(f"its arrays are {', '.join(own)}, expected {', '.join(expected)} and a metric's")
    check_count(entries["next"], "next")
    count = len(own["points"]) if own["points"].ndim else 0
    left = limit - 3 * sum(array.nbytes for array in own.values()) - 128 * count  # ids are kept as a set, too
    if left < 0:
        raise ValueError(f"its points take more than {limit} bytes")
    tracker = contents.rebuild(to_json(learned.pop("options")), learned, inner, left, given_features)
    index, n = MovingIndex(tracker), tracker.n_features_in_
    m, *width = own["points"].shape or (0,)
    points = take(own, "points", (m, 0 if (m, width) == (0, [0]) else n))
    if ids is not None and not (isinstance(ids, list) and [type(each) for each in ids] == [str] * m):
        raise ValueError(f"ids must be null or {m} strings")
    known = take(own, "ids", (m,), np.int64) if ids is None else ids
    if m:
        index._add(points, known)
    index._X = index._X if m else points
    if entries["next"] < index._next:
        raise ValueError("next must be above all ids")
    index._next = entries["next"]
    if exported is not None:
        if not (type(exported) is float and math.isfinite(exported)):
            raise ValueError("exported must be null or a threshold")
        index._exported = np.array(take(own, "exported", (n, n))), exported
    return index
