"""Many trackers at once: one per key, or one per trial, each exactly as if it were alone."""

from .keyed import KeyedTrackers
from .threads import learn

__all__ = ["KeyedTrackers", "learn"]
