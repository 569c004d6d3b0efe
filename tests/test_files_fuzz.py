"""More than ten thousand mutated files: each is refused, or is what saving the loaded tracker would write."""

import copy
import json
import tracemalloc
import warnings
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import ocelad
from forge import dictionaries_from, joined, npy, of_sections, parts, resealed, sections, zip_members, zip_of
from ocelad import (
    L1,
    ChangeAlarm,
    Closure,
    CoinBetting,
    FileError,
    GroupedShare,
    History,
    KeyedTrackers,
    LogDet,
    Logistic,
    MetricTracker,
    OceladWeights,
    Queries,
    SaolWeights,
    SquaredFrobenius,
    Step,
    SupervisedMetricTracker,
    Unregularized,
    VonNeumann,
)
from ocelad.neighbors import MovingIndex
from streams import comparisons
from trackers import rice

EACH = 1500
OLDER = Path(__file__).parent / "data"
PAIRS, Y = comparisons(seed=0, steps=60, n=3)
WIDE, _ = comparisons(seed=1, steps=60, n=5)  # enough features for dictionaries, here


def learned(tracker, steps, pairs=PAIRS):
    return tracker.partial_fit(pairs[:steps], Y[:steps])


def weighted():
    return rice(base=4, step=Step(max_rank=2)).partial_fit(PAIRS[:30], Y[:30], sample_weight=np.full(30, 0.5))


def started():
    tracker = learned(rice(base=4), 20)
    tracker.components_ = np.diag([1.0, 2.0, 0.0])
    return learned(tracker, 12).set_threshold(np.inf)


def labelled(points, names, **options):
    tracker = SupervisedMetricTracker(memory=6, random_state=0, **options)
    return tracker.partial_fit(points, np.array(names)[(Y[:20] > 0).astype(int)])


def watched():
    tracker = rice(base=4)
    History(tracker, every=3, capacity=4, alarm=ChangeAlarm(steps=3.0, memory=8))
    return learned(tracker, 50)


def index(ids=None):
    found = MovingIndex(learned(rice(base=4), 20))
    found.add(PAIRS[:3, 0], ids)
    found.export()
    return found


def fleet(**options):
    keys = ["a", 1, ("b", 2.5)] * 10
    return KeyedTrackers(**options).partial_fit(keys, PAIRS[:30], Y[:30])


def closure(items, window=40):
    found, rng = Closure(window, random_state=0), np.random.default_rng(0)
    for i, j in rng.permuted(np.tile(np.arange(len(items)), (60, 1)), axis=1)[:, :2].tolist():
        found.answer(items[i], items[j], 1 if (i + j) % 2 == 0 else -1)
    found.derived()
    return found


def asking():
    queries = Queries(learned(rice(base=4), 20), budget=0.5, random_state=0)
    for pair in PAIRS[:9]:
        queries.wants(pair)
    return queries


def pools():
    short = {"memory": 32, "base": 4}
    return [
        learned(MetricTracker(**short), 60),
        learned(MetricTracker(scale="features", **short), 4),
        learned(MetricTracker(scale="features", **short), 30),
        learned(MetricTracker(memory=40, base=2), 31, WIDE),
        learned(MetricTracker(memory=None, step=Step(max_rank=2)), 30),
        learned(MetricTracker(memory=64, loss=Logistic(), scale=None, weights=GroupedShare(0.0, 0.0)), 8),
        learned(MetricTracker(regularizer=L1(0.02), step=1.0, **short), 40),
        learned(MetricTracker(divergence=LogDet(), origin=1.0, step=1.0, **short), 60),
        learned(MetricTracker(divergence=VonNeumann(), origin=1.0, step=1.0, memory=None), 20),
        labelled(PAIRS[:20, 0], ["no", "yes"], tracker=MetricTracker(**short)),
        fleet(tracker=MetricTracker(**short)),
        learned(MetricTracker(nonlinear=True, **short), 12),
    ]


