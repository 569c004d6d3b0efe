"""The dyadic schedule: which levels are active, and which open, at time t.

Level j works on intervals of length ``base * 2**j``. Its first interval starts at t = length, and a new one
starts whenever the length divides t:

    I = { [i * length_j, (i + 1) * length_j - 1] : i >= 1, j >= 0 },      length_j = base * 2^j.

Everything here is a pure function of t; no horizon is needed. The clock starts at t = base, so that
level 0 is at work from the first step on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

Start = Literal["fresh", "continue"]


@dataclass(frozen=True)
class Intervals:
    """Which dyadic intervals there are, and where their shortest begin.

    Parameters
    ----------
    base
        Length of the shortest intervals, I_0.
    start
        What level 0 does when it re-opens: ``"fresh"``, from the origin, or ``"continue"``, from its own last
        estimate.
    """

    base: int = 8
    start: Start = "fresh"

    def __post_init__(self) -> None:
        if isinstance(self.base, bool) or not isinstance(self.base, (int, np.integer)) or self.base < 1:
            raise ValueError(f"base must be an integer >= 1, got {self.base!r}")
        if self.start not in ("fresh", "continue"):
            raise ValueError(f"start must be 'fresh' or 'continue', got {self.start!r}")
        object.__setattr__(self, "base", int(self.base))

    @classmethod
    def of(cls, given: int | Intervals) -> Intervals:
        """Intervals that may have been given by their base alone."""
        return given if isinstance(given, Intervals) else cls(given)


def length(level: int, base: int = 1) -> int:
    """Length of the intervals of a level.

    >>> [length(level, base=8) for level in range(4)]
    [8, 16, 32, 64]
    """
    return base << level


def active(t: int, base: int = 1) -> int:
    """The number of active levels at time t: |ACT(t)| = floor(log2(t / base)) + 1.

    >>> [active(t) for t in (1, 2, 3, 4, 1000)]
    [1, 2, 2, 3, 10]
    """
    return (t // base).bit_length()


def opening(t: int, base: int = 1) -> int:
    """The number of levels that start a new interval at time t: levels 0, ..., opening(t) - 1 do.

    >>> [opening(t) for t in range(1, 9)]
    [1, 2, 1, 3, 1, 2, 1, 4]
    >>> [opening(t, base=8) for t in (8, 9, 16, 24, 32)]
    [1, 0, 2, 1, 3]
    """
    if t < base or t % base != 0:
        return 0
    periods, count = t // base, 1
    while periods % 2 == 0:  # plain arithmetic, for it is compiled too
        periods //= 2
        count += 1
    return count


def opened(t: int, base: int = 1) -> int:
    """The number of intervals opened up to and including time t.

    >>> [opened(t) for t in range(1, 9)]
    [1, 3, 4, 7, 8, 10, 11, 15]
    """
    periods = t // base
    return 2 * periods - periods.bit_count()


def partition(first: int, last: int, base: int = 1) -> list[tuple[int, int]]:
    """Lemma 5: split [first, last] into dyadic intervals whose lengths rise, then fall, at least twofold.

    Both ends must lie on the grid of the shortest intervals.

    >>> partition(5, 13)
    [(5, 5), (6, 7), (8, 11), (12, 13)]
    """
    if first < base or last < first or first % base or (last + 1) % base:
        raise ValueError(f"[first, last] must be made of whole periods of {base} from t = {base} on")
    pieces = []
    while first <= last:
        size = length(opening(first, base) - 1, base)
        while first + size - 1 > last:
            size //= 2
        pieces.append((first, first + size - 1))
        first += size
    return pieces
