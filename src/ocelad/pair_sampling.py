"""Comparisons out of a stream of labelled points: with which recent points each new one is compared.

A point may meet only those that came at most ``memory`` points before it: what is kept is bounded, and what is
learned is recent.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np

from .protocols import Integers
from .weights import uniform

Strategy = Literal["balanced", "random", "consecutive"]


def check(strategy: Any) -> Strategy:
    if strategy not in get_args(Strategy):
        raise ValueError(f"strategy must be one of {', '.join(map(repr, get_args(Strategy)))}, got {strategy!r}")
    return strategy


def partners(
    y: Any,
    seen: int,
    strategy: Strategy,
    memory: int,
    count: int,
    rng: np.random.RandomState,
    number: int = 0,
    groups: Any = None,
) -> tuple[Integers, Integers]:
    """Indices of the compared points, for the points after the first ``seen``, in order.

    ``"consecutive"`` takes the ``count`` points before; ``"random"`` draws them from the memory; ``"balanced"``
    draws too, and asks by the toss of a coin for one of another class or of the same, as far as there are any: in
    turn, what came would say what comes. ``number`` is that of the first new point in the whole stream.
    Where there are ``groups``, points meet only within theirs.

    >>> rng = np.random.RandomState(0)
    >>> [indices.tolist() for indices in partners([7, 7, 8, 8], 2, "consecutive", memory=9, count=1, rng=rng)]
    [[2, 3], [1, 2]]
    >>> new, old = partners([7, 7, 8, 8], 3, "balanced", memory=9, count=2, rng=rng)
    >>> [(7, 7, 8, 8)[k] for k in old]
    [7, 8]
    """
    labels = np.asarray(y)
    new, old = [], []
    for k in range(max(seen, 1), len(labels)):
        recent = np.arange(max(0, k - memory), k)
        if groups is not None:
            recent = recent[groups[recent] == groups[k]]
            if not len(recent):
                continue
        if strategy == "consecutive":
            chosen = recent[::-1][:count].tolist()
        elif strategy == "random":
            chosen = recent[rng.randint(len(recent), size=count)].tolist()
        else:
            same = labels[recent] == labels[k]
            chosen = []
            for turn in (count * (number + k - seen) + j for j in range(count)):
                wanted = recent[same if uniform(0, turn) < 0.5 else ~same]
                wanted = wanted if len(wanted) else recent
                chosen.append(int(wanted[rng.randint(len(wanted))]))
        new += [k] * len(chosen)
        old += chosen
    return np.array(new, dtype=np.int64), np.array(old, dtype=np.int64)
