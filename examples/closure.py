"""People are asked about 200 items again and again, and change their minds: what do their answers imply?

    python examples/closure.py [figure.png]

The items move, too, as what is measured of them drifts. The same random questions are learned with what answers
imply, and without; pairs of other items are judged.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ocelad import Closure, MetricTracker
from ocelad.data import DriftingClusters, Segment, blocks

ITEMS, EVERY, SEEDS = 200, 25, 3
PLAN = Segment(700, "A", drift=0.1), Segment(500, "B", drift=0.1)
CHANGE, ANSWERS = PLAN[0].steps, sum(segment.steps for segment in PLAN)


def learn(seed: int, derived: int) -> tuple[Any, list[int]]:
    """The share of fresh pairs that are judged wrongly, over time, and when the closure was reset."""
    rng, ask = np.random.default_rng(seed), np.random.default_rng([1, seed])
    data = DriftingClusters.draw(rng)
    tracker, closure, errors, resets = MetricTracker(), Closure(random_state=seed), [], []
    for block in blocks(data, rng, EVERY, PLAN):
        label = data.labels(block.clustering)
        for rotation in block.rotations:
            X = data.points[:ITEMS] @ rotation.T  # where the items are now
            i, j = (int(item) for item in ask.choice(ITEMS, size=2, replace=False))
            y = 1 if label[i] == label[j] else -1
            tracker.partial_fit(X[[[i, j]]], [y])
            if closure.answer(i, j, y):  # people judge differently now
                resets.append(closure.t)
            implied: list[Any] = closure.derived(derived)
            if implied:
                pairs, known = X[[[a, b] for a, b, _ in implied]], [own for *_, own in implied]
                tracker.partial_fit_implied(pairs, known, [0.5] * len(known))
        a, b = ask.integers(ITEMS, len(label), size=(2, 1000))
        now = data.points @ block.rotation.T
        similar = tracker.predict(np.stack([now[a], now[b]], axis=1)) > 0
        errors.append(np.mean(similar != (label[a] == label[b])))
    return np.array(errors), resets


def run() -> dict[str, Any]:
    """Mean errors with and without, and the resets of each seed."""
    without = np.mean([learn(seed, 0)[0] for seed in range(SEEDS)], axis=0)
    runs = [learn(seed, 4) for seed in range(SEEDS)]
    return {
        "answers alone": without,
        "and what they imply": np.mean([errors for errors, _ in runs], axis=0),
        "resets": [resets for _, resets in runs],
    }


def figure(found: dict[str, Any]) -> Any:
    """Learning curves."""
    from ocelad.plots import pyplot

    whole, axes = pyplot().subplots(figsize=(8, 3.6), layout="constrained")
    times = np.arange(EVERY, ANSWERS + 1, EVERY)
    for name, colour in (("answers alone", "#D55E00"), ("and what they imply", "#0072B2")):
        axes.plot(times, 100 * found[name], color=colour, lw=1.8, label=name)
    axes.axvline(CHANGE, color="black", lw=1.2)
    axes.set(xlabel="answers", ylabel="fresh pairs judged wrongly, %", xlim=(0, ANSWERS), ylim=(0, 60))
    axes.annotate("people change their minds", (CHANGE, 55), xytext=(6, 0), textcoords="offset points")
    axes.legend(frameon=False)
    return whole


def main() -> None:
    found = run()
    print(f"wrong of fresh pairs, %; resets at {', '.join(str(t) for own in found['resets'] for t in own)}")
    parts = {"first 200": slice(0, 8), "to 700": slice(8, 28), "next 200": slice(28, 36), "to 1200": slice(36, 48)}
    print(" " * 20, *(f"{name:>10s}" for name in parts))
    for name in ("answers alone", "and what they imply"):
        print(f"{name:20s}", *(f"{100 * found[name][part].mean():10.1f}" for part in parts.values()))
    if len(sys.argv) > 1:
        figure(found).savefig(sys.argv[1], dpi=100)


if __name__ == "__main__":
    main()
