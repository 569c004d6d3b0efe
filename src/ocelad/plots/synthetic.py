"""The figures of the paper's synthetic experiment: the data, and how methods track it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..data import DriftingClusters
from ..protocols import Array
from ..studies import Results, Study
from .style import Figure, limits, line_styles, marker_size, new_figure, note, scatter, stack_weights

SHARED = 20
"""The least number of trials of which a share has a band."""

DRIFTS = {0.0: "static", 0.02: "slow drift", 0.05: "moderate drift", 0.15: "fast drift"}


def experiment(results: Results) -> Figure:
    """In the paper's layout: how fast the stream changes, the mean 5-NN error, and P(NMI > 0.8).

    Bands are two standard errors to either side, for P(NMI > 0.8) as Wilson has them; of more than twelve methods
    they would hide one another, and of a share of fewer than twenty trials they would fill the panel. Of one trial
    NMI itself is shown.
    """
    figure, (top, *panels) = new_figure(3, 1, size=(9, 8.5), sharex=True, height_ratios=(1, 3, 3))
    _rate_of_change(top, results.study)
    _measures(panels, results, bands=len(results.study.methods) <= 12)
    panels[1].set(xlabel="time step")
    panels[1].legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=4, frameon=False, fontsize=9)
    figure.suptitle("Tracking of a changing metric" + _trials(results))
    return figure


def tracking(results: Results, levels: Sequence[tuple[int, Any]]) -> Figure:
    """Error and NMI over time for every method, the changes marked, and the weight of each time-scale below.

    ``levels`` are those that a `Trial` keeps.
    """
    figure, panels = new_figure(3, 1, size=(9, 8), sharex=True, height_ratios=(3, 3, 2.2))
    study, (top, _, bottom) = results.study, panels
    _measures(panels, results)
    top.legend(ncols=5, loc="upper center", bbox_to_anchor=(0.5, 1.22), frameon=False, fontsize=9)
    if levels:
        longest = max((rows for _, rows in levels), key=len)  # experts are only ever added
        weights = np.zeros((len(levels), len(longest)))
        for line, (_, rows) in zip(weights, levels, strict=True):
            line[: len(rows)] = rows["weight"]
        kinds = longest["kind"].tolist()
        stack_weights(bottom, [t for t, _ in levels], weights, longest["length"], kinds)
        if len(results.trials) > 1:
            bottom.set_ylabel("weight of expert\n(first trial)")
    bottom.set(xlabel="comparisons seen", xlim=(0, study.steps))
    for start, segment in zip(study.starts, study.segments, strict=True):
        words = f"{segment.clustering}, {DRIFTS.get(segment.drift, f'drift {segment.drift:g}')}"
        note(top, words, start + segment.steps / 2, 0.97, ha="center", va="top", fontsize=9)
    figure.suptitle("Tracking a similarity function that drifts and jumps" + _trials(results))
    return figure


def _trials(results: Results) -> str:
    return f" (mean of {len(results.trials)} trials)" if len(results.trials) > 1 else " (one trial)"


def _measures(panels: Sequence[Any], results: Results, bands: bool = False) -> None:
    """A line per method: the error into the first panel, NMI into the second; and changes in all of them."""
    study, one = results.study, len(results.trials) == 1
    times = np.array(study.times) + 1
    for k, (name, (colour, dash)) in enumerate(zip(study.methods, line_styles(), strict=False)):
        look = {"color": colour, "ls": dash, "label": name, "lw": 1.3 if k else 2.2, "zorder": 2 if k else 3}
        for panel, values, band, least in (
            (panels[0], results.error[:, k], _around_mean, 2),
            (panels[1], results.nmi[:, k] if one else results.good[:, k], _around_share, SHARED),
        ):
            panel.plot(times, values.mean(axis=0), **look)
            if bands and len(results.trials) >= least:
                panel.fill_between(times, *band(values), color=colour, alpha=0.2, lw=0)
    panels[0].set(ylabel="5-NN error", ylim=(0, None))
    panels[1].set(ylabel="NMI of k-means" if one else "P(NMI > 0.8)", ylim=(-0.02, 1.02))
    for number, start in enumerate(study.starts[1:], 1):
        jump = number in study.jumps
        for panel in panels:
            panel.axvline(start, color="black", lw=1.3 if jump else 0.7, ls="-" if jump else ":", zorder=0.5)


def _around_mean(values: Array) -> tuple[Array, Array]:
    mean, error = values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(len(values))
    return np.maximum(mean - 2 * error, 0.0), mean + 2 * error


def _around_share(values: Array) -> tuple[Array, Array]:
    """Wilson's interval, which makes sense for shares of 0 and 1 as well."""
    many, p = len(values), values.mean(axis=0)
    centre, half = p + 2 / many, 2 * np.sqrt(p * (1 - p) / many + 1 / many**2)
    return (centre - half) / (1 + 4 / many), (centre + half) / (1 + 4 / many)


def _rate_of_change(panel: Any, study: Study) -> None:
    """The norm of a rotation step over time, and arrows where the clustering changes."""
    edges = [*study.starts, study.steps]
    drifts = [segment.drift for segment in study.segments]
    panel.stairs(drifts, edges, color="black", lw=1.5)
    top = max(*drifts, 0.01)
    panel.set(ylabel="drift per step", ylim=(-0.05 * top, 1.6 * top), xlim=(0, edges[-1]))
    for jump in study.jumps:
        before, after = (segment.clustering for segment in study.segments[jump - 1 : jump + 1])
        at, look = study.starts[jump], {"arrowprops": {"arrowstyle": "->"}, "ha": "center", "fontsize": 9}
        panel.annotate(f"{before} → {after}", (at, 0), (at, 1.3 * top), **look)


def clusterings(data: DriftingClusters, dimensions: int = 3, points: int = 1000) -> Figure:
    """The same points coloured by clustering A, left, and B, right, in the subspaces of A, of B, and of noise."""
    figure, panels = new_figure(3, 2, size=(7, 9))
    spaces = {"subspace A": 0, "subspace B": dimensions, "noise": 2 * dimensions}
    for row, (space, first) in zip(panels, spaces.items(), strict=True):
        for panel, (clustering, labels) in zip(row, {"A": data.A, "B": data.B}.items(), strict=True):
            X, labels = data.points[:points, first : first + 2], labels[:points]
            if X.shape[1] == 2:
                scatter(panel, X, labels, np.unique(labels), s=marker_size(len(X)), alpha=0.6)
                low, high = limits(X)
                air = 0.05 * (high - low)
                panel.set(xlim=(low[0] - air[0], high[0] + air[0]), ylim=(low[1] - air[1], high[1] + air[1]))
            panel.set(title=f"{space}, labels {clustering}", xticks=[], yticks=[], aspect="equal")
    return figure
