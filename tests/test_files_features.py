"""Features in files: known transformers by parts, to the bit; others by name; what is out of order is refused."""

import copy
import json
import pickle

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from sklearn.decomposition import PCA
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import ocelad
from forge import assert_memory_within_the_limit, forged, parts, through_file
from ocelad import FileError, KeyedTrackers, MetricTracker, SupervisedMetricTracker
from ocelad.cli import main
from ocelad.neighbors import MovingIndex
from ocelad.state import pack, unpack
from ocelad.state.features import Unsaved, as_saved
from streams import comparisons

N = 5
PAIRS, Y = comparisons(seed=0, steps=60, n=N)
POINTS = 3.0 * PAIRS.reshape(-1, N) + np.arange(N)
TRANSFORMERS = {
    "scaler": StandardScaler(),
    "scaler-mean": StandardScaler(with_std=False),
    "scaler-std": StandardScaler(with_mean=False),
    "scaler-neither": StandardScaler(with_mean=False, with_std=False),
    "nystroem": Nystroem(n_components=11, random_state=0),
    "nystroem-gamma": Nystroem(gamma=1, n_components=7, random_state=0),
    "sampler": RBFSampler(n_components=9, gamma=0.5, random_state=0),
    "sampler-scale": RBFSampler(n_components=9, gamma="scale", random_state=0),
    "pca": PCA(3),
    "pca-one": PCA(1),
    "pca-all": PCA(),
    "pca-share": PCA(0.9),
    "pca-full": PCA(3, svd_solver="full", whiten=True),
    "pca-arpack": PCA(3, svd_solver="arpack"),
    "pca-one-arpack": PCA(1, svd_solver="arpack"),
    "pca-randomized": PCA(2, svd_solver="randomized", whiten=True, random_state=0),
}


def encode(X):
    return np.asarray(X)[:, :3] ** 2


class Encoder:
    def encode(self, X):
        return encode(X)


def fitted(name, dtype=np.float64):
    return copy.deepcopy(TRANSFORMERS[name]).fit(POINTS.astype(dtype))


def learned(features, **options):
    return MetricTracker(features=features, memory=64, **options).partial_fit(PAIRS, Y)


# Known transformers


@pytest.mark.filterwarnings("ignore::ocelad.FeatureScaleWarning")  # one kernel is so narrow that all is nearly 0
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", TRANSFORMERS)
def test_known_transformers_come_back_to_the_bit(name, dtype, tmp_path):
    features = fitted(name, dtype)
    tracker = learned(features)
    again = through_file(tracker, tmp_path / "tracker.ocelad")
    assert type(again.features) is type(features)
    assert again.features is not features
    for rows in (1, 2, 7, len(POINTS)):
        for X in (POINTS[:rows], POINTS[:rows].astype(np.float32), np.asfortranarray(POINTS[:rows])):
            np.testing.assert_array_equal(again.features.transform(X), features.transform(X))
    np.testing.assert_array_equal(again.mixture_proba(PAIRS), tracker.mixture_proba(PAIRS))
    assert ocelad.dumps(again.partial_fit(PAIRS, Y)) == ocelad.dumps(tracker.partial_fit(PAIRS, Y))
    assert_memory_within_the_limit(tmp_path / "tracker.ocelad")


def test_names_of_columns_come_back():
    frame = pd.DataFrame(POINTS, columns=list("abcde"))
    tracker = MetricTracker(features=StandardScaler().fit(frame)).partial_fit((frame[:60], frame[60:]), Y)
    again = ocelad.loads(ocelad.dumps(tracker))
    np.testing.assert_array_equal(again.transform(frame), tracker.transform(frame))  # and nothing warns
    with pytest.raises(ValueError, match="feature names should match"):
        again.transform(frame[list("edcba")])


def test_nothing_is_pickled_and_the_text_says_what_it_is():
    options, _, arrays = parts(ocelad.dumps(learned(fitted("pca"))))
    assert options["features"] == {
        "layout": {"components": ["F", False, 3]},
        "n": N,
        "names": None,
        "part": "PCA",
        "whiten": False,
    }
    assert list(arrays)[:2] == ["features.mean", "features.components"]
    assert options.keys() - parts(ocelad.dumps(learned(None)))[0].keys() == {"features"}


