"""Validation of input: once, at the public interface, before any state changes."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import numpy as np
from scipy import sparse

from .dataframes import finite_numbers, is_frame
from .protocols import Array, is_number

SIGNS = frozenset((-1, 1))
LARGEST = 1e100
"""Steps, starts and weights up to here, and steps down to its inverse, leave room for their squares."""


def real(value: Any, name: str, expected: str) -> Array:
    """An array of finite floats."""
    if type(value) is not np.ndarray and is_frame(value):
        return finite_numbers(value, name, expected)
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
        raise ValueError(f"{name} must be {expected}, found {kind} at index {first(~np.isfinite(array))}")
    return array


def first(wrong: Any) -> Any:
    """Where the first of these is: a number in one dimension, else a tuple.

    >>> first(np.array([False, True])), first(np.array([[False, True]]))
    (1, (0, 1))
    """
    where = tuple(int(i) for i in np.argwhere(wrong)[0])
    return where[0] if len(where) == 1 else where


def same_width(rows: Any, n_features: int, name: str, parts: int = 1) -> Any:
    """Rows of as many features as before, or of several points side by side."""
    if rows.shape[1] != n_features * parts:
        raise ValueError(f"{name} must have {n_features} features, as before, got {rows.shape[1] // parts}")
    return rows


def labels(y: Any, m: int, problem: str | None = None) -> Array:
    """+1 (similar) or -1 (different) for every pair, of these, of truth values, or, with a warning, of 1 and 0.

    ``problem`` is the text for other values, where it has to be another.
    """
    if type(y) is np.ndarray and y.shape == (m,) and y.dtype.kind in "fiu" and SIGNS.issuperset(y.tolist()):
        return y.astype(np.float64, copy=False)  # fast path for the usual case
    expected = f"an array of shape ({m},), one label per pair: +1 (similar) or -1 (different), or True or False"
    array = real(_as_numbers(y, expected), "y", expected)
    if array.shape != (m,):
        hint = "; a single label is written [label]" if not array.ndim else _ravelled("y", array, m)
        raise ValueError(f"y must be {expected}, got shape {array.shape}{hint}")
    if (np.abs(array) == 1).all():
        return array
    odd = (np.abs(array) != 1) & (array != 0)
    if odd.any():
        found = f"y must be {expected}, found {array[odd][0]:g} at index {first(odd)}"
        error = ValueError(problem or found)
        if problem:
            error.add_note(found)
        raise error
    if (array == -1).any():
        raise ValueError(f"y must be {expected}, found 0 beside -1: which of them is 'different'?")
    warnings.warn("y has labels 0 and 1: 0 is read as -1 (different)", UserWarning, stacklevel=levels_up())
    return np.where(array == 0, -1.0, 1.0)


def levels_up() -> int:
    """How far up the first caller outside this package is, and outside scikit-learn, which may stand between: the
    line that a warning should point to."""
    frame, level, packages = inspect.currentframe(), 0, (__name__.partition(".")[0], "sklearn")
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in packages:
        frame, level = frame.f_back, level + 1
    return level


def strict_labels(y: Any, m: int) -> Array:
    """The same, with metric-learn's error message."""
    return labels(
        y,
        m,
        "When training on pairs, the labels (y) should contain only values in [-1, 1]. Found an incorrect value.",
    )


def label(y: Any) -> int:
    """One answer, +1 or True (similar), -1 or False (different)."""
    if isinstance(y, (bool, np.bool_)):
        return 1 if y else -1
    if not is_number(y) or y not in SIGNS:
        hint = (
            ": say -1 or False for 'different', and nothing where it is not known"
            if is_number(y) and y == 0
            else ""
        )
        raise ValueError(f"y must be +1 or True (similar) or -1 or False (different), got {y!r}{hint}")
    return int(y)


def _as_numbers(y: Any, expected: str) -> Any:
    """An array in which True is 1.0 and False -1.0."""
    if isinstance(y, np.ma.MaskedArray):
        return y  # which `real` refuses
    try:
        array = np.asarray(y)
    except ValueError as error:  # ragged lists
        raise ValueError(f"y must be {expected}; {error}") from None
    if array.dtype.kind in "OSU":  # objects may be numbers or truth values: columns of tables often are
        for index, each in enumerate(array.ravel().tolist()):
            if not (is_number(each) or isinstance(each, (bool, np.bool_))):
                hint = "; compare with the word that means similar: y == 'yes'" if isinstance(each, str) else ""
                where = f"found {each!r} at index {index}" if array.ndim else f"got {each!r}"
                raise ValueError(f"y must be {expected}, {where}{hint}")
        signs = [label(each) if isinstance(each, (bool, np.bool_)) else each for each in array.ravel().tolist()]
        array = np.array(signs, dtype=np.float64).reshape(array.shape)
    return np.where(array, 1.0, -1.0) if array.dtype == bool else array


