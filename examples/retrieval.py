"""Search results that learn from clicks, for anyone who has embeddings and shows the nearest items.

    python examples/retrieval.py [--searches 400] [--seeds 4]

An item is an image of a two-digit number, made of two of scikit-learn's handwritten digits. Its embedding is a PCA
of the pixels. A search shows five items, and people click on those with the same left digit; half way through they
begin to click on those with the same right digit. Nobody tells the tracker which, or when.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.neighbors import NearestNeighbors

from ocelad import MetricTracker
from ocelad.neighbors import MovingIndex

ITEMS, HELD_OUT, SHOWN = 1500, 300, 5


def numbers(rng: np.random.Generator) -> tuple[Any, dict[str, Any]]:
    """Embeddings of two-digit numbers, and their left and right digits."""
    images, digits = load_digits(return_X_y=True)
    left, right = rng.integers(len(images), size=(2, ITEMS + HELD_OUT))
    pixels = np.hstack([images[left], images[right]])
    return PCA(32, random_state=0).fit_transform(pixels), {"left": digits[left], "right": digits[right]}


def run(searches: int, seed: int) -> list[list[float]]:
    """Precision@5 of held-out queries by Euclid and by the tracker: before and after each half of the searches."""
    rng = np.random.default_rng(seed)
    E, digits = numbers(rng)
    items, queries = E[:ITEMS], E[ITEMS:]
    euclid = NearestNeighbors(n_neighbors=SHOWN).fit(items).kneighbors(queries, return_distance=False)
    tracker, table = MetricTracker(), []
    index = MovingIndex(tracker)
    index.add(items)

    def click(wanted: Any, asked: Any, shown: Any) -> None:
        """A comparison of what was asked for with each item shown: similar if people click on it."""
        y = np.where(wanted[shown] == wanted[asked], 1, -1)
        tracker.partial_fit(np.stack([items[asked], items[shown]], axis=1), y)

    click(digits["left"], [0] * SHOWN, rng.integers(ITEMS, size=SHOWN))  # without any there is no metric
    for wanted in (digits["left"], digits["right"]):
        for search in range(searches + 1):
            if search in (0, searches):
                nearest = (euclid, index.kneighbors(queries, SHOWN)[1])
                table.append([float(np.mean(wanted[each] == wanted[ITEMS:, None])) for each in nearest])
            asked = int(rng.integers(ITEMS))
            shown = index.kneighbors(items[[asked]], SHOWN)[1][0]  # nearest is the item itself, so it gives way
            shown[0] = rng.integers(ITEMS)  # to a random one: else nobody could say what else is similar
            click(wanted, [asked] * SHOWN, shown)
    return table


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--searches", type=int, default=400, help="in each half")
    parser.add_argument("--seeds", type=int, default=4)
    given = parser.parse_args()
    runs = np.array([run(given.searches, seed) for seed in range(given.seeds)])  # seeds x moments x metrics
    mean, error = runs.mean(axis=0), runs.std(axis=0, ddof=1) / np.sqrt(given.seeds)
    print(f"precision@{SHOWN} on {HELD_OUT} held-out queries, {given.seeds} seeds, mean and standard error")
    print(f"{'people want':14}{'searches so far':>16}{'Euclid':>16}{'tracker':>16}")
    moments = (("same left", 0), ("same left", 1), ("same right", 1), ("same right", 2))
    for (wanted, halves), row, spread in zip(moments, mean, error, strict=True):
        cells = (f"{m:.3f} ± {e:.3f}" for m, e in zip(row, spread, strict=True))
        print(f"{wanted:14}{halves * given.searches:>16}", *(f"{cell:>15}" for cell in cells))


if __name__ == "__main__":
    main()
