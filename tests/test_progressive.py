"""Every comparison is judged by the metric just before it, however the stream is cut."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.metrics import roc_auc_score

from ocelad import (
    ChangeAlarm,
    CoinBetting,
    GroupedShare,
    History,
    Logistic,
    MetricTracker,
    SaolWeights,
    VonNeumann,
)
from ocelad.baselines import comid
from ocelad.watch.prequential import progressive
from ocelad.watch.scores import Running
from streams import comparisons

TRACKERS = {
    "recommended": MetricTracker,
    "rice": MetricTracker.rice,
    "paper": MetricTracker.paper,
    "logistic": lambda: MetricTracker(loss=Logistic()),
    "not compiled": lambda: MetricTracker(weights=CoinBetting()),
    "drawn": lambda: MetricTracker(weights=SaolWeights()),
    "boxes": lambda: MetricTracker(divergence=VonNeumann(), origin=1.0),
    "one rate": lambda: comid(step=1.0),
    "features": lambda: MetricTracker(scale="features"),
    "rice of features": lambda: MetricTracker.rice().set_params(scale="features", origin=1.0),
    "from the identity": lambda: MetricTracker(origin=1.0, scale=2.0),
}


def one_by_one(tracker, pairs, y):
    """What the tracker says to each comparison before it learns it; nan to the first."""
    said = [(np.nan, np.nan, True, np.nan)]
    for k in range(len(y)):
        if k:
            own = pairs[k : k + 1]
            even, pooled = tracker.get_metric().decision.even, isinstance(tracker.weights, GroupedShare)
            assert pooled or even == tracker.mu_
            probability = tracker.mixture_proba(own)[0, 1] if pooled else np.nan
            said.append((tracker.pair_distance(own)[0] ** 2, even, tracker.predict(own)[0] > 0, probability))
        tracker.partial_fit(pairs[k : k + 1], y[k : k + 1])
    return [np.array(column)[1:] for column in zip(*said, strict=True)]


# from 100 features on, a stack keeps its learners in another form
@pytest.mark.parametrize(
    ("name", "n"), [*((name, 4) for name in TRACKERS), ("recommended", 110), ("rice", 110), ("paper", 110)]
)
def test_foreseen_is_what_the_tracker_would_have_said(name, n):
    pairs, y = comparisons(seed=3, steps=70, n=n)
    pairs[20] *= 1e3  # longer than a difference may count
    squares, thresholds, similar, probabilities = one_by_one(TRACKERS[name](), pairs, y)
    seen = progressive(TRACKERS[name](), pairs, y)
    np.testing.assert_allclose(seen.squared_distance[1:], squares, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(seen.threshold[1:], thresholds, rtol=1e-12)
    assert seen.similar[1:].tolist() == similar.tolist()
    usual = np.arange(1, 70) != 20  # of that one, the probability is that of the difference as it counts
    np.testing.assert_allclose(seen.probability[1:][usual], probabilities[usual], rtol=1e-9)


def test_what_is_far_beyond_all_before_is_foreseen_to_be_far():
    """Three hundred orders of magnitude: farther than a square can say, it counts as far as one can."""
    pairs, y = comparisons(seed=3, steps=30, n=4)
    seen = progressive(MetricTracker(), pairs * np.where(np.arange(30) == 25, 1e155, 1e-155)[:, None, None], y)
    assert np.isfinite(seen.squared_distance).all()
    assert np.isfinite(seen.loss).all()
    assert seen.squared_distance[25] > 1e290
    assert not seen.similar[25]


@pytest.mark.parametrize("name", TRACKERS)
def test_it_learns_what_the_tracker_would_have_learned(name):
    pairs, y = comparisons(seed=0, steps=60, n=4)
    one, other = TRACKERS[name](), TRACKERS[name]().partial_fit(pairs, y)
    seen = progressive(one, pairs, y)
    assert (one.get_mahalanobis_matrix() == other.get_mahalanobis_matrix()).all()
    assert one.mu_ == other.mu_
    np.testing.assert_array_equal(one.scale_, other.scale_)
    levels = seen.after(-1)
    for column in ("length", "weight", "loss"):
        np.testing.assert_array_equal(levels[column], other.experts_[column])
    assert one._history is None


@settings(max_examples=20, deadline=None)
@given(cuts=st.lists(st.integers(0, 50), max_size=4).map(sorted))
def test_where_the_stream_is_cut_does_not_matter(cuts):
    pairs, y = comparisons(seed=1, steps=50, n=3)
    whole, tracker, squares = progressive(MetricTracker(), pairs, y), MetricTracker(), []
    for start, stop in zip([0, *cuts], [*cuts, 50], strict=True):
        squares += progressive(tracker, pairs[start:stop], y[start:stop]).squared_distance.tolist()
    assert squares == whole.squared_distance.tolist()  # to the last bit


def test_sparse_pairs_are_foreseen_like_dense_ones():
    pairs, y = comparisons(seed=2, steps=40, n=5)
    dense = progressive(MetricTracker(), pairs, y)
    seen = progressive(MetricTracker(), [sparse.csr_array(pairs[:, k]) for k in (0, 1)], y)
    np.testing.assert_allclose(seen.squared_distance, dense.squared_distance, rtol=1e-9, atol=1e-12)


def test_a_watched_tracker_is_refused_and_a_refused_pair_changes_nothing():
    tracker = MetricTracker()
    history = History(tracker)
    with pytest.raises(ValueError, match="history"):
        progressive(tracker, np.zeros((1, 2, 3)), [1])
    history.stop()
    with pytest.raises(ValueError, match="y must be"):
        progressive(tracker, np.zeros((1, 2, 3)), [7])
    assert tracker._history is None
    assert not hasattr(tracker, "n_features_in_")


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.floats(0, 20), st.floats(1, 3), st.sampled_from([-1, 1])), min_size=2, max_size=60))
def test_running_measures_are_those_of_the_whole_stream(said):
    d2, mu, y = map(np.array, zip(*said, strict=True))
    running, loss = Running(), np.maximum(0, 1 - y * (mu - d2))
    running.add(d2[:1], mu[:1], loss[:1], y[:1])
    again = Running()
    again.restore(json.loads(json.dumps(running.state())))
    again.add(d2[1:], mu[1:], loss[1:], y[1:])
    assert again.accuracy == np.mean((d2 <= mu) == (y > 0))
    assert again.loss == pytest.approx(loss.sum())
    if len(set(y.tolist())) == 2:
        assert abs(again.auc - roc_auc_score(y, mu / (mu + d2))) <= again.auc_error + 1e-12
    else:
        assert np.isnan(again.auc)


def test_running_auc_is_close():
    rng = np.random.default_rng(0)
    y = rng.choice([-1, 1], size=20_000)
    d2 = np.exp(rng.normal(size=len(y)) - y)
    running = Running()
    running.add(d2, np.ones(len(y)), np.zeros(len(y)), y)
    assert running.auc == pytest.approx(roc_auc_score(y, -d2), abs=running.auc_error)
    assert running.auc_error < 5e-4


def test_an_alarm_goes_on_from_its_state():
    pairs, y = comparisons(seed=4, steps=1200, n=4)
    tracker, alarm, events, states = MetricTracker(), ChangeAlarm(steps=30), [], []
    outcomes = []
    for k in range(len(y)):
        wrong = bool(k and tracker.predict(pairs[k : k + 1])[0] != y[k])
        tracker.partial_fit(pairs[k : k + 1], y[k : k + 1])
        outcomes.append((wrong, tracker.experts_))
        states.append(json.dumps(alarm.state()))
        event = alarm.update(*outcomes[-1])
        if event is not None:
            events.append(event)
    assert events
    for start in (0, events[0].t - 1, events[0].t, 900):
        again = ChangeAlarm(steps=30)
        again.restore(json.loads(states[start]))
        later = [event for outcome in outcomes[start:] if (event := again.update(*outcome)) is not None]
        assert later == [event for event in events if event.t > start]
        assert again.state() == alarm.state()
