"""``ocelad track``: what it writes, and that nothing is lost or used twice, whatever happens to it."""

import csv
import json
import os
import random
import shlex
import signal
import subprocess
import sys
import time
from contextlib import closing

import numpy as np
import pytest
from sklearn.metrics import log_loss, roc_auc_score

from ocelad import Intervals, MetricTracker, NuclearNorm, Step, load, save
from ocelad.data.tables import comparisons as form_of
from ocelad.data.tables import read_rows
from ocelad.track import Run, outputs, read_timeline
from ocelad.watch.history import in_charge
from ocelad.watch.prequential import progressive
from running import posix
from streams import comparisons
from test_cli import run

N = 3


@pytest.fixture(name="table")
def fixture_table(tmp_path):
    """600 comparisons, and their table."""
    pairs, y = comparisons(seed=0, steps=600, n=N)
    path = tmp_path / "table.csv"
    header = [*(f"{side}_{k}" for side in "xz" for k in range(N)), "y", "day"]
    lines = [
        ",".join(map(repr, [*row, int(label), k // 150]))
        for k, (row, label) in enumerate(zip(pairs.reshape(600, -1).tolist(), y, strict=True))
    ]
    path.write_text("\n".join([",".join(header), *lines]) + "\n")
    return path


def track(monkeypatch, table, out, *words):
    return run(monkeypatch, "track", str(table), "--out", str(out), *words)


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def predictions(folder):
    with (folder / "predictions.csv").open() as file:
        return list(csv.DictReader(file))


def signed_root(x):
    """Of the threshold on squared distances: below 0 nothing is similar."""
    return np.copysign(np.sqrt(np.abs(x)), x)


def test_every_comparison_is_predicted_and_then_learned(monkeypatch, capsys, table, tmp_path):
    assert track(monkeypatch, table, tmp_path / "run") in (0, None)
    pairs, y = comparisons(seed=0, steps=600, n=N)
    tracker = MetricTracker(scale="features")
    seen, rows = progressive(tracker, pairs, y), predictions(tmp_path / "run")
    assert [int(row["t"]) for row in rows] == list(range(1, 601))
    assert [int(row["line"]) for row in rows] == list(range(2, 602))
    assert [int(row["y"]) for row in rows] == y.tolist()
    assert [float(row["distance"]) for row in rows] == np.sqrt(seen.squared_distance).tolist()
    assert [float(row["threshold"]) for row in rows] == signed_root(seen.threshold).tolist()
    assert [float(row["probability"]) for row in rows] == seen.probability.tolist()
    assert [int(row["predicted"]) for row in rows] == np.where(seen.similar, 1, -1).tolist()
    learned = load(tmp_path / "run" / "tracker.ocelad")
    assert (learned.get_mahalanobis_matrix() == tracker.get_mahalanobis_matrix()).all()
    assert learned.feature_names_in_.tolist() == ["0", "1", "2"]
    line = read_timeline(tmp_path / "run" / "timeline.csv")
    assert line.t.tolist() == [100, 200, 300, 400, 500, 600]
    wrong = seen.similar != (y > 0)
    assert line.error.tolist() == [wrong[k : k + 100].mean() for k in range(0, 600, 100)]
    assert line.loss == pytest.approx([np.mean(seen.loss[k : k + 100]) for k in range(0, 600, 100)])
    assert line.accuracy[-1] == (~wrong).mean()
    assert signed_root(line.threshold[-1]) == pytest.approx(tracker.threshold_)
    assert line.majority[-1] == max((y > 0).mean(), (y < 0).mean())
    assert line.auc[-1] == pytest.approx(roc_auc_score(y, seen.probability), abs=1e-3)
    assert line.log_loss[-1] == pytest.approx(log_loss(y, seen.probability))
    place = np.minimum((10 * seen.probability).astype(int), 9)
    off = [abs((seen.probability - (y > 0))[place == k].sum()) for k in range(10)]
    assert line.calibration_error[-1] == pytest.approx(sum(off) / 600)
    assert line.in_charge[-1] == in_charge(tracker.experts_)
    assert line.kinds == tuple(tracker.experts_["kind"])
    assert line.weights[-1].tolist() == tracker.experts_["weight"].tolist()
    assert line.lengths.tolist() == tracker.experts_["length"].tolist()
    out = capsys.readouterr()
    assert f"600 comparisons from 600 rows, 0 rejected\naccuracy {1 - wrong.mean():.4f} (" in out.out
    assert f"log loss {line.log_loss[-1]:.4f}, expected calibration error" in out.out
    assert f"in charge: {line.in_charge[-1]}" in out.out
    assert out.err == "3 features, standardized: 0, 1, 2\n"


class Killed(BaseException):
    """As sudden as a power cut."""


def deadly(monkeypatch, after):
    """The process dies in the middle of so-many-th write, or before or after a file is synced or renamed."""
    left = [after]

    def count():
        left[0] -= 1
        if left[0] == 0:
            raise Killed

    write, replace, sync = outputs.Output.write, os.replace, os.fsync

    def torn(output, lines):
        lines = list(lines)
        if lines and left[0] == 1:
            write(output, lines[: max(1, len(lines) // 2)])
            output._file.write(b"12,ha")
            output._file.flush()
        count()
        write(output, lines)

    def renamed(*paths):
        count()
        replace(*paths)
        count()

    def synced(file):
        count()
        sync(file)

    monkeypatch.setattr(outputs.Output, "write", torn)
    monkeypatch.setattr(os, "replace", renamed)
    monkeypatch.setattr(os, "fsync", synced)
    return left


FORMS = {
    "comparisons": [],
    "labelled rows": ["--label", "y", "--pairs", "random", "--features", "x_*", "--within", "day"],
    "balanced rows": ["--label", "y", "--recent", "20", "--paper"],
}


@pytest.mark.parametrize("form", FORMS)
def test_a_run_that_is_killed_again_and_again_ends_as_if_it_were_not(monkeypatch, table, tmp_path, form):
    words = [*FORMS[form], "--every", "30", "--checkpoint", "60"]
    monkeypatch.setattr("ocelad.data.tables.lines.CHUNK", 4000)
    assert track(monkeypatch, table, tmp_path / "whole", *words) in (0, None)
    rng, killed = random.Random(form), 0
    while killed < 20:
        with monkeypatch.context() as patch:
            deadly(patch, after=rng.randint(1, 60))
            try:
                track(patch, table, tmp_path / "run", "--resume", "--overwrite", *words)
            except Killed:
                killed += 1
            else:
                assert contents(tmp_path / "run") == contents(tmp_path / "whole")
                (tmp_path / "run" / "progress.json").unlink()  # begin anew, among what is left of the old one
    assert track(monkeypatch, table, tmp_path / "run", "--resume", "--overwrite", *words) in (0, None)
    assert contents(tmp_path / "run") == contents(tmp_path / "whole")
    t = [int(row["t"]) for row in predictions(tmp_path / "run")]
    assert t == list(range(1, len(t) + 1))


def test_how_often_it_is_made_safe_changes_nothing(monkeypatch, table, tmp_path):
    for name, chunk, words in (("one", 1 << 16, []), ("other", 500, ["--checkpoint", "1"])):
        monkeypatch.setattr("ocelad.data.tables.lines.CHUNK", chunk)
        assert track(monkeypatch, table, tmp_path / name, *words) in (0, None)
    assert contents(tmp_path / "one") == contents(tmp_path / "other")


def start(folder, *words):
    return subprocess.Popen(
        [sys.executable, "-m", "ocelad.cli", "track", "-", "--out", str(folder), *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def wait_for(folder, lines):
    """Until so many predictions have been written, though the pipe stays open."""
    path, patience = folder / "predictions.csv", time.monotonic() + 60
    while not (path.exists() and path.read_bytes().count(b"\n") == 1 + lines):
        assert time.monotonic() < patience
        time.sleep(0.02)


@posix
def test_a_pipe_is_not_waited_for_and_kill_9_loses_nothing(monkeypatch, table, tmp_path):
    assert track(monkeypatch, table, tmp_path / "whole") in (0, None)
    lines = table.read_bytes().splitlines(keepends=True)
    process = start(tmp_path / "run", "--checkpoint", "150")
    for cut in (lines[:2], lines[2:200], lines[200:401]):
        process.stdin.write(b"".join(cut))
        process.stdin.flush()
        wait_for(tmp_path / "run", lines.index(cut[-1]))
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert json.loads((tmp_path / "run" / "progress.json").read_text())["counts"][0] in (199, 400)
    assert track(monkeypatch, table, tmp_path / "run", "--resume") in (0, None)
    assert contents(tmp_path / "run") == contents(tmp_path / "whole")


def test_a_folder_has_one_run_at_a_time_and_kill_9_frees_it(monkeypatch, capsys, table, tmp_path):
    folder, lines = tmp_path / "run", table.read_bytes().splitlines(keepends=True)
    process = start(folder)
    process.stdin.write(b"".join(lines[:124]))
    process.stdin.flush()
    wait_for(folder, 123)
    before = contents(folder)
    for words in ([], ["--resume"], ["--overwrite"]):
        assert track(monkeypatch, table, folder, *words) == 1
        assert f"Error: another run is under way in {folder}" in capsys.readouterr().err
    assert contents(folder) == before
    process.kill()
    process.communicate()
    assert track(monkeypatch, table, folder, "--resume") in (0, None)
    assert len(predictions(folder)) == 600


def test_a_folder_that_cannot_be_locked_is_said(monkeypatch, capsys, table, tmp_path):
    (tmp_path / "run" / ".lock").mkdir(parents=True)
    assert track(monkeypatch, table, tmp_path / "run") == 1
    assert ".lock cannot be locked" in capsys.readouterr().err


@posix
@pytest.mark.parametrize("kind", [signal.SIGTERM, signal.SIGINT])
def test_being_stopped_keeps_all_that_was_learned(monkeypatch, table, tmp_path, kind):
    assert track(monkeypatch, table, tmp_path / "whole") in (0, None)
    lines = table.read_bytes().splitlines(keepends=True)
    process = start(tmp_path / "run", "--echo")
    process.stdin.write(b"".join(lines[:124]))
    process.stdin.flush()
    wait_for(tmp_path / "run", 123)
    process.send_signal(kind)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 128 + kind
    assert out == (tmp_path / "run" / "predictions.csv").read_bytes()
    words = shlex.split(err.decode().split("Stopped; this goes on:\n")[1].splitlines()[0])
    assert words[-1] == "--resume"
    assert words[words.index("--out") + 1] == str(tmp_path / "run")
    assert b"Traceback" not in err
    assert json.loads((tmp_path / "run" / "progress.json").read_text())["counts"][0] == 123
    assert track(monkeypatch, table, tmp_path / "run", "--resume") in (0, None)
    assert contents(tmp_path / "run") == contents(tmp_path / "whole")


def test_an_input_that_goes_on(monkeypatch, table, tmp_path):
    header, *lines = table.read_text().splitlines(keepends=True)
    for name, part in (("monday", lines[:250]), ("tuesday", lines[250:])):
        (tmp_path / f"{name}.csv").write_text(header + "".join(part))
    assert track(monkeypatch, tmp_path / "monday.csv", tmp_path / "run") in (0, None)
    words = ("--resume", "--new-input")
    assert track(monkeypatch, tmp_path / "tuesday.csv", tmp_path / "run", *words) in (0, None)
    assert track(monkeypatch, table, tmp_path / "whole") in (0, None)
    for name in ("tracker.ocelad", "timeline.csv"):
        assert contents(tmp_path / "run")[name] == contents(tmp_path / "whole")[name]
    assert [row["t"] for row in predictions(tmp_path / "run")] == [str(t) for t in range(1, 601)]


def test_a_table_that_has_grown(monkeypatch, table, tmp_path):
    text = table.read_text()
    assert track(monkeypatch, table, tmp_path / "whole") in (0, None)
    table.write_text("".join(text.splitlines(keepends=True)[:300]))
    assert track(monkeypatch, table, tmp_path / "run") in (0, None)
    table.write_text(text)
    assert track(monkeypatch, table, tmp_path / "run", "--resume") in (0, None)
    assert contents(tmp_path / "run") == contents(tmp_path / "whole")


def test_what_does_not_belong_together_is_refused(monkeypatch, capsys, table, tmp_path):
    folder = tmp_path / "run"
    assert track(monkeypatch, table, folder) in (0, None)
    before = contents(folder)

    def refused(message, *words):
        assert track(monkeypatch, table, folder, *words) == 1
        error = capsys.readouterr().err
        assert message in error
        assert "Traceback" not in error
        assert contents(folder) == before

    refused("--resume goes on with it, --overwrite begins anew")
    refused("tracker step was None and is 4.0", "--resume", "--step", "4")
    refused("every was 100 and is 50", "--resume", "--every", "50")
    refused("form label was None and is 'y'", "--resume", "--label", "y")
    text = table.read_text()
    table.write_text(text.replace("-1,", "1,", 1))
    refused("table.csv: another input: its first 601 lines are not those", "--resume")
    table.write_text("".join(text.splitlines(keepends=True)[:9]))
    refused("table.csv: another input: it has 9 lines, and 601 were used before", "--resume")
    table.write_text(text)
    (folder / "predictions.csv").write_bytes(before["predictions.csv"][:-1])
    assert track(monkeypatch, table, folder, "--resume") == 1
    assert "predictions.csv: it must have" in capsys.readouterr().err
    save(MetricTracker().partial_fit(np.ones((1, 2, 3)), [1]), folder / "tracker.ocelad")
    assert track(monkeypatch, table, folder, "--resume") == 1
    assert "it is not the tracker that" in capsys.readouterr().err
    (folder / "progress.json").write_text("[]")
    assert track(monkeypatch, table, folder, "--resume") == 1
    assert "it is not the progress of a run" in capsys.readouterr().err
    assert track(monkeypatch, table, folder, "--overwrite") in (0, None)
    assert contents(folder) == before


@pytest.fixture(name="ended", scope="module")
def fixture_ended(tmp_path_factory):
    """A run on three comparisons, and its table."""
    folder = tmp_path_factory.mktemp("ended")
    (folder / "few.csv").write_text("x_0,z_0,y\n0,1,1\n0,2,-1\n3,1,1\n")
    with pytest.MonkeyPatch.context() as patch:
        assert track(patch, folder / "few.csv", folder / "run") in (0, None)
    return folder


def damaged(progress, *path, value=None):
    """A copy without the part at this path, or with another value there."""
    copy = json.loads(json.dumps(progress))
    part = copy
    for name in path[:-1]:
        part = part[name]
    if value is None:
        del part[path[-1]]
    else:
        part[path[-1]] = value
    return json.dumps(copy)


DAMAGE = {
    "{}": lambda _: "{}",
    "[1]": lambda _: "[1]",
    "nesting": lambda _: "[" * 100_000,
    "no running": lambda p: damaged(p, "running"),
    "no tracker": lambda p: damaged(p, "tracker"),
    "no form": lambda p: damaged(p, "form"),
    "counts": lambda p: damaged(p, "counts", value=[1, 2]),
    "settings": lambda p: damaged(p, "settings", "tracker", value=7),
    "sizes": lambda p: damaged(p, "sizes", "timeline"),
}
DEEPER = {
    "bins": lambda p: damaged(p, "running", "bins", value=[["x"], [1], [2]]),
    "alarm": lambda p: damaged(p, "row", "alarm", "t"),
    "events": lambda p: damaged(p, "row", "events", value=[[1]]),
    "memory": lambda p: damaged(p, "form", value={"recent": []}),
}


@pytest.mark.parametrize("kind", [*DAMAGE, *DEEPER])
def test_damaged_progress_is_an_error_in_words(monkeypatch, capsys, ended, kind):
    path = ended / "run" / "progress.json"
    before = path.read_text()
    path.write_text((DAMAGE | DEEPER)[kind](json.loads(before)))
    try:
        assert track(monkeypatch, ended / "few.csv", ended / "run", "--resume") == 1
        assert f"Error: {path}: it is " in capsys.readouterr().err
        assert run(monkeypatch, "info", str(path)) == (1 if kind in DAMAGE else 0)
        assert (f"Error: {path}: it is " in capsys.readouterr().err) == (kind in DAMAGE)
    finally:
        path.write_text(before)


def test_bad_rows_stop_a_run_or_are_set_aside(monkeypatch, capsys, table, tmp_path):
    text = table.read_text()
    lines = text.splitlines(keepends=True)
    bad = [*lines[:50], "1,2,three,4,5,6,1,0\n", *lines[50:400], "1,2\n", *lines[400:]]
    table.write_text("".join(bad))
    folder = tmp_path / "run"
    assert track(monkeypatch, table, folder) == 1
    assert f"{table}: line 51, column x_2: it must be a finite number, got 'three'" in capsys.readouterr().err
    assert len(predictions(folder)) == 49  # what came before is learned, and safe
    assert track(monkeypatch, table, folder, "--resume", "--skip-bad") in (0, None)
    assert "600 comparisons from 600 rows, 2 rejected" in capsys.readouterr().out
    with (folder / "rejected.csv").open() as file:
        rejected = list(csv.DictReader(file))
    assert [(row["line"], row["column"]) for row in rejected] == [("51", "x_2"), ("402", "")]
    assert rejected[0]["row"] == "1,2,three,4,5,6,1,0"
    table.write_text(text)
    assert track(monkeypatch, table, tmp_path / "good") in (0, None)
    assert contents(folder)["tracker.ocelad"] == contents(tmp_path / "good")["tracker.ocelad"]


def test_a_bad_row_that_was_corrected_is_gone_on_from(monkeypatch, table, tmp_path):
    text = table.read_text()
    assert track(monkeypatch, table, tmp_path / "whole") in (0, None)
    table.write_text("".join([*text.splitlines(keepends=True)[:222], "oh\n"]))
    assert track(monkeypatch, table, tmp_path / "run") == 1
    table.write_text(text)
    assert track(monkeypatch, table, tmp_path / "run", "--resume") in (0, None)
    assert contents(tmp_path / "run") == contents(tmp_path / "whole")


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--new-input"], 2, "--new-input is for --resume"),
        (["--within", "day"], 2, "for labelled rows"),
        (["--features", "x*"], 1, "no column matches 'x*': there are 0, 1, 2"),
        (["--features", "!*"], 1, "no feature is left"),
        (["--standardize", "--scale", "none"], 2, "--standardize and --scale none contradict each other"),
        (["--no-standardize", "--scale", "features"], 2, "--no-standardize and --scale features contradict"),
        (["--label", "kind"], 1, "there is no column kind"),
        (["--label", "y", "--features", "f*"], 1, "no column matches 'f*'"),
        (["--max-rank", "0"], 2, "max-rank"),
        (["--memory", "8"], 2, "memory"),
        (["--memory", "64", "--rice"], 2, "exclude one another"),
        (["--paper", "--rice"], 2, "exclude one another"),
        (["--step", "nan"], 1, "step must be a finite number > 0, got nan"),
        (["--step", "inf"], 1, "step must be a finite number > 0, got inf"),
        (["--strength", "nan"], 1, "strength must be >= 0 and finite, got nan"),
    ],
)
def test_odd_words_are_refused_before_anything_is_written(
    monkeypatch, capsys, table, tmp_path, words, code, message
):
    assert track(monkeypatch, table, tmp_path / "run", *words) == code
    assert message in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_options_reach_the_tracker(monkeypatch, table, tmp_path):
    words = ["--step", "2", "--strength", "0.05", "--base", "4", "--max-rank", "2", "--no-predictions"]
    assert track(monkeypatch, table, tmp_path / "run", *words) in (0, None)
    learned = load(tmp_path / "run" / "tracker.ocelad")
    assert (learned.step, learned.base) == (Step(2.0, max_rank=2), Intervals(4))
    assert learned.regularizer == NuclearNorm(0.05)
    assert not (tmp_path / "run" / "predictions.csv").exists()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], MetricTracker(scale="features")),
        (["--memory", "64"], MetricTracker(memory=64, scale="features")),
        (["--rice"], MetricTracker.rice().set_params(scale="features")),
        (["--paper"], MetricTracker.paper()),
        (["--paper", "--scale", "features"], MetricTracker.paper().set_params(scale="features")),
        (["--rice", "--scale", "auto"], MetricTracker.rice()),
        (["--rice", "--scale", "none"], MetricTracker.rice().set_params(scale=None)),
        (["--rice", "--standardize"], MetricTracker.rice().set_params(scale="features")),
        (["--rice", "--no-standardize"], MetricTracker.rice().set_params(scale="auto")),
        (["--paper", "--standardize"], MetricTracker.paper().set_params(scale="features")),
        (["--paper", "--no-standardize"], MetricTracker.paper()),
        (["--rice", "--no-standardize", "--scale", "none"], MetricTracker.rice().set_params(scale=None)),
    ],
)
def test_which_tracker_it_is(monkeypatch, table, tmp_path, words, expected):
    assert track(monkeypatch, table, tmp_path / "run", *words) in (0, None)
    learned = load(tmp_path / "run" / "tracker.ocelad")
    assert (learned.weights, learned.memory, learned.scale) == (expected.weights, expected.memory, expected.scale)
    line = read_timeline(tmp_path / "run" / "timeline.csv")
    pooled = words in ([], ["--memory", "64"])
    assert np.isnan(line.log_loss[-1]) == (not pooled)
    assert set(line.kinds) == ({"replay", "euclid", "rice"} if pooled else {"rice"})


def test_a_run_keeps_its_scale(monkeypatch, capsys, table, tmp_path):
    """Also one that began before there was a choice, whose progress does not say."""
    run = tmp_path / "run"
    assert track(monkeypatch, table, run, "--scale", "auto") in (0, None)
    assert track(monkeypatch, table, run, "--resume") == 1
    assert "tracker scale was 'auto' and is None" in capsys.readouterr().err
    assert track(monkeypatch, table, run, "--resume", "--scale", "auto") in (0, None)
    progress = json.loads((run / "progress.json").read_text())
    del progress["settings"]["tracker"]["scale"]
    (run / "progress.json").write_text(json.dumps(progress))
    assert track(monkeypatch, table, run, "--resume") in (0, None)
    assert load(run / "tracker.ocelad").scale == "auto"


def test_a_run_can_be_had_without_the_command(table, tmp_path):
    with closing(read_rows(str(table))) as rows:
        own = Run(rows, form_of(rows.header), MetricTracker(), tmp_path / "run")
        own.begin()
        assert sum(own) == own.t == 600


def test_a_truncated_archive_is_said(monkeypatch, capsys, table, tmp_path):
    import gzip

    data = gzip.compress(table.read_bytes())
    (tmp_path / "t.csv.gz").write_bytes(data[: len(data) // 2])
    assert track(monkeypatch, tmp_path / "t.csv.gz", tmp_path / "run") == 1
    assert "t.csv.gz: Compressed file ended" in capsys.readouterr().err


def test_files_of_others_are_not_in_the_way_of_a_run(monkeypatch, capsys, table, tmp_path):
    own = tmp_path / "own"
    own.mkdir()
    (own / "timeline.csv").write_text("mine")
    assert track(monkeypatch, table, own) == 1
    assert "timeline.csv, of no run that could go on: --overwrite begins anew" in capsys.readouterr().err
    assert (own / "timeline.csv").read_text() == "mine"
    assert track(monkeypatch, table, own, "--overwrite") in (0, None)
    (tmp_path / "predictions.csv").write_bytes(table.read_bytes())
    assert track(monkeypatch, tmp_path / "predictions.csv", tmp_path, "--overwrite") == 1
    assert "would write there what it reads" in capsys.readouterr().err
    assert (tmp_path / "predictions.csv").read_bytes() == table.read_bytes()


def test_a_table_without_a_last_line_end_may_grow(monkeypatch, table, tmp_path):
    text, grown = table.read_text(), tmp_path / "grown.csv"
    grown.write_text("\n".join(text.splitlines()[:200]))
    assert track(monkeypatch, grown, tmp_path / "a") in (0, None)
    grown.write_text(text)
    assert track(monkeypatch, grown, tmp_path / "a", "--resume") in (0, None)
    assert track(monkeypatch, table, tmp_path / "b") in (0, None)
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


def test_a_table_must_have_features(monkeypatch, capsys, tmp_path):
    (tmp_path / "t.csv").write_text("kind\na\nb\n")
    assert track(monkeypatch, tmp_path / "t.csv", tmp_path / "run", "--label", "kind") == 1
    assert "no column is left to be a feature: there are kind" in capsys.readouterr().err
