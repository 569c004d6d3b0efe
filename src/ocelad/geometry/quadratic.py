"""A positive semi-definite matrix by what it does: as it is, or as a few columns, never multiplied out unasked.

u' M u,    M = sigma I + C diag(e) C'.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from ..protocols import Array, snapshot


@dataclass(frozen=True, eq=False)
class Dense:
    """The matrix itself."""

    M: Array

    def __post_init__(self) -> None:
        object.__setattr__(self, "M", snapshot(self.M))

    @property
    def n(self) -> int:
        return len(self.M)

    def squares(self, u: Any) -> Array:
        """u'Mu of each row, dense or CSR."""
        if not sparse.issparse(u):
            return np.einsum("ij,ij->i", u @ self.M, u)
        rows = [(u.indices[a:b], u.data[a:b]) for a, b in zip(u.indptr[:-1], u.indptr[1:], strict=True)]
        return np.array([x @ self.M[np.ix_(at, at)] @ x for at, x in rows])

    def factor(self, rank: int | None = None) -> Array:
        """L with M = L'L, its rows ordered by how much they matter: n of them, or only the first few."""
        s, V = np.linalg.eigh(self.M)
        return _signed((V * np.sqrt(np.maximum(s, 0.0))).T[::-1][:rank])


@dataclass(frozen=True, eq=False)
class Parts:
    """Few columns: for them one product with many rows is all that a distance takes."""

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

    def squares(self, u: Any) -> Array:
        inside = np.square(np.asarray(u @ self.columns)) @ self.extra
        if self.sigma == 0.0:
            return inside
        own = np.asarray(u.multiply(u).sum(axis=1)).ravel() if sparse.issparse(u) else np.square(u).sum(axis=1)
        return inside + self.sigma * own

    def factor(self, rank: int | None = None) -> Array:
        if self.sigma > 0.0 or (self.extra < 0.0).any():
            return Dense(self.M).factor(rank)
        U, s, _ = np.linalg.svd(self.columns * np.sqrt(self.extra), full_matrices=False)
        rows = (U * s).T[:rank]
        L = np.zeros((self.n if rank is None else rank, self.n))
        L[: len(rows)] = rows
        return _signed(L)


def _signed(L: Array) -> Array:
    """Each row with a sign of its own, so that pictures do not flip."""
    largest = L[np.arange(len(L)), np.abs(L).argmax(axis=1)]
    return np.ascontiguousarray(L * np.where(largest < 0, -1.0, 1.0)[:, None])
