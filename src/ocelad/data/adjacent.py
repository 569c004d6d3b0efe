"""Comparisons of what is near in time: each item of a labelled stream with those that came just before it.

Adjacent items alone say mostly "similar" while one label prevails. So each item is also compared with the latest
of the other answer, and with the latest but one of either, and so on: as many similar as different.
"""

from __future__ import annotations

from collections import deque
from itertools import zip_longest

import numpy as np
from numpy.typing import NDArray

from ..learner import Integers


def adjacent(labels: Integers, neighbours: int | None = None) -> tuple[Integers, Integers, NDArray[np.bool_]]:
    """Indices of the items compared, later and earlier, in order; and whether they are next to each other.

    Parameters
    ----------
    labels
        One whole number per item, in order of time.
    neighbours
        Compare each item with so many of the latest with its label, and as many of the latest with another; the
        one right before it comes first. None compares with that one alone.

    Examples
    --------
    >>> labels = np.array([0, 0, 1, 0])
    >>> [column.tolist() for column in adjacent(labels)]
    [[1, 2, 3], [0, 1, 2], [True, True, True]]
    >>> [column.tolist() for column in adjacent(labels, neighbours=1)]
    [[1, 2, 3, 3], [0, 1, 2, 1], [True, True, True, False]]
    """
    many = len(labels)
    if neighbours is None:
        later = np.arange(1, many)
        return later, later - 1, np.ones(len(later), dtype=np.bool_)
    if isinstance(neighbours, bool) or not isinstance(neighbours, (int, np.integer)) or neighbours < 1:
        raise ValueError(f"neighbours must be None or an integer >= 1, got {neighbours!r}")
    latest: dict[int, deque[int]] = {}
    new: list[int] = []
    old: list[int] = []
    for k, label in enumerate(np.asarray(labels).tolist()):
        own = latest.setdefault(label, deque(maxlen=neighbours))
        others = sorted((j for other, js in latest.items() if other != label for j in js), reverse=True)
        sides = list(reversed(own)), others[:neighbours]
        first, second = sides if own and own[-1] == k - 1 else sides[::-1]
        partners = [j for both in zip_longest(first, second) for j in both if j is not None]
        new += [k] * len(partners)
        old += partners
        own.append(k)
    later, earlier = np.array(new, dtype=np.int64), np.array(old, dtype=np.int64)
    return later, earlier, later - earlier == 1
