"""Bytes of trackers, and records without options: the same for the same state; they continue bit for bit."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import ocelad
from forge import dictionaries_from, resealed
from ocelad import (
    L1,
    CoinBetting,
    FileError,
    Hinge,
    LogDet,
    MetricTracker,
    NuclearNorm,
    OceladWeights,
    SaolWeights,
    SquaredFrobenius,
    Step,
    SupervisedMetricTracker,
    Unregularized,
    VonNeumann,
)
from ocelad.state import pack, unpack
from streams import comparisons
from trackers import rice

N, STEPS, CUT = 5, 90, 37
PAIRS, Y = comparisons(seed=3, steps=STEPS, n=N)


def learn(tracker, start=0, stop=CUT):
    return tracker.partial_fit(PAIRS[start:stop], Y[start:stop])


def started(tracker):
    learn(tracker, 0, 20).components_ = np.diag([1.0, 2.0, 0.0, 0.0, 1.0])
    return learn(tracker, 20, CUT).set_threshold(np.inf)


TRACKERS = {
    "defaults": lambda: learn(rice()),
    "paper": lambda: learn(MetricTracker.paper()),
    "matrix": lambda: learn(rice(origin=np.eye(N), preprocessor=PAIRS[:9, 0], weights=OceladWeights())),
    "identity": lambda: learn(rice(origin=0.5, scale=2.0, weights=CoinBetting(), base=4)),
    "capped": lambda: learn(rice(step=Step(max_rank=2), n_components=3, regularizer=NuclearNorm(0.001))),
    "full": lambda: learn(rice(regularizer=Unregularized())),
    "boxes": lambda: learn(rice(regularizer=SquaredFrobenius(0.05), step=0.5, weights=SaolWeights())),
    "given": lambda: started(rice(base=4)),
    "pool": lambda: learn(MetricTracker()),
    "pool-short": lambda: learn(MetricTracker(memory=32, step=Step(max_rank=2), n_components=3)),
    "pool-no-memory": lambda: learn(MetricTracker(memory=None, scale=2.0)),
    "pool-L1": lambda: learn(MetricTracker(memory=32, regularizer=L1(0.02), step=1.0)),
    "pool-LogDet": lambda: learn(MetricTracker(memory=32, divergence=LogDet(), origin=1.0, step=1.0)),
    "pool-VonNeumann": lambda: learn(MetricTracker(memory=None, divergence=VonNeumann(), origin=1.0, step=1.0)),
    "pool-given": lambda: started(MetricTracker(base=4, memory=32)),
    "features": lambda: learn(MetricTracker(memory=32, scale="features")),
    "features-given": lambda: started(rice(base=4, scale="features")),
    "labelled": lambda: SupervisedMetricTracker(memory=6, random_state=0).partial_fit(PAIRS[:CUT, 0], Y[:CUT]),
}


@pytest.fixture(name="many", params=[1, 10**6], ids=["dictionary", "columns"])
def fixture_many(request, monkeypatch):
    """From how many features on there are dictionaries."""
    dictionaries_from(monkeypatch, request.param)


@pytest.mark.parametrize("name", TRACKERS)
def test_bytes_continue_bit_for_bit(name, many):  # noqa: ARG001
    tracker = TRACKERS[name]()
    data = ocelad.dumps(tracker)
    again, copy = ocelad.loads(data), ocelad.loads(memoryview(bytearray(data)))
    assert type(again) is type(tracker)
    assert ocelad.dumps(again) == ocelad.dumps(tracker) == data
    for each in (tracker, again):
        if name == "labelled":
            each.partial_fit(PAIRS[CUT:, 0], Y[CUT:])
        else:
            learn(each, CUT, STEPS)
    assert ocelad.dumps(again) == ocelad.dumps(tracker) != data
    assert ocelad.dumps(copy) == data  # shares nothing with the others


def test_files_are_these_bytes(tmp_path):
    tracker, path = learn(MetricTracker()), tmp_path / "tracker"
    ocelad.save(tracker, path)
    assert path.read_bytes() == ocelad.dumps(tracker)
    assert ocelad.dumps(ocelad.load(path)) == path.read_bytes()
    assert [each.name for each in tmp_path.iterdir()] == ["tracker"]


def test_equal_options_are_not_mixed_up():
    """What has been read before is not read again: then 1 must not stand for 1.0 or True."""
    for regularizer, step in ((NuclearNorm(1), 8), (NuclearNorm(1.0), 8.0), (NuclearNorm(np.float64(1)), 8)):
        data = ocelad.dumps(learn(MetricTracker(regularizer=regularizer, step=step)))
        again = ocelad.loads(data)
        assert type(again.step) is type(step)
        assert type(again.regularizer.strength) is (int if type(regularizer.strength) is int else float)
        assert ocelad.dumps(again) == data
    tracker = learn(MetricTracker())
    ocelad.dumps(tracker)
    with pytest.raises(ValueError, match="options have changed since the first comparison"):
        ocelad.dumps(tracker.set_params(step=4.0))
    ocelad.dumps(tracker.set_params(step=8.0))


def test_loaded_trackers_share_nothing():
    data = ocelad.dumps(learn(MetricTracker()))
    one, other = ocelad.loads(data), ocelad.loads(data)
    learn(one, CUT, STEPS)
    assert ocelad.dumps(other) == data
    one.set_params(step=1.0)
    assert ocelad.loads(data).step == 8.0


def test_what_is_no_tracker_is_refused():
    class MetricTracker(ocelad.MetricTracker):
        pass

    for wrong in (Hinge(), 3, None, learn(MetricTracker())):
        with pytest.raises(ValueError, match="tracker must be one of MetricTracker, SupervisedMetricTracker"):
            ocelad.dumps(wrong)
    with pytest.raises(NotFittedError):
        ocelad.dumps(ocelad.MetricTracker())
    for wrong in ("text", 3, None):
        with pytest.raises(ValueError, match="data must be bytes, got"):
            ocelad.loads(wrong)
    with pytest.raises(ValueError, match="limit must be a number of bytes, got 0"):
        ocelad.loads(b"", limit=0)


# Records


@pytest.mark.parametrize("name", [name for name in TRACKERS if name != "labelled"])
def test_a_record_is_all_but_the_options(name):
    tracker = TRACKERS[name]()
    record = pack(tracker)
    again = unpack(record, clone(tracker))
    assert ocelad.dumps(again) == ocelad.dumps(tracker)
    assert len(record) < len(ocelad.dumps(tracker)) - 100


def test_a_record_of_something_else_is_refused():
    record = pack(learn(MetricTracker()))
    for data, words in (
        (record[:-1], "checksum"),
        (b"", "checksum"),
        (ocelad.dumps(learn(MetricTracker())), "not as ocelad.save writes them"),
        (resealed(record[:4] + b"!" + record[5:]), "not a JSON object"),
    ):
        with pytest.raises(FileError, match=words):
            unpack(data, MetricTracker())
    with pytest.raises(FileError, match="levels must be"):
        unpack(record, MetricTracker(base=1))
    with pytest.raises(FileError, match="may take more than"):
        unpack(record, MetricTracker(), limit=len(record) + 50_000)
