"""A file's header: one JSON object, in one way of writing it, that says which format and version it is."""

from __future__ import annotations

import json
from typing import Any

from ..metric import MetricTracker

FORMAT, VERSION = "ocelad", 1

_KEYS = {"format", "version", "estimator", "options", "n_features", "feature_names", "t", "scale"}
_LAST = 2**62  # the clock is an int64 in compiled code


def to_json(header: dict[str, Any]) -> bytes:
    return json.dumps(header, sort_keys=True, allow_nan=False).encode("ascii")


def from_json(data: bytes) -> dict[str, Any]:
    """A header, if it is one of this version and each entry of the right kind."""
    try:
        header = json.loads(data.decode("ascii"))
        canonical = to_json(header) == data
    except (ValueError, RecursionError):
        raise ValueError("its header is not JSON as ocelad.save writes it") from None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ValueError("its header does not say that it is a file of ocelad")
    version = header.get("version")
    if type(version) is not int or version < 1:
        raise ValueError(f"its format version is {version!r}")
    if version > VERSION:
        raise ValueError(f"it has format version {version}, written by a later ocelad; this one reads {VERSION}")
    if not canonical or header.keys() != _KEYS or header["estimator"] != "MetricTracker":
        raise ValueError("its header does not have the entries of this version")
    _check_numbers(header)
    return header


def _check_numbers(header: dict[str, Any]) -> None:
    words, names = header["options"], header["feature_names"]
    n, t = header["n_features"], header["t"]
    if not isinstance(words, dict) or words.keys() != MetricTracker().get_params(deep=False).keys():
        raise ValueError("its options are not those of MetricTracker")
    base = words["base"]
    if not all(type(number) is int for number in (n, t, base)) or not (n >= 1 and t >= 0 and base >= 1):
        raise ValueError(f"n_features, t and base must be integers, got {n!r}, {t!r} and {base!r}")
    if max(n, base + t) >= _LAST:
        raise ValueError("n_features, t or base is too large")
    if names is not None and not (
        isinstance(names, list) and len(names) == n and all(isinstance(name, str) for name in names)
    ):
        raise ValueError(f"feature_names must be null or {n} names")
