"""Baselines, whose metrics are kept diagonal, are the COMID learners they stand for, whatever the stream."""

import copy
import io
import pickle
from dataclasses import replace

import joblib
import numpy as np
import pytest
from sklearn.base import clone

from ocelad import (
    FixedShare,
    Hinge,
    History,
    LogDet,
    Logistic,
    Metric,
    MetricTracker,
    OceladWeights,
    PairLoss,
    Pool,
    Restarted,
    SaolWeights,
    SquaredHinge,
    Step,
    VonNeumann,
)
from ocelad.baselines import (
    AdaptiveSteps,
    Diffusion,
    Histories,
    Itml,
    Leader,
    LeadingHistory,
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
from ocelad.baselines.diagonal import Diagonal
from ocelad.baselines.dynamics import Moved
from ocelad.baselines.rank_one import turned
from ocelad.data import SCENARIO, DriftingClusters, blocks
from streams import comparisons

DRIFTS, RATES = (0.0, 0.1, 0.3), (0.25, 1.0, 4.0)


def one(learner):
    return lambda spawn: Pool([learner(spawn(1.0, None))])


def itself(learner):
    return learner


def candidates(spawn):
    return Pool([Moved(spawn(1.0, None), Diffusion(drift)) for drift in DRIFTS])


def histories(spawn):
    return Histories(spawn, base=8)


CASES = {
    "comid": (comid(1.0), one(itself)),
    "LogDet": (mdml(2.0), one(itself)),
    "LogDet, logistic": (mdml(0.1, strength=0.0).set_params(loss=Logistic()), one(itself)),
    "von Neumann, squared": (mdml(0.1, VonNeumann()).set_params(loss=SquaredHinge()), one(itself)),
    "AdaGrad": (adagrad(64.0), one(AdaptiveSteps)),
    "AdaGrad, LogDet": (adagrad(1.0).set_params(divergence=LogDet(), origin=1.0), one(AdaptiveSteps)),
    "AdaGrad, capped": (adagrad(64.0).set_params(step=Step(64.0, threshold=1.0, capped=True)), one(AdaptiveSteps)),
    "FTRL": (ftrl(16.0), one(Leader)),
    "FTRL, squared": (ftrl(16.0).set_params(loss=SquaredHinge()), one(Leader)),
    "dynamic": (dynamic_mirror_descent(1.0), candidates),
    "dynamic, LogDet": (dynamic_mirror_descent(1.0).set_params(divergence=LogDet(), origin=0.5), candidates),
    "fixed share": (fixed_share(RATES), lambda spawn: Pool([spawn(rate**-2, None) for rate in RATES])),
    "fixed rates, OCELAD": (
        fixed_share(RATES).set_params(weights=OceladWeights()),
        lambda spawn: Pool([spawn(rate**-2, None) for rate in RATES]),
    ),
    "restarted": (restarted(32.0), Restarted),
    "restarted, leading history": (restarted(32.0, weights=LeadingHistory()), Restarted),
    "SAOL": (saol(32.0, seed=10**30), Restarted),
    "SAOL, bound 5": (restarted(32.0, weights=SaolWeights(seed=1, bound=5.0)), Restarted),
    "SAOL, unclipped": (saol(32.0, clipped=False), Restarted),
    "leading history": (leading_history(32.0, base=8), histories),
    "histories, fixed share": (leading_history(32.0, base=8).set_params(weights=FixedShare()), histories),
    "histories, OCELAD": (leading_history(32.0, base=8).set_params(weights=OceladWeights(reset=False)), histories),
    "histories, unclipped": (leading_history(32.0, base=8).set_params(weights=UnclippedSaol()), histories),
    "online ITML": (online_itml(1.0, memory=100), one(Itml((0.05, 0.95), 100))),
}

SLOW = ("SAOL, bound 5", "restarted, leading history", *(name for name in CASES if "histories" in name))


def both(name):
    fast, slow = CASES[name]
    return clone(fast), MetricTracker(**{**fast.get_params(), "ensemble": slow})


def assert_close(ours, theirs, atol):
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=atol)


