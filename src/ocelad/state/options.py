"""A tracker's options as JSON: numbers and words as they are, parts by name and fields, matrices as arrays.

Nothing in a file is ever looked up outside this list of parts, and nothing in it is a program.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from ..learner import is_number
from ..metric import (
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
from ..weights import AdaNormalHedge, CoinBetting, FixedShare, OceladWeights, SaolWeights

_LOSSES = (Hinge, SquaredHinge, Logistic)
_REGULARIZERS = (NuclearNorm, L1, SquaredFrobenius, Unregularized)
_DIVERGENCES = (Frobenius, VonNeumann, LogDet)
_WEIGHTS = (FixedShare, OceladWeights, SaolWeights, CoinBetting, AdaNormalHedge)
PARTS: dict[str, type[Any]] = {
    part.__name__: part for part in (*_LOSSES, *_REGULARIZERS, *_DIVERGENCES, *_WEIGHTS)
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


def decode(words: Mapping[str, Any], arrays: Arrays) -> dict[str, Any]:
    """The options again; whether they suit a tracker is for the tracker to say."""
    options: dict[str, Any] = {}
    for name, word in words.items():
        if isinstance(word, list):
            raise ValueError(f"option {name} is a list; arrays have members of their own")
        if not isinstance(word, dict):
            options[name] = _moderate(name, word)
        elif word == {"array": name} and name in arrays:
            options[name] = np.array(arrays[name], dtype=np.float64)
        else:
            options[name] = _part(name, dict(word))
    return options


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
