"""Algorithm 2, RICE-OCELAD for metrics, behind a scikit-learn-like door."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin

from ..ensemble import Rice
from ..learner import Array, Ensemble, Spawn, Weights
from ..ocelad import Ocelad, Order
from ..weights import FixedShare, OceladWeights
from . import calibration, inputs, validate
from .algorithm_2 import algorithm_2, first_scale
from .black_boxes import take_apart
from .divergences import Divergence, Frobenius
from .estimate import Metric
from .losses import Hinge, MarginLoss, OrderLoss, PairLoss, Weighted
from .mahalanobis import Mahalanobis
from .notice import Announced
from .regularizers import NuclearNorm, Regularizer
from .scale import Scale
from .stack import StackedRice
from .vocabulary import MetricVocabulary, ThresholdVocabulary

LEVEL = np.dtype([("length", np.float64), ("weight", np.float64), ("loss", np.float64)])


LEARNED = ("_ocelad", "_black_boxes", "_loss", "_scale", "_threshold", "_given", "n_features_in_", "feature_names_in_")


class MetricTracker(ThresholdVocabulary, MetricVocabulary, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
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
    n_components
        How many dimensions to keep, the most important: ``components_`` then has so many rows, and distances are
        those in the embedding. None keeps all.
    preprocessor
        Turns indicators into points, so that pairs can be given by them: an array, a sparse matrix or a DataFrame
        whose rows they number, or a function. Read at the first comparison.

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
    _black_boxes: Rice[Metric]
    _scale: Scale
    _loss: MarginLoss
    _given: tuple[Any, float | None]

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
        n_components: int | None = None,
        preprocessor: Any = None,
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
        self.n_components = n_components
        self.preprocessor = preprocessor

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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array, tags.input_tags.two_d_array = True, False
        tags.classifier_tags.multi_class = False
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return "_ocelad" in self.__dict__ or "_given" in self.__dict__

    # Learning

    def partial_fit(
        self, pairs: Any, y: ArrayLike, sample_weight: ArrayLike | None = None, classes: ArrayLike | None = None
    ) -> Self:
        """Learn comparisons, one time step each, in order. The threshold is the tracked one from then on.

        Parameters
        ----------
        pairs
            Of shape (m, 2, n); or (m, 2) indicators, with a preprocessor; or two sparse matrices or DataFrames of
            shape (m, n), the first and the second points.
        y
            Of shape (m,), +1 for similar and -1 for different.
        sample_weight
            Of shape (m,): a comparison's loss is multiplied by its weight. Weight 0 is as if it had not been given:
            neither the learners nor the clock move. Other weights than 0 and 1 leave the compiled kernels.
        classes
            Accepted, as scikit-learn's classifiers do: [-1, 1].
        """
        u = inputs.differences(pairs, type(self).__name__, self._first_form())
        labels = validate.labels(y, u.shape[0])
        weight = None
        if classes is not None:
            validate.classes(classes)
        if sample_weight is not None:
            weight = validate.weights(sample_weight, u.shape[0])
            u, labels, weight = u[weight > 0], labels[weight > 0], weight[weight > 0]
            weight = None if (weight == 1).all() else weight
        return self._take(u, partial(self._learn_pairs, y=labels, weight=weight), named=pairs)

    def fit(self, pairs: Any, y: ArrayLike, calibration_params: dict[str, Any] | None = None) -> Self:
        """Forget everything, learn these comparisons in order, and calibrate the threshold on them.

        Parameters
        ----------
        pairs, y
            As for ``partial_fit``, but y must be +1 and -1.
        calibration_params
            What to pass on to ``calibrate_threshold``.
        """
        calibration.check(**(calibration_params or {}))
        new = copy.copy(self)  # what has been learned before is lost only when all has gone well
        for name in LEARNED:
            new.__dict__.pop(name, None)
        new._check_preprocessor()
        u = inputs.differences(pairs, type(self).__name__, new.preprocessor_)
        labels = validate.strict_labels(y, u.shape[0])
        if not u.shape[0]:
            raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required: pairs is empty")
        new._take(u, partial(new._learn_pairs, y=labels, weight=None), named=pairs)
        distances = new.get_metric().distance(u)
        new._threshold = calibration.best_threshold(distances, labels, **(calibration_params or {}))
        for name in LEARNED:
            self.__dict__.pop(name, None)
        self.__dict__.update(new.__dict__)
        return self

    def partial_fit_triplets(self, triplets: Any) -> Self:
        """Learn from triplets (a, b, c) of shape (m, 3, n), "a is closer to b than to c", one time step each.

        They go to the same learners as pairs do, and may alternate with them; the threshold is not touched.
        """
        a, b, c = inputs.tuples(triplets, 3, type(self).__name__, self._first_form())
        near, far = inputs.difference(a, b, "triplets"), inputs.difference(a, c, "triplets")
        return self._take(_joined(near, far), self._learn_orders, named=triplets)

    def partial_fit_quadruplets(self, quadruplets: Any) -> Self:
        """Learn from quadruplets (a, b, c, d) of shape (m, 4, n), "a is closer to b than c is to d"."""
        a, b, c, d = inputs.tuples(quadruplets, 4, type(self).__name__, self._first_form())
        near, far = inputs.difference(a, b, "quadruplets"), inputs.difference(c, d, "quadruplets")
        return self._take(_joined(near, far), self._learn_orders, named=quadruplets)

    def _first_form(self) -> Any:
        return self.__dict__["preprocessor_"] if "_ocelad" in self.__dict__ else inputs.preprocessor(self.preprocessor)

    def _take(self, rows: Any, learn: Callable[[Ocelad[Metric], Any], None], named: Any) -> Self:
        """Learn rows of differences, one or two in each, by ``learn``."""
        known = "_ocelad" in self.__dict__
        n = rows.shape[1] // (2 if learn == self._learn_orders else 1)
        if known and n != self.n_features_in_:
            raise ValueError(f"pairs must have {self.n_features_in_} features, as before, got {n}")
        scale = self._scale if "_scale" in self.__dict__ else first_scale(self)
        normalised, scale_after = scale.normalise(rows)
        validate.n_components(self.n_components, n)
        if not known:
            unit = scale.normalise(rows[:1])[1].value
            ocelad, black_boxes = algorithm_2(self, n, self._given_metric(n, unit))
            form = inputs.preprocessor(self.preprocessor)
        else:
            ocelad = self._ocelad
        if type(named) is not np.ndarray:
            inputs.check_names(self, named, known)
        if not rows.shape[0]:
            return self

        if not known:
            self._ocelad, self._black_boxes, self._loss = ocelad, black_boxes, self.loss
            self.n_features_in_, self.preprocessor_ = n, form
            self.__dict__.pop("_given", None)
        self.__dict__.pop("_threshold", None)
        before = ocelad.t
        try:
            self._scale = scale_after
            with Announced():
                learn(ocelad, normalised)
        except BaseException:  # Ctrl-C: what has been learned stays, and the unit is that of what has been learned
            self._scale = scale.normalise(rows[: ocelad.t - before])[1]
            raise
        return self

    def _learn_pairs(self, ocelad: Ocelad[Metric], rows: Any, y: Array, weight: Array | None) -> None:
        if weight is not None:
            take_apart(ocelad, self._black_boxes)
        for part, u in inputs.dense_blocks(rows):
            stack = ocelad.ensemble
            if isinstance(stack, StackedRice) and stack.compiles(ocelad):
                stack.run(ocelad, u, y[part])
                continue
            for k, difference in enumerate(u, part.start):
                loss = self._loss if weight is None else Weighted(self._loss, float(weight[k]))
                ocelad.update(PairLoss(difference, int(y[k]), loss))

    def _learn_orders(self, ocelad: Ocelad[Metric], rows: Any) -> None:
        take_apart(ocelad, self._black_boxes)
        for _, u in inputs.dense_blocks(rows):
            for near, far in np.sqrt(2.0) * u.reshape(len(u), 2, -1):
                ocelad.update(OrderLoss(near, far, self._loss))

    # What has been learned

    def get_metric(self) -> Mahalanobis:
        """The metric as it is now, as a function of two points (and ``squared=False``) that will not change."""
        if "_ocelad" in self.__dict__:
            M, rank = self._ocelad.estimate.M, self.n_components
            return Mahalanobis(M, self._scale.value, rank if rank is None else validate.n_components(rank, len(M)))
        if "_given" in self.__dict__:
            return Mahalanobis.embedding(self._given[0], self.n_components)
        raise self._not_fitted()

    @property
    def components_(self) -> Array:
        """The linear map of ``transform``, of shape (n, n), or (n_components, n). Setting it starts anew from that
        metric: the next comparisons are learned by learners that all begin, and begin again, there. The threshold
        stays."""
        return self.get_metric().components

    @components_.setter
    def components_(self, L: ArrayLike) -> None:
        known = "_ocelad" in self.__dict__
        mu = self._ocelad.estimate.mu if known else self._given[1] if "_given" in self.__dict__ else None
        if known:  # else it is checked when it is used first, against the data
            L = validate.components(L)
        self._check_preprocessor()
        forget = LEARNED if known and L.shape[1] != self.n_features_in_ else ("_ocelad", "_black_boxes", "_loss")
        for name in forget:
            self.__dict__.pop(name, None)
        self._given = (L, mu)

    def _given_metric(self, n: int, unit: float) -> Metric | None:
        """The metric that was set, for differences in this unit."""
        if "_given" not in self.__dict__:
            return None
        M, mu = self.get_metric().M, self._given[1]
        if len(M) != n:
            raise ValueError(f"pairs must have {len(M)} features, as components_ has, got {n}")
        return Metric(M * unit * unit, 1.0 if mu is None else mu)

    def _fitted(self) -> Ocelad[Metric]:
        if "_ocelad" not in self.__dict__:
            raise self._not_fitted()
        return self._ocelad

    def _tracked_threshold(self) -> float | None:
        if "_given" in self.__dict__:
            return None if self._given[1] is None else math.sqrt(self._given[1])
        return math.sqrt(self.mu_)

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


def _joined(near: Any, far: Any) -> Any:
    """Two differences side by side, so that both are measured in one unit: that of their root mean square."""
    both = sparse.hstack([near, far]).tocsr() if sparse.issparse(near) else np.hstack([near, far])
    return both / np.sqrt(2.0)
