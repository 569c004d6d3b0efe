"""Columns that say which row it is are noticed, and others are not."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine

from ocelad.data.tables import Columns, Row
from ocelad.data.tables.identifiers import LEAST, FirstRows, by_name, by_values

RNG = np.random.default_rng(0)
ROWS = 120


@pytest.mark.parametrize(
    "name",
    [
        "id",
        "ID",
        "user_id",
        "PassengerId",
        "index",
        "",
        "Unnamed: 0",
        "row",
        "batch",
        "date",
        "time",
        "timestamp",
        "year",
        "user id",
        "customer-id",
        "order.id",
        "UserID",
        "id_user",
        "created_at",
        "OrderDate",
        "date_of_birth",
        "uid",
        "zip",
        "Zip Code",
        "postcode",
        "PLZ",
        "phone",
        "ean",
        "Kundennummer",
        "kunden_nr",
    ],
)
def test_names_of_identifiers(name):
    assert by_name([name]) == [name]


@pytest.mark.parametrize(
    "name",
    [
        *(
            "age",
            "width",
            "acid",
            "grid",
            "covid",
            "idle",
            "timely",
            "pixel_0",
            "x1",
            "updates",
            "valid",
            "id_card",
        ),
        *(
            "id_ratio",
            "DiameterID",
            "inner diameter id",
            "atomic_number",
            "nummeric",
            "flat",
            "format",
            "lifetime",
        ),
    ],
)
def test_names_of_features(name):
    assert by_name([name]) == []


IDENTIFIERS = {
    "row number": np.arange(ROWS),
    "downwards": -np.arange(ROWS),
    "with gaps": np.cumsum(RNG.integers(1, 9, size=ROWS)),
    "seconds": np.cumsum(RNG.exponential(size=ROWS)),
    "batch": np.arange(ROWS) // 10,
    "shuffled": RNG.permutation(ROWS),
    "dates": 20240100 + RNG.integers(1, 29, size=ROWS),
}
FEATURES = {
    "normal": RNG.normal(size=ROWS),
    "grades": RNG.integers(0, 5, size=ROWS),
    "prices": RNG.integers(0, 100_000, size=ROWS),
    "one value": np.ones(ROWS),
    "nothing, and then something": np.r_[np.zeros(ROWS - 3), 1, 2, 3],
    "sorted by a class": np.repeat([0, 1, 2], ROWS // 3),
    "large": 20_000_000 + RNG.integers(0, 10_000, size=ROWS),
}


@pytest.mark.parametrize("kind", IDENTIFIERS)
def test_values_of_identifiers(kind):
    assert list(by_values(["it"], np.asarray(IDENTIFIERS[kind], dtype=float)[:, None])) == ["it"]


@pytest.mark.parametrize("kind", FEATURES)
def test_values_of_features(kind):
    assert by_values(["it"], np.asarray(FEATURES[kind], dtype=float)[:, None]) == {}


@pytest.mark.parametrize("load", [load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine])
@pytest.mark.parametrize("shuffled", [False, True])
def test_no_feature_of_a_real_table_is_taken_for_one(load, shuffled):
    found = load()
    X = RNG.permutation(found.data) if shuffled else found.data
    assert by_name(found.feature_names) == []
    for first in range(0, len(X) - ROWS, ROWS):
        assert by_values(found.feature_names, X[first : first + ROWS]) == {}


def rows(start, stop):
    return [Row(k, [str(k), str(k % 7), "word"], b"") for k in range(start, stop)]


def first_rows(*names, places=(0,)):
    return FirstRows(Columns(names, places), names)


NEVER_FALL = "numbers that never fall from row to row"


def test_it_is_decided_once_when_enough_rows_have_come():
    first = first_rows("a", "b", places=(0, 1))
    assert first.look(rows(0, LEAST - 1)) == {}
    assert first.look(rows(LEAST - 1, LEAST + 5)) == {"a": NEVER_FALL}
    assert first.look(rows(LEAST + 5, 3 * LEAST), last=True) == {}


def test_a_short_table_says_nothing_but_names_and_bad_rows_are_left_out():
    assert first_rows("a").look(rows(0, 10), last=True) == {}
    assert first_rows("id").look(rows(0, 10), last=True) == {"id": ""}
    assert first_rows("a").look(rows(0, 30), last=True) == {"a": NEVER_FALL}
    assert first_rows("c", places=(2,)).look(rows(0, 30), last=True) == {}


def test_the_name_comes_before_the_numbers_and_what_is_so_or_not_is_none():
    assert first_rows("id").look(rows(0, LEAST)) == {"id": ""}
    either = [Row(k, [str(k % 2), str(2023 + k % 2)], b"") for k in range(LEAST)]
    assert first_rows("id_number", "year", places=(0, 1)).look(either) == {"year": ""}


def test_a_feature_of_comparisons_has_two_columns():
    columns = Columns(("x_a", "x_uid", "z_a", "z_uid"), (1, 1, 0, 1))
    assert FirstRows(columns, ["a", "uid"]).look(rows(0, LEAST)) == {"a": NEVER_FALL, "uid": ""}
    assert FirstRows(Columns((), ()), ["a", "uid"]).look(rows(0, LEAST)) == {"uid": ""}  # of items
