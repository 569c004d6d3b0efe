"""Algorithm 1 on a problem that has nothing to do with metrics, with every kind of ensemble and combiner."""

import copy
import math
import pickle

import numpy as np
import pytest

from ocelad import (
    AdaGrad,
    AdaNormalHedge,
    CoinBetting,
    FixedShare,
    FollowTheRegularizedLeader,
    GradientDescent,
    Ocelad,
    OceladWeights,
    Pool,
    Restarted,
    Rice,
    SaolWeights,
    Union,
    on_intervals,
)
from regression import AbsoluteError, drifting_regressor, play

LEARNERS = [GradientDescent, AdaGrad, FollowTheRegularizedLeader]
COMBINERS = [OceladWeights(), OceladWeights("mixture"), FixedShare(), CoinBetting(), AdaNormalHedge()]
N = 3


def spawn_of(learner, step=0.5):
    return on_intervals(learner, np.zeros(N), step, radius=0.5)


class WindowedLeastSquares:
    """A black box of another kind: it refits on the last few losses, and has no step at all."""

    def __init__(self, window):
        self.window, self.seen, self.estimate = window, [], np.zeros(N)

    def update(self, loss):
        self.seen = [*self.seen, loss][-self.window :]
        X = np.array([loss.x for loss in self.seen])
        targets = np.array([loss.target for loss in self.seen])
        self.estimate = np.linalg.solve(X.T @ X + 0.1 * np.eye(N), X.T @ targets)


ENSEMBLES = {
    "rice": lambda: Rice(spawn_of(GradientDescent), base=4),
    "rice-continue": lambda: Rice(spawn_of(AdaGrad), base=2, start="continue"),
    "restarted": lambda: Restarted(spawn_of(GradientDescent)),
    "pool": lambda: Pool([spawn_of(GradientDescent)(4.0**k, None) for k in range(7)]),
    "windows": lambda: Pool(
        [WindowedLeastSquares(2**k) for k in range(2, 8)], lengths=[2**k for k in range(2, 8)]
    ),
    "union": lambda: Union(
        Rice(spawn_of(GradientDescent), base=8),
        Pool([WindowedLeastSquares(16)]),
        Restarted(spawn_of(FollowTheRegularizedLeader), base=4),
    ),
    "nested": lambda: Pool(
        [
            Ocelad(Rice(spawn_of(GradientDescent)), FixedShare()),
            Ocelad(Rice(spawn_of(AdaGrad), base=8), CoinBetting()),
        ]
    ),
}


@pytest.mark.parametrize("weights", [*COMBINERS, SaolWeights()], ids=repr)
@pytest.mark.parametrize("name", ENSEMBLES)
def test_every_ensemble_goes_through_the_same_loop(name, weights):
    losses, _ = drifting_regressor(seed=0, steps=600)
    tracker = Ocelad(ENSEMBLES[name](), weights)
    still = np.mean([loss(np.zeros(N)) for loss in losses])  # what knowing nothing costs
    assert play(tracker, losses).mean() < (1.0 if isinstance(weights, SaolWeights) else 0.8) * still
    assert tracker.probabilities.sum() == pytest.approx(1)
    assert len(tracker.probabilities) == len(tracker.lengths) == len(tracker.losses)


@pytest.mark.parametrize("learner", LEARNERS)
def test_tracks_a_drifting_and_jumping_regressor(learner):
    """Better than the same learner at the rate that suits the whole run, over several seeds."""
    gain = []
    for seed in range(6):
        losses, _ = drifting_regressor(seed, steps=2000, drift=0.002)
        alone = min(play(spawn_of(learner)(length, None), losses).mean() for length in (2000.0, 500.0))
        tracked = play(Ocelad(Rice(spawn_of(learner), base=4), FixedShare()), losses).mean()
        gain.append(alone / tracked)
    assert np.mean(gain) - 2 * np.std(gain) / math.sqrt(len(gain)) > 1.2


def test_recovers_after_a_jump():
    losses, truth = drifting_regressor(seed=1, steps=1000, jumps=1, drift=0.0)
    tracker = Ocelad(Rice(spawn_of(GradientDescent)), FixedShare())
    errors = []
    for loss, theta in zip(losses, truth, strict=True):
        errors.append(np.linalg.norm(tracker.estimate - theta))
        tracker.update(loss)
    assert np.mean(errors[450:500]) < 0.1
    assert errors[505] > 0.3  # the jump hurts
    assert np.mean(errors[650:700]) < 0.15


