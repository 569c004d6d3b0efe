"""A tracker's options as JSON: numbers and words as they are, parts by name and fields, matrices as arrays.

Nothing in a file is ever looked up outside this list of parts, and nothing in it is a program.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

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
from ..intervals import Intervals
from ..protocols import is_number
from ..tracker.inputs import Rows, preprocessor
from ..weights import AdaNormalHedge, CoinBetting, FixedShare, OceladWeights, SaolWeights

_LOSSES = (Hinge, SquaredHinge, Logistic)
_REGULARIZERS = (NuclearNorm, L1, SquaredFrobenius, Unregularized)
_DIVERGENCES = (Frobenius, VonNeumann, LogDet)
_WEIGHTS = (FixedShare, OceladWeights, SaolWeights, CoinBetting, AdaNormalHedge)
PARTS: dict[str, type[Any]] = {
    part.__name__: part for part in (*_LOSSES, *_REGULARIZERS, *_DIVERGENCES, *_WEIGHTS, Step, Intervals)
}

Arrays = dict[str, np.ndarray[Any, Any]]


def encode(options: Mapping[str, Any]) -> tuple[dict[str, Any], Arrays]:
    """What JSON can say of the options, and the arrays among them."""
    words: dict[str, Any] = {}
    arrays: Arrays = {}
    for name, value in options.items():
        if type(value) in PARTS.values():
            words[name] = {"part": type(value).__name__, **_fields(value)}
        elif (word := _word(value)) is not None or value is None:
            words[name] = word
        elif isinstance(value, (list, tuple, np.ndarray)) and np.asarray(value).dtype.kind in "fiu":
            words[name], arrays[name] = {"array": name}, np.asarray(value, dtype=np.float64)
        else:
            raise ValueError(
                f"{name}={value!r} cannot be saved: a file holds numbers, words, arrays and the parts of ocelad "
                "itself; pickle keeps other objects"
            )
    return words, arrays


def describe(estimator: Any, unsaved: set[str]) -> tuple[dict[str, Any], Arrays]:
    """An estimator's options, if they can be read back, and if nothing else is to be kept but what is named."""
    parameters = estimator.get_params(deep=False)
    words, arrays = encode(parameters)
    decode(words, arrays)  # refuses here what it would refuse when read
    stray = vars(estimator).keys() - parameters.keys() - unsaved
    if stray:
        raise ValueError(f"a file has no place for the tracker's {', '.join(sorted(stray))}; pickle has")
    return words, arrays


def array_names(words: Mapping[str, Any]) -> list[str]:
    """The options that have an array of their own."""
    return [name for name, word in words.items() if isinstance(word, dict) and "array" in word]


def size(words: Mapping[str, Any], arrays: Arrays) -> int:
    """The bytes of the options' arrays."""
    return sum(arrays[name].nbytes for name in array_names(words) if name in arrays)


def decode(words: Mapping[str, Any], arrays: Arrays, limit: float = math.inf) -> dict[str, Any]:
    """The options again; whether they suit a tracker is for the tracker to say."""
    if size(words, arrays) > limit:
        raise ValueError(f"arrays of options have more than {limit} bytes")
    options: dict[str, Any] = {}
    for name, word in words.items():
        if isinstance(word, list):
            raise ValueError(f"option {name} is a list; arrays have members of their own")
        if not isinstance(word, dict):
            options[name] = _moderate(name, word)
        elif word == {"array": name} and name in arrays and arrays[name].dtype.kind == "f":
            options[name] = np.array(arrays[name], dtype=np.float64)
        else:
            options[name] = _part(name, dict(word))
    return options


def feature_names(estimator: Any) -> list[str] | None:
    return [str(name) for name in estimator.feature_names_in_] if hasattr(estimator, "feature_names_in_") else None


def same_preprocessor(estimator: Any) -> bool:
    """Whether the preprocessor in use is the option's."""
    used, said = estimator.preprocessor_, preprocessor(estimator.preprocessor)
    if isinstance(used, Rows) and isinstance(said, Rows):
        return np.array_equal(used.points, said.points, equal_nan=True)
    return used is said


def check_preprocessor(given: Any, n: int) -> None:
    if given is not None and not (isinstance(given, np.ndarray) and given.ndim == 2 and given.shape[1] == n):
        raise ValueError(f"preprocessor must be None or an array of points with {n} features")


def _word(value: Any) -> bool | int | float | str | None:
    """A value that JSON has a word for, None for any other."""
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if is_number(value):
        return int(value) if isinstance(value, (int, np.integer)) else float(value)
    return str(value) if isinstance(value, str) else None


def _fields(part: Any) -> dict[str, Any]:
    return {field.name: _word(getattr(part, field.name)) for field in fields(part) if field.init}


def _part(option: str, word: dict[str, Any]) -> Any:
    name = word.pop("part", None)
    if not isinstance(name, str) or name not in PARTS:
        raise ValueError(f"option {option} names no known part: {name!r}")
    expected = {field.name: type(field.default) for field in fields(PARTS[name]) if field.init}
    if word.keys() != expected.keys():
        raise ValueError(f"option {option}: {name} has fields {sorted(expected)}, found {sorted(word)}")
    for field, kind in expected.items():
        if type(word[field]) is not kind and not (kind is float and type(word[field]) is int):
            raise ValueError(f"option {option}: {field} must be of type {kind.__name__}, got {word[field]!r}")
        if kind is float:
            _moderate(field, word[field])
    return PARTS[name](**word)


def _moderate(name: str, word: Any) -> Any:
    """JSON knows integers that no float can hold."""
    if isinstance(word, int) and abs(word) >= 2**62:
        raise ValueError(f"{name} is too large")
    return word
