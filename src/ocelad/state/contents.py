"""What is in a file: a header in JSON and a few arrays, together all that a tracker needs to go on as if nothing
had happened.

How many levels there are and how long they run is not in a file, because it follows from the time and the base.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from .. import validation as validate
from ..engine import Engine, box_engine, rice_engine
from ..engine.checks import settled
from ..geometry.comid import Recipe
from ..geometry.metric import Metric
from ..intervals import active, length
from ..protocols import Array, Weights
from ..tracker import MetricTracker
from ..tracker.algorithm_2 import algorithm_2, first_scale, recipe_of
from ..tracker.inputs import preprocessor
from ..tracker.metric_tracker import LEARNED
from ..tracker.units import FIRST, FixedScale, RunningScale, Scale
from ..weights import FixedShare
from . import options
from .header import base_of, check_tracker, number_word

Arrays = options.Arrays

UNSAVED = {
    *LEARNED,
    "preprocessor_",
    "_history",
    "_own_lock",
}  # in other words, or not at all: a History is kept elsewhere


def describe(tracker: MetricTracker) -> tuple[dict[str, Any], Arrays]:
    """The header's entries and the arrays of a tracker."""
    with tracker._lock:
        if "_engine" not in vars(tracker) and tracker._given is not None:
            raise ValueError(
                "tracker has learned nothing since its components_ were set; a file holds what is learned"
            )
        engine, n = tracker._fitted(), int(tracker.n_features_in_)
        words, arrays = options.describe(tracker, UNSAVED)
        options.check_preprocessor(arrays.get("preprocessor"), n)
        given = _check_unchanged(tracker, engine)
        entries = {
            "options": words,
            "n_features": n,
            "feature_names": options.feature_names(tracker),
            "t": engine.t,
            "scale": vars(tracker._scale) if isinstance(tracker._scale, RunningScale) else None,
            "threshold": number_word(tracker._threshold),
            "given": None if given is None else given.mu,
        }
        if given is not None:
            arrays |= {"given": given.M}
        arrays |= engine.snapshot()
    check_tracker(entries)  # never write what would not be read
    return entries, arrays


def _check_unchanged(tracker: MetricTracker, engine: Engine) -> Metric | None:
    """A file holds one set of options: those that were read at the first comparison must still be there. Where
    the learners begin may be another matrix, if components_ were set, which is returned."""
    recipe, given = engine.recipe, None
    anew = recipe_of(tracker, recipe.n)
    if not isinstance(recipe.origin, float) and not _from_options(recipe, anew):
        given = Metric(recipe.origin, recipe.mu)
        anew = recipe_of(tracker, recipe.n, given)
    scale = first_scale(tracker)
    if not (
        _same_recipe(anew, recipe)
        and (tracker.weights, tracker.loss) == (engine.weights, engine.loss)
        and type(scale) is type(tracker._scale)
        and (scale == tracker._scale or isinstance(scale, RunningScale))
        and options.same_preprocessor(tracker)
    ):
        raise ValueError("options have changed since the first comparison; set them back, or start a new tracker")
    return given


def _same_recipe(one: Recipe, other: Recipe) -> bool:
    plain = ("n", "mu", "step", "descent", "base", "start", "max_rank")
    return all(getattr(one, name) == getattr(other, name) for name in plain) and _same_origin(one, other)


def _same_origin(one: Recipe, other: Recipe) -> bool:
    """To the bit: a number is not the same as a matrix."""
    return type(one.origin) is type(other.origin) and np.array_equal(one.origin, other.origin)


def _from_options(recipe: Recipe, anew: Recipe) -> bool:
    return recipe.mu == anew.mu and _same_origin(recipe, anew)


