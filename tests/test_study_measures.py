"""What makes a study cheap changes no number: blocks are the stream, its measures are scikit-learn's."""

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.metrics import normalized_mutual_info_score

import scikit
from called import called
from ocelad import MetricTracker
from ocelad.data import DriftingClusters, Segment, Step, blocks, cayley, haar, skew
from ocelad.evaluate import cluster_nmi, kmeans, knn_error, nmi

SEGMENTS = (Segment(130, "A", 0.0), Segment(100, "B", 0.05), Segment(100, "A", 0.15))


@pytest.fixture(scope="module", name="embeddings")
def fixture_embeddings():
    """Points as a tracker places them while it learns: from useless to good, and back at a jump."""
    placed = []
    for seed in range(2):
        rng = np.random.default_rng(seed)
        data, tracker = DriftingClusters.draw(rng), MetricTracker.rice()
        for block in blocks(data, rng, 49, (Segment(700, "A", 0.0), Segment(700, "B", 0.05))):
            tracker.partial_fit(block.pairs, block.y)
            Z = tracker.transform(data.points @ block.rotation.T)[:, :3]
            placed.append((Z, data.labels(block.clustering)))
    return placed


def literal_stream(data, rng):
    """A step after the other: a pair, and then the rotation moves."""
    D, steps = haar(25, rng), []
    for number, segment in enumerate(SEGMENTS):
        for _ in range(segment.steps):
            labels, (i, j) = data.labels(segment.clustering), data.random_pair(rng)
            y = 1 if labels[i] == labels[j] else -1
            steps.append(Step(len(steps), number, data.points[[i, j]] @ D.T, y, D, labels))
            if segment.drift > 0:
                D = cayley(skew(rng.normal(size=(1, 25, 25)), [segment.drift])[0]) @ D
    return steps


def test_the_stream_is_the_literal_one_to_the_last_bit():
    data = DriftingClusters.draw(np.random.default_rng(0), points=60)
    literal = literal_stream(data, np.random.default_rng(1))
    for step, expected in zip(data.stream(np.random.default_rng(1), SEGMENTS), literal, strict=True):
        assert (step.t, step.segment, step.y) == (expected.t, expected.segment, expected.y)
        np.testing.assert_array_equal(step.pair, expected.pair)
        np.testing.assert_array_equal(step.rotation, expected.rotation)
        assert step.labels is expected.labels


@pytest.mark.parametrize("steps", [1, 7, 49])
def test_blocks_are_the_stream_to_the_last_bit(steps):
    data = DriftingClusters.draw(np.random.default_rng(0), points=60)
    stream = literal_stream(data, np.random.default_rng(1))
    taken = list(blocks(data, np.random.default_rng(1), steps, SEGMENTS))
    assert len(taken) == 330 // steps
    whole = len(taken) * steps
    np.testing.assert_array_equal(np.concatenate([b.pairs for b in taken]), [s.pair for s in stream[:whole]])
    np.testing.assert_array_equal(np.concatenate([b.y for b in taken]), [s.y for s in stream[:whole]])
    for block in taken:
        step = stream[block.t]
        assert (block.t, block.segment) == (step.t, step.segment)
        np.testing.assert_array_equal(block.rotation, step.rotation)
        earlier = [s.rotation for s in stream[block.t - steps + 1 : block.t + 1]]
        np.testing.assert_array_equal(block.rotations, earlier)
        assert data.labels(block.clustering) is step.labels


def test_label_noise_turns_its_share_of_labels_and_pairs_per_step_multiplies():
    data = DriftingClusters.draw(np.random.default_rng(0), points=200)
    (block,) = blocks(
        data, np.random.default_rng(1), 800, (Segment(800, "A", 0.0),), pairs_per_step=5, label_noise=0.2
    )
    assert block.pairs.shape == (4000, 2, 25)
    at = {tuple(np.round(x, 9)): label for x, label in zip(data.points @ block.rotation.T, data.A, strict=True)}
    true = [at[tuple(np.round(x, 9))] == at[tuple(np.round(z, 9))] for x, z in block.pairs]
    assert np.mean((block.y == 1) != true) == pytest.approx(0.2, abs=0.02)
    np.testing.assert_array_equal(
        block.labels, [[at[tuple(np.round(x, 9))] for x in pair] for pair in block.pairs]
    )


def test_knn_error_is_scikit_learns(embeddings):
    rng = np.random.default_rng(0)
    for Z, labels in embeddings:
        sample = rng.choice(len(Z), size=300, replace=False)
        for k in (1, 5):
            own, votes = Z[sample], labels[sample]
            assert knn_error(own, votes, k) == scikit.knn_error(own, votes, k)


