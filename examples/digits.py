"""What makes two handwritten digits alike? Being the same digit, then being both even or both odd, then the same.

    python examples/digits.py [figure.png]

The points are scikit-learn's own; a comparison is predicted before it is learned.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

from ocelad import MetricTracker, Step
from ocelad.evaluate import knn_error
from ocelad.watch.prequential import progressive

STEPS = 2500
NOTIONS = ("digit", "parity", "digit")


def comparisons(labels: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    """Pairs of which every other one is similar, and which ones."""
    pairs, y = [], []
    for step in range(STEPS):
        first = int(rng.integers(len(labels)))
        same = labels == labels[first]
        same[first] = False
        second = rng.choice(np.flatnonzero(same if step % 2 else labels != labels[first]))
        pairs.append((first, second))
        y.append(1 if step % 2 else -1)
    return np.array(pairs), np.array(y)


def track() -> dict[str, Any]:
    """The tracker's course: whether predictions were right, the weights of its memories, and what it learned."""
    X, digits = load_digits(return_X_y=True)
    meanings = {"digit": digits, "parity": digits % 2}
    rng, tracker = np.random.default_rng(0), MetricTracker(step=Step(8.0, capped=True))
    right: list[Any] = []
    weights: list[Any] = []
    embeddings: list[Any] = []
    lengths: Any = ()
    kinds: list[str] = []
    for notion in NOTIONS:
        pairs, y = comparisons(meanings[notion], rng)
        seen = progressive(tracker, X[pairs], y)
        right.append(seen.similar == (y > 0))
        weights += [row[~np.isnan(row)] for row in seen.weights]
        lengths, kinds = seen.lengths, seen.kinds
        embeddings.append(tracker.transform(X)[:, :3])
    return {
        "digits": digits,
        "right": np.concatenate(right),
        "weights": weights,
        "lengths": lengths,
        "kinds": kinds,
        "embeddings": embeddings,
    }


def figure(course: dict[str, Any]) -> Any:
    """Errors and memories over time, and the digits as the metric sees them at the end of each part."""
    from ocelad.plots import pyplot
    from ocelad.plots.style import stack_weights

    plt = pyplot()
    whole = plt.figure(figsize=(9, 8), layout="constrained")
    grid = whole.add_gridspec(3, 3, height_ratios=(1.1, 1.1, 2))
    errors, memories = (whole.add_subplot(grid[row, :]) for row in (0, 1))
    wrong = 1.0 - np.convolve(course["right"], np.ones(200) / 200, mode="valid")
    errors.plot(np.arange(200, 200 + len(wrong)), 100 * wrong, color="#0072B2", lw=1.8)
    errors.set(ylabel="wrong of the last 200, %", xlim=(0, 3 * STEPS), ylim=(0, 60))
    errors.set_title("Are these two digits alike?")
    weights = np.zeros((len(course["weights"]), len(course["lengths"])))
    for line, each in zip(weights, course["weights"], strict=True):
        line[: len(each)] = each
    stack_weights(memories, np.arange(len(weights))[::10], weights[::10], course["lengths"], course["kinds"])
    memories.set(xlim=(0, 3 * STEPS), xlabel="comparisons seen")
    for part, notion in enumerate(NOTIONS):
        errors.annotate(f"same {notion}", ((part + 0.5) * STEPS, 52), ha="center")
        for axes in (errors, memories) if part else ():
            axes.axvline(part * STEPS, color="black", lw=1.2)
        panel, Z, digits = whole.add_subplot(grid[2, part]), course["embeddings"][part], course["digits"]
        odd = digits % 2 == 1
        for colour, group in (("#0072B2", ~odd), ("#D55E00", odd)):
            for digit in np.unique(digits[group]):
                own = Z[digits == digit][:60]
                for x, y, *_ in own:
                    panel.text(x, y, str(digit), color=colour, fontsize=7, ha="center", va="center", clip_on=True)
        low, high = np.percentile(Z[:, :2], [0.5, 99.5], axis=0)
        panel.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), xticks=[], yticks=[])
        panel.set_title(f"after “same {notion}”", fontsize=10)
    whole.supxlabel(
        "The digits in the metric's first two dimensions: even ones blue, odd ones orange", fontsize=10
    )
    return whole


def main() -> None:
    course = track()
    for part, notion in enumerate(NOTIONS):
        right = course["right"][part * STEPS : (part + 1) * STEPS]
        Z = course["embeddings"][part]
        errors = {name: knn_error(Z, course["digits"] % base) for name, base in (("digit", 10), ("parity", 2))}
        print(
            f"same {notion:6s}  right: first 200 {right[:200].mean():.2f}, last 200 {right[-200:].mean():.2f};  "
            f"5-NN error in 3-D: digit {errors['digit']:.3f}, parity {errors['parity']:.3f}"
        )
    if len(sys.argv) > 1:
        figure(course).savefig(sys.argv[1], dpi=100)


if __name__ == "__main__":
    main()
