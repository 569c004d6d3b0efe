"""Named features in a fixed number of columns: nothing that one feature has taught passes to another."""

import os
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ocelad.compat.columns import Columns, checked
from ocelad.compat.named import NamedTracker
from trackers import either, rice

NAMES = st.one_of(st.text(max_size=3), st.integers(0, 9), st.tuples(st.text(max_size=1), st.integers(0, 3)))
POINTS = st.lists(st.dictionaries(NAMES, st.floats(-1e6, 1e6), max_size=6), max_size=12)


def after(columns, points):
    for x in points:
        columns = columns.after(x)
    return columns


def learned(points, labels, own, shared=0, new=rice):
    """A metric that has compared each point with the one before it."""
    metric = NamedTracker(new(), Columns(own, shared))
    for x, z, label in zip(points, points[1:], labels, strict=False):
        columns = metric.columns.after(z).after(x)
        metric.learn([(columns.vector(x), columns.vector(z))], [label], columns)
    return metric


@given(POINTS, st.integers(1, 8), st.integers(0, 4))
def test_a_name_keeps_its_column_for_ever_and_memory_is_bounded(points, own, shared):
    columns = Columns(own, shared)
    for x in points:
        before, columns = columns, columns.after(x)
        assert before.known.items() <= columns.known.items()
        assert sorted(columns.known.values()) == list(range(len(columns.known)))
        assert len(columns.known) <= own
        assert columns.vector(x).shape == (own + shared,)


@given(POINTS, st.integers(1, 8), st.integers(0, 4), st.randoms())
def test_the_order_inside_a_dictionary_says_nothing(points, own, shared, random):
    def shuffled(x):
        items = list(x.items())
        random.shuffle(items)
        return dict(items)

    one, other = after(Columns(own, shared), points), after(Columns(own, shared), map(shuffled, points))
    assert one == other
    for x in points:
        assert one.vector(x).tobytes() == other.vector(shuffled(x)).tobytes()


@either
def test_shared_columns_have_names_that_no_feature_has(new):
    points = [{"shared 0": 0.0, "a": 1.0, "late": 3.0}, {"shared 0": 1.0, "shared 0'": 2.0, "a": 0.5}]
    metric = learned(points * 5, [True, False] * 5, own=3, shared=2, new=new)
    assert metric.columns.names == ("a", "shared 0", "shared 0'", "shared 0''", "shared 1")
    coordinates = metric.transform(points[0])
    assert len(coordinates) == 5
    assert np.linalg.norm(list(coordinates.values())) == pytest.approx(metric.distance(points[0], {}))


@given(POINTS, st.integers(1, 4), st.integers(1, 4))
def test_late_names_stay_out_of_the_first_names_columns(points, own, shared):
    columns = after(Columns(own, shared), points)
    for x in points:
        row, late = columns.vector(x), {name: value for name, value in x.items() if name not in columns.known}
        assert all(row[column] == x.get(name, 0.0) for name, column in columns.known.items())
        if columns.full and len(late) == 1:
            (value,) = late.values()
            assert np.abs(row[own:]).sum() == abs(value)


def test_without_shared_columns_late_names_are_ignored():
    columns = Columns(own=1, shared=0).after({"a": 1.0}).after({"b": 2.0})
    assert columns.vector({"a": 3.0, "b": 2.0}).tolist() == [3.0]