def test_retro_initialisation_is_a_shift():
    rice = Rice(spawn_of(GradientDescent))
    tracker = Ocelad(rice, OceladWeights())
    rng = np.random.default_rng(0)
    for t in range(1, 200):  # the clock before this loss
        loss = AbsoluteError(rng.normal(size=N), 0.3)
        reference = copy.deepcopy(rice.learners)
        for learner in reference:
            learner.update(loss)
        tracker.update(loss)
        opened = [j for j in range(len(rice.learners)) if (t + 1) % 2**j == 0]
        for j, learner in enumerate(rice.learners):
            # level 0, of length 1, opens at every step
            expected = np.zeros(N) if j == 0 else reference[j - 1 if j in opened else j].estimate
            np.testing.assert_array_equal(learner.estimate, expected)
            assert learner.step == 0.5 / math.sqrt(2**j)


def test_level_zero_continues_if_asked():
    fresh, goes_on = Rice(spawn_of(GradientDescent)), Rice(spawn_of(GradientDescent), start="continue")
    for ensemble in (fresh, goes_on):
        ensemble.open(0)
        ensemble.update(AbsoluteError(np.ones(N), 1.0))
        ensemble.open(1)
    np.testing.assert_array_equal(fresh.learners[0].estimate, np.zeros(N))
    assert goes_on.learners[0].estimate.any()
    np.testing.assert_array_equal(goes_on.learners[0].estimate, goes_on.learners[1].estimate)


def test_restarted_learners_start_at_the_origin():
    ensemble = Restarted(spawn_of(GradientDescent))
    for t in range(64):
        ensemble.open(t)
        for level, learner in enumerate(ensemble.learners):
            assert learner.estimate.any() != ((t + 1) % 2**level == 0)
        ensemble.update(AbsoluteError(np.ones(N), 1.0))


def test_union_equals_its_parts_side_by_side():
    losses, _ = drifting_regressor(seed=2, steps=100)
    rice, pool = Rice(spawn_of(GradientDescent), base=4), Pool([WindowedLeastSquares(8), WindowedLeastSquares(16)])
    union = Union(copy.deepcopy(rice), copy.deepcopy(pool))
    for t, loss in enumerate(losses):
        for ensemble in (rice, pool, union):
            ensemble.open(t)
        ours = union.losses(loss)
        assert sorted(ours) == sorted([*rice.losses(loss), *pool.losses(loss)])
        assert ours[1:3].tolist() == pool.losses(loss).tolist()  # a growing neighbour renumbers nobody
        p = np.random.default_rng(t).dirichlet(np.ones(len(ours)))
        order = [0, *range(3, len(ours))]
        expected = rice.mix(p[order]) + pool.mix(p[1:3])
        np.testing.assert_allclose(union.mix(p), expected, atol=1e-15)
        for ensemble in (rice, pool, union):
            ensemble.update(loss)


def test_nesting_one_pool_changes_nothing():
    losses, _ = drifting_regressor(seed=3, steps=300)
    plain = Ocelad(Rice(spawn_of(GradientDescent)), FixedShare())
    nested = Ocelad(Pool([Ocelad(Rice(spawn_of(GradientDescent)), FixedShare())]), OceladWeights())
    np.testing.assert_allclose(play(plain, losses), play(nested, losses), atol=1e-14)


def test_a_nested_tracker_can_be_retro_initialised():
    def spawn(length, start):
        origin = np.zeros(N) if start is None else start
        return Ocelad(
            Pool([GradientDescent(origin, s / math.sqrt(length), 0.5) for s in (0.1, 1.0)]), FixedShare()
        )

    losses, _ = drifting_regressor(seed=4, steps=600)
    still = np.mean([loss(np.zeros(N)) for loss in losses])
    assert play(Ocelad(Rice(spawn, base=4), FixedShare()), losses).mean() < 0.5 * still


@pytest.mark.parametrize("order", ["before", "after"])
def test_order_says_which_losses_the_weights_see(order):
    losses, _ = drifting_regressor(seed=5, steps=50)
    tracker = Ocelad(Rice(spawn_of(GradientDescent)), OceladWeights(), order)
    for loss in losses:
        learners, state = copy.deepcopy(tracker.ensemble.learners), tracker.state
        before = [loss(learner.estimate) for learner in learners]
        for learner in learners:
            learner.update(loss)
        after = [loss(learner.estimate) for learner in learners]
        tracker.update(loss)
        seen = before if order == "before" else after
        assert tracker.losses[: len(seen)].tolist() == seen
        expected = OceladWeights().update(state, np.array(seen), lambda: math.nan)
        kept = [j for j in range(len(seen)) if (tracker.t + 1) % 2**j]  # those that did not just re-open
        np.testing.assert_array_equal(tracker.state[kept], expected[kept])


