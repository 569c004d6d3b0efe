"""Arrays that come from a file: checked in full before they are used, for compiled kernels do not check.

What each level has learned is a row of ``levels``: what its latest estimate lost, its threshold, what was cut off
from it, further columns of the engine's own, and the state of its weight.
"""

from __future__ import annotations

import math
import sys
from functools import cache
from typing import Any

import numpy as np

from ..grouped_share import GroupedShare
from ..intervals import active, length
from ..protocols import Array, Integers, Weights
from ..weights import FixedShare
from .protocol import Arrays

GROUP = 2.0
"""The group of RICE's levels in a pool."""

LEVEL = ("loss", "mu", "discarded")
"""The first columns of ``levels``, which all engines have."""

Columns = dict[str, list[float]]


def take(
    learned: Arrays, name: str, shape: tuple[int, ...], dtype: type = np.float64, finite: bool = True
) -> np.ndarray[Any, Any]:
    """An array of this kind."""
    array = learned[name]
    if array.dtype != dtype or array.shape != shape:
        raise ValueError(f"{name} must be {dtype.__name__} of shape {shape}, got {array.dtype} of {array.shape}")
    if finite and not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite")
    return array


def split(array: np.ndarray[Any, Any], sizes: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
    return np.split(array, np.cumsum(sizes)[:-1])


def take_levels(
    learned: Arrays, names: tuple[str, ...], t: int, base: int, rule: Weights
) -> tuple[Columns, Array]:
    """The columns of ``levels`` by name, and the state of the weights, checked to be possible at time t."""
    lengths = [length(level, base) for level in range(active(base + t, base))]
    table, shape = learned["levels"], (len(lengths), len(names) + len(rule.fields))
    if table.dtype != np.float64 or table.shape != shape:
        expected = ", ".join((*names, *rule.fields))
        raise ValueError(
            f"levels must be float64 of shape {shape} with {expected}, got {table.dtype} {table.shape}"
        )
    columns = dict(zip((*names, *rule.fields), table.T.tolist(), strict=True))
    judged = [size != base + t for size in lengths]  # else a level has begun just now
    if not all(
        0.0 <= loss < math.inf if known else loss != loss
        for loss, known in zip(columns["loss"], judged, strict=True)
    ):
        raise ValueError("loss must be finite and >= 0, and nan for a level that has just begun")
    least = _least(names, type(rule), len(rule.fields))
    fits = (table >= least) & (table < math.inf)
    if not fits[:, 1:].all():
        wrong = 1 + int(fits[:, 1:].all(axis=0).argmin())
        raise ValueError(f"{[*columns][wrong]} must be finite and >= {least[wrong]:g}")
    for name in _KNOWN & columns.keys():
        if columns[name] != [_of_time(name, base + t, size) for size in lengths]:
            raise ValueError("the weights contradict the time")
    state = table[:, len(names) :]
    _check_weights(rule, state, columns)
    return columns, state


@cache
def _least(names: tuple[str, ...], rule: type, fields: int) -> Array:
    """The least that each column can be."""
    lowest = -math.inf if rule is GroupedShare else -sys.float_info.max  # where nothing is shared, log 0
    return np.array([1.0 if name == "mu" else 0.0 for name in names] + [lowest] * fields)


_KNOWN = {"span", "endless", "age"}
"""Fields of weights that follow from the time."""


def _of_time(name: str, time: int, size: int) -> float:
    return {"span": float(size), "endless": 0.0, "age": float(time % size)}[name]


def widest(n: int, learned: Arrays) -> int:
    """The largest number of columns that a level claims to have, if that is known."""
    table = learned.get("levels", np.zeros(0))
    most = table[:, 3:7:3].max(initial=0.0) if table.ndim == 2 and table.shape[1] > 3 else n  # rank and count
    return int(most) if 0.0 <= most <= n else n


def integer_column(columns: Columns, name: str, most: int) -> Integers:
    """A column of integers from 0 to ``most``."""
    if not all(number <= most and repr(number) == f"{int(number)}.0" for number in columns[name]):  # so not -0.0
        raise ValueError(f"{name} has entries outside 0, ..., {most}")
    return np.array(columns[name], dtype=np.int64)


def _check_weights(rule: Weights, state: Array, columns: Columns) -> None:
    """Raise if a rule cannot have come to this state."""
    if isinstance(rule, FixedShare):  # the weights themselves, and in plain Python, as there are few
        logs = columns["log_weight"]
        if max(logs) > 1.0 or abs(sum(map(math.exp, logs)) - 1.0) > 1e-6:
            raise ValueError("the weights are not those to which FixedShare can come")
        return
    if isinstance(rule, GroupedShare):  # together with those of the other experts they are checked elsewhere
        if max(columns["log_weight"]) > 1.0 or set(columns["group"]) != {GROUP}:
            raise ValueError("the weights are not those to which GroupedShare can come")
        return
    drawn = sorted(columns.get("drawn", [1.0]), reverse=True)
    bounded = all(  # sums of regrets by the sum of their sizes, or by their number
        abs(total) <= bound * (1.0 + 1e-9) + 1e-9
        for name, limit in (("R", "C"), ("sum", "age"))
        for total, bound in zip(columns.get(name, ()), columns.get(limit, ()), strict=True)
    )
    if not (bounded and drawn == [1.0] + [0.0] * (len(drawn) - 1)):
        raise ValueError(f"the weights are not those to which {type(rule).__name__} can come")
    with np.errstate(all="ignore"):
        p = rule.probabilities(state)
    if not (min(p.tolist()) >= 0.0 and abs(float(p.sum()) - 1.0) < 1e-6):
        raise ValueError("the weights give no probabilities")
