"""Algorithm 2, RICE-OCELAD for metrics, with scikit-learn's interface."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin

from .. import validation as validate
from ..engine import Engine, Trace
from ..geometry.divergences import Divergence, Frobenius
from ..geometry.losses import Hinge, MarginLoss
from ..geometry.mahalanobis import Mahalanobis, in_units
from ..geometry.metric import Metric
from ..geometry.regularizers import NuclearNorm, Regularizer
from ..geometry.steps import Step
from ..grouped_share import GroupedShare
from ..intervals import Intervals
from ..platt import Decision
from ..protocols import Array, Ensemble, Spawn, Weights
from ..weights import FixedShare, OceladWeights
from . import calibration, inputs
from .algorithm_2 import algorithm_2, first_scale
from .first_differences import FirstDifferences
from .learning import LEARNED, learn, look_at, relearn
from .levels import LevelVocabulary
from .lock import Locked, locked
from .nonlinear import NonlinearMetric, linear_part, no_matrix, with_linear_part
from .point_inputs import PointInputs
from .preprocessor import read_preprocessor
from .units import Scale, into_units, norms, scaled
from .vocabulary import ThresholdVocabulary, probabilities
from .warm_start import WarmStart

FEW = 32
"""Up to this many pairs are judged expert by expert; for more, the mixture is formed first."""


class MetricTracker(
    PointInputs,
    LevelVocabulary,
    ThresholdVocabulary,
    Locked,
    ClassifierMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """Track a Mahalanobis metric and its threshold from a stream of comparisons, while both change.

    The defaults are the ones recommended here; ``MetricTracker.paper()`` has the paper's. Options are read at the
    first comparison. What is learned, ``mu_``, ``experts_``, ``expert_metrics_``, ``scale_`` and the matrix,
    describes the estimate that will judge the next comparison.

    Parameters
    ----------
    loss
        `Hinge`, `SquaredHinge` or `Logistic`, or anything with ``value(m)`` and ``slope(m)``.
    regularizer
        `NuclearNorm`, `L1`, `SquaredFrobenius` or `Unregularized`, with its strength.
    divergence
        `Frobenius`, `VonNeumann` or `LogDet`; the last two need ``origin > 0``.
    weights
        The combiner. `GroupedShare` combines a pool of experts that speak log odds: RICE's levels, calibrated, the
        Euclidean distance, and experts that replay recent comparisons. `FixedShare`, `OceladWeights`,
        `SaolWeights`, `CoinBetting` and `AdaNormalHedge` combine RICE's levels alone.
    memory
        The longest window of comparisons that a pool replays, 32 or more; None replays none. It takes memory for
        as many differences. Beyond 2048 features a pool has the calibrated levels alone.
    step
        COMID's step on an interval is ``step / sqrt(length)``; a `Step` says more: the threshold's step, whether
        steps are capped, and how many directions a learner keeps.
    base
        Length of the shortest intervals; `Intervals` says more: where the lowest level re-opens.
    origin
        Where learners start: M0 = origin * I, or a positive semi-definite matrix, for differences in the tracker's
        unit of length.
    scale
        ``"auto"`` learns the unit of length from the stream, so that multiplying all features by one constant
        changes nothing; ``"features"`` divides each feature by its usual size first, learned from the stream, too,
        so that multiplying each by its own constant changes nothing (dense points only); a number fixes the unit;
        None takes features as they are. With ``"auto"``, a `FeatureScaleWarning` names features that drown
        the others.
    ensemble
        What to put in place of RICE: a function from ``spawn(length, start)`` to an ensemble. ``base`` is RICE's,
        and not used then.
    n_components
        How many dimensions to keep, the most important: ``components_`` then has that many rows, and distances are
        those in the embedding. None keeps all.
    preprocessor
        Turns indicators into points, so that pairs can be given by them: an array, a sparse matrix or a DataFrame
        whose rows they number, or a function. Read at the first comparison.
    features
        What stands between points and learner, also those of formed pairs: a fitted transformer of scikit-learn's,
        or any function of points that gives a row each, such as an encoder of texts. ``n_features_in_`` counts
        what it gives. Read at the first comparison; `sklearn.base.clone` keeps it as it is.
    nonlinear
        Whether the pool has experts on feature maps, too, beside those on the points themselves: then distances
        may bend. Landmarks are taken from the points of the first hundred comparisons, which are learned again
        once they are known. ``transform`` gives coordinates; there is no matrix.

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
    _engine: Engine
    _scale: Scale
    _history: Any = None  # a History sets this, to read the traces
    _given: WarmStart | None = None
    _first: FirstDifferences | None = None  # as long as they are too few to say how large features are
    _names: Any = None  # of features, where they are known to whoever forms the pairs
    _metric: tuple[tuple[int, int | None], Mahalanobis] | None = None  # as it was when last asked for

    def __init__(
        self,
        *,
        loss: MarginLoss = Hinge(),
        regularizer: Regularizer = NuclearNorm(0.02),
        divergence: Divergence = Frobenius(),
        weights: Weights = GroupedShare(),
        memory: int | None = 2048,
        step: float | Step = 8.0,
        base: int | Intervals = 8,
        origin: ArrayLike = 0.0,
        scale: float | Literal["auto", "features"] | None = "auto",
        ensemble: Callable[[Spawn[Metric]], Ensemble[Metric]] | None = None,
        n_components: int | None = None,
        preprocessor: Any = None,
        features: Any = None,
        nonlinear: bool = False,
    ) -> None:
        self.loss = loss
        self.regularizer = regularizer
        self.divergence = divergence
        self.weights = weights
        self.memory = memory
        self.step = step
        self.base = base
        self.origin = origin
        self.scale = scale
        self.ensemble = ensemble
        self.n_components = n_components
        self.preprocessor = preprocessor
        self.features = features
        self.nonlinear = nonlinear

    @classmethod
    def rice(cls) -> MetricTracker:
        """RICE alone, combined by fixed share on the losses of its learners: what the paper's theory speaks of."""
        return cls(weights=FixedShare(), memory=None)

    @classmethod
    def paper(cls, step: float = 1.0, strength: float = 0.01) -> MetricTracker:
        """The paper's setting: base 1, its own weights, features as they are."""
        parts: dict[str, Any] = {"regularizer": NuclearNorm(strength), "weights": OceladWeights()}
        return cls(**parts, memory=None, step=Step(step, threshold=1.0), base=1, scale=None)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array, tags.input_tags.two_d_array = True, False
        tags.classifier_tags.multi_class = False
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return "_engine" in self.__dict__ or self._given is not None

    def __sklearn_clone__(self) -> Self:
        """The same options. ``features`` stays what it is: a clone of a transformer would have to be fitted, and
        an encoder may be large."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__ | {"features": None})
        new = super(MetricTracker, other).__sklearn_clone__()
        if "features" in self._get_param_names():
            new.features = self.features
        return new

    def __copy__(self) -> Self:
        """An independent copy, without the history."""
        other = object.__new__(type(self))
        with self._lock:
            other.__dict__.update(self.__dict__)
            for name in ("_own_lock", "_history"):
                other.__dict__.pop(name, None)
            if "_engine" in self.__dict__:
                other._engine = copy.copy(self._engine)
        return other

    @locked
    def __getstate__(self) -> dict[str, Any]:
        """Of one moment: it is pickled, or copied, when another thread may learn again."""
        state = super().__getstate__()
        state.pop("_first", None)  # a hundred differences take more than all that is learned from them
        if "_engine" in state:
            state["_engine"] = copy.copy(self._engine)
        if self._history is not None:
            state["_history"] = history = copy.copy(self._history)
            if history._engine is self.__dict__.get("_engine"):
                history._engine = state.get("_engine")
        return state

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
            Of shape (m,), +1 or True for similar and -1 or False for different; 0 for -1 is taken with a warning.
        sample_weight
            Of shape (m,): a comparison's loss is multiplied by its weight. One of weight 0 is skipped:
            neither the learners nor the clock move.
        classes
            Accepted, as scikit-learn's classifiers do: [-1, 1].
        """
        if classes is not None:
            validate.classes(classes)
        return self._fit_pairs(pairs, y, sample_weight)

    def partial_fit_implied(self, pairs: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn pairs that nobody was asked about: their answers follow from others (`Closure.derived`).

        They are learned as by ``partial_fit``, a time step each. But they are chosen, not met with: how far the
        mixture of a pool is to be believed is learned from comparisons alone, and a `History` does not judge them,
        nor does its alarm.

        Parameters
        ----------
        pairs, y, sample_weight
            As for ``partial_fit``.
        """
        return self._fit_pairs(pairs, y, sample_weight, implied=True)

    def _fit_pairs(
        self,
        pairs: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        implied: bool = False,
        made: bool = False,
    ) -> Self:
        u, labels = self._pairs(pairs, y, made)
        weight = None
        if sample_weight is not None:
            weight = validate.weights(sample_weight, u.shape[0])
            kept = weight > 0
            if not kept.all():
                u, labels, weight = u[kept], labels[kept], weight[kept]
        return self._learn(u, labels, weight, named=pairs, implied=implied)

    def fit(self, pairs: Any, y: ArrayLike, calibration_params: dict[str, Any] | None = None) -> Self:
        """Forget everything, learn these comparisons in order, and calibrate the threshold on them.

        Parameters
        ----------
        pairs, y
            As for ``partial_fit``.
        calibration_params
            What to pass on to ``calibrate_threshold``: ``"strategy"``, ``"min_rate"``, ``"beta"``.
        """
        params = calibration.checked_params(calibration_params)
        with self._lock:
            relearn(self, pairs, y, params)
        return self

    def partial_fit_triplets(self, triplets: Any) -> Self:
        """Learn from triplets (a, b, c) of shape (m, 3, n), "a is closer to b than to c", one time step each.

        They go to the same learners as pairs do and may alternate with them; the tracked threshold stays as it is.
        """
        a, b, c = self._tuples(triplets, 3)
        near, far = self._row(a, b, "triplets"), self._row(a, c, "triplets")
        return self._learn(inputs.side_by_side(near, far), None, named=triplets)

    def partial_fit_quadruplets(self, quadruplets: Any) -> Self:
        """Learn from quadruplets (a, b, c, d) of shape (m, 4, n), "a is closer to b than c is to d"."""
        a, b, c, d = self._tuples(quadruplets, 4)
        near, far = self._row(a, b, "quadruplets"), self._row(c, d, "quadruplets")
        return self._learn(inputs.side_by_side(near, far), None, named=quadruplets)

    def _begin(self, n: int) -> Self:
        """Set up all that the first comparison of n features needs, ahead of it."""
        self._engine, self.n_features_in_ = algorithm_2(self, n), n
        self._scale, self.preprocessor_ = first_scale(self, n), read_preprocessor(self.preprocessor)
        self.features_ = inputs.features(self.features)
        return self

    @locked
    def _learn(
        self,
        u: Any,
        y: Array | None,
        weight: Array | None = None,
        trace: Trace | None = None,
        named: Any = None,
        implied: bool = False,
    ) -> Self:
        """Learn differences that have been checked (`learn`)."""
        learn(self, u, y, weight, trace, named, implied)
        return self

    def observe(self, X: Any, refresh: bool = False) -> Self:
        """Look at points that nobody has compared, in any form that ``transform`` takes.

        With ``nonlinear=True`` landmarks are taken from them, too, so that those experts can begin with the first
        comparison, if there are 200 points or more. Nothing else is learned from points without comparisons.

        Parameters
        ----------
        X
            Points of shape (m, n).
        refresh
            Take new landmarks even if there are some: for streams whose points have moved away from those that the
            first landmarks were taken from. The experts on feature maps then begin again.
        """
        look_at(self, X, refresh)
        return self

    # What has been learned

    @locked
    def get_metric(self) -> Mahalanobis:
        """The metric as it is now, as a function of two points (and ``squared=False``) that will not change."""
        if "_engine" in self.__dict__:
            rank = validate.n_components(self.n_components, self.n_features_in_)
            key = (self._engine.t, rank)
            if self._metric is None or self._metric[0] != key:
                self._metric = key, self._current_metric(rank)
            return self._metric[1]
        if self._given is not None:
            return self._given.view(self.n_components)
        raise self._not_fitted()

    def _current_metric(self, rank: int | None) -> Any:
        engine, unit = self._engine, self._scale.value
        if engine.nonlinear is not None:
            return NonlinearMetric.of(engine, unit, rank)
        return Mahalanobis(engine.mixture()[0], unit, rank, engine.decision())

    @locked
    def _measure(self, u: Any) -> tuple[Array, Decision | None]:
        """Distances, and what their squares say; of a few pairs without forming the metric."""
        if "_engine" in self.__dict__ and self.n_components is None and u.shape[0] <= FEW:
            n = self.n_features_in_
            validate.same_width(u, n, "pairs", 3 if self._wide else 1)
            with np.errstate(over="ignore"):
                v = in_units(linear_part(u, n), self._scale.value)
            if inputs.moderate(v):
                judged = self._engine.judge(with_linear_part(u, v, n))
                return np.sqrt(np.maximum(judged.mixture[0], 0.0)), self._engine.decision(judged)
        return super()._measure(u)

    @locked
    def mixture_proba(self, pairs: Any) -> Array:
        """The probabilities of "different" and "similar" by all experts of the pool, of shape (m, 2).

        It is the mixture of their probabilities, calibrated: no function of one distance, and better than
        ``predict_proba``, which is one, where experts disagree. Points farther apart than experts have been shown,
        ten units of length that is learned, count as that far. Only a pool has it (`GroupedShare`).
        """
        return probabilities(self._fitted().mixture_odds(self._rows(pairs)))

    @locked
    def expert_odds(self, pairs: Any) -> Array:
        """Log odds of "similar" by each of ``experts_``, of shape (m, experts); of RICE alone, margins."""
        judged = self._fitted().judge(self._rows(pairs))
        return judged.threshold - judged.squared_distance

    def _rows(self, pairs: Any) -> Any:
        """Differences in the tracker's unit of length."""
        self._form()
        rows, n = self._differences(pairs), self.n_features_in_
        validate.same_width(rows, n, "pairs", 3 if self._wide else 1)
        u, unit, longest = linear_part(rows, n), self._scale.value, self._scale.longest
        if isinstance(unit, np.ndarray):
            u, unit = in_units(u, unit), 1.0
        return with_linear_part(rows, scaled(u, [into_units(norm, unit, longest) for norm in norms(u)]), n)

    @locked
    def _judged(self, pairs: ArrayLike) -> tuple[Array, float, Decision]:
        return super()._judged(pairs)

    @locked
    def _judge(self, u: Any) -> tuple[Array, float, Array]:
        return super()._judge(u)

    @property
    def components_(self) -> Array:
        """The linear map of ``transform``, of shape (n, n), or (n_components, n); beyond 2048 features it has as
        many rows as the metric has dimensions. Setting it starts anew from that metric: the next comparisons are
        learned by learners that all begin, and begin again, there. The threshold stays."""
        return self.get_metric().components

    @components_.setter
    def components_(self, L: Any) -> None:
        with self._lock:
            if self._wide:
                raise no_matrix("setting components_")
            mu = None if self._given is None else self._given.mu
            forget: tuple[str, ...] = ("_engine", "_metric")
            if "_engine" in self.__dict__:  # else it is checked when it is used first, against the data
                L, mu = validate.components(L), self._engine.decision().even
                if L.shape[1] != self.n_features_in_:
                    mu, forget = None, LEARNED
            self._check_preprocessor()
            for name in forget:
                self.__dict__.pop(name, None)
            self._given = WarmStart(copy.deepcopy(L), mu)

    def _fitted(self) -> Engine:
        if "_engine" not in self.__dict__:
            raise self._not_fitted()
        return self._engine
