"""A learned metric in a scikit-learn pipeline, its options chosen by grid search, for users of scikit-learn.

    python examples/grid_search.py [--folds 5] [--data wine digits]

Nearest neighbours classify three of scikit-learn's data sets, by Euclid's distance and by a learned one. A
grid search chooses the options of each pipeline on the training folds alone; the outer folds judge its choice.
Where nearly all features matter, as the pixels of digits do, Euclid's distance may be better than a learned one.
"""

from __future__ import annotations

import argparse
import math
from typing import Any

from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from ocelad import MetricTracker, SupervisedMetricTracker

DATA = {"wine": load_wine, "breast cancer": load_breast_cancer, "digits": load_digits}


def euclid() -> GridSearchCV:
    """Scale, and classify."""
    steps: list[Any] = [("scale", StandardScaler()), ("nearest", KNeighborsClassifier())]
    return GridSearchCV(Pipeline(steps), {"nearest__n_neighbors": [1, 5]}, cv=3)


def learned() -> GridSearchCV:
    """The same with a metric between, which is a transformer; the options of its tracker are options like any."""
    metric = SupervisedMetricTracker(MetricTracker(), random_state=0)
    steps: list[Any] = [("scale", StandardScaler()), ("metric", metric), ("nearest", KNeighborsClassifier())]
    grid = {
        "metric__pairs_per_point": [1, 4],  # comparisons of each point with earlier ones
        "metric__tracker__scale": ["auto", "features"],  # one unit of length for all features, or one for each
        "nearest__n_neighbors": [1, 5],
    }
    return GridSearchCV(Pipeline(steps), grid, cv=3)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--data", nargs="+", choices=DATA, default=list(DATA))
    given = parser.parse_args()

    outer = StratifiedKFold(given.folds, shuffle=True, random_state=0)
    print(f"accuracy over {given.folds} outer folds: mean and standard error")
    print(f"{'':16}{'Euclid':>15}{'learned':>16}  chosen on all data")
    for name in given.data:
        X, y = DATA[name](return_X_y=True)
        cells = []
        for search in (euclid(), learned()):
            scores = cross_val_score(search, X, y, cv=outer)
            cells.append(f"{scores.mean():.3f} ± {scores.std(ddof=1) / math.sqrt(len(scores)):.3f}")
        chosen = ", ".join(
            f"{option.split('__')[-1]} {value}" for option, value in search.fit(X, y).best_params_.items()
        )
        print(f"{name:16}", *(f"{cell:>15}" for cell in cells), f" {chosen}", flush=True)


if __name__ == "__main__":
    main()
