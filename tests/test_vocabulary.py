"""metric-learn's words: each means here what it means there."""

import pickle
from functools import partial

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsClassifier

from ocelad import (
    L1,
    CoinBetting,
    FixedShare,
    GroupedShare,
    KeyedTrackers,
    LogDet,
    Mahalanobis,
    MetricTracker,
    SquaredHinge,
    SupervisedMetricTracker,
)
from ocelad.engine.stack_engine import StackEngine
from ocelad.tracker.preprocessor import PreprocessorError
from streams import comparisons
from trackers import either, rice

FEATURES = partial(MetricTracker, scale="features")
PAIRS, Y = comparisons(seed=0, steps=200, n=6)
LATER, LATER_Y = comparisons(seed=1, steps=100, n=6)


@pytest.fixture(name="tracker", params=[MetricTracker, rice, FEATURES], ids=["pool", "rice", "features"])
def fixture_tracker(request):
    return request.param().partial_fit(PAIRS, Y)


def tracked(tracker):
    """The threshold on distances where odds are even; of RICE the root of mu."""
    even = tracker.get_metric().decision.even
    assert isinstance(tracker.weights, GroupedShare) or even == tracker.mu_
    return np.copysign(np.sqrt(abs(even)), even)


def same(one, other):
    np.testing.assert_array_equal(one.get_mahalanobis_matrix(), other.get_mahalanobis_matrix())
    assert one.experts_.tobytes() == other.experts_.tobytes()
    assert one.mu_ == other.mu_
    np.testing.assert_array_equal(one.scale_, other.scale_)


def test_the_words_agree(tracker):
    d = tracker.pair_distance(LATER)
    np.testing.assert_array_equal(tracker.pair_score(LATER), -d)
    np.testing.assert_array_equal(tracker.decision_function(LATER), -d)
    np.testing.assert_array_equal(tracker.predict(LATER), np.where(d <= tracker.threshold_, 1, -1))
    assert tracker.score(LATER, LATER_Y) == roc_auc_score(LATER_Y, -d)
    L = tracker.components_
    assert L.shape == (6, 6)
    np.testing.assert_allclose(L.T @ L, tracker.get_mahalanobis_matrix(), atol=1e-12)
    np.testing.assert_allclose(tracker.transform(LATER[:, 0]), LATER[:, 0] @ L.T, rtol=1e-10, atol=1e-12)
    with pytest.warns(FutureWarning, match="pair_score"):
        np.testing.assert_array_equal(tracker.score_pairs(LATER), d)


def test_hooks_that_code_written_for_metric_learn_calls(tracker):
    """Not public there either, but metric-learn's own test-suite and subclasses in its manner use them."""
    assert tracker._tuple_size == 2
    with pytest.raises(ValueError, match="min_rate"):
        tracker._validate_calibration_params(strategy="max_tpr", min_rate=2.0)
    pairs, y = tracker._prepare_inputs(LATER, LATER_Y, type_of_inputs="tuples")
    np.testing.assert_array_equal(pairs, LATER)
    np.testing.assert_array_equal(y, LATER_Y)
    by_index = MetricTracker(preprocessor=LATER[:, 0])
    np.testing.assert_array_equal(by_index._prepare_inputs([2, 0]), LATER[[2, 0], 0])


def test_probabilities_of_rice_are_logistic_in_the_margin():
    tracker = rice().partial_fit(PAIRS, Y)
    d = tracker.pair_distance(LATER)
    p = tracker.predict_proba(LATER)
    assert tracker.predict_proba.__name__ == "predict_proba"  # by which scorers know it
    np.testing.assert_allclose(p[:, 1], 1 / (1 + np.exp(d**2 - tracker.mu_)), rtol=1e-12)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    np.testing.assert_array_equal(tracker.predict(LATER), np.where(p[:, 1] >= 0.5, 1, -1))
    tracker.set_threshold(0.5)
    np.testing.assert_allclose(tracker.predict_proba(LATER)[:, 1], 1 / (1 + np.exp(d**2 - 0.25)), rtol=1e-12)
    tracker.set_threshold(-1.0)  # nothing is similar
    assert (tracker.predict_proba(LATER)[:, 1] < 0.5).all()
    assert (tracker.predict_proba(1e200 * LATER) == [1, 0]).all()


