"""Figures of a tracker and of its history."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..tracker import MetricTracker
from ..watch.history import History
from .labels import mark_events
from .style import (
    COLOURS,
    PALETTE,
    Axes,
    axes_or_new,
    legend_beside,
    limits,
    marker_size,
    note,
    plain,
    scatter,
    stack_weights,
)

NAMED = 12
"""Labels in a legend."""


def _tracker(source: MetricTracker | History) -> MetricTracker:
    return source.tracker if isinstance(source, History) else source


def _history(source: MetricTracker | History) -> History:
    history = source if isinstance(source, History) else source._history
    if history is None:
        raise ValueError("the tracker has no history: History(tracker), before it learns, keeps one")
    if not len(history):
        raise ValueError("the history is empty: the tracker has learned too little since it was made")
    return history


def _names(names: Sequence[str] | None, tracker: MetricTracker) -> list[str]:
    n = tracker.n_features_in_
    names = getattr(tracker, "feature_names_in_", None) if names is None else names
    found = [f"feature {k}" for k in range(n)] if names is None else [str(name) for name in names]
    if len(found) != n:
        raise ValueError(f"names must be {n} names, one per feature, got {len(found)}")
    return found


def time_scales(source: MetricTracker | History, axes: Axes | None = None) -> Axes:
    """The weights of the experts over time, stacked by kind: dark is a short memory, light a long one.

    Lines mark what an alarm has reported: solid for a jump, dotted for a drift.
    """
    history, axes = _history(source), axes_or_new(axes, (8, 3))
    stack_weights(axes, history.records["t"], history.weights, history.lengths, history.kinds)
    return _over_time(axes, history, "Which expert is in charge")


def relevance(
    source: MetricTracker | History, names: Sequence[str] | None = None, axes: Axes | None = None, top: int = 5
) -> Axes:
    """How much each feature counts, over time: its share of the diagonal of M, for features on comparable scales.

    The ``top`` features by their mean share have a line each; the others together are a grey area.
    """
    history, axes = _history(source), axes_or_new(axes, (8, 3))
    if isinstance(top, bool) or not isinstance(top, int) or not 1 <= top <= len(COLOURS):
        raise ValueError(f"top must be an integer from 1 to {len(COLOURS)}, got {top!r}")
    labels, shares, t = _names(names, history.tracker), history.relevance, history.records["t"]
    order = np.argsort(-shares.mean(axis=0), kind="stable")
    shown = np.sort(order[:top])
    rest = 1.0 - shares[:, shown].sum(axis=1) - (shares.sum(axis=1) == 0)  # M = 0: nothing counts
    if len(shown) < len(labels):
        count = len(labels) - len(shown)
        axes.fill_between(t, rest, color="0.88", lw=0, label="the other one" if count == 1 else f"other {count}")
    for colour, feature in zip(PALETTE, shown, strict=False):
        axes.plot(t, shares[:, feature], color=colour, lw=1.8, label=plain(labels[feature]))
    axes.set(ylabel="share of the metric", ylim=(0, None))
    legend_beside(axes, None)
    return _over_time(axes, history, "Which features matter")


def embedding(source: MetricTracker | History, X: ArrayLike, labels: ArrayLike, axes: Axes | None = None) -> Axes:
    """Points in the first two dimensions of the metric, coloured by label; a bar shows the threshold's length.

    A new figure has the shape of the cloud of points. The few that lie far from all others are left
    out, and counted. Of many labels the most frequent are named, and the others are grey.
    """
    tracker = _tracker(source)
    Z, classes = tracker.transform(X), np.asarray(labels)
    if classes.shape != Z.shape[:1]:
        raise ValueError(f"labels must be of shape ({len(Z)},), one per point, got shape {classes.shape}")
    flat = np.column_stack([Z, np.zeros(len(Z))])[:, :2]  # a single feature has a second dimension of zeros
    radius = max(tracker.threshold_, 0.0)  # below 0 nothing is similar
    low, high = limits(flat)
    width, height = np.maximum(high - low, (radius, 0.0))
    width, height = 1.08 * max(width, height / 2), 1.08 * max(height, width / 4)  # what is thin has room for words
    inches = 4.5 / max(width, height)
    axes = axes_or_new(axes, (2.2 + inches * width, 1.4 + inches * height))
    named, counts = np.unique(classes, return_counts=True)
    others = len(named) - NAMED if len(named) > NAMED + 1 else 0
    if others:
        named = np.sort(named[np.argsort(-counts, kind="stable")[:NAMED]])
    scatter(axes, flat, classes, named, s=marker_size(len(flat)), alpha=0.7)
    if others:
        rest = flat[~np.isin(classes, named)]
        axes.scatter(
            rest[:, 0],
            rest[:, 1],
            color="0.8",
            lw=0,
            s=marker_size(len(flat)),
            zorder=0.9,
            label=f"{others} others",
        )
    x, y = (low + high) / 2
    box = np.array([[x - width / 2, y - height / 2], [x + width / 2, y + height / 2]])
    axes.set(xlim=box[:, 0], ylim=box[:, 1])
    axes.set(xlabel="first dimension", ylabel="second dimension", aspect="equal", anchor="C")
    axes.set_title("Points as the metric sees them", pad=26)
    legend_beside(axes, "label")
    left = x - width / 2
    axes.plot(
        [left, left + radius], [1.02, 1.02], color="black", lw=2, solid_capstyle="butt",
        transform=axes.get_xaxis_transform(), clip_on=False,
    )  # fmt: skip
    note(axes, "similar if nearer than this", left, 1.02, (0, 3))
    outside = int(((flat < box[0]) | (flat > box[1])).any(axis=1).sum())
    if outside:
        axes.set_xlabel(
            f"first dimension ({outside} far {'point is' if outside == 1 else 'points are'} not shown)"
        )
    return axes


def heat_map(
    source: MetricTracker | History, names: Sequence[str] | None = None, axes: Axes | None = None
) -> Axes:
    """The Mahalanobis matrix: orange entries make differences count together, purple ones against each other.

    With ``scale="features"`` it is shown for features in the units that the tracker has learned: in those of the
    data, a feature of small numbers would look as if it counted most.
    """
    tracker, axes = _tracker(source), axes_or_new(axes, (5, 4.2))
    M, own = tracker.get_mahalanobis_matrix(), getattr(tracker, "tracker_", tracker)  # of points with labels
    own_units = np.ndim(getattr(own, "scale_", 1.0)) > 0
    if own_units:
        M = tracker.get_metric().M
    labels, limit = _names(names, tracker), float(np.abs(M).max()) or 1.0
    image = axes.imshow(M, cmap="PuOr_r", vmin=-limit, vmax=limit, interpolation="nearest")
    units = ",\neach feature in its own unit" if own_units else ""
    axes.figure.colorbar(image, ax=axes, shrink=0.9, label=f"weight in the squared distance{units}")
    every = -(-len(labels) // 16)  # as many names as are legible
    ticks = np.arange(0, len(labels), every)
    numbered = names is None and getattr(tracker, "feature_names_in_", None) is None
    shown = [str(k) if numbered else plain(labels[k]) for k in ticks]
    axes.set_xticks(ticks, shown, fontsize=8, rotation=0 if numbered else 90)
    axes.set_yticks(ticks, shown, fontsize=8)
    axes.set(title="The metric, feature by feature")
    if numbered:
        axes.set(xlabel="feature", ylabel="feature")
    return axes


def _over_time(axes: Any, history: History, title: str) -> Axes:
    t = history.records["t"]
    axes.set(title=title, xlabel="comparisons seen")
    if len(t) > 1:
        axes.set_xlim(t[0], t[-1])
    mark_events(axes, history.events)
    return axes
