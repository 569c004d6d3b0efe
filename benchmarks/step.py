"""What a comparison costs: ratios, measured in one run, and how cost grows with dimension and with time.

Each figure is the least of several runs of CPU time, so that a busy machine disturbs it little.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from ocelad import MetricTracker

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from literal import Literal
from streams import comparisons

RUNS = 3


def cpu_seconds(work: Callable[[], object]) -> float:
    """The least CPU time of several runs."""
    times = []
    for _ in range(RUNS):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def tracker_cost(n: int, steps: int) -> float:
    pairs, y = comparisons(seed=0, steps=steps, n=n)
    return cpu_seconds(lambda: MetricTracker().partial_fit(pairs, y))


def literal_cost(n: int, steps: int) -> float:
    pairs, y = comparisons(seed=0, steps=steps, n=n)

    def work() -> None:
        literal = Literal(n, step=8.0, strength=0.02, base=8, threshold_step=0.1, combiner="share", scale="auto")
        for (x, z), label in zip(pairs, y, strict=True):
            literal.update(x - z, label)

    return cpu_seconds(work)


def main() -> None:
    results: dict[str, float] = {}
    print("literal reference / tracker, 500 comparisons each: above 1 the tracker is faster")
    for n in (5, 25, 100):
        ratio = literal_cost(n, 500) / tracker_cost(n, 500)
        results[f"literal/tracker n={n}"] = ratio
        print(f"  n = {n:<4} {ratio:6.2f}")
    print("growth with dimension, 300 comparisons: cost relative to n = 25")
    base = tracker_cost(25, 300)
    for n in (50, 100, 200):
        ratio = tracker_cost(n, 300) / base
        exponent = np.log(ratio) / np.log(n / 25)
        results[f"n={n} / n=25"] = ratio
        print(f"  n = {n:<4} {ratio:6.1f}   (n^{exponent:.1f})")
    print("growth with time at n = 10: cost per comparison relative to the first 1,000")
    first = tracker_cost(10, 1000) / 1000
    for steps in (4000, 16000):
        ratio = tracker_cost(10, steps) / steps / first
        levels = (np.log2((steps + 8) / 8) + 1) / (np.log2(1008 / 8) + 1)
        results[f"t={steps} / t=1000"] = ratio
        print(f"  t = {steps:<6} {ratio:5.2f}   (levels: {levels:.2f})")
    out = Path(__file__).with_suffix(".json")
    out.write_text(json.dumps(results, indent=1))
    print(f"written to {out}")


if __name__ == "__main__":
    main()
