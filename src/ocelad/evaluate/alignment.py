"""Turn one embedding so that it lies on another as well as it can.

    min |R L - reference| (Frobenius) over orthogonal R:    R = U V',   reference L' = U diag(s) V'.

Signs, and the order of directions of equal importance, are arbitrary in a single picture; in a series of them a
turn would look like a change. Distances stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ..protocols import Array


def aligned(L: Array, reference: Array) -> Array:
    """The rows of L turned (and mirrored) towards those of the reference: R L.

    >>> L = np.array([[2.0, 0.0], [0.0, 1.0]])
    >>> aligned(-L[::-1], L)
    array([[2., 0.],
           [0., 1.]])
    """
    L, reference = np.asarray(L, dtype=np.float64), np.asarray(reference, dtype=np.float64)
    if L.ndim != 2 or L.shape != reference.shape:
        raise ValueError(f"L and reference must be matrices of one shape, got {L.shape} and {reference.shape}")
    U, _, V = np.linalg.svd(reference @ L.T)
    return U @ V @ L


def aligned_series(maps: Iterable[Array]) -> list[Array]:
    """Each map turned towards the one before it."""
    series: list[Array] = []
    for L in maps:
        series.append(aligned(L, series[-1]) if series else np.asarray(L, dtype=np.float64))
    return series
