"""Sparse points and DataFrames: the same result as with arrays, and the names of the features are kept."""

import numpy as np
import pytest
from scipy import sparse

from ocelad import CoinBetting, MetricTracker, SupervisedMetricTracker
from ocelad.engine import rows
from ocelad.fleet import KeyedTrackers
from trackers import either


def documents(seed, m, n=40):
    """Sparse points, some of them empty, and whether the first features of two are alike."""
    rng = np.random.default_rng(seed)
    X, Z = (sparse.random_array((m, n), density=0.1, random_state=rng, format="csr") for _ in range(2))
    d = np.abs((X - Z)[:, :10]).sum(axis=1)
    return X, Z, np.where(d < np.median(d), 1, -1)


def dense(X, Z):
    return np.stack([X.toarray(), Z.toarray()], axis=1)


def close(one, other):
    M = other.get_mahalanobis_matrix()
    np.testing.assert_allclose(one.get_mahalanobis_matrix(), M, atol=1e-10 * np.abs(M).max())
    np.testing.assert_allclose(one.experts_["weight"], other.experts_["weight"], rtol=1e-10)
    assert one.mu_ == pytest.approx(other.mu_, rel=1e-12)


def same(one, other):
    np.testing.assert_array_equal(one.get_mahalanobis_matrix(), other.get_mahalanobis_matrix())
    assert one.experts_.tobytes() == other.experts_.tobytes()
    assert one.scale_ == other.scale_


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix, sparse.coo_array, sparse.csc_matrix])
@either
def test_sparse_pairs_are_dense_pairs(kind, new, monkeypatch):
    monkeypatch.setattr(rows, "BLOCK_ENTRIES", 400)  # several blocks
    X, Z, y = documents(seed=0, m=90)
    one, other = new().partial_fit((kind(X), kind(Z)), y), new().partial_fit(dense(X, Z), y)
    close(one, other)
    np.testing.assert_allclose(one.pair_distance([kind(X), kind(Z)]), other.pair_distance(dense(X, Z)), atol=1e-10)
    np.testing.assert_allclose(one.transform(kind(X)), one.transform(X.toarray()), atol=1e-10)
    short = new(n_components=3).fit((kind(X), kind(Z)), y)
    np.testing.assert_allclose(
        short.pair_distance((kind(X), kind(Z))), short.pair_distance(dense(X, Z)), atol=1e-10
    )


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix])
def test_one_side_may_be_sparse(kind):
    X, Z, y = documents(seed=0, m=60)
    whole = MetricTracker().partial_fit(dense(X, Z), y)
    for sides in ((kind(X), Z.toarray()), (X.toarray(), kind(Z)), (kind(X), np.asfortranarray(Z.toarray()))):
        same(MetricTracker().partial_fit(sides, y), whole)


def disordered(X, row):
    """The same matrix with one row written backwards and in two halves."""
    first, last = X.indptr[row : row + 2]
    data = np.concatenate([X.data[:first], X.data[first:last][::-1] / 2, X.data[first:last] / 2, X.data[last:]])
    part = X.indices[first:last]
    indices = np.concatenate([X.indices[:first], part[::-1], part, X.indices[last:]])
    indptr = X.indptr + np.where(np.arange(len(X.indptr)) > row, last - first, 0)
    return sparse.csr_array((data, indices, indptr), shape=X.shape)


