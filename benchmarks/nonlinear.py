"""What no matrix can tell: error of ``predict`` with and without experts on feature maps.

    python benchmarks/nonlinear.py --first 0 --seeds 8

The notions of examples/bending.py: opposite corners (XOR), rings, moons, even or odd digits. The error on 2,000
new pairs after 1,000 comparisons, by the distance (``predict``) and by the mixture (``mixture_proba``); then AUC
and log loss of what was predicted on the paper's synthetic stream, where a matrix is right. Means over seeds and
their standard errors.
"""

from __future__ import annotations

import argparse
import os
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from sklearn.metrics import roc_auc_score

from ocelad import MetricTracker
from ocelad.data import blocks
from ocelad.studies import Study
from ocelad.watch.prequential import progressive

COMPARISONS, NEW = 1000, 2000
EXAMPLE = runpy.run_path(str(Path(__file__).parent.parent / "examples" / "bending.py"))


def errors(draw: Callable[..., tuple[Any, Any]], seed: int) -> list[float]:
    rng, found = np.random.default_rng(seed), []
    (pairs, y), (new, truth) = (EXAMPLE["compared"](draw, rng, count) for count in (COMPARISONS, NEW))
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
    print(f"{name:18s}", "  ".join(numbers), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", default=0, type=int, help="The first seed, and the first trial.")
    parser.add_argument("--seeds", default=8, type=int)
    chosen = parser.parse_args()
    seeds = range(chosen.first, chosen.first + chosen.seeds)
    words = ("linear: predict", "mixture", "nonlinear: predict", "mixture")
    for name, draw in EXAMPLE["NOTIONS"].items():
        show(name, [errors(draw, seed) for seed in seeds], words)
    words = ("linear: AUC", "log loss", "nonlinear: AUC", "log loss")
    show("S", [synthetic(seed) for seed in seeds], words)


if __name__ == "__main__":
    main()
