"""river's interface: its own checks, and what they do not ask."""

import copy
import datetime
import decimal
import math
import pickle
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest

from ocelad import MetricTracker, NuclearNorm

pytest.importorskip("river", reason='river is not installed: pip install "ocelad[river]"')

from river import checks, compose, linear_model, neighbors, preprocessing

from ocelad.compat.river import MetricKNNClassifier, MetricTransformer, PairClassifier, PairSampler, pair

MODELS = {
    "transformer": MetricTransformer(seed=0),
    "unseeded": MetricTransformer(),
    "few-columns": MetricTransformer(max_features=3, shared_columns=2, window=5, seed=0),
    "late-ignored": MetricTransformer(max_features=2, shared_columns=0, seed=0),
    "own-tracker": MetricTransformer(tracker=MetricTracker(regularizer=NuclearNorm(0.005)), seed=0),
    "neighbours": MetricKNNClassifier(seed=0),
    "neighbours-few-columns": MetricKNNClassifier(n_neighbors=1, weighted=False, max_features=3, window=5),
    "pairs": PairClassifier(),
    "pairs-few-columns": PairClassifier(max_features=3, shared_columns=2),
}


@pytest.mark.filterwarnings("ignore::ocelad.FeatureScaleWarning")  # which is right about their features
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_rivers_own_checks(model):
    assert not model._unit_test_skips()
    checks.check_estimator(model)


def test_rivers_own_checks_of_a_sampler():
    """All but one, which takes what is returned for a prediction alone; river's samplers fail it, too."""
    model = PairSampler(PairClassifier(), seed=0)
    assert model._unit_test_skips() == {"check_predict_proba_one_binary"}
    checks.check_estimator(model)


