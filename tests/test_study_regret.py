"""The study of regret: Theorem 2 on streams of metrics, its table, its figure, its command."""

import sys

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")
import matplotlib.pyplot as plt

from ocelad import FixedShare, Logistic, MetricTracker, OceladWeights, Step, plots
from ocelad.baselines import comid
from ocelad.cli.regret import regret as command
from ocelad.data import DriftingClusters, Segment
from ocelad.evaluate import Metrics, Regret, corollary_1, theorem_2
from ocelad.studies import Study
from ocelad.studies.hindsight import Truths, World, best_constants
from ocelad.studies.regret import WorstInterval, covered, exponents, play, run, trial

SHORT = (Segment(100, "A", 0.0), Segment(60, "B", 0.05))


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def unchanged(items, _=None):
    return items


@pytest.mark.parametrize("seed", range(3))
def test_theorem_2_on_all_intervals_of_2000_steps(seed):
    """Jumps, drift and standstill: regret in l and in f is below the paper's bound and the corrected one."""
    rng = np.random.default_rng(seed)
    data = DriftingClusters.draw(rng, points=300, dimension=7)
    world = World.of(data, rng, (Segment(701, "A", 0.0), Segment(699, "B", 0.05), Segment(600, "A", 0.02)))
    tracker = MetricTracker.paper(step=4.0, strength=0.02)
    ours, truths = play(tracker, world, range(2000)), Truths(world, seed)
    longest = np.linalg.norm(world.u, axis=1).max()
    for regularized in (False, True):
        w = truths(0.02, regularized)
        domain = Metrics(7, max(ours.largest, w.largest), max(ours.threshold, w.threshold), 0.02)
        learner = {how: corollary_1(domain, longest, 4.0, reading=how) for how in ("paper", "corrected")}
        excess = ours.losses - w.losses + regularized * (ours.penalties - w.penalties)
        regret = Regret.dynamic(excess, np.zeros(2000))
        moved = np.append(0.0, np.cumsum(w.moves))
        penalty = np.append(0.0, np.cumsum(ours.penalties if regularized else w.penalties))
        assert regret.strongly_adaptive([1])[0] > 0  # there is something to bound
        for length in range(1, 2001):
            first = np.arange(2001 - length)
            gamma, price = moved[first + length - 1] - moved[first], penalty[first + length] - penalty[first]
            worst = regret.of_length(length)
            own = theorem_2(learner["corrected"], gamma, length, first + length, ours.spread, price)
            paper = theorem_2(learner["paper"], gamma, length, first + length, reading="paper")
            assert (worst <= own).all()
            assert (worst <= paper).all()


def test_what_is_played_is_what_the_tracker_would_say():
    world = World.draw(0, SHORT)
    ours = play(MetricTracker(scale=None), world, range(len(world)))
    tracker = MetricTracker(scale=None).partial_fit(np.stack([world.u, 0 * world.u], axis=1)[:90], world.y[:90])
    metric = tracker.get_metric()
    margin = world.y[90] * (tracker.mu_ - metric.distance(world.u[90:91])[0] ** 2)
    assert ours.losses[90] == pytest.approx(max(0.0, 1 - margin))
    assert ours.penalties[90] == pytest.approx(0.02 * np.trace(metric.matrix))
    assert ours.losses[0] == max(0.0, 1 - world.y[0])  # M = 0, mu = 1


def test_the_stream_is_that_of_the_synthetic_study():
    world = World.draw(5, SHORT)
    data, _, rng = Study().world(5)
    steps = list(data.stream(rng, SHORT))
    assert (world.u == [step.pair[0] - step.pair[1] for step in steps]).all()
    assert (world.y == [step.y for step in steps]).all()


def test_the_true_metric_is_better_than_none_and_turns_with_the_data():
    world = World.draw(1, SHORT)
    truths = Truths(world, 1)
    for regularized in (False, True):
        truth = truths(0.02, regularized)
        assert truth.losses.mean() < 0.5 * np.maximum(0, 1 - world.y).mean()
        assert not truth.moves[:99].any()  # a standstill,
        assert truth.moves[99] > truth.moves[100:-1].max() > 0  # a jump, and drift
        assert truth.moves[-1] == 0
    assert truths(0.02, False).losses.mean() < truths(0.02, True).losses.mean()


def test_the_best_constants_are_lower_bounds():
    world = World.draw(2, SHORT)
    truth = Truths(world, 2)(0.02, True)
    found = list(best_constants(world, 0.02, 16, unchanged))
    assert [best.length for best in found] == [16, 32, 64]
    for best in found:
        for q, value in zip(best.first, best.values, strict=True):
            inside = slice(q, q + best.length)
            assert 0 <= value <= np.maximum(0, 1 - world.y[inside]).sum()  # M = 0, mu = 1
            if q + best.length <= 100:  # there the true metric is a constant too
                assert value <= (truth.losses + truth.penalties)[inside].sum()


