"""What no matrix can tell: error of ``predict`` with and without experts on feature maps.

    python benchmarks/bending.py --first 0 --seeds 8

XOR: four clouds, alike are those at opposite corners; rings: three of them; moons: scikit-learn's; parity: its
digits, alike are even ones and odd ones. The error on 2,000 new pairs after 1,000 comparisons, by the distance
(``predict``) and by the mixture (``mixture_proba``); then AUC and log loss of what was predicted on the paper's
synthetic stream, where a matrix is right. Means over seeds and their standard errors.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from sklearn.datasets import load_digits, make_moons
from sklearn.metrics import roc_auc_score

from ocelad import MetricTracker
from ocelad.data import blocks
from ocelad.studies import Study
from ocelad.watch.prequential import progressive

COMPARISONS, NEW = 1000, 2000


def xor(rng: np.random.Generator, count: int) -> tuple[Any, Any]:
    corner = rng.integers(2, size=(count, 2))
    return 2 * corner - 1 + 0.4 * rng.normal(size=(count, 2)), corner[:, 0] ^ corner[:, 1]


def rings(rng: np.random.Generator, count: int) -> tuple[Any, Any]:
    ring, angle = rng.integers(3, size=count), rng.uniform(0, 2 * np.pi, size=count)
    radius = 1 + ring + 0.1 * rng.normal(size=count)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]), ring


def moons(rng: np.random.Generator, count: int) -> tuple[Any, Any]:
    X, moon = make_moons(count, noise=0.1, random_state=int(rng.integers(2**31)))
    return X, moon


def parity(rng: np.random.Generator, count: int) -> tuple[Any, Any]:
    X, digit = load_digits(return_X_y=True)
    drawn = rng.integers(len(X), size=count)
    return X[drawn] / 16.0, digit[drawn] % 2


def compared(draw: Callable[..., tuple[Any, Any]], rng: np.random.Generator, count: int) -> tuple[Any, Any]:
    X, kind = draw(rng, 2 * count)
    return X.reshape(count, 2, -1), np.where(kind[::2] == kind[1::2], 1, -1)


def errors(draw: Callable[..., tuple[Any, Any]], seed: int) -> list[float]:
    rng, found = np.random.default_rng(seed), []
    (pairs, y), (new, truth) = compared(draw, rng, COMPARISONS), compared(draw, rng, NEW)
    for nonlinear in (False, True):
        tracker = MetricTracker(nonlinear=nonlinear).partial_fit(pairs, y)
        by_mixture = np.where(tracker.mixture_proba(new)[:, 1] >= 0.5, 1, -1)
        found += [float(np.mean(tracker.predict(new) != truth)), float(np.mean(by_mixture != truth))]
    return found


def synthetic(trial: int) -> list[float]:
    study = Study(methods=("ocelad",))
    data, _, rng = study.world(trial)
    parts = [(block.pairs.copy(), block.y.copy()) for block in blocks(data, rng, 49, study.segments)]
    pairs, y = (np.concatenate(part) for part in zip(*parts, strict=True))
    found = []
    for nonlinear in (False, True):
        seen = progressive(MetricTracker(nonlinear=nonlinear), pairs, y)
        found += [float(roc_auc_score(y, seen.probability)), float(seen.log_loss(y).mean())]
    return found


def show(name: str, rows: list[list[float]], words: tuple[str, ...]) -> None:
    table = np.array(rows)
    error = table.std(axis=0, ddof=1) / len(rows) ** 0.5 if len(rows) > 1 else np.full(table.shape[1], np.nan)
    numbers = [
        f"{word} {mean:.4f} ± {own:.4f}" for word, mean, own in zip(words, table.mean(axis=0), error, strict=True)
    ]
    print(f"{name:8s}", "  ".join(numbers), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", default=0, type=int, help="The first seed, and the first trial.")
    parser.add_argument("--seeds", default=8, type=int)
    chosen = parser.parse_args()
    seeds = range(chosen.first, chosen.first + chosen.seeds)
    words = ("linear: predict", "mixture", "nonlinear: predict", "mixture")
    for name, draw in (("XOR", xor), ("rings", rings), ("moons", moons), ("parity", parity)):
        show(name, [errors(draw, seed) for seed in seeds], words)
    words = ("linear: AUC", "log loss", "nonlinear: AUC", "log loss")
    show("S", [synthetic(seed) for seed in seeds], words)


if __name__ == "__main__":
    main()
