"""How a tracker takes comparisons: all of them, or those before Ctrl-C, or, if anything is refused, none.

Input has been checked and made into differences. Whoever calls holds the tracker's lock.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from .. import validation as validate
from ..dataframes import is_frame
from ..engine import Engine, Trace
from ..engine.rows import select
from ..protocols import Array
from . import calibration, inputs
from .algorithm_2 import algorithm_2, first_scale
from .first_differences import FirstDifferences
from .nonlinear import linear_part, normalise
from .preprocessor import read_preprocessor
from .units import FeatureScale

if TYPE_CHECKING:
    from .metric_tracker import MetricTracker

NOTHING = "Found array with 0 sample(s) while a minimum of 1 is required: pairs is empty, nothing to learn from"
LEARNED = (
    "_engine",
    "_scale",
    "_threshold",
    "_given",
    "_metric",
    "_first",
    "_names",
    "n_features_in_",
    "feature_names_in_",
)
"""The attributes that learning sets."""


def learn(
    tracker: MetricTracker,
    u: Any,
    y: Array | None,
    weight: Array | None = None,
    trace: Trace | None = None,
    named: Any = None,
    implied: bool = False,
) -> None:
    """Learn the differences of pairs or, without y, near and far ones side by side.

    ``named`` is what they were made from, for the names of its features; ``implied`` says that nobody was asked.
    """
    learned, parts = tracker.__dict__, 1 if y is not None else 2
    known, n = "_engine" in learned, u.shape[1] // (parts * (3 if tracker._wide else 1))
    if known and n != tracker.n_features_in_:
        raise ValueError(f"pairs must have {tracker.n_features_in_} features, as before, got {n}")
    if tracker.n_components is not None:
        validate.n_components(tracker.n_components, n)
    scale = tracker._scale if "_scale" in learned else first_scale(tracker, n)
    if known:
        engine = tracker._engine
    else:
        given = tracker._given
        if given is not None and "_scale" not in learned and isinstance(scale, FeatureScale):
            raise ValueError(
                "components_ were set before the first comparison, when scale='features' does not know how large "
                "features are: set them after some comparisons, or choose scale='auto'"
            )
        start = None if given is None else given.metric(n, normalise(scale, u[:1], parts, n)[1].value)
        engine, form = algorithm_2(tracker, n, start), read_preprocessor(tracker.preprocessor)
        features = inputs.features(tracker.features)
    rows, after, ratios = normalise(scale, u, parts, n, engine.pooled)
    if not u.shape[0]:
        return

    t, kept = engine.t, dict(learned)
    try:
        if not known or type(named) is not np.ndarray:
            inputs.check_names(tracker, named, known)
        if not known:
            tracker._engine, tracker.n_features_in_ = engine, n
            tracker.preprocessor_, tracker.features_ = form, features
            if "_scale" not in learned:
                tracker._first = FirstDifferences.of(scale, u)
        if tracker._first is not None:  # before anything is learned: a warning may be an error
            wider = u.shape[1] != n and isinstance(u, np.ndarray)
            differences = linear_part(u.reshape(u.shape[0] * parts, -1), n) if wider else u
            names = getattr(tracker, "feature_names_in_", tracker._names)
            tracker._first = tracker._first.after(differences, names)
        learned.update(_given=None, _threshold=None, _scale=after)
        if tracker._history is None and trace is None:
            engine.run(rows, y, weight, None, implied)
        else:
            _run_traced(tracker._history, engine, rows, y, weight, trace, np.array(ratios), implied)
    except BaseException:  # Ctrl-C: what has been learned stays, and the unit is that of what has been learned
        if engine.t == t:  # nothing: it has not begun
            tracker.__dict__ = kept
        else:
            tracker._scale = normalise(scale, u[: engine.t - t], parts, n)[1]
        raise


def look_at(tracker: MetricTracker, X: Any, refresh: bool) -> None:
    """Take landmarks from points, if there are to be any; nothing else is learned from them."""
    features = tracker._features()
    rows = inputs.points(X, type(tracker).__name__, tracker._current_preprocessor(), features)
    with tracker._lock:
        known, name = "_engine" in tracker.__dict__, inputs.name_of_points(features)
        if not known and tracker._given is not None:
            raise ValueError("components_ were set: observe points after the first comparison that follows")
        if rows.shape[1] == 0:
            raise ValueError(f"{name} must be points with one feature or more, got shape {rows.shape}")
        begun = tracker if known else copy.copy(tracker)._begin(rows.shape[1])
        rows = validate.points(rows, begun.n_features_in_, name)
        if begun._wide and sparse.issparse(rows):
            raise ValueError("X: nonlinear=True needs dense points, got sparse ones")
        if refresh and begun._wide and len(rows) < 2:
            raise ValueError(f"X must be two points or more to take landmarks from, got {len(rows)}")
        if is_frame(X) and features is None:
            inputs.check_names(begun, [X], known)
        begun._engine.observe(rows, refresh)
        begun._metric = None
        if not known:
            begun._first = FirstDifferences.of(begun._scale, rows)
        tracker.__dict__.update({k: v for k, v in begun.__dict__.items() if k != "_own_lock"})


def _run_traced(
    history: Any,
    engine: Engine,
    rows: Any,
    y: Array | None,
    weight: Any,
    trace: Trace | None,
    ratios: Array,
    implied: bool,
) -> None:
    """Run with a trace, whose predictions are in the unit of length from before each comparison; a history reads
    it in pieces."""
    pieces = [slice(0, rows.shape[0])] if history is None else history.pieces(engine, rows.shape[0])
    for piece in pieces:
        part = Trace(piece.stop - piece.start) if trace is None else trace
        u, labels, weights = select(piece, rows, y, weight)
        engine.run(u, labels, weights, part, implied)
        if labels is not None:
            part.rescale(ratios[piece], labels, None if engine.pooled else engine.loss, weights)
        if history is not None:
            history.read(engine, part, labels, implied)


def relearn(tracker: MetricTracker, pairs: Any, y: Any, calibration_params: dict[str, Any]) -> None:
    """Forget everything, learn and calibrate; if anything fails, what was learned before is still there."""
    new = object.__new__(type(tracker))
    forgotten = (*LEARNED, "_own_lock")
    new.__dict__.update({k: v for k, v in tracker.__dict__.items() if k not in forgotten})
    if tracker._history is not None:
        new._history = tracker._history.anew()
    new._check_preprocessor()
    u = new._differences(pairs)
    labels = validate.strict_labels(y, u.shape[0])
    if not u.shape[0]:
        raise ValueError(NOTHING)
    learn(new, u, labels, named=pairs)
    new._threshold = calibration.best_threshold(new.get_metric().distance(u), labels, **calibration_params)
    if tracker._history is not None:
        new._history = tracker._history.replaced(new._history)
    new.__dict__["_own_lock"] = tracker._lock
    tracker.__dict__ = new.__dict__