def test_table_has_every_method_comparator_and_length():
    methods = {"paper": lambda: MetricTracker.paper(step=8.0), "COMID": lambda: comid(step=1.0)}
    lines = run(trials=2, seed=3, methods=methods, segments=SHORT, shortest=32)
    assert {(x.trial, x.method) for x in lines} == {(k, name) for k in (3, 4) for name in methods}
    assert {x.length for x in lines if x.comparator == "best constant, f"} == {32, 64}
    for x in lines:
        dyadic = x.comparator == "best constant, f"
        assert x.intervals == ((160 - 2 * x.length + 1) // x.length + 1 if dyadic else 161 - x.length)
        assert np.isnan(x.paper) == np.isnan(x.corrected) == (x.method == "COMID")
        assert not x.regret > min(x.paper, x.corrected)
    again = trial(4, {"COMID": methods["COMID"]}, SHORT, 32)
    assert repr(again) == repr([x for x in lines if (x.trial, x.method) == (4, "COMID")])  # nan is not nan
    with pytest.raises(ValueError, match="shortest must be from 1 to 160"):
        trial(0, methods, SHORT, 161)
    with pytest.raises(ValueError, match="trials must be at least 1"):
        run(trials=0)


@pytest.mark.parametrize(
    "change",
    [
        {"base": 8},
        {"weights": FixedShare()},
        {"weights": OceladWeights(order="after")},
        {"scale": "auto"},
        {"step": Step(8.0, capped=True)},
        {"loss": Logistic()},
    ],
    ids=lambda change: repr(next(iter(change.values()))),
)
def test_theorem_2_speaks_of_the_papers_setting_alone(change):
    tracker = MetricTracker.paper()
    assert covered(tracker)
    assert not covered(tracker.set_params(**change))


def test_exponents_are_means_over_trials_of_the_shorter_lengths():
    lines = [
        WorstInterval(
            k, "a", "truth, l", length, 1, float(length) ** power if length <= 64 else 1.0, np.nan, np.nan
        )
        for k, power in enumerate((0.4, 0.6))
        for length in (4, 8, 16, 32, 64, 128, 256)
    ]
    (found,) = exponents(lines)
    assert found.exponent == pytest.approx(0.5)
    assert found.standard_error == pytest.approx(0.1)
    assert (found.trials, found.shortest, found.longest, found.omitted) == (2, 4, 64, 0)


def test_figure_of_regret_and_bounds():
    lengths = [16, 32, 64, 128]
    given = plt.figure().subplots()
    axes = plots.regret_by_length(
        {"ours": (lengths, [4.0, 5.6, 8.0, 11.3]), "theirs": (lengths, [1.0, -1.0, 0.0, 2.0])},
        {"bound": (lengths, [100, 200, 300, 400])},
        axes=given,
    )
    assert axes is given
    axes.figure.canvas.draw()
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [
        "ours ~ |I|^0.50",
        "theirs",
        "bound",
        "one per step",
    ]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert np.isnan(axes.get_lines()[1].get_ydata()[1])
    assert plots.regret_by_length({"ours": (lengths, lengths)}).figure is not given.figure
    with pytest.raises(ValueError, match="regrets must hold at least one curve"):
        plots.regret_by_length({})


def type_in(monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["regret", *words])
    with pytest.raises(SystemExit) as stopped:
        command()
    return stopped.value.code


@pytest.fixture(name="short")
def fixture_short(monkeypatch):
    monkeypatch.setattr("ocelad.data.SCENARIO", SHORT)


@pytest.mark.usefixtures("short", "terminal")
def test_command_leaves_a_table_and_a_figure(monkeypatch, tmp_path, capsys):
    assert type_in(monkeypatch, "--trials", "1", "--out", str(tmp_path / "new")) in (0, None)
    out = capsys.readouterr()
    assert "best constant, f" in out.out
    assert "largest regret / bound (corrected)" in out.out
    assert "trial 1/1" in out.err  # the progress bar
    table = (tmp_path / "new" / "table.csv").read_text().splitlines()
    assert table[0] == "trial,method,comparator,length,intervals,regret,paper,corrected"
    assert len(table) > 4 * 3
    assert (tmp_path / "new" / "regret.png").read_bytes().startswith(b"\x89PNG")
    assert type_in(monkeypatch, "--help") == 0
    assert type_in(monkeypatch, "--shortest", "161", "--out", str(tmp_path)) == 2


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("complete", [0, 1])
def test_ctrl_c_keeps_the_complete_trials(monkeypatch, tmp_path, capsys, complete):
    def interrupted(seed, *_):
        if seed == complete:
            raise KeyboardInterrupt
        return [
            WorstInterval(seed, "a", "truth, l", length, 1, float(length), np.nan, np.nan) for length in (4, 8, 64)
        ]

    monkeypatch.setattr("ocelad.studies.regret.trial", interrupted)
    code = type_in(monkeypatch, "--trials", "3", "--out", str(tmp_path))
    said = capsys.readouterr().err
    assert "Stopped early" in said
    if complete:
        assert code in (0, None)
        assert len((tmp_path / "table.csv").read_text().splitlines()) == 4
    else:
        assert code == 1
        assert "nothing to show" in said
