"""Batch methods on a sliding window: which comparisons they are fitted to, and what is made of them."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from ocelad.baselines import Windowed
from ocelad.data import DriftingClusters, Segment
from ocelad.evaluate import knn_error

FITTED = []


class Mean(BaseEstimator):
    """A batch method that remembers what it was fitted to; its only feature is the mean of the window."""

    def fit(self, pairs, y):
        FITTED.append((pairs[:, 0, 0].tolist(), y.tolist()))
        self.mean = pairs.mean()
        return self

    def transform(self, X):
        return self.mean * np.asarray(X)


@pytest.fixture(name="stream")
def fixture_stream():
    FITTED.clear()
    pairs = np.arange(100.0)[:, None, None] * np.ones((1, 2, 1)) + [[[0.0], [0.5]]]
    y = np.resize([1, 1, -1], 100)
    return pairs, y


def test_refits_to_the_latest_window_every_so_often(stream):
    pairs, y = stream
    tracker = Windowed(Mean(), window=20, every=15)
    for t in range(100):
        tracker.partial_fit(pairs[t : t + 1], y[t : t + 1])
        assert len(FITTED) == (t + 1) // 15
    for number, (seen, signs) in enumerate(FITTED, 1):
        window = range(max(0, 15 * number - 20), 15 * number)
        assert seen == [float(t) for t in window]
        assert signs == [y[t] for t in window]


@pytest.mark.parametrize("sizes", [(100,), (7, 50, 1, 42), (14, 1, 85), (3, 0, 97)])
def test_a_batch_is_the_same_loop(stream, sizes):
    pairs, y = stream
    single, batched = Windowed(Mean(), 20, 15), Windowed(Mean(), 20, 15)
    for t in range(100):
        single.partial_fit(pairs[t : t + 1], y[t : t + 1])
    start = 0
    for size in sizes:
        batched.partial_fit(pairs[start : start + size], y[start : start + size])
        start += size
    assert batched.fitted.mean == single.fitted.mean
    assert batched.threshold_ == single.threshold_
    np.testing.assert_array_equal(batched.predict(pairs), single.predict(pairs))


@pytest.mark.parametrize("size", [1, 7, 100])
def test_a_method_fitted_once_stays_as_it_was(stream, size):
    pairs, y = stream
    tracker = Windowed(Mean(), window=20, every=15, once=True)
    for start in range(0, 100, size):
        tracker.partial_fit(pairs[start : start + size], y[start : start + size])
    assert [seen for seen, _ in FITTED] == [[float(t) for t in range(15)]]


def test_windows_of_one_kind_are_passed_over(stream):
    pairs, _ = stream
    y = np.ones(100)
    y[20] = -1  # in the windows that end at 30, and at no other time than then
    tracker = Windowed(Mean(), window=12, every=15).partial_fit(pairs, y)
    assert len(FITTED) == 1
    assert FITTED[0][0] == [float(t) for t in range(18, 30)]
    one_by_one = Windowed(Mean(), window=12, every=15)
    for t in range(100):
        one_by_one.partial_fit(pairs[t : t + 1], y[t : t + 1])
    assert one_by_one.fitted.mean == tracker.fitted.mean


def test_euclid_until_the_first_fit(stream):
    pairs, y = stream
    tracker = Windowed(Mean(), window=20, every=15)
    np.testing.assert_array_equal(tracker.transform([[3.0]]), [[3.0]])
    tracker.partial_fit(pairs[:14], y[:14])
    np.testing.assert_array_equal(tracker.pair_distance(pairs[:2]), [0.5, 0.5])
    assert not FITTED


def test_what_is_refused_leaves_no_trace(stream):
    pairs, y = stream
    tracker = Windowed(Mean(), 20, 15).partial_fit(pairs[:40], y[:40])
    before = tracker.t, tracker.fitted, len(FITTED)
    for bad in (
        lambda: tracker.partial_fit(np.ones((50, 2, 3)), np.resize([1, -1], 50)),
        lambda: tracker.partial_fit(pairs, 2 * y),
        lambda: tracker.partial_fit(np.full((50, 2, 1), np.nan), y[:50]),
        lambda: tracker.transform(np.ones((2, 3))),
    ):
        with pytest.raises(ValueError, match=r"^(pairs|y|X) must"):
            bad()
    assert (tracker.t, tracker.fitted, len(FITTED)) == before
    for options, name in [({"window": 0}, "window"), ({"every": 1.5}, "every"), ({"takes": "triplets"}, "takes")]:
        with pytest.raises(ValueError, match=f"^{name} must"):
            Windowed(Mean(), **options)
    with pytest.raises(ValueError, match=r"^labels must"):
        Windowed(Mean(), takes="labelled points").partial_fit(pairs, y)


@pytest.fixture(name="clusters")
def fixture_clusters():
    rng = np.random.default_rng(0)
    data = DriftingClusters.draw(rng, points=400)
    steps = list(data.stream(rng, (Segment(300, "A", 0.0), Segment(300, "B", 0.0))))
    return data, steps


def test_lda_on_labelled_points_follows_a_change(clusters):
    data, steps = clusters
    now = data.points @ steps[0].rotation.T
    places = {tuple(point): k for k, point in enumerate(now)}
    tracker, errors = Windowed(LinearDiscriminantAnalysis(), 200, 50, takes="labelled points"), []
    for step in steps:
        labels = [[step.labels[places[tuple(point)]] for point in step.pair]]
        tracker.partial_fit(step.pair[None], [step.y], labels=labels)
        if step.t in (299, 305, 599):
            errors.append(knn_error(tracker.transform(now), step.labels))
    assert errors[0] < 0.05
    assert errors[1] > 0.3  # the change has just come
    assert errors[2] < 0.05
    right = tracker.predict([step.pair for step in steps[300:]]) == [step.y for step in steps[300:]]
    assert right.mean() > 0.9


def test_pca_is_that_of_the_window(clusters):
    data, steps = clusters
    pairs = np.array([step.pair for step in steps])
    tracker = Windowed(PCA(3), 200, 50, takes="points").partial_fit(pairs, [step.y for step in steps])
    expected = PCA(3).fit(pairs[-200:].reshape(-1, 25)).transform(data.points)
    np.testing.assert_allclose(tracker.transform(data.points), expected)
    assert tracker.pair_distance(pairs[:5]).shape == (5,)
