"""Labelled streams from tables: is the tracker as good as the best of seven fixed rates, chosen afterwards?

    python benchmarks/streams.py readings.csv.gz --group batch --label y --seeds 5

Rows are shuffled within their groups, features are brought to sign(x) log(1 + |x|) and standardised by the first
200 rows, and each row is compared with one drawn from those of its group among the 128 before it. Every comparison
is predicted before it is learned; the AUC is exact, over the whole stream, of the score d^2 / mu. Fixed rates have
the tracker's other settings, with capped steps or without, or the paper's (strength .01, the threshold's step as
long as the metric's). Compare like with like: the cautious tracker, whose steps are capped, with capped rates.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from functools import partial
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from sklearn.metrics import roc_auc_score
from tqdm import tqdm

from ocelad import MetricTracker, NuclearNorm, Step
from ocelad.data.tables import Columns, matching, parsed, read_rows
from ocelad.protocols import Array
from ocelad.tracker.pair_sampling import partners
from ocelad.watch.prequential import progressive

RATES = (2.0, 1.0, 0.5, 0.25, 0.125, 0.0625, 0.03125)
NEVER = 2**40  # the length of an interval that does not end, so that a fixed rate runs compiled, too


def fixed(rate: float, threshold: float = 0.1, capped: bool = False, strength: float = 0.02) -> MetricTracker:
    """COMID at one rate: RICE with a single, endless level."""
    step = Step(rate * NEVER**0.5, threshold, capped)
    return MetricTracker(base=NEVER, step=step, regularizer=NuclearNorm(strength))


def methods() -> dict[str, Callable[[], MetricTracker]]:
    return {
        "ocelad": MetricTracker,
        "the paper's setting": lambda: MetricTracker.paper().set_params(scale="auto"),
        "cautious": MetricTracker.cautious,
        **{f"fixed rate {rate:g}": partial(fixed, rate) for rate in RATES},
        **{f"fixed rate {rate:g}, capped": partial(fixed, rate, capped=True) for rate in RATES},
        **{f"fixed rate {rate:g}, paper's": partial(fixed, rate, threshold=1.0, strength=0.01) for rate in RATES},
    }


def table(path: str, group: str, label: str) -> tuple[Any, Any, Any]:
    """Points, labels and groups."""
    rows = read_rows(path)
    names = [name for name in matching(rows.header, ["*"]) if name not in (group, label)]
    points, words = Columns.of(rows.header, names), Columns.of(rows.header, [label, group])
    found = [each for piece in parsed(rows, lambda row: (points.numbers(row), words.words(row))) for each in piece]
    X = np.array([numbers for numbers, _ in found])
    X = np.sign(X) * np.log1p(np.abs(X))
    X = (X - X[:200].mean(axis=0)) / (X[:200].std(axis=0) + 1e-12)
    labels, groups = np.array([pair for _, pair in found]).T
    return X, np.unique(labels, return_inverse=True)[1], groups


def comparisons(X: Any, labels: Any, groups: Any, seed: int) -> tuple[Any, Any]:
    rng = np.random.RandomState(seed)
    starts = np.flatnonzero(groups[1:] != groups[:-1]) + 1
    order = np.concatenate([rng.permutation(part) for part in np.split(np.arange(len(X)), starts)])
    X, labels, groups = X[order], labels[order], groups[order]
    new, old = partners(labels, 0, "random", memory=128, count=1, rng=rng, groups=groups)
    return np.stack([X[new], X[old]], axis=1), np.where(labels[new] == labels[old], 1, -1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", help="CSV, JSON lines or Parquet: a group, features, and a label.")
    parser.add_argument("--group", required=True, help="Column within which rows are compared.")
    parser.add_argument("--label", required=True, help="Column of which equal words mean similar.")
    parser.add_argument("--seeds", default=5, type=int, help="How many draws of orders and pairs.")
    chosen = parser.parse_args()
    data = table(chosen.table, chosen.group, chosen.label)
    trials = [comparisons(*data, seed) for seed in range(chosen.seeds)]
    print(f"{len(trials[0][1])} comparisons, {np.mean(trials[0][1] > 0):.2f} similar, {data[0].shape[1]} features")
    aucs: dict[str, Array] = {}
    for name, make in tqdm(methods().items()):
        own = []
        for pairs, y in trials:
            seen = progressive(make(), pairs, y)
            score = seen.squared_distance / seen.threshold
            own.append([roc_auc_score(y, -score), np.mean(seen.similar == (y > 0))])
        aucs[name] = np.array(own).T
    best = max((name for name in aucs if name.startswith("fixed")), key=lambda name: aucs[name][0].mean())
    for name, (auc, accuracy) in aucs.items():
        gap = auc - aucs[best][0]
        print(
            f"{name:26s} AUC {auc.mean():.4f}  accuracy {accuracy.mean():.4f}  "
            f"AUC less the best's {gap.mean():+.4f} ({gap.min():+.4f} to {gap.max():+.4f})"
            f"{'  <- the best' if name == best else ''}"
        )


if __name__ == "__main__":
    main()
