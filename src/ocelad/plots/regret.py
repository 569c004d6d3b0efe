"""Regret against its bounds."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle

import numpy as np
from numpy.typing import ArrayLike

from ..evaluate import growth_exponent
from .style import COLOURS, MARKERS, Axes, axes_or_new, legend_beside

Curve = tuple[ArrayLike, ArrayLike]


def regret_by_length(
    regrets: Mapping[str, Curve],
    bounds: Mapping[str, Curve] | None = None,
    axes: Axes | None = None,
    exponents: Mapping[str, float] | None = None,
) -> Axes:
    """The largest regret on any interval of each length, on logarithmic axes, and bounds above it as broken lines.

    Each curve is a pair (lengths, values). The legend gives the exponent with which each regret grows, as given or
    over all of these lengths; a grey line is what losing one per step would be. Lengths without positive regret
    cannot be drawn.
    """
    if not regrets:
        raise ValueError("regrets must hold at least one curve (lengths, values)")
    axes = axes_or_new(axes, (8, 4.5))
    everything = np.concatenate([np.asarray(lengths, dtype=np.float64) for lengths, _ in regrets.values()])
    ends = np.array([everything.min(), everything.max()])
    for colour, marker, (name, (lengths, values)) in zip(
        cycle(COLOURS), cycle(MARKERS), regrets.items(), strict=False
    ):
        size, regret = np.asarray(lengths, dtype=np.float64), np.asarray(values, dtype=np.float64)
        exponent = (exponents or {}).get(name, growth_exponent(size, regret).exponent)
        label = name if np.isnan(exponent) else f"{name} ~ |I|^{exponent:.2f}"
        shown = np.where(regret > 0, regret, np.nan)
        axes.plot(size, shown, color=colour, marker=marker, ms=3.5, lw=1.5, label=label)
    for style, (name, (lengths, values)) in zip(cycle(("--", "-.", ":")), (bounds or {}).items(), strict=False):
        axes.plot(lengths, values, color="black", ls=style, lw=1.2, label=name)
    axes.plot(ends, ends, color="0.6", lw=0.8, label="one per step")
    axes.set(xscale="log", yscale="log", xlabel="length of the interval |I|", ylabel="largest regret R(I)")
    axes.set_title("Regret on the worst interval of each length")
    legend_beside(axes, None)
    return axes
