"""Maps of a metric to few dimensions: turned towards each other, and chosen by what tells labels apart."""

from itertools import pairwise

import numpy as np
import pytest

from ocelad.evaluate import aligned, aligned_series, discriminant


def test_alignment_undoes_any_turn_and_keeps_distances():
    rng = np.random.default_rng(0)
    L = rng.normal(size=(3, 7))
    turn, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    np.testing.assert_allclose(aligned(turn @ L, L), L, atol=1e-12)
    other = rng.normal(size=(3, 7))
    np.testing.assert_allclose(aligned(other, L).T @ aligned(other, L), other.T @ other, atol=1e-12)
    best = np.linalg.norm(aligned(other, L) - L)
    for _ in range(20):
        turn, _ = np.linalg.qr(rng.normal(size=(3, 3)))
        assert best <= np.linalg.norm(turn @ other - L) + 1e-12


def test_a_series_does_not_flip():
    rng = np.random.default_rng(1)
    L = rng.normal(size=(2, 5))
    smooth = [L + 0.01 * k for k in range(6)]
    flipped = [each * rng.choice([-1.0, 1.0], size=(2, 1)) for each in smooth]
    series = aligned_series(flipped)
    for before, after in pairwise(series):
        assert np.abs(after - before).max() < 0.2


def test_alignment_needs_one_shape():
    with pytest.raises(ValueError, match="matrices of one shape"):
        aligned(np.zeros((2, 3)), np.zeros((2, 4)))


def test_a_discriminant_finds_what_tells_labels_apart_and_then_what_spreads():
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=400)
    X = rng.normal(size=(400, 6)) * [1.0, 1.0, 3.0, 1.0, 1.0, 1.0]
    X[:, 1] += 4.0 * labels
    P = discriminant(np.eye(6), X, labels, dimensions=2)
    assert np.abs(P).argmax(axis=1).tolist() == [1, 2]
    M = np.diag([1.0, 1e-4, 1.0, 1.0, 1.0, 1.0])  # the metric does not see it
    assert np.abs(discriminant(M, X, labels, dimensions=1)).argmax() != 1
    turn, _ = np.linalg.qr(rng.normal(size=(6, 6)))
    turned = discriminant(turn @ np.eye(6) @ turn.T, X @ turn.T, labels, dimensions=2)
    np.testing.assert_allclose(turned.T @ turned, turn @ P.T @ P @ turn.T, atol=1e-9)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"dimensions": 4}, "between 1 and 3"),
        ({"ridge": 0.0}, "ridge must be"),
        ({"labels": [0]}, "one for each of 5"),
    ],
)
def test_bad_discriminants(options, words):
    with pytest.raises(ValueError, match=words):
        discriminant(np.eye(3), **{"X": np.ones((5, 3)), "labels": np.zeros(5, dtype=int), **options})
