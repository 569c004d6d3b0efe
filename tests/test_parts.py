"""Parts of one's own: one that lacks a method is told which, before anything has changed."""

import numpy as np
import pytest

import ocelad
from ocelad import (
    FixedShare,
    GradientDescent,
    GroupedShare,
    KeyedTrackers,
    MetricTracker,
    Ocelad,
    Pool,
    Restarted,
    Rice,
    Union,
    on_intervals,
)
from ocelad.neighbors import MovingIndex
from regression import play
from streams import comparisons

PAIRS, Y = comparisons(seed=0, steps=20, n=4)
SPAWN = on_intervals(GradientDescent, np.zeros(1), step=1.0)


class Halved:
    """A combiner that forgets two methods."""

    fields = ("weight",)
    open = update = max


class Frozen:
    """A learner that does not learn."""

    def __init__(self, *_):
        self.estimate = np.zeros(1)


class Slow:
    """A learner whose estimate takes long: nobody asks for it in vain."""

    @property
    def estimate(self):
        raise AssertionError

    def update(self, loss):
        pass


class Flat:
    """A loss without a slope; another part's method by the name of it is no method."""

    value, slope = abs, 3.0


class Quiet:
    losses = max


class Target:
    def __call__(self, theta):
        return abs(float(theta[0]))


LACKING = {
    "weights": (
        lambda: Ocelad(Rice(SPAWN), Halved()),
        r"^weights must be .*: Halved has no probabilities, mixture$",
    ),
    "any weights": (
        lambda: Ocelad(Rice(SPAWN), object()),
        "^weights must be .*: object has no fields, open, update, probabilities, mixture$",
    ),
    "a class": (
        lambda: Ocelad(Rice(SPAWN), FixedShare),
        "^weights .* got the class FixedShare, not an inst",
    ),
    "ensemble": (lambda: Ocelad(Quiet(), FixedShare()), "^ensemble must be .*: Quiet has no open, update, mix$"),
    "a pool": (
        lambda: Pool([GradientDescent([0.0], 1.0), Frozen()]),
        r"^learners\[1\] must be a learner, with estimate and update\(loss\), got .*: Frozen has no update$",
    ),
    "spawn": (lambda: Rice(3), "^spawn must be a function of a length and a start"),
    "spawn of restarted": (lambda: Restarted(None), "^spawn must be a function of a length and a start"),
    "what spawn makes": (
        lambda: Ocelad(Rice(Frozen), FixedShare()),
        "^what spawn .*: Frozen has no update$",
    ),
    "what spawn makes anew": (
        lambda: Ocelad(Restarted(Frozen), FixedShare()),
        "^what spawn .*: Frozen has no update$",
    ),
    "what spawn does not make": (
        lambda: Ocelad(Rice(lambda *_: None), FixedShare()),
        "^what spawn returns .*: NoneType has no estimate, update$",
    ),
    "a union": (
        lambda: Union(Rice(SPAWN), Quiet()),
        r"^ensembles\[1\] .*: Quiet has no open, update, mix$",
    ),
    "on_intervals": (lambda: on_intervals(3, np.zeros(1), 1.0), "^learner must be a class, or a function"),
    "a step": (lambda: GradientDescent([0.0], None), "^step must be positive and finite, got None"),
    "a metric": (lambda: MovingIndex(object()), r"^metric must be a MetricTracker, or have its get_maha"),
    "the class of a metric": (lambda: MovingIndex(MetricTracker), r"^metric must be a MetricTracker, or have its"),
}


@pytest.mark.parametrize("case", LACKING)
def test_what_is_missing_is_said_when_parts_are_put_together(case):
    make, message = LACKING[case]
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weights": Halved()}, "^weights must be .*: Halved has no probabilities, mixture$"),
        ({"loss": Flat()}, "^loss must be .*: Flat has no slope$"),
        ({"regularizer": Flat()}, "^regularizer must be .*: Flat has no strength, solve$"),
        (
            {"divergence": Quiet()},
            "^divergence must be .*: Quiet has no definite, potential, conjugate, link",
        ),
        ({"ensemble": lambda spawn: Quiet()}, "^ensemble must be .*: Quiet has no open, update, mix$"),  # noqa: ARG005
        ({"features": Quiet()}, "^features must be .*: Quiet has no transform, and cannot be called$"),
    ],
)
def test_a_tracker_says_it_at_the_first_comparison(options, message):
    tracker = MetricTracker(**options)
    with pytest.raises(ValueError, match=message):
        tracker.partial_fit(PAIRS, Y)
    assert not hasattr(tracker, "n_features_in_")
    with pytest.raises(ValueError, match=message):
        tracker.fit(PAIRS, Y)
    with pytest.raises(ValueError, match=message):
        KeyedTrackers(MetricTracker(**options)).partial_fit(["a"] * 20, PAIRS, Y)
    good = MetricTracker().partial_fit(PAIRS, Y)
    before, threshold = ocelad.dumps(good), good.threshold_
    with pytest.raises(ValueError, match=message):
        good.set_params(**options).fit(PAIRS, Y)
    defaults = {name: getattr(MetricTracker(), name) for name in options}
    assert ocelad.dumps(good.set_params(**defaults)) == before
    assert good.threshold_ == threshold


