"""A learned distance for a river k-NN, for users of river whose features do not all matter equally.

    python examples/river_pipeline.py [--points 1000] [--seeds 4]

river's image segments come one by one, in random order: seven classes, 18 features. Each is classified by the 100
points before it, scored, and then learned. The distance is Euclid's, or is learned from the same stream by
`MetricTransformer`. Needs the extra `river`.
"""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Hashable

import numpy as np
from river import datasets, metrics, neighbors, preprocessing

from ocelad.compat.river import MetricTransformer

Point = dict[Hashable, float]


def accuracies(learned: bool, points: int, seed: int) -> tuple[float, float]:
    """The share of right classifications, each before the point was learned, in both halves of a stream."""
    stream = list(datasets.ImageSegments())
    random.Random(seed).shuffle(stream)
    scaler = preprocessing.StandardScaler()
    metric = MetricTransformer(max_features=18, shared_columns=0, seed=seed)  # a column for each feature is enough

    def euclid(x: Point, z: Point) -> float:
        return math.dist(list(x.values()), list(z.values()))

    def learned_distance(x: Point, z: Point) -> float:  # a function: river would copy a bound method's object
        return metric.distance_one(x, z)

    # The metric moves, so the search stores original points and measures them by the metric as it is now.
    engine = neighbors.LazySearch(window_size=100, dist_func=learned_distance if learned else euclid)
    model = neighbors.KNNClassifier(n_neighbors=5, engine=engine)
    halves = metrics.Accuracy(), metrics.Accuracy()
    for t, (x, y) in enumerate(stream[:points]):
        scaler.learn_one(x)
        scaled = scaler.transform_one(x)
        halves[2 * t // points].update(y, model.predict_one(scaled))  # predict, score ...
        model.learn_one(scaled, y)  # ... learn
        if learned:
            metric.learn_one(scaled, y)
    return halves[0].get(), halves[1].get()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--points", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=4)
    given = parser.parse_args()

    table = {
        name: np.array([accuracies(learned, given.points, seed) for seed in range(given.seeds)])
        for name, learned in (("Euclid", False), ("learned", True))
    }
    table["difference"] = table["learned"] - table["Euclid"]  # on the same streams
    print(f"accuracy of 5-NN, {given.seeds} orders of {given.points} points: mean and standard error")
    print(f"{'distance':12}{'first half':>17}{'second half':>17}")
    for name, runs in table.items():
        error = runs.std(axis=0, ddof=1) / math.sqrt(given.seeds)
        cells = (f"{m:.3f} ± {e:.3f}" for m, e in zip(runs.mean(axis=0), error, strict=True))
        print(f"{name:12}", *(f"{cell:>16}" for cell in cells))


if __name__ == "__main__":
    main()
