"""What is in the file of a `SupervisedMetricTracker`: its options, the points it remembers, the state of its
random numbers, and, under names that begin with ``learned.``, all that is in the file of the tracker behind it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .. import validation as validate
from ..pair_sampling import check
from ..tracker import MetricTracker, SupervisedMetricTracker
from ..tracker.preprocessor import read_preprocessor
from . import contents, options
from .container import Arrays
from .contents import prefixed, split_off
from .features import held
from .header import check_count, check_keys, check_names, to_json

_ENTRIES = {"tracker", "n_features", "feature_names", "number", "labels", "random", "learned"}
_UNSAVED = {
    "tracker_",
    "preprocessor_",
    "n_features_in_",
    "feature_names_in_",
    "_recent",
    "_random",
    "_number",
    "_own_lock",
}
_SPARSE = ("points.data", "points.indices", "points.indptr")
_INTEGERS = {np.dtype(code).name: np.dtype(code) for code in "bhilqBHIL"}
_FLOATS = {np.dtype(code).name: np.dtype(code) for code in "efd"}
_OTHERS = {"bool": np.dtype(bool), "str": np.dtype(str), "object": np.dtype(object)}
_KEYS = 624  # integers in the state of the random numbers, which are those of a Mersenne twister


def describe(tracker: SupervisedMetricTracker) -> tuple[options.Options, dict[str, Any], Arrays]:
    """The options, the entries that say what it has learned, and the arrays of both."""
    with tracker._lock:
        return _describe(tracker)


def _describe(tracker: SupervisedMetricTracker) -> tuple[options.Options, dict[str, Any], Arrays]:
    check_is_fitted(tracker, "tracker_")
    settings = options.of(_without_tracker(tracker), _UNSAVED)
    n = int(tracker.n_features_in_)
    _check_options(tracker, n)
    options.check_points(settings.arrays.get("preprocessor"), tracker.tracker_.features, n)
    if not options.same_preprocessor(tracker):
        raise ValueError("preprocessor has changed since the first point; set it back, or start a new tracker")
    template, arrays_of_template = _template(tracker.tracker)
    learned, arrays_of_learned = learned_entries(tracker.tracker_)
    points, y = tracker._recent
    random, keys = _random(tracker._random)
    entries = {
        "tracker": template,
        "n_features": n,
        "feature_names": options.feature_names(tracker),
        "number": tracker._number,
        "labels": _labels(y),
        "random": random,
        "learned": learned,
    }
    arrays = settings.arrays | prefixed("tracker.", arrays_of_template) | {"random": keys} | _points(points)
    _check(settings, entries)
    return settings, entries, arrays | prefixed("learned.", arrays_of_learned)


def _check_options(tracker: SupervisedMetricTracker, n: int) -> None:
    check(tracker.strategy)
    tracker._count("memory")
    tracker._count("pairs_per_point")
    validate.n_components(tracker.n_components, n)
    check_random_state(tracker.random_state)


def _without_tracker(tracker: SupervisedMetricTracker) -> SupervisedMetricTracker:
    """The same, but for the option that is an estimator itself."""
    outer = SupervisedMetricTracker()
    outer.__dict__.update(vars(tracker) | {"tracker": None})
    return outer


def _template(tracker: Any) -> tuple[dict[str, Any] | None, Arrays]:
    if tracker is None:
        return None, {}
    if type(tracker) is not MetricTracker:
        raise ValueError(f"tracker={tracker!r} cannot be saved: a file holds a MetricTracker")
    settings = options.of(MetricTracker(**tracker.get_params(deep=False)), set())
    return settings.entries, settings.arrays


def learned_entries(tracker: MetricTracker) -> tuple[dict[str, Any], Arrays]:
    """The tracker behind; its options alone, if no point has been compared yet."""
    if tracker._given is None and "_engine" not in vars(tracker):
        settings = options.of(tracker, contents.UNSAVED)
        return {"options": settings.entries}, settings.arrays
    settings, entries, arrays = contents.describe(tracker)
    return {"options": settings.entries, **entries}, arrays


def _labels(y: Any) -> dict[str, Any]:
    kind = "str" if y.dtype.kind == "U" else y.dtype.name
    entry = {"kind": kind, "values": y.tolist()}
    _restored_labels(entry, math.inf)
    return entry


def _restored_labels(entry: Any, limit: float) -> Any:
    check_keys(entry, {"kind", "values"})
    kind, values = entry["kind"], entry["values"]
    dtype = (_INTEGERS | _FLOATS | _OTHERS).get(kind) if isinstance(kind, str) else None
    if dtype is None or not isinstance(values, list):
        raise ValueError(f"labels of kind {kind!r} cannot be in a file: numbers and strings can")
    expected = {"b": bool, "i": int, "u": int, "f": float}.get(dtype.kind, str)
    if not all(type(value) is expected for value in values):
        raise ValueError(f"labels of kind {kind} must all be of type {expected.__name__}")
    longest = max(map(len, values), default=0) if kind == "str" else 1
    if 4 * longest * len(values) > limit:  # as each takes as much as the longest
        raise ValueError(f"labels take more than {limit} bytes")
    try:
        with np.errstate(all="ignore"):
            y = np.array(values, dtype=dtype)
    except (OverflowError, ValueError):
        y = np.array([])
    if y.tolist() != values:
        raise ValueError(f"labels must be values of kind {kind}")
    return y


def _random(rng: np.random.RandomState) -> tuple[dict[str, Any], np.ndarray[Any, Any]]:
    state: Any = rng.get_state(legacy=False)
    if state["bit_generator"] != "MT19937":
        raise ValueError("random_state cannot be saved: a file holds the state of numpy's default RandomState")
    normal = float(state["gauss"]) if state["has_gauss"] else None
    return {"position": int(state["state"]["pos"]), "normal": normal}, state["state"]["key"].astype(np.int64)


def _restored_random(entry: Any, keys: Any) -> np.random.RandomState:
    check_keys(entry, {"position", "normal"})
    position, normal = entry["position"], entry["normal"]
    if keys.shape != (_KEYS,) or keys.dtype.kind != "i" or not ((keys >= 0) & (keys < 2**32)).all():
        raise ValueError(f"random must be {_KEYS} integers of 32 bits")
    if type(position) is not int or not 0 <= position <= _KEYS or not (normal is None or type(normal) is float):
        raise ValueError("random must have a position among its numbers, and a number or null for normal")
    rng = np.random.RandomState(0)
    rng.set_state(
        ("MT19937", keys.astype(np.uint32), position, int(normal is not None), 0.0 if normal is None else normal)
    )
    return rng


def _points(points: Any) -> Arrays:
    if not sparse.issparse(points):
        return {"points": points}
    parts = (points.data, points.indices.astype(np.int64), points.indptr.astype(np.int64))
    return dict(zip(_SPARSE, parts, strict=True))


def _restored_points(arrays: Arrays, m: int, n: int) -> Any:
    """So many points, dense or CSR."""
    if "points" in arrays:
        points = arrays["points"]
        if points.shape != (m, n) or points.dtype.kind != "f" or not np.isfinite(points).all():
            raise ValueError(f"points must be finite, of shape ({m}, {n}), as many as labels")
        return np.array(points, dtype=np.float64)
    data, indices, indptr = (np.array(arrays[name]) for name in _SPARSE)
    if [part.dtype.kind for part in (data, indices, indptr)] != ["f", "i", "i"] or not np.isfinite(data).all():
        raise ValueError("points must have finite data, and integers for indices and indptr")
    rows = indptr.shape == (m + 1,) and indptr[0] == 0 and indptr[-1] == data.size and (np.diff(indptr) >= 0).all()
    if not rows or data.ndim != 1 or data.shape != indices.shape:
        raise ValueError(f"points must be {m} rows of a CSR matrix, as many as labels")
    if not ((indices >= 0) & (indices < n)).all():
        raise ValueError(f"points has indices outside 0, ..., {n - 1}")
    return sparse.csr_array((data, indices, indptr), shape=(m, n))


def _check(settings: options.Options, entries: dict[str, Any]) -> None:
    check_keys(entries, _ENTRIES)
    if settings.entries["tracker"] is not None:
        raise ValueError("the option tracker has an entry of its own")
    check_count(entries["number"], "number")
    check_count(entries["n_features"], "n_features")
    if entries["n_features"] == 0:
        raise ValueError("n_features must be an integer >= 1")
    check_names(entries["feature_names"], entries["n_features"])


def rebuild(
    text: bytes, entries: dict[str, Any], arrays: Arrays, limit: int, given_features: Any = None
) -> SupervisedMetricTracker:
    """The tracker of options, entries and arrays, if there can be one, and it takes at most ``limit`` bytes."""
    inner, outer = split_off("learned.", arrays)
    of_template = {name.removeprefix("tracker."): outer[name] for name in outer if name.startswith("tracker.")}
    settings = options.read(SupervisedMetricTracker, text, outer, limit // 2)
    _check(settings, entries)
    n = entries["n_features"]
    y = _restored_labels(entries["labels"], limit // 2)
    left = limit - 2 * y.nbytes - 3 * sum(array.nbytes for array in outer.values())
    if left < 0:
        raise ValueError(f"its points and options take more than {limit} bytes")
    tracker = SupervisedMetricTracker(**settings.parameters)
    template = None if entries["tracker"] is None else _read_options(entries["tracker"], of_template, left)
    of_template = template.arrays if template else {}
    left -= 2 * held(of_template)
    expected = [*settings.arrays, *prefixed("tracker.", of_template), "random"]
    if list(outer) not in ([*expected, "points"], [*expected, *_SPARSE]):
        raise ValueError(f"its arrays are {', '.join(outer)}, expected {', '.join(expected)} and points")
    _check_options(tracker, n)
    if template is not None:
        tracker.tracker = contents.tracker_of(template, given_features)
    tracker.preprocessor_ = read_preprocessor(tracker.preprocessor)
    tracker._random, tracker._number = _restored_random(entries["random"], outer["random"]), entries["number"]
    tracker._recent, tracker.n_features_in_ = (_restored_points(outer, len(y), n), y), n
    if entries["feature_names"] is not None:
        tracker.feature_names_in_ = np.array(entries["feature_names"], dtype=object)
    tracker.tracker_ = restored_tracker(entries["learned"], inner, left, given_features=given_features)
    if getattr(tracker.tracker_, "n_features_in_", n) != n:
        raise ValueError(f"learned has {tracker.tracker_.n_features_in_} features, points have {n}")
    options.check_points(tracker.preprocessor, tracker.tracker_.features, n)
    return tracker


def _read_options(entries: Any, arrays: Arrays, limit: int) -> options.Options:
    if not isinstance(entries, dict):
        raise ValueError("its options are not those of MetricTracker")
    return options.read(MetricTracker, to_json(entries), arrays, limit // 2)


def restored_tracker(
    entries: Any, arrays: Arrays, limit: int, name: str = "learned", given_features: Any = None
) -> MetricTracker:
    """The tracker of `learned_entries`."""
    if not isinstance(entries, dict) or "options" not in entries:
        raise ValueError(f"{name} must have the entries of a MetricTracker")
    own = entries.pop("options")
    if not entries:
        settings = _read_options(own, arrays, limit)
        if list(arrays) != list(settings.arrays):
            raise ValueError("a tracker that has learned nothing has no arrays but those of its options")
        return contents.tracker_of(settings, given_features)
    return contents.rebuild(_read_options(own, arrays, limit).text, entries, arrays, limit, given_features)
