"""What a file holds of a `KeyedTrackers`: options once, the keys, and of each tracker what `state.pack` gives."""

from __future__ import annotations

import copy
import math
from collections.abc import Hashable, Mapping
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ..engine.checks import take
from ..state import LIMIT, contents, pack, unpack
from ..state.container import Arrays
from ..state.features import Unsaved
from ..state.header import check_count, check_keys, check_names
from ..state.options import Options, feature_names, of, read
from ..tracker import MetricTracker
from ..watch.history import History
from ..watch.saved import alarm_entry, alarm_of

if TYPE_CHECKING:
    from .keyed import KeyedTrackers

_ENTRIES = {"keys", "n_features", "feature_names", "history", "prior"}


def options_of(tracker: MetricTracker) -> Options:
    return of(tracker, contents.UNSAVED)


def same_options(one: MetricTracker, other: MetricTracker) -> bool:
    a, b = options_of(one), options_of(other)
    if isinstance(a.parameters["features"], Unsaved) and one.features != other.features:
        return False
    return a is b or (a.text == b.text and all(np.array_equal(a.arrays[k], b.arrays[k]) for k in a.arrays))


def history_entry(history: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if history is None:
        return None
    made = History(MetricTracker(), **history)
    return {"every": made.every, "capacity": made.capacity, "alarm": alarm_entry(made.alarm)}


def n_features(fleet: KeyedTrackers) -> int:
    """0 if nothing has been learned."""
    return 0 if fleet._new is None else int(fleet._new.n_features_in_)


def describe(fleet: KeyedTrackers) -> tuple[Options, dict[str, Any], Arrays]:
    """The options, the entries and the arrays."""
    with fleet._lock:
        settings, history = fleet._saved_options()
        records = [fleet._packed(key) for key in fleet]
        if fleet.prior is not None:
            records.append(pack(fleet.prior))
        entries = {
            "keys": [_key_to_json(key) for key in fleet],
            "n_features": n_features(fleet),
            "feature_names": None if fleet._new is None else feature_names(fleet._new),
            "history": history,
            "prior": fleet.prior is not None,
        }
    sizes = np.array([len(record) for record in records], dtype=np.int64)
    packed = np.frombuffer(b"".join(records), dtype=np.uint8)
    return settings, entries, settings.arrays | {"sizes": sizes, "packed": packed}


def rebuild(
    text: bytes, entries: dict[str, Any], arrays: Arrays, limit: int, given_features: Any = None
) -> KeyedTrackers:
    """The fleet of options, entries and arrays; its trackers stay bytes until they are needed."""
    from .keyed import KeyedTrackers

    check_keys(entries, _ENTRIES)
    settings = read(MetricTracker, text, arrays, limit // 2)
    if list(arrays) != [*settings.arrays, "sizes", "packed"] or type(entries["prior"]) is not bool:
        raise ValueError("its arrays must be those of its options, sizes and packed")
    keys = list(map(_key_from_json, entries["keys"])) if isinstance(entries["keys"], list) else None
    if keys is None or len(set(keys)) < len(keys):
        raise ValueError("keys must be a list of different ones")
    sizes, packed = arrays["sizes"], arrays["packed"]
    take(arrays, "sizes", (len(keys) + entries["prior"],), np.int64)
    if packed.dtype != np.uint8 or packed.ndim != 1 or (sizes < 0).any() or int(sizes.sum()) != packed.size:
        raise ValueError("packed must be bytes, as many as sizes says")
    left = limit - 3 * packed.size - 1000 * len(keys)
    if left < 0:
        raise ValueError(f"its {len(keys)} trackers take more than {limit} bytes")
    ends = accumulate(sizes.tolist(), initial=0)
    records = [packed[start:end].tobytes() for start, end in pairwise(ends)]
    tracker, history = contents.tracker_of(settings, given_features), _history(entries["history"])
    n, known = entries["n_features"], entries["feature_names"]
    check_count(n, "n_features")
    check_names(known, n)
    if keys and not n:
        raise ValueError("n_features must be those of its trackers, got 0")
    if entries["prior"]:
        prior = unpack(records.pop(), tracker, limit=left)
        fleet = KeyedTrackers(prior=prior, history=history)
        if (n, known) != (prior.n_features_in_, feature_names(prior)):
            raise ValueError(f"n_features and feature_names must be those of the prior, got {n} and {known}")
    else:
        fleet = KeyedTrackers(tracker, history=history)
    return with_records(fleet, dict(zip(keys, records, strict=True)), n, known, limit)


def with_records(
    fleet: KeyedTrackers,
    records: dict[Hashable, bytes],
    n: int,
    names: list[str] | None = None,
    limit: int = LIMIT,
) -> KeyedTrackers:
    """The fleet, which is new, with trackers of n features that stay bytes until they are needed."""
    if n and fleet.prior is None:
        fleet._new = copy.copy(fleet.tracker)
        fleet._new.n_features_in_ = n
        if names is not None:
            fleet._new.feature_names_in_ = np.array(names, dtype=object)
    fleet._kept.update(records)
    fleet._unchecked.update(records)
    fleet._limit = limit
    return fleet


def _history(entry: Any) -> dict[str, Any] | None:
    if entry is None:
        return None
    check_keys(entry, {"every", "capacity", "alarm"})
    alarm = alarm_of(entry["alarm"])
    contents.check_alarm(alarm)
    return {**entry, "alarm": alarm}


def _key_to_json(key: Hashable) -> Any:
    """A key in JSON."""
    if isinstance(key, tuple):
        return {"tuple": [_key_to_json(part) for part in key]}
    if isinstance(key, np.generic) and key.dtype.kind not in "mM":
        key = key.item()
    if key is None or isinstance(key, (str, int)) or (isinstance(key, float) and math.isfinite(key)):
        return key
    raise ValueError(f"key {key!r} cannot be saved: a file holds strings, finite numbers, and tuples of them")


def _key_from_json(entry: Any) -> Hashable:
    if isinstance(entry, dict) and isinstance(entry.get("tuple"), list):
        return tuple(_key_from_json(part) for part in entry["tuple"])
    if isinstance(entry, (dict, list)):
        raise ValueError("keys must be strings, numbers, and tuples of them")
    return entry
