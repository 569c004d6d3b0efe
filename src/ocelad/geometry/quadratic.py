"""Quadratic forms of a positive semi-definite matrix: dense, or low rank and multiplied out only on request.

u' M u,    M = sigma I + C diag(e) C'.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from ..protocols import Array, snapshot

SQUARE = 2048
"""Up to this many features the factor of a metric is a square matrix, as users of metric-learn expect."""

SMALL = 1 << 14
"""Rows of up to this many entries are worth a singular value decomposition."""

EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Dense:
    """The matrix itself."""

    M: Array

    def __post_init__(self) -> None:
        object.__setattr__(self, "M", snapshot(self.M))

    @property
    def n(self) -> int:
        return len(self.M)

    @property
    def diagonal(self) -> Array:
        return self.M.diagonal()

    def squares(self, u: Any) -> Array:
        """u'Mu of each row, dense or CSR."""
        if not sparse.issparse(u):
            return np.einsum("ij,ij->i", u @ self.M, u)
        rows = [(u.indices[a:b], u.data[a:b]) for a, b in zip(u.indptr[:-1], u.indptr[1:], strict=True)]
        return np.array([x @ self.M[np.ix_(at, at)] @ x for at, x in rows])

    def plus(self, rows: Array, sigma: float) -> Dense:
        """M + rows' rows + sigma I."""
        return Dense(self.M + rows.T @ rows + sigma * np.eye(self.n))

    def factor(self, rank: int | None = None) -> Array:
        """L with M = L'L, its rows ordered by how much they matter: n of them, or only the first few."""
        s, V = np.linalg.eigh(self.M)
        return _signed((V * np.sqrt(np.maximum(s, 0.0))).T[::-1][:rank])


@dataclass(frozen=True, eq=False)
class Parts:
    """Low rank plus a multiple of I: distances of many rows take one product with the columns."""

    columns: Array
    extra: Array
    sigma: float

    @property
    def n(self) -> int:
        return len(self.columns)

    @cached_property
    def M(self) -> Array:
        M = (self.columns * self.extra) @ self.columns.T + self.sigma * np.eye(self.n)
        return snapshot((M + M.T) / 2)

    @property
    def diagonal(self) -> Array:
        return np.square(self.columns) @ self.extra + self.sigma

    def squares(self, u: Any) -> Array:
        inside = np.square(np.asarray(u @ self.columns)) @ self.extra
        if self.sigma == 0.0:
            return inside
        own = np.asarray(u.multiply(u).sum(axis=1)).ravel() if sparse.issparse(u) else np.square(u).sum(axis=1)
        return inside + self.sigma * own

    def plus(self, rows: Array, sigma: float) -> Dense | Parts:
        """M + rows' rows + sigma I."""
        if len(self.extra) + len(rows) >= self.n:
            return Dense(self.M).plus(rows, sigma)
        columns, extra = np.hstack([self.columns, rows.T]), np.append(self.extra, np.ones(len(rows)))
        return Parts(columns, extra, self.sigma + sigma)

    def factor(self, rank: int | None = None) -> Array:
        """L with M = L'L, the most important rows first; beyond `SQUARE` features without rows of zeros."""
        if self.sigma > 0.0 or (self.extra < 0.0).any():
            return Dense(self.M).factor(rank)
        rows = principal((self.columns * np.sqrt(self.extra)).T)[:rank]
        if rank is None and self.n > SQUARE:
            return _signed(rows)
        L = np.zeros((self.n if rank is None else rank, self.n))
        L[: len(rows)] = rows
        return _signed(L)


def principal(rows: Array) -> Array:
    """Other rows of the same L'L, orthogonal and the longest first, without those that are rounding."""
    if rows.size <= SMALL:
        _, s, Vt = np.linalg.svd(rows, full_matrices=False)
        return s[:, None] * Vt
    square, V = np.linalg.eigh(rows @ rows.T)  # less exact where rows are short, and as good for L'L
    kept = square > len(square) * EPS * square[-1:].max(initial=0.0)
    return (V[:, kept].T @ rows)[::-1]


def frobenius_distance(one: Dense | Parts, other: Dense | Parts) -> float:
    """The norm of the difference of two matrices; beyond `SQUARE` features low rank is not multiplied out.

    The difference is C diag(e) C' + s I with the columns of both. Only the triangular factor of C enters its norm.
    """
    if isinstance(one, Dense) or isinstance(other, Dense) or one.n <= SQUARE:
        return float(np.linalg.norm(one.M - other.M))
    C, e = np.hstack([one.columns, other.columns]), np.concatenate([one.extra, -other.extra])
    R: Any = np.linalg.qr(C[C.any(axis=1)], mode="r")
    small, s = (R * e) @ R.T, one.sigma - other.sigma
    return math.sqrt(max(0.0, float(np.square(small).sum() + 2.0 * s * np.trace(small) + one.n * s * s)))


def _signed(L: Array) -> Array:
    """Each row with a sign of its own, so that pictures do not flip."""
    largest = L[np.arange(len(L)), np.abs(L).argmax(axis=1)]
    return np.ascontiguousarray(L * np.where(largest < 0, -1.0, 1.0)[:, None])
