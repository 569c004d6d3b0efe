"""Real streams: how well a pool of experts, RICE alone and the best of seven fixed rates predict.

    python benchmarks/streams.py --keystroke keystroke.csv.gz --gas gas.csv.gz --digits --seeds 5
    python benchmarks/streams.py --elec2 elec2.csv.gz --outdoor outdoor.csv.gz --minilm embeddings.npz
    python benchmarks/streams.py --digits --seeds 1 --scale
    python benchmarks/streams.py --digits --keystroke keystroke.csv.gz --nonlinear

Of tables, features are brought to sign(x) log(1 + |x|) and standardised by the first 200 rows; an .npz has arrays
"points" and "label". Rows of keystroke and gas are shuffled within their groups, in whose order they stay, and
only rows of a group meet; the others keep their order. Each row is compared with one drawn from the 128 before it.
The digits are scikit-learn's, three times over in a new order each: similar is the same digit, then the same
parity, then the same digit again. Every comparison is predicted before it is learned. Printed are means over seeds
and their standard errors: the AUC by the probability and by the margin mu - d^2, the accuracy after 500
comparisons beside that of the more frequent label, and the expected calibration error (ten bins) in the second
half. RICE and fixed rates have no calibrated probability: theirs is 1 / (1 + exp(d^2 - mu)).

With --scale, pools with scale="auto" and scale="features" are compared instead, on each stream and on the same
stream with each feature multiplied by its own e^(1.5 z), z normal. With --nonlinear, a pool with experts on
feature maps is compared with one without; the last column is the time that it takes.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from functools import partial
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from scipy.special import expit
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score

from ocelad import MetricTracker, Step
from ocelad.data.tables import Columns, matching, parsed, read_rows
from ocelad.pair_sampling import partners
from ocelad.watch.prequential import progressive

RATES = (2.0, 1.0, 0.5, 0.25, 0.125, 0.0625, 0.03125)
NEVER = 2**40  # the length of an interval that does not end, so that a fixed rate runs compiled, too
GROUPS = {"keystroke": "session", "gas": "batch", "elec2": None, "outdoor": None}
MEASURES = ("AUC", "AUC of margin", "accuracy", "majority", "calibration")

Stream = tuple[Any, Any]  # pairs and labels


def fixed(rate: float) -> MetricTracker:
    """COMID at one rate: RICE with a single, endless level."""
    return MetricTracker.rice().set_params(base=NEVER, step=Step(rate * NEVER**0.5))


def table(path: str, group: str | None) -> tuple[Any, Any, Any]:
    """Points, labels (column y) and groups."""
    rows = read_rows(path)
    points = Columns.of(rows.header, matching(rows.header, ["f*"]))
    words = Columns.of(rows.header, ["y", group] if group else ["y"])
    found = [each for piece in parsed(rows, lambda row: (points.numbers(row), words.words(row))) for each in piece]
    X = np.array([numbers for numbers, _ in found])
    X = np.sign(X) * np.log1p(np.abs(X))
    X = (X - X[:200].mean(axis=0)) / (X[:200].std(axis=0) + 1e-12)
    said = np.array([own for _, own in found])
    return X, said[:, 0], said[:, 1] if group else None


def compared(X: Any, labels: Any, groups: Any, seed: int) -> Stream:
    rng = np.random.RandomState(seed)
    if groups is not None:
        starts = np.flatnonzero(groups[1:] != groups[:-1]) + 1
        order = np.concatenate([rng.permutation(part) for part in np.split(np.arange(len(X)), starts)])
        X, labels, groups = X[order], labels[order], groups[order]
    else:
        groups = np.zeros(len(X), dtype=int)
    labels = np.unique(labels, return_inverse=True)[1]
    new, old = partners(labels, 0, "random", memory=128, count=1, rng=rng, groups=groups)
    return np.stack([X[new], X[old]], axis=1), np.where(labels[new] == labels[old], 1, -1)


def from_table(path: str, group: str | None, seed: int) -> Stream:
    return compared(*table(path, group), seed)


def embedded(path: str, seed: int) -> Stream:
    with np.load(path, allow_pickle=False) as found:
        return compared(found["points"].astype(np.float64), found["label"], None, seed)


def digits(seed: int) -> Stream:
    X, digit = load_digits(return_X_y=True)
    rng, parts = np.random.RandomState(seed), []
    for part, labels in enumerate((digit, digit % 2, digit)):
        order = rng.permutation(len(X))
        parts.append(compared(X[order] / 16.0, labels[order], None, seed + 10 * part))
    return np.concatenate([pairs for pairs, _ in parts]), np.concatenate([y for _, y in parts])


def measures(tracker: MetricTracker, stream: Stream) -> list[float]:
    pairs, y = stream
    seen = progressive(tracker, pairs, y)
    margin = seen.threshold - seen.squared_distance
    p = expit(margin) if np.isnan(seen.probability).any() else seen.probability
    similar, late, half = y > 0, slice(500, None), slice(len(y) // 2, None)
    score = margin if np.isnan(seen.probability).any() else p  # no ties where the logistic function is flat
    share = np.mean(similar[late])
    bins = np.minimum((10 * p[half]).astype(int), 9)
    off = np.abs(np.bincount(bins, p[half] - similar[half])).sum() / len(bins)
    right = np.mean((p >= 0.5)[late] == similar[late])
    return [roc_auc_score(y, score), roc_auc_score(y, margin), right, max(share, 1.0 - share), off]


def badly_scaled(stream: Stream, seed: int) -> Stream:
    pairs, y = stream
    return pairs * np.exp(1.5 * np.random.RandomState(seed).normal(size=pairs.shape[2])), y


def report_scales(name: str, make: Callable[[int], Stream], first: int, seeds: int) -> None:
    streams = [make(seed) for seed in range(first, first + seeds)]
    print(
        f"{name}: {len(streams[0][1])} comparisons, {streams[0][0].shape[2]} features, {seeds} seeds from {first}"
    )
    spoiled = [badly_scaled(stream, seed) for seed, stream in enumerate(streams)]
    show(
        {
            f"{scale}, {words}": np.array([measures(MetricTracker(scale=scale), stream) for stream in some])
            for words, some in (("as it is", streams), ("badly scaled", spoiled))
            for scale in ("auto", "features")
        }
    )


def report_nonlinear(name: str, make: Callable[[int], Stream], first: int, seeds: int) -> None:
    found: dict[str, list[list[float]]] = {"linear": [], "nonlinear": []}
    MetricTracker(nonlinear=True).partial_fit(np.zeros((1, 2, 1)), [1])  # compile
    for seed in range(first, first + seeds):
        stream = make(seed)
        for own, tracker in (("linear", MetricTracker()), ("nonlinear", MetricTracker(nonlinear=True))):
            start = time.process_time()
            found[own].append([*measures(tracker, stream), 1e6 * (time.process_time() - start) / len(stream[1])])
    print(f"{name}: {len(stream[1])} comparisons, {stream[0].shape[2]} features, {seeds} seeds from {first}")
    show({own: np.array(rows) for own, rows in found.items()}, (*MEASURES, "microseconds"))


def report(name: str, make: Callable[[int], Stream], first: int, seeds: int) -> None:
    streams = [make(seed) for seed in range(first, first + seeds)]
    print(
        f"{name}: {len(streams[0][1])} comparisons, {streams[0][0].shape[2]} features, {seeds} seeds from {first}"
    )
    methods: dict[str, Callable[[], MetricTracker]] = {"ocelad": MetricTracker, "RICE": MetricTracker.rice}
    methods |= {f"fixed rate {rate:g}": partial(fixed, rate) for rate in RATES}
    found = {own: np.array([measures(start(), stream) for stream in streams]) for own, start in methods.items()}
    best = max((own for own in found if own.startswith("fixed")), key=lambda own: found[own][:, 0].mean())
    show({own: found[own] for own in ("ocelad", "RICE", best)})


def show(found: dict[str, Any], measures: tuple[str, ...] = MEASURES) -> None:
    """Means over seeds, the rows of each method's table, and their standard errors."""
    for own in found:
        seeds = len(found[own])
        errors = found[own].std(axis=0, ddof=1) / seeds**0.5 if seeds > 1 else np.full(len(measures), np.nan)
        columns = zip(measures, found[own].mean(axis=0), errors, strict=True)
        print(f"  {own:22s}", "  ".join(f"{word} {value:.4f} ± {error:.4f}" for word, value, error in columns))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, group in GROUPS.items():
        parser.add_argument(f"--{name}", metavar="TABLE", help="f* and y" + (f" and {group}" if group else ""))
    parser.add_argument("--minilm", metavar="NPZ", help="Arrays points and label.")
    parser.add_argument("--digits", action="store_true")
    parser.add_argument("--seeds", default=5, type=int, help="How many draws of orders and pairs.")
    parser.add_argument("--first", default=0, type=int, help="The first seed.")
    parser.add_argument("--scale", action="store_true", help='Compare scale="auto" and scale="features".')
    parser.add_argument("--nonlinear", action="store_true", help="Compare with experts on feature maps.")
    chosen = parser.parse_args()
    shown = report_scales if chosen.scale else report_nonlinear if chosen.nonlinear else report
    for name, group in GROUPS.items():
        if getattr(chosen, name):
            shown(name, partial(from_table, getattr(chosen, name), group), chosen.first, chosen.seeds)
    if chosen.digits:
        shown("digits", digits, chosen.first, chosen.seeds)
    if chosen.minilm:
        shown("MiniLM", partial(embedded, chosen.minilm), chosen.first, chosen.seeds)


if __name__ == "__main__":
    main()
