"""Neighbours under a moving metric: always those that measuring every point would give."""

import copy
import math
import pickle
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

from given import Given, semidefinite
from ocelad import Intervals, MetricTracker, Step
from ocelad.geometry.quadratic import Dense, Parts
from ocelad.neighbors import MovingIndex, change, projection
from ocelad.neighbors import index as index_module
from ocelad.neighbors.projection import Projection
from streams import comparisons
from trackers import rice


def rounding(M, u):
    """How far two ways of computing u'Mu can be apart, for each of m differences u.

    As |M_ij| <= sqrt(M_ii M_jj), the terms |u_i M_ij u_j| add up to no more than trace(M) |u|^2. A term of u'Mu is
    rounded 2 n times at most, one of |Lu|^2 with |L|^2 = trace(M) 3 n times, each by eps / 2 of it: 2.5 n eps.
    M = L'L holds up to the rounding in eigenvectors or in a product of columns, of the order of n eps |M|, and up
    to eigenvalues below n eps |M| that are left out. Together that is below 8 n eps; + 4 is for small n.
    """
    return 8 * (len(M) + 4) * np.finfo(float).eps * np.trace(M) * np.square(u).sum(axis=1)


def check_neighbours(found, M, X, queries, k, ids=None, reach=np.inf):
    """Hold what was found against u'Mu of every point, by numpy.

    Each distance agrees up to rounding. Points whose distances are farther apart than that are never exchanged:
    where all are, only one answer passes. Of equally near points those that came first are found, and first.
    """
    names = np.arange(len(X)) if ids is None else np.array(ids, dtype=int)
    for q, d, got in zip(queries, *found, strict=True):
        u = X - q
        square, error = np.einsum("ij,jk,ik->i", u, M, u), rounding(M, u)
        low, high = square - error, square + error
        at = np.array([np.flatnonzero(names == each).item() for each in got if each != -1], dtype=int)
        count, others = len(at), np.setdiff1d(np.arange(len(X)), at)
        assert (
            min(k, (high < reach**2 * (1 - 1e-15)).sum()) <= count <= min(k, (low <= reach**2 * (1 + 1e-15)).sum())
        )
        assert len(others) == len(X) - count
        assert (got[count:] == -1).all()
        assert np.isinf(d[count:]).all()
        assert (np.abs(d[:count] ** 2 - square[at]) <= error[at] + 1e-15 * square[at]).all()
        assert (np.maximum.accumulate(low[at])[:-1] <= high[at][1:]).all()
        assert (np.diff(d[:count]) >= 0).all()
        assert (np.diff(at)[np.diff(d[:count]) == 0] > 0).all()
        if 0 < count == k:
            assert low[at].max() <= high[others].min(initial=np.inf)
        if count == k:
            for i in at:
                assert i < min((j for j in others if np.array_equal(X[i], X[j])), default=len(X))


def same(one, other):
    return one[0].tobytes() == other[0].tobytes() and np.array_equal(one[1], other[1])


@pytest.fixture
def made(monkeypatch):
    """How many points each projection is made of."""
    sizes, begin = [], Projection.__init__
    monkeypatch.setattr(Projection, "__init__", lambda own, L, X: sizes.append(len(X)) or begin(own, L, X))
    return sizes


