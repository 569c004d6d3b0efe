"""Convex sets of parameters with a penalty g, and what optimisation over them asks for.

    shrink(v, tau) = argmin_{w in Theta} tau g(w) + |w - v|^2 / 2,     support(y) = max_{w in Theta} <y, w> - g(w).

Both sets are bounded, as the theorems assume; so the support is always finite, and a duality gap always means
something. Parameters are rows of an array; a metric is the row (M, mu) of n^2 + 1 numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ..geometry import Metric
from ..protocols import Array


class Domain(Protocol):
    """A set of parameters and its penalty, for arrays of shape (..., dimension)."""

    def penalty(self, w: Array, /) -> Array: ...

    def shrink(self, v: Array, tau: float, /) -> Array: ...

    def support(self, y: Array, /) -> Array: ...


@dataclass(frozen=True)
class Ball:
    """Vectors of at most the given norm, without penalty.

    >>> Ball(2.0).shrink(np.array([3.0, 4.0]), 1.0)
    array([1.2, 1.6])
    """

    radius: float

    def __post_init__(self) -> None:
        positive(self.radius, "radius")

    @property
    def diameter(self) -> float:
        """The largest distance of two parameters."""
        return 2 * self.radius

    def penalty(self, w: Array) -> Array:
        return np.zeros(w.shape[:-1])

    def shrink(self, v: Array, tau: float) -> Array:  # noqa: ARG002
        size = np.linalg.norm(v, axis=-1, keepdims=True)
        return v * (self.radius / np.maximum(size, self.radius))

    def support(self, y: Array) -> Array:
        return self.radius * np.linalg.norm(y, axis=-1)


@dataclass(frozen=True)
class Metrics:
    """Metrics {M, mu}, eigenvalues from 0 to ``largest``, 1 <= mu <= ``threshold``, penalty strength * trace M.

    >>> Metrics(2, largest=4.0, threshold=3.0).diameter  # 4 I is far from 0, and 3 from 1
    6.0
    """

    n: int
    largest: float
    threshold: float
    strength: float = 0.0

    def __post_init__(self) -> None:
        positive(self.n, "n")
        positive(self.largest, "largest")
        if not (1 <= self.threshold < math.inf):
            raise ValueError(f"threshold must be finite and at least 1, got {self.threshold!r}")
        if not (0 <= self.strength < math.inf):
            raise ValueError(f"strength must be finite and >= 0, got {self.strength!r}")

    @property
    def diameter(self) -> float:
        return math.hypot(self.largest * math.sqrt(self.n), self.threshold - 1)

    def penalty(self, w: Array) -> Array:
        return self.strength * np.trace(self.matrix(w), axis1=-2, axis2=-1)

    def shrink(self, v: Array, tau: float) -> Array:
        s, V = np.linalg.eigh(self.matrix(v))
        s = np.clip(s - tau * self.strength, 0.0, self.largest)
        M = (V * s[..., None, :]) @ np.swapaxes(V, -1, -2)
        return self._rows(M, np.clip(v[..., -1], 1.0, self.threshold))

    def support(self, y: Array) -> Array:
        gain = np.maximum(np.linalg.eigvalsh(self.matrix(y)) - self.strength, 0.0).sum(axis=-1)
        return self.largest * gain + np.maximum(y[..., -1], self.threshold * y[..., -1])

    def matrix(self, w: Array) -> Array:
        """The (symmetric) M of each row."""
        M = w[..., :-1].reshape(*w.shape[:-1], self.n, self.n)
        return (M + np.swapaxes(M, -1, -2)) / 2

    def rows(self, metrics: Sequence[Metric]) -> Array:
        """A row per metric."""
        return np.array([np.append(metric.M, metric.mu) for metric in metrics])

    def metrics(self, rows: Array) -> list[Metric]:
        """A metric per row."""
        return [Metric(M, float(row[-1])) for M, row in zip(self.matrix(rows), rows, strict=True)]

    def _rows(self, M: Array, mu: Array) -> Array:
        return np.concatenate([M.reshape(*M.shape[:-2], -1), mu[..., None]], axis=-1)


def positive(value: float, name: str) -> None:
    if not (0 < value < math.inf):
        raise ValueError(f"{name} must be positive and finite, got {value!r}")
