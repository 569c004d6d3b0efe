"""Which windows a pool replays."""

from __future__ import annotations

import numpy as np

from ..geometry.quadratic import SQUARE
from ..protocols import Array

SLIDING, ANEW = (0.0, 0.1, 0.02), (1.0, 0.2, 0.05)
"""Whether an expert begins anew; its prior; its floor, the probability that a label is wrong."""

PARTS = (16, 4, 1)
"""Into how many parts the windows that slide divide the memory."""

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
