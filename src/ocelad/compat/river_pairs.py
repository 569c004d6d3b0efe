"""Pairs of points as river's estimators take them: what `ocelad.compat.river` has of them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
from river import active, base

from ..active import Queries
from ..protocols import is_number
from ..tracker import MetricTracker
from .columns import Named, checked
from .named import named_tracker

PREFIXES = ("x:", "z:")


class PairClassifier(base.Classifier):  # type: ignore[misc]
    """Learn from pairs which points are similar, True, and which are different, False, while that changes.

    The features of the first point have names that begin with one prefix, those of the second with the other;
    `pair` writes them so. A feature with neither prefix is taken for a difference that has been formed already.

    Parameters
    ----------
    tracker
        A `MetricTracker` with the options to use; it is copied, not trained. None is ``MetricTracker()``.
    prefixes
        What the names of the first and of the second point's features begin with.
    max_features, shared_columns
        As in `MetricTransformer`.

    Examples
    --------
    >>> import random
    >>> rng, model, right = random.Random(1), PairClassifier(), 0
    >>> for t in range(600):
    ...     a, b = ({"height": rng.gauss(0, 1), "noise": rng.gauss(0, 1)} for _ in range(2))
    ...     similar = abs(a["height"] - b["height"]) < 1
    ...     right += model.predict_one(pair(a, b)) == similar
    ...     model.learn_one(pair(a, b), similar)
    >>> right > 500
    True
    """

    def __init__(
        self,
        tracker: MetricTracker | None = None,
        prefixes: tuple[str, str] = PREFIXES,
        max_features: int = 128,
        shared_columns: int = 32,
    ) -> None:
        self.tracker = tracker
        self.prefixes = _prefixes(prefixes)
        self.max_features = max_features
        self.shared_columns = shared_columns
        self.metric = named_tracker(tracker, max_features, shared_columns)

    def learn_one(self, x: Named, y: bool) -> None:
        """Learn a pair and whether its points are similar (True or 1) or different (False, 0 or -1)."""
        first, second = self._points(x)
        if not isinstance(y, (bool, int, float, np.generic)) or y not in (-1, 0, 1):
            raise ValueError(f"y must be True (similar) or False (different), got {y!r}")
        columns = self.metric.columns.after(first | second)
        self.metric.learn([(columns.vector(first), columns.vector(second))], [bool(y == 1)], columns)

    def predict_proba_one(self, x: Named, **_: Any) -> dict[bool, float]:
        """The tracker's probability that the points are similar, and that they are not: calibrated, of a pool."""
        similar = self.metric.probability(*self._points(x))
        return {False: 1.0 - similar, True: similar}

    def predict_one(self, x: Named, **_: Any) -> bool:
        """Whether the points are similar."""
        return self.predict_proba_one(x)[True] >= 0.5

    def distance_one(self, x: Named) -> float:
        """The learned distance (not squared) of the pair."""
        return self.metric.distance(*self._points(x))

    def _points(self, x: Named) -> tuple[dict[Hashable, float], dict[Hashable, float]]:
        points: tuple[dict[Hashable, float], dict[Hashable, float]] = ({}, {})
        bare = {}
        for name, value in checked(x, "x").items():
            for point, prefix in zip(points, self.prefixes, strict=True):
                if isinstance(name, str) and name.startswith(prefix):
                    point[name.removeprefix(prefix)] = value
                    break
            else:
                bare[name] = value
        for name, value in bare.items():
            points[0][name] = points[0].get(name, 0.0) + value
        return points


class PairSampler(active.base.ActiveLearningClassifier):  # type: ignore[misc]
    """Say of each pair also whether to ask for its label, within a budget (`Queries.wants`).

    As with river's own samplers, ``predict_one`` and ``predict_proba_one`` give a prediction and whether to ask.
    Call one of them once for each pair of the stream.

    Parameters
    ----------
    classifier
        The `PairClassifier` that learns the labels.
    budget
        The share of pairs to ask about.
    seed
        Of the draws.

    Examples
    --------
    >>> import random
    >>> rng, model, right, asked = random.Random(1), PairSampler(PairClassifier(), budget=0.3, seed=1), 0, 0
    >>> for t in range(1500):
    ...     a, b = ({"height": rng.gauss(0, 1), "noise": rng.gauss(0, 1)} for _ in range(2))
    ...     similar = abs(a["height"] - b["height"]) < 1
    ...     prediction, ask = model.predict_one(pair(a, b))
    ...     right += prediction == similar
    ...     if ask:
    ...         asked += 1
    ...         model.learn_one(pair(a, b), similar)
    >>> 440 <= asked <= 460, right > 1350
    (True, True)
    """

    def __init__(self, classifier: PairClassifier, budget: float = 0.25, seed: int | None = None) -> None:
        if not isinstance(classifier, PairClassifier):
            raise ValueError(f"classifier must be a PairClassifier, got {classifier!r}")
        if not (is_number(budget) and 0 < budget <= 1):
            raise ValueError(f"budget must be a share in (0, 1], got {budget!r}")
        super().__init__(classifier, seed=seed)
        self.budget = budget
        self._queries = Queries(classifier.metric.tracker, budget=budget, random_state=seed)

    def _ask_for_label(self, x: Named, y_pred: dict[bool, float]) -> bool:  # noqa: ARG002
        vector = self.classifier.metric.columns.vector
        return self._queries.wants(np.array([vector(point) for point in self.classifier._points(x)]))

    @classmethod
    def _unit_test_params(cls) -> Any:
        yield {"classifier": PairClassifier()}

    def _unit_test_skips(self) -> set[str]:
        return {"check_predict_proba_one_binary"}  # which knows of no second value


def pair(x: Named, z: Named, prefixes: tuple[str, str] = PREFIXES) -> dict[Hashable, Any]:
    """Two points as the features of one pair.

    >>> pair({"height": 1.8}, {"height": 1.6})
    {'x:height': 1.8, 'z:height': 1.6}
    """
    features: dict[Hashable, Any] = {}
    for point, argument, prefix in zip((x, z), "xz", _prefixes(prefixes), strict=True):
        if not isinstance(point, Mapping):
            raise ValueError(f"{argument} must be a dictionary of features, got {type(point).__name__}")
        for name, value in point.items():
            if not isinstance(name, str):
                raise ValueError(f"names of features must be strings to get a prefix, got {name!r}")
            features[prefix + name] = value
    return features


def _prefixes(value: Any) -> tuple[str, str]:
    if (
        not isinstance(value, tuple)
        or len(value) != 2
        or not all(isinstance(prefix, str) and prefix for prefix in value)
        or value[0].startswith(value[1])
        or value[1].startswith(value[0])
    ):
        raise ValueError(f"prefixes must be two strings that cannot be mistaken for each other, got {value!r}")
    return value[0], value[1]
