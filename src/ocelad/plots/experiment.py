"""The figures of the paper's synthetic experiment: the data, and how methods track it over many trials."""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

from ..data import DriftingClusters
from ..protocols import Array
from ..studies import Results, Study
from .style import COLOURS, MARKERS, pyplot

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def experiment(results: Results) -> Figure:
    """In the paper's layout: how fast the stream changes, the mean 5-NN error, and P(NMI > 0.8).

    Bands are two standard errors to either side, for P(NMI > 0.8) as Wilson has them; of more than twelve methods
    they would hide one another.
    """
    study = results.study
    figure, panels = pyplot().subplots(
        3, 1, figsize=(9, 8.5), sharex=True, height_ratios=(1, 3, 3), layout="constrained"
    )
    _rate_of_change(panels[0], study)
    times = np.array(study.times) + 1
    styles = [(colour, dash) for dash in ("-", "--", ":") for colour in COLOURS]
    for k, (name, (colour, dash)) in enumerate(zip(study.methods, cycle(styles), strict=False)):
        look = {
            "color": colour,
            "ls": dash,
            "label": name,
            "lw": 2.2 if k == 0 else 1.2,
            "zorder": 3 if k == 0 else 2,
        }
        for panel, values, band in (
            (panels[1], results.error[:, k], _around_mean),
            (panels[2], results.good[:, k], _around_share),
        ):
            panel.plot(times, values.mean(axis=0), **look)
            if len(values) > 1 and len(study.methods) <= 12:
                panel.fill_between(times, *band(values), color=colour, alpha=0.2, lw=0)
    panels[1].set(ylabel="5-NN error", ylim=(0, None))
    panels[2].set(ylabel="P(NMI > 0.8)", ylim=(-0.02, 1.02), xlabel="time step")
    for panel in panels[1:]:
        for number, start in enumerate(study.starts[1:], 1):
            jump = number in study.jumps
            panel.axvline(start, color="black", lw=1.2 if jump else 0.6, ls="-" if jump else ":", zorder=0.5)
    panels[2].legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=4, frameon=False, fontsize=9)
    many = len(results.trials)
    figure.suptitle(f"Tracking of a changing metric ({f'mean of {many} trials' if many > 1 else 'one trial'})")
    return figure


def _around_mean(values: Array) -> tuple[Array, Array]:
    mean, error = values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(len(values))
    return np.maximum(mean - 2 * error, 0.0), mean + 2 * error


def _around_share(values: Array) -> tuple[Array, Array]:
    """Wilson's interval, which makes sense for a few trials and for shares of 0 and 1 as well."""
    many, p = len(values), values.mean(axis=0)
    centre, half = p + 2 / many, 2 * np.sqrt(p * (1 - p) / many + 1 / many**2)
    return (centre - half) / (1 + 4 / many), (centre + half) / (1 + 4 / many)


def _rate_of_change(panel: Any, study: Study) -> None:
    """The norm of a rotation step over time, and arrows where the clustering changes."""
    edges = [*study.starts, study.starts[-1] + study.segments[-1].steps]
    drifts = [segment.drift for segment in study.segments]
    panel.stairs(drifts, edges, color="black", lw=1.5)
    top = max(*drifts, 0.01)
    panel.set(ylabel="drift per step", ylim=(-0.05 * top, 1.6 * top), xlim=(0, edges[-1]))
    for jump in study.jumps:
        before, after = study.segments[jump - 1].clustering, study.segments[jump].clustering
        panel.annotate(
            f"{before} → {after}",
            (study.starts[jump], 0),
            (study.starts[jump], 1.3 * top),
            arrowprops={"arrowstyle": "->"},
            ha="center",
            fontsize=9,
        )


def clusterings(data: DriftingClusters, dimensions: int = 3, points: int = 1000) -> Figure:
    """The same points coloured by clustering A, left, and B, right, in the subspaces of A, of B, and of noise."""
    figure, panels = pyplot().subplots(3, 2, figsize=(7, 9), layout="constrained")
    spaces = {"subspace A": 0, "subspace B": dimensions, "noise": 2 * dimensions}
    for row, (space, first) in zip(panels, spaces.items(), strict=True):
        for panel, (clustering, labels) in zip(row, {"A": data.A, "B": data.B}.items(), strict=True):
            X, labels = data.points[:points, first : first + 2], labels[:points]
            for label, colour, marker in zip(np.unique(labels), cycle(COLOURS), cycle(MARKERS), strict=False):
                own = X[labels == label]
                if own.shape[1] == 2:
                    panel.scatter(*own.T, s=6, color=colour, marker=marker, alpha=0.6, lw=0)
            panel.set(title=f"{space}, labels {clustering}", xticks=[], yticks=[], aspect="equal")
    return figure