@settings(deadline=None, max_examples=100)
@given(
    st.integers(0, 10**6),
    st.integers(1, 12),
    st.integers(0, 80),
    st.integers(1, 90),
    st.sampled_from(["spread", "grid", "copies", "far", "shell", "steep"]),
    st.sampled_from([0, 4, 1 << 60]),
    st.sampled_from([1, 100, 1 << 20]),
)
def test_equal_to_brute_force(seed, n, count, k, kind, cheaper, entries):
    """Whatever the rank, with ties, duplicates, points far from the origin; measured or projected."""
    rng = np.random.default_rng(seed)
    M = semidefinite(rng, n, int(rng.integers(0, n + 1)))
    X = rng.normal(size=(count, n))
    if kind == "grid":  # everything is an integer: no rounding, many ties
        X, M = np.round(X), np.diag(rng.choice([0.0, 1.0, 4.0], n))
    elif kind == "copies":
        X = X[rng.integers(0, max(1, count // 4), count)] if count else X
    elif kind == "far":
        X = X + 1e9
    elif kind == "steep":  # the least direction of 1e-12 counts, too
        Q = np.linalg.qr(rng.normal(size=(n, n)))[0]
        M = (Q * np.logspace(0, -12, n)) @ Q.T
        M = (M + M.T) / 2
    elif kind == "shell":  # all but equally far from the query 0: rounding decides
        X = X / np.sqrt(np.einsum("ij,jk,ik->i", X, M + np.eye(n), X))[:, None]
        M = M + np.eye(n)
    queries = np.concatenate([np.zeros((1, n)), X[:3], rng.normal(size=(3, n)) + (1e9 if kind == "far" else 0.0)])
    if kind == "grid":
        queries = np.round(queries)
    index = MovingIndex(Given(M, mu=2.0))
    for part in np.array_split(X, 3):
        index.add(part)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index_module, "CHEAPER", cheaper)
        patch.setattr(projection, "ENTRIES", entries)
        found = index.kneighbors(queries, k)
        reached = index.kneighbors(queries, k, within_threshold=True)
        every = index.kneighbors(queries, count + 1)
    check_neighbours(found, M, X, queries, k)
    check_neighbours(reached, M, X, queries, k, reach=np.sqrt(2.0))
    for each, limit in ((found, np.inf), (reached, np.sqrt(2.0))):  # what measuring every point gives, to the bit
        few, beyond = min(k, count), every[0] > limit
        expected = np.where(beyond, np.inf, every[0])[:, :few], np.where(beyond, -1, every[1])[:, :few]
        assert same([part[:, :few].copy() for part in each], [part.copy() for part in expected])
    if kind == "grid":
        square = np.square(X - queries[:, None]) @ M.diagonal()
        order = np.argsort(square, axis=1, kind="stable")[:, :k]
        assert np.array_equal(found[1][:, :count], order)
        assert np.array_equal(found[0][:, :count], np.sqrt(np.take_along_axis(square, order, axis=1)))


def test_few_points_are_measured(monkeypatch):
    """The bound is tight: of 20,000 projected points none but the k nearest has to be measured."""
    rng = np.random.default_rng(0)
    X, queries = rng.normal(size=(20_000, 20)) + 1e6, rng.normal(size=(10, 20)) + 1e6
    counts, nearer = [], projection.nearer
    monkeypatch.setattr(index_module, "CHEAPER", 1 << 60)  # all queries but the first
    monkeypatch.setattr(projection, "nearer", lambda *given: counts.append(len(given[3])) or nearer(*given))
    M = semidefinite(rng, 20, 5)
    found = MovingIndex(Given(M))
    found.add(X)
    distances, ids = found.kneighbors(queries, k=7)
    assert counts == [7] * 9
    square = np.array([np.einsum("ij,jk,ik->i", X - q, M, X - q) for q in queries])
    assert np.array_equal(ids, np.argsort(square, axis=1, kind="stable")[:, :7])
    np.testing.assert_allclose(distances, np.sqrt(np.sort(square, axis=1)[:, :7]), rtol=1e-9)


def test_the_trackers_own_distance_and_threshold():
    pairs, y = comparisons(seed=0, steps=300, n=6)
    tracker = MetricTracker().partial_fit(pairs, y)
    X, queries = pairs[:100, 0], pairs[100:110, 1]
    index = MovingIndex(tracker)
    index.add(X)
    every = np.stack(np.broadcast_arrays(queries[:, None], X[None]), axis=2).reshape(-1, 2, 6)
    expected = np.sort(tracker.pair_distance(every).reshape(10, 100), axis=1)
    distances = index.kneighbors(queries, k=100)[0]
    np.testing.assert_allclose(distances, expected, rtol=1e-7, atol=1e-7 * expected.max())
    similar = (tracker.predict(every).reshape(10, 100) == 1).sum(axis=1)
    _, near = index.kneighbors(queries, k=100, within_threshold=True)
    assert np.array_equal((near >= 0).sum(axis=1), similar)
    assert 0 < similar.sum() < similar.size * 100


@pytest.mark.parametrize(
    ("tracker", "steps", "form"),
    [
        (rice(), 20, Parts),  # fewer directions than features: never multiplied out
        (rice(), 400, Dense),
        (rice(step=Step(32.0, capped=True), base=Intervals(128, "continue")), 20, None),
        (rice(n_components=3), 100, None),
        (MetricTracker(), 20, None),
        (MetricTracker(), 400, None),
        (MetricTracker(n_components=3), 100, None),
    ],
    ids=["few", "many", "continue", "components", "pool-few", "pool", "pool-components"],
)
def test_whatever_a_tracker_has_learned(tracker, steps, form):
    """Measured and projected. No distance is small beside trace(M) |u|^2, so 1e-9 of it is above rounding."""
    pairs, y = comparisons(seed=5, steps=400, n=30)
    tracker.partial_fit(pairs[:steps], y[:steps])
    assert form is None or type(tracker.get_metric().form) is form
    M, X, queries = tracker.get_mahalanobis_matrix(), pairs[:200, 0], pairs[200:230, 1]
    index = MovingIndex(tracker)
    index.add(X)
    distances, ids = index.kneighbors(queries, 7)
    check_neighbours((distances, ids), M, X, queries, 7)
    u = X[ids] - queries[:, None]
    np.testing.assert_allclose(distances, np.sqrt(np.einsum("abi,ij,abj->ab", u, M, u)), rtol=1e-9)


# A projection is made when, since the metric moved or the last projection, measuring points has taken more than a
# quarter of the products that projecting all of them takes: number of points x rows of L. The first 32 points are
# measured in full, for there is nothing to compare them with.


def test_follows_the_metric_and_projects_once_for_each(made):
    """32 of 50 points are more than a quarter: the first query under a metric is measured, the second projects."""
    pairs, y = comparisons(seed=1, steps=200, n=5)
    tracker = MetricTracker()
    index = MovingIndex(tracker)
    index.add(pairs[:50, 0])
    for moves, start in enumerate(range(0, 200, 50)):
        tracker.partial_fit(pairs[start : start + 50], y[start : start + 50])
        M = tracker.get_mahalanobis_matrix()
        for call, part in enumerate([slice(1), slice(1, 5), slice(5, 9), slice(4)]):
            queries = pairs[part, 1]
            check_neighbours(index.kneighbors(queries, 3), M, pairs[:50, 0], queries, 3)
            assert made == [50] * (moves + (call > 0))


def test_a_single_query_after_each_comparison_never_projects(made):
    pairs, y = comparisons(seed=3, steps=700, n=12)
    tracker = MetricTracker().partial_fit(pairs[:400], y[:400])
    index = MovingIndex(tracker)
    index.add(pairs[:300, 0])
    for t in range(400, 440):
        tracker.partial_fit(pairs[t : t + 1], y[t : t + 1])
        query = pairs[t : t + 1, 1]
        check_neighbours(index.kneighbors(query, 5), tracker.get_mahalanobis_matrix(), pairs[:300, 0], query, 5)
    assert made == []


def test_points_that_came_after_a_projection_are_measured_until_projecting_is_cheaper(made):
    """With k = all, every point that is not projected is measured in full."""
    rng = np.random.default_rng(0)
    M, X, query = semidefinite(rng, 4, 3), rng.normal(size=(20, 4)), rng.normal(size=(1, 4))
    index = MovingIndex(Given(M))
    index.add(X[:19])

    def projections(calls):
        sizes = []
        for _ in range(calls):
            check_neighbours(index.kneighbors(query, 20), M, X[index.ids], query, 20, index.ids)
            sizes.append(len(made))
        return sizes

    assert projections(3) == [0, 1, 1]
    index.add(X[19:])
    assert projections(8) == [1] * 6 + [2, 2]  # one point measured 6 times is more than 20 / 4
    index.remove([3, 7])
    assert projections(3) == [2, 3, 3]  # nothing is left of the projection
    assert made == [19, 20, 18]


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6))
def test_any_order_of_adding_removing_and_moving(seed):
    rng = np.random.default_rng(seed)
    metric = Given(semidefinite(rng, 3, 2))
    index, points = MovingIndex(metric), {}
    for _ in range(12):
        action = rng.integers(4)
        if action == 0:
            X = np.round(rng.normal(size=(rng.integers(0, 4), 3)))
            points.update(zip(index.add(X).tolist(), X, strict=True))
        elif action == 1:
            free = [i for i in rng.permutation(60).tolist() if i not in points][:2]
            X = rng.normal(size=(2, 3))
            index.add(X, free)
            points.update(zip(free, X, strict=True))
        elif action == 2 and points:
            gone = rng.choice(list(points), size=rng.integers(0, len(points) + 1), replace=False)
            index.remove(gone)
            points = {i: x for i, x in points.items() if i not in gone}
        elif action == 3:
            metric.M = semidefinite(rng, 3, 2)
        assert len(index) == len(points)
        assert index.ids.tolist() == list(points)
        queries = rng.normal(size=(2, 3))
        stored = np.array(list(points.values())).reshape(-1, 3)
        check_neighbours(index.kneighbors(queries, 4), metric.M, stored, queries, 4, list(points))


