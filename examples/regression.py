"""Track a linear regressor that drifts and jumps, with three kinds of base learner and no learning rate to tune.

    python examples/regression.py

Nothing here knows about metrics: Algorithm 1 takes any convex loss.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ocelad import AdaGrad, FixedShare, FollowTheRegularizedLeader, GradientDescent, Ocelad, Rice, on_intervals

Vector = NDArray[np.float64]


@dataclass
class AbsoluteError:
    """|x'theta - target|: all that is asked of a loss is its value and a subgradient."""

    x: Vector
    target: float

    def __call__(self, theta: Vector) -> float:
        return abs(float(self.x @ theta) - self.target)

    def gradient(self, theta: Vector) -> Vector:
        return np.sign(float(self.x @ theta) - self.target) * self.x


def stream(rng: np.random.Generator, steps: int = 3000, n: int = 4) -> list[AbsoluteError]:
    """Losses whose minimiser drifts slowly and jumps at every 1000th step."""
    theta, losses = rng.normal(size=n), []
    for t in range(steps):
        theta = rng.normal(size=n) if t and t % 1000 == 0 else theta + 0.003 * rng.normal(size=n)
        x = rng.normal(size=n)
        losses.append(AbsoluteError(x, float(x @ theta)))
    return losses


def main() -> None:
    losses = stream(np.random.default_rng(0))
    print(
        f"{'base learner':<28}{'tracked':>9}" + "".join(f"{f'step {step:g}':>11}" for step in (0.5, 0.05, 0.005))
    )
    for learner in (GradientDescent, AdaGrad, FollowTheRegularizedLeader):
        spawn = on_intervals(learner, origin=np.zeros(4), step=1.0)
        row = f"{learner.__name__:<28}"
        for tracker in (
            Ocelad(Rice(spawn, base=4), FixedShare()),
            *(learner(np.zeros(4), step) for step in (0.5, 0.05, 0.005)),
        ):
            total = 0.0
            for loss in losses:
                total += loss(tracker.estimate)  # predict, score ...
                tracker.update(loss)  # ... learn
            row += f"{total / len(losses):>{9 if isinstance(tracker, Ocelad) else 11}.3f}"
        print(row)


if __name__ == "__main__":
    main()
