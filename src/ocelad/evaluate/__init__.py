"""Measures of how well a similarity function is tracked, and of regret."""

from .embedding import cluster_nmi, knn_error
from .progressive import Foreseen, progressive
from .regret import interval_sums, theorem_1, variation
from .running import Running

__all__ = [
    "Foreseen",
    "Running",
    "cluster_nmi",
    "interval_sums",
    "knn_error",
    "progressive",
    "theorem_1",
    "variation",
]