def classes(given: Any) -> None:
    """The classes of ``partial_fit``: there are only two."""
    if sorted(np.unique(given).tolist()) not in ([-1, 1], [0, 1]):
        raise ValueError(f"classes must be [-1, 1] (different, similar), got {given!r}")


def weights(given: Any, m: int) -> Array:
    """How much each comparison counts."""
    expected = f"an array of shape ({m},) of numbers from 0 to {LARGEST:g}, one per comparison"
    array = real(given, "sample_weight", expected)
    if array.shape != (m,):
        raise ValueError(
            f"sample_weight must be {expected}, got shape {array.shape}{_ravelled('sample_weight', array, m)}"
        )
    if m and not 0 <= array.min() <= array.max() <= LARGEST:
        k = first((array < 0) | (array > LARGEST))
        raise ValueError(f"sample_weight must be {expected}, found {array[k]:g} at index {k}")
    return array


def _ravelled(name: str, array: Array, m: int) -> str:
    """What to do with a column in place of a row."""
    return f"; {name}.ravel() is of that shape" if array.shape == (m, 1) else ""


def points(X: Any, n_features: int, name: str = "X") -> Any:
    """Points of shape (m, n), dense or CSR."""
    expected = f"an array of finite numbers of shape (m, {n_features})"
    if X.ndim != 2 or X.shape[1] != n_features:
        raise ValueError(f"{name} must be {expected}, got shape {X.shape}")
    if sparse.issparse(X):
        real(X.data, name, expected)
        return X
    return real(X, name, expected)


def vector(point: Any, n_features: int) -> Array:
    """One point, which may be written as a number or a row."""
    array = np.atleast_1d(np.asarray(point, dtype=np.float64).squeeze())
    if array.shape != (n_features,):
        raise ValueError(f"a point must have shape ({n_features},), got {np.shape(point)}")
    return array


def components(L: Any) -> Array:
    """A linear map of points; a single row may be written without its brackets."""
    expected = "an array of finite numbers of shape (n_components, n_features)"
    array = np.atleast_2d(real(L, "components_", expected))
    if array.ndim != 2 or not array.size:
        raise ValueError(f"components_ must be {expected}, got shape {array.shape}")
    return array


def n_components(value: Any, n_features: int) -> int | None:
    if value is None:
        return None
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or not 1 <= value <= n_features:
        error = ValueError(
            f"Invalid n_components, must be in [1, {n_features}]"
        )  # metric-learn's text, to the letter
        error.add_note(f"n_components is {value!r}; points have {n_features} features.")
        raise error
    return int(value)


def integer(value: Any, name: str, least: int = 1) -> int:
    """A parameter that counts something."""
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} must be an integer >= {least}, got {value!r}")
    return int(value)


def number(value: Any, name: str, *, positive: bool) -> float:
    """A finite number >= 0, or > 0."""
    expected = "a finite number > 0" if positive else "a finite number >= 0"
    if not is_number(value) or not np.isfinite(value) or value < 0 or (positive and value == 0):
        raise ValueError(f"{name} must be {expected}, got {value!r}")
    return float(value)


def step(value: Any) -> float:
    size = number(value, "step", positive=True)
    if not 1.0 / LARGEST <= size <= LARGEST:
        raise ValueError(f"step must be from {1.0 / LARGEST:g} to {LARGEST:g}, got {value!r}")
    return size


def start(origin: Any, n: int, definite: bool, name: str = "origin") -> float | Array:
    """M0: a number, for that multiple of I, or a given positive (semi-)definite matrix."""
    expected = f"a number >= 0 or a symmetric positive semi-definite matrix of shape ({n}, {n})"
    M = real(origin, name, expected)
    if M.ndim == 0:
        smallest = largest = float(M)
    elif M.shape != (n, n) or not np.allclose(M, M.T, rtol=1e-10, atol=0.0):
        raise ValueError(f"{name} must be {expected}, got one of shape {M.shape}")
    else:
        smallest, *_, largest = np.linalg.eigvalsh(M) if n > 1 else [float(M[0, 0])] * 2
    if smallest < -1e-10 * max(largest, 0.0) or largest < 0:
        raise ValueError(f"{name} must be {expected}; its smallest eigenvalue is {smallest:g}")
    if largest > LARGEST:
        raise ValueError(f"{name} must be at most {LARGEST:g} in the unit of length; it reaches {largest:g}")
    if definite and not smallest > 0:
        raise ValueError(
            f"{name} must be positive definite (a number > 0, say 1.0) with this divergence, got a singular start"
        )
    return float(M) if M.ndim == 0 else (M + M.T) / 2


def max_rank(value: int | None, origin: float | Array) -> int | None:
    if value is not None and isinstance(origin, float) and origin > 0.0:
        raise ValueError(f"max_rank must be None where learners start from a multiple of I (origin={origin:g})")
    return value
