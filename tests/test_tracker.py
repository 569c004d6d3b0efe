"""The tracker's public behaviour: what it promises whatever the data."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from ocelad import (
    L1,
    AdaNormalHedge,
    CoinBetting,
    GroupedShare,
    Hinge,
    Intervals,
    LogDet,
    Logistic,
    MetricTracker,
    NuclearNorm,
    Ocelad,
    OceladWeights,
    Pool,
    Restarted,
    SaolWeights,
    SquaredFrobenius,
    SquaredHinge,
    Step,
    Unregularized,
    VonNeumann,
)
from ocelad.engine.stack_engine import StackEngine
from streams import comparisons
from trackers import either, rice

SETTINGS = {
    "defaults": rice(),
    "paper": MetricTracker.paper(step=2.0),
    "continue": rice(base=Intervals(1, "continue")),
    "coin": rice(weights=CoinBetting()),
    "hedge": rice(weights=AdaNormalHedge(), loss=Logistic()),
    "saol": rice(weights=SaolWeights(), ensemble=lambda spawn: Restarted(spawn), regularizer=Unregularized()),
    "pool": rice(ensemble=lambda spawn: Pool([spawn(4.0**k, None) for k in range(7)])),
    "ridge": rice(regularizer=SquaredFrobenius(0.05), loss=SquaredHinge(), step=0.5),
    "l1": rice(regularizer=L1(0.05), step=1.0),
    "capped": rice(step=Step(64.0, capped=True)),
    "von-neumann": rice(divergence=VonNeumann(), origin=1.0, step=1.0),
    "logdet": rice(divergence=LogDet(), origin=1.0, step=1.0),
    "matrix-origin": rice(origin=np.diag([1.0, 2.0, 0.0, 0.0, 0.5])),
    "after": rice(weights=OceladWeights(order="after")),
    "features": rice(scale="features"),
}
POOLS = {
    "pool": MetricTracker(),
    "pool-short": MetricTracker(memory=32, base=2, loss=Logistic()),
    "pool-continue": MetricTracker(memory=50, base=Intervals(1, "continue"), scale=None),
    "pool-no-memory": MetricTracker(memory=None),
    "pool-features": MetricTracker(scale="features"),
    "pool-l1": MetricTracker(regularizer=L1(0.05), step=1.0, memory=40),
    "pool-logdet": MetricTracker(divergence=LogDet(), origin=1.0, step=1.0, memory=None),
    "pool-of-learners": MetricTracker(
        ensemble=lambda spawn: Pool([spawn(4.0**k, None) for k in range(7)]), memory=32
    ),
}


@pytest.fixture(params=SETTINGS | POOLS, name="tracker")
def fixture_tracker(request):
    return clone((SETTINGS | POOLS)[request.param])


def levels_equal(one, other):
    return one.experts_.tobytes() == other.experts_.tobytes()


def test_promises(tracker):
    """M stays PSD, mu >= 1, weights sum to one, transform, distance and predict agree, inputs stay as they are."""
    pooled = isinstance(tracker.weights, GroupedShare)
    pairs, y = comparisons(seed=0, steps=150, n=5)
    kept = pairs.copy(), y.copy()
    for part in np.array_split(np.arange(150), 10):
        tracker.partial_fit(pairs[part], y[part])
        M = tracker.get_mahalanobis_matrix()
        np.testing.assert_allclose(M, M.T)
        assert np.linalg.eigvalsh(M)[0] >= -1e-10 * max(1.0, np.abs(M).max())
        assert pooled or tracker.mu_ >= 1
        assert tracker.experts_["weight"].sum() == pytest.approx(1)
        d = tracker.pair_distance(pairs)
        u = pairs[:, 0] - pairs[:, 1]
        np.testing.assert_allclose(d**2, np.einsum("ij,jk,ik->i", u, M, u), rtol=1e-8, atol=1e-10)
        embedded = tracker.transform(pairs.reshape(-1, 5)).reshape(150, 2, 5)
        np.testing.assert_allclose(
            np.linalg.norm(embedded[:, 0] - embedded[:, 1], axis=1), d, rtol=1e-6, atol=1e-6
        )
        assert pooled or tracker.threshold_ == np.sqrt(tracker.mu_)
        predicted, probability = tracker.predict(pairs), tracker.predict_proba(pairs)[:, 1]
        np.testing.assert_array_equal(predicted, np.where(d <= tracker.threshold_, 1, -1))
        np.testing.assert_array_equal(predicted, np.where(probability >= 0.5, 1, -1))
        assert (np.diff(probability[np.argsort(d)]) <= 0.0).all()
    np.testing.assert_array_equal(pairs, kept[0])
    np.testing.assert_array_equal(y, kept[1])


def test_a_batch_is_a_loop(tracker):
    pairs, y = comparisons(seed=1, steps=60, n=5)
    looped = clone(tracker)
    tracker.partial_fit(pairs, y)
    for pair, label in zip(pairs, y, strict=True):
        looped.partial_fit(pair[None], [label])
    assert levels_equal(tracker, looped)
    np.testing.assert_array_equal(tracker.get_mahalanobis_matrix(), looped.get_mahalanobis_matrix())
    assert tracker.mu_ == looped.mu_


@pytest.mark.parametrize("how", ["copy", "pickle"])
def test_a_copy_goes_on_alike(tracker, how):
    pairs, y = comparisons(seed=2, steps=80, n=5)
    tracker.partial_fit(pairs[:40], y[:40])
    if how == "pickle" and tracker.ensemble is not None:
        tracker.set_params(ensemble=None)  # a function written on the spot cannot be pickled; what it made can
    other = copy.deepcopy(tracker) if how == "copy" else pickle.loads(pickle.dumps(tracker))
    for each in (tracker, other):
        each.partial_fit(pairs[40:], y[40:])
    assert levels_equal(tracker, other)
    np.testing.assert_array_equal(tracker.get_mahalanobis_matrix(), other.get_mahalanobis_matrix())


@either
def test_learns_and_recovers(new):
    """After the notion of similarity changes, the tracker follows."""
    pairs, y = comparisons(seed=3, steps=1600, n=10)
    test_pairs, test_y = comparisons(seed=4, steps=1600, n=10)
    before, after = (test_pairs[:800], test_y[:800]), (test_pairs[800:], test_y[800:])

    def accuracy(tracker, data):
        return (tracker.predict(data[0]) == data[1]).mean()

    tracker = new().partial_fit(pairs[:800], y[:800])
    assert accuracy(tracker, before) > 0.8 > 0.65 > accuracy(tracker, after)
    tracker.partial_fit(pairs[800:], y[800:])
    assert accuracy(tracker, after) > 0.8 > 0.65 > accuracy(tracker, before)


@pytest.mark.parametrize(
    ("owner", "step", "options"),
    [
        (Ocelad, "take", {"regularizer": SquaredFrobenius(0.05)}),
        (StackEngine, "_step", {"weights": CoinBetting()}),  # it has no compiled form: Python reweights
    ],
)
def test_ctrl_c_in_a_batch_keeps_what_has_been_learned(owner, step, options, monkeypatch):
    pairs, y = comparisons(seed=13, steps=50, n=4)
    tracker, clean = MetricTracker(**options), MetricTracker(**options).partial_fit(pairs[:30], y[:30])
    update, calls = getattr(owner, step), []

    def interrupted(self, *given):
        calls.append(given)
        if len(calls) == 31:
            raise KeyboardInterrupt
        update(self, *given)

    monkeypatch.setattr(owner, step, interrupted)
    with pytest.raises(KeyboardInterrupt):
        tracker.partial_fit(pairs, y)
    monkeypatch.undo()
    for each in (tracker, clean):
        each.partial_fit(pairs[30:], y[30:])
    assert levels_equal(tracker, clean)
    np.testing.assert_array_equal(tracker.get_mahalanobis_matrix(), clean.get_mahalanobis_matrix())


@either
def test_options_are_read_once(new):
    pairs, y = comparisons(seed=14, steps=50, n=4)
    changed = new().partial_fit(pairs[:25], y[:25]).set_params(loss="nonsense", step=0.1)
    np.testing.assert_array_equal(
        changed.partial_fit(pairs[25:], y[25:]).get_mahalanobis_matrix(),
        new().partial_fit(pairs, y).get_mahalanobis_matrix(),
    )


# Scale


@either
@pytest.mark.parametrize("factor", [2.0**40, 1e-150, 3.7e-4, 1e6, 1e150])
@pytest.mark.parametrize("loss", [Hinge(), Logistic()], ids=repr)
def test_scale_free_from_the_first_comparison_on(factor, loss, new):
    pairs, y = comparisons(seed=5, steps=400, n=5)
    one, other = new(loss=loss), new(loss=loss)
    for k, (pair, label) in enumerate(zip(pairs, y, strict=True)):
        if k:
            np.testing.assert_array_equal(one.predict(pairs[k:]), other.predict(factor * pairs[k:]))
        one.partial_fit(pair[None], [label])
        other.partial_fit(factor * pair[None], [label])
        np.testing.assert_allclose(one.experts_["weight"], other.experts_["weight"], rtol=1e-7)
    np.testing.assert_allclose(one.pair_distance(pairs), other.pair_distance(factor * pairs), rtol=1e-7)
    M = other.get_mahalanobis_matrix() * factor * factor
    np.testing.assert_allclose(one.get_mahalanobis_matrix(), M, rtol=1e-6, atol=1e-6 * np.abs(M).max())
    assert other.scale_ == pytest.approx(factor * one.scale_, rel=1e-12)


@either
def test_a_fixed_scale_divides(new):
    pairs, y = comparisons(seed=6, steps=100, n=5)
    fixed = new(scale=4.0).partial_fit(pairs, y)
    bare = new(scale=None).partial_fit(pairs / 4, y)
    np.testing.assert_array_equal(fixed.get_mahalanobis_matrix() * 16, bare.get_mahalanobis_matrix())
    assert (fixed.scale_, bare.scale_) == (4.0, 1.0)
    assert not np.allclose(bare.mu_, new(scale=None).partial_fit(pairs, y).mu_)


@either
def test_automatic_scale_is_a_median_and_then_tends_to_the_root_mean_square(new):
    pairs, y = comparisons(seed=7, steps=300, n=5)
    pairs[::7, 1] = pairs[::7, 0]  # zero differences say nothing about the unit
    norms = np.linalg.norm(pairs[:, 0] - pairs[:, 1], axis=1)
    norms = norms[norms > 0]
    start = np.sort(norms[:16])[8]
    tracker = new().partial_fit(pairs, y)
    assert tracker.scale_ == pytest.approx(np.sqrt((16 * start**2 + (norms[16:] ** 2).sum()) / len(norms)))


@either
def test_long_differences_are_shortened_to_ten_units(new):
    pairs, y = comparisons(seed=7, steps=40, n=5)
    far, farther = pairs.copy(), pairs.copy()
    far[30], farther[30] = 1e3 * pairs[30], 1e9 * pairs[30]
    one, other = new().partial_fit(far, y), new().partial_fit(farther, y)
    np.testing.assert_allclose(one.experts_["weight"], other.experts_["weight"], rtol=1e-9)
    np.testing.assert_allclose(one.get_mahalanobis_matrix(), other.get_mahalanobis_matrix(), rtol=1e-6, atol=1e-12)


@either
@pytest.mark.parametrize("label", [1, -1])
@pytest.mark.parametrize("size", [1e-8, 1e-5, 1e-3, 1e3, 1e12, 1e150])
@pytest.mark.parametrize("place", [0, 1, 2, 100])
def test_one_odd_difference_does_not_stop_learning(place, size, label, new):
    """A near-duplicate or a wild value, also as the very first comparison."""
    pairs, y = comparisons(seed=8, steps=1000, n=5, change=False)
    pairs[place] *= size
    y[place] = label
    tracker = new().partial_fit(pairs, y)
    fair, labels = comparisons(seed=9, steps=500, n=5, change=False)
    assert (tracker.predict(fair) == labels).mean() > 0.8


# Symmetries


@pytest.mark.parametrize("setting", ["defaults", "paper", "von-neumann", "logdet", "ridge"])
def test_rotating_the_data_rotates_the_metric(setting):
    pairs, y = comparisons(seed=10, steps=200, n=5)
    D = np.linalg.qr(np.random.default_rng(0).normal(size=(5, 5)))[0]
    plain, rotated = clone(SETTINGS[setting]), clone(SETTINGS[setting])
    M = plain.partial_fit(pairs, y).get_mahalanobis_matrix()
    np.testing.assert_allclose(
        rotated.partial_fit(pairs @ D.T, y).get_mahalanobis_matrix(), D @ M @ D.T, atol=1e-7 * np.abs(M).max()
    )


@either
@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 10**6))
def test_order_within_a_pair_does_not_matter(seed, new):
    pairs, y = comparisons(seed=seed, steps=40, n=4)
    one, other = new().partial_fit(pairs, y), new().partial_fit(pairs[:, ::-1], y)
    assert levels_equal(one, other)
    np.testing.assert_array_equal(one.get_mahalanobis_matrix(), other.get_mahalanobis_matrix())


# Levels


@either
def test_levels_speak_of_the_next_comparison(new):
    pairs, y = comparisons(seed=11, steps=64, n=3)
    tracker = new(base=8)
    for t in range(1, 57):
        tracker.partial_fit(pairs[t - 1 : t], y[t - 1 : t])
        clock = 8 + t  # of comparison t + 1
        expected = [8.0 * 2**j for j in range(10) if 8 * 2**j <= clock]
        experts = tracker.experts_
        assert experts["length"][experts["kind"] == "rice"].tolist() == expected
        assert new is MetricTracker or (experts["kind"] == "rice").all()
    assert np.isnan(tracker.experts_["loss"][-1])  # at clock 64 a level has opened that has suffered no loss yet
    with pytest.raises(ValueError, match="read-only"):
        tracker.experts_["weight"] = 0.0


def test_paper_setting_is_the_papers():
    tracker = MetricTracker.paper()
    assert tracker.get_params() == {
        **MetricTracker().get_params(),
        "regularizer": NuclearNorm(0.01),
        "weights": OceladWeights(),
        "memory": None,
        "step": Step(1.0, threshold=1.0),
        "base": 1,
        "scale": None,
    }
    assert Intervals.of(tracker.base) == Intervals(1, "fresh")
    assert (tracker.weights.order, tracker.loss) == ("before", Hinge())


@either
def test_transform_puts_the_most_important_first(new):
    pairs, y = comparisons(seed=12, steps=300, n=5)
    tracker = new().partial_fit(pairs, y)
    Z = tracker.transform(np.eye(5))
    energy = (Z**2).sum(axis=0)
    assert (np.diff(energy) <= 1e-12).all()
    np.testing.assert_allclose(Z @ Z.T, tracker.get_mahalanobis_matrix(), atol=1e-10)


@either
def test_nothing_to_say_before_the_first_comparison(new):
    tracker = new()
    for ask in (
        lambda: tracker.mu_,
        lambda: tracker.experts_,
        lambda: tracker.expert_metrics_,
        lambda: tracker.scale_,
        lambda: tracker.get_mahalanobis_matrix(),
        lambda: tracker.predict(np.zeros((1, 2, 3))),
        lambda: tracker.mixture_proba(np.zeros((1, 2, 3))),
        lambda: tracker.transform(np.zeros((1, 3))),
    ):
        with pytest.raises(NotFittedError, match="partial_fit"):
            ask()


def test_import_is_light():
    """Nothing is compiled, and numba, matplotlib and click are not even imported."""
    rooms = ("numba", "matplotlib", "click", "tqdm")
    code = f"import sys; from ocelad import *; print([m for m in {rooms} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