def test_what_is_handed_out_or_taken_in_is_a_copy():
    X, ids = np.zeros((2, 2)), np.array([4, 7])
    index = MovingIndex(Given(np.eye(2)))
    index.add(X, ids)[:] = 0
    X += 9.0
    ids[:] = 1
    index.ids[:] = 5
    assert index.ids.tolist() == [4, 7]
    distances, found = index.kneighbors([[0.0, 0.0]], 2)
    assert found.tolist() == [[4, 7]]
    assert distances.tolist() == [[0.0, 0.0]]


def test_a_metric_that_changes_its_matrix_in_place_is_noticed():
    metric = Given(np.eye(2))
    index = MovingIndex(metric)
    index.add([[1.0, 0.0], [0.0, 2.0]])
    assert index.kneighbors([[0.0, 0.0]], 1)[1].item() == 0
    metric.M[0, 0] = 100.0
    assert index.kneighbors([[0.0, 0.0]], 1)[1].item() == 1


def test_nothing_stored_and_nothing_asked():
    index = MovingIndex(Given(np.eye(2)))
    distances, ids = index.kneighbors(np.zeros((2, 2)), 3)
    assert np.isinf(distances).all()
    assert (ids == -1).all()
    assert ids.shape == (2, 3)
    assert index.export()[0].shape == (0, 2)
    index.add(np.ones((1, 2)))
    assert index.kneighbors(np.zeros((0, 2)), 3)[1].shape == (0, 3)


