"""What a file holds of `Queries`: its numbers, the name of its strategy, and all that is in the file of its tracker,
under names that begin with ``tracker.``."""

from __future__ import annotations

import math
from typing import Any

from ..state.container import Arrays
from ..state.contents import prefixed, split_off
from ..state.header import check_count, check_keys
from ..state.options import NONE, Options
from ..state.supervised import learned_entries, restored_tracker
from ..tracker import MetricTracker
from .queries import MOST, Queries
from .strategies import STRATEGIES

_ENTRIES = {"candidates", "budget", "strategy", "seed", "drawn", "beta", "seen", "asked", "tracker"}


def describe(queries: Queries) -> tuple[Options, dict[str, Any], Arrays]:
    """Entries and arrays; its parameters are among the entries."""
    with queries._lock:
        names = [name for name, strategy in STRATEGIES.items() if strategy is queries.strategy]
        if not names:
            raise ValueError(
                f"strategy={queries.strategy!r} cannot be saved: a file holds one of {', '.join(STRATEGIES)}"
            )
        if type(queries.tracker) is not MetricTracker:
            raise ValueError(f"tracker={queries.tracker!r} cannot be saved: a file holds a MetricTracker")
        learned, arrays = learned_entries(queries.tracker)
        entries = {
            "candidates": queries.candidates,
            "budget": queries.budget,
            "strategy": names[0],
            "seed": queries.seed,
            "drawn": queries.drawn,
            "beta": queries.beta,
            "seen": queries.seen,
            "asked": queries.asked,
            "tracker": learned,
        }
    return NONE, entries, prefixed("tracker.", arrays)


def rebuild(text: bytes, entries: dict[str, Any], arrays: Arrays, limit: int) -> Queries:
    """The queries of entries and arrays, if there can be any, and they take at most ``limit`` bytes."""
    check_keys(entries, _ENTRIES)
    inner, others = split_off("tracker.", arrays)
    if text != NONE.text or others:
        raise ValueError("queries have no options, and no arrays but those of their tracker")
    for name in ("seed", "drawn", "seen", "asked"):
        check_count(entries[name], name)
    strategy, budget, beta = (entries[name] for name in ("strategy", "budget", "beta"))
    if not isinstance(strategy, str) or strategy not in STRATEGIES:
        raise ValueError(f"strategy must be one of {', '.join(STRATEGIES)}, got {strategy!r}")
    if not (budget is None or type(budget) is float):
        raise ValueError(f"budget must be null or a number, got {budget!r}")
    if not (type(beta) is float and math.isfinite(beta) and 1.0 / MOST <= beta <= MOST):
        raise ValueError(f"beta must be a number from {1.0 / MOST:g} to {MOST:g}, got {beta!r}")
    if not entries["asked"] <= entries["seen"] <= entries["drawn"]:
        raise ValueError("asked must not be more than seen, nor seen more than drawn")
    if type(entries["candidates"]) is not int:
        raise ValueError(f"candidates must be an integer >= 1, got {entries['candidates']!r}")
    check_count(entries["candidates"], "candidates")
    tracker = restored_tracker(entries["tracker"], inner, limit, name="tracker")
    queries = Queries(tracker, entries["candidates"], budget, strategy=STRATEGIES[strategy])
    queries.seed, queries.drawn, queries.beta = entries["seed"], entries["drawn"], beta
    queries.seen, queries.asked = entries["seen"], entries["asked"]
    return queries
