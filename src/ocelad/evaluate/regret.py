"""Dynamic regret on every interval, and the bound of Theorem 1.

    R(I) = sum_{t in I} f_t(estimate_t) - f_t(w_t)
         <= 8 C (1 + gamma_w(I)) sqrt|I| + 40 log(1 + max I) sqrt|I|,

with gamma_w(I) = sum_{t in I} |w_{t+1} - w_t|, if every learner's own regret on its interval is at most
C (1 + gamma_w(I)) sqrt|I|, and losses lie in [0, 1]. (So the theorem says; docs/notes-on-the-paper.md has what its
proof leaves open.)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..learner import Array


def interval_sums(values: ArrayLike) -> Array:
    """S[q, s] = values[q] + ... + values[s] for all q <= s, by prefix sums; nan elsewhere.

    >>> interval_sums([1.0, 2.0, 4.0])
    array([[ 1.,  3.,  7.],
           [nan,  2.,  6.],
           [nan, nan,  4.]])
    """
    total = np.concatenate([[0.0], np.cumsum(np.asarray(values, dtype=np.float64))])
    sums = total[None, 1:] - total[:-1, None]
    sums[np.tril_indices(len(sums), -1)] = np.nan
    return sums


def variation(comparator: ArrayLike) -> Array:
    """|w_{t+1} - w_t| for every t, 0 at the end: its sum over I is gamma_w(I)."""
    w = np.asarray(comparator, dtype=np.float64).reshape(len(np.asarray(comparator)), -1)
    return np.append(np.linalg.norm(np.diff(w, axis=0), axis=1), 0.0)


def theorem_1(C: float, gamma: ArrayLike) -> Array:
    """The bound for every interval [q, s] of time steps 1, ..., T, given gamma_w on each of them."""
    gamma = np.asarray(gamma, dtype=np.float64)
    q, s = np.arange(1, len(gamma) + 1)[:, None], np.arange(1, len(gamma) + 1)[None, :]
    root = np.sqrt(np.maximum(s - q + 1, 0))
    return 8 * C * (1 + gamma) * root + 40 * np.log(1 + s) * root
