"""``ocelad study`` as a person types it."""

import re
import signal
import subprocess
import sys
import time
from concurrent.futures import BrokenExecutor
from dataclasses import replace

import matplotlib as mpl
import pytest

mpl.use("Agg")
from ocelad import cli, plots
from ocelad.data import Segment
from ocelad.studies import Results, Store, Study, Tuning, run_trial
from ocelad.studies.methods import METHODS
from running import posix

TINY = ["--segments", "150:A:0,100:b:.05", "--points", "400", "--jobs", "1"]
FEW = ["--methods", "ocelad,COMID-high-rate@2,euclid"]


def run(monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["ocelad", "study", *map(str, words)])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    return stopped.value.code or 0


@pytest.fixture(autouse=True)
def _close():
    yield
    plots.pyplot().close("all")


@pytest.mark.usefixtures("terminal")
def test_a_study_leaves_tables_figures_and_a_report(monkeypatch, tmp_path, capsys):
    out = tmp_path / "new" / "folder"
    assert run(monkeypatch, "synthetic", "--trials", 2, *TINY, *FEW, "--out", out) == 0
    said = capsys.readouterr()
    assert re.search(r"^COMID, high rate@2 +0\.\d{4}", said.out, re.MULTILINE)
    assert "2/2" in said.err
    table = (out / "table.csv").read_text().splitlines()
    assert table[0] == "method,trial,t,segment,knn_error,nmi"
    assert len(table) == 1 + 2 * 3 * 5
    assert (out / "summary.csv").read_text().startswith("method,segment,trials,knn_error,knn_error_se,p_nmi,")
    for name in ("tracking.png", "data.png"):
        assert (out / name).read_bytes().startswith(b"\x89PNG")

    before = (out / "table.csv").read_bytes()
    assert run(monkeypatch, "synthetic", "--trials", 3, *TINY, *FEW, "--out", out) == 0  # one more
    assert (out / "table.csv").read_bytes().startswith(before)
    assert "| 2/3" in capsys.readouterr().err
    assert run(monkeypatch, "synthetic", "--trials", 2, *TINY, *FEW, "--out", out) == 0  # nothing to do
    assert (out / "table.csv").read_bytes() == before

    assert run(monkeypatch, "report", out) == 0
    page = (out / "report.html").read_text()
    assert "3 trials" in page
    assert page.count("data:image/png;base64,") == 2
    assert not re.search(r"(src|href)=\"(?!data:)", page)  # nothing from elsewhere
    for name in ("ocelad", "COMID, high rate@2", "Euclid"):
        assert f"<td>{name}</td>" in page
    assert "RICE-OCELAD adapts to every kind of change" in page
    for column in ("0: A, drift 0", "1: B, drift 0.05", "all"):
        assert page.count(f">{column}</th>") >= 2  # of the error, and of P
    share = page[page.index("the probability that") :]
    assert "±" not in share[: share.index("<h3>")]  # of three trials


def test_bad_options_leave_no_folder_behind(monkeypatch, tmp_path, capsys):
    for wrong in (["--shares", "nan,.5,.5"], ["--methods", "ocelad@1e200"], ["--methods", "all,ocelad"]):
        assert run(monkeypatch, "synthetic", *wrong, *TINY, "--out", tmp_path / "new") == 1
        assert len(capsys.readouterr().err) < 200
    assert not (tmp_path / "new").exists()


def test_a_report_of_one_trial_has_no_standard_errors(monkeypatch, tmp_path):
    one = ["--trials", 1, "--methods", "euclid", *TINY]
    assert run(monkeypatch, "synthetic", *one, "--out", tmp_path) == 0
    assert run(monkeypatch, "report", tmp_path) == 0
    page = (tmp_path / "report.html").read_text()
    assert "One trial" in page
    assert "nan" not in re.sub(r"base64,[^\"]*", "", page)


def test_another_study_in_the_same_folder_is_an_error(monkeypatch, tmp_path, capsys):
    assert run(monkeypatch, "synthetic", "--trials", 1, *TINY, *FEW, "--out", tmp_path) == 0
    assert run(monkeypatch, "synthetic", "--trials", 1, *TINY, *FEW, "--noise", 1, "--out", tmp_path) == 1
    assert re.search(r"Error: .* other options: noise 2.0, not 1.0", capsys.readouterr().err)