@pytest.mark.parametrize("count", [1, 20, 100])  # few are measured without forming the metric
def test_probabilities_fall_with_the_distance_and_are_even_at_the_threshold(tracker, count):
    far = np.concatenate([LATER[:count], 1e3 * LATER[:3], 0 * LATER[:1], 1e200 * LATER[:1]])
    for limit in (None, 0.5, -1.0, 0.0):
        if limit is not None:
            tracker.set_threshold(limit)
        d, p = tracker.pair_distance(far), tracker.predict_proba(far)
        np.testing.assert_allclose(p.sum(axis=1), 1)
        assert (np.diff(p[np.argsort(d), 1]) <= 0.0).all()
        predicted = tracker.predict(far)
        np.testing.assert_array_equal(predicted, np.where(d <= tracker.threshold_, 1, -1))
        np.testing.assert_array_equal(predicted, np.where(p[:, 1] >= 0.5, 1, -1))
        assert (p[-1] == [1, 0]).all()


def test_only_a_pool_mixes_probabilities():
    pool = MetricTracker().partial_fit(PAIRS, Y)
    p = pool.mixture_proba(LATER)
    assert p.shape == (100, 2)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert ((p > 0) & (p < 1)).all()
    with pytest.raises(AttributeError, match="weights must be GroupedShare"):
        rice().partial_fit(PAIRS, Y).mixture_proba(LATER)
    with pytest.raises(ValueError, match="6 features"):
        pool.mixture_proba(LATER[..., :3])


# fit, partial_fit and the threshold


def test_fit_forgets_streams_and_calibrates(tracker):
    fitted = clone(tracker).partial_fit(LATER, LATER_Y).fit(PAIRS, Y)
    same(fitted, tracker)
    tracker.calibrate_threshold(PAIRS, Y)
    assert fitted.threshold_ == tracker.threshold_ != tracked(fitted)
    generous = clone(tracker).fit(PAIRS, Y, calibration_params={"strategy": "max_tpr", "min_rate": 0.0})
    assert (generous.predict(PAIRS)[Y == 1] == 1).all()


def test_after_partial_fit_the_threshold_is_the_tracked_one(tracker):
    assert tracker.threshold_ == tracked(tracker)
    tracker.set_threshold(3.0)
    assert tracker.threshold_ == 3.0
    tracker.partial_fit(LATER[:0], LATER_Y[:0])
    assert tracker.threshold_ == 3.0
    tracker.partial_fit(LATER, LATER_Y)
    assert tracker.threshold_ == tracked(tracker)


@pytest.mark.parametrize(
    ("pairs", "y", "params", "message"),
    [
        (LATER, np.where(LATER_Y > 0, 1, 2), {}, "only values in"),
        (LATER, np.where(np.arange(100) < 3, 0, LATER_Y), {}, "y must be .* found 0 beside -1"),
        (LATER, LATER_Y[1:], {}, "y must be"),
        (LATER[:, :1], LATER_Y, {}, "Tuples of 2"),
        (LATER[:0], LATER_Y[:0], {}, "0 sample"),
        (np.full_like(LATER, np.nan), LATER_Y, {}, "NaN"),
        (LATER, LATER_Y, {"strategy": "best"}, "Strategy"),
        (LATER, LATER_Y, {"strategy": "max_tpr"}, "min_rate"),
    ],
)
def test_a_failed_fit_changes_nothing(tracker, pairs, y, params, message):
    untouched, threshold = pickle.loads(pickle.dumps(tracker)), tracker.set_threshold(2.0).threshold_
    with pytest.raises(ValueError, match=message):
        tracker.fit(pairs, y, calibration_params=params)
    same(tracker, untouched)
    assert tracker.threshold_ == threshold


