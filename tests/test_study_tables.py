"""Tables, recovery, claims and rates, on results made up so that the answer is known."""

import csv
import json
from dataclasses import replace

import numpy as np
import pytest

from ocelad.data import Segment
from ocelad.studies import (
    TUNINGS,
    Outcome,
    Results,
    Study,
    choose,
    read_rates,
    recovery,
    summarise,
    verdicts,
    with_rates,
    write_rates,
    write_summary,
    write_table,
)
from ocelad.studies.tuning import FIRST_TRIAL, Choice

STUDY = Study(
    methods=("ocelad", "COMID, high rate@2"), segments=(Segment(100, "A", 0.0), Segment(100, "B", 0.1)), every=10
)
OUTCOMES = [Outcome(trial, np.random.default_rng(trial).random((2, 20, 2)), np.ones(4)) for trial in range(5)]


def made_up(methods, error, nmi, trials=30):
    """Results around given means, (method, evaluation) each."""
    rng = np.random.default_rng(0)
    shape = (trials, len(methods), 20)
    error, nmi = (np.clip(mean + 0.02 * rng.normal(size=shape), 0, 1) for mean in (np.array(error), np.array(nmi)))
    return Results(replace(STUDY, methods=methods), tuple(range(trials)), error, nmi, np.ones((trials, 2)))


def test_the_table_has_a_row_per_evaluation_and_every_bit(tmp_path):
    write_table(tmp_path / "table.csv", STUDY, OUTCOMES)
    with (tmp_path / "table.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["method", "trial", "t", "segment", "knn_error", "nmi"]
    assert len(rows) == 5 * 2 * 20
    expected = iter(rows)
    for outcome in OUTCOMES:
        for name, lines in zip(STUDY.methods, outcome.measures, strict=True):
            for t, segment, (error, nmi) in zip(STUDY.times, STUDY.evaluated_segments, lines, strict=True):
                row = next(expected)
                assert (row["method"], int(row["trial"])) == (name, outcome.trial)
                assert (int(row["t"]), int(row["segment"])) == (t, segment) == (t, int(t >= 100))
                assert (float(row["knn_error"]), float(row["nmi"])) == (error, nmi)
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]


