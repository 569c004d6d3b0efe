"""Streaming baselines: what holds for all, and that their COMID learners are those of Algorithm 2."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

from ocelad import L1, FixedShare, LogDet, Logistic, MetricTracker, Pool, Restarted, Step
from ocelad.baselines import (
    STREAMING,
    Diffusion,
    Histories,
    Oracle,
    adagrad,
    comid,
    dynamic_mirror_descent,
    fixed_share,
    ftrl,
    leading_history,
    online_itml,
    restarted,
    saol,
)
from ocelad.data import DriftingClusters, haar
from ocelad.evaluate import knn_error
from streams import comparisons

N = 4


def matrix(tracker):
    return tracker.get_mahalanobis_matrix()


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


def of_rank_two(tracker):
    return tracker.set_params(step=replace(Step.of(tracker.step), max_rank=2))


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
        (lambda: of_rank_two(adagrad(1.0)).partial_fit(*one_pair()), "max_rank"),
        (lambda: of_rank_two(dynamic_mirror_descent(1.0)).partial_fit(*one_pair()), "max_rank"),
        (lambda: online_itml(1.0).set_params(origin=0.0).partial_fit(*one_pair()), "origin"),
        (lambda: comid(-1.0).partial_fit(*one_pair()), "step"),
    ],
)
def test_bad_options_are_named(make, name):
    with pytest.raises(ValueError, match=f"^{name} must"):
        make()


def one_pair():
    return np.eye(2)[None], [1]


# COMID learners, whose metrics are kept diagonal


def black_boxes(spawn):
    return Pool([spawn(1.0, None)])


DIAGONAL = {
    "comid": (comid(1.0), black_boxes),
    "identity": (comid(1.0).set_params(origin=0.5), black_boxes),
    "L1": (comid(1.0).set_params(regularizer=L1(0.1)), black_boxes),
    "max_rank": (of_rank_two(comid(1.0, 0.0)), black_boxes),
    "logistic": (comid(1.0).set_params(loss=Logistic()), black_boxes),
    "restarted": (restarted(2.0), Restarted),
    "restarted identity": (restarted(2.0).set_params(origin=0.5), Restarted),
    "restarted max_rank": (of_rank_two(restarted(2.0, 0.0)), Restarted),
    "restarted logistic": (restarted(2.0).set_params(loss=Logistic()), Restarted),
    "restarted fixed share": (restarted(2.0, weights=FixedShare()), Restarted),
    "saol": (saol(2.0), Restarted),
    "histories": (leading_history(2.0), Histories),
}


@pytest.mark.parametrize(("n", "weighted"), [(N, 99), (N, 4), (40, 99)], ids=["few", "mixed", "many"])
@pytest.mark.parametrize("name", DIAGONAL)
def test_diagonal_learners_are_comid_learners(name, n, weighted):
    """Also where some comparisons carry a weight, and others do not."""
    if name == "L1" and n > N:
        pytest.skip("L1 is slow")
    fast, slow = DIAGONAL[name]
    fast = clone(fast)
    steps = 90 if n == N else 40
    pairs, y = comparisons(seed=2, steps=90, n=n)
    weight = np.where(np.arange(90) // 10 % weighted == weighted // 2, 0.5, 1.0)
    both = [fast, MetricTracker(**{**fast.get_params(), "ensemble": slow})]
    for part in np.split(np.arange(steps), steps // 10):
        for tracker in both:
            tracker.partial_fit(pairs[part], y[part], sample_weight=weight[part])
        np.testing.assert_allclose(matrix(both[0]), matrix(both[1]), atol=1e-10)
        np.testing.assert_allclose(both[0].experts_["loss"], both[1].experts_["loss"], atol=1e-10)
        np.testing.assert_allclose(both[0].discarded_, both[1].discarded_, atol=1e-10)
        assert both[0].mu_ == pytest.approx(both[1].mu_)


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
