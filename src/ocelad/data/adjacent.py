"""Comparisons of what is near in time: each item of a labelled stream with some that came shortly before it.

Adjacent items alone say mostly "similar" while one label prevails, and little while one item is repeated over and
over. So each item is also compared with the latest of the other answer, and with some that came a little earlier:
as many similar as different.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import pairwise, zip_longest

import numpy as np
from numpy.typing import NDArray

from ..protocols import Integers


def adjacent(labels: Integers, back: Sequence[int] = ()) -> tuple[Integers, Integers, NDArray[np.bool_]]:
    """Indices of the items compared, later and earlier, in order; and whether they are next to each other.

    Parameters
    ----------
    labels
        One whole number per item, in order of time.
    back
        Ranks, counted back in time, among the items of the same label and among all others: (1, 8) is the
        latest and the eighth latest of either kind. It must begin with 1, so that the item right before comes
        first. Without, items are compared with that one alone.

    Examples
    --------
    >>> labels = np.array([0, 0, 1, 0])
    >>> [column.tolist() for column in adjacent(labels)]
    [[1, 2, 3], [0, 1, 2], [True, True, True]]
    >>> [column.tolist() for column in adjacent(labels, back=(1, 2))]
    [[1, 2, 2, 3, 3, 3], [0, 1, 0, 2, 1, 0], [True, True, False, True, False, False]]
    """
    later = np.arange(1, len(labels))
    if not len(back):
        return later, later - 1, np.ones(len(later), dtype=np.bool_)
    if back[0] != 1 or any(b <= a for a, b in pairwise(back)):
        raise ValueError(f"back must be increasing integers that begin with 1, got {back!r}")
    same: dict[int, deque[int]] = {label: deque(maxlen=back[-1]) for label in np.unique(labels).tolist()}
    other: dict[int, deque[int]] = {label: deque(maxlen=back[-1]) for label in same}
    new: list[int] = []
    old: list[int] = []
    for k, label in enumerate(np.asarray(labels).tolist()):
        sides = [[side[-rank] for rank in back if rank <= len(side)] for side in (same[label], other[label])]
        sides.sort(key=lambda side: side[:1] != [k - 1])
        partners = [j for both in zip_longest(*sides) for j in both if j is not None]
        new += [k] * len(partners)
        old += partners
        for each, kept in other.items():
            (same[each] if each == label else kept).append(k)
    later, earlier = np.array(new, dtype=np.int64), np.array(old, dtype=np.int64)
    return later, earlier, later - earlier == 1
