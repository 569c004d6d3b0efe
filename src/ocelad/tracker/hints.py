"""What may have been meant by an array of points or tuples whose shape is not the one expected.

The texts of those errors are metric-learn's, to the letter, but for input that takes many lines to print. A hint
is a note of the error: its traceback shows it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

LONGEST = 300
"""Characters of input that an error prints."""

SIDES = {2: "left, right", 3: "a, b, c", 4: "a, b, c, d"}


def shown(given: Any) -> str:
    """Input as errors print it: as it is if that is short, else its beginning and what it is.

    >>> shown(np.zeros((1, 3)))
    '[[0. 0. 0.]]'
    >>> shown(np.zeros((90, 2, 5)))
    '[[[0. 0. 0. 0. 0.] [0. 0. 0. 0. 0.]] [[... (an array of shape (90, 2, 5), dtype float64)'
    """
    text = str(given)
    if len(text) <= LONGEST:
        return text
    if isinstance(given, np.ndarray):
        kind = f"an array of shape {given.shape}, dtype {given.dtype}"
    else:
        size = f" of shape {given.shape}" if hasattr(given, "shape") else ""
        kind = f"a {type(given).__name__}{size}"
    return f"{' '.join(text[:50].split())}... ({kind})"


def about_tuples(error: ValueError, array: Any, size: int, name: str) -> ValueError:
    """The error, with a note on how tuples of this size are written."""
    shape, stacked = array.shape, f"np.stack([{SIDES[size]}], axis=1)"
    if array.ndim == 2 and array.size and isinstance(array.flat[0], (np.ndarray, list, tuple)):
        note = (
            f"A column of vectors is an array by np.stack(column), {size} of these {name} of shape (m, {size}, n) "
            f"by {stacked}."
        )
    elif array.ndim == 2 and shape[1] == size and array.dtype.kind in "iuOUS":
        note = "If these are rows or names of points, give the points: preprocessor=points, or a function."
    elif array.ndim == 2 and shape[0] == size:
        note = f"One of the {name} alone has shape (1, {size}, n): write [{name[:-1]}], and its label [y]."
    elif array.ndim == 3 and shape[0] == size:
        note = f"{size} arrays of points of shape (m, n) become {name} of shape (m, {size}, n) by {stacked}."
    elif not array.size:
        note = f"No {name} at all are an array of shape (0, {size}, n)."
    else:
        note = (
            f"The shape is {shape}. {size} arrays of points of shape (m, n) become {name} of shape (m, {size}, n) "
            f"by {stacked}. SupervisedMetricTracker learns from points and their classes."
        )
    error.add_note(note)
    return error


def about_points(error: ValueError, array: Any) -> ValueError:
    """The error, with a note on how points are written."""
    if array.ndim == 1:
        error.add_note("A single point has shape (1, n): write [point].")
    elif array.ndim == 3:
        error.add_note("Pairs hold two points each: pairs[:, 0] and pairs[:, 1].")
    return error