def test_estimates_are_not_computed_in_order_to_check():
    Pool([Slow()])


@pytest.mark.parametrize(
    ("loss", "error", "message"),
    [
        (3.0, ValueError, "^loss must be a function of the estimate, got 3.0, which cannot be called"),
        (Target(), AttributeError, "'Target' object has no attribute 'gradient'"),
    ],
)
@pytest.mark.parametrize("weights", [FixedShare(), ocelad.OceladWeights(order="after")])
def test_a_loss_that_learners_cannot_take_leaves_no_trace(loss, error, message, weights):
    tracker = Ocelad(Rice(SPAWN), weights)
    before = tracker.state.copy(), tracker.estimate
    with pytest.raises(error, match=message):
        tracker.update(loss)
    assert tracker.t == 0
    np.testing.assert_array_equal(tracker.state, before[0])
    np.testing.assert_array_equal(tracker.estimate, before[1])


# Parts of one's own that answer something else than was asked for


class Leader:
    """A combiner of one's own that follows the best so far, as it should be."""

    fields = ("loss",)

    def open(self, state, opening):
        rows = max(opening.slots, default=-1) + 1
        return np.concatenate([state, np.zeros((max(0, rows - len(state)), 1))])

    def update(self, state, losses, mixed):  # noqa: ARG002
        return state + losses[:, None]

    def probabilities(self, state):
        return np.eye(len(state))[state[:, 0].argmin()]

    def mixture(self, state):
        return self.probabilities(state)


WRONG_WEIGHTS = {
    "too much": ("mixture", lambda p: 2 * p, "1 probabilities, which sum to 1, got array"),
    "negative": ("mixture", lambda p: np.full(len(p), -1.0), "1 probabilities, which sum to 1, got array"),
    "nan": ("probabilities", lambda p: p * np.nan, r"1 probabilities, which sum to 1, got array\(\[nan\]\)"),
    "one too many": (
        "mixture",
        lambda p: np.append(p, 0.0),
        r"1 probabilities, which sum to 1, got array\(\[1., 0.\]",
    ),
    "a column": ("mixture", lambda p: p[:, None], "1 probabilities"),
    "nothing": ("open", lambda _: None, r"an array of numbers of shape \(1, 1\): a row per slot.*, got None"),
    "a row": ("open", np.ravel, r"an array of numbers of shape \(1, 1\)"),
    "text": ("open", lambda state: state.astype(str), r"an array of numbers of shape \(1, 1\)"),
    "nan in the state": ("open", lambda state: state * np.nan, r"an array of numbers of shape \(1, 1\)"),
}


def with_wrong(method, change, after=0):
    """A Leader whose answer is changed from its so-manieth call on."""

    class Wrong(Leader):
        calls = 0

    def answer(self, *given):
        Wrong.calls += 1
        right = getattr(Leader, method)(self, *given)
        return right if Wrong.calls <= after else change(right)

    setattr(Wrong, method, answer)
    return Wrong()


@pytest.mark.parametrize("case", WRONG_WEIGHTS)
def test_what_a_combiner_answers_is_checked(case):
    method, change, message = WRONG_WEIGHTS[case]
    told = rf"^weights: Wrong\.{method} must return {message}"
    with pytest.raises(ValueError, match=told):
        Ocelad(Pool([GradientDescent([0.0], 0.1)]), with_wrong(method, change))
    for options in ({}, {"loss": ocelad.SquaredHinge(), "regularizer": ocelad.L1(0.1)}):  # compiled, and not
        tracker = MetricTracker(weights=with_wrong(method, change), memory=None, **options)
        with pytest.raises(ValueError, match=told):
            tracker.partial_fit(PAIRS, Y)
        assert not hasattr(tracker, "n_features_in_")


def test_a_combiner_that_goes_wrong_later():
    for method, change in (("update", lambda state: state[:0]), ("mixture", lambda p: p / 2)):
        tracker = Ocelad(Pool([GradientDescent([0.0], 0.1)]), with_wrong(method, change, after=1))
        with pytest.raises(ValueError, match=rf"^weights: Wrong\.{method} must return "):
            play(tracker, [Descending()] * 3)
        assert tracker.t < 3


def test_a_combiner_that_answers_well_is_left_alone():
    own, fixed = MetricTracker(weights=Leader(), memory=None), MetricTracker.rice()
    assert own.partial_fit(PAIRS, Y).n_features_in_ == fixed.partial_fit(PAIRS, Y).n_features_in_
    tracker = Ocelad(Pool([GradientDescent([0.0], 0.1), GradientDescent([0.0], 0.2)]), Leader())
    tracker.update(Descending())
    assert tracker.probabilities.tolist() == [1.0, 0.0]
    assert tracker.t == 1


