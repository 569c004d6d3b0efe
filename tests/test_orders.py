"""Weighted pairs, triplets and quadruplets: oracles, and what may come in one stream."""

import numpy as np
import pytest

from literal import Literal
from ocelad import (
    L1,
    CoinBetting,
    FixedShare,
    GroupedShare,
    Hinge,
    LogDet,
    Logistic,
    MetricTracker,
    Rice,
    SquaredHinge,
    Step,
    VonNeumann,
)
from streams import comparisons
from trackers import either, rice

DEFAULTS = dict(step=8.0, strength=0.02, base=8, threshold_step=0.1, combiner="share", scale="auto")


class LiteralWeighted(Literal):
    """The loss is multiplied by a weight, which comes along with the label."""

    def hinge(self, M, mu, u, y):
        return y[1] * super().hinge(M, mu, u, y[0])

    def comid(self, interval, u, y):
        eta = self.step / np.sqrt(interval[1] - interval[0] + 1)
        M, mu = self.M[interval], self.mu[interval]
        if self.hinge(M, mu, u, y) > 0:
            M = M - eta * y[1] * y[0] * np.outer(u, u)
            mu = mu + self.threshold_step * eta * y[1] * y[0]
        eigenvalues, V = np.linalg.eigh(M)
        self.M[interval] = V @ np.diag(np.maximum(0, eigenvalues - eta * self.strength)) @ V.T
        self.mu[interval] = max(1.0, mu)


class LiteralOrders(Literal):
    """max(0, 1 + near'M near - far'M far), near and far one above the other in u, divided by sqrt 2."""

    def hinge(self, M, mu, u, y):  # noqa: ARG002
        near, far = np.sqrt(2) * u
        shortfall = 1 + near @ M @ near - far @ M @ far
        return shortfall if shortfall > 1e-12 * (1 + near @ M @ near + far @ M @ far) else 0.0

    def comid(self, interval, u, y):
        near, far = np.sqrt(2) * u
        eta, M = self.step / np.sqrt(interval[1] - interval[0] + 1), self.M[interval]
        if self.hinge(M, 1.0, u, y) > 0:
            M = M - eta * (np.outer(near, near) - np.outer(far, far))
        eigenvalues, V = np.linalg.eigh(M)
        self.M[interval] = V @ np.diag(np.maximum(0, eigenvalues - eta * self.strength)) @ V.T


def agree(tracker, literal):
    p = literal.probabilities()
    np.testing.assert_allclose(tracker.experts_["weight"], list(p.values()), rtol=1e-9)
    M, mu = literal.average(p)
    np.testing.assert_allclose(tracker.get_mahalanobis_matrix() * literal.unit**2, M, atol=1e-9 * np.abs(M).max())
    assert tracker.mu_ == pytest.approx(mu, rel=1e-9)
    assert tracker.scale_ == pytest.approx(literal.unit, rel=1e-12)


def triplets(seed, steps, n=6):
    """a is closer to b than to c in the first two features."""
    points = np.random.default_rng(seed).normal(size=(steps, 3, n))
    d = np.linalg.norm((points[:, :1] - points[:, 1:])[..., :2], axis=2)
    swap = d[:, 0] > d[:, 1]
    points[swap] = points[swap][:, [0, 2, 1]]
    return points


# Weights


def test_weighted_pairs_are_the_papers_with_a_weighted_loss():
    pairs, y = comparisons(seed=0, steps=400, n=6)
    weight = np.random.default_rng(1).choice([0.25, 1.0, 3.0], size=400)
    tracker, literal = rice().partial_fit(pairs, y, sample_weight=weight), LiteralWeighted(6, **DEFAULTS)
    for (x, z), label, w in zip(pairs, y, weight, strict=True):
        literal.update(x - z, (label, w))
    agree(tracker, literal)


@pytest.mark.parametrize(
    "weights", [GroupedShare(), FixedShare(), CoinBetting()], ids=["pool", "compiled", "general"]
)
def test_weight_one_is_none_and_weight_zero_is_absent(weights):
    pairs, y = comparisons(seed=2, steps=60, n=4)
    kept = np.arange(60) % 3 > 0
    plain = MetricTracker(weights=weights).partial_fit(pairs[kept], y[kept])
    weighted = MetricTracker(weights=weights).partial_fit(pairs, y, sample_weight=kept.astype(float))
    assert plain.experts_.tobytes() == weighted.experts_.tobytes()
    np.testing.assert_array_equal(plain.get_mahalanobis_matrix(), weighted.get_mahalanobis_matrix())
    before = weighted.get_mahalanobis_matrix()
    weighted.partial_fit(pairs, y, sample_weight=np.zeros(60))
    np.testing.assert_array_equal(weighted.get_mahalanobis_matrix(), before)


@pytest.mark.parametrize("weight", [[1.0], [-1.0, 1.0], [np.nan, 1.0], "heavy", [[1.0], [1.0]]])
def test_bad_weights_are_refused(weight):
    pairs, y = comparisons(seed=2, steps=2, n=4)
    with pytest.raises(ValueError, match="sample_weight must be"):
        MetricTracker().partial_fit(pairs, y, sample_weight=weight)