@pytest.mark.usefixtures("terminal")
def test_rates_are_chosen_kept_and_used(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr("ocelad.studies.tuning.STEPS", 200)
    tunings = {"COMID, high rate": Tuning((0.01, 1.0), 0.05), "ocelad": Tuning((8.0, 16.0), 0.0)}
    monkeypatch.setattr("ocelad.studies.TUNINGS", tunings)
    words = ["tune", "--trials", 2, "--points", 400, "--jobs", 1, "--methods", "comid-high-rate,ocelad"]
    assert run(monkeypatch, *words, "--out", tmp_path) == 0
    said = capsys.readouterr()
    line = re.search(
        r"^COMID, high rate: step (\S+) \(the edge of the grid\) at drift 0.05; .* (\S+): (\S+), (\S+): (\S+)$",
        said.out,
        re.MULTILINE,
    )
    step, one, error, other, greater = map(float, line.groups())
    assert step == (one if error <= greater else other)
    assert "2/2" in said.err
    rates = (tmp_path / "rates.json").read_bytes()
    assert run(monkeypatch, *words, "--out", tmp_path) == 0
    assert "2/2" not in capsys.readouterr().err  # nothing was run again
    assert (tmp_path / "rates.json").read_bytes() == rates

    chosen = ["--methods", "comid-high-rate,euclid", "--rates", tmp_path / "rates.json"]
    assert run(monkeypatch, "synthetic", "--trials", 1, *TINY, *chosen, "--out", tmp_path) == 0
    assert f'"COMID, high rate@{step:g}",0,48,0,' in (tmp_path / "table.csv").read_text()
    assert run(monkeypatch, "report", tmp_path) == 0
    assert f"<td>COMID, high rate: {step:g}</td>" in (tmp_path / "report.html").read_text()  # ocelad took no part


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["synthetic", "--methods", "nobody"], "methods must be all, or among ocelad, rice, papers-setting"),
        (["synthetic", "--segments", "100:A"], "expected STEPS:CLUSTERING:DRIFT"),
        (["synthetic", "--segments", "100:C:0"], "segment 0 needs steps >= 1, A or B"),
        (["synthetic", "--shares", "a,b"], "expected numbers separated by commas"),
        (["synthetic", "--label-noise", "0.7"], "label_noise must lie in"),
        (["synthetic", "--scheduler", "tcp://nowhere:1"], "--scheduler is for --backend dask"),
        (["synthetic", "--rates", "none.json"], "--rates: there is no file none.json"),
        (["text", "none.csv"], "FILE: there is no file none.csv"),
        (["tune", "--methods", "euclid"], "euclid has no rates to try"),
        (["synthetic", "--seed", "99999999999999999999"], "99999999999999999999 is not in the range"),
        (["synthetic", "--trials", "99999999999999999999"], "99999999999999999999 is not in the range"),
    ],
)
def test_bad_options_are_said_at_once(monkeypatch, tmp_path, capsys, words, error):
    assert run(monkeypatch, *words, "--out", tmp_path / "new") in (1, 2)
    assert error in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "new" / "trials.sqlite").exists()


def test_a_report_needs_a_study_with_a_trial(monkeypatch, tmp_path, capsys):
    assert run(monkeypatch, "report", tmp_path) == 1
    assert "there is no study at" in capsys.readouterr().err
    from ocelad.studies import Study

    Store(tmp_path / "trials.sqlite", Study()).__exit__(None, None, None)
    assert run(monkeypatch, "report", tmp_path) == 1
    assert "there is no finished trial yet" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("stop", "code", "words"), [(KeyboardInterrupt, 130, "Stopped"), (BrokenExecutor, 1, "killed")]
)
def test_what_is_finished_is_kept(monkeypatch, tmp_path, capsys, stop, code, words):
    from ocelad.studies import run_study

    def interrupted(study, trials, store, engine):
        for done, outcome in enumerate(run_study(study, trials, store, engine), 1):
            yield outcome
            if done == 2:
                raise stop

    with monkeypatch.context() as patch:
        patch.setattr("ocelad.studies.run_study", interrupted)
        assert run(patch, "synthetic", "--trials", 3, *TINY, *FEW, "--out", tmp_path) == code
    said = capsys.readouterr().err
    assert words in said
    assert "2 of 3 trials are stored; the same command goes on" in said
    assert run(monkeypatch, "synthetic", "--trials", 3, *TINY, *FEW, "--out", tmp_path) == 0


@posix
def test_ctrl_c_in_earnest(tmp_path):
    words = [sys.executable, "-m", "ocelad.cli", "study", "synthetic", "--trials", "5000", *TINY, *FEW]
    words[words.index("--jobs") + 1] = "2"
    with subprocess.Popen([*words, "--out", str(tmp_path)], stderr=subprocess.PIPE, text=True) as child:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not (tmp_path / "trials.sqlite").exists():
            time.sleep(0.1)
        time.sleep(0.5)
        with Store(tmp_path / "trials.sqlite") as store:
            while time.monotonic() < deadline and len(store.finished()) < 2:
                time.sleep(0.05)
        child.send_signal(signal.SIGINT)
        _, said = child.communicate(timeout=60)
    assert child.returncode == 130
    assert "Traceback" not in said
    assert re.search(r"Stopped: \d+ of 5000 trials are stored; the same command goes on", said)


def test_every_option_is_explained(monkeypatch, capsys):
    for command in ("synthetic", "tune"):
        assert run(monkeypatch, command, "--help") == 0
        said = " ".join(capsys.readouterr().out.split())
        for option in ("--noise", "--separation", "--label-noise", "--pairs-per-step", "--dimension", "--backend"):
            assert re.search(rf"{option}(, --\w+)? \S+( RANGE)? [A-Z]\w+", said), option


@pytest.mark.parametrize("trials", [1, 2, 19, 20])
def test_shares_of_few_trials_have_no_bands(trials):
    study = Study(("ocelad", "Euclid"), (Segment(98, "A", 0.0),), points=200, sample=100, shares=(0.5, 0.5))
    one = run_trial(study, 0)
    figure = plots.experiment(Results.of(study, [replace(one, trial=k) for k in range(trials)]))
    _, errors, shares = figure.axes
    assert len(errors.collections) == (2 if trials > 1 else 0)
    assert len(shares.collections) == (2 if trials >= 20 else 0)


def test_figures_show_every_method_and_one_trial_is_enough():
    names = tuple(f"COMID, high rate@{k}" for k in range(1, 10))
    study = Study(names, (Segment(98, "A", 0.0), Segment(49, "B", 0.0)), points=200, sample=100, shares=(0.5, 0.5))
    results = Results.of(study, [run_trial(study, 0)])
    figure = plots.experiment(results)
    assert [line.get_label() for line in figure.axes[1].get_lines()][:9] == list(names)
    assert [text.get_text() for text in figure.axes[0].texts] == ["A → B"]
    figure.canvas.draw()
    data, *_ = study.world(0)
    assert len(plots.clusterings(data, dimensions=2).axes) == 6
    assert len(METHODS) > 5