@pytest.mark.parametrize("options", [{}, {"weights": CoinBetting()}], ids=["compiled", "general"])
def test_the_layout_in_memory_does_not_matter(options):
    X, Z, y = documents(seed=1, m=60)
    rows, pairs = MetricTracker(**options).partial_fit((X, Z), y), dense(X, Z)
    same(MetricTracker(**options).partial_fit((disordered(X, 7), disordered(Z, 30)), y), rows)
    one_by_one = MetricTracker(**options)
    for k in range(60):
        one_by_one.partial_fit((disordered(X, 7)[k : k + 1], disordered(Z, 30)[k : k + 1]), y[k : k + 1])
    same(one_by_one, rows)
    plain = MetricTracker(**options).partial_fit(pairs, y)
    columns = np.asfortranarray(pairs)
    same(MetricTracker(**options).partial_fit(columns, y), plain)
    np.testing.assert_array_equal(plain.pair_distance(columns), plain.pair_distance(pairs))
    triplets = np.stack([pairs[:, 0], pairs[:, 1], pairs[::-1, 0]], axis=1)
    ordered = MetricTracker(**options).partial_fit_triplets(triplets)
    same(MetricTracker(**options).partial_fit_triplets(np.asfortranarray(triplets)), ordered)


def test_sparse_rows_by_number():
    X, Z, y = documents(seed=1, m=60)
    rows = np.stack([np.arange(60), 60 + np.arange(60)], axis=1)
    tracker = MetricTracker(preprocessor=sparse.vstack([X, Z])).partial_fit(rows, y)
    close(tracker, MetricTracker().partial_fit(dense(X, Z), y))
    assert tracker.predict(rows).tolist() == tracker.predict((X, Z)).tolist()


def test_sparse_triplets_and_weights():
    X, Z, y = documents(seed=2, m=50)
    W = documents(seed=3, m=50)[0]
    one = MetricTracker().partial_fit_triplets((X, Z, W))
    close(one, MetricTracker().partial_fit_triplets(np.stack([P.toarray() for P in (X, Z, W)], axis=1)))
    weight = np.arange(50) / 20
    one = MetricTracker().partial_fit((X, Z), y, sample_weight=weight)
    close(one, MetricTracker().partial_fit(dense(X, Z), y, sample_weight=weight))


def test_inputs_stay_as_they_are():
    X, Z, y = documents(seed=4, m=20)
    kept = X.copy(), Z.copy()
    MetricTracker().partial_fit((X, Z), y).pair_distance((X, Z))
    for before, after in zip(kept, (X, Z), strict=True):
        assert (before.data.tobytes(), before.indices.tobytes()) == (after.data.tobytes(), after.indices.tobytes())


def test_bad_sparse_pairs_are_refused():
    X, Z, y = documents(seed=5, m=20)
    spoiled = X.copy()
    spoiled.data[3] = np.inf
    huge = X.copy()
    huge.data[:] = 1.7e308
    tracker = MetricTracker()
    for pairs, message in [
        ((X, Z[:, :5]), "one shape"),
        ((X, Z, Z), r"Tuples of 2 element\(s\)"),
        ((spoiled, Z), "found infinity"),
        ((X.astype(complex), Z), "got dtype complex128"),
        ((huge, -huge), "finite differences, but those of pair"),
        (X, "2 sparse matrices"),
    ]:
        with pytest.raises(ValueError, match=message):
            tracker.partial_fit(pairs, y)
    assert not hasattr(tracker, "n_features_in_")


def test_sparse_labelled_points_are_dense_ones():
    X, _, y = documents(seed=6, m=80)
    one = SupervisedMetricTracker(random_state=0).partial_fit(X[:30], y[:30]).partial_fit(X[30:], y[30:])
    other = SupervisedMetricTracker(random_state=0).fit(X.toarray(), y)
    np.testing.assert_allclose(one.transform(X), other.transform(X.toarray()), atol=1e-9)


# DataFrames


@pytest.fixture(params=["pandas", "polars"], name="frame")
def fixture_frame(request):
    library = pytest.importorskip(request.param)
    return lambda array, names: library.DataFrame({name: array[:, k] for k, name in enumerate(names)})


