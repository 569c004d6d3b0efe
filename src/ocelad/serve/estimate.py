"""The metric of a stream as it was last published: scores, coordinates and neighbours, without the learner.

d(x, z) = |L (x - z)|,        P(similar) = 1 / (1 + exp(-log odds of d^2)).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..platt import Decision
from ..protocols import Array
from .frames import Frame

SOME = 500
"""Points from which directions are taken: a picture need not be more exact."""


@dataclass(frozen=True, eq=False)
class Estimate:
    """A metric that does not change: after t comparisons, and entry ``version`` of the log."""

    t: int
    version: int
    L: Array
    decision: Decision
    features: tuple[str, ...]
    _kept: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, frame: Frame) -> Estimate | None:
        """What the learner has published; None if it has learned nothing yet."""
        message = frame.message
        if not message["t"]:
            return None
        L = np.frombuffer(frame.blobs[0]).reshape(message["shape"])
        threshold, slope, shift, compressed = message["decision"]
        decision = Decision(threshold, slope, shift, bool(compressed))
        return cls(message["t"], message["version"], L, decision, tuple(message["features"]))

    @property
    def n(self) -> int:
        """The number of features."""
        return self.L.shape[1]

    @cached_property
    def factor(self) -> Array:
        """L without the directions that do not count."""
        return self.L[np.abs(self.L).max(axis=1) > 0.0]

    @property
    def threshold(self) -> float:
        """The distance at which the odds are even; negative if no pair is similar."""
        even = self.decision.even
        return float(np.copysign(np.sqrt(abs(even)), even))

    def scores(self, u: Array) -> tuple[Array, Array, NDArray[np.bool_]]:
        """Of each difference: its length, the probability that the two are similar, and whether they are."""
        with np.errstate(over="ignore"):
            squares = np.square(u @ self.factor.T).sum(axis=1)
            odds = self.decision.log_odds(squares)
        return np.sqrt(squares), 0.5 + 0.5 * np.tanh(0.5 * odds), squares <= self.decision.even

    def transform(self, X: Array, dimensions: int | None = None) -> Array:
        """Coordinates in which the distance is Euclidean, those that matter most first."""
        return np.asarray(X @ self.L[:dimensions].T)

    def neighbors(self, X: Array, point: Array, k: int) -> tuple[list[int], Array]:
        """The k nearest of the points X, which are the same at every call, and their distances."""
        Z = self._kept.get("Z")
        if Z is None:
            Z = self._kept["Z"] = X @ self.factor.T
        squares = np.square(Z - self.factor @ point).sum(axis=1)
        nearest = np.argpartition(squares, k - 1)[:k] if k < len(squares) else np.arange(len(squares))
        nearest = nearest[np.argsort(squares[nearest], kind="stable")]
        return nearest.tolist(), np.sqrt(squares[nearest])

    def plane(self, X: Array, reference: Array) -> Array:
        """The two directions in which the points X, seen in this metric, spread most: coordinates of shape (m, 2).

        They are turned, and mirrored, towards a reference of the same points, so that a picture does not flip.
        """
        X = X - X.mean(axis=0)
        Z = X @ (self.factor.T @ _widest(_some(X) @ self.factor.T))
        U, _, V = np.linalg.svd(reference.T @ Z)
        return Z @ (U @ V).T


def plain_plane(X: Array) -> Array:
    """The same of the Euclidean distance of features that are measured in their standard deviations."""
    spread = X.std(axis=0)
    Z = (X - X.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
    return Z @ _widest(_some(Z))


def _some(X: Array) -> Array:
    """Points spread over all of them, enough to tell in which directions they lie."""
    return X[:: -(-len(X) // SOME)]


def _widest(Z: Array) -> Array:
    """The two directions in which points spread most, in columns: by the smaller of Z'Z and ZZ'."""
    if len(Z) < Z.shape[1]:
        values, U = np.linalg.eigh(Z @ Z.T)
        directions = Z.T @ (U / np.sqrt(np.maximum(values, 1e-12 * values[-1] + 1e-300)))
    else:
        directions = np.linalg.eigh(Z.T @ Z)[1]
    directions = directions[:, ::-1][:, :2]
    missing = 2 - directions.shape[1]
    return np.column_stack([directions, np.zeros((len(directions), missing))]) if missing else directions
