"""Figures of the study of texts: how many there were, where they lie, and which words matter when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from textwrap import fill
from typing import Any

import numpy as np

from ..studies import TextResults
from .labels import mark_dates, place_labels
from .style import (
    COLOURS,
    PALETTE,
    Figure,
    class_looks,
    legend_beside,
    limits,
    line_styles,
    marker_size,
    new_figure,
    plain,
    scatter,
)

Events = Mapping[str, np.datetime64]
NAMES = {
    "learned": "learned (ocelad)",
    "learned_rice": "learned (RICE alone)",
    "learned_paper": "learned (paper's setting)",
    "pca": "PCA of the window",
    "lda": "LDA of all the past",
    "raw": "TF-IDF, all dimensions",
}


def texts_per_day(results: TextResults, events: Events | None = None) -> Figure:
    """How many texts of each label there were on each day, stacked; the window is shaded."""
    texts = results.texts
    days = texts.times.astype("datetime64[D]")
    calendar = np.arange(days[0], days[-1] + 2)
    figure, axes = new_figure(size=(8, 3.4))
    below = np.zeros(len(calendar) - 1)
    for number, (name, colour) in enumerate(zip(texts.classes, cycle(COLOURS), strict=False)):
        count = np.bincount((days[texts.labels == number] - days[0]).astype(int), minlength=len(below))
        axes.stairs(below + count, calendar, baseline=below, fill=True, color=colour, label=plain(name))
        below = below + count
    axes.axvspan(texts.times[results.window.start], calendar[-1], color="0.9", zorder=0, label="window")
    axes.set(title="Texts per day", ylabel="texts", xlim=(calendar[0], calendar[-1]), ylim=(0, None))
    _dates(axes)
    legend_beside(axes, "label")
    mark_dates([axes], dict(events or {}))
    return figure


def text_embeddings(results: TextResults) -> Figure:
    """The window's texts in the first two dimensions of the metric learned up to its midpoint, and of PCA."""
    figure, panels = new_figure(1, 2, size=(9.5, 4.6))
    labels, classes = results.texts.labels[results.window], range(len(results.texts.classes))
    for axes, method, name in zip(panels, ("learned", "pca"), ("Learned metric", "PCA"), strict=True):
        Z, error = results.embeddings[method][:, :2], results.loo_knn_error[method]["all"]
        for part in np.array_split(np.arange(len(Z)), 20):  # in turn, so that no label hides the others
            scatter(axes, Z[part], labels[part], classes, s=marker_size(len(Z)), alpha=0.55)
        _frame(axes, *limits(Z), margin=0.06)
        low, high = np.transpose([axes.get_xlim(), axes.get_ylim()])
        far = int(((low > Z) | (high < Z)).any(axis=1).sum())
        dimensions, k = results.study.dimensions, results.study.k
        axes.set(title=f"{name}: {k}-NN error in {dimensions}-D {error:.1%}", xticks=[], yticks=[])
        outside = f" ({far} far text{'s are' if far > 1 else ' is'} not shown)" if far else ""
        axes.set(xlabel=f"first dimension{outside}", ylabel="second dimension")
    looks = zip(results.texts.classes, class_looks(), strict=False)
    _label_legend(figure, [(name, *look) for k, (name, look) in enumerate(looks) if k in labels])
    return figure


