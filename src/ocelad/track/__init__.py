"""Track a table: every comparison predicted and then learned, written down, and safe from being cut short."""

from .run import Run, Settings
from .timeline import TimeLine, read_timeline

__all__ = ["Run", "Settings", "TimeLine", "read_timeline"]
