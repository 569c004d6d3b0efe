"""What a newcomer may give in place of pairs and points: the error says what was meant."""

import re

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import ocelad
from ocelad import KeyedTrackers, MetricTracker
from ocelad.neighbors import MovingIndex
from streams import comparisons

PAIRS, Y = comparisons(seed=0, steps=25, n=4)
X, Z = PAIRS[:, 0], PAIRS[:, 1]


def hint(given, method="partial_fit"):
    tracker = MetricTracker().partial_fit(PAIRS, Y)
    before = ocelad.dumps(tracker)
    with pytest.raises(ValueError, match="expected by MetricTracker") as caught:
        getattr(tracker, method)(given, *[Y][: method == "partial_fit"])
    assert ocelad.dumps(tracker) == before
    return "\n".join(caught.value.__notes__)


def vectors():
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame({"a": list(X), "b": list(Z)})


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (lambda: PAIRS[0], r"shape \(1, 2, n\): write \[pair\], and its label \[y\]"),
        (lambda: (X[0], Z[0]), r"write \[pair\]"),
        (lambda: (X, Z), r"^2 arrays .* become pairs of shape \(m, 2, n\) by np.stack\(\[left, right\], axis=1\)"),
        (lambda: X - Z, r"The shape is \(25, 4\). 2 arrays .* become pairs of shape \(m, 2, n\) by np.stack"),
        (lambda: X, "SupervisedMetricTracker learns from points and their classes"),
        (lambda: [["cat", "dog"]], "rows or names of points, give the points: preprocessor="),
        (lambda: [[0, 1], [1, 2], [2, 3]], "preprocessor="),
        (list, r"^No pairs at all are an array of shape \(0, 2, n\)"),
        (vectors, r"^A column of vectors is .* np.stack\(column\), .* of shape \(m, 2, n\) by np.stack"),
        (lambda: np.zeros((5, 3, 4)), r"The shape is \(5, 3, 4\)"),
    ],
)
def test_pairs(given, expected):
    assert re.search(expected, hint(given()))


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (lambda: np.ones((90, 9)), r"an array of shape \(90, 9\), dtype float64"),
        (lambda: np.ones((2, 384)), r"an array of shape \(2, 384\), dtype float64"),
        (lambda: np.ones((90, 3, 9)), r"an array of shape \(90, 3, 9\), dtype float64"),
        (lambda: (X.repeat(9, axis=0), Z.repeat(9, axis=0)), r"an array of shape \(2, 225, 4\), dtype float64"),
        (vectors, r"an array of shape \(25, 2\), dtype object"),
    ],
)
def test_much_input_is_not_printed(given, kind):
    with pytest.raises(ValueError, match=rf"\ninput=\[\[.{{30,60}}\.\.\. \({kind}\)") as caught:
        MetricTracker().partial_fit(given(), Y)
    assert len(str(caught.value)) < 300


def test_short_input_is_printed_as_it_is():
    for given in (np.ones((2, 5, 2)), np.ones((2, 9))):
        with pytest.raises(ValueError, match=r"input=" + re.escape(str(given))):
            MetricTracker().partial_fit(given, [1, 1])


def test_weights_of_another_shape():
    weight = np.ones((25, 1))
    with pytest.raises(
        ValueError, match=r"^sample_weight must be .* got shape \(25, 1\); sample_weight.ravel\(\)"
    ):
        MetricTracker().partial_fit(PAIRS, Y, sample_weight=weight)
    weight[7] = -2.0
    with pytest.raises(ValueError, match=r"^sample_weight must be .* found -2 at index 7$"):
        MetricTracker().partial_fit(PAIRS, Y, sample_weight=weight.ravel())


def test_a_table_that_cannot_be_saved_is_not_printed():
    pandas = pytest.importorskip("pandas")
    tracker = MetricTracker(preprocessor=pandas.DataFrame(X)).partial_fit([[0, 1]], [1])
    with pytest.raises(
        ValueError, match=r"^preprocessor=.*\(a DataFrame of shape \(25, 4\)\) cannot be saved"
    ) as caught:
        ocelad.dumps(tracker)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("ask", ["partial_fit", "partial_fit_implied"])
def test_keys_in_the_place_of_pairs(ask):
    fleet = KeyedTrackers()
    with pytest.raises(ValueError, match="expected by KeyedTrackers") as caught:
        getattr(fleet, ask)(PAIRS, Y, ["ann"] * 25)
    assert "Keys come first: partial_fit(keys, pairs, y)" in caught.value.__notes__[-1]
    with pytest.raises(ValueError, match="expected by KeyedTrackers") as caught:
        fleet.partial_fit(["ann"] * 2, np.ones((2, 3)), [1, 1])
    assert "Keys come first" not in "".join(caught.value.__notes__)