def test_the_summary_is_means_over_trials_with_standard_errors(tmp_path):
    results = Results.of(STUDY, OUTCOMES)
    lines = {(line.method, line.segment): line for line in summarise(results)}
    assert list(lines) == [(name, segment) for name in STUDY.methods for segment in ("0", "1", "all")]
    error = np.array([outcome.measures[1, 10:, 0].mean() for outcome in OUTCOMES])
    good = np.array([(outcome.measures[1, 10:, 1] > 0.8).mean() for outcome in OUTCOMES])
    line = lines["COMID, high rate@2", "1"]
    assert line.trials == 5
    assert line.knn_error == pytest.approx(error.mean())
    assert line.knn_error_se == pytest.approx(error.std(ddof=1) / np.sqrt(5))
    assert line.p_nmi == pytest.approx(good.mean())
    assert line.p_nmi_se == pytest.approx(good.std(ddof=1) / np.sqrt(5))
    write_summary(tmp_path / "summary.csv", summarise(results))
    with (tmp_path / "summary.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows[1]["knn_error"] == repr(lines["ocelad", "1"].knn_error)
    assert rows[0]["recovery"] == ""  # nothing to recover from


def test_recovery_is_the_first_of_two_low_evaluations_in_a_row():
    errors = np.full((4, 1, 20), 0.5)
    errors[0, 0, 13:] = 0.05  # from the fourth evaluation after the change on
    errors[1, 0, [11, 14, 15]] = 0.01  # once is not enough
    errors[2, 0, 19] = 0.0  # too late
    errors[3, 0, :10] = 0.0  # before the change
    results = Results(replace(STUDY, methods=("ocelad",)), (0, 1, 2, 3), errors, errors, np.ones((4, 3)))
    assert recovery(results, 0, 0).tolist() == [40.0, 50.0, np.inf, np.inf]
    assert recovery(results, 0, 0, threshold=0.02).tolist() == [np.inf, 50.0, np.inf, np.inf]
    assert recovery(results, 0, 0, threshold=0.5).tolist() == [10.0] * 4
    line = next(line for line in summarise(results) if line.segment == "1")
    assert (line.recovery, line.recovered) == (np.inf, 0.5)


def test_no_trial_no_result():
    with pytest.raises(ValueError, match="there is no finished trial yet"):
        Results.of(STUDY, [])


METHODS = ("ocelad", "paper's setting", "COMID, high rate", "COMID, low rate", "SAOL", "online ITML", "LMNN")
BEFORE, AFTER = [0.01] * 10, [0.2, 0.2, *[0.01] * 8]
SLOW, NEVER = [0.2] * 6 + [0.01] * 4, [0.2] * 10
FOUND, LOST = [0.95] * 10, [0.4] * 10


def found(results):
    return {(verdict.claim.split(",")[0], verdict.method): verdict.holds for verdict in verdicts(results)}


def test_claims_hold_where_they_do(monkeypatch):
    monkeypatch.setattr("ocelad.studies.methods.METHODS", dict.fromkeys(METHODS, object))
    error = [
        BEFORE + AFTER,
        BEFORE + [e + 0.05 for e in SLOW],
        BEFORE + SLOW,
        *[BEFORE + NEVER] * 4,
    ]
    nmi = [FOUND + FOUND, FOUND + LOST, FOUND + LOST, FOUND + LOST, LOST + LOST, FOUND + LOST, FOUND + FOUND]
    holds = found(made_up(METHODS, error, nmi))
    assert holds["RICE-OCELAD adapts to every kind of change", "ocelad"] is True
    assert holds["RICE-OCELAD adapts to every kind of change", "paper's setting"] is False
    assert holds["Others do not adapt to every kind of change", "COMID, high rate"] is True
    assert holds["Others do not adapt to every kind of change", "LMNN"] is False
    assert holds["RICE-OCELAD has a lower error than every other method", "ocelad"] is True
    assert holds["RICE-OCELAD has a lower error than every other method", "paper's setting"] is False
    slower = "High-rate COMID recovers more slowly from the change before segment 1"
    assert holds[slower, "ocelad"] is True
    assert holds[slower, "paper's setting"] is False
    assert holds["SAOL fails completely: P(NMI > 0.8) is zero throughout", "SAOL"] is True
    assert holds["Low-rate COMID cannot adapt to a change", "COMID, low rate"] is True
    assert holds["Online ITML fails", "online ITML"] is True
    assert holds["The batch method cannot adapt to a change", "LMNN"] is False
    assert holds["A change causes a sudden loss of performance", "ocelad"] is True


def test_equal_methods_are_told_apart_by_no_claim():
    same = [BEFORE + AFTER, BEFORE + AFTER]
    results = made_up(("ocelad", "COMID, high rate"), same, [FOUND + FOUND] * 2)
    results.error[:, 1] = results.error[::-1, 0]  # the same trials in another order
    holds = found(results)
    assert holds["RICE-OCELAD has a lower error than every other method", "ocelad"] is None
    (words,) = [v.evidence for v in verdicts(results) if v.claim.startswith("RICE-OCELAD has")]
    assert "0.0000 ± " in words


def test_one_trial_tells_nothing():
    names = ("ocelad", "COMID, high rate", "COMID, low rate", "SAOL")
    results = made_up(names, [BEFORE + AFTER, *[BEFORE + SLOW] * 3], [FOUND + FOUND, *[LOST + LOST] * 3], trials=1)
    assert set(found(results).values()) == {None}


def chances(late, early=1.0, trials=400):
    """One method whose clusters are found with these chances in the halves of the second segment."""
    results = made_up(("COMID, low rate",), [BEFORE + AFTER], [FOUND + FOUND], trials)
    rng = np.random.default_rng(1)
    for part, chance in ((slice(10, 15), early), (slice(15, 20), late)):
        results.nmi[:, 0, part] = np.where(rng.random((trials, 5)) < chance, 0.95, 0.4)
    return found(results)


@pytest.mark.parametrize(
    ("early", "late", "holds"), [(1.0, 0.97, False), (0.0, 0.97, False), (1.0, 0.8, True), (1.0, 0.9, None)]
)
def test_adapting_is_judged_late_in_each_segment(early, late, holds):
    assert chances(late, early)["Others do not adapt to every kind of change", "COMID, low rate"] is holds


@pytest.mark.parametrize(("chance", "holds"), [(0.1, True), (0.2, None), (0.3, False), (0.9, False)])
def test_failing_is_judged_by_a_fifth_of_the_time_after_a_change(chance, holds):
    assert chances(chance, chance)["Low-rate COMID cannot adapt to a change", "COMID, low rate"] is holds


@pytest.mark.parametrize(("before", "after", "holds"), [(0.01, 0.2, True), (0.2, 0.01, False), (0.1, 0.1, None)])
def test_a_loss_is_judged_right_before_and_after_the_change(before, after, holds):
    elsewhere = 0.2 if before < after else 0.01
    errors = [elsewhere] * 8 + [before] * 2 + [after] * 2 + [before] * 8
    results = made_up(("ocelad",), [errors], [FOUND + FOUND])
    if holds is None:
        results.error[:, 0, 10:12] = results.error[::-1, 0, 8:10]  # the same in another order
    assert found(results)["A change causes a sudden loss of performance", "ocelad"] is holds


def test_segments_without_an_evaluation_tell_nothing_and_trouble_nobody():
    segments = (Segment(100, "A", 0.0), Segment(5, "B", 0.1), Segment(100, "A", 0.0))
    results = made_up(("ocelad", "COMID, high rate"), [BEFORE + AFTER] * 2, [FOUND + FOUND] * 2)
    results = replace(results, study=replace(results.study, segments=segments))
    found = verdicts(results)
    assert not any("nan" in verdict.evidence for verdict in found)
    assert not any("before segment" in verdict.claim for verdict in found)


def test_rates_are_chosen_by_the_lowest_mean_error():
    methods = tuple(f"SAOL@{step:g}" for step in (1.0, 2.0, 4.0))
    results = made_up(methods, [[0.1] * 20, [0.05] * 20, [0.2] * 20], [[0.5] * 20] * 3)
    choice = choose(results)
    assert (choice.method, choice.step, choice.at_the_edge) == ("SAOL", 2.0, False)
    assert [line[1] for line in choice.errors] == pytest.approx([0.1, 0.05, 0.2], abs=0.01)
    assert choose(made_up(methods, [[0.1] * 20, [0.2] * 20, [0.3] * 20], [[0.5] * 20] * 3)).at_the_edge


def test_rates_go_through_a_file(tmp_path):
    results = made_up(("SAOL@1", "SAOL@2"), [[0.1] * 20, [0.05] * 20], [[0.5] * 20] * 2)
    write_rates(tmp_path / "rates.json", [choose(results)])
    rates = read_rates(tmp_path / "rates.json")
    assert rates == {"SAOL": 2.0}
    assert with_rates(("SAOL", "Euclid", "ocelad@3"), {**rates, "ocelad": 8.0}) == ("SAOL@2", "Euclid", "ocelad@3")


def test_rates_keep_all_their_digits_and_files_are_json(tmp_path):
    assert with_rates(("SAOL",), {"SAOL": 0.123456789}) == ("SAOL@0.123456789",)
    results = made_up(("SAOL@1", "SAOL@2"), [[0.1] * 20, [0.05] * 20], [[0.5] * 20] * 2, trials=1)
    write_rates(tmp_path / "rates.json", [choose(results)])
    found = json.loads((tmp_path / "rates.json").read_text(), parse_constant=pytest.fail)  # NaN is no JSON
    assert found["SAOL"]["errors"][0][2] is None


@pytest.mark.parametrize("text", ["", "[]", "{}x", '{"SAOL": 3}', '{"SAOL": {"step": "fast"}}'])
def test_a_file_of_no_rates_is_refused(text, tmp_path):
    (tmp_path / "rates.json").write_text(text)
    with pytest.raises(ValueError, match=r"rates\.json is not a file of rates"):
        read_rates(tmp_path / "rates.json")


def test_tuning_follows_the_paper():
    """RICE's step and the low rate where nothing drifts, the high rate under moderate drift, on trials apart."""
    drifts = {name: tuning.drift for name, tuning in TUNINGS.items()}
    assert drifts["ocelad"] == drifts["paper's setting"] == drifts["COMID, low rate"] == 0.0
    assert drifts["COMID, high rate"] == 0.05
    study = TUNINGS["COMID, high rate"].study(replace(STUDY, noise=1.5), "COMID, high rate")
    assert study.methods[0] == "COMID, high rate@0.03125"
    assert [(s.clustering, s.drift) for s in study.segments] == [("A", 0.05)]
    assert study.noise == 1.5
    first = [world.points[0, 0] for world, *_ in (STUDY.world(0), STUDY.world(FIRST_TRIAL))]
    assert first[0] != first[1]


def test_rates_of_other_methods_stay(tmp_path):
    path = tmp_path / "rates.json"
    for method, step in (("ocelad", 8.0), ("SAOL", 2.0), ("ocelad", 4.0)):
        write_rates(path, [Choice(method, step, 0.0, 1, ((step, 0.1, float("nan")),))])
    assert read_rates(path) == {"ocelad": 4.0, "SAOL": 2.0}


def test_who_recovers_faster_is_told_by_recovery_and_not_by_the_error():
    error = [BEFORE + [0.12] * 6 + [0.01] * 4, BEFORE + [0.9, 0.9] + [0.01] * 8]  # the first errs less, and longer
    results = made_up(("ocelad", "COMID, high rate"), error, [FOUND + FOUND] * 2)
    assert results.error[:, 0].mean() < results.error[:, 1].mean()
    holds = found(results)
    assert holds["High-rate COMID recovers more slowly from the change before segment 1", "ocelad"] is False
    assert holds["RICE-OCELAD has a lower error than every other method", "ocelad"] is True