def test_copies_search_alike():
    pairs, y = comparisons(seed=3, steps=50, n=4)
    index = MovingIndex(MetricTracker().partial_fit(pairs, y))
    index.add(pairs[:, 0])
    for twin in (copy.deepcopy(index), pickle.loads(pickle.dumps(index))):
        assert same(twin.kneighbors(pairs[:, 1], 3), index.kneighbors(pairs[:, 1], 3))


# Bad input


def stored():
    index = MovingIndex(Given(np.eye(2)))
    index.add([[0.0, 0.0], [1.0, 1.0]])
    return index


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda index: index.add([[np.nan, 0.0]]), "X must be .* found NaN"),
        (lambda index: index.add([[1.0, 2.0, 3.0]]), r"X must be .*shape \(m, 2\), got shape \(1, 3\)"),
        (lambda index: index.add([1.0, 2.0]), "X must be"),
        (lambda index: index.add([[1.0, 2.0]], [1]), "ids must differ from one another and from those in use"),
        (lambda index: index.add([[1.0, 2.0]] * 2, [8, 8]), "ids must differ"),
        (lambda index: index.add([[1.0, 2.0]], [5, 6]), "ids must be one for each of the 1 points, got 2"),
        (lambda index: index.add([[1.0, 2.0]], [-1]), "ids must be .* >= 0"),
        (lambda index: index.add([[1.0, 2.0]], [2**63]), "ids must be"),
        (lambda index: index.add([[1.0, 2.0]], ["a"]), "ids must be integers, as those of the stored points are"),
        (lambda index: index.add([[1.0, 2.0]] * 2, ["a", 7]), "ids must be .* integers >= 0, or of strings"),
        (lambda index: index.remove(["a"]), "ids must be those of stored points, 'a' is not"),
        (lambda index: index.add([[1.0, 2.0]], [1.5]), "ids must be"),
        (lambda index: index.add([[1.0, 2.0]], [[1], [2, 3]]), "ids must be"),
        (lambda index: index.add([[1.0, 2.0]], [True]), "ids must be"),
        (lambda index: index.remove([7]), "ids must be those of stored points, 7 is not"),
        (lambda index: index.remove([0, 9]), "9 is not"),
        (lambda index: index.remove(0), "ids must be a one-dimensional array"),
        (lambda index: index.kneighbors([[0.0, np.inf]]), "X must be .* found infinity"),
        (lambda index: index.kneighbors([[0.0]]), "X must be"),
        (lambda index: index.kneighbors([[0.0, 0.0]], 0), "n_neighbors must be an integer >= 1, got 0"),
        (lambda index: index.kneighbors([[0.0, 0.0]], 2.0), "n_neighbors must be an integer"),
        (lambda index: index.kneighbors([[0.0, 0.0]], True), "n_neighbors must be an integer"),
        (lambda index: index.kneighbors([[0.0, 0.0]], k=0), "k must be an integer >= 1, got 0"),
        (lambda index: index.kneighbors([[0.0, 0.0]], 3, k=3), "n_neighbors and k are the same: give one"),
    ],
)
def test_rejected_without_a_trace(act, message):
    index = stored()
    before = pickle.dumps(index)
    with pytest.raises(ValueError, match=message):
        act(index)
    assert pickle.dumps(index) == before


