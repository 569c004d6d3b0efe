"""What stands between points and learner: a transformer or a function, in every place that takes points."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.kernel_approximation import Nystroem
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import ocelad
from ocelad import History, KeyedTrackers, MetricTracker, SupervisedMetricTracker
from ocelad.compat.columns import Columns
from ocelad.compat.named import NamedTracker
from ocelad.compat.river import MetricTransformer, PairClassifier
from ocelad.neighbors import MovingIndex
from ocelad.watch.prequential import progressive
from streams import comparisons

N = 4
PAIRS, Y = comparisons(seed=0, steps=90, n=N)
POINTS = PAIRS.reshape(-1, N)
WORDS = np.array(["red", "green", "blue", "cyan", "grey", "pink"])
NAMES = list("abcd")


def square(X):
    """Two features of a point."""
    return np.stack([X[:, 0] ** 2, X[:, 1] + X[:, 2]], axis=1)


def frames(points=PAIRS):
    return tuple(pd.DataFrame(points[:, side], columns=NAMES) for side in range(points.shape[1]))


def columns_by_name():
    parts = [("scaled", StandardScaler(), ["b", "d"]), ("as they are", "passthrough", ["a"])]
    return ColumnTransformer(parts).fit(pd.DataFrame(POINTS, columns=NAMES))


def mapped(function, tuples):
    """The same by hand, beforehand."""
    sides = [function(np.ascontiguousarray(tuples[:, side])) for side in range(tuples.shape[1])]
    return np.stack(sides, axis=1)


FEATURES = {
    "scaler": StandardScaler().fit(POINTS),
    "nystroem": Nystroem(n_components=12, gamma=0.1, random_state=0).fit(POINTS),
    "pipeline": make_pipeline(StandardScaler(), Nystroem(n_components=8, random_state=0)).fit(POINTS),
    "frozen": FrozenEstimator(StandardScaler().fit(POINTS)),
    "function": square,
    "float32": lambda X: X.astype(np.float32),
}


def function_of(features):
    return getattr(features, "transform", features)


def assert_same(one, other, given=PAIRS, by_hand=None):
    """Both answer the same of pairs as they are given, and of pairs made by hand, to the bit."""
    by_hand = given if by_hand is None else by_hand
    for name in ("pair_distance", "predict", "predict_proba", "mixture_proba", "expert_odds", "decision_function"):
        np.testing.assert_array_equal(getattr(one, name)(given), getattr(other, name)(by_hand), err_msg=name)
    np.testing.assert_array_equal(one.get_mahalanobis_matrix(), other.get_mahalanobis_matrix())
    assert one.threshold_ == other.threshold_


# One tracker


@pytest.mark.parametrize("nonlinear", [False, True])
@pytest.mark.parametrize("name", FEATURES)
def test_features_are_as_if_they_had_been_applied_by_hand(name, nonlinear):
    features = FEATURES[name]
    made = mapped(function_of(features), PAIRS)
    tracker = MetricTracker(features=features, nonlinear=nonlinear).partial_fit(PAIRS, Y)
    plain = MetricTracker(nonlinear=nonlinear).partial_fit(made, Y)
    assert tracker.n_features_in_ == made.shape[2]
    for ask in ("pair_distance", "predict", "predict_proba", "mixture_proba", "expert_odds"):
        for few in (slice(0, 3), slice(None)):
            by_hand = mapped(function_of(features), PAIRS[few])
            np.testing.assert_array_equal(getattr(tracker, ask)(PAIRS[few]), getattr(plain, ask)(by_hand))
    np.testing.assert_array_equal(tracker.transform(POINTS), plain.transform(function_of(features)(POINTS)))
    assert tracker.threshold_ == plain.threshold_


def test_fit_calibration_and_scores_take_points_as_they_are():
    features = FEATURES["nystroem"]
    made = mapped(features.transform, PAIRS)
    tracker, plain = MetricTracker(features=features).fit(PAIRS, Y), MetricTracker().fit(made, Y)
    assert_same(tracker, plain, PAIRS, made)
    assert tracker.score(PAIRS, Y) == plain.score(made, Y)
    tracker.calibrate_threshold(PAIRS, Y, "f_beta", beta=2.0)
    assert tracker.threshold_ == plain.calibrate_threshold(made, Y, "f_beta", beta=2.0).threshold_


def test_triplets_quadruplets_implied_pairs_and_traces():
    rng = np.random.default_rng(1)
    triplets, quadruplets = rng.normal(size=(30, 3, N)), rng.normal(size=(30, 4, N))
    tracker, plain = MetricTracker(features=square), MetricTracker()
    made = mapped(square, PAIRS)
    one, other = progressive(tracker, PAIRS, Y), progressive(plain, made, Y)
    np.testing.assert_array_equal(one.probability, other.probability)
    tracker.partial_fit_triplets(triplets).partial_fit_quadruplets(quadruplets)
    plain.partial_fit_triplets(mapped(square, triplets)).partial_fit_quadruplets(mapped(square, quadruplets))
    tracker.partial_fit_implied(PAIRS[:5], Y[:5])
    plain.partial_fit_implied(made[:5], Y[:5])
    assert_same(tracker, plain, PAIRS, made)


def test_observed_points():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(250, N))
    tracker = MetricTracker(features=square, nonlinear=True).observe(X).partial_fit(PAIRS, Y)
    plain = MetricTracker(nonlinear=True).observe(square(X)).partial_fit(mapped(square, PAIRS), Y)
    np.testing.assert_array_equal(tracker.mixture_proba(PAIRS), plain.mixture_proba(mapped(square, PAIRS)))


def test_a_history_watches():
    tracker = MetricTracker(features=square)
    history = History(tracker, every=10)
    tracker.partial_fit(PAIRS, Y)
    assert history.records["t"][-1] == len(Y)


def test_frames_and_columns_by_name():
    features = columns_by_name()
    x, z = frames()
    made = np.stack([features.transform(x), features.transform(z)], axis=1)
    tracker, plain = MetricTracker(features=features), MetricTracker().partial_fit(made, Y)
    tracker.partial_fit((x[:40], z[:40]), Y[:40]).partial_fit((x[40:], z[40:]), Y[40:])
    assert_same(tracker, plain, (x, z), made)
    np.testing.assert_array_equal(tracker.transform(x), plain.transform(made[:, 0]))
    assert not hasattr(tracker, "feature_names_in_")
    before = ocelad.dumps(tracker)
    with pytest.raises(ValueError, match=r"features failed on the points it was given.*columns are missing"):
        tracker.partial_fit((x.drop(columns="b"), z.drop(columns="b")), Y)
    assert ocelad.dumps(tracker) == before


def test_a_transformer_may_give_frames():
    x, z = frames()
    features = StandardScaler().fit(x)
    plain = MetricTracker(features=features).partial_fit((x, z), Y)
    tracker = MetricTracker(features=copy.deepcopy(features).set_output(transform="pandas")).partial_fit((x, z), Y)
    np.testing.assert_array_equal(tracker.pair_distance((x, z)), plain.pair_distance((x, z)))


@pytest.mark.parametrize("form", [list, np.array, lambda pairs: np.array(pairs, dtype=object)])
def test_texts_and_sparse_features(form):
    rng = np.random.default_rng(3)
    hashing = HashingVectorizer(n_features=32, analyzer="char", ngram_range=(1, 2))
    texts = [[" ".join(rng.choice(WORDS, 3)) for _ in range(2)] for _ in range(60)]
    y = np.array([1 if x.split()[0] == z.split()[0] else -1 for x, z in texts])
    sides = tuple(hashing.transform([pair[side] for pair in texts]) for side in range(2))
    tracker = MetricTracker(features=hashing).partial_fit(form(texts), y)
    plain = MetricTracker().partial_fit(sides, y)
    assert sparse.issparse(sides[0])
    assert_same(tracker, plain, form(texts), sides)
    np.testing.assert_array_equal(tracker.transform([x for x, _ in texts]), plain.transform(sides[0]))


def test_items_of_any_shape():
    images = np.random.default_rng(4).normal(size=(40, 2, 3, 3))
    y = np.where(np.arange(40) % 3 == 0, 1, -1)
    tracker = MetricTracker(features=lambda X: X.reshape(len(X), 9)).partial_fit(images, y)
    plain = MetricTracker().partial_fit(images.reshape(40, 2, 9), y)
    assert_same(tracker, plain, images, images.reshape(40, 2, 9))
    np.testing.assert_array_equal(tracker.transform(images[:, 0]), plain.transform(images[:, 0].reshape(40, 9)))


def test_indicators_become_points_and_these_features():
    indices = np.arange(len(POINTS)).reshape(-1, 2)
    plain = MetricTracker(features=square).partial_fit(PAIRS, Y)
    frame = pd.DataFrame(POINTS, columns=NAMES)
    for preprocessor, features, like in (
        (POINTS, square, plain),
        (sparse.csr_array(POINTS), lambda X: square(X.toarray() if sparse.issparse(X) else X), plain),
        (lambda i: POINTS[i], square, plain),
        (
            lambda i: frame.iloc[i],  # names of columns stay
            columns_by_name(),
            MetricTracker(features=columns_by_name()).partial_fit(frames(), Y),
        ),
    ):
        tracker = MetricTracker(preprocessor=preprocessor, features=features).partial_fit(indices, Y)
        formed = frames() if like is not plain else PAIRS
        np.testing.assert_array_equal(tracker.pair_distance(indices), like.pair_distance(formed))
        np.testing.assert_array_equal(tracker.pair_distance(formed), like.pair_distance(formed))  # no indicators
        np.testing.assert_array_equal(
            tracker.transform(indices[:, 0]), like.transform(formed[0] if like is not plain else PAIRS[:, 0])
        )


def test_indicators_of_texts():
    hashing, texts = HashingVectorizer(n_features=16), ["a cat", "a dog", "two dogs", "the cat"]
    indices, y = np.array([[0, 1], [1, 2], [0, 3], [2, 3]]), np.array([-1, 1, 1, -1])
    tracker = MetricTracker(preprocessor=texts, features=hashing).partial_fit(indices, y)
    plain = MetricTracker(features=hashing).partial_fit(np.array(texts)[indices], y)
    np.testing.assert_array_equal(tracker.transform([3, 0]), plain.transform(["the cat", "a cat"]))


# As an option


def test_copies_clones_and_pickles_have_the_same_features():
    tracker = MetricTracker(features=FEATURES["scaler"]).partial_fit(PAIRS, Y)
    new = clone(tracker)
    assert new.features is FEATURES["scaler"]  # fitted, as it was
    assert not new.__sklearn_is_fitted__()
    assert_same(new.partial_fit(PAIRS, Y), tracker)
    for again in (copy.copy(tracker), copy.deepcopy(tracker), pickle.loads(pickle.dumps(tracker))):
        assert_same(again, tracker)
        assert_same(again.partial_fit(PAIRS, Y), copy.copy(tracker).partial_fit(PAIRS, Y))
        ocelad.dumps(again)
    assert tracker.get_params(deep=False)["features"] is FEATURES["scaler"]
    assert tracker.get_params()["features__with_mean"] is True
    assert clone(MetricTracker(features=square)).features is square
    with pytest.raises(NotFittedError):
        clone(tracker).pair_distance(PAIRS)


def test_a_clone_does_not_copy_an_encoder():
    class Encoder:
        def __deepcopy__(self, memo):
            raise AssertionError("it may be large")

        def encode(self, X):
            return X

    method = Encoder().encode
    assert clone(SupervisedMetricTracker(MetricTracker(features=method))).tracker.features is method


def test_cross_validation():
    plain = cross_val_score(MetricTracker(), mapped(square, PAIRS), Y, cv=3)
    np.testing.assert_array_equal(cross_val_score(MetricTracker(features=square), PAIRS, Y, cv=3), plain)


def test_features_are_read_at_the_first_comparison_and_by_fit():
    tracker = MetricTracker(features=square).partial_fit(PAIRS[:40], Y[:40])
    before = tracker.pair_distance(PAIRS)
    tracker.set_params(features=None)
    np.testing.assert_array_equal(tracker.pair_distance(PAIRS), before)
    tracker.partial_fit(PAIRS[40:], Y[40:])
    assert_same(tracker, MetricTracker(features=square).partial_fit(PAIRS, Y))
    with pytest.raises(ValueError, match="options have changed since the first comparison"):
        ocelad.dumps(tracker)
    assert_same(tracker.fit(PAIRS, Y), MetricTracker().fit(PAIRS, Y))
    tracker.set_params(features=square).components_ = np.eye(2)  # it starts anew
    np.testing.assert_array_equal(tracker.transform(POINTS)[:, ::-1], square(POINTS)[:, ::-1] @ np.eye(2))


@pytest.mark.parametrize("given", [3, "StandardScaler", StandardScaler, [1.0]])
def test_what_is_no_function_and_no_transformer(given):
    with pytest.raises(ValueError, match="features must be None, a function of points or a fitted transformer"):
        MetricTracker(features=given).partial_fit(PAIRS, Y)


# Bad outputs


class Moody:
    """Right at first, then what it is told to give."""

    def __init__(self):
        self.wrong = None

    def __call__(self, X):
        return square(X) if self.wrong is None else self.wrong(square(X))


def raising(_):
    raise KeyError("no such word")


WRONG = {
    "rows": (lambda Z: Z[1:], r"numbers with a row for each of \d+ points, got shape"),
    "1D": (lambda Z: Z[:, 0], "got a 1D array of shape"),
    "3D": (lambda Z: Z[:, :, None], "got a 3D array of shape"),
    "number": (lambda _: 3.0, "got a 0D array of shape"),
    "None": (lambda _: None, "got a 0D array"),
    "nan": (lambda Z: np.where(Z > 0, np.nan, Z), "features of .* finite numbers.*found NaN"),
    "infinite": (lambda Z: Z / 0.0, "features of .* finite numbers.*found"),
    "sparse-nan": (lambda Z: sparse.csr_array(Z * np.nan), "features of .* finite numbers.*found NaN"),
    "strings": (lambda Z: np.full(Z.shape, "far"), "features of .* finite numbers.*got dtype"),
    "objects": (lambda Z: Z.astype(object), "features of .* finite numbers.*got dtype object"),
    "complex": (lambda Z: Z * 1j, "features of .* finite numbers.*got dtype complex128"),
    "wider": (lambda Z: np.hstack([Z, Z]), r"must have 2 features, as before, got 4|of shape \(m, 2\), got"),
    "empty": (lambda Z: Z[:, :0], r"features of .* got shape"),
    "ragged": (lambda Z: [[1.0], *Z[1:].tolist()], "features must give an array of numbers with a row for each"),
    "error": (raising, "features failed on the points it was given: KeyError"),
}


@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:invalid value")
@pytest.mark.parametrize("name", WRONG)
def test_bad_outputs_are_refused_before_anything_changes(name):
    wrong, words = WRONG[name]
    features = Moody()
    tracker = MetricTracker(features=features).partial_fit(PAIRS, Y)
    fleet = KeyedTrackers(MetricTracker(features=features)).partial_fit(["a"] * len(Y), PAIRS, Y)
    labelled = SupervisedMetricTracker(MetricTracker(features=features), random_state=0).fit(
        POINTS, POINTS[:, 0] > 0
    )
    index = MovingIndex(tracker)
    index.add(POINTS)
    states = [ocelad.dumps(each) for each in (tracker, fleet, labelled, index)]
    features.wrong = wrong
    for refused in (
        lambda: tracker.partial_fit(PAIRS, Y),
        *([lambda: tracker.fit(PAIRS, Y)] if name != "wider" else []),  # which forgets how many there were
        lambda: tracker.pair_distance(PAIRS),
        lambda: tracker.mixture_proba(PAIRS),
        lambda: tracker.transform(POINTS),
        lambda: tracker.observe(POINTS),
        lambda: tracker.partial_fit_triplets(np.ones((5, 3, N))),
        lambda: fleet.partial_fit(["a"] * len(Y), PAIRS, Y),
        lambda: fleet.predict(["a"] * len(Y), PAIRS),
    ):
        with pytest.raises(ValueError, match=f"(?s){words}"):
            refused()
    if name != "objects":  # which scikit-learn converts
        for refused in (
            lambda: labelled.partial_fit(POINTS, POINTS[:, 0] > 0),
            lambda: labelled.transform(POINTS),
        ):
            with pytest.raises(
                ValueError, match=r"features must give|features failed|X|NaN|convert|[Cc]omplex|array"
            ):
                refused()
    with pytest.raises(
        ValueError, match=r"features must give|features failed|X must be an array of finite numbers"
    ):
        index.add(POINTS)
    assert [ocelad.dumps(each) for each in (tracker, fleet, labelled, index)] == states
    new = MetricTracker(features=features)
    if name != "wider":
        with pytest.raises(ValueError, match=f"(?s){words}"):
            new.partial_fit(PAIRS, Y)
        assert not new.__sklearn_is_fitted__()


def test_a_transformer_that_is_not_fitted():
    with pytest.raises(ValueError, match="features must be fitted before it is used: This StandardScaler"):
        MetricTracker(features=StandardScaler()).partial_fit(PAIRS, Y)
    with pytest.raises(ValueError, match="not fitted"):
        KeyedTrackers(MetricTracker(features=StandardScaler()), max_in_memory=2)


def test_pairs_that_are_none():
    tracker = MetricTracker(features=square)
    with pytest.raises(ValueError, match="pairs must have a row each"):
        tracker.partial_fit(["a", "b"], [1, -1])
    with pytest.raises(ValueError, match="Tuples of 2 element"):
        tracker.partial_fit(np.ones((4, 3, N)), np.ones(4))


def test_sparse_features_and_nonlinear_experts():
    hashing = HashingVectorizer(n_features=8)
    with pytest.raises(ValueError, match="nonlinear=True needs dense points"):
        MetricTracker(features=hashing, nonlinear=True).partial_fit([["a b", "c d"]], [1])


# Labelled points


def test_labelled_points_go_through_features_once_each():
    seen = []

    def counted(X):
        seen.append(len(X))
        return square(X)

    labels = np.where(POINTS[:, 0] > 0, "up", "down")
    tracker = SupervisedMetricTracker(MetricTracker(features=counted), random_state=0)
    plain = SupervisedMetricTracker(random_state=0).fit(square(POINTS[:80]), labels[:80])
    tracker.fit(POINTS[:80], labels[:80]).partial_fit(POINTS[80:], labels[80:])
    plain.partial_fit(square(POINTS[80:]), labels[80:])
    assert seen == [80, len(POINTS) - 80]
    np.testing.assert_array_equal(tracker.transform(POINTS), plain.transform(square(POINTS)))
    np.testing.assert_array_equal(tracker.pair_distance(PAIRS), plain.pair_distance(mapped(square, PAIRS)))
    np.testing.assert_array_equal(tracker.tracker_.predict(PAIRS), plain.tracker_.predict(mapped(square, PAIRS)))
    assert tracker.n_features_in_ == 2
    assert len(tracker.get_feature_names_out()) == 2


def test_labelled_texts_frames_and_indicators():
    rng = np.random.default_rng(5)
    texts = [" ".join(rng.choice(WORDS, 3)) for _ in range(60)]
    labels = [text.split()[0] for text in texts]
    hashing = HashingVectorizer(n_features=16)
    tracker = SupervisedMetricTracker(MetricTracker(features=hashing), random_state=0).fit(texts, labels)
    plain = SupervisedMetricTracker(random_state=0).fit(hashing.transform(texts), labels)
    np.testing.assert_array_equal(tracker.transform(texts), plain.transform(hashing.transform(texts)))
    by_number = SupervisedMetricTracker(MetricTracker(features=hashing), preprocessor=texts, random_state=0)
    by_number.fit(np.arange(60), labels)
    np.testing.assert_array_equal(by_number.transform([7, 3]), tracker.transform([texts[7], texts[3]]))
    frame = pd.DataFrame({"word": rng.choice(WORDS, 60), "size": rng.normal(size=60)})
    mixed = ColumnTransformer([("word", OneHotEncoder(), ["word"]), ("size", StandardScaler(), ["size"])]).fit(
        frame
    )
    tracker = SupervisedMetricTracker(MetricTracker(features=mixed), random_state=0).fit(frame, frame["word"])
    made = mixed.transform(frame)
    plain = SupervisedMetricTracker(random_state=0).fit(made, frame["word"])
    np.testing.assert_array_equal(tracker.transform(frame), plain.transform(made))
    tracker.partial_fit(frame, frame["word"])
    assert not hasattr(tracker, "feature_names_in_")


def test_labelled_points_with_nonlinear_experts():
    labels = POINTS[:, 0] * POINTS[:, 1] > 0
    tracker = SupervisedMetricTracker(MetricTracker(nonlinear=True), random_state=0).fit(POINTS, labels)
    Z = tracker.transform(POINTS)
    direct = np.linalg.norm(Z[0::2] - Z[1::2], axis=1)
    np.testing.assert_allclose(tracker.pair_distance(PAIRS), direct, atol=1e-7)


# Fleets, indexes, and what has no place for features


@pytest.mark.parametrize("limit", [None, 1])
@pytest.mark.parametrize("features", [square, FEATURES["nystroem"]])
def test_a_fleet_has_features_for_all_keys(features, limit):
    keys = np.where(np.arange(len(Y)) % 2 == 0, "even", "odd")
    made = mapped(function_of(features), PAIRS)
    fleet = KeyedTrackers(MetricTracker(features=features, memory=64), max_in_memory=limit)
    plain = KeyedTrackers(MetricTracker(memory=64))
    for part in (slice(0, 50), slice(50, None)):
        fleet.partial_fit(keys[part], PAIRS[part], Y[part])
        plain.partial_fit(keys[part], made[part], Y[part])
    for ask in ("pair_distance", "predict", "predict_proba"):
        np.testing.assert_array_equal(getattr(fleet, ask)(keys, PAIRS), getattr(plain, ask)(keys, made))
    one, other = fleet["odd"], plain["odd"]
    np.testing.assert_array_equal(one.pair_distance(PAIRS), other.pair_distance(made))
    assert one.features is features  # shared, also by those that were put away
    of_prior = KeyedTrackers(prior=fleet["even"])
    np.testing.assert_array_equal(of_prior.predict(["new"], PAIRS[:1]), fleet["even"].predict(PAIRS[:1]))


def test_a_tracker_of_a_fleet_with_another_function_of_the_same_name():
    fleet = KeyedTrackers(MetricTracker(features=lambda X: X[:, :2])).partial_fit(["a"], PAIRS[:1], Y[:1])
    ocelad.dumps(fleet)
    fleet["a"].features = lambda X: X[:, 2:]
    with pytest.raises(ValueError, match="other options than the others"):
        ocelad.dumps(fleet)


def test_fleets_refuse_nonlinear_experts():
    tracker = MetricTracker(nonlinear=True)
    with pytest.raises(ValueError, match="tracker must not have nonlinear=True"):
        KeyedTrackers(tracker)
    with pytest.raises(ValueError, match="prior must not have nonlinear=True"):
        KeyedTrackers(prior=tracker.partial_fit(PAIRS, Y))


def test_an_index_stores_what_features_give():
    tracker = MetricTracker(features=square).partial_fit(PAIRS, Y)
    plain = MetricTracker().partial_fit(mapped(square, PAIRS), Y)
    one, other = MovingIndex(tracker), MovingIndex(plain)
    one.add(POINTS)
    other.add(square(POINTS))
    for found, expected in zip(one.kneighbors(POINTS[:9]), other.kneighbors(square(POINTS[:9])), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("options", [{"features": square}, {"nonlinear": True}])
def test_river_and_named_features_refuse(options):
    tracker = MetricTracker(**options)
    for make in (MetricTransformer, PairClassifier, lambda tracker: NamedTracker(tracker, Columns(4, 0))):
        with pytest.raises(ValueError, match="tracker must have neither features nor nonlinear=True"):
            make(tracker)