@pytest.mark.filterwarnings("ignore:Support for the dataframe interchange:DeprecationWarning")
def test_names_of_features_are_kept(frame):
    rng = np.random.default_rng(7)
    X, rows, y = rng.normal(size=(30, 3)), rng.integers(30, size=(50, 2)), rng.choice([-1, 1], size=50)
    plain, names = MetricTracker().partial_fit(X[rows], y), ["width", "height", "depth"]
    by_rows = MetricTracker(preprocessor=frame(X, names)).partial_fit(rows, y)
    by_sides = MetricTracker().partial_fit((frame(X[rows[:, 0]], names), frame(X[rows[:, 1]], names)), y)
    for tracker in (by_rows, by_sides):
        assert tracker.feature_names_in_.tolist() == names
        np.testing.assert_array_equal(tracker.get_mahalanobis_matrix(), plain.get_mahalanobis_matrix())
        np.testing.assert_array_equal(tracker.transform(frame(X, names)), plain.transform(X))
        if tracker is by_rows:  # without a warning about names
            np.testing.assert_array_equal(tracker.transform(np.arange(30)), plain.transform(X))
        with pytest.raises(ValueError, match="feature names should match"):
            tracker.transform(frame(X, names[::-1]))
        with pytest.raises(ValueError, match=r"^pairs\[1\] has the columns of pairs\[0\] in another order"):
            tracker.partial_fit((frame(X, names), frame(X, names[::-1])), y[:30])
        with pytest.warns(UserWarning, match="does not have valid feature names"):
            tracker.transform(X)
    assert not hasattr(plain, "feature_names_in_")
    new = MetricTracker()
    with pytest.raises(ValueError, match=r"^pairs\[1\] has the columns of pairs\[0\] in another order"):
        new.partial_fit((frame(X, names), frame(X, names[::-1])), y[:30])
    assert not hasattr(new, "feature_names_in_")


@pytest.mark.filterwarnings("ignore:Support for the dataframe interchange:DeprecationWarning")
def test_labelled_tables(frame):
    rng = np.random.default_rng(8)
    X, y = rng.normal(size=(40, 3)), rng.choice(["red", "green"], size=40)
    tracker = SupervisedMetricTracker(random_state=0).fit(frame(X, "abc"), y)
    assert tracker.feature_names_in_.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(
        tracker.transform(frame(X, "abc")), SupervisedMetricTracker(random_state=0).fit(X, y).transform(X)
    )
    with pytest.raises(ValueError, match="feature names should match"):
        tracker.partial_fit(frame(X, "cba"), y)


ASKING = {
    **{
        word: lambda tracker, pairs, _, word=word: getattr(tracker, word)(pairs)
        for word in ("pair_distance", "predict", "predict_proba", "decision_function")
    },
    "score": lambda tracker, pairs, y: tracker.score(pairs, y),
    "calibrate_threshold": lambda tracker, pairs, y: tracker.calibrate_threshold(pairs, y).threshold_,
}


@pytest.mark.filterwarnings("ignore:Support for the dataframe interchange:DeprecationWarning")
@pytest.mark.parametrize("word", ASKING)
def test_whoever_asks_must_name_features_alike(frame, word):
    rng = np.random.default_rng(9)
    X, Z, y = rng.normal(size=(30, 3)), rng.normal(size=(30, 3)), rng.choice([-1, 1], size=30)
    tracker = MetricTracker().partial_fit((frame(X, "abc"), frame(Z, "abc")), y)
    answer = ASKING[word](tracker, (frame(X, "abc"), frame(Z, "abc")), y)
    np.testing.assert_array_equal(answer, ASKING[word](tracker, np.stack([X, Z], axis=1), y))
    of_sides = r"^pairs\[1\] has the columns of pairs\[0\] in another order"
    for *names, told in (("cba", "cba", "feature names should match"), ("abc", "cba", of_sides)):
        with pytest.raises(ValueError, match=told):
            ASKING[word](tracker, (frame(X, names[0]), frame(Z, names[1])), y)


