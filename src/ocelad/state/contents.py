"""What is in a file: a header in JSON and a few arrays, together all that a tracker needs to go on as if nothing
had happened.

How many levels there are and how long they run is not in a file, because it follows from the time and the base.
"""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np

from .. import validation as validate
from ..engine import Engine
from ..engine.checks import widest
from ..geometry.comid import Recipe
from ..geometry.metric import Metric
from ..grouped_share import GroupedShare
from ..intervals import Intervals, active
from ..protocols import Array, snapshot
from ..tracker import MetricTracker
from ..tracker.algorithm_2 import algorithm_2, first_scale, recipe_of
from ..tracker.inputs import features
from ..tracker.learning import LEARNED
from ..tracker.preprocessor import read_preprocessor
from ..tracker.units import COUNT, FIRST, SIZE, FeatureScale, FixedScale, RunningScale, Scale
from . import options
from .container import Arrays
from .features import chosen, held
from .header import check_tracker, json_number
from .kinds import room

UNSAVED = {
    *LEARNED,
    "preprocessor_",
    "features_",
    "_history",
    "_own_lock",
}  # saved in another form, or not at all
SMALL = 64
"""Up to this number of features, engines are kept as they were when new."""
SPARE = 4
"""Columns of a level for the next comparisons, for a tracker is brought back in order to learn."""
_NEW: dict[tuple[bytes, int, int, int], Engine] = {}


def describe(tracker: MetricTracker) -> tuple[options.Options, dict[str, Any], Arrays]:
    """The options of a tracker, the entries that say what it has learned, and the arrays of both."""
    with tracker._lock:
        if "_engine" not in vars(tracker) and tracker._given is not None:
            raise ValueError(
                "tracker has learned nothing since its components_ were set; a file holds what is learned"
            )
        engine, n = tracker._fitted(), int(tracker.n_features_in_)
        settings = options.of(tracker, UNSAVED)
        options.check_points(settings.arrays.get("preprocessor"), tracker.features, n)
        given = _check_unchanged(tracker, engine, settings)
        entries = {
            "n_features": n,
            "feature_names": options.feature_names(tracker),
            "t": engine.t,
            "scale": _scale_entry(tracker._scale),
            "threshold": json_number(tracker._threshold),
            "given": None if given is None else given.mu,
            "history": None,
        }
        arrays = dict(settings.arrays) if given is None else settings.arrays | {"given": given.M}
        if isinstance(tracker._scale, FeatureScale):
            arrays["sizes"] = tracker._scale.sizes
        arrays |= engine.snapshot()
        if tracker._history is not None:
            entries["history"], more = room("History").describe(tracker._history)
            arrays |= prefixed("history.", more)
    check_tracker(entries, _base(settings))  # never write what would not be read
    return settings, entries, arrays


def prefixed(prefix: str, arrays: Arrays) -> Arrays:
    return {prefix + name: array for name, array in arrays.items()}


def split_off(prefix: str, arrays: Arrays) -> tuple[Arrays, Arrays]:
    """The arrays whose names begin so, by the rest of their names, and the others, which must come before them."""
    own = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
    others = {name: array for name, array in arrays.items() if not name.startswith(prefix)}
    if list(arrays) != [*others, *prefixed(prefix, own)]:
        raise ValueError(f"its arrays are {', '.join(arrays)}, expected those of {prefix} after the others")
    return own, others


def _base(settings: options.Options) -> Any:
    """The length of the shortest intervals."""
    base = settings.parameters["base"]
    return base.base if isinstance(base, Intervals) else base


def _check_unchanged(tracker: MetricTracker, engine: Engine, settings: options.Options) -> Metric | None:
    """A file holds one set of options: those that were read at the first comparison must still be there. Where
    the learners begin may be another matrix, if components_ were set, which is returned."""
    recipe, given, n = engine.recipe, None, engine.recipe.n
    anew = _new(tracker, settings, n).recipe if _is_small(settings, n) else recipe_of(tracker, n)
    if anew is not recipe and not isinstance(recipe.origin, float) and not _from_options(recipe, anew):
        given = Metric(recipe.origin, recipe.mu)
        anew = recipe_of(tracker, n, given)
    scale = first_scale(tracker, n)
    if not (
        (anew is recipe or _same_recipe(anew, recipe))
        and (tracker.weights, tracker.loss) == (engine.weights, engine.loss)
        and tracker.memory == engine.memory
        and tracker.nonlinear == (engine.nonlinear is not None)
        and features(tracker.features) == tracker.features_
        and type(scale) is type(tracker._scale)
        and (not isinstance(scale, FixedScale) or scale == tracker._scale)
        and options.same_preprocessor(tracker)
    ):
        raise ValueError("options have changed since the first comparison; set them back, or start a new tracker")
    return given