@pytest.mark.parametrize("loss", [Hinge(), SquaredHinge(), Logistic()], ids=repr)
@either
def test_weights_of_any_size(loss, new):
    """A huge one is refused before anything changes, not when its square overflows; a tiny one is learned."""
    pairs, y = comparisons(seed=2, steps=20, n=4)
    tracker = new(loss=loss).partial_fit(pairs, y)
    before = tracker.experts_.tobytes(), tracker.get_mahalanobis_matrix().tobytes(), tracker.scale_
    with pytest.raises(ValueError, match=r"sample_weight must be .* from 0 to 1e\+100"):
        tracker.partial_fit(pairs, y, sample_weight=np.where(np.arange(20) == 9, 1e160, 1.0))
    assert before == (tracker.experts_.tobytes(), tracker.get_mahalanobis_matrix().tobytes(), tracker.scale_)
    for weight in (1e100, 1e-160, 5e-324):
        tracker = new(loss=loss).partial_fit(pairs, y, sample_weight=np.full(20, weight))
        assert np.isfinite(tracker.get_mahalanobis_matrix()).all()


@either
@pytest.mark.parametrize(("cut", "max_rank"), [(100, None), (280, 2)])
def test_weights_that_come_on_the_way_are_those_of_black_boxes(cut, max_rank, new):
    pairs, y = comparisons(seed=3, steps=300, n=6)
    weight = np.where(np.arange(300) < cut, 1.0, 2.0)
    both = new(step=Step(max_rank=max_rank)).partial_fit(pairs[:cut], y[:cut])
    both.partial_fit(pairs[cut:], y[cut:], weight[cut:])
    boxes = new(step=Step(max_rank=max_rank), ensemble=lambda spawn: Rice(spawn, 8)).partial_fit(pairs, y, weight)
    np.testing.assert_allclose(both.experts_["weight"], boxes.experts_["weight"], rtol=1e-8)
    np.testing.assert_allclose(both.get_mahalanobis_matrix(), boxes.get_mahalanobis_matrix(), atol=1e-9)
    np.testing.assert_allclose(both.discarded_, boxes.discarded_, atol=1e-9)


# Triplets and quadruplets


def test_triplets_are_the_papers_with_another_loss():
    abc = triplets(seed=4, steps=400)
    tracker, literal = rice().partial_fit_triplets(abc), LiteralOrders(6, **DEFAULTS)
    for a, b, c in abc:
        literal.update(np.stack([a - b, a - c]) / np.sqrt(2), None)
    agree(tracker, literal)
    assert tracker.mu_ == 1


@either
def test_a_triplet_is_a_quadruplet(new):
    abc = triplets(seed=5, steps=80)
    one = new().partial_fit_triplets(abc)
    other = new().partial_fit_quadruplets(abc[:, [0, 1, 0, 2]])
    np.testing.assert_array_equal(one.get_mahalanobis_matrix(), other.get_mahalanobis_matrix())


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"loss": Logistic()},
        {"loss": SquaredHinge()},
        {"step": Step(8.0, capped=True)},
        {"divergence": LogDet(), "origin": 1.0, "step": 1.0},
        {"divergence": VonNeumann(), "origin": 1.0, "step": 1.0},
        {"regularizer": L1(0.02)},
    ],
    ids=repr,
)
@either
def test_triplets_are_learned_with_every_kind_of_part(options, new):
    tracker = new(**options)
    for part in np.array_split(triplets(seed=6, steps=300), 3):
        tracker.partial_fit_triplets(part)
    test = triplets(seed=7, steps=300)
    right = tracker.pair_distance(test[:, :2]) < tracker.pair_distance(test[:, ::2])
    euclid = np.linalg.norm(test[:, 0] - test[:, 1], axis=1) < np.linalg.norm(test[:, 0] - test[:, 2], axis=1)
    assert right.mean() > euclid.mean() + 0.05


@either
def test_pairs_and_triplets_alternate_and_a_batch_is_a_loop(new):
    abc, (pairs, y) = triplets(seed=8, steps=40), comparisons(seed=8, steps=40, n=6)
    batch, loop = new(), new()
    for part in np.array_split(np.arange(40), 4):
        batch.partial_fit_triplets(abc[part]).partial_fit(pairs[part], y[part])
        for k in part:
            loop.partial_fit_triplets(abc[k : k + 1])
        for k in part:
            loop.partial_fit(pairs[k : k + 1], y[k : k + 1])
    assert batch.experts_.tobytes() == loop.experts_.tobytes()
    np.testing.assert_array_equal(batch.get_mahalanobis_matrix(), loop.get_mahalanobis_matrix())


@pytest.mark.parametrize("factor", [1e-120, 1e120])
@either
def test_triplets_are_scale_free(factor, new):
    abc = triplets(seed=9, steps=100)
    one, other = new().partial_fit_triplets(abc), new().partial_fit_triplets(factor * abc)
    np.testing.assert_allclose(one.experts_["weight"], other.experts_["weight"], rtol=1e-7)
    np.testing.assert_allclose(one.pair_distance(abc[:, :2]), other.pair_distance(factor * abc[:, :2]), rtol=1e-7)


def test_bad_triplets_are_refused():
    with pytest.raises(ValueError, match=r"Tuples of 3 element\(s\) expected"):
        MetricTracker().partial_fit_triplets(np.zeros((5, 2, 3)))
    with pytest.raises(ValueError, match=r"triplets must be .* NaN"):
        MetricTracker().partial_fit_triplets(np.full((5, 3, 3), np.nan))
    with pytest.raises(ValueError, match="must have 3 features, as before, got 4"):
        MetricTracker().partial_fit_triplets(np.zeros((5, 3, 3))).partial_fit_triplets(np.zeros((5, 3, 4)))
