"""What a query costs under a moving metric: ratios, measured in one run.

Each figure is the least of several runs of CPU time, so that a busy machine disturbs it little.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from ocelad.neighbors import MovingIndex
from ocelad.protocols import Array

RUNS, N, FEATURES, RANK, K = 5, 100_000, 100, 10, 10


class Given:
    """A metric of low rank that moves when it is told to."""

    mu_ = 1.0

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.move()

    def move(self) -> None:
        B = self.rng.normal(size=(RANK, FEATURES))
        self.M: Array = B.T @ B

    def get_mahalanobis_matrix(self) -> Array:
        return self.M


def cpu_seconds(work: Callable[[], object], before: Callable[[], object] = lambda: None) -> float:
    """The least CPU time of several runs, each after some preparation that does not count."""
    times = []
    for _ in range(RUNS):
        before()
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def recomputed(M: Array, X: Array, queries: Array) -> Array:
    """Project everything, measure everything."""
    s, V = np.linalg.eigh(M)
    L = (V * np.sqrt(np.maximum(s, 0.0)))[:, -RANK:]
    Z = X @ L
    nearest = [np.argpartition(((Z - q @ L) ** 2).sum(axis=1), K)[:K] for q in queries]
    return np.array(nearest)


def measured_one_by_one(M: Array, X: Array, queries: Array) -> Array:
    """The definition: (x - q)' M (x - q) for every point."""
    nearest = []
    for q in queries:
        u = X - q
        nearest.append(np.argpartition(np.einsum("ij,ij->i", u @ M, u), K)[:K])
    return np.array(nearest)


def main() -> None:
    rng = np.random.default_rng(0)
    X, metric = rng.normal(size=(N, FEATURES)), Given(rng)
    index = MovingIndex(metric)
    index.add(X)
    print(f"{N:,} points, {FEATURES} features, metric of rank {RANK}, k = {K}: above 1 the index is faster")
    for m in (1, 100):
        queries = rng.normal(size=(m, FEATURES))
        index.kneighbors(queries, K)
        still = cpu_seconds(lambda q=queries: index.kneighbors(q, K))  # type: ignore[misc]
        moving = cpu_seconds(lambda q=queries: index.kneighbors(q, K), metric.move)  # type: ignore[misc]
        naive = cpu_seconds(lambda q=queries: recomputed(metric.M, X, q))  # type: ignore[misc]
        definition = cpu_seconds(lambda q=queries[:5]: measured_one_by_one(metric.M, X, q)) * m / len(queries[:5])  # type: ignore[misc]
        print(f"  {m:>3} queries at a time, the metric at rest: projecting again / index {naive / still:8.1f}")
        print(f"  {m:>3} queries at a time, moved each time:    projecting again / index {naive / moving:8.1f}")
        print(
            f"  {m:>3} queries at a time, the metric at rest: (x-q)'M(x-q)     / index {definition / still:8.1f}"
        )
    exported = index.export()[0].shape
    metric.move()
    projecting = cpu_seconds(lambda: index.kneighbors(queries[:1], K), metric.move)
    print(
        f"  'moved' since an export of shape {exported} / a search that projects again "
        f"{cpu_seconds(lambda: index.moved) / projecting:.2f}"
    )


if __name__ == "__main__":
    main()
