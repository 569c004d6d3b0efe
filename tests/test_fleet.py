"""Fleets: each tracker exactly as if it were alone, also put away and brought back, saved and loaded."""

import copy
import pickle
import threading

import numpy as np
import pytest
from scipy import sparse

import ocelad
from forge import forged, put, rewritten
from ocelad import (
    ChangeAlarm,
    FileError,
    Hinge,
    History,
    KeyedTrackers,
    MetricTracker,
    NuclearNorm,
    Pool,
    SquaredFrobenius,
    Step,
)
from ocelad.fleet import learn
from streams import comparisons
from trackers import either, rice

N, STEPS = 5, 240
PAIRS, Y = comparisons(seed=2, steps=STEPS, n=N)
KEYS = np.random.default_rng(0).choice(list("abcdefgh"), size=STEPS)


def learned(fleet, *cuts):
    for start, stop in zip((0, *cuts), (*cuts, STEPS), strict=True):
        fleet.partial_fit(KEYS[start:stop], PAIRS[start:stop], Y[start:stop])
    return fleet


def contents(fleet):
    return {key: ocelad.dumps(fleet[key]) for key in sorted(fleet)}


# Each as if it were alone


@either
@pytest.mark.parametrize("threads", [None, 1, 2, 5])
def test_a_fleet_is_its_trackers_one_by_one(threads, new):
    streams = [comparisons(seed=seed, steps=150 + seed, n=6) for seed in range(7)]
    trackers = [new(regularizer=NuclearNorm(0.01 * (1 + seed))) for seed in range(7)]
    learn([(tracker, *stream) for tracker, stream in zip(trackers, streams, strict=True)], threads=threads)
    for seed, (pairs, y) in enumerate(streams):
        alone = new(regularizer=NuclearNorm(0.01 * (1 + seed))).partial_fit(pairs, y)
        assert np.array_equal(alone.get_mahalanobis_matrix(), trackers[seed].get_mahalanobis_matrix())
        assert np.array_equal(alone.experts_["weight"], trackers[seed].experts_["weight"])


def test_keys_go_to_trackers_of_their_own_in_order():
    pairs, y = comparisons(seed=0, steps=400, n=5)
    keys = np.random.default_rng(1).choice(["a", "b", "c"], size=400)
    keys[:5] = "a"  # the others come later
    keyed = KeyedTrackers(threads=2)
    for part in (slice(5), slice(5, 130), slice(130, None)):
        keyed.partial_fit(keys[part], pairs[part], y[part])
    assert sorted(keyed) == ["a", "b", "c"]
    assert len(keyed) == 3
    for key in keyed:
        alone = MetricTracker.rice().partial_fit(pairs[keys == key], y[keys == key])
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
    keyed = KeyedTrackers().partial_fit(np.tile(keys, 20), pairs, y)
    assert [key in keyed for key in keys] == [True, True]
    assert list(keyed) == list(keys)
    alone = MetricTracker.rice().partial_fit(pairs[1::2], y[1::2])
    np.testing.assert_array_equal(keyed[keys[1]].get_mahalanobis_matrix(), alone.get_mahalanobis_matrix())


def test_implied_pairs_go_to_trackers_of_their_own():
    pairs, y = comparisons(seed=0, steps=120, n=5)
    keys = np.random.default_rng(1).choice(["a", "b"], size=120)
    pool = MetricTracker(memory=32)
    keyed = KeyedTrackers(pool, max_in_memory=1).partial_fit(keys[:60], pairs[:60], y[:60])
    keyed.partial_fit_implied(keys[60:], pairs[60:], y[60:])
    for key in "ab":
        first, then = keys[:60] == key, keys[60:] == key
        alone = MetricTracker(memory=32).partial_fit(pairs[:60][first], y[:60][first])
        alone.partial_fit_implied(pairs[60:][then], y[60:][then])
        assert ocelad.dumps(alone) == ocelad.dumps(keyed[key])