@pytest.mark.parametrize("order", ["before", "after"])
def test_a_loss_that_is_no_number_is_refused_before_anything_changes(order):
    tracker = Ocelad(Rice(spawn_of(GradientDescent)), FixedShare(), order)
    tracker.update(AbsoluteError(np.ones(N), 1.0))
    before = copy.deepcopy(tracker)
    with pytest.raises(ValueError, match="loss must be finite"):
        tracker.update(AbsoluteError(np.ones(N), math.nan))
    assert tracker.t == before.t
    np.testing.assert_array_equal(tracker.state, before.state)
    np.testing.assert_array_equal(tracker.estimate, before.estimate)


class Failing(AbsoluteError):
    """A loss whose gradient fails the third time it is asked for, say."""

    def __init__(self, loss, at):
        super().__init__(loss.x, loss.target)
        self.left = at

    def gradient(self, theta):
        self.left -= 1
        if not self.left:
            raise KeyboardInterrupt
        return super().gradient(theta)


@pytest.mark.parametrize("ensemble", [name for name in ENSEMBLES if name != "windows"])  # it asks for no gradient
@pytest.mark.parametrize("order", ["before", "after"])
def test_a_step_is_taken_by_all_or_by_none(ensemble, order):
    losses, _ = drifting_regressor(seed=7, steps=26)
    tracker, clean = (Ocelad(ENSEMBLES[ensemble](), OceladWeights(), order) for _ in range(2))
    play(clean, losses)
    play(tracker, losses[:20])
    patient = Failing(losses[20], at=1000)
    copy.deepcopy(tracker).update(patient)
    for at in range(1, 1001 - patient.left):
        with pytest.raises(KeyboardInterrupt):
            tracker.update(Failing(losses[20], at))
    assert at > 2
    play(tracker, losses[20:])
    np.testing.assert_array_equal(tracker.state, clean.state)
    np.testing.assert_array_equal(tracker.estimate, clean.estimate)


def test_a_copy_goes_on_by_itself():
    losses, _ = drifting_regressor(seed=8, steps=40)
    for make in ENSEMBLES.values():
        tracker = Ocelad(make(), FixedShare())
        play(tracker, losses[:20])
        before = copy.deepcopy(tracker)
        other = copy.copy(tracker)
        play(other, losses[20:])
        np.testing.assert_array_equal(tracker.estimate, before.estimate)
        np.testing.assert_array_equal(tracker.lengths, before.lengths)
        play(tracker, losses[20:])
        np.testing.assert_array_equal(tracker.estimate, other.estimate)


class Slotted:
    """A learner without ``__dict__``."""

    __slots__ = ("estimate",)

    def __init__(self, estimate):
        self.estimate = estimate

    def update(self, loss):
        self.estimate = self.estimate - 0.1 * loss.gradient(self.estimate)


class Listed(list):
    """A learner that is a list as well."""

    estimate = np.zeros(N)

    def update(self, loss):
        self.append(loss.x)
        self.estimate = self.estimate - 0.1 * loss.gradient(self.estimate)


class Copied:
    """A learner that says how it is copied, because it writes into what it has."""

    def __init__(self):
        self.estimate, self.seen = np.zeros(N), []

    def __copy__(self):
        other = Copied()
        other.estimate, other.seen = self.estimate, self.seen.copy()
        return other

    def update(self, loss):
        self.seen.append(loss.x)
        self.estimate = self.estimate - 0.1 * loss.gradient(self.estimate)


@pytest.mark.parametrize("learner", [Slotted(np.zeros(N)), Listed(), Copied()], ids=lambda one: type(one).__name__)
def test_whatever_a_learner_is_made_of_it_forgets_half_a_step(learner):
    pool = Pool([learner, GradientDescent(np.zeros(N), 0.1)])
    with pytest.raises(KeyboardInterrupt):
        pool.update(Failing(AbsoluteError(np.ones(N), 1.0), at=2))
    kept = pool.learners[0]
    assert type(kept) is type(learner)
    assert not kept.estimate.any()
    assert not getattr(kept, "seen", None)
    assert not (isinstance(kept, list) and kept)


def test_a_learner_of_ones_own_needs_only_start_and_step():
    class Signs:
        def __init__(self, start, step):
            self.estimate, self.step = np.asarray(start), step

        def update(self, loss):
            self.estimate = self.estimate - self.step * np.sign(loss.gradient(self.estimate))

    tracker = pickle.loads(
        pickle.dumps(Ocelad(Rice(on_intervals(GradientDescent, np.zeros(N), 0.5)), FixedShare()))
    )
    losses, _ = drifting_regressor(seed=6, steps=300)
    still = np.mean([loss(np.zeros(N)) for loss in losses])
    assert play(tracker, losses).mean() < 0.8 * still
    assert play(Ocelad(Rice(on_intervals(Signs, np.zeros(N), 0.5)), FixedShare()), losses).mean() < 0.8 * still


