"""Which summary of the weights separates speeds of drift best?

    python benchmarks/time_scale.py --trials 16

prints the probability that a summary is longer under the slower of two neighbouring speeds, at comparisons 1000 to
2700 of steadily rotating points. About a second a trial and speed.
"""

from __future__ import annotations

import argparse
from itertools import pairwise

import numpy as np
from scipy.stats import rankdata

from ocelad import MetricTracker
from ocelad.data import DriftingClusters, Segment
from ocelad.protocols import Array

SPEEDS = (0.0, 0.02, 0.05, 0.15, 0.4)


def summaries(length: Array, weight: Array) -> dict[str, float]:
    """Logarithms of time-scales."""
    size, total = np.log(length), np.cumsum(weight)
    middle = int(np.argmax(total >= 0.5))
    below = total[middle] - weight[middle]
    return {
        "geometric mean": float(weight @ size),
        "median, interpolated": float(size[middle] + np.log(2) * ((0.5 - below) / weight[middle] - 0.5)),
        "harmonic mean": -float(np.log(weight @ (1 / length))),
        "arithmetic mean": float(np.log(weight @ length)),
        "median": float(size[middle]),
        "level of largest weight": float(size[weight.argmax()]),
    }


def course(seed: int, speed: float) -> list[dict[str, float]]:
    rng = np.random.default_rng([2016, seed])
    data = DriftingClusters.draw(rng)
    steps = list(data.stream(rng, (Segment(2700, "A", speed),)))
    pairs, y = np.array([step.pair for step in steps]), [step.y for step in steps]
    tracker, found = MetricTracker.rice().partial_fit(pairs[:1000], y[:1000]), []
    for t in range(1000, 2700, 7):
        tracker.partial_fit(pairs[t : t + 7], y[t : t + 7])
        found.append(summaries(tracker.experts_["length"], tracker.experts_["weight"]))
    return found


def longer(slow: list[float], fast: list[float]) -> float:
    """The probability that a value of the first is larger than one of the second, ties half."""
    ranks = rankdata([*slow, *fast])[: len(slow)]
    return float((ranks.sum() / len(slow) - (len(slow) + 1) / 2) / len(fast))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=16)
    seeds = range(1000, 1000 + parser.parse_args().trials)
    courses = [[row for seed in seeds for row in course(seed, speed)] for speed in SPEEDS]
    for name in courses[0][0]:
        values = [[row[name] for row in rows] for rows in courses]
        chances = [longer(slow, fast) for slow, fast in pairwise(values)]
        print(f"{name:26s}", *(f"{chance:8.3f}" for chance in chances), f"{np.mean(chances):8.3f}")