def test_keyed_sparse_pairs():
    pairs, y = comparisons(seed=0, steps=60, n=5)
    keys = [number % 3 for number in range(60)]
    dense = KeyedTrackers().partial_fit(keys, pairs, y)
    rows = KeyedTrackers().partial_fit(keys, tuple(sparse.csr_array(pairs[:, side]) for side in (0, 1)), y)
    np.testing.assert_allclose(dense[1].get_mahalanobis_matrix(), rows[1].get_mahalanobis_matrix(), atol=1e-12)


def test_what_is_refused_changes_nothing():
    pairs, y = comparisons(seed=0, steps=20, n=5)
    keyed = KeyedTrackers().partial_fit(["a"] * 20, pairs, y)
    before = keyed["a"].get_mahalanobis_matrix()
    bad = pairs.copy()
    bad[7, 0, 0] = np.nan
    for keys, given, labels, word in (
        (["a"] * 19, pairs, y, "keys"),
        (5, pairs, y, "keys must have one key for each of 20 pairs, got 5"),
        (None, pairs, y, "keys must have one key for each of 20 pairs, got None"),
        ("abcdefghijklmnopqrst", pairs, y, "keys must have one key for each of 20 pairs, got 'abc"),
        (np.array("a"), pairs, y, "keys must have one key"),
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
        learn([(MetricTracker(), pairs, y)], threads=0)
    with pytest.raises(ValueError, match="twice"):
        learn([(keyed["a"], pairs, y)] * 2)
    with pytest.raises(ValueError, match="tracker"):
        KeyedTrackers(tracker=3)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_failure_is_raised_and_the_others_stay_whole(threads):
    pairs, y = comparisons(seed=0, steps=40, n=4)
    good, bad = MetricTracker(), MetricTracker(step=-1)
    with pytest.raises(ValueError, match="step"):
        learn([(good, pairs, y), (bad, pairs, y)], threads=threads)
    alone = MetricTracker().partial_fit(pairs, y)
    assert np.array_equal(good.get_mahalanobis_matrix(), alone.get_mahalanobis_matrix())


# Put away and saved


OPTIONS = {
    "defaults": {},
    "short": {"tracker": MetricTracker(memory=32, base=2)},
    "rice": {"tracker": rice()},
    "paper": {"tracker": MetricTracker.paper()},
    "slow": {"tracker": rice(regularizer=SquaredFrobenius(0.05), step=0.5)},
    "arrays": {"tracker": MetricTracker(origin=np.eye(N), preprocessor=PAIRS[:9, 0])},
    "wide": {"tracker": MetricTracker(step=Step(max_rank=2), n_components=3)},
    "histories": {"history": {"every": 3, "capacity": 4, "alarm": ChangeAlarm(steps=5.0)}},
    "rice-histories": {"tracker": rice(), "history": {"every": 3, "capacity": 4, "alarm": ChangeAlarm(steps=5.0)}},
    "rice-prior": {"prior": rice().partial_fit(PAIRS[:30], Y[:30])},
    "prior": {"prior": MetricTracker().partial_fit(PAIRS[:30], Y[:30])},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("memory", [1, 3, 8])
@pytest.mark.parametrize("to", ["bytes", "folder"])
def test_putting_away_changes_nothing(options, memory, to, tmp_path):
    folder = tmp_path / "away" if to == "folder" else None
    plain = learned(KeyedTrackers(**options), 50, 51, 130)
    short = learned(KeyedTrackers(**options, max_in_memory=memory, folder=folder), 50, 51, 130)
    assert list(short) == list(plain)
    assert len(short._used) == min(memory, 8)
    assert sum(isinstance(kept, MetricTracker) for kept in short._kept.values()) == min(memory, 8)
    if folder is not None:
        assert len(list(folder.glob("*/*"))) == 8 - min(memory, 8)
    np.testing.assert_array_equal(short.pair_distance(KEYS, PAIRS), plain.pair_distance(KEYS, PAIRS))
    np.testing.assert_array_equal(short.predict(KEYS, PAIRS), plain.predict(KEYS, PAIRS))
    assert list(short.events()) == list(plain.events())
    assert ocelad.dumps(short) == ocelad.dumps(plain)
    assert contents(short) == contents(plain)


def test_fleets_may_have_the_same_folder(tmp_path):
    (tmp_path / "something").write_text("of another program")
    fleets = [KeyedTrackers(max_in_memory=1, folder=tmp_path) for _ in range(2)]
    for start in range(0, STEPS, 40):  # by turns, and each learns something else
        part = slice(start, start + 40)
        for fleet, sign in zip(fleets, (1, -1), strict=True):
            fleet.partial_fit(KEYS[part], PAIRS[part], sign * Y[part])
    for fleet, sign in zip(fleets, (1, -1), strict=True):
        assert contents(fleet) == contents(KeyedTrackers().partial_fit(KEYS, PAIRS, sign * Y))


def test_the_least_recently_used_go_first():
    fleet = KeyedTrackers(max_in_memory=2)
    for key in "abac":
        fleet.partial_fit([key], PAIRS[:1], Y[:1])
    assert list(fleet._used) == ["a", "c"]
    fleet.predict(["a"], PAIRS[:1])
    assert fleet["b"] is fleet["b"]
    assert list(fleet._used) == ["a", "b"]
    fleet.predict(["x", "y", "z"], PAIRS[:3])  # nobody's
    assert list(fleet._used) == ["a", "b"]


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_a_fleet_that_is_loaded_goes_on_bit_for_bit(options, tmp_path):
    path, whole, cut = tmp_path / "fleet", learned(KeyedTrackers(**options)), KeyedTrackers(**options)
    cut.partial_fit(KEYS[:150], PAIRS[:150], Y[:150])
    cut.save(path)
    assert path.read_bytes() == ocelad.dumps(cut)
    for again in (
        KeyedTrackers.load(path),
        ocelad.loads(path.read_bytes()),
        KeyedTrackers.load(path, threads=2, max_in_memory=2, folder=tmp_path / "away"),
        pickle.loads(pickle.dumps(KeyedTrackers.load(path))),
    ):
        assert ocelad.dumps(again) == path.read_bytes()
        again.partial_fit(KEYS[150:], PAIRS[150:], Y[150:])
        assert contents(again) == contents(whole)
        assert list(again.events()) == list(whole.events())
        again.partial_fit(["new"], PAIRS[:1], Y[:1])
    whole.partial_fit(["new"], PAIRS[:1], Y[:1])
    assert contents(again) == contents(whole)


@pytest.mark.parametrize("through", [copy.copy, copy.deepcopy, lambda fleet: pickle.loads(pickle.dumps(fleet))])
@pytest.mark.parametrize("memory", [None, 2])
@pytest.mark.parametrize("to", ["bytes", "folder"])
def test_copies_share_neither_trackers_nor_files(through, memory, to, tmp_path):
    folder = tmp_path if (to, memory) == ("folder", 2) else None
    fleet = KeyedTrackers(max_in_memory=memory, folder=folder, history={"alarm": ChangeAlarm(steps=5.0)})
    fleet.partial_fit(KEYS[:150], PAIRS[:150], Y[:150])
    before, other = ocelad.dumps(fleet), through(fleet)
    assert ocelad.dumps(other) == before
    learned(other).partial_fit(["new"], PAIRS[:1], Y[:1])
    del other["a"]
    assert ocelad.dumps(fleet) == before
    assert contents(fleet) == contents(ocelad.loads(before))
    again = through(fleet)
    for each in (fleet, again):
        each.partial_fit(KEYS[150:], PAIRS[150:], Y[150:])
    assert ocelad.dumps(again) == ocelad.dumps(fleet)
    assert list(again.events()) == list(fleet.events())


def test_an_empty_fleet_is_saved():
    again = ocelad.loads(ocelad.dumps(KeyedTrackers(MetricTracker(base=2))))
    assert len(again) == 0
    assert again.tracker.base == 2
    assert contents(learned(again)) == contents(learned(KeyedTrackers(MetricTracker(base=2))))


def test_keys_of_many_kinds_are_kept():
    keys = ["a", "ü", "", 3, -1, 2.5, False, ("a", 1, (True,)), np.int64(7), np.str_("z")]
    fleet = KeyedTrackers().partial_fit(keys, PAIRS[:10], Y[:10])
    again = ocelad.loads(ocelad.dumps(fleet))
    assert list(again) == keys
    for key in (np.datetime64("2024-02-29"), frozenset(), b"a", float("inf"), (1, b"")):
        with pytest.raises(ValueError, match=r"key .* cannot be saved: a file holds strings, finite numbers"):
            ocelad.dumps(KeyedTrackers().partial_fit([key], PAIRS[:1], Y[:1]))


def test_a_key_that_is_missing_is_refused():
    fleet = learned(KeyedTrackers())
    before = ocelad.dumps(fleet)
    for key in (None, float("nan"), np.nan):
        keys = ["a", key, "b"]
        for ask in (lambda: fleet.partial_fit(keys, PAIRS[:3], Y[:3]), lambda: fleet.predict(keys, PAIRS[:3])):  # noqa: B023
            with pytest.raises(ValueError, match=rf"^keys must .*, got {key!r} at index 1$"):
                ask()
    assert ocelad.dumps(fleet) == before


def test_a_fleet_says_what_it_holds():
    fleet = KeyedTrackers()
    assert repr(fleet) == "KeyedTrackers of 0 keys"
    assert fleet.keys() == []
    fleet.partial_fit(["ann"], PAIRS[:1], Y[:1])
    assert repr(fleet) == f"KeyedTrackers of 1 key, {PAIRS.shape[2]} features"
    fleet.partial_fit([3, "bob"], PAIRS[:2], Y[:2])
    assert (
        repr(fleet)
        == repr(ocelad.loads(ocelad.dumps(fleet)))
        == f"KeyedTrackers of 3 keys, {PAIRS.shape[2]} features"
    )
    assert fleet.keys() == list(fleet) == ["ann", 3, "bob"]


# Unknown keys


def test_without_a_prior_the_answer_is_that_nobody_knows():
    fleet = KeyedTrackers()
    np.testing.assert_array_equal(fleet.pair_distance(["x"] * 3, PAIRS[:3]), [np.nan] * 3)
    fleet.partial_fit(["a"] * 50, PAIRS[:50], Y[:50])
    keys = ["a", "x", "a"]
    d, sides, p = (ask(keys, PAIRS[:3]) for ask in (fleet.pair_distance, fleet.predict, fleet.predict_proba))
    assert np.isnan(d).tolist() == [False, True, False]
    assert sides.dtype == np.int64
    assert (sides == 0).tolist() == [False, True, False]
    np.testing.assert_array_equal(p[[0, 2]], fleet["a"].predict_proba(PAIRS[[0, 2]]))
    assert np.isnan(p[1]).all()
    with pytest.raises(KeyError, match="no comparison has had the key 'x'"):
        fleet["x"]
    assert list(fleet) == ["a"]


@either
def test_a_prior_answers_and_new_keys_go_on_from_it(new):
    prior = new().partial_fit(PAIRS[:40], Y[:40])
    before = ocelad.dumps(prior)
    fleet = KeyedTrackers(prior=prior)
    prior.partial_fit(PAIRS[:5], Y[:5])  # it is a copy that counts
    prior = ocelad.loads(before)
    for ask in ("pair_distance", "predict", "predict_proba"):
        np.testing.assert_array_equal(getattr(fleet, ask)(["x"] * 9, PAIRS[:9]), getattr(prior, ask)(PAIRS[:9]))
    fleet.partial_fit(["x"] * 60, PAIRS[40:100], Y[40:100])
    assert ocelad.dumps(fleet["x"]) == ocelad.dumps(prior.partial_fit(PAIRS[40:100], Y[40:100]))
    assert ocelad.dumps(fleet.prior) == before
    with pytest.raises(ValueError, match="must have 5 features"):
        fleet.predict(["x"], np.zeros((1, 2, 3)))


def test_thresholds_that_were_set_count():
    fleet = learned(KeyedTrackers(max_in_memory=2))
    fleet["a"].set_threshold(0.0)
    fleet["b"].set_threshold(np.inf)
    sides = fleet.predict(KEYS, PAIRS)  # puts both away and brings them back
    assert set(sides[KEYS == "a"]) == {-1}
    assert set(sides[KEYS == "b"]) == {1}


# Histories


@either
def test_events_come_with_their_keys(new):
    fleet = learned(KeyedTrackers(new(), history={"alarm": ChangeAlarm(steps=1.1)}))
    events = list(fleet.events())
    assert events
    for key in fleet:
        alone = new()
        history = History(alone, alarm=ChangeAlarm(steps=1.1))
        alone.partial_fit(PAIRS[key == KEYS], Y[key == KEYS])
        assert [event for name, event in events if name == key] == history.events
    assert list(learned(KeyedTrackers()).events()) == []


# What is refused, and when


def test_options_are_checked_before_anything_is_learned(tmp_path):
    own = MetricTracker(ensemble=lambda spawn: Pool([spawn(1.0, None)]))
    file = tmp_path / "file"
    file.write_text("")

    class Steep(Hinge):
        pass

    class Silent:
        def update(self, wrong, levels=None):
            pass

    for options, words in (
        ({"prior": MetricTracker()}, "prior must be a MetricTracker that has seen a comparison"),
        ({"prior": 3}, "prior must be a MetricTracker"),
        ({"prior": learned(KeyedTrackers())["a"], "tracker": MetricTracker()}, "tracker must be None"),
        ({"max_in_memory": 0}, "max_in_memory must be None or a whole number >= 1, got 0"),
        ({"max_in_memory": True}, "max_in_memory must be"),
        ({"folder": tmp_path}, "folder must be None without max_in_memory"),
        ({"folder": file, "max_in_memory": 2}, "folder must be a folder, and .* is a file"),
        ({"folder": 5, "max_in_memory": 2}, "folder must be None or a path, got 5"),
        ({"threads": 0}, "threads must be None or a whole number >= 1, got 0"),
        ({"threads": "x"}, "threads must be"),
        ({"history": True}, "history must be None or have options every, capacity, alarm, got True"),
        ({"history": {"evry": 1}}, "history must be None or have options .* got {'evry': 1}"),
        ({"history": {"every": 0}}, "every must be an integer >= 1"),
        ({"tracker": own, "max_in_memory": 2}, "ensemble=.* cannot be saved"),
        ({"tracker": MetricTracker(loss=Steep()), "max_in_memory": 2}, "loss=.* cannot be saved"),
        ({"history": {"alarm": Silent()}, "max_in_memory": 2}, "alarm=.* cannot be saved"),
    ):
        with pytest.raises(ValueError, match=words):
            KeyedTrackers(**options)
    ocelad.save(KeyedTrackers(), file)
    with pytest.raises(ValueError, match="threads must be"):
        KeyedTrackers.load(file, threads=0)
    assert len(learned(KeyedTrackers(max_in_memory=np.int64(3)))._used) == 3
    fleet = learned(KeyedTrackers(own))  # all in memory it may be anything
    alone = MetricTracker(ensemble=own.ensemble).partial_fit(PAIRS[KEYS == "a"], Y[KEYS == "a"])
    np.testing.assert_array_equal(fleet["a"].get_mahalanobis_matrix(), alone.get_mahalanobis_matrix())


@pytest.mark.parametrize("to", ["bytes", "folder"])
def test_a_tracker_with_other_options_stays_in_memory(to, tmp_path):
    fleet = learned(KeyedTrackers(max_in_memory=1, folder=tmp_path if to == "folder" else None))
    before = contents(fleet)
    fleet["a"].set_params(n_components=2)
    changed = fleet["a"]
    fleet.predict(KEYS, PAIRS)
    assert fleet._kept["a"] is changed
    assert sum(isinstance(kept, MetricTracker) for kept in fleet._kept.values()) == 2  # it, and one of the others
    assert fleet["a"] is changed
    assert {key: ocelad.dumps(fleet[key]) for key in "bcdefgh"} == {key: before[key] for key in "bcdefgh"}
    with pytest.raises(ValueError, match="the tracker of key 'a': it has other options than the others"):
        ocelad.dumps(fleet)
    changed.set_params(n_components=None)
    assert contents(ocelad.loads(ocelad.dumps(fleet))) == before
    fleet["a"].components_ = np.eye(N)  # a file cannot hold that either
    fleet.predict(KEYS, PAIRS)
    assert np.array_equal(fleet["a"].components_, np.eye(N))


def test_a_key_can_be_forgotten(tmp_path):
    fleet = learned(KeyedTrackers(max_in_memory=2, folder=tmp_path))
    for key in "abcd":
        del fleet[key]
        assert key not in fleet
    assert list(fleet._kept) == [key for key in learned(KeyedTrackers()) if key in "efgh"]
    assert len(list(tmp_path.glob("*/*"))) == 4 - len(fleet._used)
    with pytest.raises(KeyError, match="no comparison has had the key 'a'"):
        del fleet["a"]
    assert np.isnan(fleet.pair_distance(["a"], PAIRS[:1]))
    fleet.partial_fit(["a"], PAIRS[:1], Y[:1])
    assert ocelad.dumps(fleet["a"]) == ocelad.dumps(MetricTracker.rice().partial_fit(PAIRS[:1], Y[:1]))


def test_too_long_a_difference_is_refused_before_any_key_learns():
    fleet = KeyedTrackers(MetricTracker(scale=1.0)).partial_fit(["a", "b"], PAIRS[:2], Y[:2])
    before, long = contents(fleet), PAIRS[:2].copy()
    long[1, 0, 0] = 1e40
    with pytest.raises(ValueError, match="the difference of pair 1"):
        fleet.partial_fit(["a", "b"], long, Y[:2])
    assert contents(fleet) == before


def test_a_disk_that_is_full_loses_nothing(tmp_path, monkeypatch):
    fleet = KeyedTrackers(max_in_memory=2, folder=tmp_path / "away").partial_fit(["a", "b"], PAIRS[:2], Y[:2])
    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", lambda *_: (_ for _ in ()).throw(OSError("no space left")))
        with pytest.raises(OSError, match="no space left"):
            fleet.partial_fit(["c"], PAIRS[:1], Y[:1])
    assert list(fleet) == ["a", "b"]
    plain = KeyedTrackers().partial_fit(["a", "b"], PAIRS[:2], Y[:2])
    assert contents(fleet) == contents(plain)
    assert ocelad.dumps(fleet.partial_fit(["c"], PAIRS[:1], Y[:1])) == ocelad.dumps(
        plain.partial_fit(["c"], PAIRS[:1], Y[:1])
    )


@pytest.mark.parametrize("fault", ["damaged", "missing"])
@pytest.mark.parametrize("memory", [1, 3])
def test_a_record_that_is_lost_is_named_by_its_key_and_the_others_go_on(fault, memory, tmp_path):
    fleet, plain = learned(KeyedTrackers(max_in_memory=memory, folder=tmp_path)), learned(KeyedTrackers())
    lost, record = next((key, kept) for key, kept in fleet._kept.items() if not isinstance(kept, MetricTracker))
    if fault == "damaged":
        record.write_bytes(record.read_bytes()[:-3])
    else:
        record.unlink()
    for use in (
        lambda: fleet[lost],
        lambda: fleet.predict([lost], PAIRS[:1]),
        lambda: fleet.predict(KEYS, PAIRS),
        lambda: fleet.partial_fit([lost], PAIRS[:1], Y[:1]),
        lambda: list(fleet.events()),
        lambda: ocelad.dumps(fleet),
    ):
        with pytest.raises(FileError, match=f"the tracker of key '{lost}': .*(checksum|No such file)"):
            use()
        for key in set(KEYS) - {lost}:
            np.testing.assert_array_equal(fleet.predict([key] * 9, PAIRS[:9]), plain[key].predict(PAIRS[:9]))
    assert sum(isinstance(kept, MetricTracker) for kept in fleet._kept.values()) <= memory
    for each in (fleet, plain):
        del each[lost]
        each.partial_fit([lost, "new"], PAIRS[:2], Y[:2])
    assert ocelad.dumps(fleet) == ocelad.dumps(plain)


def test_a_file_without_a_fleet_is_refused(tmp_path):
    path = tmp_path / "tracker"
    ocelad.save(MetricTracker().partial_fit(PAIRS, Y), path)
    with pytest.raises(FileError, match="it holds a MetricTracker, not a KeyedTrackers"):
        KeyedTrackers.load(path)


def test_feature_names_are_kept():
    pd = pytest.importorskip("pandas")
    sides = [pd.DataFrame(PAIRS[:, side], columns=list("vwxyz")) for side in (0, 1)]
    fleet = KeyedTrackers(max_in_memory=2).partial_fit(KEYS, sides, Y)
    again = ocelad.loads(ocelad.dumps(fleet))
    assert again["a"].feature_names_in_.tolist() == list("vwxyz")
    again.partial_fit(["new"] * STEPS, sides, Y)
    assert again["new"].feature_names_in_.tolist() == list("vwxyz")
    with pytest.raises(ValueError, match="feature names"):
        again.predict(KEYS, [side[list("zyxwv")] for side in sides])


def test_sparse_pairs_of_few_in_memory():
    sides = [sparse.csr_array(np.where(np.abs(PAIRS[:, side]) > 0.2, PAIRS[:, side], 0.0)) for side in (0, 1)]
    plain, short = KeyedTrackers(), KeyedTrackers(max_in_memory=2)
    for fleet in (plain, short):
        fleet.partial_fit(KEYS, sides, Y)
    assert contents(short) == contents(plain)
    np.testing.assert_array_equal(short.predict(KEYS, sides), plain.predict(KEYS, sides))


# Threads


@pytest.mark.parametrize("memory", [None, 3])
def test_threads_of_its_own(memory):
    long = np.repeat(KEYS[:4], 60)  # enough for each that threads are used
    one, many = (KeyedTrackers(threads=threads, max_in_memory=memory) for threads in (1, 4))
    for fleet in (one, many):
        fleet.partial_fit(long, PAIRS, Y)
        learned(fleet, 100)
    assert contents(many) == contents(one)


def test_many_threads_may_use_one_fleet():
    fleet, errors = KeyedTrackers(max_in_memory=3), []

    def work(key):
        try:
            for pair, label in zip(PAIRS[:60], Y[:60], strict=True):
                fleet.partial_fit([key], pair[None], [label])
                fleet.predict([key], pair[None])
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(key,)) for key in "abcdefgh"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    alone = ocelad.dumps(MetricTracker.rice().partial_fit(PAIRS[:60], Y[:60]))
    assert {ocelad.dumps(fleet[key]) for key in fleet} == {alone}


# Forgeries


def alarm(memory=512, **state):
    state = ChangeAlarm().state() | state
    return {"steps": 1000.0, "odds": 2.0, "memory": memory, "state": state}


def test_records_of_a_file_are_held_to_its_limit(tmp_path):
    path, n = tmp_path / "fleet", 20_000
    sides = [sparse.csr_array(([1.0], ([0], [k])), shape=(1, n)) for k in range(2)]
    KeyedTrackers().partial_fit(["a"], sides, [1]).save(path)
    for limit, word in ((2**24, "may take more than"), (2**30, None)):
        fleet = KeyedTrackers.load(path, limit=limit, max_in_memory=1, folder=tmp_path)
        if word is not None:
            with pytest.raises(FileError, match=f"the tracker of key 'a': .*{word}"):
                fleet["a"]
        else:
            fleet["a"].partial_fit(sides, [1])
            fleet._limit = 1  # what the fleet itself has put away comes back whatever its size
            fleet.partial_fit(["b"], sides, [1])
            assert fleet["a"]._fitted().t == 2


def test_records_that_contradict_the_fleet_are_refused():
    data = ocelad.dumps(learned(KeyedTrackers()))
    fleet = ocelad.loads(forged(data, put(N + 1, "n_features")))
    wide = np.zeros((1, 2, N + 1))
    for use in (
        lambda: fleet["a"],
        lambda: fleet.predict(["a"], wide),
        lambda: fleet.partial_fit(["a"], wide, [1]),
    ):
        with pytest.raises(FileError, match=f"the tracker of key 'a': it has {N} features, and the fleet {N + 1}"):
            use()


def test_forged_fleets_are_refused():
    data = ocelad.dumps(learned(KeyedTrackers(history={"every": 2})))
    assert forged(data, lambda *_: None) == data
    for change, message in (
        (put(["a"] * 8, "keys"), "keys must be a list of different ones"),
        (put({}, "keys"), "keys must be"),
        (put([["a"]] * 8, "keys"), "keys must be"),
        (put(["a"], "keys"), "sizes must be int64"),
        (put(None, "prior"), "its arrays must be"),
        (put(True, "prior"), "sizes must be int64"),
        (put(-1, "n_features"), "n_features must be"),
        (put(0, "n_features"), "n_features must be those of its trackers"),
        (put({"every": 2, "capacity": 4, "alarm": alarm(memory=2**64)}, "history"), "too large"),
        (
            put({"every": 2, "capacity": 4, "alarm": alarm(square=[-1.0, 40.0])}, "history"),
            "negative mean of squares",
        ),
        (put(["a"], "feature_names"), "feature_names must be"),
        (put({"every": 2}, "history"), "does not have the entries"),
        (put({"every": 0, "capacity": 4, "alarm": None}, "history"), "every must be"),
        (put(lambda a: a + 1, "sizes"), "as many as sizes says"),
        (put(lambda a: -a, "sizes"), "as many as sizes says"),
        (put(lambda a: a[:-1], "packed"), "as many as sizes says"),
    ):
        with pytest.raises(FileError, match=message):
            ocelad.loads(forged(data, change))
    with pytest.raises(FileError, match="take more than"):
        ocelad.loads(data, limit=len(data) + 20_000)
    from_prior = ocelad.dumps(KeyedTrackers(prior=learned(KeyedTrackers())["a"]))
    for change in (put(N + 1, "n_features"), put(list("vwxyz"), "feature_names")):
        with pytest.raises(FileError, match="n_features and feature_names must be those of the prior"):
            ocelad.loads(forged(from_prior, change))
    for depth in (100, 300, 400, 450, 480):
        deep = b'{"tuple":[' * depth + b"]}" * depth
        with pytest.raises(FileError, match=r"sizes must be int64|not a JSON object|nested too deeply"):
            ocelad.loads(
                rewritten(data, lambda text, deep=deep: text.replace(b'"keys":[', b'"keys":[' + deep + b","))
            )
    wide = ocelad.loads(forged(data, put(10**15, "n_features")))  # takes no memory
    with pytest.raises(ValueError, match="must have 1000000000000000 features"):
        wide.predict(KEYS, PAIRS)
    swapped = forged(data, put(lambda a: a[::-1], "packed"))
    with pytest.raises(FileError, match="the tracker of key"):  # each is checked when it is needed
        ocelad.loads(swapped).predict(KEYS, PAIRS)
