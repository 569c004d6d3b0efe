"""Neighbours under a moving metric: always those that measuring every point would give."""

import copy
import pickle
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

from given import Given, semidefinite
from ocelad import MetricTracker
from ocelad.neighbors import MovingIndex, change, projection
from ocelad.neighbors.projection import Form, Projection
from streams import comparisons


def form_of(metric):
    M = np.asarray(metric.get_mahalanobis_matrix(), dtype=float)
    return Form(M, *change.columns(metric, M))


def brute(metric, X, queries, k, ids=None, reach=np.inf):
    """One point at a time, in the order of squared distance and then of arrival."""
    form, ids = form_of(metric), np.arange(len(X)) if ids is None else ids
    distances, found = np.full((len(queries), k), np.inf), np.full((len(queries), k), -1)
    for row, q in enumerate(queries):
        square = [float(form.measured(np.array([x]), np.zeros(1, dtype=np.int64), q)[0]) for x in X]
        literal = [(x - q) @ form.M @ (x - q) for x in X]
        np.testing.assert_allclose(square, literal, rtol=1e-6, atol=1e-9 * max(map(abs, literal), default=0.0))
        order = sorted(range(len(X)), key=lambda i: (square[i], i))
        order = [i for i in order if np.sqrt(square[i]) <= reach][:k]
        distances[row, : len(order)] = [np.sqrt(square[i]) for i in order]
        found[row, : len(order)] = [ids[i] for i in order]
    return distances, found


def same(one, other):
    return one[0].tobytes() == other[0].tobytes() and np.array_equal(one[1], other[1])


@settings(deadline=None, max_examples=60)
@given(
    st.integers(0, 10**6),
    st.integers(1, 12),
    st.integers(0, 40),
    st.integers(1, 50),
    st.sampled_from(["spread", "grid", "copies", "far", "shell"]),
    st.sampled_from([1, 3, 7, 1 << 14]),
)
def test_equal_to_brute_force_to_the_bit(seed, n, count, k, kind, block):
    """Whatever the rank, with ties, duplicates, points far from the origin, and any size of block."""
    rng = np.random.default_rng(seed)
    M = semidefinite(rng, n, int(rng.integers(0, n + 1)))
    X = rng.normal(size=(count, n))
    if kind == "grid":
        X, M = np.round(X), np.diag(rng.integers(0, 3, n)).astype(float)
    elif kind == "copies":
        X = X[rng.integers(0, max(1, count // 4), count)] if count else X
    elif kind == "far":
        X = X + 1e9
    elif kind == "shell":  # all but equally far from the query 0: rounding decides
        X = X / np.sqrt(np.einsum("ij,jk,ik->i", X, M + np.eye(n), X))[:, None]
        M = M + np.eye(n)
    queries = np.concatenate([np.zeros((1, n)), X[:3], rng.normal(size=(3, n)) + (1e9 if kind == "far" else 0.0)])
    index = MovingIndex(Given(M, mu=2.0))
    for part in np.array_split(X, 3):
        index.add(part)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(projection, "BLOCK", block)
        patch.setattr(projection, "ENTRIES", 4 * block)
        assert same(index.kneighbors(queries, k), brute(Given(M), X, queries, k))
        reached = index.kneighbors(queries, k, within_threshold=True)
    assert same(reached, brute(Given(M), X, queries, k, reach=np.sqrt(2.0)))


def test_few_points_are_measured(monkeypatch):
    """The bound is tight: hardly more than k of 20,000 points have to be measured in a block."""
    rng = np.random.default_rng(0)
    X, queries = rng.normal(size=(20_000, 20)) + 1e6, rng.normal(size=(10, 20)) + 1e6
    counts = []
    measured = Form.measured
    monkeypatch.setattr(Form, "measured", lambda own, X, at, q: counts.append(len(at)) or measured(own, X, at, q))
    M = semidefinite(rng, 20, 5)
    found = MovingIndex(Given(M))
    found.add(X)
    distances, ids = found.kneighbors(queries, k=7)
    assert max(counts) == 7
    square = np.array([measured(form_of(Given(M)), X, np.arange(len(X)), q) for q in queries])
    assert np.array_equal(ids, np.argsort(square, axis=1, kind="stable")[:, :7])
    assert np.array_equal(distances, np.sqrt(np.sort(square, axis=1)[:, :7]))


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


def test_follows_the_metric_and_projects_again_only_when_it_has_moved(monkeypatch):
    pairs, y = comparisons(seed=1, steps=200, n=5)
    tracker, made = MetricTracker(), []
    begin = Projection.__init__
    monkeypatch.setattr(Projection, "__init__", lambda own, *given: made.append(1) or begin(own, *given))
    index = MovingIndex(tracker)
    index.add(pairs[:50, 0])
    for start in range(0, 200, 50):
        tracker.partial_fit(pairs[start : start + 50], y[start : start + 50])
        for _ in range(3):
            assert same(index.kneighbors(pairs[:4, 1], 3), brute(tracker, pairs[:50, 0], pairs[:4, 1], 3))
    assert 1 <= len(made) <= 4


def test_an_old_projection_serves_as_long_as_the_metric_moves_little(monkeypatch):
    """After single comparisons neighbours are exact, and far fewer projections than comparisons are made."""
    pairs, y = comparisons(seed=3, steps=700, n=12)
    tracker, made = MetricTracker().partial_fit(pairs[:400], y[:400]), []
    begin = Projection.__init__
    monkeypatch.setattr(Projection, "__init__", lambda own, *given: made.append(1) or begin(own, *given))
    index = MovingIndex(tracker)
    index.add(pairs[:300, 0])
    for t in range(400, 440):
        tracker.partial_fit(pairs[t : t + 1], y[t : t + 1])
        query = pairs[t : t + 1, 1]
        assert same(index.kneighbors(query, 5), brute(tracker, pairs[:300, 0], query, 5))
    assert len(made) < 30


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
        expected = brute(metric, np.array(list(points.values())).reshape(-1, 3), queries, 4, list(points))
        assert same(index.kneighbors(queries, 4), expected)


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
        (lambda index: index.kneighbors([[0.0, 0.0]], 0), "k must be an integer >= 1, got 0"),
        (lambda index: index.kneighbors([[0.0, 0.0]], 2.0), "k must be an integer"),
        (lambda index: index.kneighbors([[0.0, 0.0]], True), "k must be an integer"),
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