class Descending:
    """A loss that is smaller to the right."""

    def __call__(self, estimate):
        return -float(estimate[0])

    def gradient(self, estimate):
        return -np.ones_like(estimate)


class Turning:
    """A learner whose estimate becomes something else at its second step."""

    def __init__(self, becomes, start=None):
        self.becomes, self.estimate, self.t = becomes, np.zeros(1) if start is None else start, 0

    def update(self, _):
        self.t += 1
        if self.t == 2:
            self.estimate = self.becomes


@pytest.mark.parametrize(
    "becomes", [None, np.full(5, np.nan), np.full(5, np.inf), "far", np.zeros((2, 3)), [0.0] * 4]
)
def test_what_a_learner_becomes_is_checked(becomes):
    learners = [GradientDescent(np.zeros(5), 0.1), Turning(becomes, np.zeros(5))]
    tracker = Ocelad(Pool(learners), FixedShare())
    tracker.update(Descending())
    with pytest.raises(
        ValueError, match=r"^Turning\.estimate must be finite numbers of shape \(5,\) after an update"
    ):
        tracker.update(Descending())
    assert tracker.t == 1
    assert tracker.estimate[0] == pytest.approx(0.05)
    assert [learner.estimate[0] for learner in tracker.ensemble.learners] == [0.1, 0.0]


def test_estimates_may_grow():
    """As coefficients of kernels do: only those of one step have to suit each other."""

    class Growing:
        def __init__(self, rate, limit=9):
            self.rate, self.limit, self.estimate = rate, limit, np.zeros(0)

        def update(self, _):
            self.estimate = np.append(self.estimate, self.rate if len(self.estimate) < self.limit else np.nan)

    pool = Pool([Growing(0.1), Growing(0.3)])
    for size in range(1, 4):
        pool.update(None)
        np.testing.assert_allclose(pool.mix(np.array([0.5, 0.5])), [0.2] * size)
    pool = Pool([Growing(0.1), Growing(0.3, limit=1)])
    pool.update(None)
    for _ in range(2):  # a refused step leaves nothing behind
        with pytest.raises(ValueError, match=r"Growing\.estimate must be finite numbers"):
            pool.update(None)
    assert [len(learner.estimate) for learner in pool.learners] == [1, 1]


def test_a_learner_of_metrics_that_fails_leaves_a_tracker_that_goes_on():
    def ensemble(spawn):
        start = spawn(8.0, None).estimate
        return Pool([Turning(ocelad.Metric(start.M, np.nan), start), spawn(8.0, None)])

    tracker = MetricTracker(ensemble=ensemble, weights=FixedShare())
    with pytest.raises(
        ValueError, match=r"^Turning\.estimate must be a Metric of finite numbers of shape \(4, 4\) "
    ):
        tracker.partial_fit(PAIRS, Y)
    before = tracker.mu_
    assert np.isfinite(before)
    assert np.isfinite(tracker.pair_distance(PAIRS)).all()
    for _ in range(2):  # it fails again, in the same words
        with pytest.raises(ValueError, match=r"^Turning\.estimate must be a Metric of finite numbers"):
            tracker.partial_fit(PAIRS, Y)
    assert tracker.mu_ == before


@pytest.mark.parametrize("start", [np.zeros(4), "far"])
def test_an_estimate_that_the_loss_cannot_take_is_shown(start):
    tracker = MetricTracker(ensemble=lambda _: Pool([Turning(None, start)]), weights=FixedShare())
    with pytest.raises(AttributeError, match=r"squared_distance") as caught:
        tracker.partial_fit(PAIRS, Y)
    assert caught.value.__notes__ == [f"The loss was asked at Turning.estimate, {start!r}"]


@pytest.mark.parametrize("answer", [np.zeros(2), "large", None, [1.0, 2.0]])
def test_a_loss_is_a_number(answer):
    tracker = Ocelad(Rice(SPAWN), FixedShare())
    with pytest.raises(ValueError, match=r"^loss must be (a number|finite) at every learner's estimate, got "):
        tracker.update(lambda _: answer)
    assert tracker.t == 0


@pytest.mark.parametrize(("rule", "memory"), [(FixedShare, None), (GroupedShare, 32)])
def test_what_is_derived_from_a_combiner_is_used_as_it_is_written(rule, memory):
    class Even(rule):
        def probabilities(self, state):
            return np.full(len(state), 1.0 / len(state))

        mixture = probabilities

    class Same(rule):
        pass

    usual, same, even = (
        MetricTracker(weights=kind(), memory=memory).partial_fit(PAIRS, Y) for kind in (rule, Same, Even)
    )
    np.testing.assert_allclose(same.experts_["weight"], usual.experts_["weight"], rtol=1e-9)
    assert np.ptp(usual.experts_["weight"]) > 0
    assert np.ptp(even.experts_["weight"]) == 0
