"""Words in a picture, none on top of another, and names of moments above a panel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..protocols import Array
from ..watch.alarms import Event
from .style import legend_beside, note, plain

TURN = 0.9  # radians from one place that is tried to the next, on a spiral
GROWTH = 0.35  # points farther out, each time
TRIES = 4000
ROUNDS = 300
EVENTS = 8  # the largest number of events that are named in the plot


def place_labels(
    axes: Any, points: Array, words: Sequence[str], colours: Sequence[str], size: float = 8.0
) -> None:
    """Write a word at each point, moved apart as far as needed. The layout of the figure stays as it is from then
    on.

    There are no lines back to the points: where many words lie together these would be a knot, and how the words
    lie to one another can be seen without. A word for which there is no free place within the axes is left out.
    """
    from matplotlib.patheffects import withStroke

    if not words:
        return
    figure = axes.figure
    figure.canvas.draw()  # where the axes are is known only then
    figure.set_layout_engine("none")
    unit, inside = figure.dpi / 72, axes.get_window_extent()
    words = [plain(word) for word in words]
    sizes = [_box(axes, word, size) for word in words]
    halves = np.array([[box.width, 0.8 * box.height] for box in sizes]) / 2 + 0.8 * unit  # a line has air in it
    inner = inside.padded(-2 * unit)
    frame = np.array([inner.min, inner.max])
    places = move_apart(axes.transData.transform(points), halves, frame)
    halo = [withStroke(linewidth=1.5, foreground="white")]  # the axes' lines pass behind
    look = {"ha": "center", "va": "center", "fontsize": size, "path_effects": halo}
    for place, word, colour in zip(free_places(places, halves, frame, unit), words, colours, strict=True):
        if np.isfinite(place).all():
            axes.text(*axes.transData.inverted().transform(place), word, color=colour, **look)


def move_apart(points: Array, halves: Array, frame: Array) -> Array:
    """Centres of boxes of these half widths and heights, which keep their arrangement and hardly overlap.

    Each pair that overlaps moves apart along the line between the two, again and again, and all are drawn back a
    little.
    """
    order = np.arange(len(points))
    turned = np.stack(
        [np.cos(2.4 * order), np.sin(2.4 * order)], axis=1
    )  # points in one place have directions, too
    places = points + 0.01 * halves.max(initial=1.0) * np.sqrt(order)[:, None] * turned
    reach = halves[:, None] + halves
    for step in range(ROUNDS):
        apart = places[:, None] - places
        overlap = np.maximum(reach - np.abs(apart), 0.0) * (1 - np.eye(len(points)))[:, :, None]
        hit = overlap.min(axis=2) > 0
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.nanmin(np.where(hit[:, :, None], overlap / np.abs(apart), np.inf), axis=2, initial=2.0)
        moved = (np.where(hit, share, 0.0)[:, :, None] * apart).sum(axis=1) / np.maximum(hit.sum(axis=1), 2)[
            :, None
        ]
        drawn_back = 0.02 * (1 - step / ROUNDS) * (points - places)
        places = np.clip(places + moved + drawn_back, frame[0] + halves, frame[1] - halves)
    return places


def free_places(places: Array, halves: Array, frame: Array, unit: float) -> Array:
    """The nearest place to each where its box overlaps none of those before it; NaN if the frame has none."""
    turns = np.arange(TRIES)
    spiral = GROWTH * unit * turns[:, None] * np.stack([np.cos(TURN * turns), np.sin(TURN * turns)], axis=1)
    found = np.full_like(places, np.nan)
    for k, half in enumerate(halves):
        tried = places[k] + spiral
        free = ((tried >= frame[0] + half) & (tried <= frame[1] - half)).all(axis=1)
        free &= ~(np.abs(tried[:, None] - found[:k]) < half + halves[:k]).all(axis=2).any(axis=1)
        if free.any():
            found[k] = tried[free.argmax()]
    return found


def _box(axes: Any, words: str, size: float) -> Any:
    """How large words will be."""
    probe = axes.text(0, 0, words, fontsize=size)
    box = probe.get_window_extent()
    probe.remove()
    return box


def mark_dates(panels: Sequence[Any], events: dict[str, np.datetime64]) -> None:
    """A line at each date through all panels, and its name above the first."""
    dates = sorted(events.items(), key=lambda item: item[1])
    for _, when in dates:
        for axes in panels:
            axes.axvline(when, color="0.25", lw=0.9, ls="--", zorder=2.5)
    name_above(panels[0], [(plain(name), when) for name, when in dates])


def mark_events(axes: Any, events: Sequence[Event], named: bool = True) -> None:
    """A line at each event, solid for a jump and dotted for a drift, with its name above the axes or, of many
    events, in the legend.

    The limits of the axes must be set; many lines are thin, to hide nothing.
    """
    few = len(events) <= EVENTS
    lines: dict[str, Any] = {}
    for event in events:
        style = {"color": "black", "lw": 1.4 if few else 0.6, "ls": "-" if event.kind == "jump" else ":"}
        lines.setdefault(event.kind, axes.axvline(event.t, **style))
    if named and few:
        name_above(axes, [(event.kind, event.t) for event in events])
    elif named:
        legend = axes.get_legend()
        legend_beside(axes, legend.get_title().get_text() if legend else None, lines)


def name_above(axes: Any, names: Sequence[tuple[str, Any]]) -> None:
    """Names above the axes, where no curve is, each beginning at its x, in another row where two would collide."""
    if not names:
        return
    axes.figure.canvas.draw()
    unit, right = axes.figure.dpi / 72, axes.get_window_extent().x1
    ends: list[float] = []  # of the last name in each row
    for name, x in names:
        width = _box(axes, name, 8.0).width
        line = axes.transData.transform((axes.convert_xunits(x), 0))[0]
        start = min(line - 2 * unit, right - width)
        row = next((k for k, end in enumerate(ends) if end < start), len(ends))
        ends[row : row + 1] = [start + width + 6 * unit]
        note(axes, name, x, 1.0, ((start - line) / unit, 4 + 10 * row))
    axes.set_title(axes.get_title(), pad=7 + 10 * len(ends))
