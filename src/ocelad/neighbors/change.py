"""Which metric this is, and how far it is from another one.

    moved^2 = sum_ij (u_ij' (M1 - M0) u_ij)^2 / sum_ij (u_ij' M0 u_ij)^2,       u_ij = x_i - x_j.

The sums over all pairs need no pairs: for points with mean zero, and a_i = x_i' D x_i, S = sum_i x_i x_i',

    sum_ij (u_ij' D u_ij)^2 = 2 N sum_i a_i^2 + 2 (sum_i a_i)^2 + 4 trace(D S D S).
"""

from __future__ import annotations

import math
from hashlib import blake2b
from typing import Any, Protocol

import numpy as np

from .. import validation as validate
from ..geometry import Mahalanobis
from ..geometry.quadratic import EPS, Parts
from ..protocols import Array

SMALLEST = 1e-280
"""Below this an entry of M has lost digits."""
LARGEST_UNIT = 1.0 / math.sqrt(SMALLEST)


class MovingMetric(Protocol):
    """What is asked of a metric: a `MetricTracker`, or anything like it."""

    @property
    def mu_(self) -> float: ...

    def get_mahalanobis_matrix(self) -> Array: ...


def matrix(metric: MovingMetric, n: int) -> Array:
    """The metric's matrix now, for points with n features."""
    M = validate.real(metric.get_mahalanobis_matrix(), "metric", "an object with a matrix of finite numbers")
    n = n or len(M)  # no points yet
    if M.shape != (n, n):
        raise ValueError(f"metric must have the {n} features of the stored points, its matrix has shape {M.shape}")
    largest = np.abs(M).max()
    if 0.0 < largest < SMALLEST or _sizes(getattr(metric, "scale_", 1.0)).max(initial=1.0) > LARGEST_UNIT:
        raise OverflowError("the features are too large for the matrix to be written in their units: rescale them")
    return np.array(M)


def current(metric: MovingMetric, n: int, last: Mahalanobis | None) -> Mahalanobis:
    """The metric now, without its matrix where it can do without; the last one if it has not moved."""
    now = metric.get_metric() if hasattr(metric, "get_metric") else None
    if isinstance(now, Mahalanobis) and now.n == n:
        sizes = _sizes(now.unit)
        if sizes.min(initial=1.0) >= 1.0 / LARGEST_UNIT and sizes.max(initial=1.0) <= LARGEST_UNIT:
            return now
    M = matrix(metric, n)
    return last if last is not None and np.array_equal(last.matrix, M) else Mahalanobis(M)


def factor(metric: Mahalanobis) -> Array:
    """L with M = L'L, the longest rows first: as learned, or eigenvectors without those that are rounding."""
    form = metric.form
    if isinstance(form, Parts) and metric.rank is None and (form.extra >= 0.0).all():
        L = form.columns.T * np.sqrt(form.extra)[:, None]
        if form.sigma > 0.0:  # the Euclidean part
            L = np.vstack([L, np.sqrt(form.sigma) * np.eye(form.n)])
        return L[np.argsort(-np.square(L).sum(axis=1), kind="stable")] / metric.unit
    L = metric.factor
    squares = np.square(L / (np.abs(L).max() or 1.0)).sum(axis=1)
    order = np.argsort(-squares, kind="stable")
    return L[order[squares[order] > len(L) * EPS * squares.max()]] / metric.unit


def _sizes(unit: Any) -> Array:
    """Units of length, one or many, without those that are infinite: their features do not count."""
    sizes = np.atleast_1d(unit)
    return np.asarray(sizes[np.isfinite(sizes)], dtype=np.float64)


def threshold(metric: MovingMetric) -> float:
    """The largest distance of similar points: a ``threshold_`` that was set or calibrated, else sqrt(mu)."""
    given = getattr(metric, "threshold_", None)
    return math.sqrt(metric.mu_) if given is None else float(given)


def fingerprint(M: Array, threshold: float) -> str:
    """The same if and only if matrix and threshold are, to the bit."""
    content = np.append(M + 0.0, threshold).astype("<f8").tobytes()  # + 0.0: there is only one zero
    return blake2b(content, digest_size=16).hexdigest()


def moved(before: Array, now: Array, X: Array) -> float:
    """The root mean square change of squared distances among X, as a fraction of their root mean square before.

    >>> M = np.eye(2)
    >>> round(moved(M, 1.05 * M, np.array([[0.0, 1.0], [2.0, 0.0], [3.0, 1.0]])), 12)
    0.05
    """
    unit = max(np.abs(before).max(), np.abs(now).max())
    if len(X) < 2 or unit == 0.0:
        return 0.0
    X = X / (np.abs(X).max() or 1.0)  # only ratios matter: squares neither overflow nor vanish
    X = X - X.mean(axis=0)
    X = X / (np.abs(X).max() or 1.0)
    change, reference = _all_pairs((now - before) / unit, X), _all_pairs(before / unit, X)
    if change == 0.0:
        return 0.0
    return math.sqrt(change / reference) if reference > 0.0 else math.inf


def _all_pairs(D: Array, X: Array) -> float:
    """sum_ij (u_ij' D u_ij)^2 for points with mean zero."""
    a = np.einsum("ij,ij->i", X @ D, X)
    DS = D @ (X.T @ X)
    return float(2.0 * len(X) * (a @ a) + 2.0 * a.sum() ** 2 + 4.0 * np.sum(DS * DS.T))