def trackers():
    return [
        learned(rice(base=2), 30),
        learned(rice(base=4, weights=OceladWeights(regret="mixture"), origin=np.eye(3)), 31),
        learned(rice(base=8, weights=SaolWeights(), regularizer=SquaredFrobenius(0.05), step=1.0), 32),
        learned(rice(base=4, weights=CoinBetting(), scale=2.0, origin=0.5), 33),
        learned(rice(base=2), 31, WIDE),
        learned(rice(base=4, step=Step(max_rank=2), preprocessor=WIDE[:9, 0]), 30, WIDE).set_threshold(0.5),
        learned(rice(regularizer=Unregularized(), n_components=2), 30),
        learned(MetricTracker.paper(), 30),
        weighted(),
        started(),
        labelled(PAIRS[:20, 0], ["no", "yes"]),
        labelled(sparse.csr_array(WIDE[:20, 0]), [3, 4], tracker=rice(base=2), strategy="random"),
        watched(),
        index(),
        index(["a", "b", ""]),
        fleet(history={"every": 4, "alarm": ChangeAlarm()}),
        fleet(prior=learned(rice(base=2), 9)),
        closure(range(9)),
        closure(["a", "b", "", "é", 3], None),
        asking(),
        *pools(),
    ]


CLASSES = ["MetricTracker", "SupervisedMetricTracker", "KeyedTrackers", "MovingIndex", "Closure", "History"]
VALUES = [
    *(
        None,
        True,
        False,
        0,
        1,
        -1,
        2,
        7,
        1e-300,
        1e300,
        -0.0,
        0.5,
        "auto",
        "features",
        "fresh",
        "after",
        "",
        "origin",
        [],
        {},
    ),
    *(2**31, 2**62, 2**63, 10**30, 10**400, 10**5, [1.0], [[1.0, 0.0], [0.0, 1.0]], {"array": "origin"}, *CLASSES),
    *({"part": name} for name in (*ocelad.__all__, "eval", "__init__", None, 3)),
    *({"part": "NuclearNorm", "strength": value} for value in (0, 1e308, -1, True, None, "x", 10**400)),
]


LARGEST = -float(np.finfo(np.float32).max), float(np.finfo(np.float32).max)
ODD = [0.0, -0.0, 1.0, np.nan, np.inf, -1e308, 1e308, 5e-324]


@pytest.fixture(scope="module", name="files")
def fixture_files():
    """The bytes of many kinds of tracker."""
    with pytest.MonkeyPatch.context() as patch:
        dictionaries_from(patch, 4)
        yield [ocelad.dumps(tracker) for tracker in trackers()]


def some(rng, things):
    return things[rng.integers(len(things))]


def flipped(rng, data):
    """One to three bits, or bytes, are others."""
    data = bytearray(data)
    for _ in range(rng.integers(1, 4) if data else 0):
        place = rng.integers(len(data))
        data[place] = rng.integers(256) if rng.random() < 0.3 else data[place] ^ (1 << rng.integers(8))
    return bytes(data)


def cut(rng, data):
    """The beginning, the end, or all but a piece in between."""
    a, b = sorted(rng.integers(len(data) + 1, size=2))
    return some(rng, [data[:a], data[a:], data[:a] + data[b:]])


def spliced(rng, data, other):
    """A piece of another file, or of the same elsewhere, in place of or in between what was there."""
    a, b, c = rng.integers(len(data) + 1), rng.integers(len(other) + 1), rng.integers(1, 200)
    return data[:a] + other[b : b + c] + data[a + some(rng, [0, c]) :]


def raw(rng, files):
    """Bytes changed anywhere."""
    data, other = some(rng, files), some(rng, files)
    return some(rng, [flipped(rng, data), cut(rng, data), spliced(rng, data, other)])


def mended(rng, files):
    """The same, and the checksum is right."""
    return resealed(raw(rng, files))


def bits_of_sections(rng, files):
    """Bytes of the options, the entries or the arrays changed, everything around them right."""
    found = list(sections(some(rng, files)))
    for _ in range(rng.integers(1, 3)):
        place = rng.integers(3)
        found[place] = flipped(rng, found[place])
    return of_sections(*found)


def numbers(rng, files):
    """Numbers of arrays changed, everything around them right."""
    options, entries, arrays = parts(some(rng, files))
    change_number(rng, some(rng, list(arrays.values())))
    return joined(options, entries, arrays)


def change_number(rng, array):
    if array.size:
        place, flat = rng.integers(array.size), array.reshape(-1)
        if array.dtype == np.uint8:
            flat[place] ^= 1 << rng.integers(8)
        elif array.dtype == np.int64:
            odd = rng.random() < 0.5
            flat[place] = some(rng, [0, 1, -1, 5, 2**62, -(2**63)]) if odd else flat[place] + some(rng, [-1, 1])
        elif rng.random() < 0.5:
            flat[place] = np.clip(some(rng, ODD), *LARGEST) if array.dtype == np.float32 else some(rng, ODD)
        else:
            flat[place] *= 1 + 2.0 ** -rng.integers(60)


