"""The figure of a run: how often it was wrong, which expert was in charge, and the threshold."""

from __future__ import annotations

import numpy as np

from ..track import TimeLine
from .labels import mark_events
from .style import COLOURS, Figure, legend_beside, new_figure, plain, stack_weights


def timeline(line: TimeLine, title: str | None = None) -> Figure:
    """Errors, weights of the experts and threshold over time; lines mark jumps (solid) and drifts (dotted).

    Parameters
    ----------
    line
        What `ocelad.track.read_timeline` reads.
    title
        What the run is called.
    """
    figure, (top, middle, low) = new_figure(3, 1, size=(8, 6.5), sharex=True, height_ratios=(3, 3, 2))
    width = max(1, len(line.error) // 50)
    smooth = _smoothed(line.error, width)
    each = f"each {line.t[0]:.0f} comparisons"
    if width > 1:
        top.plot(line.t, line.error, color="0.8", lw=0.8, label=each)
    top.plot(line.t, smooth, color=COLOURS[0], lw=1.8, label="smoothed" if width > 1 else each)
    top.plot(line.t, 1.0 - line.accuracy, color=COLOURS[1], lw=1.4, ls="--", label="all so far")
    top.plot(line.t, 1.0 - line.majority, color="0.5", lw=1.2, ls=":", label="always the more\nfrequent label")
    top.set(title="How often the tracker was wrong, before it learned", ylabel="share wrong", ylim=(0, None))
    legend_beside(top, None)
    stack_weights(middle, line.t, line.weights, line.lengths, line.kinds)
    middle.set(title="Which expert is in charge")
    low.plot(line.t, line.threshold, color=COLOURS[0], lw=1.6)
    low.set(title="Threshold on squared distances", ylabel="threshold", xlabel="comparisons seen")
    if len(line.t) > 1:
        low.set_xlim(line.t[0], line.t[-1])
    if title is not None:
        figure.suptitle(plain(title), fontweight="bold")
    for number, axes in enumerate((top, middle, low)):
        mark_events(axes, line.events, named=number == 0)
    return figure


def _smoothed(values: np.ndarray, width: int) -> np.ndarray:
    """A running mean."""
    total = np.concatenate([[0.0], np.cumsum(values)])
    ends = np.arange(1, len(values) + 1)
    starts = np.maximum(0, ends - width)
    return (total[ends] - total[starts]) / (ends - starts)
