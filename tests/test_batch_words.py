"""All batch methods speak one language, refuse what they cannot do, and do what they are for."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine
from sklearn.decomposition import PCA as ScikitPCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier, NeighborhoodComponentsAnalysis
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import estimator_checks_generator

from ocelad.baselines import ITML, LDA, LMNN, MMC, NCA, PCA
from streams import comparisons

IRIS, SPECIES = load_iris(return_X_y=True)
WINE, CULTIVAR = load_wine(return_X_y=True)
PAIRS, Y = comparisons(seed=0, steps=120, n=3, change=False)
BY_PAIRS, BY_LABELS = [ITML(), MMC()], [LMNN(), NCA(), LDA(), PCA()]


def name(estimator):
    return type(estimator).__name__


@pytest.mark.parametrize("estimator", BY_PAIRS + BY_LABELS, ids=name)
def test_the_words_agree(estimator):
    X, y = (PAIRS, Y) if estimator in BY_PAIRS else (WINE, CULTIVAR)
    points = PAIRS[:, 0] if estimator in BY_PAIRS else WINE
    learned = clone(estimator).fit(X, y)
    L, M = learned.components_, learned.get_mahalanobis_matrix()
    np.testing.assert_allclose(L.T @ L, M, rtol=1e-9, atol=1e-9 * np.abs(M).max())
    np.testing.assert_allclose(learned.transform(points), points @ L.T, rtol=1e-7, atol=1e-7)
    d = learned.pair_distance(points[:10].reshape(5, 2, -1))
    Z = learned.transform(points[:10])
    np.testing.assert_allclose(d, np.linalg.norm(Z[::2] - Z[1::2], axis=1), rtol=1e-6)
    np.testing.assert_allclose(d[0], learned.get_metric()(points[0], points[1]), rtol=1e-9)
    again = pickle.loads(pickle.dumps(learned))
    np.testing.assert_array_equal(again.components_, L)
    assert clone(learned).get_params() == estimator.get_params()
    short = clone(estimator).set_params(n_components=2).fit(X, y)
    assert short.components_.shape == (2, points.shape[1])
    if name(estimator) not in ("NCA",):  # which minimises anew
        np.testing.assert_allclose(short.components_, L[:2], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("estimator", BY_PAIRS, ids=name)
def test_pairs_learners_judge_pairs(estimator):
    learned = clone(estimator).fit(PAIRS, Y)
    d = learned.pair_distance(PAIRS)
    np.testing.assert_array_equal(learned.predict(PAIRS), np.where(d <= learned.threshold_, 1, -1))
    assert (learned.predict(PAIRS) == Y).mean() > 0.6
    strict = clone(estimator).fit(PAIRS, Y, calibration_params={"strategy": "max_tnr", "min_rate": 0.0})
    assert (strict.predict(PAIRS)[Y < 0] == -1).all()
    points, rows = PAIRS.reshape(-1, 3), np.arange(2 * len(Y)).reshape(-1, 2)
    by_number = clone(estimator).set_params(preprocessor=points).fit(rows, Y)
    np.testing.assert_array_equal(by_number.components_, learned.components_)


def test_what_scikit_learn_does_is_what_it_does():
    def same(ours, theirs):
        shift = ours.transform(WINE) - theirs.transform(WINE)  # theirs is centred
        np.testing.assert_allclose(shift, np.broadcast_to(shift[0], shift.shape), atol=1e-6)

    same(
        NCA(n_components=2, init="pca").fit(WINE, CULTIVAR),
        NeighborhoodComponentsAnalysis(2, init="pca").fit(WINE, CULTIVAR),
    )
    same(LDA().fit(WINE, CULTIVAR), LinearDiscriminantAnalysis().fit(WINE, CULTIVAR))
    same(
        LDA(shrinkage=0.1).fit(WINE, CULTIVAR),
        LinearDiscriminantAnalysis(solver="eigen", shrinkage=0.1).fit(WINE, CULTIVAR),
    )
    for whiten in (False, True):
        same(PCA(whiten=whiten).fit(WINE), ScikitPCA(whiten=whiten, svd_solver="full").fit(WINE))


CHECKS = [(each, check) for estimator in BY_LABELS for each, check in estimator_checks_generator(estimator)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("estimator", "check"), CHECKS, ids=[f"{name(each)}-{check.func.__name__}" for each, check in CHECKS]
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


# What cannot be done is refused, and nothing is lost


@pytest.mark.parametrize(
    ("estimator", "X", "y", "message"),
    [
        (ITML(gamma=0.0), PAIRS, Y, "gamma must be"),
        (ITML(gamma=np.inf), PAIRS, Y, "gamma must be"),
        (ITML(bounds=(2.0, 1.0)), PAIRS, Y, "bounds must be"),
        (ITML(bounds=3.0), PAIRS, Y, "bounds must be"),
        (ITML(prior="identity"), PAIRS, Y, "prior must be"),
        (ITML(prior=np.diag([1.0, 1.0, 0.0])), PAIRS, Y, "prior must be positive definite"),
        (ITML(tol=-1.0), PAIRS, Y, "tol must be"),
        (ITML(), PAIRS[:, [0, 0]], Y, "two different points"),
        (ITML(), PAIRS, Y * 2, "only values in"),
        (ITML(), PAIRS[:0], Y[:0], "0 sample"),
        (MMC(), PAIRS, np.ones(len(Y)), "different pair"),
        (MMC(), PAIRS, -np.ones(len(Y)), "similar pair"),
        (MMC(barrier=-1.0), PAIRS, Y, "barrier must be"),
        (MMC(max_iter=0), PAIRS, Y, "max_iter must be"),
        (MMC(n_components=9), PAIRS, Y, "n_components"),
        (MMC(), np.full_like(PAIRS, np.nan), Y, "NaN"),
        (LMNN(0), WINE, CULTIVAR, "n_neighbors must be"),
        (LMNN(push=1.0), WINE, CULTIVAR, "push must be"),
        (LMNN(rounding=0.0), WINE, CULTIVAR, "rounding must be"),
        (LMNN(), WINE, np.zeros(len(WINE)), "at least two classes"),
        (LMNN(), WINE, np.arange(len(WINE)), "one class of two points"),
        (LMNN(), WINE, CULTIVAR[1:], "inconsistent numbers"),
        (LDA(n_components=3), WINE, CULTIVAR, "n_components must be at most 2"),
        (PCA(n_components=0), WINE, CULTIVAR, "n_components"),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:The number of unique classes")
def test_refusals(estimator, X, y, message):
    good = (PAIRS, Y) if isinstance(estimator, (ITML, MMC)) else (WINE, CULTIVAR)
    learned = type(estimator)().fit(*good)
    before = learned.components_
    with pytest.raises(ValueError, match=message):
        learned.set_params(**estimator.get_params()).fit(X, y)
    np.testing.assert_array_equal(learned.components_, before)


@pytest.mark.parametrize("estimator", BY_PAIRS + BY_LABELS, ids=name)
def test_nothing_before_fit(estimator):
    for ask in (lambda: estimator.components_, lambda: estimator.transform(WINE), estimator.get_metric):
        with pytest.raises(NotFittedError, match="fit"):
            ask()


def test_stopping_early_is_said():
    wine = WINE[:60].reshape(30, 2, -1)
    for estimator, X, y in (
        (LMNN(tol=1e-12), WINE, CULTIVAR),
        (ITML(prior=1.0, gamma=10.0), wine, Y[:30]),
        (MMC(tol=1e-12), PAIRS, Y),
    ):
        with pytest.warns(ConvergenceWarning, match="stopped before"):
            estimator.set_params(max_iter=1).fit(X, y)


def test_interruption_keeps_what_was_learned(monkeypatch):
    learned = LMNN().fit(IRIS, SPECIES)
    before = learned.components_

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("ocelad.baselines.batch.lmnn.descend", interrupted)
    with pytest.raises(KeyboardInterrupt):
        learned.fit(WINE, CULTIVAR)
    np.testing.assert_array_equal(learned.components_, before)
    assert learned.n_features_in_ == 4


# What it is for


def test_neighbours_of_raw_features():
    """Wine's features are in wildly different units: a learned metric finds out."""
    plain = 1 - cross_val_score(KNeighborsClassifier(), WINE, CULTIVAR).mean()
    learned = 1 - cross_val_score(make_pipeline(LMNN(), KNeighborsClassifier()), WINE, CULTIVAR).mean()
    assert plain > 0.25
    assert learned < 0.06
    rows = np.random.default_rng(0).integers(len(WINE), size=(400, 2))
    alike = np.where(CULTIVAR[rows[:, 0]] == CULTIVAR[rows[:, 1]], 1, -1)
    for estimator in BY_PAIRS:
        Z = clone(estimator).fit(WINE[rows], alike).transform(WINE)
        assert 1 - cross_val_score(KNeighborsClassifier(), Z, CULTIVAR).mean() < 0.06
