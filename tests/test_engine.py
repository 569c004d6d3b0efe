"""Engines: the compiled one against black boxes, comparison by comparison; judging changes nothing."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from forge import file_of
from ocelad import (
    CoinBetting,
    FixedShare,
    GroupedShare,
    Logistic,
    MetricTracker,
    NuclearNorm,
    OceladWeights,
    SaolWeights,
    SquaredFrobenius,
    SquaredHinge,
    Step,
    SupervisedMetricTracker,
    Unregularized,
)
from ocelad.engine import BoxEngine, Trace, box_engine, rice_engine
from ocelad.engine.kernels import layout, scratch
from ocelad.engine.stack_engine import StackEngine
from ocelad.tracker.algorithm_2 import recipe_of
from streams import comparisons
from trackers import either, rice


def engines(n, **options):
    """The compiled engine and its black boxes."""
    tracker = rice(**options)
    recipe = recipe_of(tracker, n)
    stack = rice_engine(recipe, tracker.loss, tracker.weights, tracker.memory)
    boxes = box_engine(recipe.black_boxes(), tracker.loss, tracker.weights, recipe, tracker.memory)
    assert (type(stack), type(boxes)) == (StackEngine, BoxEngine)
    return stack, boxes


def stream(seed, steps, n, sparse=False):
    """Differences and labels about one unit long, and weights; a few are zero, or come again."""
    rng = np.random.default_rng(seed)
    pairs, y = comparisons(seed=seed, steps=steps, n=n)
    u = pairs[:, 0] - pairs[:, 1]
    if sparse:
        u = u * (rng.random(size=u.shape) < 0.2) * 2.0
    u[10], u[20] = 0.0, u[19]
    return u, y.astype(float), rng.choice([0.25, 1.0, 3.0], size=steps)


def close(one, other, rtol=1e-10):
    size = np.nanmax(np.abs(other), initial=0.0)
    np.testing.assert_allclose(one, other, rtol=rtol, atol=rtol * (1.0 + size))


def agree(stack, boxes):
    assert stack.t == boxes.t
    for column in ("kind", "length"):
        np.testing.assert_array_equal(stack.experts()[column], boxes.experts()[column])
    for column in ("weight", "loss"):
        close(stack.experts()[column], boxes.experts()[column], 1e-9)
    for one, other in zip(stack.metrics(), boxes.metrics(), strict=True):
        np.testing.assert_allclose(one.M, other.M, atol=1e-10 * max(1e-3, np.abs(other.M).max()))
        assert one.mu == pytest.approx(other.mu, rel=1e-10)
    if stack.pooled:
        close(stack.stack.calibration[: layout.EUCLID], boxes.scaling, 1e-9)


def cut(u, part, sparse):
    return csr_array(u[part]) if sparse else u[part]


def learn(engine, kind, seed, steps, n, sparse, cuts, trace=None):
    """Pairs, weighted pairs, orders, or both by turns, or weighted pairs and implied ones, in batches."""
    u, y, weight = stream(seed, steps, n, sparse)
    orders = np.hstack([u, u[::-1] * 1.5])
    for number, part in enumerate(np.split(np.arange(steps), cuts)):
        rows = None if trace is None else trace[number]
        if kind == "orders" or (kind == "mixed" and number % 2):
            engine.run(cut(orders, part, sparse), None, weight[part] if number % 3 else None, rows)
        else:
            weights, implied = None if kind == "pairs" else weight[part], kind == "implied" and number % 2 > 0
            engine.run(cut(u, part, sparse), y[part], weights, rows, implied)


POOL = {"weights": GroupedShare(), "memory": 64}
KINDS = ["pairs", "weighted", "orders", "mixed", "implied"]
SETTINGS = {
    "defaults": {},
    "paper": {"weights": OceladWeights(), "base": 1},
    "coin": {"weights": CoinBetting(), "loss": Logistic()},
    "squared": {"loss": SquaredHinge(), "step": 2.0},
    "capped": {"step": Step(64.0, capped=True)},
    "unregularized": {"regularizer": Unregularized(), "origin": 0.3},
    "max_rank": {"step": Step(max_rank=3), "regularizer": NuclearNorm(0.001)},
    "pool": POOL,
    "pool-logistic": POOL | {"loss": Logistic(), "base": 2, "step": Step(max_rank=3)},
}


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("setting", SETTINGS)
def test_the_stack_is_the_black_boxes(setting, kind, sparse):
    stack, boxes = engines(9, **SETTINGS[setting])
    for engine in (stack, boxes):
        learn(engine, kind, 1, 160, 9, sparse, [1, 2, 30, 31, 100])
    agree(stack, boxes)
    close(stack.discarded, boxes.discarded, 1e-9)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("options", [{}, POOL], ids=["rice", "pool"])
def test_a_dictionary_is_the_black_boxes(options, kind, sparse):
    stack, boxes = engines(104, **options)
    assert stack.dictionary
    for engine in (stack, boxes):
        learn(engine, kind, 2, 70, 104, sparse, [1, 2, 30, 31])
    agree(stack, boxes)


@pytest.mark.parametrize("n", [9, 104], ids=["columns", "dictionary"])
@pytest.mark.parametrize("kind", ["weighted", "orders"])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("options", [{}, POOL], ids=["rice", "pool"])
def test_a_batch_is_a_loop(options, kind, n, sparse):
    (batch, _), (loop, _) = engines(n, **options), engines(n, **options)
    u, y, weight = stream(3, 120, n, sparse)
    rows, labels = (np.hstack([u, u[::-1]]), None) if kind == "orders" else (u, y)
    batch.run(cut(rows, slice(None), sparse), labels, weight)
    for k in range(120):
        part = slice(k, k + 1)
        loop.run(cut(rows, part, sparse), None if labels is None else labels[part], weight[part])
    for name, array in batch.snapshot().items():
        assert array.tobytes() == loop.snapshot()[name].tobytes(), name


@either
@pytest.mark.parametrize("n", [6, 104])
def test_weights_and_orders_stay_compiled(n, new):
    pairs, y = comparisons(seed=4, steps=30, n=n)
    tracker = new().partial_fit(pairs, y)
    engine = tracker._engine
    tracker.partial_fit(pairs, y, sample_weight=np.linspace(0.0, 2.0, 30))
    tracker.partial_fit_triplets(np.concatenate([pairs, pairs[::-1, :1]], axis=1))
    assert tracker._engine is engine
    assert type(engine) is StackEngine


# What is written down


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weights", [FixedShare(), OceladWeights(), CoinBetting(), GroupedShare()], ids=repr)
@pytest.mark.parametrize("n", [5, 104])
def test_both_write_down_the_same(weights, kind, n):
    steps, cuts = (130, [1, 2, 64, 65]) if n == 5 else (50, [1, 2, 30])
    sizes = np.diff([0, *cuts, steps])
    traces = []
    for engine in engines(n, weights=weights, memory=64):
        traces.append([Trace(int(size)) for size in sizes])
        learn(engine, kind, 5, steps, n, False, cuts, traces[-1])
    for stack, boxes in zip(*traces, strict=True):
        experts = boxes.experts  # black boxes grow as they go, the stack knows beforehand
        assert experts <= stack.experts
        np.testing.assert_array_equal(stack.lengths[:experts], boxes.lengths)
        assert list(stack.kinds[:experts]) == list(boxes.kinds)
        for one, other in ((stack.weights, boxes.weights), (stack.losses, boxes.losses)):
            assert np.isnan(one[:, experts:]).all()
            close(one[:, :experts], other)
        for name in ("squared_distance", "threshold", "loss", "probability"):
            close(getattr(stack, name), getattr(boxes, name))
        assert (stack.similar == boxes.similar).all()
        assert not np.isnan(stack.loss).any()


@pytest.mark.parametrize("weights", [FixedShare(), CoinBetting(), SaolWeights(), GroupedShare()], ids=repr)
def test_writing_down_changes_nothing(weights):
    (plain, _), (traced, _) = (engines(5, weights=weights, memory=64) for _ in range(2))
    u, y, weight = stream(6, 80, 5)
    trace = Trace(80)
    plain.run(u, y, weight)
    traced.run(u, y, weight, trace)
    for name, array in plain.snapshot().items():
        assert array.tobytes() == traced.snapshot()[name].tobytes(), name
    last = trace.after(-1)
    for column in ("kind", "length", "weight", "loss"):
        np.testing.assert_array_equal(last[column], plain.experts()[column])


# Judging


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize(
    "weights", [FixedShare(), OceladWeights(), CoinBetting(), SaolWeights(), GroupedShare()], ids=repr
)
@pytest.mark.parametrize("n", [6, 104])
def test_judging_is_the_mixture_and_changes_nothing(n, weights, sparse):
    stack, boxes = engines(n, weights=weights, memory=32, origin=0.2)
    u, y, _ = stream(7, 60, n, sparse)
    rows = cut(u, slice(None), sparse)
    for engine in (stack, boxes):
        engine.run(rows, y)
        before = pickle.dumps(engine)
        buffers = (stack.buffers.floats.tobytes(), stack.buffers.integers.tobytes())
        judged = engine.judge(rows)
        assert pickle.dumps(engine) == before
        assert (stack.buffers.floats.tobytes(), stack.buffers.integers.tobytes()) == buffers
        form, mu = engine.mixture()
        squares = form.squares(rows)
        np.testing.assert_allclose(judged.squared_distance @ judged.weight, squares, atol=1e-12 * squares.max())
        assert judged.threshold @ judged.weight == pytest.approx(mu, rel=1e-12)
        for metric, column, threshold in zip(
            engine.metrics(), judged.squared_distance.T, judged.threshold, strict=True
        ):
            own = np.einsum("ti,ij,tj->t", u, metric.M, u)
            np.testing.assert_allclose(column, own, atol=1e-12 * max(own.max(), 1.0))
            assert threshold == metric.mu


@pytest.mark.parametrize("count", [1, 32, 33])
@either
def test_few_pairs_are_measured_as_many_are(count, new):
    pairs, y = comparisons(seed=8, steps=200, n=7)
    tracker = new().partial_fit(pairs, y)
    whole = tracker.get_metric().distance(pairs[:, 0] - pairs[:, 1])
    np.testing.assert_allclose(tracker.pair_distance(pairs[:count]), whole[:count], rtol=1e-9, atol=1e-12)


# Where things are


def places(buffer, arrays):
    """The stretches of a buffer that arrays take, in order."""
    base = buffer.__array_interface__["data"][0]
    found = []
    for array in arrays:
        assert array.flags.c_contiguous
        if array.size:
            start = (array.__array_interface__["data"][0] - base) // buffer.itemsize
            assert np.shares_memory(array, buffer)
            found.append((start, start + array.size))
    return sorted(found)


def fill(buffer, arrays):
    """Arrays lie side by side and fill the buffer from its beginning to its end."""
    at = 0
    for start, stop in places(buffer, arrays):
        assert start == at
        at = stop
    assert at == len(buffer)


@settings(deadline=None, max_examples=200)
@given(
    n=st.integers(1, 300), slots=st.integers(2, 40), room=st.integers(1, 80).map(lambda k: 4 * k),
    dictionary=st.booleans(), replayed=st.integers(0, 14), memory=st.integers(1, 300), euclid=st.integers(0, 1),
    maps=st.tuples(st.integers(0, 3), st.integers(1, 200)),
)  # fmt: skip
def test_nothing_overlaps_and_nothing_is_left_over(n, slots, room, dictionary, replayed, memory, euclid, maps):
    height = room + layout.RECENT_CAPACITY if dictionary else 0
    number, mapped = maps if replayed and maps[0] else (0, 0)
    header = [n, slots, room, height, replayed * (1 + number), memory if replayed else 0]
    header += [header[-2] + euclid, number, mapped, replayed if number else 0]
    floats, integers, singles = (np.zeros(size, kind) for size, kind in zip(
        layout.stack_sizes(*header), (float, np.int64, np.float32), strict=True
    ))  # fmt: skip
    integers[: layout.TIME] = header
    stack = layout.lay_out(floats, integers, singles)
    fill(floats, [array for array in stack if array.dtype == float])
    fill(integers, [array for array in stack if array.dtype == np.int64])
    fill(singles, [array for array in stack if array.dtype == np.float32])

    work, index, every, single = (np.zeros(size, kind) for size, kind in zip(
        scratch.sizes(*header), (float, np.int64, np.int64, np.float32), strict=True
    ))  # fmt: skip
    own = scratch.lay_out(work, index, every, single, stack.header)
    fill(work, [array for array in own if array.dtype == float])
    fill(index, [own.counts, own.nonzero, own.indices])
    fill(every, [own.arange])
    fill(single, [own.z, own.G])


@either
@pytest.mark.parametrize("left", [np.nan, np.inf, -1e30])
@pytest.mark.parametrize("n", [5, 104])
def test_what_others_left_in_scratch_does_not_matter(n, left, new):
    pairs, y = comparisons(seed=11, steps=40, n=n)
    clean, other = new().partial_fit(pairs, y), new()
    for t in range(40):
        for buffer in clean._engine.buffers.scratch():
            if buffer.dtype != np.int64:
                buffer[:] = left
        other.partial_fit(pairs[t : t + 1], y[t : t + 1]).predict(pairs[:3])
    for name, array in clean._engine.snapshot().items():
        assert array.tobytes() == other._engine.snapshot()[name].tobytes(), name


# Copies


def labelled(tracker, part):
    points = comparisons(seed=9, steps=80, n=6)[0][:, 0]
    return tracker.partial_fit(points[part], (points[part, 0] > 0).astype(int))


def paired(n):
    pairs, y = comparisons(seed=9, steps=80, n=n)
    return lambda tracker, part: tracker.partial_fit(pairs[part], y[part])


TRACKERS = {
    "pool": (MetricTracker(), paired(6)),
    "short-pool": (MetricTracker(memory=32), paired(6)),
    "wide-pool": (MetricTracker(), paired(104)),
    "dense": (rice(), paired(6)),
    "general": (MetricTracker(weights=CoinBetting()), paired(6)),
    "dictionary": (rice(), paired(104)),
    "boxes": (rice(regularizer=SquaredFrobenius(0.05), step=0.5), paired(6)),
    "supervised": (SupervisedMetricTracker(random_state=0), labelled),
}
COPIES = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda tracker: pickle.loads(pickle.dumps(tracker)),
}


@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize("name", TRACKERS)
def test_a_copy_goes_its_own_way(name, how, path):
    options, learn = TRACKERS[name]
    tracker, whole = learn(copy.deepcopy(options), slice(0, 40)), copy.deepcopy(options)
    before = file_of(tracker, path)
    other = COPIES[how](tracker)
    assert file_of(other, path) == before
    learn(other, slice(40, 80))
    assert file_of(tracker, path) == before  # the copy has not touched it
    after = file_of(other, path)
    learn(tracker, slice(40, 60))
    assert file_of(other, path) == after  # nor has it touched the copy
    learn(tracker, slice(60, 80))
    for part in (slice(0, 40), slice(40, 80)):
        learn(whole, part)
    assert file_of(whole, path) == after
    if name != "supervised":  # whose choice of pairs depends on how points are cut into batches
        assert file_of(tracker, path) == after


def test_a_copy_is_not_watched():
    pairs, y = comparisons(seed=9, steps=30, n=4)
    tracker = MetricTracker().partial_fit(pairs, y)
    tracker._history = object()
    assert copy.copy(tracker)._history is None
    assert copy.copy(tracker)._lock is not tracker._lock


@either
@pytest.mark.parametrize("n", [30, 400])
def test_a_pickle_has_what_was_learned_and_no_more(n, new):
    """Neither scratch nor room to grow, nor the matrix that was asked for."""
    pairs, y = comparisons(seed=10, steps=60, n=n)
    tracker = new().partial_fit(pairs, y)
    tracker.get_mahalanobis_matrix()
    tracker.predict(pairs)
    learned = sum(array.nbytes for array in tracker._engine.snapshot().values())
    assert len(pickle.dumps(tracker)) < learned + 8192
    again = pickle.loads(pickle.dumps(tracker))
    assert again._metric is None
    assert again.get_mahalanobis_matrix().tobytes() == tracker.get_mahalanobis_matrix().tobytes()
