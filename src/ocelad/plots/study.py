"""Figures of the paper's experiment."""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

from ..data import Segment
from ..studies import Record
from .style import COLOURS, pyplot, stack_weights

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


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
    stack_weights(axes, [t for t, _ in levels], weights, longest)


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