def test_zeros_and_ones_are_taken_with_a_warning(tracker):
    signs = clone(tracker).partial_fit(PAIRS, Y)
    zeros = clone(tracker)
    with pytest.warns(UserWarning, match="0 is read as -1"):
        zeros.partial_fit(PAIRS, np.where(Y > 0, 1, 0))
    same(signs, zeros)


def test_classes_are_accepted(tracker):
    same(clone(tracker).partial_fit(PAIRS, Y, classes=[-1, 1]), tracker)
    with pytest.raises(ValueError, match="classes must be"):
        tracker.partial_fit(PAIRS, Y, classes=[1, 2, 3])


@either
def test_works_in_a_search(new):
    search = GridSearchCV(new(), {"step": [1.0, 8.0]}, cv=3).fit(PAIRS, Y)
    assert search.best_score_ > 0.6
    for scoring in ("accuracy", "f1", "average_precision", "neg_log_loss", "neg_brier_score"):
        assert np.isfinite(cross_val_score(new(), PAIRS, Y, scoring=scoring, cv=3)).all()


@either
def test_nothing_before_the_first_comparison(new):
    tracker = new()
    assert not hasattr(tracker, "predict_proba")
    for ask in (
        lambda: tracker.components_,
        lambda: tracker.get_metric(),
        lambda: tracker.threshold_,
        lambda: tracker.predict_proba(PAIRS),
        lambda: tracker.set_threshold(1.0),
        lambda: tracker.calibrate_threshold(PAIRS, Y),
        lambda: tracker.score(PAIRS, Y),
    ):
        with pytest.raises(NotFittedError, match="fit"):
            ask()


# Indicators


@either
def test_pairs_by_indicators(new):
    rng = np.random.default_rng(2)
    points, rows = rng.normal(size=(30, 6)), rng.integers(30, size=(200, 2))
    formed = new().partial_fit(points[rows], Y)
    for given in (points, points.tolist(), lambda rows: points[rows]):
        tracker = new(preprocessor=given).partial_fit(rows[:50], Y[:50]).partial_fit(points[rows[50:]], Y[50:])
        same(tracker, formed)
        np.testing.assert_array_equal(tracker.predict(rows), formed.predict(points[rows]))
        np.testing.assert_array_equal(tracker.transform(np.arange(30)), formed.transform(points))


def test_a_threshold_is_a_number(tracker):
    before = tracker.set_threshold(0.5).threshold_
    with pytest.raises(ValueError, match=r"^Parameter threshold must be a real number. Got nan instead"):
        tracker.set_threshold(np.nan)
    assert tracker.threshold_ == before
    for limit, side in ((np.inf, 1), (-np.inf, -1)):  # all pairs, or none
        assert (tracker.set_threshold(limit).predict(LATER) == side).all()


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"strat": "f_beta"}, "^calibration_params must have keys 'strategy', 'min_rate', 'beta', got 'strat'$"),
        ("f_beta", "^calibration_params must be None or a dictionary, got 'f_beta'$"),
        ({"strategy": "best"}, "^Strategy can either be"),
    ],
)
def test_params_of_a_calibration_are_named(tracker, params, message):
    before = tracker.get_mahalanobis_matrix()
    with pytest.raises(ValueError, match=message):
        tracker.fit(LATER, LATER_Y, calibration_params=params)
    np.testing.assert_array_equal(tracker.get_mahalanobis_matrix(), before)


