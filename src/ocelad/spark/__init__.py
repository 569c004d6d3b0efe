"""Trackers of many keys on Spark: a stream of comparisons in, predictions and alarms out.

``pip install "ocelad[spark]"``, and Java 17 or later.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .settings import SETTINGS

if TYPE_CHECKING:
    from .exchange import from_trackers, rebucket
    from .items import join_items
    from .processors import TrackerProcessor
    from .stored import backfill, last_seqs, read_states, score, states
    from .stream import output_schema, track

_FILES = {
    "TrackerProcessor": "processors",
    "backfill": "stored",
    "from_trackers": "exchange",
    "join_items": "items",
    "last_seqs": "stored",
    "output_schema": "stream",
    "read_states": "stored",
    "rebucket": "exchange",
    "score": "stored",
    "states": "stored",
    "track": "stream",
}

__all__ = [
    "SETTINGS",
    "TrackerProcessor",
    "backfill",
    "from_trackers",
    "join_items",
    "last_seqs",
    "output_schema",
    "read_states",
    "rebucket",
    "score",
    "states",
    "track",
]


def __getattr__(name: str) -> Any:
    """What needs Spark is imported when it is asked for: buckets do without."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        for package in ("pyspark.sql.streaming", "pandas", "pyarrow", "google.protobuf"):
            import_module(package)
        return getattr(import_module(f"{__name__}.{_FILES[name]}"), name)
    except ImportError as error:
        raise ImportError(f'ocelad.spark needs pyspark and more: pip install "ocelad[spark]" ({error})') from error