def rebuild(entries: dict[str, Any], arrays: Arrays, limit: int) -> MetricTracker:
    """The tracker of a header and arrays, if there can be one, and it takes at most ``limit`` bytes."""
    check_tracker(entries)
    n, t, words = entries["n_features"], entries["t"], entries["options"]
    base = base_of(words)
    levels = active(base + t, base)
    tracker = MetricTracker(**options.decode(words, arrays, limit // 2))
    _check_size(entries, arrays, tracker, levels, limit - 2 * options.size(words, arrays))
    engine = _begin(entries, arrays, tracker)
    own = ["given"] if entries["given"] is not None else []
    arrays = settled(n, arrays)
    expected = [*options.array_names(words), *own, *engine.snapshot()]
    if list(arrays) != expected:
        raise ValueError(f"its arrays are {', '.join(arrays) or 'none'}, expected {', '.join(expected)}")
    check(entries, arrays, engine)
    engine.restore(t, arrays)
    if engine.weights != tracker.weights:
        engine = _as_boxes(engine, tracker.weights)
    tracker._engine, tracker._scale = engine, _scale(tracker, entries)
    tracker._threshold = None if entries["threshold"] is None else float(entries["threshold"])
    tracker._given, tracker.n_features_in_ = None, n
    tracker.preprocessor_ = preprocessor(tracker.preprocessor)
    if entries["feature_names"] is not None:
        tracker.feature_names_in_ = np.array(entries["feature_names"], dtype=object)
    return tracker


def _check_size(entries: dict[str, Any], arrays: Arrays, tracker: MetricTracker, levels: int, limit: int) -> None:
    """What the arrays claim, before anything of that size is allocated."""
    from ..engine.snapshot import footprint  # and with it the compiler

    n = entries["n_features"]
    columns = [np.clip(arrays[name], 0, n).max(initial=0) for name in ("ranks", "counts") if name in arrays]
    starts = (entries["given"] is not None) + isinstance(tracker.origin, np.ndarray)
    boxes = levels + 1 if "matrices" in arrays or "ranks" not in arrays or _after(tracker.weights) else 0
    size = footprint(n, levels, n if starts else int(max(columns, default=0)), starts + boxes)
    if size > limit:
        raise ValueError(f"a tracker of {n} features with {levels} levels may take more than {limit} bytes")


def _begin(entries: dict[str, Any], arrays: Arrays, tracker: MetricTracker) -> Engine:
    """The engine before its first comparison."""
    n, mu = entries["n_features"], entries["given"]
    validate.n_components(tracker.n_components, n)
    options.check_preprocessor(tracker.preprocessor, n)
    given = None
    if mu is not None:
        if "given" not in arrays or arrays["given"].shape != (n, n):
            raise ValueError(f"given must be a matrix of shape ({n}, {n})")
        given = Metric(arrays["given"], mu)
    with np.errstate(over="ignore"):
        recipe = recipe_of(tracker, n, given)
    if not np.isfinite(recipe.origin).all():
        raise ValueError("the learners' origin is too large")
    if given is not None and np.asarray(recipe.origin).tobytes() != given.M.tobytes():
        raise ValueError("given must be a symmetric matrix")
    if given is not None and _from_options(recipe, recipe_of(tracker, n)):
        raise ValueError("given is the origin of the options")
    if "matrices" in arrays:  # black boxes: a file of 0.1.0 may have them where there are kernels, too
        return box_engine(recipe.black_boxes(), tracker.loss, tracker.weights, recipe)
    if "ranks" in arrays and _after(tracker.weights):  # and a stack where there are black boxes now
        return rice_engine(recipe, tracker.loss, replace(tracker.weights, order="before"))  # type: ignore[type-var]
    return algorithm_2(tracker, n, given)


def _after(weights: Weights) -> bool:
    return getattr(weights, "order", "before") == "after"


def _as_boxes(stack: Engine, weights: Weights) -> Engine:
    engine = box_engine(stack.recipe.black_boxes(), stack.loss, weights, stack.recipe)
    learned = {
        name: array for name, array in stack.snapshot().items() if name in ("state", "losses", "mu", "discarded")
    }
    engine.restore(stack.t, learned | {"matrices": np.array([metric.M for metric in stack.metrics()])})
    return engine


def check(entries: dict[str, Any], arrays: Arrays, engine: Engine) -> None:
    """Whether the arrays can be those of a tracker at that time."""
    t, base, rule = entries["t"], base_of(entries["options"]), engine.weights
    lengths = [length(level, base) for level in range(active(base + t, base))]
    if arrays["mu"].shape != (len(lengths),):
        raise ValueError(f"mu must be one number for each of {len(lengths)} levels")

    losses = arrays["losses"]
    unjudged = np.array([size == base + t for size in lengths])  # a level that has begun just now
    if losses.shape != unjudged.shape or losses.dtype.kind != "f":
        raise ValueError(f"losses must be one float for each of {len(lengths)} levels")
    if not np.array_equal(np.isnan(losses), unjudged) or not ((losses >= 0) & (losses < np.inf) | unjudged).all():
        raise ValueError("losses must be finite and >= 0, and nan for a level that has just begun")

    state = arrays["state"]
    if state.shape != (len(lengths), len(rule.fields)) or state.dtype.kind != "f" or not np.isfinite(state).all():
        raise ValueError(f"state must be finite, with {len(lengths)} rows and columns {', '.join(rule.fields)}")
    known = {
        "span": [float(size) for size in lengths],
        "endless": [0.0 for _ in lengths],
        "age": [float((base + t) % size) for size in lengths],
    }
    columns = {name: column.tolist() for name, column in zip(rule.fields, state.T, strict=True)}
    if any(columns[name] != known[name] for name in columns.keys() & known.keys()):
        raise ValueError("state contradicts the time")
    _check_weights(rule, state, columns)


def _check_weights(rule: Weights, state: Array, columns: dict[str, list[float]]) -> None:
    """Whether a rule can have come to its state."""
    with np.errstate(all="ignore"):
        p = rule.probabilities(state)
        normalised = not isinstance(rule, FixedShare) or abs(float(np.exp(state).sum()) - 1.0) < 1e-6
    drawn = sorted(columns.get("drawn", [1.0]), reverse=True)
    bounded = all(  # sums of regrets by the sum of their sizes, or by their number
        abs(total) <= bound * (1.0 + 1e-9) + 1e-9
        for name, limit in (("R", "C"), ("sum", "age"))
        for total, bound in zip(columns.get(name, ()), columns.get(limit, ()), strict=True)
    )
    if not (normalised and bounded and drawn == [1.0] + [0.0] * (len(drawn) - 1)):
        raise ValueError(f"state is not one to which {type(rule).__name__} can come")
    if not ((p >= 0.0).all() and abs(float(p.sum()) - 1.0) < 1e-6):
        raise ValueError("state gives no probabilities")


def _scale(tracker: MetricTracker, entries: dict[str, Any]) -> Scale:
    words, t, fresh = entries["scale"], entries["t"], first_scale(tracker)
    if isinstance(fresh, FixedScale):
        if words is not None:
            raise ValueError("scale must be null where the unit is fixed")
        return fresh
    if not isinstance(words, dict) or words.keys() != {"value", "count", "first"}:
        raise ValueError("scale must have value, count and first")
    value, count, first = words["value"], words["count"], words["first"]
    most = t if entries["given"] is None else 2**62  # setting components_ starts the time anew, not the unit
    if not (type(count) is int and 0 <= count <= most and isinstance(first, list)):
        raise ValueError(f"scale has count {count!r} at time {t}")
    numbers = [value, *first]
    if not all(type(number) is float and 0.0 < number < math.inf for number in numbers):
        raise ValueError("scale must have numbers > 0")
    median = sorted(first)[count // 2] if len(first) == count > 0 else value
    if len(first) != (count if count <= FIRST else 0) or value != (1.0 if count == 0 else median):
        raise ValueError("scale contradicts itself")
    return RunningScale(value, count, tuple(first))
