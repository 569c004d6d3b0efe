"""Input formats of points, pairs, triplets and quadruplets, and their conversion to arrays of points.

Formed tuples have shape (m, k, n); tuples of indicators (m, k) go through a preprocessor; k sparse matrices or
DataFrames of shape (m, n) are the first, second, ... points of m tuples. The texts of the errors about dimensions
are the ones that users of metric-learn know.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import validate_data

from .. import validation as validate
from ..dataframes import column_names, is_frame, numbers
from .hints import about_points, about_tuples, shown
from .preprocessor import called, check_rows, formed
from .units import square

_TABLE = "a table of finite numbers"
NAMES = {2: "pairs", 3: "triplets", 4: "quadruplets"}


def features(given: Any) -> Callable[[Any], Any] | None:
    """A function from points to what is learned from: that of a transformer, or the one that was given."""
    found = getattr(given, "transform", given)
    if found is None or (callable(found) and not (isinstance(given, type) and hasattr(given, "transform"))):
        return found
    expected = "None, a function of points or a fitted transformer"
    if isinstance(given, type):
        raise ValueError(f"features must be {expected}, got the class {given.__name__}, not an instance of it")
    kind = type(given).__name__
    raise ValueError(f"features must be {expected}, got {given!r}: {kind} has no transform, and cannot be called")


def points(X: Any, owner: str, form: Callable[[Any], Any] | None, features: Any = None) -> Any:
    """Points as a dense array or a CSR matrix of two dimensions, not validated further."""
    if features is not None:
        array = X if sparse.issparse(X) or is_frame(X) else _array(X, "X")
        if array.ndim != 1 or form is None:
            return _made(features, array)
        check_rows(form, array, "X")
        return _made(features, _items(form, array))
    if sparse.issparse(X):
        return X.tocsr()
    if is_frame(X):
        return validate.real(X, "X", _TABLE)
    array, applied = _array(X, "X"), False
    if array.ndim == 1 and form is not None:
        check_rows(form, array, "X")
        array, applied = formed(form, array), True
    if array.ndim != 2:
        formed_points, indicators = "2D array of formed points", "1D array of indicators or "
        raise about_points(_dimensions(formed_points, indicators, 1, array, owner, form, applied), array)
    return array


def tuples(
    given: Any, size: int, owner: str, form: Callable[[Any], Any] | None, features: Any = None
) -> list[Any]:
    """The first, second, ... points of tuples, each of shape (m, n), finite, dense or CSR."""
    name = NAMES[size]
    if features is not None:
        found = _each(given, name, form)
        if len(found) != size:
            raise _size(size, len(found), owner, f"{len(found)} sides", given)
        return _sides([_made(features, side) for side in found], size, f"features of {name}", owner)
    if isinstance(given, (tuple, list)) and any(sparse.issparse(side) or is_frame(side) for side in given):
        return _sides(list(given), size, name, owner)
    if sparse.issparse(given):
        raise ValueError(
            f"{name} of sparse points must be {size} sparse matrices, first points, second points, ..."
        )
    array, applied = _array(given, name), False
    if (
        isinstance(given, tuple)
        and array.shape[:2] == (size, size)
        and all(hasattr(side, "dtype") for side in given)
    ):
        stacked = f"np.stack([{', '.join('abcd'[:size])}], axis=1)"  # other sizes have other shapes, and errors
        raise ValueError(f"{name} must be one array of shape (m, {size}, n): {stacked} makes it of {size} arrays")
    if array.ndim == 2 and form is not None:
        check_rows(form, array, name)
        sides = [formed(form, array[:, side]) for side in range(array.shape[1])]
        if any(sparse.issparse(side) for side in sides):
            return _sides(sides, size, name, owner)
        array, applied = np.stack(sides, axis=1), True
    if array.ndim != 3:
        formed_tuples, indicators = "3D array of formed tuples", "2D array of indicators or "
        problem = _dimensions(formed_tuples, indicators, 2, array, owner, form, applied)
        raise about_tuples(problem, array, size, name)
    if array.shape[1] != size:
        raise about_tuples(_size(size, array.shape[1], owner, array.shape, array), array, size, name)
    expected = f"an array of finite numbers of shape (m, {size}, n): m {name} of points with n features"
    array = validate.real(array, name, expected)
    if array.shape[2] == 0:
        raise ValueError(f"{name} must be {expected}, got shape {array.shape}")
    return [array[:, side] for side in range(size)]


def differences(given: Any, owner: str, form: Callable[[Any], Any] | None, features: Any = None) -> Any:
    """u = x - z for pairs, dense or CSR."""
    # Fast path for the usual case: numbers whose differences cannot overflow.
    usual = features is None and type(given) is np.ndarray and given.dtype == np.float64 and given.ndim == 3
    if usual and given.shape[1] == 2 and given.shape[2] and square(given) < math.inf:
        return np.subtract(given[:, 0], given[:, 1], order="C")
    x, z = tuples(given, 2, owner, form, features)
    return difference(x, z, "pairs")


def with_points(x: Any, z: Any, name: str) -> Any:
    """Rows (x - z, x, z)."""
    if sparse.issparse(x):
        raise ValueError(f"{name}: nonlinear=True needs dense points, got sparse ones")
    return np.hstack([difference(x, z, name), x, z])


def difference(x: Any, z: Any, name: str) -> Any:
    """u = x - z, rows in one piece: sums over rows that lie apart in memory are rounded otherwise."""
    with np.errstate(over="ignore"):
        u = x - z if sparse.issparse(x) else np.subtract(x, z, order="C")
    values = u.data if sparse.issparse(u) else u
    if not np.isfinite(values).all():
        wild = ~np.isfinite(values)
        row = int(u.tocoo().row[wild].min() if sparse.issparse(u) else np.argwhere(wild)[0, 0])
        raise ValueError(f"{name} must have finite differences, but those of {name[:-1]} {row} overflow")
    return u


def side_by_side(near: Any, far: Any) -> Any:
    """Concatenate two differences in each row."""
    if sparse.issparse(near):
        return sparse.hstack([near, far]).tocsr()
    return np.hstack([near, far])


def moderate(rows: Any) -> bool:
    """Whether squares of these neither overflow nor vanish."""
    return 1e-150 < square(rows if isinstance(rows, np.ndarray) else rows.data) < 1e150


def check_names(estimator: Any, given: Any, known: bool) -> None:
    """Keep the names of the features, or compare with those kept, by scikit-learn's rules."""
    if estimator._features() is not None:
        return  # names are those of points, and nothing is learned from points themselves
    frames = [side for side in given if is_frame(side)] if isinstance(given, (tuple, list)) else []
    if not known and is_frame(estimator.preprocessor):
        frames.append(estimator.preprocessor)
    if not frames:
        return
    sides = BaseEstimator()
    for number, frame in enumerate(frames):  # they must agree among themselves, too
        validate_data(sides, frame, reset=number == 0, skip_check_array=True)
    validate_data(estimator, frames[0], reset=not known, skip_check_array=True)


