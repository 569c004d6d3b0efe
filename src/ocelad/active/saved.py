"""What a file holds of `Queries`: its numbers, the name of its strategy, and, under names that begin with
``tracker.``, all that is in the file of its tracker."""

from __future__ import annotations

import math
from typing import Any

from ..state.container import Arrays
from ..state.contents import prefixed, split_off
from ..state.header import check_count, check_keys
from ..state.options import NONE, Options
from ..state.supervised import learned_entries, restored_tracker
from ..tracker import MetricTracker
from .queries import Queries
from .strategies import STRATEGIES

_ENTRIES = {
    "candidates",
    "budget",
    "strategy",
    "seed",
    "drawn",
    "seen",
    "asked",
    "judged",
    "usual",
    "owed",
    "tracker",
}


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
            "seen": queries.seen,
            "asked": queries.asked,
            "judged": queries.judged,
            "usual": queries.usual,
            "owed": queries.owed,
            "tracker": learned,
        }
    return NONE, entries, prefixed("tracker.", arrays)


def rebuild(
    text: bytes, entries: dict[str, Any], arrays: Arrays, limit: int, given_features: Any = None
) -> Queries:
    """The queries of entries and arrays, if there can be any, and they take at most ``limit`` bytes."""
    check_keys(entries, _ENTRIES)
    inner, others = split_off("tracker.", arrays)
    if text != NONE.text or others:
        raise ValueError("queries have no options, and no arrays but those of their tracker")
    for name in ("seed", "drawn", "seen", "asked", "judged"):
        check_count(entries[name], name)
    strategy, budget, usual = (entries[name] for name in ("strategy", "budget", "usual"))
    if not isinstance(strategy, str) or strategy not in STRATEGIES:
        raise ValueError(f"strategy must be one of {', '.join(STRATEGIES)}, got {strategy!r}")
    if not (budget is None or type(budget) is float):
        raise ValueError(f"budget must be null or a number, got {budget!r}")
    if not (type(usual) is float and 0.0 <= usual < math.inf and str(usual) != "-0.0"):
        raise ValueError(f"usual must be a finite number >= 0, got {usual!r}")
    if not (type(entries["owed"]) is float and math.isfinite(entries["owed"])):
        raise ValueError(f"owed must be a finite number, got {entries['owed']!r}")
    if max(entries["asked"], entries["judged"]) > entries["seen"] or entries["seen"] > entries["drawn"]:
        raise ValueError("asked and judged must not be more than seen, nor seen more than drawn")
    if type(entries["candidates"]) is not int:
        raise ValueError(f"candidates must be an integer >= 1, got {entries['candidates']!r}")
    tracker = restored_tracker(entries["tracker"], inner, limit, "tracker", given_features)
    queries = Queries(tracker, entries["candidates"], budget, strategy=STRATEGIES[strategy])
    queries.usual = usual
    for name in ("seed", "drawn", "seen", "asked", "judged", "owed"):
        setattr(queries, name, entries[name])
    return queries
