"""A file's header: one JSON object, in one way of writing it, that says which format, version and class it is."""

from __future__ import annotations

import json
import math
from typing import Any

from ..tracker import MetricTracker

FORMAT, VERSION = "ocelad", 2

_TRACKER = {"options", "n_features", "feature_names", "t", "scale", "threshold", "given"}
_LAST = 2**62  # the clock is an int64 in compiled code
_UNUSUAL = ("inf", "-inf", "nan")  # JSON has no numbers for these


def to_json(estimator: str, entries: dict[str, Any]) -> bytes:
    header = {"format": FORMAT, "version": VERSION, "estimator": estimator} | entries
    return json.dumps(header, sort_keys=True, allow_nan=False).encode("ascii")


def from_json(data: bytes) -> tuple[str, dict[str, Any]]:
    """The estimator's name and the entries of a header, if it is one of this version."""
    try:
        header = json.loads(data.decode("ascii"))
        canonical = json.dumps(header, sort_keys=True, allow_nan=False).encode("ascii") == data
    except (ValueError, RecursionError):
        raise ValueError("its header is not JSON as ocelad.save writes it") from None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ValueError("its header does not say that it is a file of ocelad")
    version = header.get("version")
    if type(version) is not int or version < 1:
        raise ValueError(f"its format version is {version!r}")
    if version > VERSION:
        raise ValueError(f"it has format version {version}, written by a later ocelad; this one reads {VERSION}")
    estimator = header.get("estimator")
    if not canonical or not isinstance(estimator, str):
        raise ValueError("its header does not have the entries of this version")
    entries = {name: header[name] for name in header if name not in ("format", "version", "estimator")}
    if version == 1:
        before, entries = entries, _upgraded(entries)
        if entries == before:
            raise ValueError("its options are not those of version 1")
    return estimator, entries


def _upgraded(entries: Any) -> Any:
    """Entries of version 1, in today's words: options that belong to a step, or to intervals, had names of their
    own."""
    if not isinstance(entries, dict):
        return entries
    entries = {name: _upgraded(value) for name, value in entries.items()}
    if not {"threshold_step", "step_cap", "base", "start", "order", "step", "weights"} <= entries.keys():
        return entries
    order, weights = entries.pop("order"), entries["weights"]
    if isinstance(weights, dict) and weights.get("part") == "OceladWeights":
        weights["order"] = order
    elif order != "before":
        raise ValueError("it has order='after', which only OceladWeights has now")
    step, threshold, capped = entries["step"], entries.pop("threshold_step"), entries.pop("step_cap")
    if (threshold, capped) != (0.1, False):
        entries["step"] = {"part": "Step", "size": step, "threshold": threshold, "capped": capped}
    start = entries.pop("start")
    if start != "fresh":
        entries["base"] = {"part": "Intervals", "base": entries["base"], "start": start}
    return entries


def base_of(words: Any) -> Any:
    """The length of the shortest intervals."""
    base = words["base"]
    return base.get("base") if isinstance(base, dict) else base


def check_keys(entries: Any, expected: set[str]) -> None:
    if not isinstance(entries, dict) or entries.keys() != expected:
        raise ValueError("its header does not have the entries of this version")


def check_tracker(entries: Any) -> None:
    """Whether each entry of a `MetricTracker` is of the right kind."""
    check_keys(entries, _TRACKER)
    check_options(entries["options"])
    n, t, base = entries["n_features"], entries["t"], base_of(entries["options"])
    if not all(type(number) is int for number in (n, t, base)) or not (n >= 1 and t >= 0 and base >= 1):
        raise ValueError(f"n_features, t and base must be integers, got {n!r}, {t!r} and {base!r}")
    if max(n, base + t) >= _LAST:
        raise ValueError("n_features, t or base is too large")
    check_names(entries["feature_names"], n)
    given, threshold = entries["given"], entries["threshold"]
    if given is not None and not (type(given) is float and 1.0 <= given < math.inf):
        raise ValueError(f"given must be null or a threshold >= 1, got {given!r}")
    if not (threshold is None or type(threshold) is float or threshold in _UNUSUAL):
        raise ValueError(f"threshold must be null or a number, got {threshold!r}")


def check_options(words: Any, estimator: type[Any] = MetricTracker) -> None:
    if not isinstance(words, dict) or words.keys() != estimator().get_params(deep=False).keys():
        raise ValueError(f"its options are not those of {estimator.__name__}")


def check_names(names: Any, n: int) -> None:
    if names is not None and not (
        isinstance(names, list) and len(names) == n and all(isinstance(name, str) for name in names)
    ):
        raise ValueError(f"feature_names must be null or {n} names")


def check_count(number: Any, name: str) -> None:
    if type(number) is not int or not 0 <= number < _LAST:
        raise ValueError(f"{name} must be an integer >= 0, got {number!r}")


def number_word(value: float | None) -> float | str | None:
    """A number as JSON can say it."""
    return value if value is None or math.isfinite(value) else repr(value)
