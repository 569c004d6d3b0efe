"""The synthetic stream is what it says, and the measures agree with scikit-learn's."""

import numpy as np
import pytest
from sklearn.model_selection import LeaveOneOut, cross_val_score
from sklearn.neighbors import KNeighborsClassifier

from ocelad.data import SCENARIO, DriftingClusters, Segment, cayley
from ocelad.evaluate import cluster_nmi, knn_error


def test_random_differences_have_mean_square_one():
    data = DriftingClusters.draw(np.random.default_rng(0), points=20_000)
    u = data.points[:10_000] - data.points[10_000:]
    assert (u**2).sum(axis=1).mean() == pytest.approx(1.0, abs=0.01)
    assert data.points.mean(axis=0) == pytest.approx(0.0, abs=0.01)


def test_labels_are_independent_with_the_shares_asked_for():
    data = DriftingClusters.draw(np.random.default_rng(0), points=20_000)
    joint = np.histogram2d(data.A, data.B, bins=3)[0] / 20_000
    np.testing.assert_allclose(joint, np.outer([0.5, 0.3, 0.2], [0.5, 0.3, 0.2]), atol=0.01)


def test_each_clustering_shows_in_its_own_subspace_only():
    data = DriftingClusters.draw(np.random.default_rng(0))
    assert cluster_nmi(data.points[:, :3], data.A) > 0.9
    assert cluster_nmi(data.points[:, 3:6], data.B) > 0.9
    assert cluster_nmi(data.points[:, 3:6], data.A) < 0.05
    assert cluster_nmi(data.points[:, 6:9], data.A) < 0.05


def test_stream_follows_its_segments():
    segments = (Segment(30, "A", 0.0), Segment(20, "B", 0.1))
    data = DriftingClusters.draw(np.random.default_rng(0), points=50)
    steps = list(data.stream(np.random.default_rng(1), segments))
    assert [step.t for step in steps] == list(range(50))
    assert [step.segment for step in steps] == [0] * 30 + [1] * 20
    for step in steps:
        at = data.points @ step.rotation.T
        i, j = (int(np.linalg.norm(at - x, axis=1).argmin()) for x in step.pair)
        assert i != j
        labels = data.A if step.segment == 0 else data.B
        assert step.labels is labels
        assert step.y == (1 if labels[i] == labels[j] else -1)
    np.testing.assert_array_equal(steps[0].rotation, steps[30].rotation)  # static until the drift has begun
    moved = np.linalg.norm(steps[31].rotation - steps[30].rotation)
    assert moved == pytest.approx(0.1, rel=0.01)


def test_changes_keep_away_from_powers_of_two():
    ends = np.cumsum([segment.steps for segment in SCENARIO])
    assert ends[-1] == 5500
    for end in ends[:-1]:
        assert min(abs(end - 2**k) for k in range(14)) > 100


def test_rotations_are_orthogonal():
    data = DriftingClusters.draw(np.random.default_rng(0), points=10, dimension=7)
    *_, last = data.stream(np.random.default_rng(0), (Segment(2000, "A", 0.15),))
    D = last.rotation
    np.testing.assert_allclose(D @ D.T, np.eye(7), atol=1e-12)
    S = np.array([[0.0, 0.3], [-0.3, 0.0]])
    np.testing.assert_allclose(cayley(S) @ cayley(S).T, np.eye(2), atol=1e-15)


def test_too_few_dimensions_are_refused():
    with pytest.raises(ValueError, match="dimension must be at least 6"):
        DriftingClusters.draw(np.random.default_rng(0), dimension=5)


def test_knn_error_is_scikit_learns_where_votes_do_not_tie():
    data = DriftingClusters.draw(np.random.default_rng(3), points=120)
    Z, labels = data.points[:, :6], (data.A > 0).astype(int)  # two classes and five votes: no ties
    expected = 1 - cross_val_score(KNeighborsClassifier(5), Z, labels, cv=LeaveOneOut()).mean()
    assert knn_error(Z, labels) == pytest.approx(expected, abs=1e-12)


def test_knn_error_by_brute_force():
    data = DriftingClusters.draw(np.random.default_rng(4), points=150)
    wrong = 0
    for i, z in enumerate(data.points):
        distance = np.linalg.norm(data.points - z, axis=1)
        nearest = [int(data.A[j]) for j in np.argsort(distance) if j != i][:5]
        most = max(nearest.count(label) for label in nearest)
        winner = next(label for label in nearest if nearest.count(label) == most)
        wrong += winner != data.A[i]
    assert knn_error(data.points, data.A) == pytest.approx(wrong / 150, abs=1e-12)
    assert wrong > 0


def test_knn_error_leaves_the_point_itself_out_among_copies():
    Z, labels = np.zeros((4, 2)), np.array([0, 1, 1, 1])
    assert knn_error(Z, labels, k=3) == 0.25


def test_a_metric_that_sees_nothing_scores_nothing():
    assert cluster_nmi(np.zeros((30, 3)), np.arange(30) % 3) == 0.0
