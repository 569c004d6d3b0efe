"""Theorem 1, Corollary 1, Theorem 2: dynamic regret is low on every sub-interval at once."""

import math

import numpy as np
import pytest

from ocelad import (
    Comid,
    Descent,
    GradientDescent,
    Hinge,
    Metric,
    NuclearNorm,
    Ocelad,
    OceladWeights,
    PairLoss,
    Rice,
    Unregularized,
    on_intervals,
)
from ocelad.ensemble import dyadic_opening
from ocelad.evaluate import (
    LearnerBound,
    Metrics,
    Regret,
    corollary_1,
    descent_bound,
    interval_sums,
    theorem_1,
    theorem_2,
    variation,
)
from ocelad.intervals import opened, partition
from regression import drifting_regressor, play

STEP, RADIUS = 1.0, 0.5
LEARNER = descent_bound(diameter=1.0, steepness=1.0, step=STEP)  # |x'theta - target| with |x| = 1 in that ball


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
        assert own <= LEARNER(gamma[q - 1, s - 1], size) + 1e-9
    # its conclusion, on all 2,001,000 intervals
    regret = Regret.dynamic(ours, theirs).every()
    first, last = np.ogrid[1:2001, 1:2001]
    inside = last >= first
    assert (np.isnan(regret) == ~inside).all()
    for reading in ("paper", "corrected"):
        bound = theorem_1(LEARNER, gamma, np.maximum(last - first + 1, 0), last + 0 * first, reading=reading)
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
        opening = dyadic_opening(t, 1)
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
    """No regret exceeds |I| with losses in [0, 1]. The paper's bound falls below that only beyond some 250,000
    steps, but the corrected one, which is never larger, long before."""
    T, jump = 2**15, 2**13
    tracker, ours = Ocelad(Scalars(), OceladWeights()), np.zeros(T)
    targets = [Target(0.1), Target(0.9)]
    for t in range(T):
        target = targets[t // jump % 2]
        ours[t] = target(tracker.estimate)
        tracker.update(target)
    learner = descent_bound(diameter=1.0, steepness=1.0, step=1.0)
    first, last = np.arange(0, T, 64)[:, None], np.arange(63, T, 63)[None, :]
    first, last = (steps[first <= last] for steps in np.broadcast_arrays(first, last))
    gamma = 0.8 * (last // jump - first // jump)  # the comparator suffers nothing, and jumps by 0.8
    bound = theorem_1(learner, gamma, last - first + 1, last + 1)
    assert (Regret.dynamic(ours, np.zeros(T)).on(first, last) <= bound).all()
    assert (bound <= theorem_1(learner, gamma, last - first + 1, last + 1, reading="paper")).all()
    assert theorem_1(learner, 0.8 * 3, T, T) < 0.4 * T  # a learner that is mostly wrong would break it
    assert theorem_1(learner, 0.0, 250_000, 250_000, reading="paper") > 250_000
    assert theorem_1(learner, 0.0, 300_000, 300_000, reading="paper") < 300_000
    assert ours.sum() < 0.1 * T


def test_bounds_by_hand():
    learner = LearnerBound(static=2.0, moving=1.0)
    assert learner.C == 2.0
    paper = theorem_1(learner, gamma=3.0, length=2, last=2, reading="paper")
    assert paper == pytest.approx((16 * 4 + 40 * math.log(3)) * math.sqrt(2))
    metrics = theorem_2(learner, gamma=3.0, length=2, last=2, reading="paper")
    assert metrics == pytest.approx((4 / (math.sqrt(2) - 1) * 2 * 4 + 40 * math.log(3)) * math.sqrt(2))
    none = theorem_2(learner, gamma=3.0, length=2, last=2, spread=0.0, penalty=7.0)
    assert none == pytest.approx((2 * 2 / (math.sqrt(2) - 1) + 3.0) * math.sqrt(2) + 7.0)
    with pytest.raises(ValueError, match="reading must be 'paper' or 'corrected'"):
        theorem_1(learner, 0.0, 1, 1, reading="mine")
    for wrong in (0.0, -1.0, math.nan, math.inf):
        for reading in ("paper", "corrected"):
            with pytest.raises(ValueError, match="step must be positive and finite"):
                corollary_1(Metrics(3, 1.0, 1.0), longest=1.0, step=wrong, reading=reading)
        with pytest.raises(ValueError, match="threshold_step must be positive and finite"):
            corollary_1(Metrics(3, 1.0, 1.0), longest=1.0, step=1.0, threshold_step=wrong)
        with pytest.raises(ValueError, match="step must be positive and finite"):
            descent_bound(1.0, 1.0, step=wrong)


def test_the_corrected_theorem_adds_up_its_pieces():
    """The bound of every interval is at least the sum of what the learners and Lemma 2 say about its pieces."""
    learner, T = LearnerBound(static=1.7, moving=0.6), 130
    moves = np.random.default_rng(0).exponential(size=T + 1)
    for q in range(1, T):
        for s in range(q, T):
            total = 0.0
            for first, last in partition(q, s):
                size = last - first + 1
                rate = min(0.5, 1 / math.sqrt(size))
                total += learner(moves[first : last + 1].sum(), size)
                total += 2.5 * (rate * size + math.log(opened(last)) / rate)
            assert total <= theorem_1(learner, moves[q : s + 1].sum(), s - q + 1, s, spread=2.5)


def descend(learner, losses):
    """Losses, and the metrics that suffered them."""
    suffered, visited = [], [learner.estimate]
    for loss in losses:
        suffered.append(loss(learner.estimate))
        learner.update(loss)
        visited.append(learner.estimate)
    return np.array(suffered), visited


@pytest.mark.parametrize("seed", range(12))
def test_corollary_1_holds_as_corrected(seed):
    """Any labels, any moving comparator, any start: a theorem."""
    rng = np.random.default_rng(seed)
    n, T = 3, 64
    step, threshold_step, strength = rng.choice([0.1, 1.0, 8.0]), rng.choice([0.1, 1.0]), rng.choice([0.0, 0.1])

    def draw():
        L = rng.normal(size=(n, n))
        return Metric(L.T @ L, 1 + rng.exponential())

    u = rng.normal(size=(T, n))
    losses = [PairLoss(row, int(y), Hinge()) for row, y in zip(u, rng.choice([-1, 1], size=T), strict=True)]
    w = [draw()]
    while len(w) < T:
        w.append(draw() if rng.random() < 0.1 else w[-1])
    descent = Descent(NuclearNorm(strength), threshold_step=threshold_step)
    start = draw() if seed % 2 else Metric(np.zeros((n, n)), 1.0)
    ours, visited = descend(Comid(start, step / math.sqrt(T), descent), losses)
    known = visited + w
    domain = Metrics(n, max(np.linalg.eigvalsh(m.M)[-1] for m in known), max(m.mu for m in known), strength)
    regret = sum(ours) - sum(loss(m) for loss, m in zip(losses, w, strict=True))
    regret += strength * (sum(np.trace(m.M) for m in visited[:-1]) - sum(np.trace(m.M) for m in w))
    bound = corollary_1(domain, np.linalg.norm(u, axis=1).max(), step, threshold_step)
    assert regret <= bound(variation(w, threshold_step)[:-1].sum(), T)


def test_corollary_1_of_the_paper_is_broken_and_the_corrected_one_tight():
    """All directions have to be learned, one after the other, each from 0 to 2: D = n c^2, not 2 c sqrt n."""
    n, T, step = 9, 1400, 0.5
    directions = np.eye(n)[np.arange(T) % n]
    losses = [PairLoss(u, -1, Hinge()) for u in directions]  # all pairs are different: u'Mu >= mu + 1 = 2
    ours, _ = descend(Comid(Metric(np.zeros((n, n)), 1.0), step / math.sqrt(T), Descent(Unregularized())), losses)
    w = Metric(2.0 * np.eye(n), 1.0)
    assert all(loss(w) == 0 for loss in losses)
    domain = Metrics(n, largest=2.0, threshold=1.0)
    assert ours.sum() > 2.5 * corollary_1(domain, 1.0, step, reading="paper")(0.0, T)
    assert 0.95 < ours.sum() / corollary_1(domain, 1.0, step)(0.0, T) <= 1
