"""What single calls cost, and blocks beside them: CPU time, the least of several runs, with one BLAS thread.

Figures in microseconds depend on the machine; ``--against`` measures another checkout in the same run, in turns,
and prints the ratio.

    python benchmarks/calls.py [--against CHECKOUT/src] [--tracker pool]

Trackers are RICE alone, which earlier checkouts have too, or the default, a pool of experts.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from drifting import clusters, embeddings
from scipy.sparse import csr_array

from ocelad import FixedShare, GradientDescent, MetricTracker, Ocelad, Rice, on_intervals
from ocelad.neighbors import MovingIndex

FIRST, SINGLE = 1024, 300
Stream = tuple[Any, Any]
MAKERS: dict[str, Callable[[], MetricTracker]] = {
    "rice": getattr(MetricTracker, "rice", MetricTracker),
    "pool": MetricTracker,
}
new: Callable[[], MetricTracker] = MAKERS["rice"]


def least(prepare: Callable[[], Callable[[], object]], count: int, runs: int = 4) -> float:
    """Microseconds of each of ``count`` things that are done in one go."""
    times = []
    for _ in range(runs):
        work = prepare()
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times) / count * 1e6


def stream(n: int, steps: int) -> Stream:
    pairs, y, _ = clusters(steps) if n == 25 else embeddings(steps, n)
    return pairs, y


def predict_and_learn(given: Callable[[slice], Any], y: Any) -> float:
    """The loop of the README, after some comparisons have been learned."""
    singles = [(given(slice(k, k + 1)), y[k : k + 1]) for k in range(FIRST, FIRST + SINGLE)]

    def prepare() -> Callable[[], object]:
        tracker = new().partial_fit(given(slice(FIRST)), y[:FIRST])
        tracker.predict(singles[0][0])

        def loop() -> None:
            for pair, label in singles:
                tracker.predict(pair)
                tracker.partial_fit(pair, label)

        return loop

    return least(prepare, SINGLE)


def blocks(n: int, size: int = 256) -> float:
    pairs, y = stream(n, FIRST + 4 * size)

    def prepare() -> Callable[[], object]:
        tracker = new().partial_fit(pairs[:FIRST], y[:FIRST])
        parts = [slice(k, k + size) for k in range(FIRST, FIRST + 4 * size, size)]
        return lambda: [tracker.partial_fit(pairs[part], y[part]) for part in parts]

    return least(prepare, 4 * size, runs=6)


def sparse_points(rng: np.random.Generator, count: int, n: int) -> csr_array:
    rows = np.repeat(np.arange(count), 10)
    columns = np.concatenate([rng.choice(n, size=10, replace=False) for _ in range(count)])
    return csr_array((rng.normal(size=10 * count), (rows, columns)), shape=(count, n))


def sparse(predicts: bool, n: int = 100_000, before: int = 300, count: int = 100) -> float:
    """20 nonzeros of many features, a comparison per call."""
    rng = np.random.default_rng(0)
    X, Z = sparse_points(rng, before + count, n), sparse_points(rng, before + count, n)
    y = rng.choice([-1, 1], size=before + count)
    singles = [((X[[k]], Z[[k]]), y[k : k + 1]) for k in range(before, before + count)]

    def prepare() -> Callable[[], object]:
        tracker = new().partial_fit((X[:before], Z[:before]), y[:before])
        tracker.predict(singles[0][0])

        def loop() -> None:
            for pair, label in singles:
                if predicts:
                    tracker.predict(pair)
                tracker.partial_fit(pair, label)

        return loop

    return least(prepare, count, runs=2)


def neighbours(n: int = 384, points: int = 5000, queries: int = 40) -> float:
    """A search after each comparison; the median, for now and then the points are projected again."""
    pairs, y = stream(n, FIRST + points)
    tracker = new().partial_fit(pairs[:FIRST], y[:FIRST])
    index = MovingIndex(tracker)
    index.add(pairs[FIRST : FIRST + points, 0])
    index.kneighbors(pairs[:1, 0])
    times = []
    for k in range(queries):
        tracker.partial_fit(pairs[k : k + 1], y[k : k + 1])
        start = time.process_time()
        index.kneighbors(pairs[k : k + 1, 1])
        times.append(time.process_time() - start)
    return float(np.median(times)) * 1e6


class AbsoluteError:
    """|x'theta - target|."""

    def __init__(self, x: Any, target: float) -> None:
        self.x, self.target = x, target

    def __call__(self, theta: Any) -> float:
        return abs(float(self.x @ theta) - self.target)

    def gradient(self, theta: Any) -> Any:
        return np.sign(float(self.x @ theta) - self.target) * self.x


def black_boxes(n: int = 20, steps: int = 4096, last: int = 500) -> float:
    """A step of Algorithm 1 over gradient descents, in Python."""
    rng = np.random.default_rng(0)
    losses = [AbsoluteError(rng.normal(size=n), float(rng.normal())) for _ in range(steps)]
    ocelad = Ocelad(Rice(on_intervals(GradientDescent, np.zeros(n), step=1.0)), FixedShare())
    for loss in losses[:-last]:
        ocelad.update(loss)
    start = time.process_time()
    for loss in losses[-last:]:
        ocelad.update(loss)
    return (time.process_time() - start) / last * 1e6


def dense(n: int) -> float:
    pairs, y = stream(n, FIRST + SINGLE)
    return predict_and_learn(lambda part: pairs[part], y)


MEASURES: dict[str, Callable[[], float]] = {
    **{f"predict and learn, n = {n}": lambda n=n: dense(n) for n in (25, 384, 1536)},  # type: ignore[misc]
    "predict and learn, 20 of 100,000 features": lambda: sparse(predicts=True),
    "learn, 20 of 100,000 features": lambda: sparse(predicts=False),
    "k-NN of 5,000 x 384 after a comparison": neighbours,
    **{f"blocks of 256, n = {n}": lambda n=n: blocks(n) for n in (25, 60, 194, 384, 768)},  # type: ignore[misc]
    "a step of black boxes, n = 20": black_boxes,
}


def elsewhere(source: str, name: str, tracker: str) -> float:
    """The same measure with the package of another checkout."""
    path = os.pathsep.join([source, os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, __file__, "--only", name, "--tracker", tracker]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, stdout=subprocess.PIPE, check=True)
    return float(json.loads(done.stdout))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", help="the src folder of another checkout")
    parser.add_argument("--tracker", choices=MAKERS, default="rice", help="which tracker, here and there")
    parser.add_argument("--only", help=argparse.SUPPRESS)
    given = parser.parse_args()
    global new
    new = MAKERS[given.tracker]
    if given.only:
        print(json.dumps(MEASURES[given.only]()))
        return
    for name, measure in MEASURES.items():
        here, line = measure(), f"{name:<45}"
        if given.against:
            there = elsewhere(given.against, name, given.tracker)
            here = min(here, measure())
            print(f"{line} {here:9.1f} us   there / here {there / here:6.2f}", flush=True)
        else:
            print(f"{line} {here:9.1f} us", flush=True)


if __name__ == "__main__":
    main()
