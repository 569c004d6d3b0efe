"""What the two solvers share: a bracket around the optimum, and a penalty that finds its size."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..protocols import Array

CHECK = 10
"""The number of iterations between two computations of the duality gap."""

RELAX = 1.7
"""Over-relaxation, the usual remedy against zigzagging."""


@dataclass(frozen=True, eq=False)
class Solution:
    """A parameter, or one per step, with a certificate: the optimum lies in [value - gap, value]."""

    w: Array
    value: float
    gap: float
    iterations: int


class Bracket:
    """The best feasible point and the best lower bound so far."""

    def __init__(self, tolerance: float) -> None:
        if not tolerance > 0:
            raise ValueError(f"tolerance must be positive, got {tolerance!r}")
        self.tolerance, self.w, self.value, self.bound = tolerance, np.zeros(0), math.inf, -math.inf

    def add(self, w: Array, value: float, bound: float) -> bool:
        """Take one more of each; whether they are close enough."""
        if value < self.value:
            self.w, self.value = w, value
        self.bound = max(self.bound, bound)
        return self.value - self.bound <= self.tolerance * (1 + abs(self.value))

    def solution(self, iterations: int) -> Solution:
        return Solution(self.w, self.value, max(self.value - self.bound, 0.0), iterations)


class Balance:
    """When, and by how much, to change the penalty: ever more rarely, so that the method still converges."""

    def __init__(self) -> None:
        self.next = CHECK

    def __call__(self, count: int, missed: float, moved: float) -> float:
        """More if the parts disagree by more than they move, less if they agree but still move."""
        if count < self.next or missed <= 0 or moved <= 0:
            return 1.0
        self.next = math.ceil(1.5 * count)
        return min(max(math.sqrt(missed / moved), 0.1), 10.0)


def distance(these: tuple[Array, ...], those: tuple[Array, ...]) -> float:
    """Of two lists of arrays."""
    return math.sqrt(sum(float(np.square(a - b).sum()) for a, b in zip(these, those, strict=True)))
