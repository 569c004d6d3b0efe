"""The public door: everything that comes in is checked here, once, before any state changes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..learner import Array, is_number


def real(value: Any, name: str, expected: str) -> Array:
    """An array of finite floats."""
    if isinstance(value, np.ma.MaskedArray):
        raise ValueError(f"{name} must be {expected}, got a masked array")
    try:
        array = np.asarray(value)
    except ValueError as error:  # ragged lists
        raise ValueError(f"{name} must be {expected}; {error}") from None
    if array.dtype.kind not in "fiu":
        raise ValueError(f"{name} must be {expected}, got dtype {array.dtype}")
    array = array.astype(np.float64, copy=False)
    if not np.isfinite(array).all():
        kind = "NaN" if np.isnan(array).any() else "infinity"
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(f"{name} must be {expected}, found {kind} at index {where}")
    return array


def differences(pairs: Any, n_features: int | None) -> Array:
    """u = x - z for pairs of shape (m, 2, n)."""
    expected = "an array of finite numbers of shape (m, 2, n): m pairs of points with n features"
    array = real(pairs, "pairs", expected)
    if array.ndim != 3 or array.shape[1] != 2 or array.shape[2] == 0:
        hint = "; a single pair goes in as pair[None]" if array.ndim == 2 and len(array) == 2 else ""
        raise ValueError(f"pairs must be {expected}, got shape {array.shape}{hint}")
    if n_features is not None and array.shape[2] != n_features:
        raise ValueError(f"pairs must have {n_features} features, as before, got {array.shape[2]}")
    with np.errstate(over="ignore"):
        u: Array = array[:, 0] - array[:, 1]
    if not np.isfinite(u).all():
        row = int(np.argwhere(~np.isfinite(u))[0, 0])
        raise ValueError(f"pairs must have finite differences, but those of pair {row} overflow")
    return u


def labels(y: Any, m: int) -> list[int]:
    """One of +1 (similar) and -1 (different) for every pair."""
    expected = f"an array of shape ({m},), one label +1 (similar) or -1 (different) per pair"
    array = real(y, "y", expected)
    if array.shape != (m,):
        raise ValueError(f"y must be {expected}, got shape {array.shape}")
    wrong = array[np.abs(array) != 1]
    if wrong.size:
        raise ValueError(f"y must be {expected}, found {wrong[0]:g}")
    return [int(label) for label in array]


def points(X: Any, n_features: int) -> Array:
    """Points of shape (m, n)."""
    expected = f"an array of finite numbers of shape (m, {n_features})"
    array = real(X, "X", expected)
    if array.ndim != 2 or array.shape[1] != n_features:
        raise ValueError(f"X must be {expected}, got shape {array.shape}")
    return array


def number(value: Any, name: str, *, positive: bool) -> float:
    """A finite number >= 0, or > 0."""
    expected = "a finite number > 0" if positive else "a finite number >= 0"
    if not is_number(value) or not np.isfinite(value) or value < 0 or (positive and value == 0):
        raise ValueError(f"{name} must be {expected}, got {value!r}")
    return float(value)


def start_matrix(origin: Any, n: int, definite: bool) -> Array:
    """M0: origin * I, or a given positive (semi-)definite matrix."""
    expected = f"a number >= 0 or a symmetric positive semi-definite matrix of shape ({n}, {n})"
    M = real(origin, "origin", expected)
    if M.ndim == 0:
        M = M * np.eye(n)
    if M.shape != (n, n) or not np.allclose(M, M.T, rtol=1e-10, atol=0.0):
        raise ValueError(f"origin must be {expected}, got one of shape {M.shape}")
    s = np.linalg.eigvalsh(M)
    if s[0] < -1e-10 * max(s[-1], 0.0) or s[-1] < 0:
        raise ValueError(f"origin must be {expected}; its smallest eigenvalue is {s[0]:g}")
    if definite and not s[0] > 0:
        raise ValueError(
            "origin must be positive definite (a number > 0, say 1.0) with this divergence, got a singular start"
        )
    return (M + M.T) / 2