def entries_changed(rng, files):
    """Options or entries changed, everything around them right."""
    options, entries, arrays = parts(some(rng, files))
    change_entries(rng, [options, options, entries])
    return joined(options, entries, arrays)


def change_entries(rng, outermost):
    """Some of these dictionaries, or of those within."""
    for _ in range(rng.integers(1, 3)):
        places = [place for place in outermost if place]
        for place in places:  # grows as it goes, so that all are found at any depth
            places += [value for value in place.values() if value and isinstance(value, dict)]
        entries = some(rng, places)
        name = some(rng, list(entries))
        value = entries[name]
        way = rng.integers(4)
        if way == 0 and type(value) in (int, float) and abs(value) < 2**99:
            entries[name] = value + some(rng, [-1, 1, 0.5, 2**40])
        elif way == 1:
            del entries[name]
        elif way == 2:
            entries[some(rng, ["x", *entries])] = copy.deepcopy(value)
        else:
            entries[name] = copy.deepcopy(some(rng, VALUES))


def arrays_moved(rng, files):
    """Arrays in another order, under another's name, gone, or from another file."""
    options, entries, arrays = parts(some(rng, files))
    return joined(options, entries, moved(rng, arrays, parts(some(rng, files))[2]))


def moved(rng, members, others):
    a, b = some(rng, list(members)), some(rng, list(members))
    way = rng.integers(4)
    if way == 0:
        members[a], members[b] = members[b], members[a]
    elif way == 1:
        members = {name: members[name] for name in rng.permutation(list(members)).tolist()}
    elif way == 2:
        del members[a]
    else:
        name = some(rng, list(others))
        members[name] = others[name]
    return members


def table_changed(rng, files):
    """Another name, dtype or shape in the table of arrays, or lines of it gone or twice."""
    options, text, rest = sections(some(rng, files))
    entries = json.loads(text)
    table = entries["arrays"]
    line = some(rng, table)
    name, _, shape = line
    new = {
        0: [
            some(rng, [name + "x", name[:-1], name.upper(), "../" + name, some(rng, table)[0], 3, None]),
            *line[1:],
        ],
        1: [name, some(rng, ["f8", "i8", "u1", "O8", "f4", "f2", ">f8", "", 8]), shape],
        2: [name, line[1], some(rng, [shape[::-1], [*shape, 1], [int(np.prod(shape))], [2**40] * 3, [], [0], {}])],
        3: [name, line[1], [size + some(rng, [-1, 0, 1, 2**20, 0.5]) for size in shape]],
        4: some(rng, [None, [], {}, name, line[:2], [*line, 1]]),
    }[int(rng.integers(5))]
    at = table.index(line)
    table[at : at + 1] = some(rng, [[new], [new], [new], [line, line], []])
    return of_sections(options, json.dumps(entries, sort_keys=True, separators=(",", ":")).encode(), rest)


KINDS = [raw, mended, bits_of_sections, numbers, entries_changed, arrays_moved, table_changed]


def outcome(data, limit=2**22):
    """A tracker, or None for bytes that are refused; any other error goes up, and fails the test."""
    try:
        return ocelad.loads(data, limit=limit)
    except FileError:
        return None


def test_files_themselves_are_read(files):
    for data in files:
        assert joined(*parts(data)) == of_sections(*sections(data)) == data
        assert ocelad.dumps(outcome(data)) == data


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_mutated_files(kind, files):
    rng, accepted = np.random.default_rng(KINDS.index(kind)), 0
    for _ in range(EACH):
        data = kind(rng, files)
        tracker = outcome(data)
        if tracker is None:
            continue
        assert data in files or kind is not raw
        assert ocelad.dumps(tracker) == data
        if data not in files:
            accepted += 1
            go_on(tracker)
    # a forged number can be as good as the true one; forged bytes cannot
    assert accepted > EACH // 20 if kind is numbers else accepted < EACH // 2


def go_on(tracker):
    """No file may bring down the kernels; numbers out of all proportion may end in an error."""
    with warnings.catch_warnings(), np.errstate(all="ignore"), suppress(ValueError, ArithmeticError):
        warnings.simplefilter("ignore")
        learn_more(tracker)


