"""What an index is given: points, ids, and how many neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import validation as validate
from ..protocols import Array

Ids = NDArray[Any]
"""Integers, or objects that are strings."""


def number_of_neighbors(n_neighbors: int | None, k: int | None) -> int:
    if n_neighbors is None:
        return 5 if k is None else validate.integer(k, "k")
    if k is not None:
        raise ValueError(f"n_neighbors and k are the same: give one of them, got {n_neighbors!r} and {k!r}")
    return validate.integer(n_neighbors, "n_neighbors")


def points_of(X: Any, n: int) -> Array:
    """Points of shape (m, n), or with any number of features > 0 if n is 0."""
    expected = f"an array of finite numbers of shape (m, {n or 'n'})"
    points = validate.real(X, "X", expected)
    if points.ndim != 2 or points.shape[1] != (n or points.shape[1]) or points.shape[1] == 0:
        hint = "; a single point is written [point]" if points.ndim == 1 else ""
        raise ValueError(f"X must be {expected}, got shape {points.shape}{hint}")
    return points


def ids_of(ids: Any) -> Ids:
    expected = "a one-dimensional array of integers >= 0, or of strings"
    if isinstance(ids, (list, tuple)) and ids and all(isinstance(each, str) for each in ids):
        return np.array([str(each) for each in ids], dtype=object)  # numpy's own strings lose a NUL at the end
    try:
        array = np.asarray(ids)
    except ValueError as error:  # ragged lists
        raise ValueError(f"ids must be {expected}; {error}") from None
    if array.ndim == 1 and not array.size:
        return np.zeros(0, dtype=np.int64)
    if array.ndim == 1 and not isinstance(ids, (list, tuple)) and all(isinstance(each, str) for each in array):
        return ids_of(array.tolist())
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ValueError(f"ids must be {expected}, got dtype {array.dtype} and shape {array.shape}")
    if array.min() < 0 or array.max() >= 2**63 - 1:
        raise ValueError(f"ids must be {expected} and < 2^63 - 1, got {array.min()} to {array.max()}")
    return array.astype(np.int64)
