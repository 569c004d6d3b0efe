"""Classes of points: numbers or text, one kind of them throughout a stream, and none missing."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from ..validation import first

_OF_DTYPE = {"i": "integers", "u": "integers", "f": "numbers", "b": "truth values", "U": "text", "T": "text"}


def check_class_labels(y: Any, earlier: Any = None) -> None:
    """Raise where a label is missing, or is text beside numbers, in y or in y and the labels from before.

    Other problems are left to scikit-learn.

    >>> check_class_labels(["a", "b"], earlier=np.array([1, 2]))
    Traceback (most recent call last):
        ...
    ValueError: y holds text, earlier labels were integers
    """
    kind = _kind(y)
    before = None if earlier is None or not len(earlier) else _kind(earlier[:1])
    if kind is not None and before is not None and (kind == "text") != (before == "text"):
        raise ValueError(f"y holds {kind}, earlier labels were {before}")


def _kind(y: Any) -> str | None:
    """What these labels are; None if nobody can say."""
    if isinstance(y, np.ndarray) and y.dtype.kind != "O":
        if y.dtype.kind == "f" and np.isnan(y).any():
            raise ValueError(f"y must hold a class for each point, found NaN at index {first(np.isnan(y))}")
        return _OF_DTYPE.get(y.dtype.kind)
    try:
        labels = np.asarray(y, dtype=object)
    except ValueError:  # ragged lists
        return None
    if not labels.ndim:
        return None
    text, number = -1, -1
    for k, each in enumerate(labels.ravel().tolist()):
        if each is None or each is np.ma.masked or not _equals_itself(each):
            raise ValueError(f"y must hold a class for each point, found {_missing(each)} at index {k}")
        if isinstance(each, str):
            text = k if text < 0 else text
        elif isinstance(each, (Real, np.bool_)):
            number = k if number < 0 else number
        else:
            return None
    if text >= 0 and number >= 0:
        raise ValueError(
            f"y must hold labels of one kind, found text at index {text} and a number at index {number}"
        )
    if text >= 0:
        return "text"
    return _OF_DTYPE.get(np.asarray(labels.ravel().tolist()).dtype.kind, "numbers") if number >= 0 else None


def _equals_itself(value: Any) -> bool:
    try:
        return bool(value == value)
    except (TypeError, ValueError):  # pandas' NA does not know; of arrays nobody can say
        return isinstance(value, np.ndarray)


def _missing(value: Any) -> str:
    return "NaN" if isinstance(value, float) else repr(value)
