"""Oracle: the package does what the paper writes."""

import numpy as np
import pytest

from literal import Literal
from ocelad import Intervals, MetricTracker, OceladWeights
from streams import comparisons
from trackers import rice

PAPER = dict(step=1.0, strength=0.01)
DEFAULTS = dict(step=8.0, strength=0.02, threshold_step=0.1, combiner="share", scale="auto")


def compare(tracker, literal, pairs, y):
    tracker.partial_fit(pairs, y)
    for (x, z), label in zip(pairs, y, strict=True):
        literal.update(x - z, label)
    p = literal.probabilities()
    levels = tracker.experts_
    assert levels["length"].tolist() == [s - q + 1 for q, s in p]
    np.testing.assert_allclose(levels["weight"], list(p.values()), rtol=1e-10)
    for metric, interval in zip(tracker.expert_metrics_, p, strict=True):
        difference = np.linalg.norm(metric.M * literal.unit**2 - literal.M[interval])
        assert difference <= 1e-10 * np.linalg.norm(literal.M[interval])
        assert metric.mu == pytest.approx(literal.mu[interval], rel=1e-10)
    M, mu = literal.average(p)
    np.testing.assert_allclose(
        tracker.get_mahalanobis_matrix() * literal.unit**2, M, rtol=0, atol=1e-10 * np.abs(M).max()
    )
    assert tracker.mu_ == pytest.approx(mu, rel=1e-10)
    assert tracker.scale_ == pytest.approx(literal.unit, rel=1e-12)


@pytest.mark.parametrize("start", ["fresh", "continue"])
@pytest.mark.parametrize("base", [1, 8])
@pytest.mark.parametrize("setting", ["paper", "defaults"])
def test_3000_steps_at_dimension_25(setting, base, start):
    pairs, y = comparisons(seed=1, steps=3000)
    tracker = MetricTracker.paper(**PAPER) if setting == "paper" else rice()
    tracker.set_params(base=Intervals(base, start))
    compare(tracker, Literal(25, base=base, start=start, **(PAPER if setting == "paper" else DEFAULTS)), pairs, y)


@pytest.mark.parametrize("step", [0.3, 8.0])
@pytest.mark.parametrize("order", ["before", "after"])
@pytest.mark.parametrize("regret", ["mean", "mixture"])
def test_readings_of_the_paper(regret, order, step):
    pairs, y = comparisons(seed=2, steps=700, n=6)
    tracker = MetricTracker.paper(step, 0.02).set_params(
        weights=OceladWeights(regret=regret, order=order), origin=1.0
    )
    compare(tracker, Literal(6, step=step, strength=0.02, regret=regret, order=order, origin=1.0), pairs, y)


def test_ties_of_orthonormal_documents():
    """Orthogonal unit vectors under M = I meet the margin exactly: rounding must not decide."""
    rng = np.random.default_rng(3)
    Q = np.linalg.qr(rng.normal(size=(12, 12)))[0]
    pairs = np.stack([Q[rng.integers(6, size=300)], Q[6 + rng.integers(6, size=300)]], axis=1)
    y = rng.choice([-1, 1], size=300)
    tracker = MetricTracker.paper(step=0.5, strength=0.0).set_params(origin=1.0)
    compare(tracker, Literal(12, step=0.5, strength=0.0, origin=1.0), pairs, y)
