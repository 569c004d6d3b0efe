"""Notions that no matrix has: opposite corners, rings, moons, even and odd digits.

    python examples/bending.py [figure.png]

Error on new pairs as comparisons come, of a pool of linear experts and of one with experts on feature maps, too:
means of three seeds.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.datasets import load_digits, make_moons

from ocelad import MetricTracker

TIMES = (50, 100, 200, 350, 500, 750, 1000)


def corners(rng: np.random.Generator, count: int) -> tuple[Any, Any]:
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


NOTIONS = {"opposite corners": corners, "rings": rings, "moons": moons, "even or odd digits": parity}


def compared(draw: Callable[..., tuple[Any, Any]], rng: np.random.Generator, count: int) -> tuple[Any, Any]:
    """Random pairs, and whether both are of the same kind."""
    X, kind = draw(rng, 2 * count)
    return X.reshape(count, 2, -1), np.where(kind[::2] == kind[1::2], 1, -1)


def curve(draw: Callable[..., tuple[Any, Any]], nonlinear: bool, seed: int) -> list[float]:
    """The error on new pairs at each of `TIMES`."""
    rng = np.random.default_rng(seed)
    (pairs, y), (new, truth) = compared(draw, rng, TIMES[-1]), compared(draw, rng, 1000)
    tracker, done, errors = MetricTracker(nonlinear=nonlinear), 0, []
    for t in TIMES:
        tracker.partial_fit(pairs[done:t], y[done:t])
        errors.append(float(np.mean(tracker.predict(new) != truth)))
        done = t
    return errors


def curves(seeds: int = 3) -> dict[str, dict[bool, Any]]:
    return {
        name: {own: np.mean([curve(draw, own, seed) for seed in range(seeds)], axis=0) for own in (False, True)}
        for name, draw in NOTIONS.items()
    }


def figure(found: dict[str, dict[bool, Any]]) -> Any:
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(10, 2.8), layout="constrained")
    for axes, (name, errors) in zip(drawn.subplots(1, len(found), sharey=True), found.items(), strict=True):
        axes.plot(TIMES, errors[False], "o-", color="0.6", label="linear")
        axes.plot(TIMES, errors[True], "o-", color="C0", label="nonlinear=True")
        axes.set(title=name, xlabel="comparisons", ylim=(0, 0.55))
    drawn.axes[0].set_ylabel("error on new pairs")
    drawn.axes[0].legend(frameon=False, loc="upper right")
    return drawn


def main() -> None:
    found = curves()
    for name, errors in found.items():
        print(f"{name:20s} error after {TIMES[-1]} comparisons: linear {errors[False][-1]:.3f}, "
              f"nonlinear {errors[True][-1]:.3f}")  # fmt: skip
    if len(sys.argv) > 1:
        figure(found).savefig(sys.argv[1], dpi=120)
        print(sys.argv[1])


if __name__ == "__main__":
    main()
