"""Figures. They need matplotlib: ``pip install "ocelad[plots]"``."""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

from .data import Segment
from .studies import Record

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#7F7F7F", "#E69F00", "#56B4E9")
"""Okabe and Ito's, told apart with any colour vision."""


def pyplot() -> Any:
    """matplotlib.pyplot, or a word on how to get it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError('figures need matplotlib: pip install "ocelad[plots]"') from error
    return plt


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
    time_scales(bottom, levels)
    if trials > 1:
        bottom.set_ylabel("weight of time-scale\n(first trial)")
    bottom.set_xlabel("comparisons seen")
    _mark_segments((top, middle, bottom), segments)
    figure.suptitle(
        "Tracking a similarity function that drifts and jumps"
        + (f" (mean of {trials} trials)" if trials > 1 else "")
    )
    return figure


def time_scales(axes: Axes, levels: list[tuple[int, Any]]) -> Axes:
    """Stacked weights of the time-scales: dark is short, light is long."""
    levels = [(t, rows) for t, rows in levels if rows is not None]
    if not levels:
        return axes
    longest = max((rows for _, rows in levels), key=len)["length"]  # levels are only ever added
    times = [t for t, _ in levels]
    weights = np.zeros((len(longest), len(times)))
    for column, (_, rows) in enumerate(levels):
        weights[: len(rows), column] = rows["weight"]
    colours = pyplot().get_cmap("viridis")(np.linspace(0.05, 0.97, len(longest)))
    axes.stackplot(times, weights, colors=colours, labels=[f"{length:g}" for length in longest])
    axes.set(ylabel="weight of time-scale", ylim=(0, 1))
    handles, labels = axes.get_legend_handles_labels()
    axes.legend(
        handles[::-1],
        labels[::-1],
        title="length",
        loc="center left",
        bbox_to_anchor=(1.0, 0.5),
        fontsize=7,
        title_fontsize=8,
        frameon=False,
        labelspacing=0.2,
    )
    return axes


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
