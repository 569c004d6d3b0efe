"""What the tracker is compared with: the same loop with other parts, and doing nothing at all."""

from .euclid import Euclid
from .fixed_rate import FixedRate, comid

__all__ = ["Euclid", "FixedRate", "comid"]
