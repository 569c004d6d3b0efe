"""The compiled engine: the stack against the list of black boxes."""

import copy
import io
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone

import ocelad
from literal import Literal
from ocelad import (
    AdaNormalHedge,
    CoinBetting,
    FixedShare,
    GroupedShare,
    Intervals,
    Logistic,
    MetricTracker,
    NuclearNorm,
    OceladWeights,
    Rice,
    SaolWeights,
    SquaredHinge,
    Step,
    Unregularized,
    compiled,
)
from ocelad.engine import BoxEngine, stack_engine
from ocelad.engine.kernels import layout, run
from ocelad.engine.mixture import columns
from ocelad.engine.stack_engine import StackEngine
from streams import comparisons
from trackers import either, rice


def listed(tracker):
    """The same tracker as a list of black boxes."""
    of = Intervals.of(tracker.base)
    return clone(tracker).set_params(ensemble=lambda spawn: Rice(spawn, of.base, of.start))


@pytest.fixture(name="dictionary", params=[False, True], ids=["columns", "dictionary"])
def fixture_dictionary(request, monkeypatch):
    for name in ("DICTIONARY", "DICTIONARY_FULL"):
        monkeypatch.setattr(stack_engine, name, 1 if request.param else 10**9)
    return request.param


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"base": 1, "weights": OceladWeights()},
        {"base": Intervals(3, "continue"), "weights": OceladWeights("mixture", reset=False)},
        {"base": Intervals(8, "continue"), "weights": FixedShare(0.5, 0.0)},
        {"weights": CoinBetting(), "loss": Logistic()},
        {"weights": AdaNormalHedge(), "regularizer": Unregularized()},
        {"weights": SaolWeights(seed=3), "step": Step(8.0, threshold=1.0)},
        {"loss": SquaredHinge(), "step": 2.0},
        {"loss": Logistic(), "regularizer": NuclearNorm(0.1)},
        {"step": Step(64.0, capped=True)},
        {"origin": 1.0, "regularizer": NuclearNorm(0.05)},
        {"origin": 0.3, "regularizer": Unregularized(), "base": Intervals(8, "continue")},
        {"origin": np.diag([2.0, 1.0, 0.5, 0.0, 0.0, 1.0, 1.0])},
        {"scale": None, "base": 2},
        {"weights": GroupedShare(), "memory": 100},
        {"weights": GroupedShare(0.1, 0.0), "loss": Logistic(), "base": 2, "scale": None},
    ],
    ids=repr,
)
def test_the_stack_is_the_list(options, dictionary):
    pairs, y = comparisons(seed=4, steps=260, n=7)
    pairs[50, 1] = pairs[50, 0]  # a zero difference
    pairs[60] = pairs[59]
    stack = rice(**options)
    boxes = listed(stack)
    for part in np.array_split(np.arange(260), [1, 2, 9, 100]):
        stack.partial_fit(pairs[part], y[part])
        boxes.partial_fit(pairs[part], y[part])
        assert stack.experts_["length"].tolist() == boxes.experts_["length"].tolist()
        np.testing.assert_allclose(stack.experts_["weight"], boxes.experts_["weight"], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(stack.experts_["loss"], boxes.experts_["loss"], rtol=1e-9, atol=1e-9)
        for one, other in zip(stack.expert_metrics_, boxes.expert_metrics_, strict=True):
            np.testing.assert_allclose(one.M, other.M, atol=1e-10 * max(1e-3, np.abs(other.M).max()))
            assert one.mu == pytest.approx(other.mu, rel=1e-10)
    assert type(stack._engine) is StackEngine
    assert stack._engine.dictionary == dictionary
    assert type(boxes._engine) is BoxEngine


def test_rows_stay_orthonormal_and_room_grows_as_needed():
    pairs, y = comparisons(seed=5, steps=20_000, n=12)
    tracker = rice(regularizer=NuclearNorm(0.01))
    tracker.partial_fit(pairs[:3], y[:3])
    engine = tracker._engine
    small = engine.stack.columns.nbytes
    tracker.partial_fit(pairs[3:], y[3:])
    stack, levels = engine.stack, len(tracker.experts_)
    assert small < stack.columns.nbytes <= (levels + 5) * 12 * 12 * 8
    for slot in stack.order[:levels]:
        Q = columns(engine.stack, slot)
        np.testing.assert_allclose(Q.T @ Q, np.eye(Q.shape[1]), atol=1e-12)
        assert (stack.eigenvalues[slot, : Q.shape[1]] > 0).all()


@either
@pytest.mark.parametrize("n", [5, 100])
def test_a_pickle_that_cannot_be_is_refused(n, new):
    """Kernels do not look where they write: what comes from elsewhere is checked."""
    pairs, y = comparisons(seed=5, steps=20, n=n)
    rebuild, (*parts, learned) = new().partial_fit(pairs, y)._engine.__reduce__()
    assert rebuild(*parts, learned).t == 20
    assert ("dictionary" in learned) == (n == 100)
    for name in learned:
        with pytest.raises(ValueError, match=r"must be (int|float)(32|64) of shape|count has entries too small"):
            rebuild(*parts, learned | {name: learned[name][:-1]})
        with pytest.raises(KeyError, match=name):
            rebuild(*parts, {other: array for other, array in learned.items() if other != name})
    for column in ("rank", "sigma", "mu"):
        levels = learned["levels"].copy()
        levels[-1, ("loss", "mu", "discarded", "rank", "sigma").index(column)] = -1.0
        with pytest.raises(ValueError, match=f"{column} must be finite and >="):
            rebuild(*parts, learned | {"levels": levels})


def test_low_levels_are_low_rank():
    """A learner that has seen few comparisons keeps few rows, and costs as little."""
    pairs, y = comparisons(seed=6, steps=300, n=60)
    engine = rice(base=1).partial_fit(pairs, y)._engine
    ranks = engine.stack.rank[engine.stack.order[: engine.levels]]
    assert all(rank <= 2 ** (level + 1) for level, rank in enumerate(ranks))


def test_a_long_first_use_is_announced_on_a_terminal(monkeypatch, tmp_path):
    """Once on a machine: afterwards the compiled code is on disk."""

    class Screen(io.StringIO):
        def __init__(self, terminal):
            super().__init__()
            self.isatty = lambda: terminal

    monkeypatch.setattr(compiled, "cache_folder", lambda _: tmp_path)
    for terminal, said in ((False, False), (True, True)):
        screen = Screen(terminal)
        monkeypatch.setattr("sys.stderr", screen)
        ready = compiled.announce(tmp_path, "columns")
        assert ("compiling" in screen.getvalue()) == said == bool(screen.getvalue())
    ready()
    monkeypatch.setattr("sys.stderr", Screen(True))
    compiled.announce(tmp_path, "columns")()
    assert sys.stderr.getvalue() == ""
    compiled.announce(tmp_path, "dictionary")
    assert "compiling" in sys.stderr.getvalue()


def test_works_where_nothing_can_be_kept_on_disk(tmp_path):
    """As in a read-only container: compiled anew, and just as right."""
    (tmp_path / "file").touch()
    code = (
        "import numpy as np; from pathlib import Path; from ocelad import compiled\n"
        "from ocelad.evaluate import knn, knn_error\n"
        "assert compiled.cache_folder(Path(knn.__file__).parent) is None\n"
        "print(knn_error(np.array([[1.0], [4.0], [5.0]]), np.array([1, 0, 1]), 1))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True, text=True, check=False, cwd=tmp_path,
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "file" / "folder")},
    )  # fmt: skip
    assert done.stdout == "1.0\n", done.stderr