def test_first_points_must_have_features():
    with pytest.raises(ValueError, match=r"X must be .* got shape \(3, 0\)"):
        MovingIndex(Given(np.eye(2))).add(np.zeros((3, 0)))


def test_the_metric_must_suit_the_points():
    index = MovingIndex(Given(np.eye(3)))
    index.add(np.zeros((1, 2)))
    with pytest.raises(ValueError, match="metric must have the 2 features of the stored points"):
        index.kneighbors(np.zeros((1, 2)))
    unfitted = MovingIndex(MetricTracker())
    unfitted.add(np.zeros((1, 2)))
    with pytest.raises(NotFittedError):
        unfitted.kneighbors(np.zeros((1, 2)))


@pytest.mark.parametrize("size", [1e-120, 1e-50, 1e50, 1e120])
def test_the_common_scale_does_not_matter(size):
    pairs, y = comparisons(seed=4, steps=100, n=4)
    one, scaled = (MovingIndex(MetricTracker().partial_fit(c * pairs, y)) for c in (1.0, size))
    one.add(pairs[:, 0])
    scaled.add(size * pairs[:, 0])
    expected, found = one.kneighbors(pairs[:, 1], 5), scaled.kneighbors(size * pairs[:, 1], 5)
    assert np.array_equal(expected[1], found[1])
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-6)


def test_what_cannot_be_measured_is_refused():
    index = stored()
    with pytest.raises(OverflowError, match="queries and the stored points are too far apart"):
        index.kneighbors([[1e200, 0.0]])
    index.add([[-1.7e308, 1.7e308]])
    with pytest.raises(OverflowError, match="the stored points are too far apart"):
        index.kneighbors([[0.0, 0.0]])
    pairs, y = comparisons(seed=4, steps=20, n=4)
    index = MovingIndex(MetricTracker().partial_fit(1e170 * pairs, y))
    index.add(1e170 * pairs[:, 0])
    with pytest.raises(OverflowError, match="rescale them"):
        index.kneighbors(1e170 * pairs[:, 1])


def test_anything_with_a_matrix_and_a_threshold_will_do():
    metric = SimpleNamespace(get_mahalanobis_matrix=lambda: np.eye(2), mu_=1.0)
    index = MovingIndex(metric)
    index.add([[0.0, 0.0], [3.0, 4.0]])
    assert index.kneighbors([[0.0, 0.0]], 2)[0].tolist() == [[0.0, 5.0]]
    assert index.kneighbors([[0.0, 0.0]], 2, within_threshold=True)[1].tolist() == [[0, -1]]
    assert change.moved(np.eye(2), np.eye(2), np.zeros((1, 2))) == 0.0
    mark, metric.threshold_ = index.fingerprint, 5.0
    assert index.kneighbors([[0.0, 0.0]], 2, within_threshold=True)[1].tolist() == [[0, 1]]
    assert index.fingerprint != mark


