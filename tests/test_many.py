"""Many trackers at once: each exactly as if it were alone."""

import numpy as np
import pytest
from scipy import sparse

from ocelad import MetricTracker, NuclearNorm
from ocelad import fleet as many
from streams import comparisons


@pytest.mark.parametrize("threads", [None, 1, 2, 5])
def test_a_fleet_is_its_trackers_one_by_one(threads):
    streams = [comparisons(seed=seed, steps=150 + seed, n=6) for seed in range(7)]
    trackers = [MetricTracker(regularizer=NuclearNorm(0.01 * (1 + seed))) for seed in range(7)]
    many.learn([(tracker, *stream) for tracker, stream in zip(trackers, streams, strict=True)], threads=threads)
    for seed, (pairs, y) in enumerate(streams):
        alone = MetricTracker(regularizer=NuclearNorm(0.01 * (1 + seed))).partial_fit(pairs, y)
        assert np.array_equal(alone.get_mahalanobis_matrix(), trackers[seed].get_mahalanobis_matrix())
        assert np.array_equal(alone.levels_["weight"], trackers[seed].levels_["weight"])


def test_keys_go_to_trackers_of_their_own_in_order():
    pairs, y = comparisons(seed=0, steps=400, n=5)
    keys = np.random.default_rng(1).choice(["a", "b", "c"], size=400)
    keys[:5] = "a"  # the others come later
    keyed = many.KeyedTrackers(threads=2)
    for part in (slice(5), slice(5, 130), slice(130, None)):
        keyed.partial_fit(keys[part], pairs[part], y[part])
    assert sorted(keyed) == ["a", "b", "c"]
    assert len(keyed) == 3
    for key in keyed:
        alone = MetricTracker().partial_fit(pairs[keys == key], y[keys == key])
        assert np.array_equal(alone.get_mahalanobis_matrix(), keyed[key].get_mahalanobis_matrix())
        np.testing.assert_array_equal(alone.predict(pairs), keyed.predict([key] * 400, pairs))
    np.testing.assert_array_equal(keyed.predict(keys, pairs)[keys == "b"], keyed["b"].predict(pairs[keys == "b"]))
    assert keyed.pair_distance(keys, pairs).shape == (400,)


@pytest.mark.parametrize(
    "keys",
    [
        np.array(["2024-02-29", "2024-03-01"], dtype="datetime64[ns]"),
        np.array(["2024-02-29", "2024-03-01"], dtype="datetime64[D]"),
        np.array([3, 4], dtype="timedelta64[us]"),
        np.array([1.5, 2.5]),
        np.array(["a", "b"]),
    ],
    ids=lambda keys: str(keys.dtype),
)
def test_keys_of_an_array_are_its_entries(keys):
    pairs, y = comparisons(seed=0, steps=40, n=5)
    keyed = many.KeyedTrackers().partial_fit(np.tile(keys, 20), pairs, y)
    assert [key in keyed for key in keys] == [True, True]
    assert list(keyed) == list(keys)
    alone = MetricTracker().partial_fit(pairs[1::2], y[1::2])
    np.testing.assert_array_equal(keyed[keys[1]].get_mahalanobis_matrix(), alone.get_mahalanobis_matrix())


def test_keyed_sparse_pairs():
    pairs, y = comparisons(seed=0, steps=60, n=5)
    keys = [number % 3 for number in range(60)]
    dense = many.KeyedTrackers().partial_fit(keys, pairs, y)
    rows = many.KeyedTrackers().partial_fit(keys, tuple(sparse.csr_array(pairs[:, side]) for side in (0, 1)), y)
    np.testing.assert_allclose(dense[1].get_mahalanobis_matrix(), rows[1].get_mahalanobis_matrix(), atol=1e-12)


def test_what_is_refused_changes_nothing():
    pairs, y = comparisons(seed=0, steps=20, n=5)
    keyed = many.KeyedTrackers().partial_fit(["a"] * 20, pairs, y)
    before = keyed["a"].get_mahalanobis_matrix()
    bad = pairs.copy()
    bad[7, 0, 0] = np.nan
    for keys, given, labels, word in (
        (["a"] * 19, pairs, y, "keys"),
        ([[]] * 20, pairs, y, "hashable"),
        (np.where(np.arange(20) == 3, np.nan, 1.0), pairs, y, "equal to themselves, got nan"),
        ([np.datetime64("NaT")] * 20, pairs, y, "equal to themselves"),
        (["b"] * 20, bad, y, "pairs"),
        (["b"] * 20, pairs, np.full(20, 3), "y must"),
        (["b"] * 20, pairs[:, :, :4], y, "features"),
    ):
        with pytest.raises(ValueError, match=word):
            keyed.partial_fit(keys, given, labels)
        assert list(keyed) == ["a"]
        assert np.array_equal(keyed["a"].get_mahalanobis_matrix(), before)
    with pytest.raises(KeyError, match="nobody"):
        keyed["nobody"]
    with pytest.raises(ValueError, match="threads"):
        many.learn([(MetricTracker(), pairs, y)], threads=0)
    with pytest.raises(ValueError, match="twice"):
        many.learn([(keyed["a"], pairs, y)] * 2)
    with pytest.raises(ValueError, match="tracker"):
        many.KeyedTrackers(tracker=3)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_failure_is_raised_and_the_others_stay_whole(threads):
    pairs, y = comparisons(seed=0, steps=40, n=4)
    good, bad = MetricTracker(), MetricTracker(step=-1)
    with pytest.raises(ValueError, match="step"):
        many.learn([(good, pairs, y), (bad, pairs, y)], threads=threads)
    alone = MetricTracker().partial_fit(pairs, y)
    assert np.array_equal(good.get_mahalanobis_matrix(), alone.get_mahalanobis_matrix())