def fruit(seed, steps, jump=False):
    """Points of three kinds that differ in one feature, after a jump in another; some features come and go."""
    rng = np.random.default_rng(seed)
    for t in range(steps):
        kind = int(rng.integers(3))
        x = {name: float(rng.normal()) for name in ("a", "b", "c", "d")}
        x["b" if jump and t >= steps // 2 else "a"] = float(rng.normal(2.0 * kind, 0.3))
        if rng.random() < 0.3:
            x[f"once {t}"] = float(rng.normal())
        yield x, kind


def relevance(model, names="abcd"):
    return max(names, key=lambda name: model.distance_one({name: 1.0}, {}))


def test_labelled_points_teach_which_feature_matters_and_a_jump_is_followed():
    model = MetricTransformer(max_features=8, shared_columns=4, seed=1)
    found = []
    for t, (x, y) in enumerate(fruit(0, 1200, jump=True)):
        model.learn_one(x, y)
        if t in (599, 1199):
            found.append(relevance(model))
    assert found == ["a", "b"]
    assert len(model.metric.columns.known) == 8


def test_pairs_teach_which_feature_matters():
    points = list(fruit(1, 801))
    model, right = PairClassifier(), []
    for (x, kind), (z, other) in pairwise(points):
        right.append(model.predict_one(pair(x, z)) == (kind == other))
        model.learn_one(pair(x, z), kind == other)
    assert np.mean(right[400:]) > 0.9
    assert model.distance_one(pair({"a": 1.0}, {})) > 3 * model.distance_one(pair({"b": 1.0}, {}))


def test_transform_is_the_distance():
    model = MetricTransformer(seed=0)
    points = list(fruit(2, 200))
    for x, y in points:
        model.learn_one(x, y)
    (x, _), (z, _) = points[:2]
    zx, zz = model.transform_one(x), model.transform_one(z)
    assert model.distance_one(x, z) == pytest.approx(np.linalg.norm([zx[name] - zz[name] for name in zx]))
    assert model.distance_one(x, x) == 0.0
    assert model.distance_one(x, z) == model.distance_one(z, x)


def test_before_learning_the_metric_is_euclids():
    model, x = MetricTransformer(), {"a": 3.0, "b": 0}
    out = model.transform_one(x)
    assert out == x
    assert out is not x
    assert model.distance_one(x, {"c": 4.0}) == 5.0
    assert PairClassifier().predict_proba_one(pair(x, x)) == {False: 0.5, True: 0.5}


def test_probability_is_above_a_half_exactly_within_the_threshold():
    model = PairClassifier()
    points = list(fruit(3, 301))
    for (x, kind), (z, other) in pairwise(points):
        model.learn_one(pair(x, z), kind == other)
    seen = set()
    for (x, _), (z, _) in pairwise(points):
        p = model.predict_proba_one(pair(x, z))
        within = model.distance_one(pair(x, z)) <= model.metric.tracker.threshold_
        assert model.predict_one(pair(x, z)) == within == (p[True] >= 0.5)
        seen.add(within)
    assert seen == {True, False}
    assert model.predict_proba_one(pair({"a": 1e200}, {})) == {False: 1.0, True: 0.0}


def test_a_pair_is_its_difference():
    one, other, bare = PairClassifier(), PairClassifier(prefixes=("left_", "right_")), PairClassifier()
    points = list(fruit(4, 60))
    for (x, kind), (z, label) in pairwise(points):
        one.learn_one(pair(x, z), kind == label)
        other.learn_one(pair(x, z, other.prefixes), 1 if kind == label else -1)
        bare.learn_one({name: x.get(name, 0.0) - z.get(name, 0.0) for name in {**x, **z}}, np.bool_(kind == label))
    x = points[0][0]
    assert one.distance_one(pair(x, {})) == other.distance_one(pair(x, {}, other.prefixes)) == bare.distance_one(x)


def test_the_same_seed_learns_the_same():
    one, other, third = MetricTransformer(seed=3), MetricTransformer(seed=3), MetricTransformer(seed=4)
    for x, y in fruit(5, 100):
        for model in (one, other, third):
            model.learn_one(x, y)
    x, z = {"a": 1.0, "c": 2.0}, {"b": 1.0}
    assert one.distance_one(x, z) == other.distance_one(x, z) != third.distance_one(x, z)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_a_copy_goes_on_alike(copied):
    model = MetricTransformer(seed=0)
    points = list(fruit(6, 120))
    for x, y in points[:60]:
        model.learn_one(x, y)
    twin = copied(model)
    for x, y in points[60:]:
        model.learn_one(x, y)
        twin.learn_one(x, y)
    assert model.transform_one(points[0][0]) == twin.transform_one(points[0][0])


def test_the_tracker_given_is_copied_not_trained():
    tracker = MetricTracker()
    model = MetricTransformer(tracker=tracker, seed=0)
    for x, y in fruit(7, 20):
        model.learn_one(x, y)
    assert not hasattr(tracker, "n_features_in_")
    assert not model.clone().metric.learned


def test_memory_does_not_grow_with_new_features():
    model, sizes = MetricTransformer(max_features=8, shared_columns=4, window=20, seed=0), []
    rng = np.random.default_rng(0)
    for t in range(2500):
        model.learn_one(
            {f"f{t}": float(rng.normal()), f"g{t}": 1.0, "a": float(rng.normal())}, int(rng.integers(2))
        )
        if t in (1100, 2400):
            sizes.append(model._raw_memory_usage)
    assert sizes[1] < 1.2 * sizes[0]  # a level more, nothing else


def test_numpys_integers_are_counts():
    plain, numpys = (MetricTransformer(window=kind(3), seed=0) for kind in (int, np.int64))
    for x, y in fruit(seed=9, steps=30):
        for model in (plain, numpys):
            model.learn_one(x, y)
    assert numpys.transform_one(x) == plain.transform_one(x)


def test_in_a_pipeline():
    model = compose.Pipeline(
        preprocessing.StandardScaler(), MetricTransformer(seed=0), linear_model.SoftmaxRegression()
    )
    for x, y in fruit(8, 50):
        model.predict_one(x)
        model.learn_one(x, y)
    assert model.predict_one(x) in (0, 1, 2)


BAD = {
    "nan": (MetricTransformer(), {"a": float("nan")}, 1, r"x\['a'\] must be a finite number"),
    "not-a-dictionary": (MetricTransformer(), [1.0], 1, "x must be a dictionary"),
    "no-label": (MetricTransformer(), {"a": 1.0}, None, "y must be a label, got None"),
    "nan-label": (MetricTransformer(), {"a": 1.0}, float("nan"), "y must be a label, got nan"),
    "list-label": (MetricTransformer(), {"a": 1.0}, [1], "y must be a label"),
    "array-label": (MetricTransformer(), {"a": 1.0}, np.zeros(2), "y must be a label"),
    "pair-nan": (PairClassifier(), {"x:a": 1.0, "z:b": float("nan")}, True, r"x\['z:b'\] must be"),
    "pair-label": (PairClassifier(), {"x:a": 1.0}, 2, "y must be True .similar. or False .different., got 2"),
    "pair-no-label": (PairClassifier(), {"x:a": 1.0}, None, "y must be True"),
    "pair-text-label": (PairClassifier(), {"x:a": 1.0}, "same", "y must be True"),
    "overflow": (MetricTransformer(), {"a": 1.7e308, "b": -1.7e308}, "far", "overflow"),
    "pair-overflow": (PairClassifier(), {"x:a": 1.7e308, "z:a": -1.7e308}, True, "overflow"),
}


@pytest.mark.parametrize("case", BAD)
def test_rejected_without_a_trace(case):
    model, x, y, message = BAD[case]
    model = model.clone({"seed": 0} if isinstance(model, MetricTransformer) else {})
    for point, label in [*fruit(9, 10), ({"a": -1e308, "b": 1e308}, "far")]:
        model.learn_one(point, bool(label) if isinstance(model, PairClassifier) else label)
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match=message):
        model.learn_one(x, y)
    assert pickle.dumps(model) == before


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: MetricTransformer(window=0), "window must be an integer >= 1, got 0"),
        (lambda: MetricTransformer(max_features=2.5), "max_features must be an integer >= 1, got 2.5"),
        (lambda: MetricTransformer(shared_columns=-1), "shared_columns must be an integer >= 0"),
        (lambda: MetricTransformer(tracker=3), "tracker must be a MetricTracker or None, got 3"),
        (lambda: PairClassifier(max_features=True), "max_features must be"),
        (lambda: PairClassifier(prefixes=("a", "ab")), "prefixes must be two strings that cannot be mistaken"),
        (lambda: PairClassifier(prefixes="xz"), "prefixes must be"),
        (lambda: pair({1: 2.0}, {}), "names of features must be strings"),
    ],
)
def test_bad_options_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_river_is_imported_only_when_asked_for():
    code = "import sys, ocelad, ocelad.compat; assert 'river' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_word_where_river_is_missing():
    code = "import sys; sys.modules['river'] = None; import ocelad.compat.river"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert 'needs river: pip install "ocelad[river]"' in run.stderr


