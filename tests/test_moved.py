"""How far a metric has moved since an index was built elsewhere."""

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from given import Given, semidefinite
from ocelad import MetricTracker
from ocelad.neighbors import MovingIndex
from streams import comparisons


def all_pairs(M, X):
    u = (X[:, None] - X[None]).reshape(-1, X.shape[1])
    return np.einsum("ij,jk,ik->i", u, M, u)


@settings(deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(2, 15), st.sampled_from([1e-60, 1.0, 1e60]))
def test_moved_is_the_change_of_all_squared_distances(seed, n, count, size):
    rng = np.random.default_rng(seed)
    before, now = semidefinite(rng, n, n), semidefinite(rng, n, max(1, n - 1))
    X = rng.normal(size=(count, n)) + rng.normal(size=n)
    then, later = all_pairs(before, X), all_pairs(now, X)
    expected = np.sqrt(np.mean((later - then) ** 2) / np.mean(then**2))
    metric = Given(before / size**2)
    index = MovingIndex(metric)
    index.add(X * size)
    assert index.moved == np.inf
    index.export()
    assert index.moved == 0.0
    metric.M = now / size**2
    assert index.moved == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("factor", [0.0, 0.5, 1.05, 3.0])
def test_a_metric_that_grows_by_a_factor_has_moved_by_the_growth(factor):
    X = np.random.default_rng(0).normal(size=(9000, 4))
    metric = Given(np.diag([1.0, 2.0, 0.0, 3.0]))
    index = MovingIndex(metric)
    index.add(X)
    index.export()
    metric.M = metric.M * factor
    assert index.moved == pytest.approx(abs(factor - 1))


def test_moved_on_a_sample_is_close_to_moved_on_all(monkeypatch):
    rng = np.random.default_rng(0)
    metric = Given(semidefinite(rng, 4, 2))
    index = MovingIndex(metric)
    index.add(rng.normal(size=(20_000, 4)))
    index.export()
    metric.M = metric.M + 0.1 * semidefinite(rng, 4, 2)
    sampled = index.moved
    monkeypatch.setattr("ocelad.neighbors.index.SAMPLE", 20_000)
    assert sampled == pytest.approx(index.moved, rel=0.1)


def test_moved_from_nothing():
    metric = Given(np.zeros((2, 2)))
    index = MovingIndex(metric)
    index.add([[0.0, 0.0], [1.0, 1.0]])
    index.export()
    assert index.moved == 0.0
    metric.M = np.eye(2)
    assert index.moved == np.inf


def test_exported_coordinates_are_euclidean_and_fresh_until_the_metric_moves():
    pairs, y = comparisons(seed=2, steps=120, n=5)
    tracker = MetricTracker().partial_fit(pairs[:100], y[:100])
    index = MovingIndex(tracker)
    index.add(pairs[:20, 0], np.arange(20) + 100)
    assert index.stale
    Z, ids = index.export()
    distances, found = index.kneighbors(pairs[:20, 0], 20)
    for row, i in enumerate(found):
        np.testing.assert_allclose(np.linalg.norm(Z[i - 100] - Z[row], axis=1), distances[row], atol=1e-12)
    assert ids.tolist() == list(range(100, 120))
    mark = index.fingerprint
    assert not index.stale
    assert MovingIndex(copy.deepcopy(tracker)).fingerprint == mark
    tracker.partial_fit(pairs[100:], y[100:])
    assert index.stale
    assert index.fingerprint != mark
    assert 0 < index.moved < np.inf


@pytest.mark.parametrize(
    ("other", "same"),
    [
        (Given([[1.0, 0.0], [0.0, 1.0]]), True),
        (Given([[1.0, -0.0], [-0.0, 1.0]]), True),
        (Given([[1.0, 0.0], [0.0, 1.0]], mu=np.nextafter(1.0, 2.0) ** 2), False),
        (Given([[1.0, 0.0], [0.0, np.nextafter(1.0, 2.0)]]), False),
    ],
)
def test_fingerprint_tells_metrics_apart_to_the_bit(other, same):
    assert (MovingIndex(Given(np.eye(2))).fingerprint == MovingIndex(other).fingerprint) == same
