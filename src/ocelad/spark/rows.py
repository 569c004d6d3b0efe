"""Which rows can be learned from, and why the others cannot: a bad row gets a reason, and stops nobody.

u = x - z,        x and z finite and of the same length, y = +1 or -1, key and seq there.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..protocols import Array, Integers
from ..tracker.units import Scale

NO_KEY = "key is null"
NO_SEQ = "seq is null"
NO_POINT = "x or z is null"
NOT_FINITE = "x or z has a null, a NaN or an infinity"
TOO_FAR = "x - z is too large for a number"

Reasons = NDArray[np.object_]
"""Of each row, None where it is good."""


class Ragged(NamedTuple):
    """Lists of numbers, one after the other; the length of one that is null is -1.

    >>> Ragged.of([[1.0, 2.0], None, [3.0]])
    Ragged(values=array([1., 2., 3.]), lengths=array([ 2, -1,  1]))
    """

    values: Array
    lengths: Integers

    @classmethod
    def of(cls, rows: Any) -> Ragged:
        if isinstance(rows, np.ndarray) and rows.ndim == 2:
            return cls(rows.astype(np.float64).ravel(), np.full(len(rows), rows.shape[1]))
        values = [value for row in rows if row is not None for value in row]
        numbers = np.array([np.nan if value is None else value for value in values], dtype=np.float64)
        return cls(numbers, np.array([-1 if row is None else len(row) for row in rows], dtype=np.int64))

    @property
    def starts(self) -> Integers:
        lengths = np.maximum(self.lengths, 0)
        return np.cumsum(lengths) - lengths

    def dense(self, rows: Integers, length: int) -> Array:
        """These rows, which have this length, as a matrix."""
        if len(rows) * length == len(self.values):  # all of them
            return self.values.reshape(len(rows), length)
        return self.values[self.starts[rows][:, None] + np.arange(length)]


class Rows(NamedTuple):
    """Rows as `check` leaves them."""

    keys: list[Hashable]
    """Different ones."""
    of: Integers
    """Which of these each row has; -1 where it is null."""
    seq: Integers
    """0 where it is null."""
    u: Ragged
    y: Array
    reasons: Reasons

    def key(self, row: int) -> Hashable:
        return None if self.of[row] < 0 else self.keys[self.of[row]]

    @classmethod
    def joined(cls, parts: list[Rows]) -> Rows:
        if len(parts) == 1:
            return parts[0]
        index: dict[Hashable, int] = {}
        of = [np.append(codes(part.keys, index), -1)[part.of] for part in parts]
        _, _, seq, u, y, reasons = zip(*parts, strict=True)
        values, lengths = map(np.concatenate, zip(*u, strict=True))
        columns = np.concatenate(of), np.concatenate(seq), Ragged(values, lengths), np.concatenate(y)
        return cls(list(index), *columns, np.concatenate(reasons))


def codes(keys: list[Hashable], index: dict[Hashable, int]) -> Integers:
    """The number of each key; those that are not in the index yet come to its end.

    >>> index = {"ann": 0}
    >>> codes(["bob", "ann"], index), index
    (array([1, 0]), {'ann': 0, 'bob': 1})
    """
    return np.fromiter((index.setdefault(key, len(index)) for key in keys), np.int64, len(keys))


def runs(of: Integers) -> Iterator[tuple[int, slice]]:
    """Each number in a sorted list, and where it stands.

    >>> list(runs(np.array([3, 3, 5])))
    [(3, slice(0, 2, None)), (5, slice(2, 3, None))]
    """
    starts = np.flatnonzero(np.diff(of, prepend=-1)).tolist()
    return ((int(of[a]), slice(a, b)) for a, b in pairwise([*starts, len(of)]))


def check(
    no_key: NDArray[np.bool_], no_seq: NDArray[np.bool_], x: Ragged, z: Ragged, y: ArrayLike
) -> tuple[Ragged, Reasons]:
    """The differences of good rows, empty for the others, and the reasons of these.

    >>> x, z = Ragged.of([[1.0, 2.0], [1.0], [np.nan, 0.0]]), Ragged.of([[0.0, 2.0], [1.0, 1.0], [0.0, 0.0]])
    >>> u, reasons = check(np.zeros(3, bool), np.zeros(3, bool), x, z, [1, 1, -1])
    >>> u.values, reasons.tolist()
    (array([1., 0.]), [None, 'x has 1 numbers and z has 2', 'x or z has a null, a NaN or an infinity'])
    """
    m, labels = len(x.lengths), np.asarray(y, dtype=np.float64)
    reasons: Reasons = np.full(m, None, dtype=object)
    for row in np.flatnonzero(np.abs(labels) != 1.0).tolist():
        reasons[row] = f"y must be 1 or -1, got {'null' if np.isnan(labels[row]) else f'{labels[row]:g}'}"
    alike = (x.lengths == z.lengths) & (x.lengths > 0)
    found: list[tuple[Integers, Array]] = []
    for length in np.unique(x.lengths[alike]).tolist():
        rows = np.flatnonzero(alike & (x.lengths == length))
        a, b = x.dense(rows, length), z.dense(rows, length)
        with np.errstate(over="ignore", invalid="ignore"):
            u = a - b
        if not np.isfinite(u).all():
            finite = (np.isfinite(a) & np.isfinite(b)).all(axis=1)
            reasons[rows[~finite]] = NOT_FINITE
            reasons[rows[finite & ~np.isfinite(u).all(axis=1)]] = TOO_FAR
        found.append((rows, u))
    for row in np.flatnonzero(~alike).tolist():
        one, other = int(x.lengths[row]), int(z.lengths[row])
        reasons[row] = NO_POINT if min(one, other) < 0 else f"x has {one} numbers and z has {other}"
    reasons[no_key] = NO_KEY
    reasons[no_seq] = NO_SEQ
    return _joined(found, reasons), reasons


def _joined(found: list[tuple[Integers, Array]], reasons: Reasons) -> Ragged:
    """The differences of good rows in the order of rows."""
    good = reasons == None  # noqa: E711 element by element
    if len(found) == 1 and good.all():
        return Ragged(found[0][1].ravel(), np.full(len(good), found[0][1].shape[1]))
    lengths = np.zeros(len(good), dtype=np.int64)
    for rows, u in found:
        lengths[rows] = u.shape[1]
    joined = Ragged(np.empty(int(lengths[good].sum())), np.where(good, lengths, 0))
    starts = joined.starts
    for rows, u in found:
        kept = good[rows]
        joined.values[starts[rows[kept]][:, None] + np.arange(u.shape[1])] = u[kept]
    return joined


def usual_length(u: Ragged, reasons: Reasons) -> int | None:
    """The length that most good rows have."""
    lengths = u.lengths[reasons == None]  # noqa: E711
    return int(np.bincount(lengths).argmax()) if len(lengths) else None


def check_lengths(u: Ragged, reasons: Reasons, n: int) -> None:
    """Give a reason to rows that do not have n numbers."""
    for row in np.flatnonzero((reasons == None) & (u.lengths != n)).tolist():  # noqa: E711
        reasons[row] = f"x and z have {u.lengths[row]} numbers, expected {n}"


def check_scale(u: Array, scale: Scale) -> list[str | None]:
    """Why each difference is too long for a unit of length that is fixed, if it is."""
    try:
        scale.check(u)
    except ValueError:
        return [_too_long(row, scale) for row in u]
    return [None] * len(u)


def _too_long(row: Array, scale: Scale) -> str | None:
    try:
        scale.check(row[None])
    except ValueError:
        return f"x - z is too long for scale={scale.value:g}"
    return None
