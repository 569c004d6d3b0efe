"""A tracker's options as JSON: numbers and strings as they are, parts by name and fields, matrices as arrays.

Nothing in a file is ever looked up outside this list of parts, and nothing in it is a program.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from functools import cache, lru_cache
from types import NoneType
from typing import Any, NamedTuple

import numpy as np

from ..geometry import (
    L1,
    Frobenius,
    Hinge,
    LogDet,
    Logistic,
    NuclearNorm,
    SquaredFrobenius,
    SquaredHinge,
    Unregularized,
    VonNeumann,
)
from ..geometry.steps import Step
from ..grouped_share import GroupedShare
from ..intervals import Intervals
from ..protocols import is_number
from ..tracker.hints import shown
from ..tracker.preprocessor import Rows, read_preprocessor
from ..weights import AdaNormalHedge, CoinBetting, FixedShare, OceladWeights, SaolWeights
from . import features
from .container import Arrays
from .header import from_json, to_json

_LOSSES = (Hinge, SquaredHinge, Logistic)
_REGULARIZERS = (NuclearNorm, L1, SquaredFrobenius, Unregularized)
_DIVERGENCES = (Frobenius, VonNeumann, LogDet)
_WEIGHTS = (GroupedShare, FixedShare, OceladWeights, SaolWeights, CoinBetting, AdaNormalHedge)
PARTS: dict[str, type[Any]] = {
    part.__name__: part for part in (*_LOSSES, *_REGULARIZERS, *_DIVERGENCES, *_WEIGHTS, Step, Intervals)
}

SHORT = 4096
"""Options whose text is not longer are kept once they have been read: a fleet has the same ones many times."""


class Options(NamedTuple):
    """The options of an estimator: as JSON text, as a JSON object, and as they are."""

    text: bytes
    entries: dict[str, Any]
    parameters: dict[str, Any]
    arrays: Arrays  # those among the parameters


def encode(options: Mapping[str, Any]) -> tuple[dict[str, Any], Arrays]:
    """What JSON can say of the options, and the arrays among them."""
    entries: dict[str, Any] = {}
    arrays: Arrays = {}
    for name, value in options.items():
        if name in _LATER and value is _LATER[name]:
            continue
        if name == "features":
            entries[name], more = features.describe(value)
            arrays |= more
        elif type(value) in PARTS.values():
            entries[name] = {"part": type(value).__name__, **_fields(value)}
        elif (entry := _scalar(value)) is not None or value is None:
            entries[name] = entry
        elif isinstance(value, (list, tuple, np.ndarray)) and np.asarray(value).dtype.kind in "fiu":
            entries[name], arrays[name] = {"array": name}, np.asarray(value, dtype=np.float64)
        else:
            raise ValueError(
                f"{name}={shown(value)} cannot be saved: a file holds numbers, strings, arrays and the parts of "
                "ocelad itself; pickle keeps other objects"
            )
    return entries, arrays


_LATER = {"features": None, "nonlinear": False}
"""Options that came later: files do not mention them where they have these values, as older ones do not."""

NONE = Options(b"{}", {}, {}, {})
"""Of what has none."""

_SEEN: dict[tuple[int, ...], tuple[tuple[Any, ...], Options]] = {}  # by identity: 1 and 1.0 differ in JSON


def of(estimator: Any, unsaved: set[str]) -> Options:
    """An estimator's options, if they can be read back, and if nothing else is to be kept but what is named."""
    kind: Any = type(estimator)
    own, known = vars(estimator), names(kind)
    stray = own.keys() - known - unsaved
    if stray:
        raise ValueError(f"a file has no place for the tracker's {', '.join(sorted(stray))}; pickle has")
    values = tuple(own[name] for name in known)
    key = (id(kind), *map(id, values))
    seen = _SEEN.get(key)
    if seen is not None:
        return seen[1]
    entries, arrays = encode(dict(zip(known, values, strict=True)))
    options = read(kind, to_json(entries), arrays)  # refuses here what it would refuse when read
    if not arrays and len(options.text) <= SHORT:
        if len(_SEEN) >= 64:
            _SEEN.clear()
        _SEEN[key] = values, options  # the values too, lest others take their places in memory
    return options


@cache
def names(kind: Any) -> tuple[str, ...]:
    return tuple(kind._get_param_names())


