"""Theorem 1: dynamic regret is low on every sub-interval at once."""

import math

import numpy as np
import pytest

from ocelad import GradientDescent, Ocelad, OceladWeights, Rice, on_intervals
from ocelad.ensemble import _dyadic
from ocelad.evaluate import interval_sums, theorem_1, variation
from regression import drifting_regressor, play

STEP, RADIUS = 1.0, 0.5
DIAMETER, STEEPNESS = 1.0, 1.0  # of the ball, and of |x'theta - target| with |x| = 1
# Gradient descent with step / sqrt|I|: regret <= (D^2 / 2 + D gamma) / step + step G^2 / 2, times sqrt|I|
C = max(DIAMETER**2 / (2 * STEP) + STEP * STEEPNESS**2 / 2, DIAMETER / STEP)


class Watched(Rice):
    """RICE that remembers what every learner suffered on its interval."""

    def __init__(self):
        super().__init__(on_intervals(GradientDescent, np.zeros(3), STEP, RADIUS))
        self.suffered = {}

    def losses(self, loss):
        values = super().losses(loss)
        self.clock = getattr(self, "clock", 0) + 1
        for level, value in enumerate(values):
            q = self.clock // 2**level * 2**level
            self.suffered.setdefault((q, 2**level), []).append(value)
        return values


@pytest.mark.parametrize("seed", range(3))
def test_theorem_1_on_all_intervals_of_2000_steps(seed):
    losses, truth = drifting_regressor(seed, steps=2000, jumps=3, drift=0.01)
    assert max(loss(np.array(theta)) for loss in losses for theta in ([0.5, 0, 0], [0, 0, -0.5])) <= 1
    rice = Watched()
    ours = play(Ocelad(rice, OceladWeights()), losses)
    theirs = np.array([loss(theta) for loss, theta in zip(losses, truth, strict=True)])
    gamma = interval_sums(variation(truth))
    # the condition of the theorem: each learner's regret on its own interval
    for (q, size), values in rice.suffered.items():
        s = min(q + size - 1, 2000)
        own = sum(values) - theirs[q - 1 : s].sum()
        assert own <= C * (1 + gamma[q - 1, s - 1]) * math.sqrt(size) + 1e-9
    # its conclusion, on all 2,001,000 intervals
    regret = interval_sums(ours - theirs)
    bound = theorem_1(C, gamma)
    inside = ~np.isnan(regret)
    assert inside.sum() == 2000 * 2001 // 2
    assert (regret[inside] <= bound[inside]).all()


def test_regret_beats_a_learner_that_cannot_adapt():
    """The theorem's constants are wide at this length; this is what they stand for."""
    worst = []
    for seed in range(3):
        losses, truth = drifting_regressor(seed, steps=2000, jumps=3, drift=0.0)
        theirs = np.array([loss(theta) for loss, theta in zip(losses, truth, strict=True)])
        spawn = on_intervals(GradientDescent, np.zeros(3), STEP, RADIUS)

        def largest(ours, theirs=theirs):
            return np.nanmax(interval_sums(ours - theirs))

        adaptive = largest(play(Ocelad(Rice(spawn, start="continue"), OceladWeights()), losses))
        worst.append(largest(play(spawn(1e6, None), losses)) / adaptive)
    assert min(worst) > 2


class Scalars:
    """RICE of gradient descent on |theta - target| in [0, 1], levels in one array: the four verbs are enough."""

    def __init__(self):
        self.theta, self.step = np.zeros(0), np.zeros(0)

    def open(self, t):
        opening = _dyadic(t, 1)
        v = len(opening.slots)
        shifted = np.concatenate([[0.0], self.theta[: v - 1]])
        if v > len(self.theta):
            self.theta, self.step = np.append(self.theta, 0.0), 1 / np.sqrt(2.0 ** np.arange(v))
        self.theta[:v] = shifted
        return opening

    def losses(self, target):
        return np.abs(self.theta - target.value)

    def update(self, target):
        self.theta = np.clip(self.theta - self.step * np.sign(self.theta - target.value), 0.0, 1.0)

    def mix(self, p):
        return float(p @ self.theta)


class Target:
    def __init__(self, value):
        self.value = value

    def __call__(self, theta):
        return abs(theta - self.value)


def test_theorem_1_where_it_says_something():
    """Losses in [0, 1] cannot exceed |I|; only beyond some 250,000 steps is the bound below that: a long run."""
    T, jump = 2**19, 2**17
    tracker, ours = Ocelad(Scalars(), OceladWeights()), np.zeros(T)
    targets = [Target(0.1), Target(0.9)]
    for t in range(T):
        target = targets[t // jump % 2]
        ours[t] = target(tracker.estimate)
        tracker.update(target)
    total = np.concatenate([[0.0], np.cumsum(ours)])  # the comparator suffers nothing, and jumps by 0.8

    def bound(q, s):
        jumps = (s - 1) // jump - (q - 1) // jump
        return (8 * C * (1 + 0.8 * jumps) + 40 * math.log(1 + s)) * math.sqrt(s - q + 1)

    starts = range(1, T + 1, 4096)
    assert all(total[s] - total[q - 1] <= bound(q, s) for q in starts for s in range(q, T + 1, 4095))
    assert bound(1, T) < T  # here the theorem says something: a learner that is always wrong would break it
    assert total[T] < 0.1 * T


def test_interval_sums_by_brute_force():
    values = np.random.default_rng(0).normal(size=12)
    sums = interval_sums(values)
    for q in range(12):
        for s in range(12):
            if s < q:
                assert np.isnan(sums[q, s])
            else:
                assert sums[q, s] == pytest.approx(values[q : s + 1].sum())


def test_variation_and_bound_by_hand():
    assert variation([[0.0, 0.0], [3.0, 4.0], [3.0, 4.0]]).tolist() == [5.0, 0.0, 0.0]
    assert variation([1.0, 4.0]).tolist() == [3.0, 0.0]
    bound = theorem_1(2.0, [[1.0, 3.0], [0.0, 1.0]])
    assert bound[0, 1] == pytest.approx((16 * 4 + 40 * math.log(3)) * math.sqrt(2))
