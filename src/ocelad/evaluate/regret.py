"""Regret on every interval, by prefix sums.

    dynamic             R(I) = sum_{t in I} f_t(estimate_t) - f_t(w_t)            for one sequence w
    static              R(I) = sum_{t in I} f_t(estimate_t) - min_w sum_{t in I} f_t(w)
    strongly adaptive   A(length) = max_{|I| = length} R(I)

Steps are numbered 0, ..., T - 1 here; an interval is given by its first and its last step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..geometry import Metric
from ..intervals import length as dyadic_length
from ..protocols import Array, Integers


def interval_sums(values: ArrayLike) -> Array:
    """S[q, s] = values[q] + ... + values[s] for all q <= s, by prefix sums; nan elsewhere.

    >>> interval_sums([1.0, 2.0, 4.0])
    array([[ 1.,  3.,  7.],
           [nan,  2.,  6.],
           [nan, nan,  4.]])
    """
    total = totals(np.asarray(values, dtype=np.float64))
    sums = total[None, 1:] - total[:-1, None]
    sums[np.tril_indices(len(sums), -1)] = np.nan
    return sums


def variation(comparator: ArrayLike | Sequence[Metric], threshold_step: float = 1.0) -> Array:
    """|w_{t+1} - w_t| for every t, 0 at the end: its sum over I is gamma_w(I).

    Metrics are measured by sqrt(|M - M'|_F^2 + (mu - mu')^2 / threshold_step), the norm in which their learners'
    bound holds.

    >>> variation([[0.0, 0.0], [3.0, 4.0], [3.0, 4.0]])
    array([5., 0., 0.])
    >>> variation([Metric([[1.0]], 1.0), Metric([[1.0]], 3.0)], threshold_step=0.25)
    array([4., 0.])
    """
    w: Any = comparator
    if isinstance(w, Sequence) and w and isinstance(w[0], Metric):
        w = [np.append(metric.M, metric.mu / np.sqrt(threshold_step)) for metric in w]
    w = np.asarray(w, dtype=np.float64)
    if w.ndim == 0 or not len(w):
        raise ValueError(f"comparator must be a sequence of at least one parameter, got shape {w.shape}")
    return np.append(np.linalg.norm(np.diff(w.reshape(len(w), -1), axis=0), axis=1), 0.0)


def dyadic_intervals(T: int, base: int = 1) -> Iterator[tuple[int, Integers]]:
    """Length and first steps of the dyadic intervals within T steps, a level at a time: 2T intervals, not T^2.

    The clock starts at ``base``, as the ensemble's does: step k is time base + k.

    >>> [(length, first.tolist()) for length, first in dyadic_intervals(6)]
    [(1, [0, 1, 2, 3, 4, 5]), (2, [1, 3])]
    """
    level = 0
    while 2 * (size := dyadic_length(level, base)) - base <= T:
        yield size, np.arange(size - base, T - size + 1, size)
        level += 1


@dataclass(frozen=True, eq=False)
class Regret:
    """What was lost on each interval, against one comparator or the best of several on that interval.

    >>> regret = Regret.dynamic([3.0, 1.0, 1.0, 0.0], [1.0, 1.0, 0.0, 0.0])
    >>> regret.on(0, 2).item()
    3.0
    >>> regret.strongly_adaptive([1, 2, 3, 4])
    array([2., 2., 3., 3.])
    """

    totals: Array
    """Prefix sums of ours - theirs, of shape (comparators, T + 1)."""

    @classmethod
    def dynamic(cls, ours: ArrayLike, theirs: ArrayLike) -> Regret:
        """Against one sequence of parameters; both arguments are losses, of shape (T,)."""
        return cls.static(ours, np.asarray(theirs, dtype=np.float64)[None])

    @classmethod
    def static(cls, ours: ArrayLike, theirs: ArrayLike) -> Regret:
        """Against the best of some constants on each interval; their losses have shape (constants, T).

        `best_constant` finds the best of all, an interval at a time.
        """
        a, b = np.asarray(ours, dtype=np.float64), np.asarray(theirs, dtype=np.float64)
        if a.ndim != 1 or not len(a) or b.ndim != 2 or not len(b) or b.shape[1] != len(a):
            raise ValueError(
                "ours and theirs must hold a loss for each of the same T >= 1 steps, "
                f"got shapes {a.shape} and {b.shape}"
            )
        if not (np.isfinite(a).all() and np.isfinite(b).all()):
            raise ValueError("ours and theirs must be finite losses")
        return cls(totals(a - b))

    def __len__(self) -> int:
        return self.totals.shape[1] - 1

    def on(self, first: Any, last: Any) -> Array:
        """On [first, last], elementwise for arrays of them."""
        first, last = np.asarray(first), np.asarray(last)
        if not ((first >= 0) & (first <= last) & (last < len(self))).all():
            raise ValueError(f"intervals must have 0 <= first <= last < {len(self)}")
        return (self.totals[:, last + 1] - self.totals[:, first]).max(axis=0)

    def every(self) -> Array:
        """On all T(T+1)/2 intervals at once: R[q, s], nan where s < q. It takes 8 T^2 bytes."""
        first, last = np.ogrid[: len(self), : len(self)]
        return np.where(last >= first, self.on(first, np.maximum(first, last)), np.nan)

    def of_length(self, length: int) -> Array:
        """On all intervals of one length, by their first step."""
        if not 1 <= length <= len(self):
            raise ValueError(f"length must be from 1 to {len(self)}, got {length!r}")
        return (self.totals[:, length:] - self.totals[:, :-length]).max(axis=0)

    def dyadic(self, base: int = 1) -> Iterator[tuple[int, Integers, Array]]:
        """Length, first steps and regret of the dyadic intervals, a level at a time: memory grows as T."""
        for size, first in dyadic_intervals(len(self), base):
            yield size, first, self.on(first, first + size - 1)

    def strongly_adaptive(self, lengths: ArrayLike | None = None) -> Array:
        """The largest regret on any interval of each length, by default of all lengths; memory grows as T."""
        wanted = range(1, len(self) + 1) if lengths is None else np.asarray(lengths).tolist()
        return np.array([self.of_length(length).max() for length in wanted])


def totals(values: Array) -> Array:
    """Prefix sums, the first of them 0."""
    start = np.zeros((*values.shape[:-1], 1))
    return np.concatenate([start, np.cumsum(values, axis=-1)], axis=-1)
