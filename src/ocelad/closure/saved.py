"""What a file holds of a `Closure`: its items, the answers that count, and the state of its test and its draws."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable
from typing import Any

import numpy as np

from ..engine.checks import take
from ..state.container import Arrays
from ..state.header import check_count, check_keys
from ..state.options import NONE, Options
from .answers import Closure

_ENTRIES = {"window", "odds", "seed", "drawn", "t", "evidence", "wrong", "checks", "items"}
_MEMORY = 2000
"""Bytes that an answer, or an item, takes at most, whatever its name."""


def describe(closure: Closure) -> tuple[Options, dict[str, Any], Arrays]:
    """Entries and arrays; groups follow from the answers."""
    number = {item: k for k, item in enumerate(closure._count)}
    entries = {
        "window": closure.window,
        "odds": closure.odds,
        "seed": closure.seed,
        "drawn": closure.drawn,
        "t": closure.t,
        "evidence": closure.evidence,
        "wrong": closure._wrong,
        "checks": closure._checks,
        "items": [_plain(item) for item in number],
    }
    answers = [(number[i], number[j], y) for i, j, y in closure.answers()]
    return NONE, entries, {"answers": np.array(answers, dtype=np.int64).reshape(-1, 3)}


def _plain(item: Hashable) -> int | str:
    if isinstance(item, (int, np.integer)) and not isinstance(item, bool):
        return int(item)
    if isinstance(item, str):
        return str(item)
    raise ValueError(f"item {item!r} cannot be saved: a file holds items that are integers or strings")


def rebuild(
    text: bytes, entries: dict[str, Any], arrays: Arrays, limit: int, _given_features: Any = None
) -> Closure:
    """The closure of entries and arrays, if there can be one, and it takes at most ``limit`` bytes."""
    check_keys(entries, _ENTRIES)
    if text != NONE.text:
        raise ValueError("a closure has its options among its entries")
    if list(arrays) != ["answers"]:
        raise ValueError(f"its arrays are {', '.join(arrays)}, expected answers")
    for name in ("seed", "drawn", "t"):
        check_count(entries[name], name)
    numbers = [entries[name] for name in ("odds", "evidence", "wrong", "checks")]
    if not all(type(number) is float and math.isfinite(number) for number in numbers):
        raise ValueError("odds, evidence, wrong and checks must be numbers")
    if type(entries["window"]) not in (int, type(None)):
        raise ValueError(f"window must be null or an integer, got {entries['window']!r}")
    closure, items = Closure(entries["window"], entries["odds"]), entries["items"]
    closure.seed, closure.drawn, closure.t = entries["seed"], entries["drawn"], entries["t"]
    _, closure.evidence, closure._wrong, closure._checks = numbers
    if not 0.0 <= closure.evidence <= math.log(closure.odds):
        raise ValueError(f"evidence must be between 0 and the logarithm of odds, got {closure.evidence}")
    if not 0.0 < closure._wrong <= closure._checks:
        raise ValueError("wrong must be above 0, and at most checks")
    if not isinstance(items, list) or not {type(item) for item in items} <= {int, str}:
        raise ValueError("items must be integers or strings")
    if len(set(items)) < len(items):
        raise ValueError("items must be different ones")
    m = len(arrays["answers"]) if arrays["answers"].ndim else 0
    if _MEMORY * (m + len(items)) > limit:
        raise ValueError(f"its {m} answers about {len(items)} items may take more than {limit} bytes")
    answers = take(arrays, "answers", (m, 3), np.int64)
    if m > min(closure.t, closure.t if closure.window is None else closure.window):
        raise ValueError(f"it has {m} answers, more than were given or the window holds")
    if not (np.abs(answers[:, 2]) == 1).all() or (answers[:, 0] == answers[:, 1]).any():
        raise ValueError("answers must be +1 or -1, about two items each")
    about = Counter(answers[:, :2].ravel().tolist())
    if about.keys() != set(range(len(items))):
        raise ValueError("answers must be about the items, and about each of them")
    closure._count = {item: about[k] for k, item in enumerate(items)}
    for k, (i, j, y) in enumerate(answers.tolist(), start=closure.t - m + 1):
        closure._answers.append((k, items[i], items[j], y))
    closure._rebuild()
    return closure
