"""Regularizers r(M), each carrying its strength lambda, and the minimisation that ends a mirror step:

    solve(W, step) = argmin_{M >= 0} psi(M) - <W, M> + step * lambda * r(M),      W = link(M_t) - step * gradient.

The spectral ones act on the eigenvalues of W, by ``shrink``. The elementwise L1 norm does not share eigenvectors
with W; its problem is solved through the dual, up to a certified gap.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np

from ..protocols import Array, is_number
from .divergences import Divergence, spectral


@runtime_checkable
class Regularizer(Protocol):
    """A penalty on the metric."""

    @property
    def strength(self) -> float: ...

    def value(self, M: Array, /) -> float: ...

    def solve(self, divergence: Divergence, W: Array, step: float, /) -> Array: ...


def _check_strength(strength: float) -> None:
    if not (is_number(strength) and strength >= 0 and math.isfinite(strength)):
        raise ValueError(f"strength must be >= 0 and finite, got {strength!r}")


@dataclass(frozen=True)
class Unregularized:
    """r(M) = 0."""

    strength: float = field(default=0.0, init=False)

    def value(self, M: Array) -> float:  # noqa: ARG002
        return 0.0

    def solve(self, divergence: Divergence, W: Array, step: float) -> Array:  # noqa: ARG002
        return spectral(W, divergence.unlink)

    def shrink(self, divergence: Divergence, w: Array, step: float) -> Array:  # noqa: ARG002
        return divergence.unlink(w)


@dataclass(frozen=True)
class NuclearNorm:
    """r(M) = trace M on the cone: eigenvalues shrink, and a low-dimensional metric remains."""

    strength: float = 0.02

    def __post_init__(self) -> None:
        _check_strength(self.strength)

    def value(self, M: Array) -> float:
        return float(np.abs(np.linalg.eigvalsh(M)).sum())

    def solve(self, divergence: Divergence, W: Array, step: float) -> Array:
        return spectral(W, lambda w: self.shrink(divergence, w, step))

    def shrink(self, divergence: Divergence, w: Array, step: float) -> Array:
        return divergence.unlink(w - step * self.strength)


@dataclass(frozen=True)
class SquaredFrobenius:
    """r(M) = |M|_F^2 / 2."""

    strength: float = 0.02

    def __post_init__(self) -> None:
        _check_strength(self.strength)

    def value(self, M: Array) -> float:
        return float((M * M).sum()) / 2

    def solve(self, divergence: Divergence, W: Array, step: float) -> Array:
        return spectral(W, lambda w: self.shrink(divergence, w, step))

    def shrink(self, divergence: Divergence, w: Array, step: float) -> Array:
        return divergence.unlink(w, ridge=step * self.strength)


@dataclass(frozen=True)
class L1:
    """r(M) = sum_ij |M_ij|: few entries remain.

    With tau = step * strength the problem has the dual

        min_{|Z_ij| <= tau} psi*(W - Z),     M = unlink(W - Z),     gap = tau |M|_1 - <Z, M> >= 0,

    in which soft-thresholding (the box) and the cone (unlink) are both exact. Projected gradient steps of
    Barzilai-Borwein length run until the gap is below ``tolerance`` * |unlink(W)|_F^2, or for at most
    ``iterations`` steps. Under the Frobenius divergence |M - M*|_F^2 <= 2 * gap.
    """

    strength: float = 0.02
    tolerance: float = 1e-12
    iterations: int = 1000

    def __post_init__(self) -> None:
        _check_strength(self.strength)
        if not (is_number(self.tolerance) and self.tolerance > 0):
            raise ValueError(f"tolerance must be > 0, got {self.tolerance!r}")
        if not (is_number(self.iterations) and self.iterations >= 1):
            raise ValueError(f"iterations must be >= 1, got {self.iterations!r}")

    def value(self, M: Array) -> float:
        return float(np.abs(M).sum())

    def solve(self, divergence: Divergence, W: Array, step: float) -> Array:
        tau = step * self.strength
        Z = np.zeros_like(W)
        value, M = _dual(divergence, W)
        recent = [value]  # the line search is non-monotone: it looks back over a few values
        enough = self.tolerance * float((M * M).sum())
        length = tau / max(float(np.abs(M).max()), np.finfo(np.float64).tiny)
        for _ in range(self.iterations):
            if tau * np.abs(M).sum() - (Z * M).sum() <= enough:
                break
            direction = np.clip(Z + length * M, -tau, tau) - Z  # the dual's gradient is -M
            slope, fraction = -(M * direction).sum(), 1.0
            new_value, new_M = _dual(divergence, W - Z - direction)
            while not new_value <= max(recent) + 1e-4 * fraction * slope and fraction > 1e-10:
                fraction /= 2
                new_value, new_M = _dual(divergence, W - Z - fraction * direction)
            if not math.isfinite(new_value):
                break  # no way on inside the domain
            moved, turned = fraction * direction, M - new_M
            curvature = (moved * turned).sum()
            length = float((moved * moved).sum() / curvature) if curvature > 0 else 2.0 * length
            Z, M = Z + moved, new_M
            recent = [*recent[-9:], new_value]
        return M


def _dual(divergence: Divergence, W: Array) -> tuple[float, Array]:
    """psi*(W) and its gradient, a metric."""
    w, V = np.linalg.eigh(W)
    value = float(divergence.conjugate(w).sum())
    if not math.isfinite(value):
        return value, W  # outside the domain; the caller steps back
    M = (V * divergence.unlink(w)) @ V.T
    return value, (M + M.T) / 2
