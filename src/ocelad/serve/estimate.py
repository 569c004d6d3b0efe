"""The metric of a stream as it was last published: scores, coordinates and neighbours, without the learner.

d(x, z) = |L (x - z)|,        P(similar) = 1 / (1 + exp(-log odds of d^2)).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ..platt import Decision
from ..protocols import Array
from .frames import Frame


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

    @classmethod
    def euclidean(cls, X: Array) -> Estimate:
        """The Euclidean distance of features that are measured in their standard deviations."""
        spread = X.std(axis=0)
        L = np.diag(np.where(spread > 0.0, 1.0 / np.where(spread > 0.0, spread, 1.0), 0.0))
        return cls(0, 0, L, Decision(1.0), ())

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

    def scores(self, u: Array) -> tuple[Array, Array, Array]:
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

    def plane(self, X: Array, reference: Array | None) -> Array:
        """The two directions in which the points X, seen in this metric, spread most: coordinates of shape (m, 2).

        They are turned, and mirrored, towards a reference of the same points, so that a picture does not flip.
        """
        Z = (X - X.mean(axis=0)) @ self.factor.T
        directions = np.linalg.eigh(Z.T @ Z)[1][:, ::-1][:, :2]
        Z = Z @ directions
        if Z.shape[1] < 2:
            Z = np.column_stack([Z, np.zeros((len(Z), 2 - Z.shape[1]))])
        if reference is not None:
            U, _, V = np.linalg.svd(reference.T @ Z)
            Z = Z @ (U @ V).T
        return Z