def test_a_copy_is_an_index_of_its_own():
    metric = Given(np.eye(2))
    index = MovingIndex(metric)
    for point in ([0.0, 0.0], [1.0, 0.0], [2.0, 0.0]):  # leaves room to grow into
        index.add([point])
    other = copy.copy(index)
    other.add([[5.0, 5.0]])
    index.add([[9.0, 9.0]])
    other.remove([0])
    assert other.metric is metric
    assert index.kneighbors([[0.0, 0.0]], 4)[0].tolist() == [[0.0, 1.0, 2.0, math.hypot(9.0, 9.0)]]
    assert other.kneighbors([[0.0, 0.0]], 4)[0].tolist() == [[1.0, 2.0, math.hypot(5.0, 5.0), np.inf]]
    assert other.add([[0.0, 0.0]], [0]).tolist() == [0]
    with pytest.raises(ValueError, match="ids must differ"):
        index.add([[0.0, 0.0]], [0])


# Ids that are strings


@pytest.mark.parametrize("kind", [list, np.array, lambda ids: np.array(ids, dtype=object)], ids=["list", "U", "O"])
def test_ids_may_be_strings(kind):
    index, other = MovingIndex(Given(np.eye(2))), MovingIndex(Given(np.eye(2)))
    points = [[0.0, 0.0], [3.0, 4.0], [1.0, 0.0]]
    added = index.add(points, kind(["origin", "far away", ""]))
    other.add(points)
    assert added.tolist() == index.ids.tolist() == ["origin", "far away", ""]
    assert [type(each) for each in index.ids] == [str] * 3
    distances, ids = index.kneighbors([[0.1, 0.0]], 4)
    assert ids.tolist() == [["origin", "", "far away", None]]  # the empty string is an id like others
    assert np.array_equal(distances, other.kneighbors([[0.1, 0.0]], 4)[0])
    assert index.kneighbors([[0.1, 0.0]], 3, within_threshold=True)[1].tolist() == [["origin", "", None]]
    assert index.export()[1].tolist() == ["origin", "far away", ""]
    index.remove(kind(["", "origin"]))
    assert index.ids.tolist() == ["far away"]
    index.add([[0.0, 1.0]], kind(["a longer name than any before"]))
    assert index.kneighbors([[0.0, 0.0]], 1)[1].tolist() == [["a longer name than any before"]]


@pytest.mark.parametrize(
    "kind", [list, tuple, lambda ids: np.array(ids, dtype=object)], ids=["list", "tuple", "O"]
)
def test_strings_are_kept_to_the_last_character(kind):
    index = MovingIndex(Given(np.eye(2)))
    index.add([[0.0, 0.0], [1.0, 0.0]], kind(["a\0", "a"]))
    assert index.ids.tolist() == ["a\0", "a"]
    index.remove(kind(["a\0"]))
    assert index.ids.tolist() == ["a"]
    pd = pytest.importorskip("pandas")
    assert index.add([[2.0, 0.0]], pd.Series(["b"])).tolist() == ["b"]


def test_all_ids_are_of_one_kind():
    index = MovingIndex(Given(np.eye(2)))
    index.add([[0.0, 0.0]], ["a"])
    for ids in ([3], None):
        with pytest.raises(ValueError, match="ids must be strings, as those of the stored points are"):
            index.add([[1.0, 1.0]], ids)
    with pytest.raises(ValueError, match="ids must differ"):
        index.add([[1.0, 1.0]], ["a"])
    with pytest.raises(ValueError, match="3 is not"):
        index.remove([3])
    assert index.ids.tolist() == ["a"]
    index.remove(["a"])
    assert index.add([[1.0, 1.0]]).tolist() == [0]  # nothing is stored: the kind is free again
    assert index.kneighbors([[0.0, 0.0]], 2)[1].tolist() == [[0, -1]]


def test_neighbours_are_asked_for_as_in_scikit_learn():
    index = MovingIndex(MetricTracker().partial_fit(*comparisons(seed=0, steps=100, n=2)))
    index.add(np.random.default_rng(0).normal(size=(20, 2)))
    X = np.zeros((1, 2))
    distances, ids = index.kneighbors(X, n_neighbors=3)
    for other in (index.kneighbors(X, 3), index.kneighbors(X, k=3)):
        assert same(other, (distances, ids))
    np.testing.assert_array_equal(index.kneighbors(X, 3, return_distance=False), ids)
    np.testing.assert_array_equal(index.kneighbors(X, 3, False), ids)
    assert index.kneighbors(X)[1].shape == (1, 5)
