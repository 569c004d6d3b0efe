"""Small versions of the paper's claims, and of ours, on two trials of the synthetic experiment."""

import numpy as np
import pytest

from ocelad import MetricTracker
from ocelad.studies import METHODS, Trial, summary


@pytest.fixture(scope="module", name="records")
def fixture_records():
    after = {"after": lambda: MetricTracker.paper(step=8.0, strength=0.01).set_params(order="after")}
    records = []
    for seed in range(2):
        trial = Trial(seed, {**METHODS, **after})
        assert sum(1 for _ in trial) == 5500
        records += trial.records
    return records


def mean(records, method, measure="knn_error", **where):
    chosen = [r for r in records if r.method == method and all(getattr(r, k) == v for k, v in where.items())]
    return np.mean([getattr(r, measure) for r in chosen])


def late(records, method, segment):
    """P(NMI > 0.8) over the last 500 steps of a segment."""
    own = [r for r in records if r.method == method and r.segment == segment]
    end = max(r.t for r in own)
    return np.mean([r.nmi > 0.8 for r in own if r.t > end - 500])


def test_error_of_the_recommended_and_of_the_papers_setting(records):
    assert mean(records, "ocelad") == pytest.approx(0.028, abs=0.010)
    assert mean(records, "paper's setting") == pytest.approx(0.064, abs=0.020)
    assert mean(records, "COMID, high rate") == pytest.approx(0.042, abs=0.012)


def test_ocelad_adapts_to_every_kind_of_change(records):
    for segment in (0, 1, 3, 4):
        assert late(records, "ocelad", segment) >= 0.9


def test_a_low_rate_fails_after_a_change(records):
    for segment in (1, 4):
        failing = [r.nmi > 0.8 for r in records if r.method == "COMID, low rate" and r.segment == segment]
        assert np.mean(failing) <= 0.2


def test_a_high_rate_recovers_more_slowly(records):
    for segment in (1, 4):
        assert mean(records, "COMID, high rate", segment=segment) > mean(records, "ocelad", segment=segment)


def test_the_listings_order_is_fatal(records):
    """Losses taken after the update reward the learner that has just fitted this very comparison."""
    assert mean(records, "after") > 3 * mean(records, "paper's setting")
    assert np.mean([r.nmi > 0.8 for r in records if r.method == "after"]) < 0.05


def test_summary_adds_up(records):
    lines = {line.method: line for line in summary(records)}
    line = lines["ocelad"]
    per_trial = [mean(records, "ocelad", trial=trial) for trial in (0, 1)]
    assert line.error == pytest.approx(np.mean(per_trial))
    assert line.standard_error == pytest.approx(abs(per_trial[0] - per_trial[1]) / 2)
    assert line.segments[1] == pytest.approx(mean(records, "ocelad", segment=1))
    assert list(lines) == [*METHODS, "after"]


def test_a_trial_depends_on_its_seed_alone(records):
    again = Trial(1, {"Euclid": METHODS["Euclid"]})
    for _ in again:
        pass
    assert again.records == [r for r in records if r.method == "Euclid" and r.trial == 1]