@pytest.mark.parametrize("dimensions", [1, 2, 3, 25])
def test_knn_error_counts_votes_as_scikit_learn_finds_neighbours(dimensions):
    """Many classes and few points: most votes tie."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        Z, labels = rng.normal(size=(40, dimensions)), rng.integers(6, size=40)
        assert knn_error(Z, labels) == scikit.knn_error(Z, labels)


def literal_error(Z, labels, k):
    """Sorted by distance, then by number; most votes, then the nearest."""
    wrong = 0
    for i, x in enumerate(Z):
        with np.errstate(over="ignore"):
            far = [sum((z - x)[e] ** 2 for e in range(len(x))) for z in Z]
        near = [labels[j] for j in sorted(range(len(Z)), key=lambda j: (far[j], j)) if j != i][:k]
        wrong += max(near, key=lambda label: (near.count(label), -near.index(label))) != labels[i]
    return wrong / len(Z)


@pytest.mark.parametrize("k", [1, 4, 5, 8])
@pytest.mark.parametrize("size", [1.0, 1e-170, 1e200])
def test_knn_error_where_distances_are_equal_or_differ_in_their_last_bits(k, size):
    rng = np.random.default_rng(k)
    for n in (9, 60):
        Z, labels = rng.integers(4, size=(n, 3)).astype(float), rng.integers(3, size=n)
        nudged = Z * (1.0 + rng.integers(3, size=Z.shape) * np.finfo(float).eps)
        assert len(np.unique(nudged, axis=0)) > len(np.unique(Z, axis=0))
        for points in (Z * size, nudged * size):
            assert knn_error(points, labels, k) == literal_error(points, labels, k)


@pytest.mark.parametrize("k", [0, 4])
def test_as_many_neighbours_as_there_are(k):
    with pytest.raises(ValueError, match="k must be an integer from 1 to 3"):
        knn_error(np.zeros((4, 2)), np.zeros(4, dtype=np.int64), k)


def test_nmi_is_scikit_learns():
    rng = np.random.default_rng(0)
    for _ in range(30):
        a, b = rng.integers(4, size=200), rng.integers(3, size=200)
        b = np.where(rng.random(200) < 0.7, a % 3, b)
        assert nmi(a, b) == pytest.approx(normalized_mutual_info_score(a, b), abs=1e-12)
        names = rng.permutation(4)
        assert nmi(a, names[a]) == 1.0
    one = np.zeros(5, dtype=np.int64)
    assert nmi(one, one) == normalized_mutual_info_score(one, one) == 1.0
    assert nmi(one, np.arange(5)) == 0.0


def test_clusters_are_as_good_as_ten_starts_of_scikit_learn(embeddings):
    quick = np.array([cluster_nmi(Z, labels) for Z, labels in embeddings])
    slow = np.array([scikit.cluster_nmi(Z, labels) for Z, labels in embeddings])
    assert ((quick > 0.8) == (slow > 0.8)).mean() >= 0.97
    assert abs(quick.mean() - slow.mean()) < 0.01
    assert (slow > 0.8).mean() == pytest.approx(0.6, abs=0.3)  # both kinds are there


def test_three_clusters_in_three_dimensions_are_added_up_as_any_number_is():
    rng = np.random.default_rng(0)
    labels, work = np.empty(500, dtype=np.int64), np.empty((2, 500))
    assign, add_up, add_up_3 = called(kmeans._assign), called(kmeans._totals), called(kmeans._totals_3)
    for _ in range(50):
        X, centres = rng.normal(size=(3, 500)), 2.0 * rng.normal(size=(3, 3))
        totals, quick = np.empty((3, 4)), np.empty((3, 4))
        assign(X, centres, labels, work)
        add_up(X, labels, totals)
        add_up_3(X, centres, quick)
        np.testing.assert_array_equal(quick[:, 3], totals[:, 3])
        np.testing.assert_allclose(quick, totals, atol=1e-10)


@pytest.mark.parametrize(("dimensions", "k"), [(3, 3), (2, 3), (3, 4)])
def test_centres_move_as_scikit_learns_do(dimensions, k):
    move = called(kmeans._lloyd)
    rng = np.random.default_rng(0)
    for _ in range(10):
        Z = rng.normal(size=(400, dimensions)) + rng.integers(3, size=(400, 1))
        Z -= Z.mean(axis=0)
        centres, labels, work = Z[:k].copy(), np.empty(400, dtype=np.int64), np.empty((2, 400))
        expected = KMeans(k, init=centres, n_init=1, tol=0.0, algorithm="lloyd").fit(Z)
        within = move(np.ascontiguousarray(Z.T), centres, labels, work)
        assert within == pytest.approx(expected.inertia_, rel=1e-9)
        np.testing.assert_allclose(centres, expected.cluster_centers_, atol=1e-9)


def test_clusters_do_not_depend_on_where_the_points_are(embeddings):
    for Z, labels in embeddings[::5]:
        moved = cluster_nmi(Z + np.array([1e3, -1e4, 0.0]), labels)
        assert moved == pytest.approx(cluster_nmi(Z, labels), abs=1e-9)


def test_a_metric_that_sees_nothing_scores_nothing():
    assert cluster_nmi(np.zeros((500, 3)), np.arange(500) % 3) == 0.0


def test_more_clusters_than_three():
    rng = np.random.default_rng(0)
    labels = rng.integers(7, size=900)
    Z = 20 * rng.normal(size=(7, 4))[labels] + rng.normal(size=(900, 4))
    assert cluster_nmi(Z, labels) == pytest.approx(scikit.cluster_nmi(Z, labels), abs=1e-9)


@pytest.mark.parametrize("measure", [knn_error, cluster_nmi])
@pytest.mark.parametrize(
    ("Z", "labels"),
    [
        (np.zeros((8, 2)), np.zeros(7, dtype=np.int64)),
        (np.zeros((8, 2)), np.array([0, 1, -1, 0, 0, 1, 1, 0])),
        (np.zeros((8, 2)), np.zeros(8)),
        (np.zeros((8, 0)), np.zeros(8, dtype=np.int64)),
        (np.zeros((8, 2), dtype=np.float32), np.zeros(8, dtype=np.int64)),
    ],
)
def test_what_compiled_code_would_read_beyond_is_refused(measure, Z, labels):
    with pytest.raises(ValueError, match="must be"):
        measure(Z, labels)
