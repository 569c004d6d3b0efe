"""The compiled path: the stack against the list of black boxes."""

import copy
import io
import pickle
import subprocess
import sys
import time

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone

import ocelad
from called import called
from literal import Literal
from ocelad import (
    AdaNormalHedge,
    CoinBetting,
    FixedShare,
    Logistic,
    MetricTracker,
    NuclearNorm,
    OceladWeights,
    Rice,
    SaolWeights,
    SquaredHinge,
    Unregularized,
)
from ocelad.engine.kernels import block, codes, combine
from ocelad.engine.stack import StackedRice
from ocelad.tracker.notice import Announced
from ocelad.weights import seed_word, uniform
from streams import comparisons


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
        monkeypatch.setattr(f"ocelad.engine.stack.{name}", 1 if deferred else 10**9)
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


def test_works_where_nothing_can_be_kept_on_disk(tmp_path):
    """As in a read-only container: compiled anew, and just as right."""
    code = (
        "import numba, numpy as np; real = numba.njit\n"
        "def refuse(*args, cache=False, **options):\n"
        "    if cache: raise RuntimeError('cannot cache function: no locator available')\n"
        "    return real(*args, **options)\n"
        "numba.njit = refuse\n"
        "from ocelad.evaluate import knn_error\n"
        "print(knn_error(np.array([[1.0], [4.0], [5.0]]), np.array([1, 0, 1]), 1))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert float(done.stdout) == 1.0


def test_a_capped_rank_keeps_the_most_important_directions():
    """Against the list of black boxes, and against the literal reference."""
    pairs, y = comparisons(seed=7, steps=200, n=20)
    for deferred in (1, 10**9):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("ocelad.engine.stack._DEFERRED", deferred)
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
    monkeypatch.setattr("ocelad.engine.stack._DEFERRED", 1 if deferred else 10**9)
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
    monkeypatch.setattr("ocelad.engine.stack._DEFERRED", 1)
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
    monkeypatch.setattr("ocelad.engine.stack._DEFERRED", 1 if deferred else 10**9)
    pairs, y = comparisons(seed=10, steps=1024, n=10)
    tracker = MetricTracker().partial_fit(pairs[:1000], y[:1000])
    stack = tracker._ocelad.ensemble
    slot = stack.meta[codes.ORDER, stack.levels - 1]
    stack.E[slot] *= 1 + 1e-7
    tracker.partial_fit(pairs[1000:], y[1000:])
    Q = stack.columns(slot)
    np.testing.assert_allclose(Q.T @ Q, np.eye(Q.shape[1]), atol=1e-12)


@pytest.mark.parametrize("seed", [0, 1, 2**63, 10**30])
def test_draws_are_those_of_the_rule(seed):
    word = seed_word(seed)
    signed = word - 2**64 if word >= 2**63 else word
    drawn = called(combine.uniform)
    assert [drawn(signed, t) for t in range(200)] == [uniform(seed, t) for t in range(200)]
