"""Metrics that bend: experts on feature maps, beside the linear ones."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError

from literal_pool import LiteralNonlinear
from ocelad import FixedShare, History, LogDet, Logistic, MetricTracker, SupervisedMetricTracker, cli, dumps, loads
from ocelad.engine import buffers
from ocelad.engine.landmarks import LANDMARKS, feature_maps
from ocelad.neighbors import MovingIndex
from ocelad.watch.prequential import progressive


def xor(seed, count, n=2):
    """Points are alike if both are in the same two of four quadrants."""
    points = np.random.default_rng(seed).normal(size=(count, 2, n))
    side = points[:, :, 0] * points[:, :, 1] > 0
    return points, np.where(side[:, 0] == side[:, 1], 1, -1)


@pytest.fixture(name="double")
def fixture_double(monkeypatch):
    """Replayed experts in double precision, so that they can be told from others that are only similar."""
    monkeypatch.setattr(buffers, "SINGLE", np.float64)
    monkeypatch.setattr(buffers, "_SCRATCH", buffers._Scratch())


@pytest.fixture(name="learned", scope="module")
def fixture_learned():
    return MetricTracker(nonlinear=True).partial_fit(*xor(0, 500))


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize(("observed", "memory"), [(0, 32), (70, 64), (250, 64)])
def test_it_does_what_is_written_down(observed, memory):
    rng = np.random.default_rng(observed)
    pairs, y = xor(1, 160, n=3)
    pairs[40] = pairs[3]  # points that come twice are one landmark
    weight, triplets, points = (
        rng.uniform(0.2, 3.0, size=160),
        rng.normal(size=(20, 3, 3)),
        rng.normal(size=(250, 3)),
    )
    tracker, literal = MetricTracker(nonlinear=True, memory=memory), LiteralNonlinear(3, memory)
    if observed:
        points = points[:observed]
        tracker.observe(points)
        kept = points[np.linspace(0, observed - 1, 200).astype(int)] if observed > 200 else points
        literal.observe(kept)
    for k in range(160):
        implied = k % 5 == 4
        if implied:
            tracker.partial_fit_implied(pairs[k : k + 1], y[k : k + 1], weight[k : k + 1])
        else:
            tracker.partial_fit(pairs[k : k + 1], y[k : k + 1], weight[k : k + 1])
        literal.compare(*pairs[k], y[k], weight[k], implied)
        if k % 8 == 7:
            tracker.partial_fit_triplets(triplets[k // 8][None])
            literal.order(*triplets[k // 8])
    assert literal.maps is not None
    # steps of Adam, and directions in which landmarks hardly differ, make more of rounding than a linear pool does
    np.testing.assert_allclose(tracker.experts_["weight"], np.concatenate(literal.w), rtol=0, atol=1e-5)
    for x, z in rng.normal(size=(5, 2, 3)):
        v = np.append((x - z) / literal.unit.value, literal.phi(x) - literal.phi(z))
        by_metric, by_mixture = literal.predict(v)
        assert tracker.predict_proba([[x, z]])[0, 1] == pytest.approx(by_metric, abs=1e-5)
        assert tracker.mixture_proba([[x, z]])[0, 1] == pytest.approx(by_mixture, abs=1e-5)
        M, _ = literal.mixture()
        assert tracker.pair_distance([[x, z]])[0] ** 2 == pytest.approx(v @ M @ v, rel=1e-4)


def test_it_learns_what_no_matrix_can():
    pairs, y = xor(2, 1000)
    other, truth = xor(3, 1000)
    bent, straight = (MetricTracker(nonlinear=flag).partial_fit(pairs, y) for flag in (True, False))
    assert np.mean(bent.predict(other) != truth) < 0.25
    assert np.mean(straight.predict(other) != truth) > 0.4


@pytest.mark.parametrize("cuts", [[1] * 130, [99, 1, 30], [50, 80], [130]])
def test_in_any_pieces(cuts):
    pairs, y = xor(4, 130)
    whole, parts = MetricTracker(nonlinear=True), MetricTracker(nonlinear=True)
    seen = progressive(whole, pairs, y)
    done, rows = 0, []
    for size in cuts:
        rows.append(progressive(parts, pairs[done : done + size], y[done : done + size]).probability)
        done += size
    assert np.array_equal(np.concatenate(rows), seen.probability)
    assert dumps(whole) == dumps(parts)


def test_a_trace_says_what_would_have_been_said():
    pairs, y = xor(5, 130)
    seen, tracker = progressive(MetricTracker(nonlinear=True), pairs, y), MetricTracker(nonlinear=True)
    for k in range(130):
        if k > 0:
            assert tracker.mixture_proba(pairs[k : k + 1])[0, 1] == pytest.approx(seen.probability[k], rel=1e-12)
            d = tracker.pair_distance(pairs[k : k + 1])[0]
            assert d**2 == pytest.approx(seen.squared_distance[k], rel=1e-9, abs=1e-12)
        tracker.partial_fit(pairs[k : k + 1], y[k : k + 1])


@pytest.mark.parametrize("scale", ["auto", "features", None, 2.0])
@pytest.mark.parametrize("at", [0, 40, 99, 100, 300])
def test_saved_it_goes_on_as_if_nothing_had_happened(scale, at):
    pairs, y = xor(6, 320, n=3)
    tracker = MetricTracker(nonlinear=True, scale=scale).observe(pairs[:10, 0])
    tracker.partial_fit_triplets(np.random.default_rng(0).normal(size=(5, 3, 3)))
    tracker.partial_fit_implied(pairs[:at], y[:at]) if at else None
    for restored in (loads(dumps(tracker)), pickle.loads(pickle.dumps(tracker)), copy.copy(tracker)):
        assert dumps(restored) == dumps(tracker)
        restored.partial_fit(pairs[at:], y[at:])
        copied = copy.deepcopy(tracker).partial_fit(pairs[at:], y[at:])
        assert dumps(restored) == dumps(copied)


def test_distances_are_euclidean_in_its_coordinates(learned):
    pairs, _ = xor(7, 100)
    Z = learned.transform(pairs.reshape(-1, 2)).reshape(100, 2, -1)
    distances = learned.pair_distance(pairs)
    np.testing.assert_allclose(np.linalg.norm(Z[:, 0] - Z[:, 1], axis=1), distances, rtol=1e-9)
    few = np.concatenate([learned.pair_distance(pairs[k : k + 5]) for k in range(0, 100, 5)])
    np.testing.assert_allclose(few, distances, rtol=1e-7)
    metric = learned.get_metric()
    assert metric(*pairs[0]) == pytest.approx(distances[0])
    assert metric(*pairs[0], squared=True) == pytest.approx(distances[0] ** 2)
    assert Z.shape[2] == 2 + 2 * LANDMARKS
    few_dimensions = copy.copy(learned).set_params(n_components=2)
    assert few_dimensions.transform(pairs[:, 0]).shape == (100, 2)
    assert (few_dimensions.pair_distance(pairs) <= distances * (1 + 1e-9)).all()


def test_there_is_no_matrix(learned):
    with pytest.raises(AttributeError, match="nonlinear=True: no matrix"):
        learned.components_ = np.eye(2)
    with pytest.raises(ValueError, match="nonlinear=True"):
        MovingIndex(learned)
    with pytest.raises(ValueError, match="dense"):
        learned.transform(sparse.eye(2).tocsr())
    for ask in (learned.get_mahalanobis_matrix, lambda: learned.components_):
        with pytest.raises(AttributeError, match="nonlinear=True: no matrix"):
            ask()


def test_the_experts_are_there_from_the_start(learned):
    young = MetricTracker(nonlinear=True).partial_fit(*xor(8, 3))
    assert (young.experts_["kind"] == "kernel").sum() == 12
    assert (learned.experts_["kind"] == "kernel").sum() == 12
    kernels = np.flatnonzero(learned.experts_["kind"] == "kernel")
    assert {learned.expert_metrics_[k].M.shape for k in kernels} == {(LANDMARKS, LANDMARKS)}


def test_the_linear_experts_are_those_of_a_linear_pool():
    pairs, y = xor(9, 200, n=4)
    both = [MetricTracker(nonlinear=flag).partial_fit(pairs[:1], y[:1]) for flag in (False, True)]
    for tracker in both:
        tracker.partial_fit(pairs[1:], y[1:])
    straight, bent = both
    same = straight.experts_["kind"] == "rice"
    ours = bent.experts_["kind"] == "rice"
    for one, other in zip(np.flatnonzero(same), np.flatnonzero(ours), strict=True):
        np.testing.assert_array_equal(straight.expert_metrics_[one].M, bent.expert_metrics_[other].M)


def test_a_history_watches_it():
    tracker = MetricTracker(nonlinear=True)
    history = History(tracker, every=10)
    tracker.partial_fit(*xor(10, 150))
    assert history.records["t"].tolist() == list(range(10, 151, 10))
    assert history.relevance.shape == (15, 2)
    again = loads(dumps(tracker))
    assert dumps(again) == dumps(tracker)


def test_observed_points_give_it_a_start():
    pairs, y = xor(11, 60)
    points = np.random.default_rng(0).normal(size=(1000, 2))
    ready = MetricTracker(nonlinear=True).observe(points)
    assert ready._engine.gathered is None  # there are landmarks before the first comparison
    ready.partial_fit(pairs, y)
    late = MetricTracker(nonlinear=True).partial_fit(pairs, y)
    assert late._engine.gathered is not None
    with pytest.raises(ValueError, match="X"):
        ready.observe(np.full((3, 2), np.nan))
    with pytest.raises(ValueError, match="X"):
        MetricTracker().observe(np.zeros((3, 0)))
    with pytest.raises(ValueError, match=r"\(m, 2\)"):
        ready.observe(np.zeros((3, 5)))


def test_observed_names_are_names():
    pairs, y = xor(21, 20)
    frames = [pd.DataFrame(pairs[:, side], columns=["a", "b"]) for side in (0, 1)]
    tracker = MetricTracker(nonlinear=True).observe(frames[0])
    assert tracker.feature_names_in_.tolist() == ["a", "b"]
    tracker.partial_fit(frames, y)
    with pytest.raises(ValueError, match="feature names"):
        tracker.observe(frames[0][["b", "a"]])


def test_new_landmarks():
    pairs, y = xor(20, 700)
    tracker = MetricTracker(nonlinear=True).partial_fit(pairs[:300], y[:300])
    before, linear = tracker.experts_.copy(), tracker.expert_metrics_[0].M
    same = copy.deepcopy(tracker).observe(pairs[:300, 0])
    assert dumps(same) == dumps(tracker)
    moved = 5.0 + pairs
    tracker.observe(moved[:, 0], refresh=True)
    kernels = before["kind"] == "kernel"
    assert tracker.experts_["weight"][kernels].sum() == pytest.approx(1e-3)
    others = before["weight"][~kernels]
    np.testing.assert_allclose(tracker.experts_["weight"][~kernels], 0.999 * others / others.sum(), rtol=1e-12)
    np.testing.assert_array_equal(tracker.expert_metrics_[0].M, linear)
    assert dumps(loads(dumps(tracker))) == dumps(tracker)
    other = copy.deepcopy(tracker).partial_fit(moved[300:], y[300:])
    assert dumps(loads(dumps(tracker)).partial_fit(moved[300:], y[300:])) == dumps(other)
    assert np.mean(other.predict(moved[:300]) != y[:300]) < 0.3
    with pytest.raises(ValueError, match="two points"):
        tracker.observe(moved[:1, 0], refresh=True)


def test_observing_changes_nothing_of_a_linear_pool():
    pairs, y = xor(12, 100)
    observed = MetricTracker().observe(pairs[:, 0]).partial_fit(pairs, y)
    assert dumps(observed) == dumps(MetricTracker().partial_fit(pairs, y))


@pytest.mark.parametrize("factor", [1e-120, 1e-6, 1e6, 1e120])
def test_the_common_scale_does_not_matter(factor, learned):
    pairs, y = xor(0, 500)
    other = MetricTracker(nonlinear=True).partial_fit(factor * pairs, y)
    new, _ = xor(13, 200)
    np.testing.assert_allclose(other.mixture_proba(factor * new), learned.mixture_proba(new), atol=1e-4)


def test_with_features_scaled_each_by_itself_none_matters():
    pairs, y = xor(14, 400, n=4)
    factors = np.array([1e-3, 1.0, 1e4, 1e9])
    one = MetricTracker(nonlinear=True, scale="features").partial_fit(pairs, y)
    other = MetricTracker(nonlinear=True, scale="features").partial_fit(pairs * factors, y)
    new, _ = xor(15, 200, n=4)
    np.testing.assert_allclose(one.mixture_proba(new), other.mixture_proba(new * factors), atol=1e-3)


def test_points_that_are_all_the_same():
    same = np.ones((120, 2, 3))
    tracker = MetricTracker(nonlinear=True).partial_fit(same, np.ones(120))
    assert tracker.mixture_proba(same[:1])[0, 1] > 0.8
    assert np.isfinite(tracker.mixture_proba(np.random.default_rng(0).normal(size=(5, 2, 3)))).all()


def test_wild_points():
    pairs, y = xor(16, 150)
    pairs[7, 0] = 1e300
    tracker = MetricTracker(nonlinear=True).partial_fit(pairs, y)
    assert np.isfinite(tracker.mixture_proba(pairs)).all()
    far = np.array([[[1e308, -1e308], [0.0, 0.0]]])
    assert np.isfinite(tracker.mixture_proba(far)).all()


def test_maps_are_kernels_where_there_is_a_landmark():
    X = np.random.default_rng(0).normal(size=(60, 3))
    maps = feature_maps(X, np.stack([X[:-1], X[1:]], axis=1), by_feature=False)
    phi = maps(X).reshape(60, 2, LANDMARKS)
    for b, rate in enumerate(maps.rates):
        gram = phi[:, b] @ phi[:, b].T
        squares = np.square(X[:, None] * maps.inverse - X[None] * maps.inverse).sum(axis=2)
        np.testing.assert_allclose(gram / gram[0, 0], np.exp(-rate * squares), atol=2e-3)


@pytest.mark.parametrize(
    "options",
    [{"weights": FixedShare()}, {"memory": None}, {"divergence": LogDet(), "origin": 1.0}, {"nonlinear": "yes"}],
)
def test_options_that_it_does_not_go_with(options):
    tracker = MetricTracker(**({"nonlinear": True} | options))
    with pytest.raises(ValueError, match="nonlinear"):
        tracker.partial_fit(*xor(17, 5))
    with pytest.raises(NotFittedError):
        tracker.predict(xor(17, 5)[0])


def test_no_comparisons_change_nothing(learned):
    before = dumps(learned)
    learned.partial_fit(np.zeros((0, 2, 2)), [])
    learned.partial_fit_triplets(np.zeros((0, 3, 2)))
    assert learned.predict(np.zeros((0, 2, 2))).shape == (0,)
    assert learned.mixture_proba(np.zeros((0, 2, 2))).shape == (0, 2)
    assert dumps(learned) == before


def test_from_labelled_points():
    X, y = load_iris(return_X_y=True)
    tracker = SupervisedMetricTracker(MetricTracker(nonlinear=True), random_state=0).fit(X, y)
    assert tracker.transform(X).shape == (150, len(tracker.get_feature_names_out()))
    np.testing.assert_array_equal(loads(dumps(tracker)).transform(X), tracker.transform(X))


def test_a_run_on_a_table(tmp_path):
    X, y = load_iris(return_X_y=True)
    table = tmp_path / "flowers.csv"
    rows = [",".join([*map(repr, point), str(kind)]) for point, kind in zip(X.tolist(), y.tolist(), strict=True)]
    table.write_text("\n".join(["a,b,c,d,kind", *rows]))
    out, call = str(tmp_path / "run"), CliRunner().invoke
    run = ["track", str(table), "--label", "kind", "--nonlinear", "--out", out]
    for command in (run, [*run, "--resume"], ["info", out], ["embed", out, str(table), "--out", f"{out}.csv"]):
        done = call(cli.main, command)
        assert done.exit_code == 0, done.output
    assert call(cli.main, [*run, "--rice", "--overwrite"]).exit_code == 2


def test_sparse_points_are_refused():
    X = sparse.csr_matrix(np.eye(4))
    with pytest.raises(ValueError, match="dense"):
        MetricTracker(nonlinear=True).partial_fit([X, X[::-1]], [1, -1, 1, -1])


def test_other_losses_go_with_it():
    tracker = MetricTracker(nonlinear=True, loss=Logistic()).partial_fit(*xor(18, 120))
    assert clone(tracker).nonlinear
    assert dumps(loads(dumps(tracker))) == dumps(tracker)


def test_forged_files_are_refused(learned):
    young = MetricTracker(nonlinear=True).partial_fit(*xor(19, 50))
    for tracker, name, change in [
        (learned, "maps", lambda a: a[:-1]),
        (learned, "maps", lambda a: np.where(np.arange(len(a)) == 2, -1.0, a)),
        (learned, "maps", lambda a: np.full(len(a), np.nan)),
        (learned, "gathered", lambda a: np.zeros((1, a.shape[1]))),
        (young, "gathered", lambda a: a[1:]),
        (young, "gathered", lambda a: np.where(np.arange(a.shape[1]) == 0, 2.0, a)),
        (young, "gathered", lambda a: np.where(np.arange(a.shape[1]) == 1, 0.0, a)),
        (young, "gathered", lambda a: np.where(np.arange(a.shape[1]) == 2, 0.5, a)),
        (young, "gathered", lambda a: a[:, 1:]),
        (young, "observed", lambda _: np.zeros((200, 2))),
        (young, "observed", lambda _: np.zeros((3, 3))),
        (learned, "ring", lambda a: a[:, :-1]),
        (learned, "metrics", lambda a: a[:, :-1]),
    ]:
        engine = tracker._engine
        arrays = engine.snapshot()
        arrays[name] = change(arrays[name])
        with pytest.raises(ValueError):  # noqa: PT011
            type(engine)(engine.recipe, engine.loss, engine.weights, engine.memory, engine.nonlinear).restored(
                engine.t, arrays
            )
