"""Parts of one's own: one that lacks a method is told which, before anything has changed."""

import numpy as np
import pytest

import ocelad
from ocelad import (
    FixedShare,
    GradientDescent,
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
