"""Metrics learned from everything at once: what a tracker is compared with, and what a sliding window refits."""

from .itml import ITML
from .lda import LDA
from .lmnn import LMNN
from .mmc import MMC
from .nca import NCA
from .pca import PCA

__all__ = ["ITML", "LDA", "LMNN", "MMC", "NCA", "PCA"]
