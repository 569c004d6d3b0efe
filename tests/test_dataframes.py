"""Tables as people have them: numbers in any kind of column are taken, all else is named by its column."""

import numpy as np
import pytest

import ocelad
from ocelad import KeyedTrackers, MetricTracker, SupervisedMetricTracker
from ocelad.baselines.batch import LMNN
from ocelad.dataframes import numbers
from ocelad.neighbors import MovingIndex
from streams import comparisons

pd = pytest.importorskip("pandas")
PAIRS, Y = comparisons(seed=0, steps=60, n=4)
PAIRS = PAIRS.copy()
PAIRS[..., 1] = PAIRS[..., 1] > 0
PAIRS[..., 2] = np.round(9 * PAIRS[..., 2])
NAMES = ["length", "new", "count", "width"]
LEFT, RIGHT = (pd.DataFrame(PAIRS[:, side], columns=NAMES) for side in (0, 1))
PLAIN = MetricTracker().partial_fit(PAIRS, Y)


def typed(frame, **kinds):
    return frame.astype(kinds)


def nullable(frame):
    return typed(frame, length="Float64", new="boolean", count="Int64")


def arrow_backed(frame):
    pytest.importorskip("pyarrow")
    return typed(frame, length="double[pyarrow]", new="bool[pyarrow]", count="int64[pyarrow]")


def plain(frame):
    return typed(frame, new=bool, count="int16", width="float32").astype({"width": float})


def of_objects(frame):
    return frame.astype(object)


def in_polars(frame):
    polars = pytest.importorskip("polars")
    return polars.DataFrame({name: plain(frame)[name].to_numpy() for name in NAMES})


def in_arrow(frame):
    return pytest.importorskip("pyarrow").table({name: plain(frame)[name].to_numpy() for name in NAMES})


FORMS = [nullable, arrow_backed, plain, of_objects, in_polars, in_arrow]


@pytest.fixture(params=FORMS)
def form(request):
    return request.param


def rounded(form, frame):
    """What is in the table, for one of the forms has less room for a number."""
    made = plain(frame) if form in (plain, in_polars, in_arrow) else frame
    return made.to_numpy(dtype=float)


def test_pairs(form):
    pairs = np.stack([rounded(form, side) for side in (LEFT, RIGHT)], axis=1)
    tracker = MetricTracker().partial_fit((form(LEFT), form(RIGHT)), Y)
    np.testing.assert_array_equal(tracker.pair_distance([form(LEFT), form(RIGHT)]), tracker.pair_distance(pairs))
    assert tracker.mu_ == MetricTracker().partial_fit(pairs, Y).mu_


def test_points(form):
    X, y = rounded(form, LEFT), np.arange(60) % 2
    if form is not in_arrow:  # scikit-learn does not know these names
        named = MetricTracker().partial_fit((form(LEFT), form(RIGHT)), Y)
        np.testing.assert_array_equal(named.transform(form(LEFT)), named.get_metric().transform(X))
    table = SupervisedMetricTracker(random_state=0).fit(form(LEFT), y)
    array = SupervisedMetricTracker(random_state=0).fit(X, y)
    np.testing.assert_array_equal(table.transform(form(LEFT)), array.transform(X))
    index = MovingIndex(PLAIN)
    index.add(form(LEFT))
    np.testing.assert_array_equal(index.kneighbors(form(LEFT), 1)[0], 0.0)


def test_a_preprocessor(form):
    tracker = MetricTracker(preprocessor=form(LEFT))
    rows = np.arange(60)[:, None] + [0, 1]
    tracker.partial_fit(rows[:50], Y[:50])
    X = rounded(form, LEFT)
    np.testing.assert_array_equal(
        tracker.get_metric().matrix, MetricTracker().partial_fit(X[rows[:50]], Y[:50]).get_metric().matrix
    )


def broken(column, value, row=2):
    frame = LEFT.astype({column: object})
    frame.loc[row, column] = value
    return frame


def without_row_2(frame):
    return frame.where(pd.Series(np.arange(60) != 2), axis=0)


