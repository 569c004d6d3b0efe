"""Algorithm 2, RICE-OCELAD for metrics, behind a scikit-learn-like door."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin

from .. import validation as validate
from ..engine.learning import Comparisons, Learners, Orders, Pairs
from ..engine.stack import mixture
from ..geometry.comid import Recipe
from ..geometry.divergences import Divergence, Frobenius
from ..geometry.losses import Hinge, MarginLoss
from ..geometry.mahalanobis import Mahalanobis
from ..geometry.metric import Metric
from ..geometry.regularizers import NuclearNorm, Regularizer
from ..ocelad import Ocelad, Order
from ..protocols import Array, Ensemble, Spawn, Weights
from ..weights import FixedShare, OceladWeights
from . import calibration, inputs
from .algorithm_2 import algorithm_2, first_scale
from .levels import LevelVocabulary
from .notice import Announced
from .units import Scale
from .vocabulary import MetricVocabulary, ThresholdVocabulary
from .warm_start import Given

LEARNED = (
    *("_ocelad", "_recipe", "_loss", "_scale", "_threshold", "_given", "_metric"),
    *("n_features_in_", "feature_names_in_"),
)


class MetricTracker(LevelVocabulary, ThresholdVocabulary, MetricVocabulary, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
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
    max_rank
        How many directions a learner may keep, the most important, where more would cost too much: the time of a
        step grows with the rank. ``discarded_`` says what is lost. None keeps all.
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
    _recipe: Recipe
    _scale: Scale
    _loss: MarginLoss
    _history: Any = None  # a History puts itself here, to see comparisons before they are learned
    _given: Given | None = None
    _metric: tuple[tuple[int, int | None], Mahalanobis] | None = None  # as it was when last asked for

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
        max_rank: int | None = None,
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
        self.max_rank = max_rank
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

    @classmethod
    def cautious(cls) -> MetricTracker:
        """Long but capped steps: for features of all kinds, where differences vary much in length.

        A capped step cannot overshoot, so that the rates may be high; and who learns by small steps needs time,
        and must not begin anew too often. This is what ``ocelad track`` uses.
        """
        return cls(step=32.0, base=128, start="continue", step_cap=True)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array, tags.input_tags.two_d_array = True, False
        tags.classifier_tags.multi_class = False
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return "_ocelad" in self.__dict__ or self._given is not None

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
            Of shape (m,): a comparison's loss is multiplied by its weight. One of weight 0 is as if not given:
            neither the learners nor the clock move. Weights other than 0 and 1 leave the compiled kernels.
        classes
            Accepted, as scikit-learn's classifiers do: [-1, 1].
        """
        u = inputs.differences(pairs, type(self).__name__, self._first_form())
        comparisons = Pairs(u, validate.labels(y, u.shape[0]))
        if classes is not None:
            validate.classes(classes)
        if sample_weight is not None:
            comparisons = comparisons.weighted(validate.weights(sample_weight, u.shape[0]))
        return self._take(comparisons, named=pairs)

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
        if self._history is not None:
            new._history = self._history.anew()
        new._check_preprocessor()
        u = inputs.differences(pairs, type(self).__name__, new.preprocessor_)
        labels = validate.strict_labels(y, u.shape[0])
        if not u.shape[0]:
            raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required: pairs is empty")
        new._take(Pairs(u, labels), named=pairs)
        distances = new.get_metric().distance(u)
        new._threshold = calibration.best_threshold(distances, labels, **(calibration_params or {}))
        if self._history is not None:
            new._history = self._history.replaced(new._history)
        self.__dict__ = new.__dict__
        return self

    def partial_fit_triplets(self, triplets: Any) -> Self:
        """Learn from triplets (a, b, c) of shape (m, 3, n), "a is closer to b than to c", one time step each.

        They go to the same learners as pairs do and may alternate with them; the tracked threshold stays as it is.
        """
        a, b, c = inputs.tuples(triplets, 3, type(self).__name__, self._first_form())
        near, far = inputs.difference(a, b, "triplets"), inputs.difference(a, c, "triplets")
        return self._take(Orders(near, far), named=triplets)

    def partial_fit_quadruplets(self, quadruplets: Any) -> Self:
        """Learn from quadruplets (a, b, c, d) of shape (m, 4, n), "a is closer to b than c is to d"."""
        a, b, c, d = inputs.tuples(quadruplets, 4, type(self).__name__, self._first_form())
        near, far = inputs.difference(a, b, "quadruplets"), inputs.difference(c, d, "quadruplets")
        return self._take(Orders(near, far), named=quadruplets)

    def _first_form(self) -> Any:
        return self.preprocessor_ if "_ocelad" in self.__dict__ else inputs.preprocessor(self.preprocessor)

    def _take(self, comparisons: Comparisons, named: Any) -> Self:
        rows, known = comparisons.rows, "_ocelad" in self.__dict__
        n = rows.shape[1] // comparisons.parts
        if known and n != self.n_features_in_:
            raise ValueError(f"pairs must have {self.n_features_in_} features, as before, got {n}")
        validate.n_components(self.n_components, n)
        scale = self._scale if "_scale" in self.__dict__ else first_scale(self)
        normalised, scale_after = scale.normalise(rows)
        if known:
            learners = Learners(self._ocelad, self._loss, self._recipe)
        else:
            start = self._given.start(n, scale.normalise(rows[:1])[1].value) if self._given is not None else None
            learners, form = algorithm_2(self, n, start), inputs.preprocessor(self.preprocessor)
        if not rows.shape[0]:
            return self

        ocelad, kept = learners.ocelad, dict(self.__dict__)
        before = ocelad.t
        try:
            if not known or type(named) is not np.ndarray:
                inputs.check_names(self, named, known)
            if not known:
                self._ocelad, self._loss, self._recipe = ocelad, learners.loss, learners.recipe
                self.n_features_in_, self.preprocessor_ = n, form
            self._given, self._threshold, self._scale = None, None, scale_after
            with Announced():
                if self._history is None:
                    comparisons.teach(learners, normalised)
                else:
                    comparisons.watched(self._history, learners, normalised)
        except BaseException:  # Ctrl-C: what has been learned stays, and the unit is that of what has been learned
            if ocelad.t == before:  # nothing: it has not begun
                self.__dict__ = kept
            else:
                self._scale = scale.normalise(rows[: ocelad.t - before])[1]
            raise
        return self

    # What has been learned

    def get_metric(self) -> Mahalanobis:
        """The metric as it is now, as a function of two points (and ``squared=False``) that will not change."""
        if "_ocelad" in self.__dict__:
            rank = validate.n_components(self.n_components, self.n_features_in_)
            key = (self._ocelad.t, rank)
            if self._metric is None or self._metric[0] != key:
                form, mu = mixture(self._ocelad)
                self._metric = key, Mahalanobis(form, self._scale.value, rank, max(1.0, mu))
            return self._metric[1]
        if self._given is not None:
            return self._given.view(self.n_components)
        raise self._not_fitted()

    @property
    def components_(self) -> Array:
        """The linear map of ``transform``, of shape (n, n), or (n_components, n). Setting it starts anew from that
        metric: the next comparisons are learned by learners that all begin, and begin again, there. The threshold
        stays."""
        return self.get_metric().components

    @components_.setter
    def components_(self, L: Any) -> None:
        mu = self._given.mu if self._given is not None else self.mu_ if "_ocelad" in self.__dict__ else None
        forget: tuple[str, ...] = ("_ocelad", "_recipe", "_loss", "_metric")
        if "_ocelad" in self.__dict__:  # else it is checked when it is used first, against the data
            L = validate.components(L)
            if L.shape[1] != self.n_features_in_:
                mu, forget = None, LEARNED
        self._check_preprocessor()
        for name in forget:
            self.__dict__.pop(name, None)
        self._given = Given(copy.deepcopy(L), mu)

    def _fitted(self) -> Ocelad[Metric]:
        if "_ocelad" not in self.__dict__:
            raise self._not_fitted()
        return self._ocelad
