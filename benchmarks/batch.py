"""Batch metrics and nearest neighbours: the error of 5-NN on points that the metric has not seen.

Runs ours, and metric-learn's LMNN, ITML and MMC with their defaults where metric-learn can be imported (it needs
an environment of its own: ``pip install metric-learn==0.7.0 scikit-learn==1.5.2``, in which ours is left out).
Splits and pairs are drawn from the same seeds in both: ITML and MMC see 20 c^2 similar and as many different pairs
of training points, c being the number of classes. Prints means in per cent with standard errors over the splits.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

DATA = {"iris": load_iris, "wine": load_wine, "digits": load_digits}
Learn = Callable[[Any, Any, int], Any]


def from_labels(metric: Any, X: Any, y: Any, seed: int) -> Any:  # noqa: ARG001
    return metric.fit(X, y).components_


def from_pairs(metric: Any, X: Any, y: Any, seed: int) -> Any:
    rng, count = np.random.default_rng(seed), 20 * len(np.unique(y)) ** 2
    drawn: dict[bool, list[Any]] = {True: [], False: []}
    while min(len(drawn[True]), len(drawn[False])) < count:
        i, j = rng.choice(len(X), size=2, replace=False)
        drawn[bool(y[i] == y[j])].append((i, j))
    rows = np.array(drawn[True][:count] + drawn[False][:count])
    return metric.fit(X[rows], np.repeat([1, -1], count)).components_


def methods() -> dict[str, Learn]:
    found: dict[str, Learn] = {"Euclid": lambda X, *_: np.eye(X.shape[1])}
    try:
        from ocelad.baselines import ITML, LDA, LMNN, MMC, NCA, PCA
    except ImportError as error:
        print(f"ours is left out: {error}")
    else:
        found |= {"LMNN": partial(from_labels, LMNN())}
        found |= {"ITML": partial(from_pairs, ITML()), "ITML(gamma=1)": partial(from_pairs, ITML(gamma=1.0))}
        found |= {"MMC": partial(from_pairs, MMC()), "MMC(barrier=0)": partial(from_pairs, MMC(barrier=0.0))}
        found |= {"NCA": partial(from_labels, NCA()), "LDA": partial(from_labels, LDA())}
        found |= {"PCA(whiten=True)": partial(from_labels, PCA(whiten=True))}
    try:
        import metric_learn
    except ImportError as error:
        print(f"metric-learn is left out: {error}")
    else:
        found |= {"metric-learn LMNN": partial(from_labels, metric_learn.LMNN())}
        found |= {"metric-learn ITML": partial(from_pairs, metric_learn.ITML())}
        found |= {"metric-learn MMC": partial(from_pairs, metric_learn.MMC())}
    return found


def errors(X: Any, y: Any, scaled: bool, learn: Learn, splits: int) -> Any:
    """The error of each split, in per cent."""
    missed = []
    for seed, (train, test) in enumerate(
        StratifiedShuffleSplit(splits, test_size=0.3, random_state=0).split(X, y)
    ):
        A, B = X[train], X[test]
        if scaled:
            scaler = StandardScaler().fit(A)
            A, B = scaler.transform(A), scaler.transform(B)
        L = learn(A, y[train], seed)
        missed.append(1.0 - KNeighborsClassifier(5).fit(A @ L.T, y[train]).score(B @ L.T, y[test]))
    return 100.0 * np.array(missed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="+", choices=DATA, default=list(DATA), help="which datasets")
    parser.add_argument(
        "--splits", type=int, default=20, help="how many random splits, 30 %% of the points for testing"
    )
    parser.add_argument("--methods", nargs="+", default=None, help="which methods, by the names in the table")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    for method, learn in methods().items():
        if given.methods is not None and method not in given.methods:
            continue
        for name in given.data:
            X, y = DATA[name](return_X_y=True)
            for scaled in (False, True):
                start = time.process_time()
                kind = "z-scored" if scaled else "raw"
                try:
                    e = errors(X, y, scaled, learn, given.splits)
                except np.linalg.LinAlgError as failure:
                    print(f"{name:7}{kind:9}{method:20} fails: {failure}", flush=True)
                    continue
                seconds = (time.process_time() - start) / given.splits
                error = e.std(ddof=1) / np.sqrt(len(e)) if len(e) > 1 else np.nan
                print(f"{name:7}{kind:9}{method:20}{e.mean():6.2f} ± {error:.2f}  {seconds:7.2f} s", flush=True)


if __name__ == "__main__":
    main()