BROKEN = {
    "NA": (without_row_2(nullable(LEFT)), r"column 'length' has a missing value \(NaN\) in row 2"),
    "boolean NA": (
        LEFT.assign(new=pd.array([True, True, None] * 20, dtype="boolean")),
        r"column 'new' has a missing value \(NaN\) in row 2",
    ),
    "NaN": (without_row_2(LEFT), r"column 'length' has a missing value \(NaN\) in row 2"),
    "None": (broken("count", None), r"column 'count' has a missing value \(NaN\) in row 2"),
    "infinity": (LEFT.assign(width=np.r_[0.0, np.inf, np.zeros(58)]), "column 'width' has inf in row 1"),
    "text": (LEFT.assign(count="many"), r"column 'count' holds text \(.*\), 'many' in row 0"),
    "a text": (broken("count", "many"), "column 'count' holds text, 'many' in row 2"),
    "categories": (LEFT.astype({"count": "category"}), r"column 'count' holds categories \(category\)"),
    "dates": (
        LEFT.assign(width=pd.date_range("2020-01-01", periods=60)),
        r"column 'width' holds dates or times \(datetime64.*2020-01-01",
    ),
    "a huge number": (broken("count", 10**400), "column 'count' holds a number that no float can hold in row 2"),
    "intervals": (
        LEFT.assign(width=pd.interval_range(0, 60)),
        r"column 'width' holds intervals \(interval.*\), '\(0, 1\]' in row 0",
    ),
    "lists": (LEFT.assign(width=[[1.0]] * 60), r"column 'width' holds a list, \[1.0\] in row 0"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_is_wrong_is_named(case):
    frame, message = BROKEN[case]
    tracker = MetricTracker().partial_fit((LEFT, RIGHT), Y)
    index = MovingIndex(tracker)
    index.add(LEFT)
    before = ocelad.dumps(tracker)
    for ask, name in (
        (lambda: tracker.partial_fit((RIGHT, frame), Y), r"pairs\[1\]"),
        (lambda: tracker.predict((frame, RIGHT)), r"pairs\[0\]"),
        (lambda: MetricTracker().fit((frame, RIGHT), Y), r"pairs\[0\]"),
        (lambda: KeyedTrackers().partial_fit(["a"] * 60, (frame, RIGHT), Y), r"pairs\[0\]"),
        (lambda: tracker.transform(frame), "X"),
        (lambda: index.kneighbors(frame), "X"),
        (lambda: index.add(frame), "X"),
        (lambda: SupervisedMetricTracker().fit(frame, np.arange(60) % 2), "X"),
        (lambda: SupervisedMetricTracker().fit(LEFT, np.arange(60) % 2).transform(frame), "X"),
        (lambda: LMNN().fit(frame, np.arange(60) % 2), "X"),
        (lambda: MetricTracker(preprocessor=frame).partial_fit([[0, 1], [1, 2]], [1, -1]), "preprocessor"),
    ):
        with pytest.raises(ValueError, match=rf"^{name} must be .*: {message}"):
            ask()
    assert ocelad.dumps(tracker) == before
    assert len(index) == 60


def test_dates_and_categories_of_polars_are_no_numbers():
    polars = pytest.importorskip("polars")
    days = polars.Series(range(60)).cast(polars.Date)
    for column, kind in (
        (days, r"dates or times \(Date\)"),
        (days.cast(str), r"text \(String\)"),
        (days.cast(str).cast(polars.Categorical), "categories"),
    ):
        frame = in_polars(LEFT).with_columns(when=column)
        with pytest.raises(ValueError, match=rf"pairs\[0\] must be .*: column 'when' holds {kind}"):
            MetricTracker().partial_fit((frame, frame), Y)


def test_wide_integers_of_polars_are_numbers():
    polars = pytest.importorskip("polars")
    for more in ({}, {"b": polars.Series([0.5, 1.5])}):
        columns = {"a": polars.Series([2**100, -1], dtype=polars.Int128), **more}
        found = numbers(polars.DataFrame(columns), "X", "a table of finite numbers")
        np.testing.assert_array_equal(found[:, 0], [2.0**100, -1.0])
        assert found.shape == (2, len(columns))
    missing = polars.DataFrame({"a": polars.Series([None, 3], dtype=polars.Int128)})
    np.testing.assert_array_equal(numbers(missing, "X", "a table of numbers"), [[np.nan], [3.0]])


def test_a_missing_value_in_a_preprocessor_matters_where_it_is_asked_for():
    tracker = MetricTracker(preprocessor=without_row_2(LEFT))
    tracker.partial_fit([[0, 1], [1, 3]], [1, -1])
    with pytest.raises(ValueError, match=r"column 'length' has a missing value \(NaN\) in row 2"):
        tracker.predict([[0, 1], [1, 2]])


def test_a_preprocessor_of_text_is_for_features():
    words = pd.DataFrame({"word": ["a", "bb", "ccc", "dd"]})
    tracker = MetricTracker(preprocessor=words, features=lambda rows: [[len(word)] for (word,) in rows])
    assert tracker.partial_fit([[0, 1], [1, 2]], [1, -1]).n_features_in_ == 1


def test_columns_that_features_makes_are_named():
    tracker = MetricTracker(features=lambda X: pd.DataFrame({"kind": ["x"] * len(X)}))
    with pytest.raises(ValueError, match="column 'kind' holds text"):
        tracker.partial_fit(PAIRS, Y)
