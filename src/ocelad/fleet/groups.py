"""The comparisons of each key, in order."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..protocols import Integers

Keys = Sequence[Hashable] | NDArray[Any]


class Groups:
    """Which comparisons each key has: those at ``order[at[key]]``."""

    def __init__(self, keys: Any, m: int) -> None:
        if isinstance(keys, (str, bytes)) or not np.iterable(keys):  # a string is one key, not one for each letter
            raise ValueError(f"keys must have one key for each of {m} pairs, got {keys!r}")
        # Python's own keys, but for dates, which would become whole numbers of some unit
        keys = keys.tolist() if isinstance(keys, np.ndarray) and keys.dtype.kind not in "mM" else list(keys)
        if len(keys) != m:
            raise ValueError(f"keys must have one key for each of {m} pairs, got {len(keys)}")
        places: dict[Hashable, list[int]] = {}
        for number, key in enumerate(keys):
            try:
                if key is None:
                    raise ValueError(f"keys must not be missing, got None at index {number}")
                if key != key:  # NaN: nobody would find it again
                    raise TypeError
                places.setdefault(key, []).append(number)
            except TypeError:
                raise ValueError(
                    f"keys must be hashable and equal to themselves, got {key!r} at index {number}"
                ) from None
        self.order: Integers = np.fromiter(chain.from_iterable(places.values()), np.int64, m)
        self.at: dict[Hashable, slice] = {}
        start = 0
        for key, numbers in places.items():
            self.at[key] = slice(start, start + len(numbers))
            start += len(numbers)

    def batches(self, size: int | None) -> Iterator[list[Hashable]]:
        keys = list(self.at)
        step = size or max(1, len(keys))
        return (keys[start : start + step] for start in range(0, len(keys), step))