def test_a_failing_preprocessor_says_so():
    with pytest.raises(PreprocessorError, match=r"KeyError\(.*'b'.*\). It is given an array of indicators"):
        MetricTracker(preprocessor=lambda names: [{"a": 1}[name] for name in names]).partial_fit([["a", "b"]], [1])
    with pytest.raises(PreprocessorError, match=r"IndexError\(.*\)$"):
        MetricTracker(preprocessor=np.eye(3)).partial_fit([["a", "b"]], [1])
    with pytest.raises(ValueError, match="Invalid type for the preprocessor: <class 'int'>"):
        MetricTracker(preprocessor=4).partial_fit([[0, 1]], [1])
    with pytest.raises(ValueError, match="Found 4D array"):
        MetricTracker(preprocessor=lambda rows: np.ones((len(rows), 2, 2))).partial_fit([[0, 1]], [1])


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array, "table"])
@pytest.mark.parametrize("row", [-1, 3, -(2**40)])
def test_a_row_that_is_not_there(kind, row):
    points = pytest.importorskip("pandas").DataFrame(np.eye(3)) if kind == "table" else kind(np.eye(3))
    expected = rf"^pairs must be row numbers from 0 to 2, found {row} at index \(1, 0\)$"
    for features in (None, lambda X: X):
        tracker = MetricTracker(preprocessor=points, features=features).partial_fit([[0, 1]], [1])
        before = tracker.get_mahalanobis_matrix()
        for ask in (lambda pairs: tracker.partial_fit(pairs, [1, 1]), tracker.predict):  # noqa: B023
            with pytest.raises(PreprocessorError, match=expected):
                ask(np.array([[0, 1], [row, 2]]))
        np.testing.assert_array_equal(tracker.get_mahalanobis_matrix(), before)
        with pytest.raises(PreprocessorError, match=rf"^X must be row numbers .* found {row} at index 1$"):
            tracker.transform([0, row])
    from_the_end = MetricTracker(preprocessor=lambda rows: np.eye(3)[rows])
    assert from_the_end.partial_fit([[0, -1]], [1]).n_features_in_ == 3


# The metric as an object


def test_the_metric_handed_out_stays(tracker):
    metric, x, z = tracker.get_metric(), *LATER[0]
    before = metric(x, z)
    assert before == pytest.approx(tracker.pair_distance(LATER[:1])[0])
    assert metric(x, z, squared=True) == pytest.approx(before**2)
    tracker.partial_fit(LATER, LATER_Y)
    assert metric(x, z) == before == pickle.loads(pickle.dumps(metric))(x, z)
    assert tracker.get_metric()(x, z) != before
    for wrong in (x[:5], LATER[:2, 0]):
        with pytest.raises(ValueError, match="shape"):
            metric(wrong, z)


def test_the_metric_serves_scikit_learn(tracker):
    X, labels = LATER[:, 0], LATER_Y
    by_function = KNeighborsClassifier(3, metric=tracker.get_metric(), algorithm="brute").fit(X, labels)
    by_embedding = KNeighborsClassifier(3, algorithm="brute").fit(tracker.transform(X), labels)
    np.testing.assert_array_equal(
        by_function.predict(LATER[:, 1]), by_embedding.predict(tracker.transform(LATER[:, 1]))
    )


@pytest.mark.parametrize("k", [1, 3, 6])
def test_n_components_keeps_the_most_important(tracker, k):
    short = clone(tracker).set_params(n_components=k).partial_fit(PAIRS, Y)
    np.testing.assert_allclose(short.components_, tracker.components_[:k])
    Z = short.transform(LATER.reshape(-1, 6)).reshape(-1, 2, k)
    np.testing.assert_allclose(short.pair_distance(LATER), np.linalg.norm(Z[:, 0] - Z[:, 1], axis=1), rtol=1e-9)
    assert np.linalg.matrix_rank(short.get_mahalanobis_matrix()) <= k
    assert short.get_metric()(*LATER[0]) == pytest.approx(short.pair_distance(LATER[:1])[0])


@pytest.mark.parametrize("k", [0, 7, 2.0, "all"])
def test_n_components_out_of_range(k):
    with pytest.raises(ValueError, match=r"Invalid n_components, must be in \[1, 6\]"):
        MetricTracker(n_components=k).partial_fit(PAIRS, Y)


# Setting the components


