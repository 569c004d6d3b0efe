"""Nearest neighbours under a metric that moves."""

from .index import MovingIndex

__all__ = ["MovingIndex"]
