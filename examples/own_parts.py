"""Your own learner and your own combiner inside Algorithm 1, for anyone with another convex problem than metrics.

    python examples/own_parts.py [--days 900] [--seeds 10]

A shop wants to have enough on nine days in ten: the 90 % quantile of demand, day by day, while demand rises, falls
and jumps. A learner needs an `estimate` and `update(loss)`; a combiner needs four functions of an array that has a
row per learner. Neither inherits from anything.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocelad import FixedShare, Ocelad, Pool
from ocelad.protocols import Opening

Array = NDArray[np.float64]
QUANTILE, WINDOWS = 0.9, (10, 30, 90, 270)


@dataclass(frozen=True)
class Pinball:
    """A loss: convex, and least on average at the quantile of demand."""

    demand: float

    def __call__(self, stock: float) -> float:
        short = self.demand - stock
        return max(QUANTILE * short, (QUANTILE - 1) * short)


class RecentQuantile:
    """A learner: the quantile of the latest days."""

    def __init__(self, window: int) -> None:
        self.window, self.estimate = window, 0.0
        self.seen: list[float] = []

    def update(self, loss: Pinball) -> None:
        self.seen = [*self.seen, loss.demand][-self.window :]
        self.estimate = float(np.quantile(self.seen, QUANTILE))


@dataclass(frozen=True)
class Discounted:
    """A combiner: v <- discount * v - rate * loss, and weights exp(v), so that old losses count less and less."""

    rate: float = 0.3
    discount: float = 0.97
    fields = ("log_weight",)

    def open(self, state: Array, opening: Opening) -> Array:
        """A row of the state for each learner that is new: here all are, at the start."""
        missing = max(opening.slots, default=-1) + 1 - len(state)
        return np.vstack([state, np.zeros((max(missing, 0), 1))])

    def update(self, state: Array, losses: Array, mixed: Callable[[], float]) -> Array:  # noqa: ARG002
        return self.discount * state - self.rate * losses[:, None]

    def probabilities(self, state: Array) -> Array:
        weight = np.exp(state[:, 0] - state[:, 0].max(initial=-math.inf))
        return np.asarray(weight / weight.sum())

    mixture = probabilities  # a combiner may also select one learner at random


def demand(rng: np.random.Generator, days: int) -> list[Pinball]:
    """Demand in five parts: its level jumps between them, and has a trend within each."""
    parts = np.array_split(np.arange(days), 5)
    level = [50 + 40 * rng.random() + np.linspace(0, 20 * rng.normal(), len(part)) for part in parts]
    return [Pinball(float(d)) for d in rng.normal(np.concatenate(level), 5)]


def pool(combiner: Any) -> Any:
    """Algorithm 1 over learners of all windows."""
    return Ocelad(Pool([RecentQuantile(window) for window in WINDOWS]), combiner)


def mean_loss(tracker: Any, losses: list[Pinball]) -> float:
    """Decide, pay, learn."""
    total = 0.0
    for loss in losses:
        total += loss(tracker.estimate)  # predict, score ...
        tracker.update(loss)  # ... learn
    return total / len(losses)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--days", type=int, default=900)
    parser.add_argument("--seeds", type=int, default=10)
    given = parser.parse_args()
    methods: dict[str, Callable[[], Any]] = {
        f"own learners, {type(rule).__name__}": partial(pool, rule) for rule in (Discounted(), FixedShare())
    }
    methods |= {f"the latest {window} days alone": partial(RecentQuantile, window) for window in WINDOWS}
    streams = [demand(np.random.default_rng(seed), given.days) for seed in range(given.seeds)]
    print(f"mean pinball loss over {given.days} days, {given.seeds} streams: mean and standard error")
    for name, method in methods.items():
        runs = np.array([mean_loss(method(), losses) for losses in streams])
        print(f"{name:30}{runs.mean():6.3f} ± {runs.std(ddof=1) / math.sqrt(len(runs)):.3f}")


if __name__ == "__main__":
    main()
