"""scale="features": each feature is divided by its own size, so that their scales do not matter."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import sparse

import ocelad
from literal_pool import Unit
from ocelad import History, KeyedTrackers, MetricTracker, SupervisedMetricTracker
from ocelad.neighbors import MovingIndex
from ocelad.tracker.units import FeatureScale
from ocelad.watch.prequential import progressive
from streams import comparisons
from trackers import rice

PAIRS, Y = comparisons(seed=0, steps=300, n=6)
LATER, LATER_Y = comparisons(seed=1, steps=100, n=6)
SIZES = np.array([1e-9, 3e5, 1.0, 1e4, 0.02, 7.0])


def features(**options):
    return MetricTracker(scale="features", **options)


def rice_of_features(**options):
    return rice(scale="features", **options)


either = pytest.mark.parametrize("new", [features, rice_of_features], ids=["pool", "rice"])


class LiteralSizes:
    """What is written in feature_sizes.py and units.py, with all differences kept."""

    def __init__(self, n):
        self.seen = [[] for _ in range(n)]  # of each feature; beyond the first five no more than ten sizes
        self.unit = Unit()

    def size(self, i):
        first, later = sorted(self.seen[i][:5]), np.array(self.seen[i][5:])
        if not first:
            return np.inf
        median = first[len(first) // 2]
        return np.sqrt((5 * median**2 + (later**2).sum()) / len(self.seen[i])) if len(later) else median

    def units(self):
        return np.array([self.size(i) for i in range(len(self.seen))]) * self.unit.value

    def measured(self, *u):
        """Differences in units from before them, no longer than ten together, one after the other."""
        v = [row / (self.units() / self.unit.value) for row in u]
        if not self.unit.norms and np.any(u):  # the first only sets sizes and the unit
            self.unit.value = np.sqrt(np.mean([np.count_nonzero(row) for row in u]))
            self.unit.norms.append(self.unit.value)
            for row in u:
                for i in np.flatnonzero(row):
                    self.seen[i].append(abs(row[i]))
            return np.zeros(u[0].size * len(u))
        for row in u:
            for i, x in enumerate(np.abs(row)):
                if x > 0:
                    self.seen[i].append(x if len(self.seen[i]) < 5 else min(x, 10 * self.size(i)))
        return np.concatenate(self.unit(*v))


def differences(seed, steps, n=4):
    """Of features of many sizes, with zeros and wild values, and one that comes late."""
    rng = np.random.default_rng(seed)
    u = rng.normal(size=(steps, n)) * 10.0 ** rng.integers(-3, 4, size=n)
    u[rng.random(u.shape) < 0.3] = 0.0
    u[rng.random(u.shape) < 0.02] *= 1e6
    u[: steps // 3, 0] = 0.0
    u[7] = 0.0
    return u


# Oracle


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("seed", range(5))
def test_differences_are_divided_as_it_is_written(seed, parts):
    u, literal = differences(seed, 120, 4 * parts), LiteralSizes(4)
    rows, scale, _ = FeatureScale.new(4).normalise(u, parts)
    expected = [literal.measured(*np.split(row, parts)) for row in u]
    np.testing.assert_allclose(rows, expected, rtol=1e-11)
    np.testing.assert_allclose(scale.value, literal.units(), rtol=1e-12)


@either
def test_a_tracker_learns_them_divided_and_answers_in_the_features_units(new):
    literal = LiteralSizes(6)
    rows = np.array([literal.measured(u) for u in (PAIRS[:, 0] - PAIRS[:, 1]) * SIZES])
    tracker, plain = new().partial_fit(PAIRS * SIZES, Y), new().set_params(scale=None)
    plain.partial_fit(np.stack([rows, np.zeros_like(rows)], axis=1), Y)
    np.testing.assert_allclose(tracker.experts_["weight"], plain.experts_["weight"], rtol=1e-6)
    units = literal.units()
    np.testing.assert_allclose(tracker.scale_, units, rtol=1e-12)
    inside = tracker.get_mahalanobis_matrix() * units * units[:, None]
    np.testing.assert_allclose(inside, plain.get_mahalanobis_matrix(), atol=1e-6 * np.abs(inside).max())
    for own, other in zip(tracker.expert_metrics_, plain.expert_metrics_, strict=True):
        np.testing.assert_allclose(
            own.M * units * units[:, None], other.M, atol=1e-6 * (1 + np.abs(other.M).max())
        )
    np.testing.assert_allclose(
        tracker.predict_proba(LATER * SIZES), plain.predict_proba(LATER * SIZES / units), atol=1e-6
    )


# Laws

FACTORS = st.lists(st.floats(-150, 150), min_size=4, max_size=4)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 100), FACTORS)
@example(0, [-150.0, 150.0, 0.0, 0.0])
@either
def test_a_factor_of_each_feature_does_not_matter(new, seed, powers):
    pairs, y = comparisons(seed, steps=60, n=4)
    factors = 10.0 ** np.array(powers)
    one, other = new(), new()
    before, after = progressive(one, pairs, y), progressive(other, pairs * factors, y)
    np.testing.assert_allclose(after.squared_distance, before.squared_distance, rtol=1e-5, atol=1e-9)
    np.testing.assert_allclose(one.experts_["weight"], other.experts_["weight"], rtol=1e-5)
    np.testing.assert_allclose(other.scale_, one.scale_ * factors, rtol=1e-10)
    fresh, _ = comparisons(seed + 1, steps=40, n=4)
    for some in (fresh, fresh[:5]):
        expected = one.pair_distance(some)
        np.testing.assert_allclose(other.pair_distance(some * factors), expected, rtol=1e-5, atol=1e-9)
        np.testing.assert_allclose(other.predict_proba(some * factors), one.predict_proba(some), atol=1e-5)
        certain = np.abs(expected - one.threshold_) > 1e-5
        np.testing.assert_array_equal(other.predict(some * factors)[certain], one.predict(some)[certain])


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(-60, 60), min_size=6, max_size=6))
@either
def test_a_power_of_two_does_not_change_a_bit(new, powers):
    factors = 2.0 ** np.array(powers)
    one, other = new().partial_fit(PAIRS[:80], Y[:80]), new().partial_fit(PAIRS[:80] * factors, Y[:80])
    assert one.experts_.tobytes() == other.experts_.tobytes()
    assert one.predict_proba(LATER).tobytes() == other.predict_proba(LATER * factors).tobytes()
    np.testing.assert_array_equal(one.components_, other.components_ * factors)


@either
def test_orders_of_points_of_any_scale(new):
    triplets = np.concatenate([PAIRS, PAIRS[::-1, :1]], axis=1)
    one, other, looped = (new().partial_fit(PAIRS * s, Y) for s in (1.0, SIZES, SIZES))
    one.partial_fit_triplets(triplets)
    other.partial_fit_triplets(triplets * SIZES)
    for triplet in triplets:
        looped.partial_fit_triplets(triplet[None] * SIZES)
    assert looped.experts_.tobytes() == other.experts_.tobytes()
    assert looped.scale_.tobytes() == other.scale_.tobytes()
    np.testing.assert_allclose(other.pair_distance(LATER * SIZES), one.pair_distance(LATER), rtol=1e-5)
    quadruplets = np.concatenate([triplets[:, [0, 1]], triplets[:, [0, 2]]], axis=1)
    again = new().partial_fit(PAIRS, Y).partial_fit_quadruplets(quadruplets)
    assert again.experts_.tobytes() == one.experts_.tobytes()


# What is said of the metric agrees


@either
@pytest.mark.parametrize("n_components", [None, 3])
def test_all_words_speak_of_one_metric(new, n_components):
    tracker = new(n_components=n_components).partial_fit(PAIRS * SIZES, Y)
    pairs = LATER * SIZES
    d, L, metric = tracker.pair_distance(pairs), tracker.components_, tracker.get_metric()
    np.testing.assert_array_equal(tracker.predict(pairs), np.where(d <= tracker.threshold_, 1, -1))
    u = pairs[:, 0] - pairs[:, 1]
    np.testing.assert_allclose(np.linalg.norm(u @ L.T, axis=1), d, rtol=1e-9)
    np.testing.assert_allclose(tracker.pair_distance(pairs[:3]), d[:3], rtol=1e-9)
    np.testing.assert_allclose([metric(x, z) for x, z in pairs], d, rtol=1e-9)
    M = tracker.get_mahalanobis_matrix()
    np.testing.assert_array_equal(M, M.T)
    np.testing.assert_allclose(np.einsum("ij,jk,ik->i", u, M, u), d**2, rtol=1e-8)
    x, z = (tracker.transform(side) for side in (pairs[:, 0], pairs[:, 1]))
    np.testing.assert_allclose(np.linalg.norm(x - z, axis=1), d, rtol=1e-7)
    sides = [sparse.csr_array(pairs[:, k]) for k in (0, 1)]  # to ask, not to learn
    np.testing.assert_allclose(tracker.pair_distance(sides), d, rtol=1e-9)
    np.testing.assert_allclose(tracker.transform(sides[0]), x, rtol=1e-9)


@pytest.mark.parametrize("power", [1.0, 4.0])
def test_neighbours_are_those_of_the_metric(power):
    tracker, points = features().partial_fit(PAIRS * SIZES**power, Y), LATER[:, 0] * SIZES**power
    queries = LATER[:, 1] * SIZES**power
    index = MovingIndex(tracker)
    index.add(points)
    expected = np.array([[tracker.get_metric()(q, x) for x in points] for q in queries])
    for _ in range(2):  # by measuring, and then by projection
        d, ids = index.kneighbors(queries, 4)
        np.testing.assert_allclose(d, np.sort(expected, axis=1)[:, :4], rtol=1e-6)
        np.testing.assert_array_equal(ids, np.argsort(expected, axis=1)[:, :4])
    Z, _ = index.export()
    np.testing.assert_allclose(
        np.linalg.norm(Z[:1] - Z, axis=1), [tracker.get_metric()(points[0], x) for x in points], atol=1e-6
    )
    assert index.moved == 0.0
    tracker.partial_fit(LATER * SIZES**power, LATER_Y)
    assert 0.0 < index.moved < 10.0


# Features that say nothing yet, and wild ones


@either
def test_a_feature_that_was_always_the_same_is_ignored(new):
    pairs = np.concatenate([PAIRS, np.full((300, 2, 1), 5.0)], axis=2)
    tracker, without = new().partial_fit(pairs, Y), new().partial_fit(PAIRS, Y)
    assert np.isinf(tracker.scale_[6])
    assert np.isfinite(tracker.scale_[:6]).all()
    other = pairs.copy()
    other[:, 0, 6] = 1e200
    assert tracker.pair_distance(other).tobytes() == tracker.pair_distance(pairs).tobytes()
    assert (tracker.components_[:, 6] == 0).all()
    assert (tracker.get_mahalanobis_matrix()[6] == 0).all()
    if new is rice_of_features:  # the experts of a pool start from random matrices of its features
        np.testing.assert_allclose(tracker.pair_distance(pairs), without.pair_distance(PAIRS), rtol=1e-9)
    tracker.partial_fit(other[:1], Y[:1])
    assert np.isfinite(tracker.scale_).all()


def test_before_features_differ_all_points_are_one():
    tracker = features().partial_fit(np.ones((3, 2, 6)), [1, -1, 1])
    assert (tracker.pair_distance(PAIRS) == 0).all()
    assert np.isfinite(tracker.predict_proba(PAIRS)).all()
    assert np.isfinite(tracker.mixture_proba(PAIRS)).all()
    assert (tracker.transform(PAIRS[:, 0]) == 0).all()
    tracker.partial_fit(PAIRS, Y)
    assert (tracker.predict(PAIRS[150:]) == Y[150:]).mean() > 0.7


@either
@pytest.mark.parametrize("size", [1e-12, 1e-3, 1e3, 1e12, 1e150])
@pytest.mark.parametrize("place", [0, 1, 4, 100])
def test_one_odd_value_does_not_stop_learning(new, place, size):
    pairs, y = comparisons(seed=8, steps=1000, n=5, change=False)
    pairs[place, :, 0] *= size
    tracker = new().partial_fit(pairs, y)
    fair, labels = comparisons(seed=9, steps=500, n=5, change=False)
    assert (tracker.predict(fair) == labels).mean() > 0.8


@pytest.mark.parametrize("size", [1.7e308, 1e-309, 5e-324])
@either
def test_differences_whose_length_is_no_number(new, size):
    pairs = np.zeros((40, 2, 4))
    pairs[:, 0, :2], pairs[:, 0, 2:] = size, 1.0
    y = np.where(np.arange(40) % 3 > 0, 1, -1)
    tracker = new().partial_fit(pairs, y)
    assert np.isfinite(tracker.pair_distance(pairs)).all()
    assert np.isfinite(tracker.predict_proba(pairs)).all()
    assert (features().partial_fit(PAIRS[:, :, :4], Y).pair_distance(pairs) >= 0).all()


def test_far_beyond_all_before():
    tracker = features().partial_fit(PAIRS * 1e-160, Y)
    assert (tracker.predict(PAIRS[:2] * 1e140) == -1).all()
    assert (tracker.mixture_proba(PAIRS[:2] * 1e140)[:, 1] < 0.1).all()


# What it cannot do


@either
def test_sparse_points_are_refused(new):
    sides = [sparse.csr_array(PAIRS[:, k]) for k in (0, 1)]
    with pytest.raises(ValueError, match="scale='features' needs dense points, got sparse ones: scale='auto'"):
        new().partial_fit(sides, Y)
    tracker = new().partial_fit(PAIRS, Y)
    before = ocelad.dumps(tracker)
    with pytest.raises(ValueError, match="dense"):
        tracker.partial_fit(sides, Y)
    with pytest.raises(ValueError, match="dense"):
        SupervisedMetricTracker(new()).fit(sides[0], Y)
    with pytest.raises(ValueError, match="dense"):
        KeyedTrackers(new()).partial_fit(["a"] * 300, sides, Y)
    assert ocelad.dumps(tracker) == before


def test_a_metric_to_start_from_needs_sizes():
    tracker = features()
    tracker.components_ = np.eye(6)
    np.testing.assert_allclose(tracker.pair_distance(LATER), np.linalg.norm(LATER[:, 0] - LATER[:, 1], axis=1))
    with pytest.raises(ValueError, match=r"components_ were set before the first comparison.*scale='auto'"):
        tracker.partial_fit(PAIRS, Y)


def test_a_metric_to_start_from_is_kept():
    tracker, pairs = rice_of_features(step=1e-9).partial_fit(PAIRS * SIZES, Y), LATER * SIZES
    L = np.diag(1.0 / SIZES)
    tracker.components_ = L
    expected = tracker.pair_distance(pairs)
    tracker.partial_fit(pairs[:1], LATER_Y[:1])
    np.testing.assert_allclose(tracker.pair_distance(pairs), expected, rtol=1e-6)
    again = ocelad.loads(ocelad.dumps(tracker))
    assert again.pair_distance(pairs).tobytes() == tracker.pair_distance(pairs).tobytes()


# With the rest of the package


def test_copies_and_pickles_go_on_alike():
    tracker = features().partial_fit(PAIRS[:100], Y[:100])
    others = [copy.copy(tracker), copy.deepcopy(tracker), pickle.loads(pickle.dumps(tracker))]
    tracker.partial_fit(PAIRS[100:], Y[100:])
    for other in others:
        assert ocelad.dumps(other.partial_fit(PAIRS[100:], Y[100:])) == ocelad.dumps(tracker)


def test_a_history_sees_what_was_predicted():
    one, other, watched = features(), features(), features()
    history = History(watched, every=7)
    watched.partial_fit(PAIRS * SIZES, Y)
    wrong = []
    for pair, label in zip(PAIRS * SIZES, Y, strict=True):
        wrong.append(
            bool(one._engine.t) and one.predict(pair[None])[0] != label if "_engine" in vars(one) else True
        )
        one.partial_fit(pair[None], [label])
    seen = progressive(other, PAIRS * SIZES, Y)
    assert ((seen.similar != (Y > 0))[1:] == wrong[1:]).all()
    assert history.records["error"][1:].tolist() == pytest.approx(
        [np.mean(wrong[k : k + 7]) for k in range(7, 294, 7)]
    )
    assert ocelad.dumps(one) == ocelad.dumps(other)


def test_fleets_and_labelled_points():
    keys = np.where(np.arange(300) % 3 > 0, "a", "b")
    fleet = KeyedTrackers(rice_of_features(), max_in_memory=1)
    for part in np.split(np.arange(300), 3):
        fleet.partial_fit(keys[part], PAIRS[part] * SIZES, Y[part])
    own = rice_of_features().partial_fit(PAIRS[keys == "a"] * SIZES, Y[keys == "a"])
    assert ocelad.dumps(fleet["a"]) == ocelad.dumps(own)
    points, labels = LATER[:, 0] * SIZES, LATER_Y
    one = SupervisedMetricTracker(features(), random_state=0).fit(points, labels)
    other = SupervisedMetricTracker(features(), random_state=0).fit(points / SIZES, labels)
    np.testing.assert_allclose(one.transform(points), other.transform(points / SIZES), rtol=1e-5, atol=1e-8)


def test_features_by_name():
    pytest.importorskip("river")
    from ocelad.compat.river import PairClassifier, pair

    names = [f"f{k}" for k in range(6)]
    models = PairClassifier(features(), max_features=8), PairClassifier(features(), max_features=8)
    for model, sizes in zip(models, (np.ones(6), SIZES), strict=True):
        for (x, z), label in zip(PAIRS * sizes, Y, strict=True):
            model.learn_one(pair(dict(zip(names, x, strict=True)), dict(zip(names, z, strict=True))), label > 0)
    for x, z in LATER[:20]:
        told = [
            pair(*(dict(zip(names, point * sizes, strict=True)) for point in (x, z))) for sizes in (1.0, SIZES)
        ]
        one, other = (model.distance_one(words) for model, words in zip(models, told, strict=True))
        assert one == pytest.approx(other, rel=1e-5)
        assert one > 0
