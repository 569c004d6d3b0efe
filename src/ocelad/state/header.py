"""JSON objects in one way of writing them, and checks of what they say."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

_TRACKER = {"n_features", "feature_names", "t", "scale", "threshold", "given", "history"}
_LAST = 2**62  # the clock is an int64 in compiled code
_UNUSUAL = ("inf", "-inf", "nan")  # JSON has no numbers for these
_JSON = 64  # bytes of objects that a byte of JSON becomes at most
_encode = json.JSONEncoder(sort_keys=True, allow_nan=False, separators=(",", ":")).encode
_decode = json.JSONDecoder().decode


def to_json(entries: dict[str, Any]) -> bytes:
    return _encode(entries).encode("ascii")


def from_json(data: bytes, encode: Callable[[Any], str] = _encode) -> dict[str, Any]:
    """The entries of a JSON object, if it is written in this way."""
    try:
        entries = _decode(data.decode("ascii"))
        canonical = encode(entries).encode("ascii") == data
    except (ValueError, RecursionError):
        canonical = False
    if not canonical or not isinstance(entries, dict):
        raise ValueError("its header is not a JSON object as ocelad.save writes it")
    return entries


def check_length(size: int, limit: int) -> None:
    """Before JSON is parsed: whether its objects fit into ``limit`` bytes."""
    if _JSON * size > limit:
        raise ValueError(f"its header of {size} bytes is too long for a limit of {limit}")


def estimator(entries: dict[str, Any]) -> str:
    """The name of the class, which is taken out of the entries."""
    name = entries.pop("estimator", None)
    if not isinstance(name, str):
        raise ValueError("its header does not say of which class it is")
    return name


def fits(value: Any, shape: Any) -> bool:
    """Whether JSON has these entries and no others: a type, or a list or dictionary of shapes."""
    if isinstance(shape, dict):
        same = isinstance(value, dict) and value.keys() == shape.keys()
        return same and all(fits(value[name], shape[name]) for name in shape)
    if isinstance(shape, list):
        return isinstance(value, list) and len(value) == len(shape) and all(map(fits, value, shape))
    return isinstance(value, shape)


def check_keys(entries: Any, expected: set[str]) -> None:
    if not isinstance(entries, dict) or entries.keys() != expected:
        raise ValueError("its header does not have the entries of this version")


def check_tracker(entries: Any, base: Any) -> None:
    """Whether each entry of a `MetricTracker` is of the right kind."""
    check_keys(entries, _TRACKER)
    n, t = entries["n_features"], entries["t"]
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


def check_names(names: Any, n: int) -> None:
    if names is not None and not (
        isinstance(names, list) and len(names) == n and all(isinstance(name, str) for name in names)
    ):
        raise ValueError(f"feature_names must be null or {n} names")


def check_count(number: Any, name: str) -> None:
    if type(number) is not int or not 0 <= number < _LAST:
        raise ValueError(f"{name} must be an integer >= 0, got {number!r}")


def json_number(value: float | None) -> float | str | None:
    """A number as JSON can say it."""
    return value if value is None or math.isfinite(value) else repr(value)
