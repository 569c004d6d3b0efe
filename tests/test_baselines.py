"""Streaming baselines: each against a literal transcription or the property that defines it."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone

from ocelad import (
    L1,
    Comid,
    Descent,
    FixedShare,
    Hinge,
    LogDet,
    Logistic,
    Metric,
    MetricTracker,
    NuclearNorm,
    OceladWeights,
    PairLoss,
    Pool,
    Restarted,
    SaolWeights,
    VonNeumann,
)
from ocelad.baselines import (
    STREAMING,
    Diffusion,
    Histories,
    LeadingHistory,
    OnlineItml,
    Oracle,
    UnclippedSaol,
    adagrad,
    comid,
    dynamic_mirror_descent,
    fixed_share,
    ftrl,
    leading_history,
    mdml,
    online_itml,
    restarted,
    saol,
)
from ocelad.baselines.leading_history import birth
from ocelad.baselines.online_itml import new_distance
from ocelad.data import DriftingClusters, cayley, haar
from ocelad.evaluate import knn_error
from ocelad.learner import Opening
from streams import comparisons

N = 4


def matrix(tracker):
    return tracker.get_mahalanobis_matrix()


def differences(steps=60, seed=0, n=N):
    pairs, y = comparisons(seed=seed, steps=steps, n=n)
    return pairs[:, 0] - pairs[:, 1], y


# What holds for all of them


@pytest.mark.parametrize("name", STREAMING)
def test_all_track_deterministically_one_by_one_or_at_once(name):
    pairs, y = comparisons(seed=1, steps=40, n=N)
    kept, X = pairs.copy(), np.eye(N)
    together, again, single = (STREAMING[name]() for _ in range(3))
    together.partial_fit(pairs, y)
    again.partial_fit(pairs, y)
    for pair, label in zip(pairs, y, strict=True):
        single.partial_fit(pair[None], [label])
    np.testing.assert_array_equal(pairs, kept)
    np.testing.assert_array_equal(together.transform(X), again.transform(X))
    np.testing.assert_allclose(together.transform(X), single.transform(X), atol=1e-10)
    assert together.pair_distance(pairs) == pytest.approx(
        np.linalg.norm(together.transform(pairs[:, 0]) - together.transform(pairs[:, 1]), axis=1), abs=1e-8
    )
    if name != "Euclid":
        assert set(together.predict(pairs)) <= {-1, 1}
        assert (np.linalg.eigvalsh(matrix(together)) > -1e-12).all()
        further = pickle.loads(pickle.dumps(single)).partial_fit(pairs, y)
        np.testing.assert_array_equal(matrix(further), matrix(single.partial_fit(pairs, y)))


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: online_itml(1.0, quantiles=(0.9, 0.1)), "quantiles"),
        (lambda: online_itml(1.0, memory=0), "memory"),
        (lambda: fixed_share(()), "factors"),
        (lambda: fixed_share((1.0, -1.0)), "factors"),
        (lambda: restarted(1.0, base=0), "base"),
        (lambda: leading_history(1.0, base=0), "base"),
        (lambda: leading_history(1.0, rate=0.0), "rate"),
        (lambda: Diffusion(-1.0), "drift"),
        (lambda: saol(1.0, seed=-1), "seed"),
        (lambda: saol(1.0, clipped=False, seed=-1), "seed"),
        (lambda: ftrl(1.0).set_params(divergence=LogDet(), origin=1.0).partial_fit(*one_pair()), "divergence"),
        (lambda: adagrad(1.0).set_params(max_rank=2).partial_fit(*one_pair()), "max_rank"),
        (lambda: dynamic_mirror_descent(1.0).set_params(max_rank=2).partial_fit(*one_pair()), "max_rank"),
        (lambda: online_itml(1.0).set_params(origin=0.0).partial_fit(*one_pair()), "origin"),
        (lambda: comid(-1.0).partial_fit(*one_pair()), "step"),
    ],
)
def test_bad_options_are_named(make, name):
    with pytest.raises(ValueError, match=f"^{name} must"):
        make()


def one_pair():
    return np.eye(2)[None], [1]


# Compiled learners


def black_boxes(spawn):
    return Pool([spawn(1.0, None)])


COMPILED = {
    "comid": (comid(1.0), black_boxes),
    "identity": (comid(1.0).set_params(origin=0.5), black_boxes),
    "L1": (comid(1.0).set_params(regularizer=L1(0.1)), black_boxes),
    "max_rank": (comid(1.0, 0.0).set_params(max_rank=2), black_boxes),
    "logistic": (comid(1.0).set_params(loss=Logistic()), black_boxes),
    "restarted": (restarted(2.0), Restarted),
    "restarted identity": (restarted(2.0).set_params(origin=0.5), Restarted),
    "restarted max_rank": (restarted(2.0, 0.0).set_params(max_rank=2), Restarted),
    "restarted logistic": (restarted(2.0).set_params(loss=Logistic()), Restarted),
    "restarted fixed share": (restarted(2.0, weights=FixedShare()), Restarted),
    "saol": (saol(2.0), Restarted),
    "histories": (leading_history(2.0), Histories),
}


@pytest.mark.parametrize(("n", "weighted"), [(N, 99), (N, 4), (110, 99)], ids=["all", "mixed", "dictionary"])
@pytest.mark.parametrize("name", COMPILED)
def test_compiled_learners_are_comid_learners(name, n, weighted):
    """Also where some comparisons carry a weight, for which there are no kernels, and others do not."""
    if name == "L1" and n > N:
        pytest.skip("L1 is never compiled, and slow")
    fast, slow = COMPILED[name]
    fast = clone(fast)
    steps = 90 if n == N else 40
    pairs, y = comparisons(seed=2, steps=90, n=n)
    weight = np.where(np.arange(90) // 10 % weighted == weighted // 2, 0.5, 1.0)
    both = [fast, MetricTracker(**{**fast.get_params(), "ensemble": slow})]
    for part in np.split(np.arange(steps), steps // 10):
        for tracker in both:
            tracker.partial_fit(pairs[part], y[part], sample_weight=weight[part])
        np.testing.assert_allclose(matrix(both[0]), matrix(both[1]), atol=1e-10)
        np.testing.assert_allclose(both[0].levels_["loss"], both[1].levels_["loss"], atol=1e-10)
        np.testing.assert_allclose(both[0].discarded_, both[1].discarded_, atol=1e-10)
        assert both[0].mu_ == pytest.approx(both[1].mu_)


# Other geometries, other steps


@pytest.mark.parametrize("divergence", [LogDet(), VonNeumann()], ids=repr)
def test_mdml_is_comid_in_another_geometry(divergence):
    descent, metric = Descent(NuclearNorm(0.05), divergence), Metric(0.5 * np.eye(N), 1.0)
    u, y = differences()
    for difference, label in zip(u, y, strict=True):
        metric = descent(metric, PairLoss(difference, label, Hinge()), 0.3)
    tracker = mdml(0.3, divergence, strength=0.05, origin=0.5).partial_fit(np.stack([u, 0 * u], axis=1), y)
    np.testing.assert_allclose(matrix(tracker), metric.M, atol=1e-12)


def shrunk(W, tau):
    s, V = np.linalg.eigh(W)
    return (V * np.maximum(s - tau, 0)) @ V.T


def violated(M, mu, u, y):
    return y * (mu - u @ M @ u) < 1


def test_adagrad_step_falls_with_the_gradients():
    u, y = differences()
    M, mu, squares, step, strength = np.zeros((N, N)), 1.0, 0.0, 0.7, 0.03
    for x, label in zip(u, y, strict=True):
        g = label if violated(M, mu, x, label) else 0
        squares += (g**2) * ((x @ x) ** 2 + 1)
        if squares:
            eta = step / np.sqrt(squares)
            M, mu = shrunk(M - eta * g * np.outer(x, x), eta * strength), max(1.0, mu + eta * g)
    tracker = adagrad(step, strength).partial_fit(np.stack([u, 0 * u], axis=1), y)
    np.testing.assert_allclose(matrix(tracker), M, atol=1e-12)
    assert tracker.mu_ == pytest.approx(mu)


def test_ftrl_weighs_all_gradients_alike():
    u, y = differences()
    M, mu, total, total_mu, squares, step, strength = np.zeros((N, N)), 1.0, np.zeros((N, N)), 0.0, 0.0, 0.7, 0.03
    for t, (x, label) in enumerate(zip(u, y, strict=True), 1):
        g = label if violated(M, mu, x, label) else 0
        squares += (g**2) * ((x @ x) ** 2 + 1)
        total, total_mu = total + g * np.outer(x, x), total_mu - g
        eta = step / np.sqrt(squares) if squares else 0.0
        M, mu = shrunk(-eta * total, eta * t * strength), max(1.0, 1.0 - eta * total_mu)
    tracker = ftrl(step, strength).partial_fit(np.stack([u, 0 * u], axis=1), y)
    np.testing.assert_allclose(matrix(tracker), M, atol=1e-12)
    assert tracker.mu_ == pytest.approx(mu)
    assert M.any()


# Dynamic mirror descent


def test_identity_dynamics_is_comid():
    pairs, y = comparisons(seed=3, steps=60, n=N)
    moved = dynamic_mirror_descent(1.0, [lambda metric: metric]).partial_fit(pairs, y)
    np.testing.assert_allclose(matrix(moved), matrix(comid(1.0).partial_fit(pairs, y)), atol=1e-12)


def test_known_motion_is_comid_among_points_at_rest():
    """Points turn by R in every step; a learner that knows R sees what COMID sees of points that do not turn."""
    rng = np.random.default_rng(0)
    R, D = haar(N, rng), np.eye(N)
    pairs, y = comparisons(seed=4, steps=50, n=N)
    turning = dynamic_mirror_descent(1.0, [lambda metric: Metric(R @ metric.M @ R.T, metric.mu)])
    for pair, label in zip(pairs, y, strict=True):
        turning.partial_fit((pair @ D.T)[None], [label])
        D = R @ D
    at_rest = matrix(comid(1.0).partial_fit(pairs, y))
    np.testing.assert_allclose(D.T @ matrix(turning) @ D, at_rest, atol=1e-10)


def test_diffusion_is_the_mean_of_random_rotations():
    rng, drift = np.random.default_rng(0), 0.3
    A = rng.normal(size=(N, 2))
    M, moved = A @ A.T, np.zeros((N, N))
    trials = 20_000
    for G in rng.normal(size=(trials, N, N)):
        S = G - G.T
        for sign in (drift, -drift):  # in pairs: their first orders cancel
            R = cayley(sign * S / np.linalg.norm(S))
            moved += R @ M @ R.T / (2 * trials)
    change = np.linalg.norm(moved - M)
    expected = Diffusion(drift)(Metric(M, 1.0)).M
    assert np.linalg.norm(expected - moved) < 0.03 * change
    assert np.trace(expected) == pytest.approx(np.trace(M))


# Online ITML


def itml(rate, **options):
    return OnlineItml(Comid(Metric(np.eye(N), 1.0), rate, Descent()), **options)


@pytest.mark.parametrize("rate", [1e-3, 0.3, 30.0])
def test_itml_step_is_stationary(rate):
    """The gradient of D_LogDet(A, A_t) + rate/2 (u'Au - b)^2 vanishes: A^-1 = A_t^-1 + rate (a - b) u u'."""
    learner, moves = itml(rate), 0
    for u, y in zip(*differences(100), strict=True):
        before = learner.G @ learner.G.T
        learner.update(PairLoss(u, y, Hinge()))
        after = learner.G @ learner.G.T
        near, far = np.sort(learner.seen)[[int(q * (len(learner.seen) - 1)) for q in (0.05, 0.95)]]
        b, d = near if y > 0 else far, u @ before @ u
        if y * (d - b) <= 0:  # not violated
            np.testing.assert_array_equal(before, after)
            continue
        moves += 1
        a = u @ after @ u
        assert min(b, d) <= a <= max(b, d)
        stationary = np.linalg.inv(before) + rate * (a - b) * np.outer(u, u)
        np.testing.assert_allclose(
            np.linalg.inv(after), stationary, rtol=1e-6, atol=1e-6 * np.abs(stationary).max()
        )
        np.testing.assert_allclose(learner.estimate.M, after / ((near + far) / 2))
    assert moves > 20


@pytest.mark.parametrize("rate", [1e-6, 1.0, 1e6, 1e12])
def test_itml_stays_positive_definite(rate):
    rng, learner = np.random.default_rng(0), itml(rate)
    for _ in range(2_000):
        u, y = rng.normal(size=N) * 10.0 ** rng.uniform(-2, 2), int(rng.choice([-1, 1]))
        learner.update(PairLoss(u, y, Hinge()))
    s = np.linalg.svd(learner.G, compute_uv=False)
    assert np.isfinite(s).all()
    assert s[-1] > 0


def test_itml_meets_the_constraint_in_the_limit_of_large_rates():
    for rate, gap in [(1e2, 1e-1), (1e6, 1e-5), (1e10, 1e-9)]:
        assert abs(new_distance(5.0, 2.0, rate) - 2.0) < gap
        assert abs(new_distance(0.5, 2.0, rate) - 2.0) < gap
    assert new_distance(5.0, 2.0, 1e-12) == pytest.approx(5.0)


def test_itml_remembers_only_so_many_differences():
    learner = itml(1.0, memory=10)
    for size in range(1, 31):
        learner.update(PairLoss(np.full(N, float(size)), 1, Hinge()))
    assert learner.thresholds() == (21.0**2 * N, 29.0**2 * N)
    learner.update(PairLoss(np.zeros(N), 1, Hinge()))  # says nothing
    assert len(learner.seen) == 10


def test_itml_takes_weights_and_refuses_triplets():
    pairs, y = comparisons(seed=5, steps=20, n=N)
    half = online_itml(2.0).partial_fit(pairs, y, sample_weight=np.full(20, 0.5))
    np.testing.assert_allclose(matrix(half), matrix(online_itml(1.0).partial_fit(pairs, y)))
    with pytest.raises(ValueError, match="learns from pairs"):
        online_itml(1.0).partial_fit_triplets(np.eye(3)[None])


# Combiners


def test_fixed_share_runs_every_rate():
    pairs, y = comparisons(seed=6, steps=60, n=N)
    steps = (0.25, 1.0, 4.0)
    mixed = fixed_share(steps, strength=0.05).partial_fit(pairs, y)
    alone = [matrix(comid(step, 0.05).partial_fit(pairs, y)) for step in steps]
    for level, M in zip(mixed.level_metrics_, alone, strict=True):
        np.testing.assert_allclose(level.M, M, atol=1e-10)
    np.testing.assert_allclose(matrix(mixed), np.tensordot(mixed.levels_["weight"], alone, 1), atol=1e-10)


def test_leading_history_keeps_someone_for_every_past():
    """For all s <= t one of the learners alive at t was born in [s, (s + t)/2], and there are few of them."""
    alive = {}
    for t in range(1, 700):
        slot, life = birth(t)
        if slot in alive:  # who had the slot dies at this very time
            assert sum(alive[slot]) == t
        else:
            assert slot == len(alive)
        alive[slot] = (t, life)
        assert all(born + span > t for born, span in alive.values())
        assert len(alive) <= 2 * np.log2(t) + 2
        births = np.array(sorted(born for born, _ in alive.values()))
        starts = np.arange(1, t + 1)
        first = births[np.searchsorted(births, starts)]  # the first birth from s on
        assert (first <= (starts + t) / 2).all()


def test_leading_history_weights_by_hand():
    rule, rng, p = LeadingHistory(rate=0.7), np.random.default_rng(0), {}
    state = np.zeros((0, 1))
    for t in range(40):
        slot, _ = birth(t + 1)
        p.pop(slot, None)  # who dies
        total = sum(p.values())
        p = {key: value / total * (1 - 1 / (t + 1)) for key, value in p.items()}
        p[slot] = 1 / (t + 1)
        state = rule.open(state, Opening(t, (slot,), (1.0,)))
        np.testing.assert_allclose(rule.probabilities(state), [p[key] for key in range(len(p))], rtol=1e-12)
        losses = rng.random(len(p))
        state = rule.update(state, losses, lambda: 0.0)
        x = (losses - losses.min()) / (losses.max() - losses.min()) if len(p) > 1 else 0 * losses
        p = {key: value * np.exp(-0.7 * x[key]) for key, value in p.items()}
        total = sum(p.values())
        p = {key: value / total for key, value in p.items()}


def test_leading_history_serves_other_ensembles_too():
    pairs, y = comparisons(seed=7, steps=60, n=N)
    tracker = restarted(2.0, base=4, weights=LeadingHistory()).partial_fit(pairs, y)
    assert tracker.levels_["weight"].sum() == pytest.approx(1)
    assert np.isfinite(matrix(tracker)).all()


@pytest.mark.parametrize("size", [1.0, 20.0])
def test_unclipped_saol_rescales_only_where_it_must(size):
    rng, rule, clipped = np.random.default_rng(0), UnclippedSaol(seed=3), SaolWeights(seed=3)
    state = rule.open(np.zeros((0, 4)), Opening(0, (0, 1, 2), (1.0, 16.0, 64.0)))
    for t in range(1, 50):
        losses = size * rng.random(3)
        r = state[:, 3] @ losses - losses
        rate = np.minimum(0.5, state[:, 1] ** -0.5)
        expected = state[:, 0] + np.log(1 + rate * r / max(1.0, np.abs(r).max()))
        new = rule.update(state, losses, lambda: 0.0)
        np.testing.assert_allclose(new[:, 0], expected, rtol=1e-12)
        same = np.allclose(new, clipped.update(state, losses, lambda: 0.0))
        assert same == (size == 1.0 or not r.any())
        state = rule.open(new, Opening(t, (), ()))


def test_restarted_learners_forget():
    """At t = 2^j all but nothing is left of what was learned before; retro-initialised ones remember."""
    pairs, y = comparisons(seed=8, steps=63, n=N)
    fresh = restarted(2.0).partial_fit(pairs, y)
    assert not matrix(fresh).any()
    assert matrix(fresh.set_params(ensemble=None).fit(pairs, y)).any()
    assert isinstance(fresh.weights, OceladWeights)


# Knowing the truth


def test_oracle_sees_the_clusters_whatever_the_rotation():
    rng = np.random.default_rng(0)
    data, D = DriftingClusters.draw(rng, points=400), haar(25, rng)
    for clustering in ("A", "B"):
        oracle = Oracle().tell(D, clustering).partial_fit(data.points[None, :2], [1])
        Z = oracle.transform(data.points @ D.T)
        first = 0 if clustering == "A" else 3
        np.testing.assert_allclose(Z, data.points[:, first : first + 3], atol=1e-12)
        assert knn_error(Z, data.labels(clustering)) < 0.02
        pairs = (data.points @ D.T).reshape(-1, 2, 25)
        np.testing.assert_allclose(oracle.pair_distance(pairs), np.linalg.norm(Z[::2] - Z[1::2], axis=1))


def test_oracle_must_be_told_something_sensible():
    with pytest.raises(ValueError, match=r"^clustering must"):
        Oracle().tell(np.eye(25), "C")
    with pytest.raises(ValueError, match=r"^rotation must"):
        Oracle().tell(np.eye(5), "B")
    with pytest.raises(ValueError, match="tell"):
        Oracle().transform(np.eye(25))
