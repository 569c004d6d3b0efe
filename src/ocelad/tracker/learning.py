"""How a tracker takes comparisons: all of them, or those before Ctrl-C, or, if anything is refused, none.

Input has been checked and made into differences. Whoever calls holds the tracker's lock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import validation as validate
from ..engine import Engine, Trace
from ..engine.rows import select
from ..protocols import Array
from . import calibration, inputs
from .algorithm_2 import algorithm_2, first_scale
from .nonlinear import normalise
from .preprocessor import read_preprocessor
from .units import FeatureScale

if TYPE_CHECKING:
    from .metric_tracker import MetricTracker

LEARNED = ("_engine", "_scale", "_threshold", "_given", "_metric", "n_features_in_", "feature_names_in_")
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
        raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required: pairs is empty")
    learn(new, u, labels, named=pairs)
    new._threshold = calibration.best_threshold(new.get_metric().distance(u), labels, **calibration_params)
    if tracker._history is not None:
        new._history = tracker._history.replaced(new._history)
    new.__dict__["_own_lock"] = tracker._lock
    tracker.__dict__ = new.__dict__
