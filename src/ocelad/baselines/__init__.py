"""What the tracker is compared with: the same loop with other parts, batch methods, and doing nothing at all."""

from .batch import ITML, LDA, LMNN, MMC, NCA, PCA
from .euclid import Euclid
from .fixed_rate import FixedRate, comid

__all__ = ["ITML", "LDA", "LMNN", "MMC", "NCA", "PCA", "Euclid", "FixedRate", "comid"]
