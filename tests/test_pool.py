"""A pool of experts: what is compiled, what is defined by black boxes, and what is written down plainly, agree."""

import copy
import pickle
from functools import cache

import numpy as np
import pytest
from scipy import sparse

from literal_pool import LiteralPool
from ocelad import MetricTracker, dumps, loads
from ocelad.data import DriftingClusters, Segment
from ocelad.engine import Trace, buffers
from ocelad.engine.box_engine import BoxEngine
from ocelad.engine.kernels import layout
from ocelad.engine.stack_engine import StackEngine
from ocelad.geometry import Hinge


class Plain(Hinge):
    """A hinge that has no kernels."""


ENGINES = {"compiled": (Hinge(), StackEngine), "boxes": (Plain(), BoxEngine)}


@pytest.fixture(name="double")
def fixture_double(monkeypatch):
    """Replayed experts in double precision, so that they can be told from others that are only similar."""
    monkeypatch.setattr(buffers, "SINGLE", np.float64)
    monkeypatch.setattr(buffers, "_SCRATCH", buffers._Scratch())


def stream(seed, steps, n, similar=0.5):
    """Pairs, labels, weights and triplets: the first feature decides, half-way the last."""
    rng = np.random.default_rng(seed)
    pairs = rng.normal(size=(steps, 2, n)) * rng.gamma(5.0, size=(steps, 1, 1))
    u = np.abs(pairs[:, 0] - pairs[:, 1])
    matter = np.where(np.arange(steps) < steps // 2, u[:, 0], u[:, -1])
    wrong = rng.random(steps) < 0.05
    y = np.where((matter < np.quantile(matter, similar)) ^ wrong, 1, -1)
    return pairs, y, rng.uniform(0.2, 3.0, size=steps), 5.0 * rng.normal(size=(steps // 7, 3, n))


def learn_in_turns(tracker, pairs, y, weight, triplets):
    """Seven pairs, then a triplet."""
    for k in range(0, len(y), 7):
        tracker.partial_fit(pairs[k : k + 7], y[k : k + 7], None if weight is None else weight[k : k + 7])
        tracker.partial_fit_triplets(triplets[k // 7 : k // 7 + 1])
    return tracker


@cache
def literal_run(seed, steps, n, memory, weighted):
    """The stream of a seed, and the literal pool after it."""
    pairs, y, weight, triplets = stream(seed, steps, n)
    weight = weight if weighted else None
    return pairs, y, weight, triplets, literally(memory, pairs, y, weight, triplets)


def literally(memory, pairs, y, weight, triplets):
    literal = LiteralPool(pairs.shape[2], memory)
    for k, (x, z) in enumerate(pairs):
        literal.pair(x - z, y[k], 1.0 if weight is None else weight[k])
        if (k % 7 == 6 or k == len(y) - 1) and k // 7 < len(triplets):
            a, b, c = triplets[k // 7]
            literal.triplet(a - b, a - c)
    return literal


def assert_same(tracker, literal, pairs, tolerance):
    np.testing.assert_allclose(tracker.experts_["weight"], np.concatenate(literal.w), rtol=0, atol=tolerance)
    M, mu = literal.mixture()
    assert tracker.mu_ == pytest.approx(mu, rel=tolerance, abs=tolerance)
    assert tracker.scale_ == pytest.approx(literal.unit.value, rel=1e-12)
    N = tracker.get_mahalanobis_matrix() * literal.unit.value**2
    np.testing.assert_allclose(N, M, rtol=0, atol=tolerance * np.abs(M).max())
    for metric, (M, mu, _) in zip(tracker.expert_metrics_, literal.experts(), strict=True):
        np.testing.assert_allclose(
            metric.M * literal.unit.value**2, M, rtol=0, atol=tolerance * (1 + np.abs(M).max())
        )
        assert metric.mu == pytest.approx(mu, rel=tolerance, abs=tolerance)
    expected = np.array([literal.predict((x - z) / literal.unit.value) for x, z in pairs])
    np.testing.assert_allclose(tracker.predict_proba(pairs)[:, 1], expected[:, 0], rtol=0, atol=tolerance)
    np.testing.assert_allclose(tracker.mixture_proba(pairs)[:, 1], expected[:, 1], rtol=0, atol=tolerance)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("n", "memory", "weighted"), [(3, 32, True), (5, 64, False), (5, 64, True), (8, 37, True), (8, 64, False)]
)
@pytest.mark.usefixtures("double")
def test_the_engines_do_what_is_written_down(n, memory, weighted, engine):
    pairs, y, weight, triplets, literal = literal_run(n, 350, n, memory, weighted)
    assert any(replay.restarts for replay in literal.replays)  # else the jump has not been seen
    loss, kind = ENGINES[engine]
    tracker = learn_in_turns(MetricTracker(loss=loss, memory=memory), pairs, y, weight, triplets)
    assert type(tracker._engine) is kind
    assert_same(tracker, literal, pairs[:10], 1e-9)


def learn_implied(tracker, pairs, y, weight=None):
    """Each comparison is followed by two that are implied."""
    for k in range(len(y)):
        learn, part = tracker.partial_fit_implied if k % 3 else tracker.partial_fit, slice(k, k + 1)
        learn(pairs[part], y[part], None if weight is None else weight[part])
    return tracker


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.usefixtures("double")
def test_the_engines_learn_implied_pairs_as_is_written_down(engine, weighted):
    pairs, y, weight, _ = stream(20, 200, 5)
    weight = weight if weighted else np.ones(200)
    literal = LiteralPool(5, 64)
    for k, (x, z) in enumerate(pairs):
        literal.pair(x - z, y[k], weight[k], implied=k % 3 > 0)
    tracker = MetricTracker(loss=ENGINES[engine][0], memory=64)
    assert_same(learn_implied(tracker, pairs, y, weight if weighted else None), literal, pairs[:10], 1e-9)


def scaling_of_mixture(tracker):
    engine = tracker._engine
    return (engine.scaling if isinstance(engine, BoxEngine) else engine.stack.calibration[: layout.EUCLID]).copy()


@pytest.mark.parametrize("engine", ENGINES)
def test_implied_pairs_teach_everything_but_how_far_to_believe_the_mixture(engine):
    pairs, y, _, _ = stream(20, 90, 4)
    new = MetricTracker(loss=ENGINES[engine][0], memory=32).partial_fit(pairs[:40], y[:40])
    asked, implied = copy.deepcopy(new), copy.deepcopy(new)
    asked.partial_fit(pairs[40:], y[40:])
    implied.partial_fit_implied(pairs[40:], y[40:])
    np.testing.assert_array_equal(implied.experts_, asked.experts_)
    np.testing.assert_array_equal(implied.get_mahalanobis_matrix(), asked.get_mahalanobis_matrix())
    assert (implied.mu_, implied.scale_) == (asked.mu_, asked.scale_)
    np.testing.assert_array_equal(scaling_of_mixture(implied), scaling_of_mixture(new))
    assert (scaling_of_mixture(asked) != scaling_of_mixture(new)).all(axis=1).all()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_batch_of_implied_pairs_is_a_loop(engine):
    pairs, y, weight, _ = stream(21, 60, 4)
    weight[::4] = 0.0  # these are none
    loop, batch = (MetricTracker(loss=ENGINES[engine][0], memory=32) for _ in range(2))
    loop.partial_fit(pairs[:5], y[:5])
    batch.partial_fit(pairs[:5], y[:5])
    for k in range(5, 60):
        loop.partial_fit_implied(pairs[k : k + 1], y[k : k + 1], weight[k : k + 1])
    batch.partial_fit_implied(pairs[5:], y[5:], weight[5:])
    again = pickle.loads(pickle.dumps(batch))
    for each in (batch, loop, again):
        learn_implied(each, pairs, y)
    for each in (loop, again):
        np.testing.assert_array_equal(each.experts_, batch.experts_)
        np.testing.assert_array_equal(each.mixture_proba(pairs), batch.mixture_proba(pairs))
        np.testing.assert_array_equal(each.predict_proba(pairs), batch.predict_proba(pairs))


def test_of_rice_alone_there_is_nothing_to_believe():
    pairs, y, weight, _ = stream(22, 60, 4)
    asked, implied = MetricTracker.rice(), MetricTracker.rice()
    asked.partial_fit(pairs, y, weight)
    implied.partial_fit_implied(pairs, y, weight)
    assert dumps(asked) == dumps(implied)


@pytest.mark.parametrize("engine", ENGINES)
def test_single_precision_is_close_to_double(engine):
    pairs, y, weight, triplets, literal = literal_run(1, 120, 5, 64, True)
    tracker = learn_in_turns(MetricTracker(loss=ENGINES[engine][0], memory=64), pairs, y, weight, triplets)
    assert_same(tracker, literal, pairs[:10], 1e-4)


@pytest.mark.usefixtures("double")
def test_the_longest_windows_learn_sparingly():
    """Every second comparison from 1024 on."""
    pairs, y, _, _ = stream(2, 1100, 3)
    tracker = MetricTracker(memory=1024).partial_fit(pairs, y)
    assert_same(tracker, literally(1024, pairs, y, None, ()), pairs[:10], 1e-8)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_trace_has_what_was_predicted_and_what_it_cost(engine):
    pairs, y, weight, _ = stream(3, 60, 4)
    loss, _ = ENGINES[engine]
    tracker, literal = MetricTracker(loss=loss, memory=32), LiteralPool(4, 32)
    tracker.partial_fit(pairs[:1], y[:1], weight[:1])
    literal.pair(pairs[0, 0] - pairs[0, 1], y[0], weight[0])
    for k in range(1, 60):
        u = pairs[k, 0] - pairs[k, 1]
        similar, probability = tracker.predict(pairs[k : k + 1]), tracker.mixture_proba(pairs[k : k + 1])
        trace = Trace(1)
        tracker._learn(u[None], y[k : k + 1].astype(float), weight[k : k + 1], trace)
        assert trace.loss[0] == pytest.approx(literal.pair(u, y[k], weight[k]), rel=1e-3)
        assert trace.similar[0] == (similar[0] > 0)
        assert trace.probability[0] == pytest.approx(probability[0, 1], rel=1e-12)
        np.testing.assert_array_equal(trace.weights[0], tracker.experts_["weight"])


@pytest.mark.parametrize("scale", ["auto", "features", 1.0])
@pytest.mark.parametrize("engine", ENGINES)
def test_a_trace_has_what_was_predicted_of_points_far_apart(engine, scale):
    pairs, y, _, _ = stream(3, 60, 4)
    pairs[[1, 5, 30, 50]] *= np.array([30.0, 50.0, 1e3, 100.0])[:, None, None]
    tracker = MetricTracker(loss=ENGINES[engine][0], memory=32, scale=scale).partial_fit(pairs[:1], y[:1])
    for k in range(1, 60):
        probability, trace = tracker.mixture_proba(pairs[k : k + 1]), Trace(1)
        tracker._learn(pairs[k : k + 1, 0] - pairs[k : k + 1, 1], y[k : k + 1].astype(float), trace=trace)
        assert trace.probability[0] == pytest.approx(probability[0, 1], rel=1e-12)


# Conformance


@pytest.mark.parametrize("engine", ENGINES)
def test_a_batch_is_a_loop(engine):
    pairs, y, weight, _ = stream(4, 90, 4)
    loss, _ = ENGINES[engine]
    batch, loop = (MetricTracker(loss=loss, memory=32) for _ in range(2))
    batch.partial_fit(pairs, y, weight)
    for k in range(90):
        loop.partial_fit(pairs[k : k + 1], y[k : k + 1], weight[k : k + 1])
    np.testing.assert_array_equal(batch.experts_, loop.experts_)
    np.testing.assert_array_equal(batch.get_mahalanobis_matrix(), loop.get_mahalanobis_matrix())
    np.testing.assert_array_equal(batch.mixture_proba(pairs), loop.mixture_proba(pairs))
    np.testing.assert_array_equal(batch.predict_proba(pairs), loop.predict_proba(pairs))


def test_thresholds_are_those_of_the_tracker_that_is_asked():
    """Threads have scratch that all trackers use: nothing may be left over in it from before, or from others."""
    pairs, y, _, _ = stream(5, 200, 4)
    trackers = [MetricTracker(memory=32).partial_fit(pairs[k:], y[k:]) for k in (0, 50)]
    for tracker in trackers:
        M, weights = tracker.expert_metrics_, tracker.experts_["weight"]
        assert tracker.mu_ == pytest.approx(sum(w * m.mu for w, m in zip(weights, M, strict=True)), rel=1e-12)
        alone = copy.copy(tracker)
        alone.predict_proba(pairs[:3])  # which evaluates all thresholds
        assert tracker.mu_ == alone.mu_
        assert tracker.threshold_ == alone.threshold_


def test_a_step_that_fails_changes_nothing():
    """Replayed experts go first, and take back what they have learned if a learner after them fails."""

    class Failing(Hinge):
        fails = False

        def slope(self, m):
            if self.fails:
                raise ArithmeticError
            return super().slope(m)

    pairs, y, _, _ = stream(19, 80, 4)
    loss = Failing()
    tracker, other = (MetricTracker(loss=loss, memory=32).partial_fit(pairs[:50], y[:50]) for _ in range(2))
    object.__setattr__(loss, "fails", True)
    for k in (50, 51):
        with pytest.raises(ArithmeticError):
            tracker.partial_fit(pairs[k : k + 1], y[k : k + 1])
    object.__setattr__(loss, "fails", False)
    assert tracker._engine.t == 50
    for each in (tracker, other):
        each.partial_fit(pairs[50:], y[50:])
    np.testing.assert_array_equal(tracker.experts_, other.experts_)
    np.testing.assert_array_equal(tracker.mixture_proba(pairs), other.mixture_proba(pairs))


# Behaviour


def predict_then_learn(tracker, pairs, y):
    """Of each comparison: was it foreseen to be similar, and the two probabilities that it is."""
    told = []
    for k in range(len(y)):
        if k:
            one = pairs[k : k + 1]
            told.append(
                (tracker.predict(one)[0], tracker.predict_proba(one)[0, 1], tracker.mixture_proba(one)[0, 1])
            )
        tracker.partial_fit(pairs[k : k + 1], y[k : k + 1])
    return np.array([(0, 0.5, 0.5), *told])


@cache
def rare_stream(noise):
    """One pair of twenty is similar: those that are close in two of eight features, or, as noise, any."""
    rng = np.random.default_rng(6)
    pairs = rng.normal(size=(2500, 2, 8))
    square = ((pairs[:, 0] - pairs[:, 1])[:, :2] ** 2).sum(axis=1)
    y = np.where(
        np.where(rng.random(2500) < noise, rng.random(2500) < 0.05, square < np.quantile(square, 0.05)), 1, -1
    )
    return y, predict_then_learn(MetricTracker(), pairs, y)


@cache
def drifting_stream():
    data = DriftingClusters.draw(np.random.default_rng(0))
    segments = (Segment(1500, "A", 0.0), Segment(1500, "B", 0.01))
    steps = list(data.stream(np.random.default_rng(1), segments))
    y = np.array([step.y for step in steps])
    return y, predict_then_learn(MetricTracker(memory=512), np.array([step.pair for step in steps]), y)


@pytest.mark.parametrize("noise", [0.0, 0.2, 1.0])
def test_where_similar_pairs_are_rare_it_is_as_good_as_always_different(noise):
    y, told = rare_stream(noise)
    assert np.mean(told[500:, 0] == y[500:]) >= np.mean(y[500:] < 0) - 0.005


def test_where_similar_pairs_are_rare_they_are_found():
    y, told = rare_stream(0.0)
    assert np.mean(told[500:, 0] == y[500:]) > np.mean(y[500:] < 0) + 0.02
    assert np.mean(told[500:, 0][y[500:] > 0] > 0) > 0.6


def calibration_error(p, similar, bins=10):
    """The mean distance of probabilities from frequencies, over bins of equal number, and the standard error that
    probabilities which are right would have."""
    order = np.array_split(np.argsort(p), bins)
    error = np.mean([abs(p[part].mean() - similar[part].mean()) for part in order])
    chance = np.mean([np.sqrt((p[part] * (1 - p[part])).mean() / len(part)) for part in order])
    return error, chance


@pytest.mark.parametrize("name", ["rare", "drifting"])
@pytest.mark.parametrize("column", [1, 2])
def test_probabilities_are_calibrated(name, column):
    """Of 1250 and of 1500 comparisons, in ten bins; a bin's frequency has a standard error of about .014, so that
    probabilities which are right have an error of about .011, with a standard error of .003."""
    y, told = rare_stream(0.2) if name == "rare" else drifting_stream()
    half = len(y) // 2
    error, chance = calibration_error(told[half:, column], y[half:] > 0)
    assert chance < 0.04
    assert error <= 0.05


def test_a_wide_stream_has_levels_alone():
    rng = np.random.default_rng(7)
    X = sparse.random_array((600, 3000), density=0.005, random_state=rng, format="csr")
    x, z = X[:300], X[300:]
    y = np.where(np.abs(x - z).sum(axis=1) < np.median(np.abs(x - z).sum(axis=1)), 1, -1)
    tracker = MetricTracker().partial_fit((x, z), y)
    assert set(tracker.experts_["kind"]) == {"rice"}
    assert tracker.experts_["weight"].sum() == pytest.approx(1.0)
    p, q = tracker.predict_proba((x, z)), tracker.mixture_proba((x, z))
    assert np.isfinite(p).all()
    assert np.isfinite(q).all()
    np.testing.assert_array_equal(tracker.predict((x, z)), np.where(p[:, 1] >= 0.5, 1, -1))


@pytest.mark.parametrize("engine", ENGINES)
def test_comparisons_of_weight_zero_are_none(engine):
    pairs, y, weight, _ = stream(8, 60, 4)
    weight[::3] = 0.0
    some, all_ = (MetricTracker(loss=ENGINES[engine][0], memory=32) for _ in range(2))
    all_.partial_fit(pairs, y, weight)
    some.partial_fit(pairs[weight > 0], y[weight > 0], weight[weight > 0])
    np.testing.assert_array_equal(some.experts_, all_.experts_)
    np.testing.assert_array_equal(some.mixture_proba(pairs), all_.mixture_proba(pairs))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_refused_changes_nothing(bad):
    pairs, y, _, _ = stream(9, 60, 4)
    tracker = MetricTracker(memory=32).partial_fit(pairs, y)
    before = [array.copy() for array in vars(tracker._engine.buffers).values() if isinstance(array, np.ndarray)]
    wrong = pairs[:5].copy()
    wrong[4, 0, 0] = bad
    with pytest.raises(ValueError, match="pairs"):
        tracker.partial_fit(wrong, y[:5])
    with pytest.raises(ValueError, match="sample_weight"):
        tracker.partial_fit(pairs[:5], y[:5], [1, 1, 1, 1, bad])
    with pytest.raises(ValueError, match="y"):
        tracker.partial_fit(pairs[:5], [1, 1, 1, 1, bad])
    with pytest.raises(ValueError, match="pairs"):
        tracker.partial_fit_implied(wrong, y[:5])
    with pytest.raises(ValueError, match="sample_weight"):
        tracker.partial_fit_implied(pairs[:5], y[:5], [1, 1, 1, 1, bad])
    with pytest.raises(ValueError, match="y"):
        tracker.partial_fit_implied(pairs[:5], [1, 1, 1, 1, bad])
    after = [array for array in vars(tracker._engine.buffers).values() if isinstance(array, np.ndarray)]
    for one, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("factor", [2.0**20, 1000.0, 1e-9, 1e100])
def test_a_common_factor_of_all_features_changes_nothing(factor):
    pairs, y, weight, _ = stream(10, 300, 5)
    one, other = (MetricTracker(memory=64).partial_fit(f * pairs, y, weight) for f in (1.0, factor))
    np.testing.assert_allclose(one.experts_["weight"], other.experts_["weight"], rtol=1e-6, atol=1e-9)
    assert one.mu_ == pytest.approx(other.mu_, rel=1e-6)
    np.testing.assert_allclose(one.mixture_proba(pairs), other.mixture_proba(factor * pairs), rtol=1e-6)
    np.testing.assert_allclose(one.predict_proba(pairs), other.predict_proba(factor * pairs), rtol=1e-6)


def assert_sound(tracker, pairs):
    assert np.isfinite(tracker.experts_["weight"]).all()
    assert tracker.experts_["weight"].sum() == pytest.approx(1.0)
    assert np.isfinite(tracker.get_mahalanobis_matrix()).all()
    assert np.isfinite(tracker.threshold_)
    for p in (tracker.predict_proba(pairs), tracker.mixture_proba(pairs)):
        assert ((p >= 0) & (p <= 1)).all()
    for array in (tracker._engine.stack.numbers, tracker._engine.stack.L, tracker._engine.stack.calibration):
        assert np.isfinite(array).all()


@pytest.mark.parametrize("label", [-1, 1])
def test_a_stream_of_one_label(label):
    pairs = stream(11, 3000, 5)[0]
    tracker = MetricTracker(memory=256).partial_fit(pairs, np.full(3000, label))
    assert_sound(tracker, pairs)
    assert np.mean(tracker.predict(pairs) == label) == 1.0
    assert (tracker.mixture_proba(pairs)[:, int(label > 0)] > 0.9).all()


def test_points_that_are_compared_with_themselves():
    pairs, y, _, _ = stream(12, 400, 5)
    same = pairs.copy()
    same[:, 1] = same[:, 0]
    assert_sound(MetricTracker(memory=64).partial_fit(same, np.ones(400)), pairs)
    assert_sound(MetricTracker(memory=64).partial_fit(same, y), pairs)
    pairs[::3] = same[::3]
    assert_sound(MetricTracker(memory=64).partial_fit(pairs, y), pairs)


@pytest.mark.parametrize(
    ("scale", "size"), [("auto", 1e6), ("auto", 1e200), (None, 1e6), (None, 1e20), (None, 1e33)]
)
def test_huge_outliers(scale, size):
    pairs, y, _, _ = stream(13, 1200, 5)
    wild = pairs.copy()
    wild[100:1000:50, 0, :2] *= size
    tracker = MetricTracker(memory=64, scale=scale).partial_fit(wild, y)
    assert_sound(tracker, pairs)
    assert_sound(tracker, wild)


@pytest.mark.parametrize("scale", ["auto", "features", 1e-300])
@pytest.mark.parametrize("m", [1, 40])
def test_points_whose_distance_in_units_is_no_number(m, scale):
    """Without a warning, which pytest makes an error."""
    pairs, y, _, _ = stream(14, 40, 3)
    tracker = MetricTracker(memory=32, scale=scale).partial_fit(1e-300 * pairs, y)
    far = np.repeat(np.array([[[1e300, 0.0, 0.0], [0.0, 0.0, 1e300]]]), m, axis=0)
    assert (tracker.predict(far) == -1).all()
    assert (tracker.predict_proba(far)[:, 1] < 0.5).all()
    assert np.isfinite(tracker.mixture_proba(far)).all()


@pytest.mark.parametrize("size", [1e-12, 1e-3, 1e12, 1e34])
def test_a_unit_of_length_that_does_not_fit(size):
    pairs, y, _, _ = stream(14, 600, 5)
    assert_sound(MetricTracker(memory=64, scale=None).partial_fit(size * pairs / 20, y), size * pairs / 20)


@pytest.mark.parametrize("heavy", [1e-100, 300.0, 1e5, 1e25, 1e100])
def test_comparisons_that_weigh_much_or_little(heavy):
    pairs, y, weight, _ = stream(15, 400, 5)
    weight[50:300:25] = heavy
    tracker, trace = MetricTracker(memory=64), Trace(400)
    tracker._learn(pairs[:, 0] - pairs[:, 1], y.astype(float), weight, trace)
    assert np.isfinite(trace.loss).all()
    assert_sound(tracker, pairs)


def test_twenty_thousand_comparisons():
    pairs, y, _, _ = stream(16, 20_000, 5)
    tracker, trace = MetricTracker(memory=128), Trace(20_000)
    tracker._learn(pairs[:, 0] - pairs[:, 1], y.astype(float), None, trace)
    assert np.isfinite(trace.loss).all()
    np.testing.assert_allclose(np.nansum(trace.weights, axis=1), 1.0, rtol=1e-12)
    assert_sound(tracker, pairs[:100])
    assert np.mean(trace.similar[5000:10_000] == (y[5000:10_000] > 0)) > 0.85


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_many_features(kind):
    """From 100 features on, levels have dictionaries; comparisons may be sparse."""
    rng = np.random.default_rng(17)
    X = sparse.random_array((240, 120), density=0.1, random_state=rng, format="csr")
    x, z, y = X[:120], X[120:], rng.choice([-1, 1], size=120)
    pairs = (x, z) if kind == "sparse" else np.stack([x.toarray(), z.toarray()], axis=1)
    fast, slow = (MetricTracker(loss=loss, memory=32).partial_fit(pairs, y) for loss, _ in ENGINES.values())
    np.testing.assert_allclose(fast.experts_["weight"], slow.experts_["weight"], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(fast.mixture_proba(pairs), slow.mixture_proba(pairs), rtol=1e-9)
    np.testing.assert_allclose(fast.predict_proba(pairs), slow.predict_proba(pairs), rtol=1e-9)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_copy_goes_on_alike_and_alone(engine):
    pairs, y, weight, _ = stream(18, 80, 4)
    tracker = MetricTracker(loss=ENGINES[engine][0], memory=32).partial_fit(pairs[:40], y[:40])
    before = tracker.mixture_proba(pairs)
    other = copy.copy(tracker).partial_fit(pairs[40:], y[40:], weight[40:])
    np.testing.assert_array_equal(tracker.mixture_proba(pairs), before)
    tracker.partial_fit(pairs[40:], y[40:], weight[40:])
    np.testing.assert_array_equal(tracker.mixture_proba(pairs), other.mixture_proba(pairs))
    np.testing.assert_array_equal(tracker.experts_, other.experts_)


# Memory


def size(tracker):
    held = tracker._engine.buffers
    return held.floats.nbytes + held.integers.nbytes + held.singles.nbytes


@pytest.mark.parametrize("memory", [100, 2048])
def test_memory_grows_with_what_is_replayed(memory):
    pairs, y, *_ = stream(2, 300, 25)
    assert size(MetricTracker(memory=memory).partial_fit(pairs[:1], y[:1])) < 32_000
    for k in (1, 64, 65, 129, 300):
        young = MetricTracker(memory=memory).partial_fit(pairs[:k], y[:k])
        for other in (copy.copy(young), loads(dumps(young)), pickle.loads(pickle.dumps(young))):
            assert other._engine.buffers.singles.nbytes == young._engine.buffers.singles.nbytes
            assert young._engine.buffers.rows == min(memory, max(64, 1 << (k - 1).bit_length()))


@pytest.mark.parametrize("memory", [32, 100, 2048])
def test_nothing_else_depends_on_how_much_memory_there_is(memory):
    """In one call, one by one, saved or copied on the way."""
    pairs, y, weight, triplets = stream(3, 300, 5)
    at_once = MetricTracker(memory=memory).partial_fit(pairs, y, weight)
    one_by_one, turns = MetricTracker(memory=memory), MetricTracker(memory=memory)
    for k in range(300):
        one_by_one.partial_fit(pairs[k : k + 1], y[k : k + 1], weight[k : k + 1])
        if k in (0, 62, 63, 64, 128, 200):
            other = copy.copy(one_by_one)
            one_by_one.partial_fit(pairs[:100], y[:100])  # what a copy was made from may go on otherwise
            one_by_one = loads(dumps(other)) if k % 2 else other
    assert dumps(at_once) == dumps(one_by_one)
    learn_in_turns(turns, pairs, y, weight, triplets)
    begun = learn_in_turns(MetricTracker(memory=memory), pairs[:70], y[:70], weight[:70], triplets[:10])
    assert dumps(turns) == dumps(learn_in_turns(begun, pairs[70:], y[70:], weight[70:], triplets[10:]))


def test_a_smaller_pool_is_read_after_a_larger_one():
    """Engines that files are read into are kept: what they have read before must not show."""
    pairs, y, *_ = stream(4, 200, 5)
    large, small = (MetricTracker().partial_fit(pairs[:k], y[:k]) for k in (200, 135))  # as many levels
    files = [dumps(tracker) for tracker in (small, large, small)]
    again = [loads(file) for file in files]
    assert [dumps(tracker) for tracker in again] == files
    assert len({id(tracker._engine.buffers.singles) for tracker in again}) == 3
    assert size(again[2]) == size(again[0])
