"""Figures of a tracker, of its history, and of the paper's experiment. ``pip install "ocelad[plots]"``.

Each function draws into the axes it is given, or into a new figure, and returns the axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from .data import Segment
from .history import History
from .learner import Array
from .metric import MetricTracker
from .studies import Record

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#7F7F7F", "#E69F00", "#56B4E9")
"""Okabe and Ito's, told apart with any colour vision."""

MARKERS = "osD^vPX"


def pyplot() -> Any:
    """matplotlib.pyplot, or a word on how to get it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError('figures need matplotlib: pip install "ocelad[plots]"') from error
    return plt


def _axes(axes: Axes | None, size: tuple[float, float]) -> Any:
    return pyplot().subplots(figsize=size, layout="constrained")[1] if axes is None else axes


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
    """The weights of the time-scales over time, stacked: dark is a short memory, light a long one.

    Lines mark what an alarm has reported: solid for a jump, dotted for a drift.
    """
    history, axes = _history(source), _axes(axes, (8, 3))
    _stack_weights(axes, history.records["t"], history.weights, history.lengths)
    return _over_time(axes, history, "Which memory is in charge")


def relevance(
    source: MetricTracker | History, names: Sequence[str] | None = None, axes: Axes | None = None, top: int = 5
) -> Axes:
    """How much each feature counts, over time: its share of the diagonal of M, for features on comparable scales.

    The ``top`` features by their mean share have a line each; the others together are a grey area.
    """
    history, axes = _history(source), _axes(axes, (8, 3))
    if isinstance(top, bool) or not isinstance(top, int) or not 1 <= top <= len(COLOURS):
        raise ValueError(f"top must be an integer from 1 to {len(COLOURS)}, got {top!r}")
    labels, shares, t = _names(names, history.tracker), history.relevance, history.records["t"]
    order = np.argsort(-shares.mean(axis=0), kind="stable")
    shown = np.sort(order[:top])
    rest = 1.0 - shares[:, shown].sum(axis=1) - (shares.sum(axis=1) == 0)  # M = 0: nothing counts
    if len(shown) < len(labels):
        count = len(labels) - len(shown)
        axes.fill_between(t, rest, color="0.88", lw=0, label="the other one" if count == 1 else f"other {count}")
    palette = [colour for colour in COLOURS if colour != "#7F7F7F"] + ["black"]  # grey is taken
    for colour, feature in zip(palette, shown, strict=False):
        axes.plot(t, shares[:, feature], color=colour, lw=1.8, label=labels[feature])
    axes.set(ylabel="share of the metric", ylim=(0, None))
    _legend_beside(axes, None)
    return _over_time(axes, history, "Which features matter")


def embedding(source: MetricTracker | History, X: ArrayLike, labels: ArrayLike, axes: Axes | None = None) -> Axes:
    """Points in the first two dimensions of the metric, coloured by label; a bar shows the threshold's length."""
    tracker, axes = _tracker(source), _axes(axes, (5, 4.2))
    Z, classes = tracker.transform(X), np.asarray(labels)
    if classes.shape != Z.shape[:1]:
        raise ValueError(f"labels must be of shape ({len(Z)},), one per point, got shape {classes.shape}")
    flat = np.column_stack([Z, np.zeros(len(Z))])[:, :2]  # a single feature has a second dimension of zeros
    size = float(np.clip(3000 / max(len(flat), 1), 6, 36))
    for colour, marker, label in zip(cycle(COLOURS), cycle(MARKERS), np.unique(classes), strict=False):
        own = flat[classes == label]
        axes.scatter(own[:, 0], own[:, 1], s=size, alpha=0.7, lw=0, color=colour, marker=marker, label=str(label))
    axes.set(
        title="Points as the metric sees them", xlabel="first dimension", ylabel="second dimension", aspect="equal"
    )
    axes.set_anchor("C")
    _legend_beside(axes, "label")
    radius = float(np.sqrt(tracker.mu_))
    low, high = flat.min(axis=0), flat.max(axis=0)
    y = low[1] - 0.1 * max(high[1] - low[1], radius)
    axes.plot([low[0], low[0] + radius], [y, y], color="black", lw=2, solid_capstyle="butt")
    axes.annotate("  similar if nearer than this", (low[0] + radius, y), va="center", fontsize=8)
    return axes