def words(results: TextResults, moments: Mapping[str, int] | None = None, top: int = 60) -> Figure:
    """The stems that count most in the metric at some moments, where a text of that stem alone would lie.

    Each is shown by its most frequent word. Colours tell in the texts of which label it has weighed most of late;
    what was not used lately is grey.
    """
    moments = results.moments() if moments is None else moments
    rows = -(-len(moments) // 2)
    shape = (rows, 2) if len(moments) > 1 else (1, 1)
    figure, panels = new_figure(*shape, size=(4.8 * shape[1], 4.7 * rows + 0.4), squeeze=False)
    for axes in panels.flat[len(moments) :]:
        axes.set_visible(False)
    places = {look: results.maps[look].T for look in moments.values()}
    most = {look: np.argsort(-np.square(xy).sum(axis=1), kind="stable")[:top] for look, xy in places.items()}
    for axes, (name, look) in zip(panels.flat, moments.items(), strict=False):
        shown = np.vstack([places[look][most[look]], np.zeros(2)])
        _frame(axes, shown.min(axis=0), shown.max(axis=0), margin=0.12)
        axes.set(xticks=[], yticks=[])
        axes.axhline(0, color="0.9", lw=0.8, zorder=0)
        axes.axvline(0, color="0.9", lw=0.8, zorder=0)
        day = np.datetime_as_string(results.times([look])[0], unit="D")
        axes.set(title=fill(plain(f"{name}, {day}"), 44), xlabel="first dimension", ylabel="second dimension")
    classes = {k: (name, _dark(COLOURS[k % len(COLOURS)])) for k, name in enumerate(results.texts.classes)}
    classes[-1] = ("not used lately", "0.6")
    found = {int(label) for look in most for label in results.leaning[look][most[look]]}
    _label_legend(figure, [(*classes[k], "s") for k in classes if k in found])
    for axes, look in zip(panels.flat, moments.values(), strict=False):
        colours = [classes[label][1] for label in results.leaning[look][most[look]].tolist()]
        place_labels(axes, places[look][most[look]], [results.words[k] for k in most[look]], colours, size=8)
    return figure


def stem_relevance(
    results: TextResults, stems: Sequence[str] = (), events: Events | None = None, top: int = 6
) -> Figure:
    """The share of chosen stems in the metric over time, smoothed; by default of those that matter and change."""
    for stem in stems:
        if stem not in results.stems:
            raise ValueError(f"stems must be among the {len(results.stems)} kept, which {stem!r} is not")
    chosen = [results.stems.index(stem) for stem in stems] or results.telling(top).tolist()
    figure, axes = new_figure(size=(8, 3.8))
    first = len(results.looks) // 20  # a metric of a few comparisons is all noise
    times, shares = results.times()[first:], 100 * results.smooth_relevance[first:]
    for stem, (colour, dash) in zip(chosen, line_styles(PALETTE), strict=False):
        axes.plot(times, shares[:, stem], color=colour, ls=dash, lw=1.8, label=plain(results.words[stem]))
    axes.set(xlim=(times[0], times[-1]), ylim=(0, 1.08 * shares[:, chosen].max() or 1.0))
    axes.set(title="Which words matter when", ylabel="share of the metric, %")
    _dates(axes)
    legend_beside(axes, "word")
    mark_dates([axes], dict(events or {}))
    return figure


def text_errors(results: TextResults) -> Figure:
    """How well the window's texts are classified by their neighbours, and how well comparisons are foretold."""
    figure, (left, right) = new_figure(1, 2, size=(9.5, 3.4), width_ratios=(5, 4))
    methods = list(results.loo_knn_error)[::-1]
    kinds = ("all", "all texts", COLOURS[0], 0.2), ("unique", "no repetitions", COLOURS[5], -0.2)
    for kind, name, colour, shift in kinds:
        values = [100 * results.loo_knn_error[method][kind] for method in methods]
        bars = left.barh(np.arange(len(methods)) + shift, values, height=0.38, color=colour, label=name)
        left.bar_label(bars, fmt="%.1f", fontsize=8, padding=2)
    left.set_yticks(np.arange(len(methods)), [NAMES[method] for method in methods], fontsize=9)
    title = f"Leave-one-out {results.study.k}-NN error in {results.study.dimensions}-D, %"
    left.set(title=title, xlim=(0, 1.15 * left.get_xlim()[1]), xticks=[])
    left.legend(fontsize=8, frameon=False, loc="upper center", bbox_to_anchor=(0.4, -0.02), ncols=2)
    rates = results.study.rates
    if rates:
        aucs = [results.auc[f"comid_{rate:g}"] for rate in rates]
        right.plot(rates, aucs, "o-", color=COLOURS[4], label="COMID at a fixed rate")
        right.set_xscale("log", base=2)
        right.set_xticks(rates, [f"{rate:g}" for rate in rates], fontsize=8)
    right.axhline(results.auc["learned"], color=COLOURS[0], lw=2, label=NAMES["learned"])
    right.axhline(results.auc["learned_paper"], color=COLOURS[1], lw=1.5, ls="--", label=NAMES["learned_paper"])
    right.set(title="AUC before learning", xlabel="rate")
    right.legend(fontsize=8, frameon=False, loc="best")
    return figure


def _frame(axes: Any, low: Any, high: Any, margin: float) -> None:
    """All that lies between, with air around, even if it lies on a line or in a point."""
    air = margin * np.where(high > low, high - low, np.max(high - low) or 1.0)
    axes.set(xlim=(low[0] - air[0], high[0] + air[0]), ylim=(low[1] - air[1], high[1] + air[1]))


def _label_legend(figure: Any, looks: Sequence[tuple[str, Any, str]]) -> None:
    """Below all, the name, the colour and the marker of each label."""
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=colour, marker=marker, ls="", label=plain(name)) for name, colour, marker in looks
    ]
    look = {"loc": "outside lower center", "ncols": min(7, len(looks)), "frameon": False, "fontsize": 9}
    figure.legend(handles=handles, **look)


def _dark(colour: str) -> Any:
    """Dark enough to be read as a letter."""
    from matplotlib.colors import to_rgb

    return tuple(0.72 * part for part in to_rgb(colour))


def _dates(axes: Any) -> None:
    """Dates along the axis, whose limits are set: days with their months, if there are several, and in the corner
    what all of them have in common."""
    from matplotlib import dates

    tools: Any = dates
    first, last = (tools.num2date(limit) for limit in axes.get_xlim())
    one = (first.year, first.month) == (last.year, last.month)
    formats = ["%Y", "%b", "%d" if one else "%d %b", "%H:%M", "%H:%M", "%S.%f"]
    corner = ["", "%Y", "%Y-%b" if one else "%Y", "%Y-%b-%d", "%Y-%b-%d", "%Y-%b-%d %H:%M"]
    locator = axes.xaxis.get_major_locator()
    axes.xaxis.set_major_formatter(tools.ConciseDateFormatter(locator, formats=formats, offset_formats=corner))
