"""A convex problem that has nothing to do with metrics: a linear regressor that drifts and jumps."""

import numpy as np


class AbsoluteError:
    """|x'theta - target|."""

    def __init__(self, x, target):
        self.x, self.target = x, target

    def __call__(self, theta):
        return abs(float(self.x @ theta) - self.target)

    def gradient(self, theta):
        return np.sign(float(self.x @ theta) - self.target) * self.x


def drifting_regressor(seed, steps, n=3, jumps=3, drift=0.01, radius=0.5):
    """Losses in [0, 1] of a parameter in the ball of the given radius, and that parameter."""
    rng = np.random.default_rng(seed)

    def inside(theta):
        return theta * min(1.0, radius / np.linalg.norm(theta))

    theta, losses, truth = inside(rng.normal(size=n)), [], []
    for t in range(steps):
        if t and t % (steps // (jumps + 1)) == 0:
            theta = -theta + 0.2 * rng.normal(size=n)
        theta = inside(theta + drift / np.sqrt(n) * rng.normal(size=n))
        x = rng.normal(size=n)
        x /= np.linalg.norm(x)
        losses.append(AbsoluteError(x, float(x @ theta)))
        truth.append(theta)
    return losses, np.array(truth)


def play(learner, losses):
    """The loss of each estimate before the learner sees it."""
    suffered = []
    for loss in losses:
        suffered.append(loss(learner.estimate))
        learner.update(loss)
    return np.array(suffered)