@pytest.mark.parametrize(
    "weights", [GroupedShare(), FixedShare(), CoinBetting()], ids=["pool", "compiled", "general"]
)
@pytest.mark.parametrize("known", [False, True])
def test_learners_begin_at_the_components_that_were_set(known, weights):
    L = np.random.default_rng(3).normal(size=(4, 6))
    tracker = MetricTracker(scale=0.5, weights=weights)
    if known:
        tracker.partial_fit(PAIRS, Y)
    limit = tracker.threshold_ if known else None
    tracker.components_ = L
    np.testing.assert_array_equal(tracker.components_, L)
    np.testing.assert_allclose(tracker.transform(PAIRS[:, 0]), PAIRS[:, 0] @ L.T)
    np.testing.assert_allclose(
        tracker.pair_distance(PAIRS), np.linalg.norm((PAIRS[:, 0] - PAIRS[:, 1]) @ L.T, axis=1)
    )
    if known:
        assert tracker.threshold_ == limit
    else:
        with pytest.raises(AttributeError, match=r"threshold .* has not been set"):
            tracker.predict(PAIRS)
    batch, loop = clone_with_state(tracker), clone_with_state(tracker)
    batch.partial_fit(LATER, LATER_Y)
    for pair, label in zip(LATER, LATER_Y, strict=True):
        loop.partial_fit(pair[None], [label])
    same(batch, loop)
    assert batch._engine.recipe.mu == pytest.approx(max(1.0, limit * abs(limit)) if known else 1.0, rel=1e-12)
    assert weights == GroupedShare() or batch.mu_ >= 1
    if not known:
        same(batch, MetricTracker(scale=0.5, weights=weights, origin=L.T @ L * 0.25).partial_fit(LATER, LATER_Y))


def clone_with_state(tracker):
    return pickle.loads(pickle.dumps(tracker))