def test_nothing_is_compiled_twice():
    """For read-only arrays, or strided ones, numba would make all of it again."""
    pairs, y = comparisons(seed=3, steps=40, n=5)
    frozen, strided, weight = y.astype(float), np.repeat(y, 2).astype(float)[::2], np.ones((40, 2))[:, 1]
    frozen.flags.writeable = False
    sides = [csr_array(pairs[:, side]) for side in (0, 1)]
    for side in sides:
        side.data.flags.writeable = False
    for weights in (FixedShare(), CoinBetting(), GroupedShare()):
        tracker = MetricTracker(weights=weights, scale=None)
        for given in (pairs, np.asfortranarray(pairs), pairs[::-1], sides):
            for labels in (y, frozen, strided):
                tracker.partial_fit(given, labels).partial_fit(given, labels, sample_weight=weight)
            tracker.predict(given)
        tracker.predict(pairs[:3])
        tracker.partial_fit_triplets(np.concatenate([pairs, pairs[:, :1] + 1.0], axis=1))
        ocelad.History(tracker, every=7)
        tracker.partial_fit(pairs, y)
    assert len(run.run.signatures) <= 2  # columns, and dictionaries


def test_a_capped_rank_keeps_the_most_important_directions(dictionary):
    """Against the list of black boxes, and against the literal reference."""
    pairs, y = comparisons(seed=7, steps=200, n=20)
    stack = rice(step=Step(max_rank=4), scale=None)
    boxes = listed(stack).partial_fit(pairs, y)
    stack.partial_fit(pairs, y)
    assert stack._engine.dictionary == dictionary
    literal = Literal(20, 8.0, 0.02, base=8, threshold_step=0.1, combiner="share", max_rank=4)
    for (x, z), label in zip(pairs, y, strict=True):
        literal.update(x - z, label)
    for one, other, key in zip(stack.expert_metrics_, boxes.expert_metrics_, literal.act(literal.t), strict=True):
        assert np.linalg.matrix_rank(one.M, tol=1e-9) <= 4
        np.testing.assert_allclose(one.M, other.M, atol=1e-10)
        np.testing.assert_allclose(one.M, literal.M[key], atol=1e-10)
    np.testing.assert_allclose(stack.discarded_, boxes.discarded_, atol=1e-9)
    assert stack.discarded_.max() > 0
    assert (rice(step=Step(max_rank=20)).partial_fit(pairs, y).discarded_ == 0).all()


