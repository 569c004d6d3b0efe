"""What else a file can hold: rooms above this one say themselves how, and are entered when asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Any

ROOMS = {
    "MetricTracker": "state.contents",
    "SupervisedMetricTracker": "state.supervised",
    "KeyedTrackers": "fleet.saved",
    "History": "watch.saved",
    "MovingIndex": "neighbors.saved",
    "Closure": "closure.saved",
    "Queries": "active.saved",
}
"""The module with ``describe`` and ``rebuild`` of each class: nothing else is looked up by a name in a file."""


def room(name: str) -> Any:
    return import_module(f"ocelad.{ROOMS[name]}")
