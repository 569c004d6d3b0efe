"""Labelled rows as comparisons: each with some of the rows before it, similar iff their labels are the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...pair_sampling import Strategy, check, partners
from .cells import Columns
from .forms import Batch
from .rows import Row

Parsed = tuple[int, list[float], str, str]
"""A row's line, point, label, and the group within which it is compared."""

LEAST, MOST = 10, 1000
"""Rows of a label that come in one run by no chance, and labels that are looked at."""


@dataclass(eq=False)
class Labelled:
    """Labelled points, each compared with earlier ones.

    Parameters
    ----------
    points, label, within
        The columns; rows are compared only if they have the same words in the columns ``within``.
    strategy, memory, count, seed
        With which of the last ``memory`` rows, with how many, and the seed of the draw, as for
        `SupervisedMetricTracker`.
    """

    points: Columns
    label: Columns
    within: Columns
    strategy: Strategy = "balanced"
    memory: int = 128
    count: int = 2
    seed: int = 0

    def __post_init__(self) -> None:
        check(self.strategy)
        self.features = self.points.names
        self._random, self._number = np.random.RandomState(self.seed), 0
        self._recent: list[Parsed] = []
        self._runs: dict[str, int] | None = {}  # rows of each label, if each has come in one run so far

    def parse(self, row: Row) -> Parsed:
        return row.line, self.points.numbers(row), self.label.words(row)[0], "\x1f".join(self.within.words(row))

    def block(self, parsed: Sequence[Parsed]) -> Batch:
        self._count([label for _, _, label, _ in parsed])
        seen, both = len(self._recent), [*self._recent, *parsed]
        lines, numbers, *words = zip(*both, strict=True)
        labels, groups = (np.unique(word, return_inverse=True)[1] for word in words)
        new, old = partners(
            labels, seen, self.strategy, self.memory, self.count, self._random, self._number, groups
        )
        self._recent, self._number = both[-self.memory :], self._number + len(parsed)
        points = np.array(numbers)
        return Batch(
            np.stack([points[new], points[old]], axis=1),
            np.where(labels[new] == labels[old], 1, -1),
            [lines[k] for k in new],
            [lines[k] for k in old],
        )

    def _count(self, labels: Sequence[str]) -> None:
        for label in labels:
            if self._runs is None:
                return
            if (label in self._runs and label != next(reversed(self._runs))) or len(self._runs) == MOST:
                self._runs = None
            else:
                self._runs[label] = self._runs.get(label, 0) + 1

    def is_sorted(self) -> bool:
        """Whether the rows of each label have come in one run, and that is no chance."""
        runs = self._runs or {}
        return len(runs) >= 2 and min(runs.values()) >= LEAST

    def state(self) -> Any:
        random = self._random.get_state(legacy=False)
        random["state"] = {**random["state"], "key": random["state"]["key"].tolist()}
        return {"random": random, "number": self._number, "recent": self._recent}

    def restore(self, state: Any) -> None:
        self._random.set_state(state["random"])
        self._number, self._runs = state["number"], None
        self._recent = [(line, numbers, label, group) for line, numbers, label, group in state["recent"]]