@pytest.mark.usefixtures("dictionary")
def test_sparse_differences_are_learned_as_dense_ones():
    rng = np.random.default_rng(8)
    pairs, y = comparisons(seed=8, steps=700, n=30)
    pairs *= rng.random(size=pairs.shape) < 0.15
    pairs[40, 1] = pairs[40, 0]
    dense, rows = rice(), rice()
    for part in (slice(1), slice(1, 90), slice(90, 700)):
        dense.partial_fit(pairs[part], y[part])
        rows.partial_fit(tuple(csr_array(pairs[part, side]) for side in (0, 1)), y[part])
    for one, other in zip(dense.expert_metrics_, rows.expert_metrics_, strict=True):
        np.testing.assert_allclose(one.M, other.M, atol=1e-10 * np.abs(one.M).max())
    np.testing.assert_allclose(dense.pair_distance(pairs), rows.pair_distance(pairs), rtol=1e-9)


def test_dictionaries_with_surplus_columns_are_looked_after(monkeypatch):
    """A learner that has just shrunk has fewer columns than its dictionary: the others are still in use."""
    monkeypatch.setattr(stack_engine, "DICTIONARY", 1)
    rng, n, steps = np.random.default_rng(0), 40, 4096
    pairs = rng.normal(size=(steps, 2, 16)) @ rng.normal(size=(16, n)) + 0.01 * rng.normal(size=(steps, 2, n))
    size = np.square(pairs[:, 0, :5] - pairs[:, 1, :5]).sum(axis=1)
    y = np.where(size < np.median(size), 1, -1)
    tracker = rice(regularizer=NuclearNorm(0.01), base=32)
    for part in np.array_split(np.arange(steps), 4):
        tracker.partial_fit(pairs[part], y[part])
        engine = tracker._engine
        for slot in engine.stack.order[: engine.levels]:
            Q = columns(engine.stack, slot)
            np.testing.assert_allclose(Q.T @ Q, np.eye(Q.shape[1]), atol=1e-12)
        assert engine.dictionary


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
    tracker = rice(**options).partial_fit(rows, y)
    boxes = rice(**options, ensemble=lambda spawn: Rice(spawn, 8))
    boxes.partial_fit(points[:300, :, :250], y[:300])
    stack = rice(**options).partial_fit(tuple(side[:300] for side in rows), y[:300])
    M = boxes.get_mahalanobis_matrix()
    np.testing.assert_allclose(stack.get_mahalanobis_matrix()[:250, :250], M, atol=1e-10 * np.abs(M).max())
    engine = tracker._engine
    kept = engine.stack.touched[engine.stack.order[: engine.levels]]
    assert 0 < kept.max() < n / 2
    assert np.count_nonzero(np.abs(points).sum(axis=(0, 1))) > 0.9 * n


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"origin": 0.5, "base": 2},
        {"base": Intervals(8, "continue")},
        {"loss": Logistic(), "weights": CoinBetting()},
        {"origin": np.diag(np.where(np.arange(66) < 60, 1.0, 0.0)), "base": 1},
    ],
    ids=str,
)
def test_learners_of_full_rank(options, tmp_path):
    """Against the list of black boxes; one by one, and through a file, to the bit."""
    pairs, y = comparisons(seed=12, steps=420, n=66)
    stack = rice(regularizer=Unregularized(), **options)
    boxes, single = listed(stack), clone(stack)
    stack.partial_fit(pairs, y)
    boxes.partial_fit(pairs, y)
    assert stack._engine.stack.rank.max() >= 65
    for one, other in zip(stack.expert_metrics_, boxes.expert_metrics_, strict=True):
        np.testing.assert_allclose(one.M, other.M, atol=1e-10 * max(1e-3, np.abs(other.M).max()))
    np.testing.assert_allclose(stack.transform(pairs[:5, 0]), boxes.transform(pairs[:5, 0]), atol=1e-9)
    for t in range(420):
        single.partial_fit(pairs[t : t + 1], y[t : t + 1])
        if t % 60 == 50:
            ocelad.save(single, tmp_path / "file")
            single = ocelad.load(tmp_path / "file")
    assert np.array_equal(single.get_mahalanobis_matrix(), stack.get_mahalanobis_matrix())


