"""Fewer answers for the same metric, and fewer still for the groups: which pairs of digits to ask about.

    python examples/asking_digits.py [seeds]

Someone sorts scikit-learn's handwritten digits, and answers whether two of them are alike. Pairs are drawn from
300 digits at random, or chosen by `Queries`; what was learned is judged on pairs of other digits. Then
`GroupQuestions` sorts the 300 completely.
"""

from __future__ import annotations

import sys

import numpy as np
from sklearn.datasets import load_digits

from ocelad import GroupQuestions, MetricTracker, Queries
from ocelad.closure import Closure

ANSWERS = (100, 200, 400, 600)
SEEDS = 4


def learning_curve(candidates: int, seed: int) -> list[float]:
    """The area under the ROC curve after some answers about the best of so many candidates."""
    rng = np.random.default_rng(seed)
    X, digits = load_digits(return_X_y=True)
    order = rng.permutation(len(X))
    X, digits = X[order] / 16, digits[order]
    i, j = rng.integers(300, len(X), size=(2, 2000))
    held_out, truth = np.stack([X[i], X[j]], axis=1), np.where(digits[i] == digits[j], 1, -1)
    tracker, areas = MetricTracker(), []
    queries = Queries(tracker, candidates=candidates, random_state=seed)
    for answers in range(1, ANSWERS[-1] + 1):
        a, b = queries.query_pool(X[:300])
        tracker.partial_fit([X[[a, b]]], [1 if digits[a] == digits[b] else -1])
        if answers in ANSWERS:
            areas.append(tracker.score(held_out, truth))
    return areas


def sort(seed: int) -> int:
    """How many answers it takes to sort 300 digits."""
    rng = np.random.default_rng(seed)
    X, digits = load_digits(return_X_y=True)
    chosen = rng.permutation(len(X))[:300]
    X, digits = X[chosen] / 16, digits[chosen]
    tracker, closure, answers = MetricTracker(), Closure(window=None), 0
    questions = GroupQuestions(tracker, closure, X)
    while (asked := questions.query()) is not None:
        a, b = asked
        y = 1 if digits[a] == digits[b] else -1
        tracker.partial_fit([X[[a, b]]], [y])
        closure.answer(a, b, y)
        answers += 1
    return answers


def main() -> None:
    seeds = range(int(sys.argv[1]) if len(sys.argv) > 1 else SEEDS)
    print("answers         ", *(f"{answers:5d}" for answers in ANSWERS))
    for candidates in (1, 4, 16):
        areas = np.mean([learning_curve(candidates, seed) for seed in seeds], axis=0)
        print(f"AUC, best of {candidates:2d} ", *(f"{area:5.3f}" for area in areas))
    print(f"all 300 sorted after {np.mean([sort(seed) for seed in seeds]):.0f} answers")


if __name__ == "__main__":
    main()