def assert_agree(fast, slow, rtol=1e-10):
    assert fast.experts_["length"].tolist() == slow.experts_["length"].tolist()
    assert_close(fast.experts_["weight"], slow.experts_["weight"], rtol)
    assert_close(fast.experts_["loss"], slow.experts_["loss"], rtol * (1.0 + np.nanmax(slow.experts_["loss"])))
    metrics = zip(fast.expert_metrics_, slow.expert_metrics_, strict=True)
    for ours, theirs in [*metrics, (fast._engine.ocelad.estimate, slow._engine.ocelad.estimate)]:
        assert_close(ours.M, theirs.M, rtol * np.abs(theirs.M).max())
        assert ours.mu == pytest.approx(theirs.mu, rel=rtol)


def power(name):
    """Which power of the unit of length its step should have, for M to have -2."""
    if "LogDet" in name:
        return 2 if "AdaGrad" in name else 0
    return -2 if any(word in name for word in ("AdaGrad", "FTRL", "von Neumann")) else -4


def is_diagonal(tracker):
    return all(isinstance(learner.estimate, Diagonal) for learner in tracker._engine.ocelad.ensemble.learners)


@pytest.mark.parametrize("name", [name for name in CASES if name not in SLOW])
def test_on_the_stream_of_the_study(name):
    """All changes and all speeds of rotation, at a third of the length."""
    rng = np.random.default_rng(0)
    world = DriftingClusters.draw(rng, points=300)
    segments = tuple(type(segment)(segment.steps // 3, segment.clustering, segment.drift) for segment in SCENARIO)
    fast, slow = both(name)
    for block in blocks(world, rng, 200, segments):
        for tracker in (fast, slow):
            tracker.partial_fit(block.pairs, block.y)
        assert_agree(fast, slow)
    assert fast._engine.t > 1500
    assert is_diagonal(fast) == (name != "online ITML" and "FTRL" not in name)
    assert not is_diagonal(slow)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e4])
@pytest.mark.parametrize("n", [1, 2, 7])
@pytest.mark.parametrize("name", CASES)
def test_on_zero_differences_and_repeated_pairs_of_any_size(name, n, scale):
    pairs, y = comparisons(seed=n, steps=150, n=n)
    pairs *= 4.0 * scale
    for zero in (slice(1), slice(50, 55)):
        pairs[zero, 1] = pairs[zero, 0]
    pairs[70:80] = pairs[69]
    y[75:80] *= -1
    fast, slow = both(name)
    if scale > 1.0:  # the same task in another unit: longer steps would only throw the metric to and fro
        for tracker in (fast, slow):
            step = replace(Step.of(tracker.step), size=Step.of(tracker.step).size * scale ** power(name))
            tracker.set_params(origin=tracker.origin / scale**2, step=step)
    for part in np.split(np.arange(150), [1, 2, 9, 60, 61]):
        for tracker in (fast, slow):
            tracker.partial_fit(pairs[part], y[part])
        assert_agree(fast, slow)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 30.0])
def test_von_neumann_is_exact_where_black_boxes_are_not(scale):
    """Black boxes take the logarithm of M, whose small eigenvalues are lost in rounding; here it is kept."""
    n, step, strength, moves, lifted = 8, 0.5, 0.01, 0, 0
    pairs, y = comparisons(seed=1, steps=400, n=n)
    pairs *= 4.0 * scale
    w, V, mu = np.zeros(n), np.eye(n), 1.0
    for u, label in zip(pairs[:, 0] - pairs[:, 1], y, strict=True):
        slope = label * PairLoss(u, label, Hinge()).slope(Metric((V * np.exp(w)) @ V.T, mu))
        short = min(step, 1.0 / (slope * (u @ u))) if slope > 0 else step
        least = w.max() + np.log(np.finfo(np.float64).eps)
        moves, lifted = moves + (slope != 0), lifted + (w < least).any()
        w, V = np.linalg.eigh((V * np.maximum(w, least)) @ V.T + short * slope * np.outer(u, u))
        w, mu = w - short * strength, max(1.0, mu - short * slope)
    tracker = mdml(step, VonNeumann(), strength).partial_fit(pairs, y)
    exact = (V * np.exp(w)) @ V.T
    assert_close(tracker.get_mahalanobis_matrix(), exact, 1e-11 * np.abs(exact).max())
    assert tracker.mu_ == pytest.approx(mu)
    assert moves > 50
    assert (lifted > 50) == (scale > 1.0)
    assert is_diagonal(tracker)


