"""Small versions of the paper's claims, and of ours, on two trials of the synthetic experiment."""

import numpy as np
import pytest

from ocelad import MetricTracker
from ocelad.cli.demo import METHODS
from ocelad.studies import Results, Study, methods, run_trial, summarise

AFTER = "paper, losses after"
STUDY = Study((*METHODS, AFTER))


@pytest.fixture(scope="module", name="results")
def fixture_results():
    return Results.of(STUDY, [run_trial(STUDY, trial) for trial in range(2)])


def error(results, method, segment=None):
    where = [segment in (None, own) for own in STUDY.evaluated_segments]
    return results.error[:, STUDY.methods.index(method), where].mean()


def good(results, method, segment=None, last=None):
    """P(NMI > 0.8) over a segment, or over its last steps."""
    times = [t for t, own in zip(STUDY.times, STUDY.evaluated_segments, strict=True) if segment in (None, own)]
    where = [t in times and (last is None or t > times[-1] - last) for t in STUDY.times]
    return results.good[:, STUDY.methods.index(method), where].mean()


def test_error_of_the_recommended_and_of_the_papers_setting(results):
    assert error(results, "ocelad") == pytest.approx(0.017, abs=0.006)
    assert error(results, "paper's setting") == pytest.approx(0.064, abs=0.020)
    assert error(results, "COMID, high rate") == pytest.approx(0.042, abs=0.012)


def test_error_of_rice_alone(monkeypatch):
    monkeypatch.setitem(methods.METHODS, "RICE", MetricTracker.rice)
    study = Study(("RICE",))
    results = Results.of(study, [run_trial(study, trial) for trial in range(2)])
    assert results.error.mean() == pytest.approx(0.028, abs=0.010)


def test_ocelad_adapts_to_every_kind_of_change(results):
    for segment in (0, 1, 3, 4):
        assert good(results, "ocelad", segment, last=500) >= 0.9


def test_a_low_rate_fails_after_a_change(results):
    for segment in (1, 4):
        assert good(results, "COMID, low rate", segment) <= 0.2


def test_a_high_rate_recovers_more_slowly(results):
    for segment in (1, 4):
        assert error(results, "COMID, high rate", segment) > error(results, "ocelad", segment)


def test_the_listings_order_is_fatal(results):
    """Losses taken after the update reward the learner that has just fitted this very comparison."""
    assert error(results, AFTER) > 3 * error(results, "paper's setting")
    assert good(results, AFTER) < 0.05


def test_summary_adds_up(results):
    lines = {(line.method, line.segment): line for line in summarise(results)}
    per_trial = results.error[:, 0].mean(axis=1)
    assert lines["ocelad", "all"].knn_error == pytest.approx(per_trial.mean())
    assert lines["ocelad", "all"].knn_error_se == pytest.approx(abs(per_trial[0] - per_trial[1]) / 2)
    assert lines["ocelad", "1"].knn_error == pytest.approx(error(results, "ocelad", 1))
    assert list(dict.fromkeys(method for method, _ in lines)) == [*METHODS, AFTER]


def test_a_trial_depends_on_its_seed_alone(results):
    again = run_trial(Study(("Euclid",)), 1)
    np.testing.assert_array_equal(again.measures[0, :, 0], results.error[1, STUDY.methods.index("Euclid")])
