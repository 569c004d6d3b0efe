"""Who takes part in a study, by name. A factory needs no argument; if it takes ``step``, its rate can be chosen.

Names are spelled out in tables; on the command line ``slug`` spells them, and ``name@step`` chooses a rate.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Any

from ..baselines import ITML, LMNN, STREAMING, Oracle, Windowed
from ..baselines.streaming import Tracker
from ..intervals import Intervals
from ..tracker import MetricTracker
from ..weights import OceladWeights


def _paper(step: float = 8.0, **reading: Any) -> MetricTracker:
    return MetricTracker.paper(step, strength=0.01).set_params(**reading)


METHODS: dict[str, Callable[..., Tracker]] = {
    "ocelad": lambda step=8.0: MetricTracker(step=step),
    "RICE": lambda step=8.0: MetricTracker.rice().set_params(step=step),
    "paper's setting": _paper,
    **STREAMING,
    "LMNN": lambda: Windowed(LMNN(), window=98, every=98, takes="labelled points", once=True),
    "oracle": Oracle,
    "LMNN, refitted": lambda: Windowed(LMNN(), window=98, every=98, takes="labelled points"),
    "ITML, refitted": lambda: Windowed(ITML(), window=490, every=98),
    "paper, losses after": lambda step=8.0: _paper(step, weights=OceladWeights(order="after")),
    "paper, regret of the mixture": lambda step=8.0: _paper(step, weights=OceladWeights("mixture")),
    "paper, level 0 continues": lambda step=8.0: _paper(step, base=Intervals(1, "continue")),
    "paper, weights kept": lambda step=8.0: _paper(step, weights=OceladWeights(reset=False)),
    "paper, base 8": lambda step=8.0: _paper(step, base=8),
}

FASTEST = 1e6
"""Rates beyond this say nothing, and the largest would overflow in the middle of a study."""

DEFAULT = (
    *("ocelad", "RICE", "paper's setting", "COMID, high rate", "COMID, low rate"),
    *("SAOL", "online ITML", "LMNN", "Euclid", "oracle"),
)

STREAMED = tuple(name for name in METHODS if not name.startswith("paper, ") and not name.endswith("refitted"))
"""All but other readings of the paper, and batch methods that are fitted again and again, which is slow."""

READINGS = ("ocelad", "RICE", "paper's setting", *(name for name in METHODS if name.startswith("paper, ")))
"""All that are RICE-OCELAD in one reading or another."""


def slug(name: str) -> str:
    """How to spell a name on the command line.

    >>> slug("COMID, high rate@0.5"), slug("paper's setting")
    ('comid-high-rate@0.5', 'papers-setting')
    """
    plain, at, step = name.partition("@")
    return re.sub(r"[^a-z0-9.]+", "-", plain.lower().replace("'", "")).strip("-") + at + step.strip()


def named(words: Iterable[str]) -> tuple[str, ...]:
    """The methods that these words spell, with their rates; "all" spells all but readings and refits.

    >>> named(["ocelad", "comid-low-rate@0.1"])
    ('ocelad', 'COMID, low rate@0.1')
    >>> named(["all"]) == STREAMED
    True
    >>> named(["comid-low-rate@1e+1"])
    ('COMID, low rate@1e+1',)
    """
    known = {slug(name): name for name in METHODS}
    found: list[str] = []
    for word in words:
        if word.strip() == "all":
            found += STREAMED
            continue
        short, at, step = slug(word).partition("@")
        if short not in known:
            raise ValueError(f"methods must be all, or among {', '.join(known)}, got {word!r}")
        found.append(known[short] + at + step)
    return tuple(found)


def make(name: str, seed: int = 0) -> Tracker:
    """A fresh tracker of a method, at its own rate or at the one after the @; if it draws, with that seed.

    >>> make("ocelad@2").step
    2.0
    >>> make("SAOL", seed=7).weights.seed
    7
    """
    plain, at, step = name.partition("@")
    if plain not in METHODS:
        raise ValueError(f"there is no method {plain!r}: methods are {', '.join(METHODS)}")
    try:
        tracker = METHODS[plain](**({"step": _rate(plain, step)} if at else {}))
    except TypeError:
        raise ValueError(f"{plain} takes no rate, got {step!r}") from None
    if isinstance(tracker, MetricTracker) and hasattr(tracker.weights, "seed"):
        # with the same draws in every trial, a mean over trials would be no nearer to what is expected than one
        weights: Any = tracker.weights
        tracker.set_params(weights=replace(weights, seed=seed))
    return tracker


def _rate(method: str, word: str) -> float:
    with suppress(ValueError):
        if 0 < float(word) <= FASTEST:
            return float(word)
    raise ValueError(f"the rate of {method} must be positive and at most {FASTEST:g}, got {word!r}")


def plain(name: str) -> str:
    """A method's name without its rate."""
    return name.partition("@")[0]
