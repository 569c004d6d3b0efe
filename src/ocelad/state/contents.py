"""What is in a file: a header in JSON and a few arrays, together all that a tracker needs to go on as if nothing
had happened.

How many levels there are and how long they run is not in a file, because it follows from the time and the base.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..intervals import active, length
from ..learner import Array, Weights
from ..metric import MetricTracker
from ..metric import arrays as engine
from ..metric.scale import FIRST, FixedScale, RunningScale, Scale
from ..ocelad import Ocelad
from ..weights import FixedShare
from . import options
from .header import FORMAT, VERSION

Arrays = options.Arrays

_FITTED = {"_ocelad", "_scale", "_loss", "n_features_in_", "feature_names_in_"}


def describe(tracker: MetricTracker) -> tuple[dict[str, Any], Arrays]:
    """Header and arrays of a tracker."""
    ocelad = tracker._fitted()
    parameters = tracker.get_params(deep=False)
    words, arrays = options.encode(parameters)
    options.decode(words, arrays)  # refuses here what it would refuse when read
    stray = vars(tracker).keys() - parameters.keys() - _FITTED
    if stray:
        raise ValueError(f"a file has no place for the tracker's {', '.join(sorted(stray))}; pickle has")
    if not engine.names(ocelad.ensemble):
        raise ValueError(f"ensemble cannot be saved: a file holds RICE of COMID learners, not {ocelad.ensemble!r}")
    _check_unchanged(tracker, ocelad)
    header = {
        "format": FORMAT,
        "version": VERSION,
        "estimator": "MetricTracker",
        "options": words,
        "n_features": int(tracker.n_features_in_),
        "feature_names": [str(name) for name in tracker.feature_names_in_]
        if hasattr(tracker, "feature_names_in_")
        else None,
        "t": ocelad.t,
        "scale": vars(tracker._scale) if isinstance(tracker._scale, RunningScale) else None,
    }
    learned = {"state": ocelad.state, "losses": ocelad.losses, **engine.arrays(ocelad.ensemble)}
    return header, arrays | learned


def _check_unchanged(tracker: MetricTracker, ocelad: Ocelad[Any]) -> None:
    """A file holds one set of options: those that were read at the first comparison must still be there."""
    anew = tracker._algorithm_2(tracker.n_features_in_)
    scale = tracker._first_scale()
    if not (
        engine.same_parts(anew.ensemble, ocelad.ensemble)
        and (anew.weights, anew.order, tracker.loss) == (ocelad.weights, ocelad.order, tracker._loss)
        and type(scale) is type(tracker._scale)
        and (scale == tracker._scale or isinstance(scale, RunningScale))
    ):
        raise ValueError("options have changed since the first comparison; set them back, or start a new tracker")


def rebuild(header: dict[str, Any], arrays: Arrays, limit: int) -> MetricTracker:
    """The tracker of a header and arrays, if there can be one, and it takes at most ``limit`` bytes."""
    n, t, base = header["n_features"], header["t"], header["options"]["base"]
    levels = active(base + t, base)
    matrices = [name for name, word in header["options"].items() if isinstance(word, dict) and "array" in word]
    rank = int(np.clip(arrays["ranks"], 0, n).max(initial=0)) if "ranks" in arrays and not matrices else n
    if engine.footprint(n, levels, rank) > limit:
        raise ValueError(f"a tracker of {n} features with {levels} levels may take more than {limit} bytes")

    tracker = MetricTracker(**options.decode(header["options"], arrays))
    ocelad = tracker._algorithm_2(n)
    expected = [*matrices, "state", "losses", *engine.names(ocelad.ensemble)]
    if list(arrays) != expected:
        raise ValueError(f"its arrays are {', '.join(arrays) or 'none'}, expected {', '.join(expected)}")
    check(header, arrays, ocelad.weights)

    engine.restore(ocelad.ensemble, t, arrays)
    ocelad.t = t
    ocelad.lengths = np.array([float(length(level, base)) for level in range(levels)])
    ocelad.state, ocelad.losses = (np.array(arrays[name], dtype=np.float64) for name in ("state", "losses"))
    tracker._ocelad, tracker._loss, tracker.n_features_in_ = ocelad, tracker.loss, n
    tracker._scale = _scale(tracker, header["scale"], t)
    if header["feature_names"] is not None:
        tracker.feature_names_in_ = np.array(header["feature_names"], dtype=object)
    return tracker


def check(header: dict[str, Any], arrays: Arrays, rule: Weights) -> None:
    """Whether the arrays can be those of a tracker at that time."""
    n, t, base = header["n_features"], header["t"], header["options"]["base"]
    lengths = [length(level, base) for level in range(active(base + t, base))]
    engine.check(n, len(lengths), arrays)

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


def _scale(tracker: MetricTracker, words: Any, t: int) -> Scale:
    fresh = tracker._first_scale()
    if isinstance(fresh, FixedScale):
        if words is not None:
            raise ValueError("scale must be null where the unit is fixed")
        return fresh
    if not isinstance(words, dict) or words.keys() != {"value", "count", "first"}:
        raise ValueError("scale must have value, count and first")
    value, count, first = words["value"], words["count"], words["first"]
    if not (type(count) is int and 0 <= count <= t and isinstance(first, list)):
        raise ValueError(f"scale has count {count!r} at time {t}")
    numbers = [value, *first]
    if not all(type(number) is float and 0.0 < number < math.inf for number in numbers):
        raise ValueError("scale must have numbers > 0")
    median = sorted(first)[count // 2] if len(first) == count > 0 else value
    if len(first) != (count if count <= FIRST else 0) or value != (1.0 if count == 0 else median):
        raise ValueError("scale contradicts itself")
    return RunningScale(value, count, tuple(first))