@pytest.mark.parametrize("learner", [AdaGrad, FollowTheRegularizedLeader])
def test_dividing_the_step_of_a_learner_that_adapts(learner):
    """Divided, it cannot go far on a long interval; hold_interrupts, it reaches a distant target."""

    def reached(divide):
        tracker = Ocelad(Rice(on_intervals(learner, np.zeros(1), 1.0, divide=divide)), FixedShare())
        for _ in range(1500):
            tracker.update(AbsoluteError(np.ones(1), 30.0))
        return float(tracker.estimate[0])

    assert reached(divide=False) > 27 > reached(divide=True)


def test_memory_grows_as_the_logarithm_of_time():
    tracker = Ocelad(Rice(spawn_of(GradientDescent)), OceladWeights())
    loss = AbsoluteError(np.ones(N), 0.2)
    for _ in range(5000):
        tracker.update(loss)
    assert len(tracker.ensemble.learners) == len(tracker.state) == 13  # floor(log2 5001) + 1


def test_estimates_are_read_only():
    tracker = Ocelad(Pool([GradientDescent(np.zeros(N), 0.1)]), FixedShare())
    with pytest.raises(ValueError, match="read-only"):
        tracker.ensemble.learners[0].estimate[0] = 1.0


@pytest.mark.parametrize("learner", LEARNERS)
def test_learners_stay_in_their_ball_and_survive_zero_gradients(learner):
    inside = learner(np.zeros(N), 10.0, radius=0.5)
    inside.update(AbsoluteError(np.ones(N), 5.0))
    assert np.linalg.norm(inside.estimate) == pytest.approx(0.5)
    before = inside.estimate
    inside.update(AbsoluteError(np.zeros(N), 0.0))
    np.testing.assert_allclose(inside.estimate, before, rtol=1e-15)


def test_ftrl_minimises_what_it_says():
    """theta = argmin sum <g, theta> + sqrt(sum |g|^2) |theta - start|^2 / (2 step), in a ball."""
    rng = np.random.default_rng(0)
    start, gradients = 0.1 * rng.normal(size=N), []
    learner = FollowTheRegularizedLeader(start, step=0.3, radius=0.5)
    for _ in range(5):
        loss = AbsoluteError(rng.normal(size=N), 2.0)
        gradients.append(loss.gradient(learner.estimate))
        learner.update(loss)

    def objective(theta):
        strength = math.sqrt(sum(g @ g for g in gradients)) / (2 * 0.3)
        return sum(gradients) @ theta + strength * ((theta - start) ** 2).sum()

    for _ in range(200):
        other = rng.normal(size=N)
        other *= 0.5 * rng.random() / np.linalg.norm(other)
        assert objective(learner.estimate) <= objective(other) + 1e-12


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Rice(spawn_of(AdaGrad), base=0), "base must be an integer >= 1"),
        (lambda: Rice(spawn_of(AdaGrad), base=1.5), "base must be an integer >= 1"),
        (lambda: Rice(spawn_of(AdaGrad), base=True), "base must be an integer >= 1"),
        (lambda: Restarted(spawn_of(AdaGrad), base=-3), "base must be an integer >= 1"),
        (lambda: Rice(spawn_of(AdaGrad), start="warm"), "start must be 'fresh' or 'continue'"),
        (lambda: Pool([]), "learners must hold at least one"),
        (lambda: Pool([WindowedLeastSquares(3)], lengths=[1, 2]), "lengths must give"),
        (lambda: Union(), "at least one"),
        (lambda: Ocelad(Rice(spawn_of(AdaGrad)), FixedShare(), order="during"), "order must be"),
        (lambda: Ocelad([1], FixedShare()), "ensemble must be an ensemble"),
        (lambda: Ocelad(FixedShare(), Rice(spawn_of(AdaGrad))), "ensemble must be an ensemble"),
        (lambda: Ocelad(Rice(spawn_of(AdaGrad)), FixedShare), "weights must be a combiner"),
        (lambda: GradientDescent(np.zeros(2), step=0.0), "step must be positive"),
        (lambda: GradientDescent(np.zeros(2), step=math.inf), "step must be positive"),
        (lambda: GradientDescent(np.zeros(2), step=1.0, radius=0.0), "radius must be positive"),
    ],
)
def test_bad_options_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()
