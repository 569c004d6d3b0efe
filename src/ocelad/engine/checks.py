"""Arrays that come from a file: checked before they are used, and brought up to date."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..protocols import Array
from .protocol import Arrays

_TERMS = 48  # that a level of 0.1.0 had at most
_WAITING = {"ranks", "rows", "counts", "term_weights", "eigenvalues", "sigma"}


def take(learned: Arrays, name: str, shape: tuple[int, ...], dtype: type = np.float64) -> np.ndarray[Any, Any]:
    """A finite array of this kind."""
    array = learned[name]
    if array.dtype.kind != np.dtype(dtype).kind or array.shape != shape:
        raise ValueError(f"{name} must be {dtype.__name__} of shape {shape}, got {array.dtype} of {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite")
    return array.astype(dtype, copy=False)


def split(array: Array, sizes: Array) -> list[Array]:
    return np.split(array, np.cumsum(sizes)[:-1])


def settled(n: int, learned: Arrays) -> Arrays:
    """Arrays as they are now: files of 0.1.0 may have ``terms`` that had not been diagonalised yet."""
    if "terms" not in learned:
        return learned
    if not learned.keys() >= _WAITING:
        raise ValueError(f"its arrays are {', '.join(learned)}, expected {', '.join(sorted(_WAITING))} with terms")
    ranks = take(learned, "ranks", learned["ranks"].shape[:1], np.int64)
    counts = take(learned, "counts", ranks.shape, np.int64)
    if not ((ranks >= 0) & (ranks <= n) & (counts >= 0) & (counts <= _TERMS)).all():
        raise ValueError("ranks or counts has entries that cannot be")
    total = int(ranks.sum())
    rows, s = take(learned, "rows", (total, n)), take(learned, "eigenvalues", (total,))
    terms = take(learned, "terms", (int((counts * ranks).sum()),))
    weights, sigma = take(learned, "term_weights", (int(counts.sum()),)), take(learned, "sigma", ranks.shape)
    levels = zip(
        split(rows, ranks),
        split(s, ranks),
        split(terms, counts * ranks),
        split(weights, counts),
        sigma,
        strict=True,
    )
    done = [_diagonal(Q, d, L.reshape(len(a), len(d)), a, rest) for Q, d, L, a, rest in levels]
    fresh = {
        "ranks": np.array([len(d) for d, _ in done]),
        "rows": np.concatenate([Q for _, Q in done]),
        "eigenvalues": np.concatenate([d for d, _ in done]),
    }
    return {k: fresh.get(k, v) for k, v in learned.items() if k not in ("counts", "terms", "term_weights")}


def _diagonal(Q: Array, s: Array, L: Array, a: Array, sigma: float) -> tuple[Array, Array]:
    """The eigenpairs of Q' (diag(s) + L' diag(a) L) Q, without those of the rest if that is 0."""
    with np.errstate(all="ignore"):
        M = np.diag(s) + (L.T * a) @ L
    if not np.isfinite(M).all():
        raise ValueError("terms must be finite, and so must be their products")
    values, V = np.linalg.eigh(M)
    kept = (values > 1e-14 * len(s) * max(float(values.max(initial=0.0)), 0.0)) | (sigma > 0.0)
    return np.maximum(values[kept], 0.0), V[:, kept].T @ Q
