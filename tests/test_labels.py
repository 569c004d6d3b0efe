"""What is similar and what is different may be said in several ways, and in the same ways everywhere."""

import numpy as np
import pytest

import ocelad
from ocelad import Closure, KeyedTrackers, MetricTracker, SupervisedMetricTracker
from ocelad.baselines import Windowed
from ocelad.baselines.batch import ITML
from ocelad.watch.prequential import progressive
from streams import comparisons

PAIRS, Y = comparisons(seed=3, steps=80, n=4, change=False)
TRUTH = Y > 0


def in_pandas(kind):
    def labels():
        pandas = pytest.importorskip("pandas")
        if "pyarrow" in kind:
            pytest.importorskip("pyarrow")
        return pandas.Series(TRUTH if "bool" in kind else Y, dtype=kind)

    return labels


FORMS = {
    "booleans": lambda: TRUTH,
    "Python's": TRUTH.tolist,
    "objects": lambda: TRUTH.astype(object),
    "objects of numbers": lambda: Y.astype(object),
    "polars": lambda: pytest.importorskip("polars").Series(TRUTH.tolist()),
    **{kind: in_pandas(kind) for kind in ("bool", "boolean", "Int64", "bool[pyarrow]", "int64[pyarrow]")},
}
ZEROS = {
    "zeros and ones": lambda: TRUTH.astype(int),
    "fractions": lambda: TRUTH.astype(float).tolist(),
    "pandas' Int64": lambda: pytest.importorskip("pandas").Series(TRUTH.astype(int), dtype="Int64"),
}
LEARNED = MetricTracker().fit(PAIRS, Y)


def batch(**_):
    return ITML(max_iter=2000)


USES = {
    "partial_fit": lambda y: ocelad.dumps(MetricTracker().partial_fit(PAIRS, y)),
    "partial_fit_implied": lambda y: ocelad.dumps(MetricTracker().partial_fit_implied(PAIRS, y)),
    "fit": lambda y: MetricTracker().fit(PAIRS, y).threshold_,
    "score": lambda y: LEARNED.score(PAIRS, y),
    "calibrate_threshold": lambda y: MetricTracker().fit(PAIRS, Y).calibrate_threshold(PAIRS, y).threshold_,
    "a fleet": lambda y: ocelad.dumps(KeyedTrackers().partial_fit(["a"] * 80, PAIRS, y)["a"]),
    "progressive": lambda y: progressive(MetricTracker(), PAIRS, y).loss.tolist(),
    "a batch method": lambda y: batch().fit(PAIRS, y).get_metric().matrix.tolist(),
    "a window": lambda y: Windowed(batch(), window=40, every=40).partial_fit(PAIRS, y).threshold_,
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("form", FORMS)
def test_truth_values_are_signs(form, use):
    assert USES[use](FORMS[form]()) == USES[use](Y)


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("form", ZEROS)
def test_zero_is_different_and_a_warning_says_so(form, use):
    with pytest.warns(UserWarning, match="0 is read as -1"):
        found = USES[use](ZEROS[form]())
    assert found == USES[use](Y)


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.where(np.arange(80) % 4 == 0, 0, Y), "^y must be .* found 0 beside -1: which of them is 'different'"),
        (np.where(np.arange(80) % 2 == 0, 0, -1), "^y must be .* found 0 beside -1"),
        ([None, *TRUTH[1:].tolist()], "^y must be .* found None at index 0"),
        (
            np.where(TRUTH, "same", "other"),
            r"^y must be .* found '(same|other)' at index 0; compare with the word that means similar: y ==",
        ),
        (TRUTH[:-1], r"^y must be .* got shape \(79,\)"),
    ],
)
def test_mixtures_are_refused(use, y, message):
    with pytest.raises(ValueError, match=message):
        USES[use](y)


def test_one_kind_of_label_is_enough():
    for y in (np.zeros(80, dtype=bool), np.ones(80, dtype=bool)):
        signs = np.where(y, 1, -1)
        assert USES["partial_fit"](y) == USES["partial_fit"](signs)


def test_a_closure_takes_truth_values():
    one, other = Closure(random_state=0), Closure(random_state=0)
    for (i, j), y in zip([(0, 1), (1, 2), (2, 3)], [True, np.True_, False], strict=True):
        one.answer(i, j, y)
        other.answer(i, j, 1 if y else -1)
    assert ocelad.dumps(one) == ocelad.dumps(other)
    assert one.answers() == [(0, 1, 1), (1, 2, 1), (2, 3, -1)]
    assert all(type(y) is int for _, _, y in one.answers())


def test_classes_stay_what_they_are():
    """True and False, or 0 and 1, are two classes of points; similar are points of one class."""
    X = PAIRS[:, 0]
    by_sign = SupervisedMetricTracker(random_state=0).fit(X, Y)
    for y in (TRUTH, TRUTH.astype(int), np.where(TRUTH, "a", "b"), FORMS["boolean"]()):
        tracker = SupervisedMetricTracker(random_state=0).fit(X, y)
        np.testing.assert_array_equal(tracker.transform(X), by_sign.transform(X))