def test_shared_columns_are_the_same_in_every_process():
    code = "from ocelad.compat.columns import Columns; c = Columns(1, 64).after({'a': 1.0}); "
    code += "print(c.vector({name: 1.0 for name in ('b', 'c', 7, ('d', 1))}).tolist())"
    runs = [
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert runs[0] == runs[1]


def test_shared_columns_keep_squared_lengths_on_average():
    rng = np.random.default_rng(0)
    columns = Columns(1, 16).after({"first": 0.0})
    ratios = []
    for trial in range(400):
        x = {f"late {trial} {k}": float(value) for k, value in enumerate(rng.uniform(1, 2, size=8))}
        ratios.append((columns.vector(x) ** 2).sum() / sum(value**2 for value in x.values()))
    assert abs(np.mean(ratios) - 1) < 4 * np.std(ratios) / np.sqrt(len(ratios))  # signs cancel the cross terms


def test_a_new_feature_inherits_nothing():
    rng = np.random.default_rng(0)
    points = [{"a": a, "b": b} for a, b in rng.normal(size=(200, 2))]
    labels = [abs(x["a"] - z["a"]) < 1 for x, z in pairwise(points)]
    room = learned(points, labels, own=3)
    full = learned(points, labels, own=2, shared=4)
    nothing_left = learned(points, labels, own=2)
    for metric in (room, full, nothing_left):
        assert metric.distance({"a": 1.0}, {}) > 0.5
        assert metric.distance({"new": 1e3}, {}) == 0.0
    assert room.distance({"a": 1.0}, {}) == pytest.approx(full.distance({"a": 1.0}, {}), rel=1e-12)


@either
@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 10**6))
def test_names_make_no_difference_to_what_is_learned(seed, new):
    """Dictionaries whose features come and go learn what arrays with zeros in their place learn."""
    rng = np.random.default_rng(seed)
    there = rng.random((60, 5)) < 0.6
    there[:2] |= new is not rice  # in a pool the order of columns matters, for its experts begin at random
    X = rng.normal(size=(60, 5)) * there
    y = rng.choice([-1, 1], 59)
    points = [{f"f{j}": float(value) for j, value in enumerate(x) if value != 0} for x in X]
    metric = learned(points, y == 1, own=5, new=new)
    pairs = np.stack([X[:-1], X[1:]], axis=1)
    tracker = new().partial_fit(pairs, y)
    expected = tracker.pair_distance(pairs)
    size = np.sqrt(np.linalg.norm(tracker.get_mahalanobis_matrix())) * np.linalg.norm(
        pairs[:, 0] - pairs[:, 1], axis=1
    )
    for x, z, d, s in zip(points, points[1:], expected, size, strict=False):
        assert abs(metric.distance(x, z) - d) <= 1e-6 * s  # squares agree to rounding, roots to its root
        zx, zz = metric.transform(x), metric.transform(z)
        assert np.linalg.norm([zx[name] - zz[name] for name in zx]) == pytest.approx(
            metric.distance(x, z), rel=1e-9, abs=1e-12 * s
        )


@either
def test_shrunk_features_leave_as_many_columns_as_are_used(new):
    metric = learned([{"a": 1.0}, {"a": 0.0, "b": 1.0}, {"c": 2.0}], [False, False], own=8, new=new)
    assert list(metric.transform({"a": 1.0, "unknown": 5.0})) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("x", "message"),
    [
        ({"a": float("nan")}, r"x\['a'\] must be a finite number, got nan; leave out"),
        ({"a": 1.0, "b": float("inf")}, r"x\['b'\] must be"),
        ({"a": "1.0"}, r"x\['a'\] must be"),
        ({"a": None}, r"x\['a'\] must be"),
        ({"a": np.zeros(2)}, r"x\['a'\] must be"),
        ({"a": 1j}, r"x\['a'\] must be"),
        ([1.0], "x must be a dictionary of features, got list"),
        (None, "x must be a dictionary"),
    ],
)
def test_bad_features_are_named(x, message):
    with pytest.raises(ValueError, match=message):
        checked(x, "x")


def test_any_real_number_is_a_feature():
    from fractions import Fraction

    values = [True, 3, np.float32(0.5), np.int8(2), np.bool_(True), Fraction(1, 4)]
    assert list(checked(dict(enumerate(values)), "x").values()) == [1.0, 3.0, 0.5, 2.0, 1.0, 0.25]


@pytest.mark.parametrize("size", [1e-100, 1.0, 1e100])
@either
def test_the_common_scale_does_not_matter(size, new):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(50, 3)), rng.random(49) < 0.5
    points = [{"a": a * size, "b": b * size, "c": c * size} for a, b, c in X]
    metric = learned(points, y, own=3, new=new)
    one = learned([{"a": a, "b": b, "c": c} for a, b, c in X], y, own=3, new=new)
    assert metric.distance(points[0], points[1]) == pytest.approx(
        one.distance(*({"a": a, "b": b, "c": c} for a, b, c in X[:2]))
    )
    assert metric.distance(points[0], points[1]) > 0


@pytest.mark.parametrize("size", [1e-160, 1e160])
def test_features_of_no_usable_size_are_refused(size):
    metric = learned([{"a": size}, {"a": 0.0}, {"a": 2 * size}], [False, False], own=3)
    with pytest.raises(OverflowError):
        metric.distance({"a": size}, {})
