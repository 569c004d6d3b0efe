"""Bregman divergences of spectral functions, the geometry in which COMID moves.

    psi(M) = sum_i phi(s_i),       B(M, N) = psi(M) - psi(N) - <link(N), M - N>,       link = grad psi,

with s the eigenvalues of M. Each divergence knows phi, its convex conjugate, phi' = ``link``, and ``unlink``, the
scalar problem of a mirror step:

    unlink(w, ridge) = argmin_{s >= 0} phi(s) - w s + ridge s^2 / 2,     conjugate(w) = max_{s >= 0} w s - phi(s).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np
from scipy.special import wrightomega, xlogy

from ..protocols import Array

FLOOR = float(np.finfo(np.float64).eps)
"""Eigenvalues below FLOOR times the largest are rounding, and the logarithm of rounding is noise."""

CONDITION = 1e-8
"""LogDet inverts M. Eigenvalues below this fraction of the largest are lifted to it, so that an inverse keeps half
of its digits."""


@runtime_checkable
class Divergence(Protocol):
    """A spectral geometry; ``definite`` says that M must stay positive definite."""

    @property
    def definite(self) -> bool: ...

    def potential(self, s: Array, /) -> Array: ...

    def conjugate(self, w: Array, /) -> Array: ...

    def link(self, s: Array, /) -> Array: ...

    def unlink(self, w: Array, /, ridge: float = 0.0) -> Array: ...

    def longest_step(self, M: Array, gradient: Array, /) -> float: ...


def spectral(matrix: Array, function: Callable[[Array], Array]) -> Array:
    """Apply a function to the eigenvalues of a symmetric matrix."""
    w, V = np.linalg.eigh(matrix)
    image = (V * function(w)) @ V.T
    return (image + image.T) / 2


def _floored(s: Array, fraction: float) -> Array:
    return np.maximum(s, max(fraction * float(s.max(initial=0.0)), float(np.finfo(np.float64).tiny)))


@dataclass(frozen=True)
class Frobenius:
    """phi(s) = s^2 / 2: the Euclidean geometry, the paper's."""

    definite: ClassVar[bool] = False

    def potential(self, s: Array) -> Array:
        return s * s / 2

    def conjugate(self, w: Array) -> Array:
        return np.maximum(w, 0.0) ** 2 / 2

    def link(self, s: Array) -> Array:
        return s

    def unlink(self, w: Array, ridge: float = 0.0) -> Array:
        s = np.maximum(w, 0.0)
        return s / (1.0 + ridge) if ridge else s

    def longest_step(self, M: Array, gradient: Array) -> float:  # noqa: ARG002
        return np.inf


@dataclass(frozen=True)
class VonNeumann:
    """phi(s) = s log s - s: matrix exponentiated gradient.

    A step multiplies: it is kept so short that no direction grows by more than a factor e at once.
    """

    definite: ClassVar[bool] = True

    def potential(self, s: Array) -> Array:
        return np.asarray(xlogy(s, s) - s)

    def conjugate(self, w: Array) -> Array:
        return np.exp(w)

    def link(self, s: Array) -> Array:
        return np.log(_floored(s, FLOOR))

    def unlink(self, w: Array, ridge: float = 0.0) -> Array:
        if ridge == 0.0:
            return np.exp(w)
        # log s + ridge s = w; with z = ridge s: z + log z = w + log ridge, and that is Wright's omega.
        return np.asarray(wrightomega(w + np.log(ridge))) / ridge

    def longest_step(self, M: Array, gradient: Array) -> float:  # noqa: ARG002
        growth = -float(np.linalg.eigvalsh(gradient)[0])
        return 1.0 / growth if growth > 0 else np.inf


@dataclass(frozen=True)
class LogDet:
    """phi(s) = -log s: Burg's, the geometry of ITML.

    The explicit step M^-1 <- M^-1 + step * gradient leaves the cone when step * u'Mu >= 1 on a violated
    dissimilar pair. It is kept so short that it at most doubles that pair's squared distance.
    """

    definite: ClassVar[bool] = True

    def potential(self, s: Array) -> Array:
        with np.errstate(divide="ignore"):
            return -np.log(s)

    def conjugate(self, w: Array) -> Array:
        inside = w < 0
        return np.where(inside, -1.0 - np.log(np.where(inside, -w, 1.0)), np.inf)

    def link(self, s: Array) -> Array:
        return -1.0 / _floored(s, CONDITION)

    def unlink(self, w: Array, ridge: float = 0.0) -> Array:
        # ridge s^2 - w s - 1 = 0; this form of the root has no cancellation for w < 0.
        return 2.0 / (np.sqrt(w * w + 4.0 * ridge) - w)

    def longest_step(self, M: Array, gradient: Array) -> float:
        root = spectral(M, lambda s: np.sqrt(np.maximum(s, 0.0)))
        growth = -float(np.linalg.eigvalsh(root @ gradient @ root)[0])
        return 0.5 / growth if growth > 0 else np.inf