def learn_more(tracker):
    if isinstance(tracker, Queries):
        tracker.query(PAIRS)
        if tracker.budget is not None:
            tracker.wants(PAIRS[0])
        tracker = tracker.tracker
    if isinstance(tracker, KeyedTrackers):
        keys = [*list(tracker)[:3], "new"] * 3
        n = 3 if tracker._new is None else min(tracker._new.n_features_in_, 9)
        pairs = np.random.default_rng(0).normal(size=(len(keys), 2, n))
        tracker.partial_fit(keys, pairs, np.resize([1, -1], len(keys))).predict(keys, pairs)
        return
    if isinstance(tracker, Closure):
        for number, item in enumerate([*tracker._count][:12]):
            tracker.answer(item, "new", 1 if number % 2 else -1)
            tracker.derived()
        tracker.reset()
        return
    metric = tracker.metric if isinstance(tracker, MovingIndex) else tracker
    pairs = np.random.default_rng(0).normal(size=(12, 2, metric.n_features_in_))
    if isinstance(tracker, SupervisedMetricTracker):
        tracker.set_params(pairs_per_point=1)  # so many as to take for ever is no crash
        tracker.partial_fit(pairs[:, 0], np.resize(tracker._recent[1], 12)).transform(pairs[:, 0])
        return
    metric.partial_fit(pairs, np.where(np.arange(12) % 2, 1, -1)).predict(pairs)
    if isinstance(tracker, MovingIndex):
        tracker.add(pairs[:2, 0], None if tracker.ids.dtype != object else ["y", "z"])
        tracker.kneighbors(pairs[:, 1], 2)


def test_mutated_files_stay_within_memory(files):
    rng, limit = np.random.default_rng(99), 2**20
    mutants = [kind(rng, files) for kind in KINDS for _ in range(60)]
    mutants += [kind(rng, older()) for kind in OLDER_KINDS for _ in range(60)]
    tracemalloc.start()
    try:
        for data in mutants:
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            outcome(data, limit)
            assert tracemalloc.get_traced_memory()[1] - before <= limit + 2**18
    finally:
        tracemalloc.stop()


# Files of 0.1.0


def older():
    return [zip_members(path) for path in sorted(OLDER.glob("*.ocelad"))]


def zip_bits(rng, files):
    members = dict(some(rng, files))
    for _ in range(rng.integers(1, 3)):
        name = some(rng, list(members))
        members[name] = flipped(rng, members[name])
    return zip_of(members)


def zip_numbers(rng, files):
    members = dict(some(rng, files))
    name = some(rng, list(members)[1:])
    data = bytearray(members[name])
    change_number(rng, np.frombuffer(data, "<i8" if b"'<i8'" in data[:128] else "<f8", offset=128))
    return zip_of(members | {name: bytes(data)})


def zip_shapes(rng, files):
    """Arrays of another shape or dtype."""
    members = dict(some(rng, files))
    name = some(rng, list(members)[1:])
    start = 128 if len(members[name]) >= 128 else 0
    array = np.frombuffer(members[name], some(rng, ["<i8", "<f8"]), offset=start)
    new = some(
        rng, [array, array[:, None], array[None], array[:1].sum(), array[:0], array[None, :, None], array[1:]]
    )
    return zip_of(members | {name: npy(new)})


def zip_entries(rng, files):
    members = dict(some(rng, files))
    header = json.loads(members["header.json"])
    change_entries(rng, [header])
    return zip_of(members | {"header.json": json.dumps(header, sort_keys=True).encode()})


def zip_members_moved(rng, files):
    return zip_of(moved(rng, dict(some(rng, files)), some(rng, files)))


OLDER_KINDS = [zip_bits, zip_numbers, zip_shapes, zip_entries, zip_members_moved]


@pytest.mark.parametrize("kind", OLDER_KINDS, ids=lambda kind: kind.__name__)
def test_mutated_files_of_0_1_0(kind):
    """Each is refused, or is a tracker that can go on, and be saved."""
    rng, read, files = np.random.default_rng(OLDER_KINDS.index(kind)), 0, older()
    assert len(files) == 10
    for _ in range(EACH // 3):
        tracker = outcome(kind(rng, files), 2**24)
        if tracker is not None:
            read += 1
            data = ocelad.dumps(tracker)
            assert ocelad.dumps(ocelad.loads(data)) == data
            go_on(tracker)
    assert read > 0
