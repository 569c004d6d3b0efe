"""A stream of labelled points becomes a stream of comparisons."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ocelad import FeatureScaleWarning, MetricTracker, SupervisedMetricTracker
from ocelad.pair_sampling import partners
from ocelad.watch.prequential import progressive

STRATEGIES = ["balanced", "random", "consecutive"]


def stream(seed, m=120, n=4):
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=m)
    X = rng.normal(size=(m, n))
    X[:, 0] += 4 * y
    return X, y


@pytest.mark.parametrize("strategy", STRATEGIES)
@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.integers(0, 2), min_size=1, max_size=30), st.integers(1, 6), st.integers(1, 3), st.integers(0, 5)
)
def test_partners_are_recent_and_every_point_has_its_share(strategy, y, memory, count, seen):
    new, old = partners(y, seen, strategy, memory, count, np.random.RandomState(0))
    assert ((new - old >= 1) & (new - old <= memory)).all()
    assert (np.diff(new) >= 0).all()
    for k in range(max(seen, 1), len(y)):
        available = min(k, memory)
        assert np.sum(new == k) == (min(count, available) if strategy == "consecutive" else count)
    assert set(new) <= set(range(max(seen, 1), len(y)))


def test_balanced_asks_for_both_kinds_by_the_toss_of_a_coin():
    """In turn, the last label would say the next one, and what is calibrated on the past would be wrong."""
    y = np.random.default_rng(0).integers(4, size=2000)
    for count in (1, 2):
        new, old = partners(y, 50, "balanced", 50, count, np.random.RandomState(0))
        same = y[new] == y[old]
        assert 0.46 < same.mean() < 0.54
        assert 0.46 < (same[1:] != same[:-1]).mean() < 0.54
    new, old = partners(y, 50, "random", 50, 1, np.random.RandomState(0))
    assert 0.15 < (y[new] == y[old]).mean() < 0.35


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_batch_is_a_loop(strategy):
    X, y = stream(seed=1)
    options = dict(strategy=strategy, memory=7, pairs_per_point=3, random_state=4)
    batch, loop = SupervisedMetricTracker(**options).fit(X, y), SupervisedMetricTracker(**options)
    for x, label in zip(X, y, strict=True):
        loop.partial_fit(x[None], [label])
    np.testing.assert_array_equal(batch.transform(X), loop.transform(X))
    assert batch.tracker_.experts_.tobytes() == loop.tracker_.experts_.tobytes()


def test_it_is_the_pairs_tracker_behind():
    X, y = stream(seed=2)
    new, old = partners(y, 0, "consecutive", 5, 2, np.random.RandomState(0))
    pairs, labels = np.stack([X[new], X[old]], axis=1), np.where(y[new] == y[old], 1, -1)
    options = MetricTracker(step=3.0)
    tracker = SupervisedMetricTracker(options, strategy="consecutive", memory=5).fit(X, y)
    np.testing.assert_array_equal(
        tracker.get_mahalanobis_matrix(), clone(options).partial_fit(pairs, labels).get_mahalanobis_matrix()
    )
    assert not hasattr(options, "mu_")


def test_memory_is_bounded():
    tracker = SupervisedMetricTracker(memory=10)
    for seed in range(5):
        tracker.partial_fit(*stream(seed))
    assert len(tracker._recent[0]) == len(tracker._recent[1]) == 10
    assert not np.shares_memory(tracker._recent[0], stream(4)[0])


@pytest.mark.parametrize("seed", range(3))
def test_neighbours_are_better_in_the_learned_metric(seed):
    X, y = load_iris(return_X_y=True)
    rng = np.random.default_rng(seed)
    X = np.hstack([StandardScaler().fit_transform(X), rng.normal(size=(150, 10))])[(order := rng.permutation(150))]
    tracked = make_pipeline(SupervisedMetricTracker(random_state=seed), KNeighborsClassifier())
    for strategy in STRATEGIES:
        tracked.set_params(supervisedmetrictracker__strategy=strategy)
        gain = (
            cross_val_score(tracked, X, y[order]).mean()
            - cross_val_score(KNeighborsClassifier(), X, y[order]).mean()
        )
        assert gain > 0.02, strategy


def test_works_in_a_search():
    X, y = stream(seed=8)
    grid = {
        "supervisedmetrictracker__strategy": STRATEGIES,
        "supervisedmetrictracker__n_components": [1, None],
        "supervisedmetrictracker__tracker": [None, MetricTracker(step=2.0)],
    }
    search = GridSearchCV(make_pipeline(SupervisedMetricTracker(), KNeighborsClassifier()), grid, cv=3).fit(X, y)
    assert search.best_score_ > 0.9
    nested = make_pipeline(SupervisedMetricTracker(MetricTracker()), KNeighborsClassifier())
    nested.set_params(supervisedmetrictracker__tracker__step=4.0).fit(X, y)
    assert nested[0].tracker_.step == 4.0


def test_follows_a_change_of_classes():
    X, y = stream(seed=3, m=800)
    other = (X[:, 3] > 0).astype(int)
    tracker = SupervisedMetricTracker(random_state=0)
    weight = []
    for labels in (y, other):
        tracker.partial_fit(X, labels)
        weight.append(np.argmax(tracker.get_mahalanobis_matrix().diagonal() * X.var(axis=0)))
    assert weight == [0, 3]


def test_any_labels():
    X, y = stream(seed=4)
    names = np.array(["a", "b", "c"])[y]
    one, other = (SupervisedMetricTracker(random_state=0).fit(X, labels) for labels in (y, names))
    np.testing.assert_array_equal(one.transform(X), other.transform(X))


def test_the_words_of_the_tracker():
    X, y = stream(seed=5)
    tracker = SupervisedMetricTracker(random_state=0, n_components=2).fit(X, y)
    pairs = np.stack([X[:50], X[50:100]], axis=1)
    np.testing.assert_array_equal(tracker.pair_distance(pairs), tracker.tracker_.pair_distance(pairs))
    assert tracker.components_.shape == (2, 4)
    assert tracker.get_feature_names_out().tolist() == ["supervisedmetrictracker0", "supervisedmetrictracker1"]
    tracker.components_ = np.eye(4)
    tracker.tracker_.set_params(n_components=None)
    np.testing.assert_array_equal(tracker.transform(X), X)
    assert tracker.partial_fit(X, y).transform(X).shape == X.shape


def test_points_by_indicators():
    X, y = stream(seed=6)
    one = SupervisedMetricTracker(random_state=0, preprocessor=X).fit(np.arange(120), y)
    other = SupervisedMetricTracker(random_state=0).fit(X, y)
    np.testing.assert_array_equal(one.transform(np.arange(120)), other.transform(X))
    np.testing.assert_array_equal(one.pair_distance([[0, 1]]), other.pair_distance(X[None, :2]))


@pytest.mark.parametrize(
    ("options", "data", "message"),
    [
        ({"strategy": "all"}, stream(0), "strategy must be one of"),
        ({"memory": 0}, stream(0), "memory must be an integer >= 1"),
        ({"pairs_per_point": 1.5}, stream(0), "pairs_per_point must be an integer >= 1"),
        ({"n_components": 5}, stream(0), "Invalid n_components"),
        ({}, (stream(0)[0], np.random.default_rng(0).normal(size=120)), "Unknown label type"),
        ({}, (stream(0)[0] * np.nan, stream(0)[1]), "contains NaN"),
        ({}, (stream(0)[0], stream(0)[1][1:]), "inconsistent numbers of samples"),
        ({}, (stream(0)[0][:1], stream(0)[1][:1]), "1 sample"),
    ],
)
def test_refused_without_a_trace(options, data, message):
    X, y = stream(seed=7)
    tracker = SupervisedMetricTracker(random_state=0).fit(X, y)
    before = pickle.dumps(tracker)
    with pytest.raises(ValueError, match=message):
        tracker.set_params(**options).fit(*data)
    assert pickle.dumps(tracker.set_params(**SupervisedMetricTracker(random_state=0).get_params())) == before
    with pytest.raises(ValueError, match="classes"):
        tracker.partial_fit(X, y, classes=[0, 1])


def test_what_its_tracker_refuses_draws_no_partners():
    X, y = stream(seed=8)
    random = np.random.RandomState(3)
    tracker = SupervisedMetricTracker(MetricTracker(scale=1.0), random_state=random)
    untouched = SupervisedMetricTracker(MetricTracker(scale=1.0), random_state=np.random.RandomState(3))
    for learn in (tracker.fit, tracker.fit(X[:60], y[:60]).partial_fit):
        before = random.get_state()[1:3]
        with pytest.raises(ValueError, match="unit of length"):
            learn(np.where(np.arange(120) == 90, 1e90, 1.0)[:, None] * X, y)
        np.testing.assert_array_equal(before[0], random.get_state()[1])
        assert before[1] == random.get_state()[2]
    for each in (tracker, untouched.fit(X[:60], y[:60])):
        each.partial_fit(X[60:], y[60:])
    np.testing.assert_array_equal(tracker.components_, untouched.components_)


def test_where_nothing_can_be_learned_predictions_are_tosses_too():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(2000, 3)), rng.integers(2, size=2000)
    new, old = partners(y, 0, "balanced", 100, 1, np.random.RandomState(0))
    pairs, said = np.stack([X[new], X[old]], axis=1), np.where(y[new] == y[old], 1, -1)
    seen = progressive(MetricTracker(), pairs, said)
    assert roc_auc_score(said, seen.probability) > 0.45


# What a newcomer may give


def state(tracker):
    return {
        name: value for name, value in vars(tracker).items() if name not in ("tracker_", "_own_lock", "_random")
    }


NAMES = np.array(["a", "b", "c"])


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (lambda y: y, lambda y: NAMES[y], "^y holds text, earlier labels were integers$"),
        (lambda y: y, lambda y: NAMES[y].astype(object), "^y holds text, earlier labels were integers$"),
        (lambda y: NAMES[y], lambda y: y, "^y holds integers, earlier labels were text$"),
        (
            lambda y: NAMES[y].tolist(),
            lambda y: (y == 1).tolist(),
            "^y holds truth values, earlier labels were text$",
        ),
        (lambda y: y, lambda y: [*y[:-1], "a"], "^y must hold labels of one kind, found text at index 119 and"),
        (lambda y: y, lambda y: [None, *y[1:]], "^y must hold a class for each point, found None at index 0"),
        (lambda y: y, lambda y: np.where(y == y[3], np.nan, y), "^y must hold a class .*, found NaN at index "),
        (
            lambda y: NAMES[y],
            lambda y: [*NAMES[y][:-1], np.nan],
            "^y must hold a class .*, found NaN at index 119",
        ),
    ],
)
def test_labels_are_of_one_kind_and_none_is_missing(before, after, message):
    X, y = stream(seed=9)
    tracker = SupervisedMetricTracker(random_state=0).partial_fit(X, before(y))
    kept, t = state(tracker), tracker.tracker_._engine.t
    for classes in (None, [0, 1, 2]):
        with pytest.raises(ValueError, match=message):
            tracker.partial_fit(X, after(y), classes=classes)
    assert all(each is kept[name] for name, each in state(tracker).items())
    assert tracker.tracker_._engine.t == t
    again = tracker.fit(X, before(y))  # another stream may have others
    assert len(again._recent[1]) == 120


def test_numbers_of_any_kind_go_together_and_pandas_says_what_is_missing():
    X, y = stream(seed=9)
    tracker = SupervisedMetricTracker(random_state=0).partial_fit(X, y).partial_fit(X, y.astype(float))
    assert tracker.partial_fit(X, y == 1).n_features_in_ == 4
    pandas = pytest.importorskip("pandas")
    for labels in (pandas.array([pandas.NA, *y[1:]]), pandas.Series([pandas.NA, *NAMES[y][1:]], dtype="string")):
        with pytest.raises(ValueError, match=r"^y must hold a class for each point, found (<NA>|NaN) at index 0$"):
            SupervisedMetricTracker().fit(X, labels)
    by_category = pandas.Series(NAMES[y], dtype="category")
    one, other = (SupervisedMetricTracker(random_state=0).fit(X, labels) for labels in (by_category, y))
    np.testing.assert_array_equal(one.components_, other.components_)


def test_it_takes_two_points_and_two_classes():
    X, y = stream(seed=9)
    tracker = SupervisedMetricTracker().partial_fit(X[:1], y[:1])
    for ask in (
        lambda: tracker.transform(X),
        lambda: tracker.components_,
        lambda: tracker.pair_distance(X[None, :2]),
    ):
        with pytest.raises(NotFittedError, match=r"^This SupervisedMetricTracker has not .* at least two points"):
            ask()
    with pytest.raises(ValueError, match=r"^y must hold at least two classes, got one class only: 7"):
        tracker.fit(X, np.full(120, 7))
    assert tracker.partial_fit(X[1:], y[1:]).transform(X).shape == X.shape
    assert SupervisedMetricTracker().partial_fit(X, np.full(120, 7)).transform(X).shape == X.shape


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tracker": "x"}, "^tracker must be None or a MetricTracker, an instance, got 'x'"),
        ({"tracker": MetricTracker}, "^tracker must be None or a MetricTracker, an instance, got <class"),
        ({"random_state": "x"}, "^random_state must be None, an integer .*, got 'x'"),
        ({"random_state": -1}, "^random_state must be None, an integer .*, got -1"),
    ],
)
def test_options_are_named(options, message):
    X, y = stream(seed=9)
    with pytest.raises(ValueError, match=message):
        SupervisedMetricTracker(**options).fit(X, y)


def test_options_of_a_tracker_that_is_not_there():
    with pytest.raises(
        ValueError, match=r"^tracker__step: tracker is None. Give SupervisedMetricTracker\(MetricTra"
    ):
        SupervisedMetricTracker().set_params(tracker__step=2.0)
    tracker = SupervisedMetricTracker().set_params(tracker=MetricTracker(), tracker__step=2.0, memory=9)
    assert (tracker.tracker.step, tracker.memory) == (2.0, 9)


def test_how_many_dimensions_were_asked_for():
    X, y = stream(seed=9)
    with pytest.raises(ValueError, match="Invalid n_components") as caught:
        SupervisedMetricTracker(n_components=99).fit(X, y)
    assert str(caught.value) == "Invalid n_components, must be in [1, 4]"  # to the letter, as in metric-learn
    assert caught.value.__notes__ == ["n_components is 99; points have 4 features."]


@pytest.mark.parametrize(("value", "kind"), [(np.nan, "NaN"), (-np.inf, "infinity")])
def test_where_a_value_is_missing(value, kind):
    X, y = stream(seed=9)
    X[3, 2] = value
    for points in (X, X.tolist()):
        with pytest.raises(ValueError, match=rf"^Input X contains {kind} at index \(3, 2\): row, column"):
            SupervisedMetricTracker().fit(points, y)
    tracker = SupervisedMetricTracker().fit(X[4:], y[4:])
    with pytest.raises(ValueError, match=rf"^Input X contains {kind} at index \(3, 2\)"):
        tracker.transform(X)


def test_rows_of_a_table_have_its_names():
    pandas = pytest.importorskip("pandas")
    X, y = stream(seed=9)
    table = pandas.DataFrame(X * [1.0, 1.0, 1.0, 1e6], columns=["age", "size", "height", "price"])
    with pytest.warns(FeatureScaleWarning, match="feature 'price' is about"):
        tracker = SupervisedMetricTracker(preprocessor=table, random_state=0).fit(np.arange(120), y)
    assert tracker.feature_names_in_.tolist() == list(table)
    by_table = tracker.transform(table)  # and no warning about names in what follows
    np.testing.assert_array_equal(tracker.transform(np.arange(120)), by_table)
    assert tracker.partial_fit(np.arange(9), y[:9]).feature_names_in_.tolist() == list(table)
    with pytest.raises(ValueError, match="feature names should match"):
        tracker.transform(table[list(table)[::-1]])