def test_what_the_hints_say_works():
    one, other, third = MetricTracker(), MetricTracker(), MetricTracker()
    one.partial_fit(np.stack([X, Z], axis=1), Y)
    for pair, y in zip(PAIRS, Y, strict=True):
        other.partial_fit([pair], [y])
    third.partial_fit([(x, z) for x, z in zip(X, Z, strict=True)], Y.tolist())
    assert ocelad.dumps(one) == ocelad.dumps(other) == ocelad.dumps(third)
    table = vectors()
    again = np.stack([np.stack(table["a"]), np.stack(table["b"])], axis=1)
    np.testing.assert_array_equal(again, PAIRS)
    assert one.transform([X[0]]).shape == (1, 4)


def test_two_rows_of_two_sides_are_not_taken_for_two_pairs():
    tracker = MetricTracker().partial_fit(PAIRS, Y)
    for ask in (tracker.predict, lambda pairs: tracker.partial_fit(pairs, [1, -1])):
        with pytest.raises(ValueError, match=r"must be one array .*: np\.stack\(\[a, b\], axis=1\) makes it of 2"):
            ask((X[:2], Z[:2]))
    for given in (PAIRS[:2], list(PAIRS[:2]), tuple(PAIRS[:2].tolist())):
        np.testing.assert_array_equal(tracker.pair_distance(given), tracker.pair_distance(PAIRS[:2]))


def test_triplets_and_points():
    assert "become triplets of shape (m, 3, n) by np.stack([a, b, c], axis=1)" in hint(
        (X, Z, X), "partial_fit_triplets"
    )
    assert "write [triplet]" in hint((X[0], Z[0], X[1]), "partial_fit_triplets")
    assert hint(X[0], "transform") == "A single point has shape (1, n): write [point]."
    assert "pairs[:, 0]" in hint(PAIRS, "transform")


@pytest.mark.parametrize("y", [1, True])
def test_a_bare_label(y):
    with pytest.raises(ValueError, match=r"y must be .* got shape \(\); a single label is written \[label\]"):
        MetricTracker().partial_fit(PAIRS[:1], y)


def test_where_a_wrong_label_is():
    wrong = np.where(np.arange(25) == 7, 3, Y)
    with pytest.raises(ValueError, match=r"^y must be .*, found 3 at index 7$"):
        MetricTracker().partial_fit(PAIRS, wrong)
    with pytest.raises(
        ValueError, match=r"^When training on pairs, .* Found an incorrect value.\n.* found 3 at index 7$"
    ):
        MetricTracker().fit(PAIRS, wrong)
    with pytest.raises(ValueError, match=r"^y must be .*, got None$"):
        MetricTracker().partial_fit(PAIRS, None)


def test_a_column_of_labels():
    with pytest.raises(ValueError, match=r"got shape \(25, 1\); y.ravel\(\) is of that shape"):
        MetricTracker().fit(PAIRS, Y[:, None])


def test_a_dictionary_of_points():
    points = {"cat": X[0], "dog": X[1]}
    with pytest.raises(ValueError, match=r"preprocessor must be .* got a dictionary: give a function of its keys"):
        MetricTracker(preprocessor=points).partial_fit([["cat", "dog"]], [1])
    tracker = MetricTracker(preprocessor=lambda keys: np.array([points[key] for key in keys]))
    assert tracker.partial_fit([["cat", "dog"]], [1]).n_features_in_ == 4


def test_a_single_query():
    index = MovingIndex(MetricTracker().partial_fit(PAIRS, Y))
    index.add(X)
    with pytest.raises(ValueError, match=r"X must be .* got shape \(4,\); a single point is written \[point\]"):
        index.kneighbors(X[0])


# Nothing has been learned from


@pytest.mark.parametrize(
    "ask",
    [
        lambda tracker: tracker.predict(PAIRS),
        lambda tracker: tracker.predict_proba(PAIRS),
        lambda tracker: tracker.pair_distance(PAIRS),
        lambda tracker: tracker.mixture_proba(PAIRS),
        lambda tracker: tracker.transform(X),
        lambda tracker: tracker.get_mahalanobis_matrix(),
        lambda tracker: tracker.experts_,
        lambda tracker: tracker.mu_,
        lambda tracker: tracker.threshold_,
        lambda tracker: tracker.score(PAIRS, Y),
        ocelad.dumps,
    ],
)
def test_after_an_empty_first_batch(ask):
    tracker = MetricTracker().partial_fit(PAIRS[:0], [])
    with pytest.raises(NotFittedError, match=r"has not learned from any comparison yet.*an empty batch teaches"):
        ask(tracker)
    tracker.partial_fit(PAIRS, Y)
    ask(tracker)


def test_an_empty_fit_and_an_empty_fleet():
    tracker = MetricTracker().partial_fit(PAIRS, Y)
    before = ocelad.dumps(tracker)
    with pytest.raises(ValueError, match=r"0 sample.* pairs is empty, nothing to learn from"):
        tracker.fit(PAIRS[:0], [])
    assert ocelad.dumps(tracker) == before
    fleet = KeyedTrackers().partial_fit([], PAIRS[:0], [])
    assert len(fleet) == 0
    assert (fleet.predict(["a"] * 25, PAIRS) == 0).all()