def names_of(frame: Any) -> dict[str, Any]:
    """The attributes in which scikit-learn keeps the names of a table's columns."""
    holder = BaseEstimator()
    validate_data(holder, frame, skip_check_array=True)
    return vars(holder)


def check_columns(X: Any) -> None:
    """Raise if X is a table with anything but numbers, before scikit-learn does, which names no column."""
    if is_frame(X):
        validate.real(X, "X", _TABLE)


def name_of_points(features: Any) -> str:
    """What errors call the points of an argument X."""
    return "X" if features is None else "features of X"


def _sides(sides: list[Any], size: int, name: str, owner: str) -> list[Any]:
    if len(sides) != size:
        raise _size(size, len(sides), owner, f"{len(sides)} matrices", sides)
    _check_same_columns(sides, name)
    shapes = [np.shape(side) for side in sides]
    if len(set(shapes)) != 1 or len(shapes[0]) != 2 or shapes[0][1] == 0:
        raise ValueError(f"{name} must be {size} matrices of one shape (m, n), got shapes {shapes}")
    expected = "matrices of finite numbers"
    checked = []
    for number, side in enumerate(sides):
        if sparse.issparse(side):
            rows = side.tocsr()
            validate.real(rows.data, name, expected)
            if rows.dtype != np.float64 or not rows.has_canonical_format:
                rows = rows.astype(np.float64)  # a copy
                rows.sum_duplicates()  # and sort: else the order within a row of x - z would depend on other rows
            checked.append(rows)
        else:
            which = (f"{name}[{number}]", _TABLE) if is_frame(side) else (name, expected)
            checked.append(validate.real(side, *which))
    if all(sparse.issparse(side) for side in checked):
        return checked
    return [side.toarray() if sparse.issparse(side) else side for side in checked]