@pytest.mark.filterwarnings("ignore:Support for the dataframe interchange:DeprecationWarning")
def test_sides_agree_even_where_no_names_were_learned(frame):
    rng = np.random.default_rng(9)
    X, Z, y = rng.normal(size=(30, 3)), rng.normal(size=(30, 3)), rng.choice([-1, 1], size=30)
    tracker = MetricTracker().partial_fit(np.stack([X, Z], axis=1), y)
    for learn_or_ask in (lambda pairs: tracker.partial_fit(pairs, y), tracker.predict):
        with pytest.raises(ValueError, match=r"^pairs\[1\] has the columns of pairs\[0\] in another order"):
            learn_or_ask((frame(X, "abc"), frame(Z, "cba")))
    with pytest.warns(UserWarning, match="fitted without feature names"):
        tracker.predict((frame(X, "cba"), frame(Z, "cba")))


@pytest.mark.filterwarnings("ignore:Support for the dataframe interchange:DeprecationWarning")
def test_labelled_and_keyed_points_are_named_alike(frame):
    rng = np.random.default_rng(10)
    X, Z, y = rng.normal(size=(30, 3)), rng.normal(size=(30, 3)), rng.choice([-1, 1], size=30)
    good, bad, keys = (frame(X, "abc"), frame(Z, "abc")), (frame(X, "cba"), frame(Z, "cba")), ["u", "v"] * 15
    labelled = SupervisedMetricTracker(random_state=0).fit(good[0], y)
    np.testing.assert_array_equal(labelled.pair_distance(good), labelled.pair_distance(np.stack([X, Z], axis=1)))
    keyed = KeyedTrackers().partial_fit(keys, good, y)
    assert [keyed[key].feature_names_in_.tolist() for key in "uv"] == [["a", "b", "c"]] * 2
    plain = KeyedTrackers().partial_fit(keys, np.stack([X, Z], axis=1), y)
    np.testing.assert_array_equal(
        keyed.pair_distance(keys, good), plain.pair_distance(keys, np.stack([X, Z], axis=1))
    )
    for ask in (
        lambda: labelled.pair_distance(bad),
        lambda: keyed.pair_distance(keys, bad),
        lambda: keyed.predict(keys, bad),
        lambda: keyed.partial_fit(["w"] * 30, bad, y),
    ):
        with pytest.raises(ValueError, match="feature names should match"):
            ask()
    with pytest.raises(ValueError, match=r"^pairs\[1\] has the columns of pairs\[0\] in another order"):
        KeyedTrackers().partial_fit(keys, (good[0], bad[1]), y)
    assert list(keyed) == ["u", "v"]
    assert not hasattr(keyed.tracker, "feature_names_in_")


# Two tables that do not belong together


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        (["area", "n"], "has other columns than pairs\\[0\\]: 'mean area' is missing, 'area' is extra"),
        (["n", "mean area"], "has the columns of pairs\\[0\\] in another order"),
        (["mean area"], "has other columns than pairs\\[0\\]: 'n' is missing"),
    ],
)
def test_tables_side_by_side_have_the_same_columns(columns, told):
    pandas = pytest.importorskip("pandas")
    left = pandas.DataFrame(np.eye(2), columns=["mean area", "n"])
    right = pandas.DataFrame(np.eye(2)[:, : len(columns)], columns=columns)
    tracker = MetricTracker()
    with pytest.raises(ValueError, match=rf"^pairs\[1\] {told}$"):
        tracker.partial_fit((left, right), [1, -1])
    assert not hasattr(tracker, "n_features_in_")
    tracker.partial_fit((left, left), [1, -1])
    with pytest.raises(ValueError, match=rf"^pairs\[1\] {told}$"):
        tracker.predict((left, right))
    numbered = [pandas.DataFrame(np.eye(2), columns=list(names)) for names in ([0, 1], [2, 3])]
    assert MetricTracker().partial_fit(tuple(numbered), [1, -1]).n_features_in_ == 2


def test_a_hole_in_a_table_of_pairs():
    pandas = pytest.importorskip("pandas")
    left = pandas.DataFrame({"a": [1.0, np.nan], "b": [1.0, 2.0]})
    with pytest.raises(
        ValueError, match=r"^pairs\[0\] must be a table of finite numbers: column 'a' has a missing"
    ):
        MetricTracker().partial_fit((left, left), [1, -1])
