"""What answers about recurring items imply."""

from .answers import Closure, Reset

__all__ = ["Closure", "Reset"]