@pytest.fixture(name="ctrl_c_at_once")
def fixture_ctrl_c_at_once(monkeypatch):
    def press(tracker):
        with monkeypatch.context() as patch:
            patch.setattr(StackEngine, "run", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                tracker.partial_fit(LATER, LATER_Y)

    return press


@either
@pytest.mark.parametrize("known", [False, True])
def test_learning_that_has_not_begun_leaves_what_was_set(known, new, ctrl_c_at_once):
    tracker, L = new(), np.diag(np.arange(1.0, 7.0))
    if known:
        tracker.partial_fit(PAIRS, Y)
    tracker.components_ = L
    tracker.set_threshold(0.7)
    untouched = clone_with_state(tracker)
    ctrl_c_at_once(tracker)
    np.testing.assert_array_equal(tracker.components_, L)
    assert tracker.threshold_ == 0.7
    same(tracker.partial_fit(LATER, LATER_Y), untouched.partial_fit(LATER, LATER_Y))


@either
def test_learning_that_has_not_begun_reads_no_options(new, ctrl_c_at_once):
    tracker = new()
    ctrl_c_at_once(tracker)
    tracker.set_params(base=2)
    same(tracker.partial_fit(PAIRS[..., :3], Y), new(base=2).partial_fit(PAIRS[..., :3], Y))


@either
def test_a_good_start_helps(new):
    """Where the cold tracker still guesses, the warm one knows."""
    teacher = new().partial_fit(*comparisons(seed=4, steps=1500, n=10, change=False))
    pairs, y = comparisons(seed=5, steps=400, n=10, change=False)
    warm, cold = new(), new()
    warm.components_ = teacher.components_
    right = []
    for k in range(24):
        for tracker in (warm, cold):
            tracker.partial_fit(pairs[k : k + 1], y[k : k + 1])
        right.append([tracker.score(pairs[24:], y[24:]) for tracker in (warm, cold)])
    ahead = np.mean(right, axis=0)
    assert ahead[0] > ahead[1] + 0.1


@pytest.mark.parametrize("L", [np.full((2, 6), np.nan), "identity", np.zeros((2, 2, 2)), np.zeros((0, 6))])
def test_bad_components_are_refused(tracker, L):
    untouched = clone_with_state(tracker)
    with pytest.raises(ValueError, match="components_ must be"):
        tracker.components_ = L
    same(tracker, untouched)
    new = MetricTracker()
    new.components_ = L
    with pytest.raises(ValueError, match="components_ must be"):
        new.partial_fit(PAIRS, Y)


def test_components_must_suit_the_data_and_the_divergence():
    tracker = MetricTracker(divergence=LogDet(), origin=1.0)
    tracker.components_ = np.eye(5)
    with pytest.raises(ValueError, match="5 features, as components_ has, got 6"):
        tracker.partial_fit(PAIRS, Y)
    tracker.components_ = np.eye(6)[:5]
    with pytest.raises(ValueError, match="components_ must be positive definite"):
        tracker.partial_fit(PAIRS, Y)


@pytest.mark.parametrize("tracker", [MetricTracker, rice], ids=["pool", "rice"], indirect=True)
def test_components_on_other_features_forget_everything(tracker):
    tracker.components_ = np.eye(3)
    same(tracker.partial_fit(PAIRS[..., :3], Y), warm_from_identity(clone(tracker)))


def warm_from_identity(tracker):
    tracker.components_ = np.eye(3)
    return tracker.partial_fit(PAIRS[..., :3], Y)


def test_a_metric_of_a_given_map():
    L = np.array([[1.0, 2.0], [0.0, 3.0], [1.0, 1.0]])
    metric = Mahalanobis.embedding(L)
    np.testing.assert_array_equal(metric.components, L)
    np.testing.assert_allclose(metric.matrix, L.T @ L)
    assert metric([1.0, 1.0], [0.0, 0.0]) == pytest.approx(np.linalg.norm(L.sum(axis=1)))


# How much has been learned


@pytest.mark.parametrize(
    "new",
    [MetricTracker, rice, FEATURES, lambda: MetricTracker(loss=SquaredHinge(), regularizer=L1(0.1), memory=None)],
)
def test_how_many_comparisons_have_been_learned(new):
    tracker = new()
    assert tracker.n_seen_ == tracker.partial_fit(PAIRS[:0], []).n_seen_ == 0
    assert tracker.partial_fit(PAIRS[:30], Y[:30]).n_seen_ == 30
    assert (
        tracker.partial_fit_triplets(np.stack([PAIRS[:5, 0], PAIRS[:5, 1], PAIRS[5:10, 0]], axis=1)).n_seen_ == 35
    )
    assert tracker.partial_fit_implied(PAIRS[:2], Y[:2]).n_seen_ == 37
    assert tracker.partial_fit(PAIRS[:4], Y[:4], sample_weight=[1, 0, 1, 0]).n_seen_ == 39
    assert pickle.loads(pickle.dumps(tracker)).n_seen_ == 39
    with pytest.raises(ValueError, match="pairs must"):
        tracker.partial_fit(PAIRS[:9] * np.nan, Y[:9])
    assert tracker.n_seen_ == 39
    assert clone(tracker).n_seen_ == 0
    assert tracker.fit(PAIRS[:50], Y[:50]).n_seen_ == 50


def test_comparisons_are_counted_while_landmarks_are_gathered_by_key_and_by_class():
    wide = MetricTracker(nonlinear=True)
    assert [wide.partial_fit(PAIRS[k : k + 40], Y[k : k + 40]).n_seen_ for k in (0, 40, 80, 120)] == [
        40,
        80,
        120,
        160,
    ]
    fleet = KeyedTrackers().partial_fit(["a", "b", "a"], PAIRS[:3], Y[:3])
    assert {key: fleet[key].n_seen_ for key in fleet} == {"a": 2, "b": 1}
    labelled = SupervisedMetricTracker(pairs_per_point=2)
    assert [labelled.n_seen_, labelled.partial_fit(PAIRS[:1, 0], [1]).n_seen_] == [0, 0]
    assert labelled.partial_fit(PAIRS[1:5, 0], [1, 2, 1, 2]).n_seen_ == labelled.tracker_.n_seen_ == 8
