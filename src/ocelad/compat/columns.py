"""A fixed number of columns for features that come by name, whenever they come.

    column(name) = its own,                                  for the first ``own`` names;
                   own + hash(name) mod shared, sign +-1,    for all names after them.

A column is never given to another name: what has been learned about one feature would pass to the other. So late
names share columns that are set apart for them, by signed hashing: names that meet in a column are learned in
common, cross terms cancel on average, and the first names are not disturbed. Only ``own`` names are remembered.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from datetime import date, time, timedelta
from decimal import Decimal
from hashlib import blake2b
from numbers import Real
from typing import Any

import numpy as np

from ..protocols import Array

Named = Mapping[Hashable, Any]

_NUMBERS = (Real, np.bool_, Decimal)


@dataclass(frozen=True)
class Columns:
    """Which column each feature has; ``after(x)`` are the columns once the names in ``x`` have been seen.

    >>> columns = Columns(own=2, shared=1).after({"b": 1.0, "a": 2.0, "late": 3.0})
    >>> columns.names
    ('a', 'b', 'shared 0')
    >>> abs(columns.vector({"a": 2.0, "late": 3.0}))
    array([2., 0., 3.])
    """

    own: int
    shared: int
    known: Mapping[Hashable, int] = field(default_factory=dict)

    @property
    def width(self) -> int:
        return self.own + self.shared

    @property
    def full(self) -> bool:
        return len(self.known) == self.own

    @property
    def names(self) -> tuple[Hashable, ...]:
        """What the columns in use are called."""
        return (*self.known, *(self._free(f"shared {k}") for k in range(self.shared if self.full else 0)))

    def _free(self, name: str) -> str:
        """A name that no feature has."""
        while name in self.known:
            name += "'"
        return name

    def after(self, x: Named) -> Columns:
        if self.full or x.keys() <= self.known.keys():
            return self
        new = sorted(x.keys() - self.known.keys(), key=_text)  # the order inside a dictionary says nothing
        known = dict(self.known)
        for name in new[: self.own - len(known)]:
            known[name] = len(known)
        return Columns(self.own, self.shared, known)

    def vector(self, x: Named) -> Array:
        """Features by column, absent ones 0; a name that has no column yet is left out."""
        row = np.zeros(self.width)
        for name in sorted(x.keys() - self.known.keys(), key=_text) if self.full and self.shared else ():
            code = int.from_bytes(blake2b(_text(name).encode(), digest_size=8).digest(), "little")
            row[self.own + (code >> 1) % self.shared] += x[name] if code & 1 else -x[name]
        for name in x.keys() & self.known.keys():
            row[self.known[name]] = x[name]
        return row


def checked(x: Any, argument: str) -> dict[Hashable, float]:
    """A private copy of a dictionary of features, all of them finite numbers."""
    if not isinstance(x, Mapping):
        raise ValueError(f"{argument} must be a dictionary of features, got {type(x).__name__}")
    copy = {}
    for name, value in x.items():
        try:
            number = float(value) if isinstance(value, _NUMBERS) else math.nan
        except (OverflowError, ValueError):  # 10**400, a signalling NaN
            raise ValueError(
                f"{argument}[{name!r}] must be a finite number, got one that no float holds"
            ) from None
        if not math.isfinite(number):
            raise ValueError(f"{argument}[{name!r}] must be a finite number, got {value!r}{_hint(value)}")
        copy[name] = number
    return copy


def is_label(y: Any) -> bool:
    """Whether this can be a class: None, NaN and pandas' NA are not."""
    try:
        return y is not None and isinstance(y, Hashable) and bool(y == y)
    except TypeError:  # NA does not know whether it equals itself
        return False


def _hint(value: Any) -> str:
    """What to do with a value that is no finite number."""
    if isinstance(value, str):
        return "; encode text first, e.g. with OneHotEncoder"
    if not is_label(value) and not isinstance(value, (list, dict, set, np.ndarray)):
        return "; leave out a feature that is missing"
    if isinstance(value, (date, time, timedelta)):
        return "; make a number of it first, of days or seconds"
    return ""


def _text(name: Hashable) -> str:
    """The same in every process, unlike ``hash``; numpy's strings equal Python's."""
    return str(name) if isinstance(name, str) else repr(name)
