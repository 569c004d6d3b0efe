"""How large a tracker is as bytes, and how long dumping and loading it takes, with pickle beside it in one run.

    python benchmarks/bytes.py [--features 25] [--comparisons 2000]

Times are the best of many short rounds, so that other processes do not count; ratios are to pickle's.
"""

from __future__ import annotations

import argparse
import pickle
import time
from collections.abc import Callable

import numpy as np

import ocelad

ROUNDS, CALLS = 1000, 4


def best(call: Callable[[], object]) -> float:
    """Milliseconds."""
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in range(CALLS):
            call()
        times.append((time.perf_counter() - start) / CALLS)
    return 1e3 * min(times)


def stream(n: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Comparisons whose notion of similarity turns slowly, so that all levels have something to learn."""
    rng = np.random.default_rng(0)
    pairs, turn = rng.normal(size=(m, 2, n)), np.linspace(0.0, 4.0, m)[:, None] + np.arange(n)
    squares = np.square((pairs[:, 0] - pairs[:, 1]) * np.maximum(np.cos(turn), 0.0)).sum(axis=1)
    return pairs, np.where(squares < np.median(squares), 1, -1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--features", type=int, default=25)
    parser.add_argument("--comparisons", type=int, default=2000)
    parser.add_argument("--memory", type=int, help="Of a pool of experts; without it, RICE alone.")
    given = parser.parse_args()
    new = ocelad.MetricTracker.rice() if given.memory is None else ocelad.MetricTracker(memory=given.memory)
    tracker = new.partial_fit(*stream(given.features, given.comparisons))
    data, other = ocelad.dumps(tracker), pickle.dumps(tracker)
    assert ocelad.dumps(ocelad.loads(data)) == data
    rows = (
        ("kB", len(data) / 1e3, len(other) / 1e3),
        ("dump, ms", best(lambda: ocelad.dumps(tracker)), best(lambda: pickle.dumps(tracker))),
        ("load, ms", best(lambda: ocelad.loads(data)), best(lambda: pickle.loads(other))),
    )
    print(f"n = {given.features}, t = {given.comparisons}")
    print(f"{'':10}{'ocelad':>10}{'pickle':>10}{'ratio':>10}")
    for name, ours, theirs in rows:
        print(f"{name:10}{ours:10.3f}{theirs:10.3f}{ours / theirs:10.2f}")


if __name__ == "__main__":
    main()
