"""Files of labelled points: what is remembered, what is drawn, and the tracker behind come back as they were."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

import ocelad
from forge import (
    assert_memory_within_the_limit,
    file_of,
    forged,
    joined,
    parts,
    put,
    through_file,
    with_entries,
)
from ocelad import FileError, Hinge, MetricTracker, Step, SupervisedMetricTracker
from streams import comparisons
from trackers import rice

N = 9
PAIRS, Y = comparisons(seed=3, steps=90, n=N)


X = PAIRS[:, 0]
NAMES = {
    "integers": (Y > 0).astype(np.int32) + 3,
    "words": np.where(Y > 0, "yes", "no"),
    "objects": np.where(Y > 0, "yes", "no").astype(object),
    "truths": Y > 0,
    "floats": Y.astype(np.float32),
}
BEHIND = {
    "defaults": {},
    "rice": {"tracker": rice()},
    "short": {"tracker": MetricTracker(memory=32, step=Step(max_rank=2))},
    "tracker": {
        "tracker": rice(step=Step(max_rank=3), origin=np.diag(np.arange(float(N)))),
        "n_components": 2,
        "pairs_per_point": 3,
    },
    "drawn": {"strategy": "random", "memory": 5, "random_state": 1},
    "consecutive": {"strategy": "consecutive"},
    "preprocessor": {"preprocessor": X},
}


@pytest.mark.parametrize("labels", NAMES.values(), ids=NAMES)
@pytest.mark.parametrize("cut", [1, 2, 40])
def test_labels_of_any_kind_are_kept(labels, cut, path):
    tracker = SupervisedMetricTracker(memory=8, random_state=0).partial_fit(X[:cut], labels[:cut])
    again = through_file(tracker, path)
    for each in (tracker, again):
        each.partial_fit(X[cut:], labels[cut:])
    assert file_of(again, path) == file_of(tracker, path)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, sparse.csr_matrix])
@pytest.mark.parametrize("options", BEHIND.values(), ids=BEHIND)
def test_labelled_points_continue_bit_for_bit(options, form, path):
    tracker = SupervisedMetricTracker(**options).partial_fit(form(X[:41]), Y[:41])
    again = through_file(tracker, path)
    assert str(again.get_params(deep=False)) == str(tracker.get_params(deep=False))
    for each in (tracker, again):
        each._random.set_state(again._random.get_state())  # else the one that is numpy's own
        each.partial_fit(form(X[41:]), Y[41:])
    assert file_of(again, path) == file_of(tracker, path)
    assert again.transform(X).tobytes() == tracker.transform(X).tobytes()


def test_names_of_columns_are_kept(path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=[f"x{k}" for k in range(N)])
    again = through_file(SupervisedMetricTracker(random_state=0).partial_fit(frame, Y), path)
    assert list(again.feature_names_in_) == list(frame.columns)


def test_what_a_file_of_labelled_points_cannot_hold_is_refused(path):
    class Mine(MetricTracker):
        pass

    for options, words in [
        ({"tracker": Mine()}, "tracker=.* cannot be saved"),
        ({"tracker": MetricTracker(loss=type("Steep", (Hinge,), {})())}, "loss=.* cannot be saved"),
        ({"random_state": np.random.RandomState(0)}, "random_state=.* cannot be saved"),
    ]:
        with pytest.raises(ValueError, match=words):
            ocelad.save(SupervisedMetricTracker(**options).partial_fit(X, Y), path)
    with pytest.raises(NotFittedError):
        ocelad.save(SupervisedMetricTracker(), path)
    changed = SupervisedMetricTracker(preprocessor=X).partial_fit(X, Y).set_params(preprocessor=None)
    with pytest.raises(ValueError, match="preprocessor has changed"):
        ocelad.save(changed, path)
    odd = SupervisedMetricTracker().partial_fit(X, Y)
    odd._random = np.random.RandomState(np.random.PCG64(0))
    with pytest.raises(ValueError, match="numpy's default RandomState"):
        ocelad.save(odd, path)
    assert not list(path.parent.iterdir())


FORGED_POINTS = {
    "keys": ("random", lambda a: a + 2**32, "624 integers of 32 bits"),
    "few-keys": ("random", lambda a: a[1:], "624 integers of 32 bits"),
    "nan": ("points.data", lambda a: a * np.nan, "finite data"),
    "outside": ("points.indices", lambda a: a + N, "indices outside 0, ..., 8"),
    "before": ("points.indices", lambda a: a - N, "indices outside 0, ..., 8"),
    "backward": ("points.indptr", lambda a: a[::-1], "rows of a CSR matrix"),
    "far": ("points.indptr", lambda a: a * 2**40, "rows of a CSR matrix"),
    "decreasing": ("points.indptr", lambda a: np.r_[a[0], a[-1], a[1:-2], a[-1]], "rows of a CSR matrix"),
}


@pytest.mark.parametrize("name", FORGED_POINTS)
def test_forged_points_are_refused(name, path):
    array, forge, words = FORGED_POINTS[name]
    ocelad.save(SupervisedMetricTracker().partial_fit(sparse.csr_array(X), Y), path)
    path.write_bytes(forged(path.read_bytes(), put(forge, array)))
    with pytest.raises(FileError, match=words):
        ocelad.load(path)


FORGED_ENTRIES = {
    "position": ({"random": {"position": 625, "normal": None}}, "a position among its numbers"),
    "no-normal": ({"random": {"position": 5}}, "entries of this version"),
    "kind": ({"labels": {"kind": "complex128", "values": [1] * 8}}, "cannot be in a file"),
    "type": ({"labels": {"kind": "int64", "values": [True] * 8}}, "must all be of type int"),
    "overflow": ({"labels": {"kind": "int8", "values": [300] * 8}}, "must be values of kind int8"),
    "fewer": ({"labels": {"kind": "int64", "values": [1] * 7}}, "as many as labels"),
    "long-word": ({"labels": {"kind": "str", "values": ["x" * 40000] + ["y"] * 40000}}, "labels take more than"),
    "number": ({"number": -1}, "number must be an integer >= 0"),
    "strategy": ({"strategy": "none"}, "strategy must be one of"),
    "memory": ({"memory": 0}, "memory must be an integer >= 1"),
    "features": ({"n_features": 8}, "points must be finite, of shape"),
    "seed": ({"random_state": "x"}, "cannot be used to seed"),
    "tracker": ({"tracker": "auto"}, "option tracker has an entry of its own"),
    "tracker-part": ({"tracker": {"step": 1.0}}, "option tracker names no known part"),
    "learned": ({"learned": {"options": {}}}, "its options are not those of MetricTracker"),
    "class": ({"estimator": "KMeans"}, "it holds a KMeans, which is not one of"),
    "other-class": ({"estimator": "MetricTracker"}, "its options are not those of MetricTracker"),
    "fleet": ({"estimator": "KeyedTrackers"}, "entries of this version"),
    "history": ({"estimator": "History"}, "it holds a History, which is not one of"),
}


@pytest.mark.parametrize("name", FORGED_ENTRIES)
def test_forged_entries_of_labelled_points_are_refused(name, path):
    entries, words = FORGED_ENTRIES[name]
    ocelad.save(SupervisedMetricTracker(memory=8).partial_fit(X, Y), path)
    path.write_bytes(with_entries(path, **entries))
    with pytest.raises(FileError, match=words):
        ocelad.load(path)


def test_a_tracker_of_other_features_is_refused(path):
    found = {}
    for n in (N, N - 1):
        found[n] = parts(file_of(SupervisedMetricTracker(memory=8).partial_fit(X[:, :n], Y), path))
    (options, entries, arrays), (_, other, smaller) = found[N], found[N - 1]
    learned = {name: array for name, array in smaller.items() if name.startswith("learned.")}
    path.write_bytes(joined(options, entries | {"learned": other["learned"]}, arrays | learned))
    with pytest.raises(FileError, match="learned has 8 features, points have 9"):
        ocelad.load(path)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_memory_stays_within_the_limit(form, path):
    points = np.random.default_rng(0).normal(size=(1000, 30))
    names = np.where(points[:, 0] > 0, "yes" * 40, "no")
    tracker = SupervisedMetricTracker(memory=1000, strategy="consecutive", preprocessor=points)
    ocelad.save(tracker.partial_fit(form(points), names), path)
    assert_memory_within_the_limit(path)
