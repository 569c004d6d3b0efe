"""Measures of how well a similarity function is tracked, and of regret."""

from .embedding import cluster_nmi, knn_error
from .quick import nmi, quick_cluster_nmi, quick_knn_error
from .regret import interval_sums, theorem_1, variation

__all__ = [
    "cluster_nmi",
    "interval_sums",
    "knn_error",
    "nmi",
    "quick_cluster_nmi",
    "quick_knn_error",
    "theorem_1",
    "variation",
]