def read(kind: Any, text: bytes, arrays: Arrays, limit: float = math.inf) -> Options:
    """The options again; whether they suit a tracker is for the tracker to say."""
    options = (_plain if len(text) <= SHORT else _plain.__wrapped__)(kind, text)
    own = [name for name, entry in options.entries.items() if entry == {"array": name}]
    made = options.entries.get("features") if "features" not in options.parameters else None
    if not own and made is None:
        return options
    for name in own:
        if name not in arrays or arrays[name].dtype.kind != "f":
            raise ValueError(f"option {name} must have an array of floats")
    of_features = [] if made is None else features.names_of_arrays(made)
    if sum(arrays[name].nbytes for name in [*own, *of_features] if name in arrays) > limit:
        raise ValueError(f"arrays of options have more than {limit} bytes")
    found = {name: np.array(arrays[name], dtype=np.float64) for name in own}
    parameters = options.parameters | found
    if made is not None:
        parameters["features"], more = features.restored(made, arrays, limit)
        found = more | found
    return options._replace(parameters=parameters, arrays=found)


@lru_cache(maxsize=64)
def _plain(kind: Any, text: bytes) -> Options:
    """The options but for those that are arrays."""
    entries, parameters = from_json(text), dict[str, Any]()
    if "max_rank" in entries:
        entries = _with_rank_in_step(entries)
        text = to_json(entries)
    later = {name: usual for name, usual in _LATER.items() if name in names(kind)}
    parameters |= {name: usual for name, usual in later.items() if name not in entries}
    if entries.keys() | later.keys() != set(names(kind)):
        raise ValueError(f"its options are not those of {kind.__name__}")
    for name, entry in entries.items():
        if isinstance(entry, list):
            raise ValueError(f"option {name} is a list; arrays have members of their own")
        if name in later and entry is later[name]:
            raise ValueError(f"option {name} must not be there where it is {entry}")
        if name == "features":
            if (unsaved := features.read(entry)) is not None:
                parameters[name] = unsaved
        elif not isinstance(entry, dict):
            parameters[name] = _moderate(name, entry)
        elif entry != {"array": name}:
            parameters[name] = _part(name, dict(entry))
    return Options(text, entries, parameters, {})


def _with_rank_in_step(entries: dict[str, Any]) -> dict[str, Any]:
    """Options as they are now: the rank had one of its own, before it became the step's."""
    entries = dict(entries)
    rank, step = entries.pop("max_rank"), entries.get("step")
    if isinstance(step, dict):
        if "max_rank" in step:
            raise ValueError("max_rank is there twice, as an option and as the step's")
        entries["step"] = {**step, "max_rank": rank}
    elif rank is not None:
        entries["step"] = {"part": "Step", **_fields(Step()), "size": step, "max_rank": rank}
    return entries


def feature_names(estimator: Any) -> list[str] | None:
    return [str(name) for name in estimator.feature_names_in_] if hasattr(estimator, "feature_names_in_") else None


def same_preprocessor(estimator: Any) -> bool:
    """Whether the preprocessor in use is the option's."""
    used, said = estimator.preprocessor_, read_preprocessor(estimator.preprocessor)
    if isinstance(used, Rows) and isinstance(said, Rows):
        return np.array_equal(used.points, said.points, equal_nan=True)
    return used is said


def check_points(given: Any, between: Any, n: int) -> None:
    """Whether a preprocessor, and the features that follow it, lead to points with n features."""
    expected = features.check(between, n)
    table = isinstance(given, np.ndarray) and given.ndim == 2
    if given is not None and not (table and expected in (None, given.shape[1])):
        number = "" if expected is None else f" with {expected} features"
        raise ValueError(f"preprocessor must be None or an array of points{number}")


def _scalar(value: Any) -> bool | int | float | str | None:
    """A value that JSON can hold, None for any other."""
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if is_number(value):
        return int(value) if isinstance(value, (int, np.integer)) else float(value)
    return str(value) if isinstance(value, str) else None


def _fields(part: Any) -> dict[str, Any]:
    return {field.name: _scalar(getattr(part, field.name)) for field in fields(part) if field.init}


def _part(option: str, entry: dict[str, Any]) -> Any:
    name = entry.pop("part", None)
    if not isinstance(name, str) or name not in PARTS:
        raise ValueError(f"option {option} names no known part: {name!r}")
    expected = {field.name: type(field.default) for field in fields(PARTS[name]) if field.init}
    if entry.keys() != expected.keys():
        raise ValueError(f"option {option}: {name} has fields {sorted(expected)}, found {sorted(entry)}")
    for field, kind in expected.items():
        also = int if kind in (float, NoneType) else kind
        if type(entry[field]) not in (kind, also):
            raise ValueError(f"option {option}: {field} must be of type {kind.__name__}, got {entry[field]!r}")
        _moderate(field, entry[field])
    return PARTS[name](**entry)


def _moderate(name: str, entry: Any) -> Any:
    """JSON knows integers that no float can hold."""
    if isinstance(entry, int) and abs(entry) >= 2**62:
        raise ValueError(f"{name} is too large")
    return entry