def _is_small(settings: options.Options, n: int) -> bool:
    return n <= SMALL and not settings.arrays and len(settings.text) <= options.SHORT


def _new(tracker: MetricTracker, settings: options.Options, n: int, levels: int = 1, columns: int = 1) -> Engine:
    """An engine of these options and of this size that has not begun. It is kept, for a fleet has many trackers
    alike, and making it takes longer than all else."""
    key = (settings.text, n, levels, -(-columns // 4))
    engine = _NEW.get(key)
    if engine is None:
        smallest = (levels, columns) == (1, 1)
        engine = algorithm_2(tracker, n) if smallest else copy.copy(_new(tracker, settings, n))  # of one recipe
        engine.reserve(levels, columns)
        if len(_NEW) >= 64:
            _NEW.clear()
        _NEW[key] = engine
    return engine


def _same_recipe(one: Recipe, other: Recipe) -> bool:
    plain = ("n", "mu", "step", "descent", "base", "start", "max_rank")
    return all(getattr(one, name) == getattr(other, name) for name in plain) and _same_origin(one, other)


def _same_origin(one: Recipe, other: Recipe) -> bool:
    """To the bit: a number is not the same as a matrix."""
    return type(one.origin) is type(other.origin) and np.array_equal(one.origin, other.origin)


def _from_options(recipe: Recipe, anew: Recipe) -> bool:
    return recipe.mu == anew.mu and _same_origin(recipe, anew)


def tracker_of(settings: options.Options, given_features: Any) -> MetricTracker:
    """A tracker that has learned nothing, with features that are given where the file has but their name."""
    tracker = MetricTracker(**settings.parameters)
    tracker.features = chosen(tracker.features, given_features)
    return tracker


def rebuild(
    text: bytes, entries: dict[str, Any], arrays: Arrays, limit: int, given_features: Any = None
) -> MetricTracker:
    """The tracker of options, entries and arrays, if there can be one, and it takes at most ``limit`` bytes."""
    return rebuilt(options.read(MetricTracker, text, arrays, limit // 2), entries, arrays, limit, given_features)


def rebuilt(
    settings: options.Options,
    entries: dict[str, Any],
    arrays: Arrays,
    limit: int,
    given_features: Any = None,
    unused: Engine | None = None,
) -> MetricTracker:
    """The same, of options that have been read. If it can, it takes the memory of an engine that is not used any
    more."""
    base = _base(settings)
    check_tracker(entries, base)
    n, t = entries["n_features"], entries["t"]
    levels = active(base + t, base)
    tracker = tracker_of(settings, given_features)
    watched, arrays = split_off("history.", arrays) if entries["history"] is not None else ({}, arrays)
    left = limit - 2 * held(settings.arrays) - _size_of_history(watched)
    _check_size(entries, arrays, tracker, levels, left)
    engine = _begin(entries, arrays, tracker, settings, levels, unused)
    scale = first_scale(tracker, n)
    own = ["given"] if entries["given"] is not None else []
    own += ["sizes"] if isinstance(scale, FeatureScale) else []
    expected = [*settings.arrays, *own, *engine.learned]
    if list(arrays) != expected:
        raise ValueError(f"its arrays are {', '.join(arrays) or 'none'}, expected {', '.join(expected)}")
    tracker._engine = engine.restored(t, arrays)
    tracker._scale = _scale(scale, entries, arrays)
    tracker._threshold = None if entries["threshold"] is None else float(entries["threshold"])
    tracker._given, tracker.n_features_in_ = None, n
    tracker.preprocessor_, tracker.features_ = read_preprocessor(tracker.preprocessor), features(tracker.features)
    if entries["feature_names"] is not None:
        tracker.feature_names_in_ = np.array(entries["feature_names"], dtype=object)
    if entries["history"] is not None:
        history = room("History").rebuild(entries["history"], watched, tracker)
        if history.stride < 1:
            raise ValueError(f"history's stride must be >= 1, got {history.stride}")
        check_alarm(history.alarm)
        check_alarm(history._new_alarm)
    return tracker


def _size_of_history(arrays: Arrays) -> int:
    """Rows of these two become objects of Python's, far larger than their numbers."""
    larger = {"counts": 32, "outcomes": 16}
    return sum(larger.get(name, 3) * array.nbytes for name, array in arrays.items())


def check_alarm(alarm: Any) -> None:
    if alarm is not None and min(alarm.state()["square"]) < 0.0:
        raise ValueError("history's alarm has a negative mean of squares")


def _check_size(entries: dict[str, Any], arrays: Arrays, tracker: MetricTracker, levels: int, limit: int) -> None:
    """What the arrays claim, before anything of that size is allocated."""
    from ..engine.snapshot import footprint  # and with it the compiler

    n = entries["n_features"]
    starts = (entries["given"] is not None) + isinstance(tracker.origin, np.ndarray)
    boxes = 0 if "columns" in arrays or "dictionary" in arrays else levels + 1
    memory = tracker.memory if isinstance(tracker.weights, GroupedShare) and type(tracker.memory) is int else 0
    bends = tracker.nonlinear is True
    if footprint(n, levels, n, starts + boxes, memory, bends) <= limit:
        return
    if starts or footprint(n, levels, 0 if boxes else widest(n, arrays), boxes, memory, bends) > limit:
        raise ValueError(f"a tracker of {n} features with {levels} levels may take more than {limit} bytes")


def _begin(
    entries: dict[str, Any],
    arrays: Arrays,
    tracker: MetricTracker,
    settings: options.Options,
    levels: int,
    unused: Engine | None,
) -> Engine:
    """The engine before its first comparison, or the unused one."""
    n, mu = entries["n_features"], entries["given"]
    validate.n_components(tracker.n_components, n)
    options.check_points(tracker.preprocessor, tracker.features, n)
    if mu is None and "matrices" not in arrays and _is_small(settings, n):
        begun = _new(tracker, settings, n, levels + 1, min(n, SPARE + widest(n, arrays)))
        return unused if unused is not None and unused.recipe is begun.recipe else copy.copy(begun)
    given = None
    if mu is not None:
        M = arrays.get("given", np.zeros(0))
        if M.shape != (n, n) or M.dtype != np.float64:
            raise ValueError(f"given must be a matrix of shape ({n}, {n}), and of floats")
        given = Metric(M, mu)
    with np.errstate(over="ignore"):
        recipe = recipe_of(tracker, n, given)
    if not np.isfinite(recipe.origin).all():
        raise ValueError("the learners' origin is too large")
    if given is not None and np.asarray(recipe.origin).tobytes() != given.M.tobytes():
        raise ValueError("given must be a symmetric matrix")
    if given is not None and _from_options(recipe, recipe_of(tracker, n)):
        raise ValueError("given is the origin of the options")
    # a file of 0.1.0 may have black boxes where there are kernels, too
    return algorithm_2(tracker, n, given, boxes="matrices" in arrays)


def _scale_entry(scale: Scale) -> dict[str, Any] | None:
    if isinstance(scale, FeatureScale):
        scale = scale.common
    if not isinstance(scale, RunningScale):
        return None
    return {"value": scale.value, "count": scale.count, "first": scale.first}


def _scale(fresh: Scale, entries: dict[str, Any], arrays: Arrays) -> Scale:
    entry, t = entries["scale"], entries["t"]
    if isinstance(fresh, FixedScale):
        if entry is not None:
            raise ValueError("scale must be null where the unit is fixed")
        return fresh
    if not isinstance(entry, dict) or entry.keys() != {"value", "count", "first"}:
        raise ValueError("scale must have value, count and first")
    value, count, first = entry["value"], entry["count"], entry["first"]
    most = t if entries["given"] is None else 2**62  # setting components_ starts the time anew, not the unit
    if not (type(count) is int and 0 <= count <= most and isinstance(first, list)):
        raise ValueError(f"scale has count {count!r} at time {t}")
    numbers = [value, *first]
    if not all(type(number) is float and 0.0 < number < math.inf for number in numbers):
        raise ValueError("scale must have numbers > 0")
    median = sorted(first)[count // 2] if len(first) == count > 0 else value
    if len(first) != (count if count <= FIRST else 0) or value != (1.0 if count == 0 else median):
        raise ValueError("scale contradicts itself")
    common = RunningScale(value, count, tuple(first))
    return FeatureScale(_sizes(arrays["sizes"], fresh), common) if isinstance(fresh, FeatureScale) else common


def _sizes(found: Any, fresh: FeatureScale) -> Array:
    """A table of feature sizes, if it can be one."""
    if found.shape != fresh.sizes.shape or found.dtype != np.float64:
        raise ValueError(f"sizes must be floats of shape {fresh.sizes.shape}")
    size, count, first = found[SIZE], found[COUNT], found[COUNT + 1 :]
    there = np.arange(1, len(first) + 1)[:, None] <= count
    if not (
        np.isfinite(found).all()
        and (found >= 0.0).all()
        and (count == np.floor(count)).all()
        and ((first > 0.0) == there).all()
        and (there[1:] <= (first[1:] >= first[:-1])).all()
    ):
        raise ValueError("sizes must have finite numbers >= 0, counts, and the first of each feature in order")
    middle = first[np.minimum(count, len(first)).astype(int) // 2, np.arange(len(count))]
    if not np.where(count <= len(first), size == middle, size > 0.0).all():
        raise ValueError("sizes contradict themselves")
    return snapshot(found)
