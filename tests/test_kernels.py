"""The compiled path: the secular equation at its worst, the stack against the list of black boxes."""

import copy
import io
import pickle
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.base import clone

import ocelad
from called import called
from literal import Literal
from ocelad import (
    AdaNormalHedge,
    CoinBetting,
    FixedShare,
    Hinge,
    Logistic,
    MetricTracker,
    NuclearNorm,
    OceladWeights,
    Rice,
    SaolWeights,
    SquaredHinge,
    Unregularized,
)
from ocelad.metric.comid import Descent, Recipe
from ocelad.metric.kernels import block, codes, dictionary, factored, late, secular
from ocelad.metric.notice import Announced
from ocelad.metric.stack import StackedRice
from streams import comparisons

roots, vectors, add = called(secular.roots), called(secular.vectors), called(late.add)
project, distance, extend = called(factored.project), called(factored.distance), called(factored.extend)
rank_one, shrink, truncate = called(factored.rank_one), called(factored.shrink), called(factored.truncate)
remember, widen = called(dictionary.remember), called(dictionary.widen)
height, compress = called(dictionary.height), called(dictionary.compress)

# The secular equation


def poles(rng, kind, k):
    if kind == "spread":
        return np.sort(rng.normal(size=k))
    if kind == "crowded":  # half of them within a millionth of each other
        return np.sort(np.concatenate([1 + 1e-6 * rng.random(k // 2), rng.random(k - k // 2)]))
    return np.cumsum(10.0 ** rng.uniform(-11, 0, size=k))  # gaps over eleven orders of magnitude


def solved(d, z, a, down=False):
    k = len(d)
    vec, V = np.zeros((6, k + 8)), np.zeros((-(-k // codes.WIDTH), k + 4, codes.WIDTH))
    vec[0, :k], vec[1, :k], vec[5, :k] = d, np.sqrt(a) * z, a * z * z
    roots(vec[0], vec[5], k, down, vec[2], vec[3], np.zeros(codes.LANES), np.zeros(codes.WIDTH, dtype=np.int64))
    vectors(vec[0], vec[1], k, down, vec[2], vec[3], vec[4], V)
    return (vec[2] + vec[3])[:k], np.hstack(V)[:k, :k]


@settings(deadline=None, max_examples=300)
@given(
    seed=st.integers(0, 10**6),
    k=st.integers(1, 100),
    kind=st.sampled_from(["spread", "crowded", "uneven"]),
    spread=st.sampled_from([0, 6]),
    size=st.floats(-3, 3),
)
def test_diagonal_plus_rank_one(seed, k, kind, spread, size):
    rng = np.random.default_rng(seed)
    d = poles(rng, kind, k)
    z = rng.normal(size=k) * 10.0 ** rng.uniform(-spread, 0, size=k)
    a = 10.0**size
    assume((np.diff(d) > 1e-12 * np.abs(d).max()).all() and (z != 0).all())  # else it is deflation's business
    w, V = solved(d, z, a)
    A = np.diag(d) + a * np.outer(z, z)
    np.testing.assert_allclose((V * w) @ V.T, A, atol=2e-14 * np.abs(A).max())
    np.testing.assert_allclose(V.T @ V, np.eye(k), atol=2e-14)
    assert (np.diff(w) >= 0).all()  # they interlace with the poles
    assert (w >= d).all()
    assert (w[:-1] <= d[1:]).all()


@pytest.mark.parametrize("down", [False, True])
def test_weights_of_many_close_poles_are_recomputed_in_range(down):
    """Half of the poles are as good as one: in the wrong order, products of gaps are 1e-384 or as large."""
    rng = np.random.default_rng(0)
    d = np.concatenate([np.linspace(0.0, 0.5, 32), 1.0 + 1e-12 * np.arange(1, 33)])
    z = 1e-2 * rng.normal(size=64)
    w, V = solved(d, z, 1.0, down)
    np.testing.assert_allclose((V * w) @ V.T, np.diag(d) + np.outer(z, z), atol=2e-14)
    np.testing.assert_allclose(V.T @ V, np.eye(64), atol=2e-14)


# One factored learner


def dense(Q, s, r, sigma):
    return sigma * (np.eye(len(Q)) - Q[:, :r] @ Q[:, :r].T) + (Q[:, :r] * s[:r]) @ Q[:, :r].T


def scratch(size):
    index = np.zeros((codes.INDICES, size + 72), dtype=np.int64)
    index[codes.EVERY] = np.arange(size + 72)
    lane, V, copies = (
        np.zeros(codes.LANES),
        np.zeros((1, size + 4, codes.WIDTH)),
        np.zeros((codes.COPIES, codes.WIDTH)),
    )
    return np.zeros((codes.VECTORS, size + 72)), lane, V, copies, index


def kept_by_dictionary(Q, r, rng):
    """A stack whose first learner has columns Q, combinations of its own and of comparisons."""
    n = len(Q)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ocelad.metric.stack._DEFERRED", 1)
        own = StackedRice(Recipe(n, 0.0, 1.0, 1.0, Descent(), 8, "fresh"), Hinge())
    own.open(0)
    own._reserve(1, n)
    recent = r - min(r, 3)  # orthonormal they are here, but need not be
    F = np.linalg.qr(rng.normal(size=(r, r)))[0]
    D = Q[:, :r] @ F.T
    own.E[1, :n, : r - recent], own.U[:n, :recent], own.U[:n, recent] = D[:, recent:], D[:, :recent], np.eye(n)[0]
    own.F[1, :r, :r] = np.roll(F, -recent, axis=0)
    own.meta[codes.RANK : codes.TOUCHED + 1, 1] = r, r - recent, 0, n
    own.meta[codes.CLOCK, [codes.RECENT, codes.SEEN]] = recent + 1, n
    own.features[[1, -1], codes.LIST, :n], own.features[[1, -1], codes.MARK, :n] = np.arange(n), 1
    return own


CASES = ["general", "repeated", "inside", "along", "empty", "full", "ties", "tiny"]


@pytest.mark.parametrize("a", [0.7, -0.7, 1e-9, -1e9])
@pytest.mark.parametrize("tau", [0.0, 0.05])
@pytest.mark.parametrize("sigma", [0.0, 0.5])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kept_by", ["columns", "dictionary"])
def test_rank_one_step_of_a_factored_learner(kept_by, case, sigma, tau, a):
    n, rng = 10, np.random.default_rng(0)
    r = {"empty": 0, "full": n}.get(case, 5)
    Q, s = np.zeros((n, 12)), np.zeros(12)  # rows in fives, columns in fours
    Q[:, :n] = np.linalg.qr(rng.normal(size=(n, n)))[0]
    s[:r] = 1.0 if case == "ties" else rng.random(r) + 0.1
    if case == "repeated":
        s[1:3] = s[0]
    u = rng.normal(size=n)
    if case == "inside":
        u = Q[:, :r] @ rng.normal(size=r)  # no new direction
    if case == "along":
        u = 2.0 * Q[:, 1]  # an eigenvector: nothing mixes
    if case == "tiny":
        u = Q[:, 0] + 1e-13 * rng.normal(size=n)
    M = dense(Q, s, r, sigma)
    w, V = np.linalg.eigh(M + a * np.outer(u, u))
    expected = (V * np.maximum(w - tau, 0)) @ V.T
    z, (vec, lane, V, copies, index), square = np.zeros(20), scratch(40), float(u @ u)
    every, before = index[codes.EVERY], r
    if kept_by == "columns":
        project(Q, r, u, every, n, z)
        assert distance(s, r, sigma, z, square) == pytest.approx(u @ M @ u)
        if r < n:
            r = extend(Q, n, r, u, square, z, every, vec[codes.RESIDUAL], vec[codes.SECOND])
        turned, tall = Q, n
    else:
        own = kept_by_dictionary(Q, r, rng)
        stack, (vec, _, _, lane, V, copies, index, _) = own.arrays[: codes.AT_VEC], own.arrays[codes.AT_VEC :]
        z[:r], vec[codes.DIFFERENCE, :n] = own.columns(1).T @ u, u
        remember(square, index[codes.EVERY], n, stack, own.arrays[codes.AT_VEC :])
        if r < n:
            r = widen(1, n, square, z, stack, own.arrays[codes.AT_VEC :])
        turned, tall = own.F[1], height(1, own.meta)
    if r > before:
        s[before] = sigma
    rank_one(turned, tall, s, r, z, a, vec, lane, V, copies, index)
    r, rest = shrink(turned, tall, s, r, sigma, tau)
    if kept_by == "dictionary":
        own.meta[codes.RANK, 1] = r
        product = own.columns(1)
        compress(1, stack, own.arrays[codes.AT_VEC :])
        np.testing.assert_allclose(own.E[1, :n, :r], product, atol=1e-15 * n)
        assert (own.F[1, :r, :r] == np.eye(r)).all()
        np.testing.assert_array_equal(own.columns(1), own.E[1, :n, :r])
        Q = own.E[1, :n]
    np.testing.assert_allclose(dense(Q, s, r, rest), expected, atol=1e-13 * max(1.0, np.abs(w).max()))
    np.testing.assert_allclose(Q[:, :r].T @ Q[:, :r], np.eye(r), atol=1e-13)


@pytest.mark.parametrize(("scale", "length"), [(1e-300, 1.0), (1e-231, 1e-48), (1.0, 1.0), (1e295, 1e28)])
@pytest.mark.parametrize("a", [0.7, -0.7])
def test_matrices_of_any_size(scale, length, a):
    rng, n = np.random.default_rng(1), 12
    Q, s, z = np.eye(n), scale * rng.random(n), rng.normal(size=n)
    w, V = np.linalg.eigh(np.diag(s / scale) + a * np.outer(z, z))
    padded = [np.concatenate([x, np.zeros(8)]) for x in (s, length * z)]
    rank_one(Q, n, padded[0], n, padded[1], a * scale / length**2, *scratch(40))
    np.testing.assert_allclose((Q * (padded[0][:n] / scale)) @ Q.T, (V * w) @ V.T, atol=1e-13)
    np.testing.assert_allclose(Q.T @ Q, np.eye(n), atol=1e-13)


def test_truncation_cuts_off_the_least_and_says_how_much():
    Q, s = np.eye(4), np.array([3.0, 0.5, 2.0, 1.0])
    r, discarded = truncate(Q, 4, s, 4, 0.0, 2)
    assert (r, discarded) == (2, 1.5)
    np.testing.assert_array_equal(dense(Q, s, r, 0.0), np.diag([3.0, 0, 2.0, 0]))


# The stack


def listed(tracker):
    """The same tracker as a list of black boxes."""
    base, start = tracker.base, tracker.start
    return clone(tracker).set_params(ensemble=lambda spawn: Rice(spawn, base, start))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"base": 1, "weights": OceladWeights()},
        {"base": 3, "weights": OceladWeights("mixture", reset=False), "start": "continue"},
        {"weights": FixedShare(0.5, 0.0), "start": "continue"},
        {"weights": CoinBetting(), "loss": Logistic()},
        {"weights": AdaNormalHedge(), "regularizer": Unregularized(), "order": "after"},
        {"weights": SaolWeights(seed=3), "threshold_step": 1.0},
        {"loss": SquaredHinge(), "step": 2.0},
        {"loss": Logistic(), "regularizer": NuclearNorm(0.1)},
        {"step_cap": True, "step": 64.0},
        {"origin": 1.0, "regularizer": NuclearNorm(0.05)},
        {"origin": 0.3, "regularizer": Unregularized(), "start": "continue"},
        {"origin": np.diag([2.0, 1.0, 0.5, 0.0, 0.0, 1.0, 1.0])},
        {"scale": None, "order": "after", "base": 2},
    ],
    ids=repr,
)
@pytest.mark.parametrize("deferred", [False, True])
def test_the_stack_is_the_list(options, deferred, monkeypatch):
    for name in ("_DEFERRED", "_DEFERRED_FULL"):
        monkeypatch.setattr(f"ocelad.metric.stack.{name}", 1 if deferred else 10**9)
    pairs, y = comparisons(seed=4, steps=260, n=7)
    pairs[50, 1] = pairs[50, 0]  # a zero difference
    pairs[60] = pairs[59]
    stack = MetricTracker(**options)
    boxes = listed(stack)
    for part in np.array_split(np.arange(260), [1, 2, 9, 100]):
        stack.partial_fit(pairs[part], y[part])
        boxes.partial_fit(pairs[part], y[part])
        assert stack.levels_["length"].tolist() == boxes.levels_["length"].tolist()
        np.testing.assert_allclose(stack.levels_["weight"], boxes.levels_["weight"], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(stack.levels_["loss"], boxes.levels_["loss"], rtol=1e-9, atol=1e-9)
        for one, other in zip(stack.level_metrics_, boxes.level_metrics_, strict=True):
            np.testing.assert_allclose(one.M, other.M, atol=1e-10 * max(1e-3, np.abs(other.M).max()))
            assert one.mu == pytest.approx(other.mu, rel=1e-10)
    assert isinstance(stack._ocelad.ensemble, StackedRice)
    assert stack._ocelad.ensemble.deferred == deferred
    assert not isinstance(boxes._ocelad.ensemble, StackedRice)


def test_rows_stay_orthonormal_and_room_grows_as_needed():
    pairs, y = comparisons(seed=5, steps=20_000, n=12)
    tracker = MetricTracker(regularizer=NuclearNorm(0.01))
    tracker.partial_fit(pairs[:3], y[:3])
    stack = tracker._ocelad.ensemble
    small = stack.E.nbytes
    tracker.partial_fit(pairs[3:], y[3:])
    levels = len(tracker.levels_)
    assert small < stack.E.nbytes <= (levels + 5) * 12 * 12 * 8
    for slot in stack.meta[codes.ORDER, :levels]:
        Q = stack.columns(slot)
        np.testing.assert_allclose(Q.T @ Q, np.eye(Q.shape[1]), atol=1e-12)
        assert (stack.S[slot, : Q.shape[1]] > 0).all()


def test_a_pickle_of_another_version_is_refused():
    """Its scratch may be smaller than kernels take it to be."""
    pairs, y = comparisons(seed=5, steps=20, n=5)
    state = dict(vars(MetricTracker().partial_fit(pairs, y)._ocelad.ensemble))
    arrays = list(state["arrays"])
    for at in (codes.AT_VEC, codes.AT_INDEX, codes.AT_LANE, codes.AT_COPIES):
        other = [*arrays[:at], arrays[at][:-1], *arrays[at + 1 :]]
        with pytest.raises(ValueError, match="pickled by another version of ocelad"):
            StackedRice.__new__(StackedRice).__setstate__({**state, "arrays": tuple(other)})


def test_low_levels_are_low_rank():
    """A learner that has seen few comparisons keeps few rows, and costs as little."""
    pairs, y = comparisons(seed=6, steps=300, n=60)
    stack = MetricTracker(base=1).partial_fit(pairs, y)._ocelad.ensemble
    ranks = stack.meta[2, stack.meta[1, : stack.levels]]
    assert all(rank <= 2 ** (level + 1) for level, rank in enumerate(ranks))


def test_a_long_first_use_is_announced_on_a_terminal(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    for patient, expected in ((False, ""), (True, "compiling")):
        screen = Terminal()
        monkeypatch.setattr("sys.stderr", screen)
        monkeypatch.setattr(Announced, "first", True)
        with Announced():
            time.sleep(1.3 if patient else 0.0)
        assert expected in screen.getvalue()
        assert bool(expected) == bool(screen.getvalue())
    with Announced():  # only once
        assert not Announced.first


def test_works_where_nothing_can_be_kept_on_disk():
    """As in a read-only container: compiled anew, and just as right."""
    code = (
        "import numba, numpy as np; real = numba.njit\n"
        "def refuse(*args, cache=False, **options):\n"
        "    if cache: raise RuntimeError('cannot cache function: no locator available')\n"
        "    return real(*args, **options)\n"
        "numba.njit = refuse\n"
        "from called import called; from ocelad.metric.kernels import secular; roots = called(secular.roots)\n"
        "v = np.ones((4, 9)); v[1] = 4; lane, index = np.zeros(2000), np.zeros(128, dtype=np.int64)\n"
        "roots(v[0], v[1], 1, False, v[2], v[3], lane, index)\n"
        "print(v[2, 0] + v[3, 0])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path(__file__).parent
    )
    assert float(done.stdout) == pytest.approx(5.0)


def test_a_capped_rank_keeps_the_most_important_directions():
    """Against the list of black boxes, and against the literal reference."""
    pairs, y = comparisons(seed=7, steps=200, n=20)
    for deferred in (1, 10**9):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("ocelad.metric.stack._DEFERRED", deferred)
            stack = MetricTracker(max_rank=4, scale=None)
            boxes = listed(stack)
            stack.partial_fit(pairs, y)
        boxes.partial_fit(pairs, y)
        literal = Literal(20, 8.0, 0.02, base=8, threshold_step=0.1, combiner="share", max_rank=4)
        for (x, z), label in zip(pairs, y, strict=True):
            literal.update(x - z, label)
        for one, other, key in zip(
            stack.level_metrics_, boxes.level_metrics_, literal.act(literal.t), strict=True
        ):
            assert np.linalg.matrix_rank(one.M, tol=1e-9) <= 4
            np.testing.assert_allclose(one.M, other.M, atol=1e-10)
            np.testing.assert_allclose(one.M, literal.M[key], atol=1e-10)
        np.testing.assert_allclose(stack.discarded_, boxes.discarded_, atol=1e-9)
        assert stack.discarded_.max() > 0
    assert (MetricTracker(max_rank=20).partial_fit(pairs, y).discarded_ == 0).all()


@pytest.mark.parametrize("deferred", [False, True])
def test_sparse_differences_are_learned_as_dense_ones(deferred, monkeypatch):
    monkeypatch.setattr("ocelad.metric.stack._DEFERRED", 1 if deferred else 10**9)
    rng = np.random.default_rng(8)
    pairs, y = comparisons(seed=8, steps=700, n=30)
    pairs *= rng.random(size=pairs.shape) < 0.15
    pairs[40, 1] = pairs[40, 0]
    dense, rows = MetricTracker(), MetricTracker()
    for part in (slice(1), slice(1, 90), slice(90, 700)):
        dense.partial_fit(pairs[part], y[part])
        rows.partial_fit(tuple(csr_array(pairs[part, side]) for side in (0, 1)), y[part])
    for one, other in zip(dense.level_metrics_, rows.level_metrics_, strict=True):
        np.testing.assert_allclose(one.M, other.M, atol=1e-10 * np.abs(one.M).max())
    np.testing.assert_allclose(dense.pair_distance(pairs), rows.pair_distance(pairs), rtol=1e-9)


def test_dictionaries_with_surplus_columns_are_looked_after(monkeypatch):
    """A learner that has just shrunk has fewer columns than its dictionary: the others are still in use."""
    monkeypatch.setattr("ocelad.metric.stack._DEFERRED", 1)
    rng, n, steps = np.random.default_rng(0), 40, 4096
    pairs = rng.normal(size=(steps, 2, 16)) @ rng.normal(size=(16, n)) + 0.01 * rng.normal(size=(steps, 2, n))
    size = np.square(pairs[:, 0, :5] - pairs[:, 1, :5]).sum(axis=1)
    y = np.where(size < np.median(size), 1, -1)
    tracker = MetricTracker(regularizer=NuclearNorm(0.01), base=32)
    stack = None
    for part in np.array_split(np.arange(steps), 4):
        tracker.partial_fit(pairs[part], y[part])
        stack = tracker._ocelad.ensemble
        for slot in stack.meta[codes.ORDER, : stack.levels]:
            Q = stack.columns(slot)
            np.testing.assert_allclose(Q.T @ Q, np.eye(Q.shape[1]), atol=1e-12)
    assert stack.deferred


def test_features_met_long_ago_are_forgotten():
    """A step costs what the features of late cost, however many there have ever been."""
    rng, n, steps = np.random.default_rng(9), 800, 1200
    points = np.zeros((steps, 2, n))
    for t, pair in enumerate(points):
        own = t * (n - 40) // steps  # the features that occur move on
        for point in pair:
            point[own + rng.choice(40, size=6, replace=False)] = rng.normal(size=6)
    y = rng.choice([-1, 1], size=steps)
    rows = tuple(csr_array(points[:, side]) for side in (0, 1))
    options = {"regularizer": NuclearNorm(1.0), "scale": 1.0}
    tracker = MetricTracker(**options).partial_fit(rows, y)
    boxes = MetricTracker(**options, ensemble=lambda spawn: Rice(spawn, 8))
    boxes.partial_fit(points[:300, :, :250], y[:300])
    stack = MetricTracker(**options).partial_fit(tuple(side[:300] for side in rows), y[:300])
    M = boxes.get_mahalanobis_matrix()
    np.testing.assert_allclose(stack.get_mahalanobis_matrix()[:250, :250], M, atol=1e-10 * np.abs(M).max())
    ensemble = tracker._ocelad.ensemble
    kept = ensemble.meta[codes.TOUCHED, ensemble.meta[codes.ORDER, : ensemble.levels]]
    assert 0 < kept.max() < n / 2
    assert np.count_nonzero(np.abs(points).sum(axis=(0, 1))) > 0.9 * n


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"origin": 0.5, "base": 2},
        {"start": "continue"},
        {"loss": Logistic(), "weights": CoinBetting()},
        {"origin": np.diag(np.where(np.arange(66) < 60, 1.0, 0.0)), "base": 1},
    ],
    ids=str,
)
def test_learners_of_full_rank_are_diagonalised_late(options, tmp_path):
    """Against the list of black boxes; one by one, and through a file, to the bit."""
    pairs, y = comparisons(seed=12, steps=420, n=66)
    stack = MetricTracker(regularizer=Unregularized(), **options)
    boxes, single = listed(stack), clone(stack)
    stack.partial_fit(pairs, y)
    boxes.partial_fit(pairs, y)
    own = stack._ocelad.ensemble
    assert (own.meta[codes.COUNT, own.meta[codes.ORDER, : own.levels]] > 0).any()
    for one, other in zip(stack.level_metrics_, boxes.level_metrics_, strict=True):
        np.testing.assert_allclose(one.M, other.M, atol=1e-10 * max(1e-3, np.abs(other.M).max()))
    np.testing.assert_allclose(stack.transform(pairs[:5, 0]), boxes.transform(pairs[:5, 0]), atol=1e-9)
    for t in range(420):
        single.partial_fit(pairs[t : t + 1], y[t : t + 1])
        if t % 60 == 50:
            ocelad.save(single, tmp_path / "file")
            single = ocelad.load(tmp_path / "file")
    assert np.array_equal(single.get_mahalanobis_matrix(), stack.get_mahalanobis_matrix())


@settings(deadline=None, max_examples=60)
@example(seed=25353, r=1, few=20, size=0.0, zeros=1.0)  # twenty terms in one direction
@given(
    seed=st.integers(0, 10**6), r=st.integers(1, 20), few=st.integers(1, 20), size=st.floats(-6, 3),
    zeros=st.floats(0, 1),
)  # fmt: skip
def test_terms_keep_the_matrix_positive_semi_definite(seed, r, few, size, zeros):
    """Or, if they have lost too much precision for that, there is no room for more, and only this is missing."""
    rng = np.random.default_rng(seed)
    s = rng.random(r) ** 4 * (rng.random(r) > zeros)
    L, a, work, m = np.zeros((24, r)), np.zeros(24), np.zeros((30, r + 24)), 0
    M, directions = np.diag(s), rng.normal(size=(few, r))
    while m < 20:
        z, weight = directions[m % few].copy(), 10.0**size * rng.normal()
        indefinite = M + weight * np.outer(z, z)
        w, V = np.linalg.eigh(indefinite)
        M = (V * np.maximum(w, 0.0)) @ V.T
        m = add(s, L, a, m, r, r, z, weight, work)
        assert m + 2 > len(L) or m <= 21
        largest = max(1.0, float(np.abs(s).max()), 10.0**size * r * 20)
        wanted = indefinite if m + 2 > len(L) else M
        np.testing.assert_allclose(np.diag(s) + (L[:m].T * a[:m]) @ L[:m], wanted, atol=1e-10 * largest)


def test_terms_that_are_nearly_parallel_are_diagonalised_at_once():
    """A few comparisons again and again, with labels that change: against the list of black boxes."""
    rng = np.random.default_rng(14)
    few = np.concatenate([rng.normal(size=(3, 2, 66)), rng.normal(size=(70, 2, 66))])
    order = np.concatenate([3 + np.arange(70), rng.integers(0, 3, size=400)])
    y = rng.choice([-1, 1], size=len(order))
    stack = MetricTracker(regularizer=Unregularized(), step=0.5)
    boxes, single = listed(stack), clone(stack)
    stack.partial_fit(few[order], y)
    boxes.partial_fit(few[order], y)
    for one, other in zip(stack.level_metrics_, boxes.level_metrics_, strict=True):
        np.testing.assert_allclose(one.M, other.M, atol=1e-10 * max(1e-3, np.abs(other.M).max()))
    for k, label in zip(order, y, strict=True):
        single.partial_fit(few[k : k + 1], [label])
    assert np.array_equal(single.get_mahalanobis_matrix(), stack.get_mahalanobis_matrix())


def test_a_block_that_was_interrupted_is_known_to_have_been_learned(monkeypatch):
    """Ctrl-C is heard as the kernel returns."""
    pairs, y = comparisons(seed=11, steps=300, n=6)
    tracker, whole = MetricTracker().partial_fit(pairs[:5], y[:5]), MetricTracker().partial_fit(pairs, y)

    def stop(*given):
        if run(*given):
            raise KeyboardInterrupt
        return 0  # nothing was given: it has only been compiled

    run = block.run
    monkeypatch.setattr(block, "run", stop)
    with pytest.raises(KeyboardInterrupt):
        tracker.partial_fit(pairs[5:], y[5:])
    monkeypatch.setattr(block, "run", run)
    t = tracker._ocelad.t
    assert 5 < t < 300
    assert len(tracker.levels_) == tracker._ocelad.ensemble.levels
    tracker.partial_fit(pairs[t:], y[t:])
    assert np.array_equal(tracker.get_mahalanobis_matrix(), whole.get_mahalanobis_matrix())


def test_copies_have_arrays_of_their_own():
    """Kernels find arrays by address: a copy must not write into the original."""
    pairs, y = comparisons(seed=9, steps=80, n=6)
    tracker = MetricTracker().partial_fit(pairs[:40], y[:40])
    before = tracker.get_mahalanobis_matrix()
    copies = [copy.deepcopy(tracker), pickle.loads(pickle.dumps(tracker))]
    for other in copies:
        other.partial_fit(pairs[40:], y[40:])
        assert np.array_equal(tracker.get_mahalanobis_matrix(), before)
    alone = MetricTracker().partial_fit(pairs, y)
    for other in copies:
        assert np.array_equal(other.get_mahalanobis_matrix(), alone.get_mahalanobis_matrix())


@pytest.mark.parametrize("deferred", [False, True])
def test_loose_columns_are_mended(deferred, monkeypatch):
    monkeypatch.setattr("ocelad.metric.stack._DEFERRED", 1 if deferred else 10**9)
    pairs, y = comparisons(seed=10, steps=1024, n=10)
    tracker = MetricTracker().partial_fit(pairs[:1000], y[:1000])
    stack = tracker._ocelad.ensemble
    slot = stack.meta[codes.ORDER, stack.levels - 1]
    stack.E[slot] *= 1 + 1e-7
    tracker.partial_fit(pairs[1000:], y[1000:])
    Q = stack.columns(slot)
    np.testing.assert_allclose(Q.T @ Q, np.eye(Q.shape[1]), atol=1e-12)