def test_a_sampler_asks_within_its_budget_and_learns_as_well_from_a_third():
    points = list(fruit(1, 1501))
    every, model, right, asked = PairClassifier(), PairSampler(PairClassifier(), budget=1 / 3, seed=0), [], 0
    for (x, kind), (z, other) in pairwise(points):
        prediction, ask = model.predict_one(pair(x, z))
        right.append((prediction == (kind == other), every.predict_one(pair(x, z)) == (kind == other)))
        every.learn_one(pair(x, z), kind == other)
        if ask:
            asked += 1
            model.learn_one(pair(x, z), kind == other)
    assert asked == pytest.approx(500, rel=0.02)
    of_a_third, of_all = np.mean(right[750:], axis=0)
    assert of_a_third > of_all - 0.02


def test_a_sampler_gives_probabilities_and_goes_on_from_a_copy():
    model = PairSampler(PairClassifier(), seed=3)
    points = list(fruit(2, 120))
    for (x, kind), (z, other) in pairwise(points[:60]):
        model.predict_one(pair(x, z))
        model.learn_one(pair(x, z), kind == other)
    twin = copy.deepcopy(model)
    for (x, _), (z, _) in pairwise(points[60:]):
        probabilities, ask = model.predict_proba_one(pair(x, z))
        assert (probabilities, ask) == twin.predict_proba_one(pair(x, z))
        assert sum(probabilities.values()) == pytest.approx(1.0)
        assert type(ask) is bool
    assert twin._queries.tracker is twin.classifier.metric.tracker is not model.classifier.metric.tracker


def test_a_sampler_refuses_what_it_cannot_use():
    with pytest.raises(ValueError, match="classifier must be a PairClassifier"):
        PairSampler(linear_model.LogisticRegression())
    with pytest.raises(ValueError, match=r"budget must be a share in \(0, 1\], got 0.0"):
        PairSampler(PairClassifier(), budget=0.0)


# Nearest neighbours


class ByRiver:
    """What `MetricKNNClassifier` is: river's own classifier, with the learned distance."""

    def __init__(self, window, **options):
        self.metric = MetricTransformer(window=window, seed=0)
        engine = neighbors.LazySearch(window, dist_func=lambda x, z: self.metric.distance_one(x, z))
        self.knn = neighbors.KNNClassifier(engine=engine, **options)

    def learn_one(self, x, y):
        self.knn.learn_one(x, y)
        self.metric.learn_one(x, y)


