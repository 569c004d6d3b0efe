"""Algorithm 2, RICE-OCELAD for metrics, behind a scikit-learn-like door."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from ..ensemble import check_base
from ..learner import Array, Ensemble, Spawn, Weights, check_part
from ..ocelad import Ocelad, Order
from ..weights import FixedShare, OceladWeights
from . import validate
from .comid import ComidOnIntervals, Descent
from .divergences import Divergence, Frobenius
from .estimate import Metric
from .losses import Hinge, MarginLoss, PairLoss
from .notice import Announced
from .regularizers import NuclearNorm, Regularizer
from .scale import FixedScale, RunningScale, Scale
from .stack import StackedRice, rice

LEVEL = np.dtype([("length", np.float64), ("weight", np.float64), ("loss", np.float64)])


class MetricTracker(BaseEstimator):  # type: ignore[misc]
    """Track a Mahalanobis metric and its threshold from a stream of comparisons, while both change.

    The defaults are the ones recommended here; ``MetricTracker.paper()`` has the paper's. Options are read at the
    first comparison. What is learned, ``mu_``, ``levels_``, ``level_metrics_``, ``scale_`` and the matrix, always
    speaks of the estimate that would judge the next comparison.

    Parameters
    ----------
    loss
        `Hinge`, `SquaredHinge` or `Logistic`, or anything with ``value(m)`` and ``slope(m)``.
    regularizer
        `NuclearNorm`, `L1`, `SquaredFrobenius` or `Unregularized`, with its strength.
    divergence
        `Frobenius`, `VonNeumann` or `LogDet`; the last two need ``origin > 0``.
    weights
        The combiner: `FixedShare`, `OceladWeights`, `SaolWeights`, `CoinBetting`, `AdaNormalHedge`.
    step
        COMID's step on an interval is ``step / sqrt(length)``.
    base
        Length of the shortest intervals.
    start
        Whether the lowest level re-opens ``"fresh"`` or continues from its own last estimate.
    origin
        Where learners start: M0 = origin * I, or a positive semi-definite matrix, for differences in the tracker's
        unit of length.
    threshold_step
        The threshold's step, as a factor of ``step``.
    scale
        ``"auto"`` learns the unit of length from the stream, so that multiplying all features by one constant
        changes nothing; a number fixes it; None takes features as they are.
    step_cap
        No step longer than the one that would bring the comparison's linearised loss to zero.
    order
        Whether the weights see losses from ``"before"`` or ``"after"`` the learners' update.
    ensemble
        What to put in place of RICE: a function from ``spawn(length, start)`` to an ensemble. ``base`` and
        ``start`` are RICE's, and not used then.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> pairs = rng.normal(size=(400, 2, 3))
    >>> y = np.where(np.abs(pairs[:, 0, 0] - pairs[:, 1, 0]) < 1, 1, -1)  # only the first feature matters
    >>> tracker = MetricTracker().partial_fit(pairs, y)
    >>> tracker.get_mahalanobis_matrix().diagonal().argmax().item()
    0
    """

    n_features_in_: int
    _ocelad: Ocelad[Metric]
    _scale: Scale
    _loss: MarginLoss
    _history: Any = None  # a History puts itself here, to see comparisons before they are learned

    def __init__(
        self,
        *,
        loss: MarginLoss = Hinge(),
        regularizer: Regularizer = NuclearNorm(0.02),
        divergence: Divergence = Frobenius(),
        weights: Weights = FixedShare(),
        step: float = 8.0,
        base: int = 8,
        start: Literal["fresh", "continue"] = "fresh",
        origin: ArrayLike = 0.0,
        threshold_step: float = 0.1,
        scale: float | Literal["auto"] | None = "auto",
        step_cap: bool = False,
        order: Order = "before",
        ensemble: Callable[[Spawn[Metric]], Ensemble[Metric]] | None = None,
    ) -> None:
        self.loss = loss
        self.regularizer = regularizer
        self.divergence = divergence
        self.weights = weights
        self.step = step
        self.base = base
        self.start = start
        self.origin = origin
        self.threshold_step = threshold_step
        self.scale = scale
        self.step_cap = step_cap
        self.order = order
        self.ensemble = ensemble

    @classmethod
    def paper(cls, step: float = 1.0, strength: float = 0.01) -> MetricTracker:
        """The paper's setting: base 1, its own weights, features as they are."""
        return cls(
            regularizer=NuclearNorm(strength),
            weights=OceladWeights(),
            step=step,
            base=1,
            threshold_step=1.0,
            scale=None,
        )

    def _algorithm_2(self, n: int) -> Ocelad[Metric]:
        """Nothing but a choice of parts: RICE of COMID learners on (M, mu) inside Algorithm 1."""
        check_part(self.loss, MarginLoss, "loss", "a margin loss such as Hinge(), with value(m) and slope(m)")
        check_part(self.regularizer, Regularizer, "regularizer", "a regularizer such as NuclearNorm(0.02)")
        check_part(self.divergence, Divergence, "divergence", "a divergence such as Frobenius()")
        if not (self.ensemble is None or callable(self.ensemble)):
            raise ValueError(f"ensemble must be a function from spawn(length, start), got {self.ensemble!r}")
        if not isinstance(self.step_cap, bool):
            raise ValueError(f"step_cap must be True or False, got {self.step_cap!r}")
        step = validate.number(self.step, "step", positive=True)
        threshold_step = validate.number(self.threshold_step, "threshold_step", positive=False)
        descent = Descent(self.regularizer, self.divergence, threshold_step, self.step_cap)
        origin = Metric(validate.start_matrix(self.origin, n, self.divergence.definite), 1.0)
        spawn = ComidOnIntervals(origin, step, descent)  # line 5
        base = check_base(self.base)
        own = self.ensemble  # line 4
        ensemble = rice(spawn, base, self.start, self.loss) if own is None else own(spawn)
        return Ocelad(ensemble, self.weights, self.order)  # lines 6-8

    def partial_fit(self, pairs: ArrayLike, y: ArrayLike) -> MetricTracker:
        """Learn comparisons, one time step each, in order.

        Parameters
        ----------
        pairs
            Of shape (m, 2, n).
        y
            Of shape (m,), +1 for similar and -1 for different.
        """
        known = hasattr(self, "_ocelad")
        u = validate.differences(pairs, self.n_features_in_ if known else None)
        labels = validate.labels(y, len(u))
        ocelad = self._ocelad if known else self._algorithm_2(u.shape[1])
        scale = self._scale if known else self._first_scale()
        normalised, scale_after = scale.normalise(u)
        if not len(u):
            return self

        if not known:
            self._ocelad, self._loss, self.n_features_in_ = ocelad, self.loss, u.shape[1]
        before = ocelad.t

        def teach(part: slice) -> None:
            self._learn(ocelad, normalised[part], labels[part])

        try:
            self._scale = scale_after
            with Announced():
                if self._history is None:
                    teach(slice(None))
                else:
                    self._history.learn(ocelad, self._loss, normalised, labels, teach)
        except BaseException:  # Ctrl-C: what has been learned stays, and the unit is that of what has been learned
            self._scale = scale.normalise(u[: ocelad.t - before])[1]
            raise
        return self

    def _learn(self, ocelad: Ocelad[Metric], u: Array, y: list[int]) -> None:
        stack = ocelad.ensemble
        if isinstance(stack, StackedRice) and stack.compiles(ocelad):
            stack.run(ocelad, u, np.array(y, dtype=np.float64))
            return
        for difference, label in zip(u, y, strict=True):
            ocelad.update(PairLoss(difference, label, self._loss))

    def _first_scale(self) -> Scale:
        if isinstance(self.scale, str) and self.scale == "auto":
            return RunningScale()
        if self.scale is None:
            return FixedScale(1.0)
        try:
            return FixedScale(validate.number(self.scale, "scale", positive=True))
        except ValueError:
            raise ValueError(f"scale must be 'auto', None or a finite number > 0, got {self.scale!r}") from None

    def _fitted(self) -> Ocelad[Metric]:
        if not hasattr(self, "_ocelad"):
            raise NotFittedError("This MetricTracker has seen no comparison yet: call partial_fit first.")
        return self._ocelad

    def pair_distance(self, pairs: ArrayLike) -> Array:
        """The learned distance of each pair (not squared)."""
        return self._distance(self._fitted().estimate, pairs)

    def _distance(self, metric: Metric, pairs: ArrayLike) -> Array:
        u = validate.differences(pairs, self.n_features_in_)
        size = np.abs(u).max(axis=1, initial=0.0)  # squares of huge and tiny differences must not overflow
        u = u / np.where(size > 0, size, 1.0)[:, None]
        with np.errstate(over="ignore"):  # farther than any number: infinitely far
            return size / self._scale.value * np.sqrt(np.maximum(np.einsum("ij,ij->i", u @ metric.M, u), 0.0))

    def predict(self, pairs: ArrayLike) -> NDArray[np.int64]:
        """+1 for pairs that are similar now, -1 for the others."""
        metric = self._fitted().estimate
        return np.where(self._distance(metric, pairs) <= math.sqrt(metric.mu), 1, -1)

    def transform(self, X: ArrayLike) -> Array:
        """Coordinates in which the learned distance is Euclidean, the most important first."""
        metric = self._fitted().estimate
        s, V = np.linalg.eigh(metric.M)
        V = V * np.where(V[np.abs(V).argmax(axis=0), np.arange(len(s))] < 0, -1.0, 1.0)  # a sign of its own
        factor = (V * np.sqrt(np.maximum(s, 0.0)))[:, ::-1]
        return validate.points(X, self.n_features_in_) / self._scale.value @ factor

    def get_mahalanobis_matrix(self) -> Array:
        """The learned matrix, in the units of the features."""
        with np.errstate(over="ignore"):
            M = self._fitted().estimate.M / self._scale.value / self._scale.value
        if not np.isfinite(M).all():
            raise OverflowError(
                f"the matrix has no finite entries for differences of size {self._scale.value:.1g}"
            )
        return M

    @property
    def mu_(self) -> float:
        """The tracked threshold on squared distances."""
        return max(1.0, self._fitted().estimate.mu)  # an average of numbers >= 1, but for rounding

    @property
    def level_metrics_(self) -> list[Metric]:
        """What each level believes by itself, M in the units of the features."""
        ocelad, unit = self._fitted(), self._scale.value
        alone = [ocelad.ensemble.mix(p) for p in np.eye(len(ocelad.lengths))]
        return [Metric(metric.M / unit / unit, metric.mu) for metric in alone]

    @property
    def scale_(self) -> float:
        """The present unit of length."""
        self._fitted()
        return self._scale.value

    @property
    def levels_(self) -> np.ndarray[Any, np.dtype[np.void]]:
        """Which time-scale is in charge: ``length`` of memory (inf for a learner that never restarts), normalised
        ``weight`` and latest ``loss`` of each level."""
        ocelad = self._fitted()
        levels = np.zeros(len(ocelad.lengths), dtype=LEVEL)
        levels["length"], levels["weight"], levels["loss"] = ocelad.lengths, ocelad.probabilities, ocelad.losses
        levels.setflags(write=False)
        return levels
