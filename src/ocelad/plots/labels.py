"""Words beside points, none on top of another: each goes to the nearest free place, with a line if that is far."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..protocols import Array
from .style import note, plain

TURN = 0.9  # radians from one place that is tried to the next, on a spiral
GROWTH = 0.35  # points farther out, each time
FAR = 9.0  # points from which on a line leads back
TRIES = 4000


def place_labels(
    axes: Any, points: Array, words: Sequence[str], colours: Sequence[str], size: float = 8.0
) -> None:
    """Write a word near each point, the first ones nearest. The layout of the figure stays as it is from then on.

    A word for which there is no free place within the axes is left out.
    """
    from matplotlib.patheffects import withStroke

    figure = axes.figure
    figure.canvas.draw()  # where the axes are is known only then
    figure.set_layout_engine("none")
    unit, inside = figure.dpi / 72, axes.get_window_extent()
    middles, halves = np.zeros((0, 2)), np.zeros((0, 2))
    for point, word, colour in zip(axes.transData.transform(points), words, colours, strict=True):
        box = _box(axes, word, size)
        half = np.array([box.width, 0.8 * box.height]) / 2 + 0.8 * unit  # a line's height has air in it
        turns = np.arange(TRIES)
        offsets = GROWTH * unit * turns[:, None] * np.stack([np.cos(TURN * turns), np.sin(TURN * turns)], axis=1)
        places = point + offsets
        low, high = np.array([inside.x0, inside.y0]) + half, np.array([inside.x1, inside.y1]) - half
        free = ((places >= low) & (places <= high)).all(axis=1)
        gaps = np.abs(places[:, None] - middles) - (half + halves)
        free &= (gaps > 0).any(axis=2).all(axis=1)
        if not free.any():
            continue
        place = places[free.argmax()]
        middles, halves = np.vstack([middles, place]), np.vstack([halves, half])
        offset = (place - point) / unit
        near = np.hypot(*offset) <= FAR
        if not near:
            axes.plot(*axes.transData.inverted().transform(point), ".", ms=3, color=colour, zorder=1)
        line = {"arrowstyle": "-", "color": "0.7", "lw": 0.5, "shrinkA": 0, "shrinkB": 1, "zorder": 0.5}
        axes.annotate(
            word,
            axes.transData.inverted().transform(point),
            xytext=offset,
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=size,
            color=colour,
            arrowprops=None if near else line,
            path_effects=[withStroke(linewidth=1.5, foreground="white")],  # dots and lines pass behind
        )


def _box(axes: Any, words: str, size: float) -> Any:
    """How large words will be."""
    probe = axes.text(0, 0, words, fontsize=size)
    box = probe.get_window_extent()
    probe.remove()
    return box


def mark_dates(panels: Sequence[Any], events: dict[str, np.datetime64]) -> None:
    """A line at each date through all panels, its name above the first, in another row where two would collide."""
    top, figure = panels[0], panels[0].figure
    figure.canvas.draw()
    unit, right = figure.dpi / 72, top.get_window_extent().x1
    ends: list[float] = []  # of the last name in each row
    for name, when in sorted(events.items(), key=lambda item: item[1]):
        for axes in panels:
            axes.axvline(when, color="0.25", lw=0.9, ls="--", zorder=2.5)
        width = _box(top, plain(name), 8.0).width
        line = top.transData.transform((top.convert_xunits(when), 0))[0]
        x = min(line - 2 * unit, right - width)
        row = next((k for k, end in enumerate(ends) if end < x), len(ends))
        ends[row : row + 1] = [x + width + 6 * unit]
        note(top, plain(name), when, 1.0, ((x - line) / unit, 3 + 10 * row))
    if ends:
        top.set_title(top.get_title(), pad=6 + 10 * len(ends))