def test_comparisons_that_come_again_and_again():
    """A few comparisons again and again, with labels that change: against the list of black boxes."""
    rng = np.random.default_rng(14)
    few = np.concatenate([rng.normal(size=(3, 2, 66)), rng.normal(size=(70, 2, 66))])
    order = np.concatenate([3 + np.arange(70), rng.integers(0, 3, size=400)])
    y = rng.choice([-1, 1], size=len(order))
    stack = rice(regularizer=Unregularized(), step=0.5)
    boxes, single = listed(stack), clone(stack)
    stack.partial_fit(few[order], y)
    boxes.partial_fit(few[order], y)
    for one, other in zip(stack.expert_metrics_, boxes.expert_metrics_, strict=True):
        np.testing.assert_allclose(one.M, other.M, atol=1e-10 * max(1e-3, np.abs(other.M).max()))
    for k, label in zip(order, y, strict=True):
        single.partial_fit(few[k : k + 1], [label])
    assert np.array_equal(single.get_mahalanobis_matrix(), stack.get_mahalanobis_matrix())


@either
def test_a_block_that_was_interrupted_is_known_to_have_been_learned(new, monkeypatch):
    """Ctrl-C is heard as the kernel returns."""
    pairs, y = comparisons(seed=11, steps=300, n=6)
    tracker, whole = new().partial_fit(pairs[:5], y[:5]), new().partial_fit(pairs, y)

    def stop(*given):
        if learn(*given):
            raise KeyboardInterrupt
        return 0

    learn = run.run
    monkeypatch.setattr(run, "run", stop)
    with pytest.raises(KeyboardInterrupt):
        tracker.partial_fit(pairs[5:], y[5:])
    monkeypatch.setattr(run, "run", learn)
    t = tracker._engine.t
    assert 5 < t < 300
    assert len(tracker.experts_) == tracker._engine.fixed + tracker._engine.levels
    tracker.partial_fit(pairs[t:], y[t:])
    assert np.array_equal(tracker.get_mahalanobis_matrix(), whole.get_mahalanobis_matrix())


@either
def test_copies_have_arrays_of_their_own(new):
    """Kernels find arrays by address: a copy must not write into the original."""
    pairs, y = comparisons(seed=9, steps=80, n=6)
    tracker = new().partial_fit(pairs[:40], y[:40])
    before = tracker.get_mahalanobis_matrix()
    copies = [copy.deepcopy(tracker), pickle.loads(pickle.dumps(tracker))]
    for other in copies:
        other.partial_fit(pairs[40:], y[40:])
        assert np.array_equal(tracker.get_mahalanobis_matrix(), before)
    alone = new().partial_fit(pairs, y)
    for other in copies:
        assert np.array_equal(other.get_mahalanobis_matrix(), alone.get_mahalanobis_matrix())


@pytest.mark.usefixtures("dictionary")
def test_loose_columns_are_mended():
    pairs, y = comparisons(seed=10, steps=1024, n=10)
    tracker = rice().partial_fit(pairs[:1000], y[:1000])
    engine = tracker._engine
    slot = engine.stack.order[engine.levels - 1]
    engine.stack.columns[slot] *= 1 + 1e-7
    tracker.partial_fit(pairs[1000:], y[1000:])
    Q = columns(engine.stack, slot)
    np.testing.assert_allclose(Q.T @ Q, np.eye(Q.shape[1]), atol=1e-12)


def test_buffers_that_are_full_where_columns_are_checked():
    """Both happen between two calls of the kernel: it used to be called for ever, and to learn nothing."""
    tracker = rice(regularizer=Unregularized(), base=2**20)._begin(20)
    engine, pairs = tracker._engine, np.stack([np.eye(20), np.zeros((20, 20))], axis=1)
    capacity = engine.buffers.columns
    engine.stack.header[layout.TIME] = run.CHECK_EVERY - capacity
    tracker.partial_fit(pairs[:capacity], -np.ones(capacity))
    assert engine.t == run.CHECK_EVERY
    assert engine.stack.rank.max() == engine.buffers.columns == capacity
    tracker.partial_fit(pairs[capacity : capacity + 1], [-1])
    assert engine.t == run.CHECK_EVERY + 1
    assert engine.stack.rank.max() == capacity + 1
