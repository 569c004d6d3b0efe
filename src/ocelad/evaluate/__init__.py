"""Measures of how well a similarity function is tracked, and of regret."""

from .admm import Solution
from .alignment import aligned, aligned_series
from .bounds import LearnerBound, corollary_1, descent_bound, theorem_1, theorem_2
from .comparator import best_sequence
from .constant import best_constant
from .discriminant import discriminant
from .domains import Ball, Metrics
from .embedding import cluster_nmi, knn_error, nmi
from .growth import Growth, geometric_lengths, growth_exponent
from .problems import Problem
from .regret import Regret, dyadic_intervals, interval_sums, variation

__all__ = [
    "Ball",
    "Growth",
    "LearnerBound",
    "Metrics",
    "Problem",
    "Regret",
    "Solution",
    "aligned",
    "aligned_series",
    "best_constant",
    "best_sequence",
    "cluster_nmi",
    "corollary_1",
    "descent_bound",
    "discriminant",
    "dyadic_intervals",
    "geometric_lengths",
    "growth_exponent",
    "interval_sums",
    "knn_error",
    "nmi",
    "theorem_1",
    "theorem_2",
    "variation",
]