def test_a_preprocessor_goes_before():
    for features in (fitted("pca"), encode):
        tracker = MetricTracker(preprocessor=POINTS, features=features)
        tracker.partial_fit(np.arange(len(POINTS)).reshape(-1, 2), Y)
        again = ocelad.loads(ocelad.dumps(tracker), features=None if features is not encode else encode)
        np.testing.assert_array_equal(again.transform([3, 1]), tracker.transform([3, 1]))


def test_transformers_are_saved_as_they_are_now_if_they_suit():
    features = fitted("pca")
    tracker = learned(features)
    features.fit(2.0 * POINTS)
    again = ocelad.loads(ocelad.dumps(tracker))
    np.testing.assert_array_equal(again.transform(POINTS), tracker.transform(POINTS))
    features.set_params(n_components=2).fit(POINTS)
    with pytest.raises(ValueError, match="features give 2 numbers for a point, and the tracker has 3 features"):
        ocelad.dumps(tracker)


# Others


OTHERS = {
    "encode": (encode, "encode"),
    "lambda": (lambda X: X[:, :2], "<lambda>"),
    "method": (Encoder().encode, "Encoder.encode"),
    "transformer": (MinMaxScaler().fit(POINTS), "MinMaxScaler"),
    "pipeline": (make_pipeline(StandardScaler(), PCA(2)).fit(POINTS), "Pipeline"),
    "kernel": (Nystroem(kernel="laplacian", n_components=4, random_state=0).fit(POINTS), "Nystroem"),
    "changed": (RBFSampler(n_components=4, random_state=0).fit(POINTS).set_params(n_components=8), "RBFSampler"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_others_are_named_and_have_to_be_given(name, tmp_path):
    features, word = OTHERS[name]
    tracker, path = learned(features), tmp_path / "tracker.ocelad"
    ocelad.save(tracker, path)
    data = path.read_bytes()
    assert parts(data)[0]["features"] == {"function": word}
    words = "its features are the function .*, and a file does not hold functions: give it, load"
    with pytest.raises(FileError, match=f"{path}: {words}"):
        ocelad.load(path)
    with pytest.raises(FileError, match=words):
        ocelad.loads(data)
    again = ocelad.load(path, features=features)
    assert again.features is features
    assert ocelad.dumps(again) == data
    np.testing.assert_array_equal(again.mixture_proba(PAIRS), tracker.mixture_proba(PAIRS))
    assert ocelad.dumps(again.partial_fit(PAIRS, Y)) == ocelad.dumps(tracker.partial_fit(PAIRS, Y))


def test_every_kind_of_file_takes_features(tmp_path):
    tracker = learned(encode)
    index = MovingIndex(tracker)
    index.add(POINTS)
    fleet = KeyedTrackers(MetricTracker(features=encode)).partial_fit(["a", "b"] * 30, PAIRS, Y)
    of_prior = KeyedTrackers(prior=tracker).partial_fit(["a", "b"] * 30, PAIRS, Y)
    labelled = SupervisedMetricTracker(MetricTracker(features=encode), random_state=0)
    labelled.fit(POINTS, POINTS[:, 0] > 0)
    begun = SupervisedMetricTracker(MetricTracker(features=encode), random_state=0).partial_fit(POINTS[:1], [1])
    numbered = SupervisedMetricTracker(MetricTracker(features=encode), preprocessor=POINTS, random_state=0)
    numbered.fit(np.arange(60), POINTS[:60, 0] > 0)
    for saved in (tracker, index, fleet, of_prior, labelled, begun, numbered):
        data = ocelad.dumps(saved)
        with pytest.raises(FileError, match="its features are the function encode"):
            ocelad.loads(data)
        again = ocelad.loads(data, features=encode)
        assert type(again) is type(saved)
        assert ocelad.dumps(again) == data
    np.testing.assert_array_equal(numbered.transform([1]), again.transform([1]))
    path = tmp_path / "fleet.ocelad"
    fleet.save(path)
    again = KeyedTrackers.load(path, max_in_memory=1, features=encode)
    keys = ["a", "b", "c"] * 20
    np.testing.assert_array_equal(again.predict(keys, PAIRS), fleet.predict(keys, PAIRS))
    assert again["b"].features is encode
    with pytest.raises(FileError, match="function encode"):
        KeyedTrackers.load(path)
    features = fitted("nystroem")
    of_known = KeyedTrackers(MetricTracker(features=features)).partial_fit(["a", "b"] * 30, PAIRS, Y)
    labelled = SupervisedMetricTracker(MetricTracker(features=features), preprocessor=POINTS, random_state=0)
    labelled.fit(np.arange(60), POINTS[:60, 0] > 0)
    for saved in (of_known, labelled):
        assert ocelad.dumps(ocelad.loads(ocelad.dumps(saved))) == ocelad.dumps(saved)
    np.testing.assert_array_equal(
        labelled.transform(POINTS), ocelad.loads(ocelad.dumps(labelled)).transform(POINTS)
    )


def test_records_take_the_features_of_another_tracker():
    tracker = learned(encode)
    again = unpack(pack(tracker), MetricTracker(features=encode, memory=64))
    assert ocelad.dumps(again) == ocelad.dumps(tracker)


def test_what_is_given_takes_the_place_of_what_is_saved():
    features = fitted("scaler")
    again = ocelad.loads(ocelad.dumps(learned(fitted("scaler"))), features=features)
    assert again.features is features
    with pytest.raises(FileError, match="features give 3 numbers for a point, and the tracker has 5"):
        ocelad.loads(ocelad.dumps(learned(fitted("scaler"))), features=fitted("pca"))
    with pytest.raises(FileError, match="features must be None, for it was saved without any"):
        ocelad.loads(ocelad.dumps(learned(None)), features=encode)
    with pytest.raises(
        ValueError, match="features must be None, a function of points or a fitted transformer, got 3"
    ):
        ocelad.loads(ocelad.dumps(learned(encode)), features=3)


def test_as_saved_reads_what_cannot_be_used():
    data = ocelad.dumps(learned(encode))
    found = ocelad.loads(data, features=as_saved)
    assert found.features == Unsaved("encode")
    assert ocelad.dumps(found) == data
    with pytest.raises(
        ValueError, match="features is the function encode, which is not in the file: give it to load"
    ):
        found.transform(POINTS)
    np.testing.assert_array_equal(found.get_mahalanobis_matrix(), learned(encode).get_mahalanobis_matrix())
    assert pickle.loads(pickle.dumps(found.features)) == found.features
    with pytest.raises(ValueError, match="as_saved stands for what is in a file"):
        as_saved(POINTS)


def test_the_command(tmp_path):
    path, table = tmp_path / "tracker.ocelad", tmp_path / "points.csv"
    pd.DataFrame(POINTS, columns=list("abcde")).to_csv(table, index=False)
    pairs = tmp_path / "pairs.csv"
    names = [f"{side}_{name}" for side in "xz" for name in "abcde"]
    pd.DataFrame(PAIRS.reshape(-1, 2 * N), columns=names).to_csv(pairs, index=False)
    ocelad.save(learned(encode), path)
    said = CliRunner().invoke(main, ["info", str(path)])
    assert said.exit_code == 0, said.output
    assert "features=function encode, which is not in the file" in said.output
    for command in (["embed", str(path), str(table)], ["score", str(path), str(pairs)]):
        said = CliRunner().invoke(main, command)
        assert said.exit_code != 0
        assert "its features are the function encode" in said.output + str(said.exception)
    tracker = learned(fitted("pca"))
    ocelad.save(tracker, path)
    assert "features=PCA(n_components=3)" in CliRunner().invoke(main, ["info", str(path)]).output
    said = CliRunner().invoke(main, ["embed", str(path), str(table)])
    assert said.exit_code == 0, said.output
    rows = [list(map(float, line.split(","))) for line in said.output.split()[1:]]
    np.testing.assert_array_equal(rows, tracker.transform(POINTS)[:, :2])
    said = CliRunner().invoke(main, ["score", str(path), str(pairs)])
    assert said.exit_code == 0, said.output
    distances = [float(line.split(",")[1]) for line in said.output.split()[1:]]
    np.testing.assert_allclose(distances, tracker.pair_distance(PAIRS), rtol=1e-12)


# Out of order


def entry(**changes):
    """Other entries of features; None takes one away."""

    def change(options, entries, arrays):  # noqa: ARG001
        for name, value in changes.items():
            if value is None:
                del options["features"][name]
            else:
                options["features"][name] = value

    return change


def whole(value):
    return lambda options, entries, arrays: options.update({"features": value})  # noqa: ARG005


def array(name, forge):
    def change(options, entries, arrays):  # noqa: ARG001
        arrays[f"features.{name}"] = forge(arrays[f"features.{name}"])

    return change


def gone(name):
    return lambda options, entries, arrays: arrays.pop(f"features.{name}")  # noqa: ARG005


def nan(a):
    return np.where(np.arange(a.size).reshape(a.shape) == 1, np.nan, a)


FORGERIES = {
    "list": ("pca", whole([1]), "option features is a list"),
    "number": ("pca", whole(3), "a transformer that is known here, or name a function"),
    "null": ("pca", whole(None), "option features must not be there where it is None"),
    "array": ("pca", whole({"array": "features"}), "a transformer that is known here"),
    "part": ("pca", entry(part="os.system"), "a transformer that is known here"),
    "part-of-ocelad": ("pca", whole({"part": "Hinge"}), "a transformer that is known here"),
    "other-part": ("pca", entry(part="Nystroem"), "does not have the entries"),
    "number-of-part": ("pca", entry(part=1), "a transformer that is known here"),
    "function-number": ("pca", whole({"function": 1}), "features must name their function"),
    "function-long": ("pca", whole({"function": "x" * 201}), "in at most 200 letters"),
    "function-more": ("pca", whole({"function": "f", "part": "PCA"}), "does not have the entries"),
    "function-arrays": ("pca", whole({"function": "f"}), "its features are the function f"),
    "no-n": ("pca", entry(n=None), "does not have the entries"),
    "n-0": ("scaler-neither", entry(n=0), "must have a number of features"),
    "n-float": ("pca", entry(n=5.0), "must have a number of features"),
    "n-true": ("pca", entry(n=True), "must have a number of features"),
    "n-huge": ("scaler-neither", entry(n=2**62), "must have a number of features"),
    "n-other": ("pca", entry(n=4), "features.mean must be floats of shape"),
    "n-neither": ("scaler-neither", entry(n=4), "features give 4 numbers for a point, and the tracker has 5"),
    "more": ("pca", entry(gamma=1.0), "does not have the entries"),
    "names-number": ("pca", entry(names=3), "feature_names must be null or 5 names"),
    "names-few": ("pca", entry(names=["a"]), "feature_names must be null or 5 names"),
    "whiten": ("pca", entry(whiten=1), "an option whiten that cannot be, 1"),
    "whiten-true": ("pca", entry(whiten=True), "features.explained_variance must be floats"),
    "gamma-word": ("nystroem", entry(gamma="scale"), "an option gamma that cannot be"),
    "gamma-negative": ("nystroem", entry(gamma=-1.0), "an option gamma that cannot be"),
    "gamma-integer": ("nystroem", entry(gamma=1), "an option gamma that cannot be"),
    "gamma-huge": ("nystroem", entry(gamma=10**400), "an option gamma that cannot be"),
    "layout-list": ("pca", entry(layout=[]), "does not have the entries"),
    "layout-none": ("pca", entry(layout={}), "does not have the entries"),
    "layout-vector": ("pca", entry(layout={"components": ["F", False, 3], "mean": []}), "not have the entries"),
    "layout-code": ("pca", entry(layout={"components": ["K", False, 3]}), "a layout that cannot be"),
    "layout-short": ("pca", entry(layout={"components": ["F", False]}), "a layout that cannot be"),
    "layout-words": ("pca", entry(layout={"components": "F-"}), "a layout that cannot be"),
    "layout-near": ("pca", entry(layout={"components": ["F", False, 2]}), "must lie in memory without gaps"),
    "layout-far": ("pca", entry(layout={"components": ["F", False, 2**39]}), "or within .* bytes"),
    "layout-endless": ("pca", entry(layout={"components": ["F", False, 2**99]}), "a layout that cannot be"),
    "layout-one": ("pca-one", entry(layout={"components": ["F", False, 1]}), "says the same as another"),
    "layout-true": ("pca", entry(layout={"components": ["F", False, True]}), "without gaps"),
    "mean-nan": ("scaler", array("mean", nan), "features.mean must be finite"),
    "scale-nan": ("scaler", array("scale", nan), "features.scale must be finite"),
    "scale-zero": ("scaler", array("scale", np.zeros_like), "features.scale must be positive"),
    "scale-negative": ("scaler", array("scale", np.negative), "features.scale must be positive"),
    "scale-short": ("scaler", array("scale", lambda a: a[:-1]), "features.scale must be floats of shape"),
    "scale-matrix": ("scaler", array("scale", lambda a: a[None]), "features.scale must be floats of shape"),
    "scale-integers": ("scaler", array("scale", lambda a: np.ones(len(a), int)), "must be floats of shape"),
    "scale-gone": ("scaler", gone("scale"), "features.scale must be floats of shape"),
    "scale-not-needed": ("scaler", entry(with_std=False), "its arrays are"),
    "variance": ("pca-full", array("explained_variance", np.negative), "explained_variance must be positive"),
    "components-nan": ("pca", array("components", nan), "features.components must be finite"),
    "components-wide": ("pca", array("components", lambda a: a[:, :-1]), "components must be floats of shape"),
    "components-few": ("pca", array("components", lambda a: a[:-1]), "layout|features give 2 numbers"),
    "components-none": ("pca", array("components", lambda a: a[:0]), "a PCA with at least one output"),
    "components-vector": ("pca", array("components", np.ravel), "a PCA with at least one output"),
    "components-gone": ("pca", gone("components"), "a PCA with at least one output"),
    "normalization": ("nystroem", array("normalization", lambda a: a[:-1]), "normalization must be floats of"),
    "offset": ("sampler", array("random_offset", lambda a: a[:-1]), "random_offset must be floats of shape"),
    "weights": ("sampler", array("random_weights", lambda a: a.T), "must be floats of shape"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_forged_features_are_refused(name):
    of, change, words = FORGERIES[name]
    data = ocelad.dumps(learned(fitted(of)))
    assert forged(data, lambda *_: None) == data
    with pytest.raises(FileError, match=words):
        ocelad.loads(forged(data, change))


def test_nonlinear_and_features_where_they_are_as_usual_are_not_in_a_file():
    data = ocelad.dumps(learned(None))
    assert not {"features", "nonlinear"} & parts(data)[0].keys()
    for name, value in (("features", None), ("nonlinear", False)):
        with pytest.raises(FileError, match=f"option {name} must not be there"):
            ocelad.loads(forged(data, lambda options, *_, n=name, v=value: options.update({n: v})))


def test_mutated_entries_are_refused_or_written_as_they_were():
    """A forger's numbers may be as good as the true ones; then they are what a file would have."""
    rng = np.random.default_rng(0)
    files = [ocelad.dumps(learned(fitted(name))) for name in ("scaler", "nystroem", "sampler", "pca-randomized")]
    values = [None, True, False, 0, 1, -1, 5, 0.5, "", "F", [], {}, [1], {"a": 1}, 2**40, ["F", True, 9]]
    accepted = 0
    for _ in range(400):
        options, entries, arrays = parts(files[rng.integers(len(files))])
        own = options["features"]
        place = own["layout"] if rng.random() < 0.3 and own["layout"] else own
        name = list(place)[rng.integers(len(place))]
        place[name] = json.loads(json.dumps(values[rng.integers(len(values))]))
        data = forged(
            files[0],
            lambda o, e, a, new=(options, entries, arrays): [
                old.clear() or old.update(each) for old, each in zip((o, e, a), new, strict=True)
            ],
        )
        try:
            tracker = ocelad.loads(data, limit=2**22)
        except FileError:
            continue
        accepted += 1
        assert ocelad.dumps(tracker) == data
        assert np.isfinite(tracker.features.transform(POINTS)).all()
    assert accepted < 200