def _check_same_columns(sides: list[Any], name: str) -> None:
    """Raise where tables side by side name other columns; scikit-learn would speak of those passed during fit."""
    of_first = column_names(sides[0]) if is_frame(sides[0]) else []
    for number, side in enumerate(sides[1:], 1):
        columns = column_names(side) if is_frame(side) else []
        named = bool(columns) and all(isinstance(column, str) for column in (*of_first, *columns))
        if not of_first or not named or columns == of_first:
            continue
        missing = [f"{column!r} is missing" for column in of_first if column not in columns]
        extra = [f"{column!r} is extra" for column in columns if column not in of_first]
        if missing or extra:
            told = f"has other columns than {name}[0]: {', '.join((*missing[:3], *extra[:3]))}"
        else:
            told = f"has the columns of {name}[0] in another order"
        raise ValueError(f"{name}[{number}] {told}")


def _array(value: Any, name: str) -> np.ndarray[Any, Any]:
    if isinstance(value, np.ma.MaskedArray):
        raise ValueError(f"{name} must be an array of finite numbers, got a masked array")
    try:
        return np.asarray(value)
    except ValueError as error:  # ragged lists
        raise ValueError(f"{name} must be an array of finite numbers; {error}") from None


def _each(given: Any, name: str, form: Callable[[Any], Any] | None) -> list[Any]:
    """The first, second, ... points as they were given, or as the preprocessor makes them."""
    if isinstance(given, (tuple, list)) and any(sparse.issparse(side) or is_frame(side) for side in given):
        return list(given)
    array = _array(given, name)
    if array.ndim < 2:
        raise ValueError(f"{name} must have a row each, of points or of what features takes, got {shown(array)}")
    sides = [np.ascontiguousarray(array[:, side]) for side in range(array.shape[1])]
    if array.ndim != 2 or form is None:
        return sides
    check_rows(form, array, name)
    return [_items(form, side) for side in sides]


def _items(form: Callable[[Any], Any], indicators: Any) -> Any:
    """What a preprocessor makes of indicators, for ``features``: tables keep the names of their columns."""
    made = called(form, indicators)
    return made if is_frame(made) or sparse.issparse(made) else _array(made, "points")


def _made(features: Callable[[Any], Any], points: Any) -> Any:
    """What ``features`` makes of points: a row each."""
    try:
        made = features(points)
    except NotFittedError as error:
        raise ValueError(f"features must be fitted before it is used: {error}") from error
    except Exception as error:
        raise ValueError(f"features failed on the points it was given: {error!r}") from error
    expected = f"features must give an array of numbers with a row for each of {np.shape(points)[0]} points"
    try:
        if is_frame(made):
            made = numbers(made, "what features gives", "a table of numbers")
        made = made.tocsr() if sparse.issparse(made) else np.asarray(made)
    except ValueError as error:  # ragged lists, columns of text
        raise ValueError(f"{expected}; {error}") from None
    if made.ndim != 2:
        raise ValueError(f"{expected}, got a {made.ndim}D array of shape {made.shape}. Reshape your data.")
    if made.shape[0] != np.shape(points)[0]:
        raise ValueError(f"{expected}, got shape {made.shape}")
    return made


def _dimensions(
    formed: str, indicators: str, ndim: int, array: Any, owner: str, form: object, applied: bool
) -> ValueError:
    """The text of an array that has a wrong number of dimensions; ``ndim`` is that of indicators."""
    if applied:
        kind, context, hint = formed, " after the preprocessor has been applied", " and/or use a preprocessor"
    elif form is None:
        kind, context, hint = formed, "", " and/or use a preprocessor" if array.ndim == ndim else ""
    else:
        kind, context, hint = indicators + formed, " when using a preprocessor", ""
    return ValueError(
        f"{kind} expected by {owner}{context}. Found {array.ndim}D array instead:\n"
        f"input={shown(array)}. Reshape your data{hint}.\n"
    )


def _size(size: int, found: int, owner: str, shape: Any, given: Any) -> ValueError:
    return ValueError(
        f"Tuples of {size} element(s) expected by {owner}. Got tuples of {found} element(s) instead "
        f"(shape={shape}):\ninput={shown(given)}.\n"
    )
