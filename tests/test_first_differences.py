"""One warning where a few features drown all others, and none where they do not."""

import copy
import pickle
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits, load_wine
from sklearn.kernel_approximation import Nystroem

import ocelad
from ocelad import FeatureScaleWarning, KeyedTrackers, MetricTracker, SupervisedMetricTracker, dumps
from ocelad.tracker.first_differences import ENOUGH, verdict
from streams import comparisons
from trackers import either

PAIRS, Y = comparisons(seed=0, steps=300, n=6)
LARGE = PAIRS * [1, 1, 1000, 1, 1, 1]
TEXT = r"feature 2 \(counted from 0\) is about \d+ times as large as any other: 99.99 % .*scale='features'"


def warned(work):
    """The result, and the texts of the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = work()
    assert all(each.category is FeatureScaleWarning for each in caught)
    return result, [str(each.message) for each in caught]


@either
def test_once_at_the_hundredth_difference(new):
    tracker, places = new(), []
    for k in range(300):
        _, texts = warned(lambda k=k: tracker.partial_fit(LARGE[k : k + 1], Y[k : k + 1]))
        places += [k] * len(texts)
    assert places == [ENOUGH - 1]
    with pytest.warns(FeatureScaleWarning, match=TEXT):
        whole = new().partial_fit(LARGE, Y)
    assert ocelad.dumps(whole) == ocelad.dumps(tracker)


def test_it_points_to_the_line_of_the_caller():
    for learn in (MetricTracker().partial_fit, MetricTracker().fit):
        with pytest.warns(FeatureScaleWarning) as caught:
            learn(LARGE, Y)
        assert [each.filename for each in caught] == [__file__]


def test_as_an_error_it_comes_before_anything_is_learned():
    tracker, fleet = MetricTracker().partial_fit(LARGE[:50], Y[:50]), KeyedTrackers()
    fleet.partial_fit(["a"] * 50, LARGE[:50], Y[:50])
    labelled = SupervisedMetricTracker(random_state=0).partial_fit(LARGE[:20, 0], Y[:20])
    before = [dumps(tracker), dumps(labelled), dumps(fleet["a"])]
    with warnings.catch_warnings():
        warnings.simplefilter("error", FeatureScaleWarning)
        for learn in (
            lambda: tracker.partial_fit(LARGE, Y),
            lambda: labelled.partial_fit(LARGE[:, 0], Y),
            lambda: fleet.partial_fit(["a", "b"] * 150, LARGE, Y),
            lambda: fleet.partial_fit(["a"] * 300, LARGE, Y),
        ):
            with pytest.raises(FeatureScaleWarning):
                learn()
    assert [dumps(tracker), dumps(labelled), dumps(fleet["a"])] == before
    assert list(fleet) == ["a"]


@either
@pytest.mark.parametrize("options", [{"scale": "features"}, {"scale": 1.0}, {"scale": None}])
def test_not_where_features_are_not_measured_in_one_unit(new, options):
    new(**options).partial_fit(LARGE, Y)


@pytest.mark.parametrize(
    "scales", [[1e3, 1, 1e3, 1], [300, 1, 1e3, 1], [1e3, 1, 1e3, 1, 1], [1e3, 1, 1e3] + [1] * 7]
)
@pytest.mark.parametrize("seed", range(5))
def test_half_of_the_features_may_be_large(scales, seed):
    pairs = np.random.default_rng(seed).normal(size=(200, 2, len(scales))) * scales
    with pytest.warns(FeatureScaleWarning, match=r"features 0, 2 \(counted from 0\) are about"):
        MetricTracker().partial_fit(pairs, np.resize(Y, 200))


@pytest.mark.parametrize("seed", range(5))
def test_points_near_a_plane_are_nothing_to_warn_of(seed):
    sizes = [1.0] * 3 + [0.02] * 7
    differences = np.abs(np.random.default_rng(seed).normal(size=(100, 10)) * sizes)
    assert verdict(differences) is None


def test_fewer_differences_say_nothing():
    pairs = np.concatenate([LARGE[: ENOUGH - 1], np.zeros((50, 2, 6))])
    tracker = MetricTracker().partial_fit(pairs, np.resize(Y, len(pairs)))
    with pytest.warns(FeatureScaleWarning, match=TEXT):
        tracker.partial_fit(LARGE[:1], Y[:1])


def test_copies_go_on_by_themselves_and_what_was_stored_says_nothing():
    tracker = MetricTracker().partial_fit(LARGE[:60], Y[:60])
    for stored in (ocelad.loads(ocelad.dumps(tracker)), pickle.loads(pickle.dumps(tracker))):
        stored.partial_fit(LARGE, Y)
    for each in (tracker, copy.copy(tracker)):
        assert len(warned(lambda each=each: each.partial_fit(LARGE[60:], Y[60:]))[1]) == 1


def test_what_is_refused_does_not_count():
    tracker = MetricTracker().partial_fit(PAIRS[:60], Y[:60])
    with pytest.raises(ValueError, match="found NaN"):
        tracker.partial_fit(np.where(LARGE > 0, LARGE, np.nan), Y)
    tracker.partial_fit(PAIRS, Y)


def test_features_are_called_by_their_names():
    pandas = pytest.importorskip("pandas")
    names = ["age", "height", "price", "rent", "rooms", "year"]
    sides = [pandas.DataFrame(LARGE[:, k], columns=names) for k in (0, 1)]
    for learn in (
        lambda: MetricTracker().partial_fit(sides, Y),
        lambda: SupervisedMetricTracker(random_state=0).fit(sides[0], Y),
        lambda: KeyedTrackers().partial_fit(["a"] * 300, sides, Y),
    ):
        with pytest.warns(FeatureScaleWarning, match="feature 'price' is about"):
            learn()


def test_rivers_features_are_called_by_their_names():
    pytest.importorskip("river")
    from ocelad.compat.river import PairClassifier, pair

    model, names = PairClassifier(max_features=6), ["a", "b", "price", "c", "d", "e"]

    def learn(k):
        x, z = (dict(zip(names, point, strict=True)) for point in LARGE[k])
        model.learn_one(pair(x, z), bool(Y[k] > 0))

    for k in range(ENOUGH - 1):
        learn(k)
    with pytest.warns(FeatureScaleWarning, match="feature 'price' is about"):
        learn(ENOUGH - 1)


def test_triplets_and_nonlinear_experts_too():
    triplets = np.concatenate([LARGE, LARGE[::-1, :1]], axis=1)
    for tracker in (MetricTracker(), MetricTracker(nonlinear=True)):
        with pytest.warns(FeatureScaleWarning, match=TEXT):
            copy.copy(tracker).partial_fit_triplets(triplets)
        with pytest.warns(FeatureScaleWarning, match=TEXT):
            tracker.observe(LARGE[:, 0]).partial_fit(LARGE, Y)


def test_a_fleet_once_and_none_of_its_keys():
    fleet, keys = KeyedTrackers(), np.arange(300) % 3
    _, texts = warned(
        lambda: [fleet.partial_fit(keys[k : k + 30], LARGE[k : k + 30], Y[k : k + 30]) for k in range(0, 300, 30)]
    )
    assert len(texts) == 1
    for _ in range(3):
        fleet.partial_fit(keys, LARGE, Y)
    with pytest.warns(FeatureScaleWarning):
        prior = MetricTracker.rice().partial_fit(LARGE, Y)
    KeyedTrackers(prior=prior).partial_fit(keys, LARGE, Y)


def test_several_large_features():
    u = np.abs(np.random.default_rng(0).normal(size=(100, 30)))
    u[:, [7, 3]] *= 300.0
    assert "features 3, 7 (counted from 0) are about" in verdict(u)
    assert "features 'f3', 'f7' are about" in verdict(u, [f"f{k}" for k in range(30)])


# None


def one_hot(rng, kinds, size=3000):
    return np.eye(50)[np.minimum(rng.zipf(kinds, size=size), 50) - 1]


def spiked(rng):
    """Normal, and a value in a hundred is a million times as large."""
    X = rng.normal(size=(2000, 8))
    X[rng.random(X.shape) < 0.01] *= 1e6
    return X


INNOCENT = {
    "digits": lambda rng: load_digits().data,  # noqa: ARG005
    "principal components": lambda rng: rng.normal(size=(2000, 40)) * 0.7 ** np.arange(40),
    "a common kind": lambda rng: one_hot(rng, 4.0),
    "rare kinds": lambda rng: one_hot(rng, 1.3),
    "counts of words": lambda rng: rng.poisson(rng.lognormal(-3, 2, size=60), size=(3000, 60)),
    "heavy tails": lambda rng: rng.standard_t(1.1, size=(3000, 8)),
    "wild values": spiked,
    "lognormal": lambda rng: rng.lognormal(0, 3, size=(3000, 8)),
    "embeddings with a large coordinate": lambda rng: rng.normal(size=(800, 768)) * np.r_[25.0, np.ones(767)],
    "kernels": lambda rng: Nystroem(gamma=1, n_components=7, random_state=0).fit_transform(
        3 * rng.normal(size=(800, 5))
    ),
    "one feature": lambda rng: rng.normal(size=(800, 1)),
    "one feature that varies": lambda rng: rng.normal(size=(800, 4)) * [1000.0, 0.0, 0.0, 0.0],
}


@pytest.mark.parametrize("kind", INNOCENT)
@pytest.mark.parametrize("seed", range(20))
def test_nothing_to_say(kind, seed):
    rng = np.random.default_rng(seed)
    X = np.asarray(INNOCENT[kind](rng), dtype=float)
    u = np.abs(X[rng.integers(len(X), size=200)] - X[rng.integers(len(X), size=200)])
    assert verdict(u[u.any(axis=1)][:ENOUGH]) is None


def test_sparse_points_have_one_unit_in_any_case():
    sides = [sparse.csr_array(LARGE[:, k]) for k in (0, 1)]
    MetricTracker().partial_fit(sides, Y).partial_fit(LARGE, Y)
    MetricTracker().partial_fit(LARGE[:9], Y[:9]).partial_fit_triplets([*sides, sides[0]]).partial_fit(LARGE, Y)


# What it is good for


def test_the_warning_is_right_about_wine():
    """Proline is 22 times as large as any other of the 13 measurements."""
    X, y = load_wine(return_X_y=True)
    rng = np.random.default_rng(0)
    i, j = rng.integers(len(X), size=(2, 1500))
    pairs, similar = np.stack([X[i], X[j]], axis=1), y[i] == y[j]
    with pytest.warns(FeatureScaleWarning, match=r"feature 12 .* about 2\d times"):
        auto = MetricTracker().partial_fit(pairs[:1000], similar[:1000])
    own = MetricTracker(scale="features").partial_fit(pairs[:1000], similar[:1000])
    right = [((each.predict(pairs[1000:]) > 0) == similar[1000:]).mean() for each in (auto, own)]
    assert right[1] > right[0] + 0.1


def test_a_fleet_from_a_file_says_nothing(tmp_path):
    fleet = KeyedTrackers().partial_fit(["a"] * 60, LARGE[:60], Y[:60])
    fleet.save(tmp_path / "fleet.ocelad")
    again = KeyedTrackers.load(tmp_path / "fleet.ocelad")
    again.partial_fit(np.arange(300) % 3, LARGE, Y)
    again["a"].partial_fit(LARGE, Y)
    for other in (copy.copy(fleet), pickle.loads(pickle.dumps(fleet))):
        with pytest.warns(FeatureScaleWarning):
            other.partial_fit(["a"] * 300, LARGE, Y)