@pytest.mark.parametrize("name", CASES)
def test_weights_triplets_and_the_other_order(name):
    pairs, y = comparisons(seed=3, steps=90, n=4)
    pairs *= 3.0
    fast, slow = both(name)
    for tracker in (fast, slow):
        tracker.partial_fit(pairs[:40], y[:40])
        tracker.partial_fit(pairs[40:60], y[40:60], sample_weight=np.full(20, 0.5))
        if name != "online ITML":
            tracker.partial_fit_triplets(pairs[60:70].reshape(-1, 2, 4)[:9].reshape(6, 3, 4))
        tracker.partial_fit(pairs[70:], y[70:])
    assert_agree(fast, slow)
    fast, slow = (tracker.set_params(weights=OceladWeights(order="after")) for tracker in both(name))
    for tracker in (fast, slow):
        tracker.partial_fit(pairs, y)
    assert_agree(fast, slow)


def through_joblib(tracker):
    file = io.BytesIO()
    joblib.dump(tracker, file)
    file.seek(0)
    return joblib.load(file)


COPIES = {
    "deepcopy": copy.deepcopy,
    "pickle": lambda tracker: pickle.loads(pickle.dumps(tracker)),
    "joblib": through_joblib,
}


@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize("name", CASES)
def test_copies_go_on_by_themselves(name, how):
    pairs, y = comparisons(seed=4, steps=60, n=4)
    tracker, whole = (clone(CASES[name][0]) for _ in range(2))
    tracker.partial_fit(pairs[:30], y[:30])
    other = COPIES[how](tracker)
    before = tracker.get_mahalanobis_matrix()
    other.partial_fit(pairs[30:], y[30:])
    np.testing.assert_array_equal(tracker.get_mahalanobis_matrix(), before)
    whole.partial_fit(pairs[:30], y[:30]).partial_fit(pairs[30:], y[30:])
    np.testing.assert_array_equal(other.get_mahalanobis_matrix(), whole.get_mahalanobis_matrix())
    np.testing.assert_array_equal(other.experts_, whole.experts_)


@pytest.mark.parametrize("name", CASES)
def test_a_history_sees_the_same(name):
    pairs, y = comparisons(seed=5, steps=60, n=4)
    records = []
    for tracker in both(name):
        history = History(tracker, every=7)
        tracker.partial_fit(pairs, y)
        records.append(history.records)
    for field in records[0].dtype.names:
        np.testing.assert_allclose(records[0][field], records[1][field], rtol=1e-8, atol=1e-10)


# The rank-one step


def spectra(rng, n):
    """Of low rank, with ties, close together, or all over the place."""
    few = np.where(np.arange(n) < rng.integers(0, n + 1), 10.0 ** rng.uniform(-12, 6, n), 0.0)
    yield from (few, np.round(few, 1), 1 + 1e-14 * rng.integers(0, 5, n), 1 + 10.0 ** rng.uniform(-16, -8, n))
    yield rng.normal(size=n)


@pytest.mark.parametrize("n", [1, 2, 3, 8, 25])
def test_a_rank_one_step_diagonalises(n):
    """Against LAPACK; and eigenvectors are orthogonal, however close the eigenvalues."""
    rng = np.random.default_rng(n)
    for trial in range(100):
        for w in spectra(rng, n):
            V = np.linalg.qr(rng.normal(size=(n, n)))[0].copy()
            u = rng.normal(size=n) * 10.0 ** rng.uniform(-9, 3, n if trial % 2 else 1)
            u = V[0] if trial % 7 == 0 else 0 * u if trial % 11 == 0 else u
            a = rng.choice([-1.0, 1.0]) * 10.0 ** rng.uniform(-6, 4)
            values, vectors = turned(w, V, V @ u, a)
            W = (V.T * w) @ V + a * np.outer(u, u)
            size = np.abs(w).max() + abs(a) * (u @ u)
            assert_close((vectors.T * values) @ vectors, W, 1e-13 * size)
            assert_close(np.sort(values), np.linalg.eigvalsh(W), 1e-13 * size)
            assert_close(vectors @ vectors.T, np.eye(n), 1e-13)


def test_loose_eigenvectors_are_mended():
    pairs, y = comparisons(seed=6, steps=1020, n=6)
    tracker = comid(0.1).set_params(loss=Logistic()).partial_fit(pairs[:990], y[:990])  # each of them turns
    learner = tracker._engine.ocelad.ensemble.learners[0]
    learner.estimate.V[:] *= 1 + 1e-7
    tracker.partial_fit(pairs[990:], y[990:])
    assert learner.estimate.turns == 1020
    assert_close(learner.estimate.V @ learner.estimate.V.T, np.eye(6), 1e-13)