@pytest.mark.parametrize("options", [{}, {"n_neighbors": 1}, {"n_neighbors": 9, "weighted": False}])
def test_neighbours_are_those_of_rivers_classifier(options):
    one, other = MetricKNNClassifier(window=30, seed=0, **options), ByRiver(30, **options)
    assert one.predict_one({"a": 1.0}) is None
    assert one.predict_proba_one({"a": 1.0}) == {}
    for t, (x, y) in enumerate(fruit(7, 150)):
        x = {name: value for name, value in x.items() if name in "abcd"}
        if t:
            expected = other.knn.predict_proba_one(x)
            found = one.predict_proba_one(x)
            assert found == pytest.approx({label: expected[label] for label in found}, rel=1e-6)
            assert one.predict_one(x) in {
                label for label in found if expected[label] > max(expected.values()) - 1e-6
            }
        for model in (one, other):
            model.learn_one(x, y)
    assert options.get("weighted") is False or one.predict_proba_one(x)[y] == 1.0  # an exact match


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model)), lambda model: model.clone()]
)
def test_copies_of_a_classifier_have_a_metric_of_their_own(copied):
    model = MetricKNNClassifier(seed=0, window=40)
    points = list(fruit(6, 120))
    for x, y in points[:60]:
        model.learn_one(x, y)
    x, z = points[0][0], points[1][0]
    twin, distance = copied(model), model.distance_one(x, z)
    fresh = twin.predict_one(x) is None  # a clone has learned nothing
    for each, label in points[60:]:
        twin.learn_one(each, label)
    assert model.distance_one(x, z) == distance != twin.distance_one(x, z)
    for each, label in points[60:]:
        model.learn_one(each, label)
    assert fresh or model.distance_one(x, z) == twin.distance_one(x, z)
    assert fresh or [model.predict_proba_one(each) for each, _ in points] == [
        twin.predict_proba_one(each) for each, _ in points
    ]


def test_neighbours_follow_a_jump():
    model, right = MetricKNNClassifier(seed=1), []
    for x, y in fruit(0, 1200, jump=True):
        right.append(model.predict_one(x) == y)
        model.learn_one(x, y)
    assert np.mean(right[300:600]) > 0.75 < np.mean(right[900:])


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("red", "got 'red'; encode text first"),
        (datetime.date(2024, 2, 29), r"got datetime.date\(2024, 2, 29\); make a number of it first"),
        (10**400, "got one that no float holds"),
        (None, "got None; leave out a feature that is missing"),
        (np.nan, "got nan; leave out a feature that is missing"),
        (np.inf, "got inf$"),
        ([1.0], r"got \[1.0\]$"),
    ],
)
def test_values_that_are_no_numbers_are_told_apart(value, message):
    for model, name in ((MetricTransformer(), "a"), (MetricKNNClassifier(), "a"), (PairClassifier(), "x:a")):
        with pytest.raises(ValueError, match=rf"^x\['{name}'\] must be a finite number, {message}"):
            model.learn_one({name: value}, True)
        model.learn_one({name: decimal.Decimal("1.5")}, True)


@pytest.mark.parametrize(
    "model", [MetricTransformer(), MetricKNNClassifier()], ids=lambda model: type(model).__name__
)
def test_labels_that_are_missing(model):
    missing = [None, math.nan, [1]]
    if pandas := sys.modules.get("pandas"):
        missing.append(pandas.NA)
    for y in missing:
        with pytest.raises(ValueError, match=r"^y must be a label, got "):
            model.learn_one({"a": 1.0}, y)


def test_what_is_no_point_and_no_budget():
    for x, z, told in (({"a": 1.0}, None, "z .*, got NoneType"), ([1.0], {}, "x .*, got list")):
        with pytest.raises(ValueError, match=f"^{told.replace(' .*', ' must be a dictionary of features')}"):
            pair(x, z)
    for budget in (None, 0.0, 1.5, "all"):
        with pytest.raises(ValueError, match=r"^budget must be a share in \(0, 1\], got "):
            PairSampler(PairClassifier(), budget=budget)


def test_neighbours_that_are_all_too_far_have_equal_votes():
    model = MetricKNNClassifier(seed=0)
    for k in range(60):
        model.learn_one({"a": float(k % 3), "b": float(k % 7)}, k % 3)
    votes = model.predict_proba_one({"a": 1e308, "b": -1e308})
    assert sum(votes.values()) == pytest.approx(1.0)
    assert set(votes) == {0, 1, 2}
