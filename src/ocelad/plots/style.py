"""What all figures share: colours, axes, legends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count, cycle
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ..protocols import Array
from ..watch.history import weights_by_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure as Figure
else:
    Axes = Figure = Any  # matplotlib is imported when something is drawn, and not before

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#7F7F7F", "#E69F00", "#56B4E9")
"""Okabe and Ito's, told apart with any colour vision."""

MARKERS = "osD^vPX"

PALETTE = [*(colour for colour in COLOURS if colour != "#7F7F7F"), "black"]
"""For lines beside something grey."""


def line_styles(colours: Sequence[str] = COLOURS) -> Iterator[tuple[str, str]]:
    """A colour and a dash for each of any number of lines."""
    return cycle([(colour, dash) for dash in ("-", "--", ":") for colour in colours])


def pyplot() -> Any:
    """matplotlib.pyplot, or a word on how to get it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError('figures need matplotlib: pip install "ocelad[plots]"') from error
    return plt


def new_figure(*shape: int, size: tuple[float, float], **more: Any) -> tuple[Any, Any]:
    """A figure of that size in inches, and its axes."""
    return pyplot().subplots(*shape, figsize=size, layout="constrained", **more)


def axes_or_new(axes: Axes | None, size: tuple[float, float]) -> Any:
    return new_figure(size=size)[1] if axes is None else axes


def class_looks() -> Iterator[tuple[str, str]]:
    """A colour and a marker for each of any number of classes; the same two come again after 49."""
    n = len(COLOURS)
    return ((COLOURS[k % n], MARKERS[(k + k // n) % n]) for k in count())


def scatter(axes: Any, points: Array, labels: Any, classes: Any, **look: Any) -> None:
    """Points of the plane, each class in its colour and with its marker."""
    for label, (colour, marker) in zip(classes, class_looks(), strict=False):
        own = points[labels == label]
        axes.scatter(*own.T, color=colour, marker=marker, lw=0, label=plain(str(label)), **look)


def limits(points: Array) -> tuple[Array, Array]:
    """Between what to draw points, per dimension: without the few that lie so far out that they would squeeze the
    others, which are those farther from the middle 96 % than its width.

    >>> X = np.append(np.arange(100.0), 1e6)[:, None]
    >>> limits(X)
    (array([0.]), array([99.]))
    """
    ordered, few = np.sort(points, axis=0), -(-len(points) // 50) if len(points) >= 20 else 0
    low, high = ordered[few], ordered[-1 - few]
    reach = np.where(high > low, high - low, np.inf)  # most points lie on a line: nothing is far
    near = points[((points >= low - reach) & (points <= high + reach)).all(axis=1)]
    return near.min(axis=0), near.max(axis=0)


def marker_size(count: int) -> float:
    """The area of a marker, in square points: smaller where there are many, and never too small to be seen.

    >>> marker_size(100), marker_size(1000), marker_size(100_000)
    (36.0, 16.0, 9.0)
    """
    return float(np.clip(16000 / max(count, 1), 9.0, 36.0))


def note(axes: Any, words: str, x: Any, y: float, offset: tuple[float, float] = (0, 0), **look: Any) -> None:
    """Words at x of the data and y of the height of the axes, from 0 to 1, shifted by an offset in points."""
    frame = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points", "fontsize": 8}
    axes.annotate(words, (x, y), xytext=offset, **{**frame, **look})


def plain(words: str) -> str:
    """Words of the user's, which matplotlib is neither to set as mathematics nor to leave out of legends.

    >>> plain("US$"), plain("_a")
    ('US\\\\$', ' _a')
    """
    words = words.replace("$", r"\$")
    return f" {words}" if words.startswith("_") else words


HIGH = 14
"""Entries of a legend beside a panel; more have a second column, so that they do not stretch the figure."""


def legend_beside(axes: Any, title: str | None, lines: dict[str, Any] | None = None) -> None:
    """Beside the axes, those of a stack as they lie on one another; then these lines, by their names."""
    handles, labels = axes.get_legend_handles_labels()
    order, lines = -1 if title == "memory" else 1, lines or {}
    axes.legend(
        [*handles[::order], *lines.values()],
        [*labels[::order], *lines],
        title=title,
        loc="center left",
        bbox_to_anchor=(1.0, 0.5),
        fontsize=8,
        title_fontsize=8,
        frameon=False,
        labelspacing=0.3,
        ncols=1 if len(handles) <= HIGH else 2,
        markerscale=1.3 if title == "label" else 1.0,
    )


SHADES = {"replay": ("PuBu_r", 0.0, 0.75), "euclid": ("Greys", 0.4, 0.4), "kernel": ("YlGn_r", 0.1, 0.7)}
"""Colours of a kind of expert, for the shortest memory and for the longest; of others (viridis, .05, .97)."""


SEEN = 0.005
"""The least share of the picture of an expert whose band can be seen."""

MOMENTS = 200
"""Of more moments, weights are averaged to so many: experts change places at each comparison."""


def stack_weights(axes: Any, t: ArrayLike, weights: Array, lengths: Array, kinds: Sequence[str]) -> None:
    """The weights of experts over time, by kind and length; within a kind dark is a short memory, light a long
    one. The legend has those that can be seen; the others are one band, and in the legend if that can be seen."""
    t, weights = np.asarray(t), np.nan_to_num(weights)
    if len(t) > MOMENTS:
        t = np.linspace(t[0], t[-1], MOMENTS)
        weights = np.array([part.mean(axis=0) for part in np.array_split(weights, MOMENTS)])
    named = weights_by_name(kinds, lengths, weights)
    own, colours = [name.partition(" ")[0] for name in named], []
    for kind in dict.fromkeys(own):
        shades, first, last = SHADES.get(kind, ("viridis", 0.05, 0.97))
        colours += list(pyplot().get_cmap(shades)(np.linspace(first, last, own.count(kind))))
    seen = [k for k, values in enumerate(named.values()) if values.mean() >= SEEN]
    bands, names = list(named.values()), [plain(name) for name in named]
    others = sum((band for k, band in enumerate(bands) if k not in seen), np.zeros(len(t)))
    axes.stackplot(
        t, *(bands[k] for k in seen), others, colors=[*(colours[k] for k in seen), "0.9"],
        labels=[*(names[k] for k in seen), "other experts" if others.mean() >= SEEN else "_others"],
    )  # fmt: skip
    axes.set(ylabel="weight of expert", ylim=(0, 1))
    legend_beside(axes, "memory")