def heat_map(
    source: MetricTracker | History, names: Sequence[str] | None = None, axes: Axes | None = None
) -> Axes:
    """The Mahalanobis matrix: orange entries make differences count together, purple ones against each other."""
    tracker, axes = _tracker(source), _axes(axes, (5, 4.2))
    M = tracker.get_mahalanobis_matrix()
    labels, limit = _names(names, tracker), float(np.abs(M).max()) or 1.0
    image = axes.imshow(M, cmap="PuOr_r", vmin=-limit, vmax=limit, interpolation="nearest")
    axes.figure.colorbar(image, ax=axes, shrink=0.9, label="weight in the squared distance")
    every = -(-len(labels) // 16)  # as many names as are legible
    ticks = np.arange(0, len(labels), every)
    plain = names is None and getattr(tracker, "feature_names_in_", None) is None
    shown = [str(k) if plain else labels[k] for k in ticks]
    axes.set_xticks(ticks, shown, fontsize=8, rotation=0 if plain else 90)
    axes.set_yticks(ticks, shown, fontsize=8)
    axes.set(title="The metric, feature by feature")
    if plain:
        axes.set(xlabel="feature", ylabel="feature")
    return axes


def _over_time(axes: Any, history: History, title: str) -> Axes:
    t = history.records["t"]
    axes.set(title=title, xlabel="comparisons seen")
    if len(t) > 1:
        axes.set_xlim(t[0], t[-1])
    for event in history.events:
        style = {"ls": "-", "lw": 1.4} if event.kind == "jump" else {"ls": ":", "lw": 1.4}
        axes.axvline(event.t, color="black", **style)
        axes.annotate(
            event.kind,
            (event.t, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(3, -3),
            textcoords="offset points",
            va="top",
            fontsize=8,
            bbox={"facecolor": "white", "alpha": 0.7, "lw": 0, "pad": 1},
        )
    return axes


def _legend_beside(axes: Any, title: str | None) -> None:
    """Beside the axes, the last on top as in a stack."""
    handles, labels = axes.get_legend_handles_labels()
    axes.legend(
        handles[::-1] if title == "memory" else handles,
        labels[::-1] if title == "memory" else labels,
        title=title,
        loc="center left",
        bbox_to_anchor=(1.0, 0.5),
        fontsize=8,
        title_fontsize=8,
        frameon=False,
        labelspacing=0.3,
        markerscale=2.0 if title == "label" else 1.0,
    )


def _stack_weights(axes: Any, t: ArrayLike, weights: Array, lengths: Array) -> None:
    colours = pyplot().get_cmap("viridis")(np.linspace(0.05, 0.97, len(lengths)))
    names = ["endless" if np.isinf(length) else f"{length:g}" for length in lengths]
    axes.stackplot(t, np.nan_to_num(weights.T), colors=colours, labels=names)
    axes.set(ylabel="weight of time-scale", ylim=(0, 1))
    _legend_beside(axes, "memory")


# The paper's experiment


def tracking(records: list[Record], levels: list[tuple[int, Any]], segments: tuple[Segment, ...]) -> Figure:
    """Error and NMI over time for every method, the changes marked, and the weight of each time-scale below."""
    figure, (top, middle, bottom) = pyplot().subplots(
        3, 1, figsize=(9, 8), sharex=True, height_ratios=(3, 3, 2.2), layout="constrained"
    )
    trials = len({record.trial for record in records})
    for colour, method in zip(cycle(COLOURS), dict.fromkeys(record.method for record in records), strict=False):
        own = [record for record in records if record.method == method]
        times = sorted({record.t for record in own})
        error = [np.mean([record.knn_error for record in own if record.t == t]) for t in times]
        nmi = [
            np.mean([record.nmi if trials == 1 else record.nmi > 0.8 for record in own if record.t == t])
            for t in times
        ]
        style = {"color": colour, "label": method, "lw": 2.2 if method == "ocelad" else 1.3}
        top.plot(times, error, **style)
        middle.plot(times, nmi, **style)
    top.set(ylabel="5-NN error", ylim=(0, None))
    middle.set(ylabel="NMI of k-means" if trials == 1 else "P(NMI > 0.8)", ylim=(0, 1.02))
    top.legend(ncols=5, loc="upper center", bbox_to_anchor=(0.5, 1.22), frameon=False, fontsize=9)
    _study_levels(bottom, levels)
    if trials > 1:
        bottom.set_ylabel("weight of time-scale\n(first trial)")
    bottom.set_xlabel("comparisons seen")
    _mark_segments((top, middle, bottom), segments)
    figure.suptitle(
        "Tracking a similarity function that drifts and jumps"
        + (f" (mean of {trials} trials)" if trials > 1 else "")
    )
    return figure


def _study_levels(axes: Axes, levels: list[tuple[int, Any]]) -> None:
    levels = [(t, rows) for t, rows in levels if rows is not None]
    if not levels:
        return
    longest = max((rows for _, rows in levels), key=len)["length"]  # levels are only ever added
    weights = np.zeros((len(levels), len(longest)))
    for line, (_, rows) in zip(weights, levels, strict=True):
        line[: len(rows)] = rows["weight"]
    _stack_weights(axes, [t for t, _ in levels], weights, longest)


def _mark_segments(panels: tuple[Axes, ...], segments: tuple[Segment, ...]) -> None:
    names = {0.0: "static", 0.02: "slow drift", 0.05: "moderate drift", 0.15: "fast drift"}
    start = 0
    for number, segment in enumerate(segments):
        jump = number > 0 and segments[number - 1].clustering != segment.clustering
        for axes in panels if number else ():
            axes.axvline(start, color="black", lw=1.4 if jump else 0.7, ls="-" if jump else ":", zorder=0.5)
        words = f"{segment.clustering}, {names.get(segment.drift, f'drift {segment.drift:g}')}"
        panels[0].annotate(
            words,
            (start + segment.steps / 2, 0.97),
            xycoords=("data", "axes fraction"),
            ha="center",
            va="top",
            fontsize=9,
        )
        start += segment.steps
    panels[0].set_xlim(0, start)
