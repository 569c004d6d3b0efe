"""Which windows a pool replays."""

from __future__ import annotations

import numpy as np

from ..geometry.quadratic import SQUARE
from ..protocols import Array

SLIDING, ANEW = (0.0, 0.1, 0.02), (1.0, 0.2, 0.05)
"""Whether an expert begins anew; its prior; its floor, the probability that a label is wrong."""

PARTS = (16, 4, 1)
"""Into how many parts the windows that slide divide the memory."""

ANEW_PARTS = (32, 8, 1)
"""And those of feature maps that begin anew."""

SHORTEST = 32

WIDE = SQUARE
"""Up to this many features a pool has experts whose metric is of full rank, or that keep dense comparisons."""


def settings(memory: int | None) -> Array:
    """A row for each expert: the window, and the three above.

    Three windows slide; those of twice the length each, from 32 comparisons to the whole memory, begin anew.

    >>> settings(2048)[:, 0].astype(int)
    array([ 128,  512, 2048,   32,   64,  128,  256,  512, 1024, 2048])
    """
    if memory is None:
        return np.zeros((0, 4))
    sliding = [(max(1, memory // part), *SLIDING) for part in PARTS]
    lengths = [memory >> k for k in range(memory.bit_length()) if memory >> k >= SHORTEST]
    return np.array([*sliding, *((length, *ANEW) for length in reversed(lengths))], dtype=np.float64)


def map_settings(memory: int) -> Array:
    """The same for the experts of a feature map: fewer that begin anew, for each costs as much as a hundred
    features do.

    >>> map_settings(2048)[:, 0].astype(int)
    array([ 128,  512, 2048,   64,  256, 2048])
    """
    anew = [(max(SHORTEST, memory // part), *ANEW) for part in ANEW_PARTS]
    return np.concatenate([settings(memory)[: len(PARTS)], anew])
