"""What ``ocelad track`` says of its features, and how columns that are none are left out."""

import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import click
import numpy as np
import pytest

from ocelad import load
from ocelad.cli.options import GIVEN, resuming
from ocelad.track import Run
from test_cli import run
from test_track import contents


def written(path, **columns):
    rows = zip(*columns.values(), strict=True)
    path.write_text("\n".join([",".join(columns), *(",".join(map(str, row)) for row in rows)]) + "\n")
    return path


@pytest.fixture(name="table")
def fixture_table(tmp_path):
    """200 labelled rows, with two columns that say which row it is: one by its name, and one by its numbers."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 200)).round(3)
    return written(
        tmp_path / "t.csv", user_id=rng.integers(1000, size=200), a=a, position=np.arange(200), b=b, kind=a > 0
    )


def track(monkeypatch, capsys, table, *words, code=0):
    assert (run(monkeypatch, "track", str(table), "--out", str(table.parent / "run"), *words) or 0) == code
    return capsys.readouterr().err


NAMED = "warning: user_id looks like an id, a batch number or a date; --features '!user_id' leaves it out\n"
NUMBERED = (
    "warning: position has numbers that never fall from row to row, as an id or a date has; "
    "--features '!position' leaves it out\n"
)


def test_features_are_named_and_identifiers_warned_of(monkeypatch, capsys, table):
    said = track(monkeypatch, capsys, table, "--label", "kind")
    assert said == "4 features, standardized: user_id, a, position, b\n" + NAMED + NUMBERED


def test_what_is_advised_leaves_them_out(monkeypatch, capsys, table):
    said = track(
        monkeypatch, capsys, table, "--label", "kind", "--features", "!user_id", "--features", "!position"
    )
    assert said == "2 features, standardized: a, b\n"
    assert load(table.parent / "run" / "tracker.ocelad").feature_names_in_.tolist() == ["a", "b"]


def test_several_are_warned_of_in_a_line(monkeypatch, capsys, tmp_path):
    columns = {name: np.random.default_rng(0).normal(size=9) for name in ["id", "date", "a"]}
    table = written(tmp_path / "t.csv", **columns, kind=["x", "o", "x"] * 3)
    said = track(monkeypatch, capsys, table, "--label", "kind", "--no-standardize")
    advice = "--features '!id' --features '!date' leaves them out"
    assert said == f"3 features: id, date, a\nwarning: id, date look like ids, batch numbers or dates; {advice}\n"


def test_many_features_are_cut_short(monkeypatch, capsys, tmp_path):
    columns = {f"f{k}": np.random.default_rng(k).normal(size=9) for k in range(21)}
    table = written(tmp_path / "t.csv", **columns, kind=["x", "o", "x"] * 3)
    said = track(monkeypatch, capsys, table, "--label", "kind", "--paper")
    assert said == f"21 features: {', '.join(f'f{k}' for k in range(20))}, ...\n"
    words = ["--label", "kind", "--paper", "--features", "!f20", "--overwrite"]
    said = track(monkeypatch, capsys, table, *words)
    assert said == f"20 features: {', '.join(f'f{k}' for k in range(20))}\n"


def test_all_that_look_like_ids_are_named(monkeypatch, capsys, tmp_path):
    names = [f"a{k}_id" for k in range(25)]
    columns = {name: np.random.default_rng(0).integers(99, size=9) for name in names}
    said = track(
        monkeypatch, capsys, written(tmp_path / "t.csv", **columns, kind=["x", "o", "x"] * 3), "--label", "kind"
    )
    assert f"warning: {', '.join(names)} look like ids" in said


def test_several_columns_of_numbers_that_grow(monkeypatch, capsys, tmp_path):
    columns = {"a": np.arange(60), "b": 2 * np.arange(60), "c": -np.arange(60), "id_card": np.arange(60) % 2}
    said = track(
        monkeypatch, capsys, written(tmp_path / "t.csv", **columns, kind=np.arange(60) % 3), "--label", "kind"
    )
    assert said.splitlines()[1:] == [
        "warning: a, b have numbers that never fall from row to row, as ids or dates have; "
        "--features '!a' --features '!b' leaves them out",
        "warning: c has numbers that never rise from row to row, as an id or a date has; "
        "--features '!c' leaves it out",
    ]


def test_features_of_comparisons_can_be_chosen(monkeypatch, capsys, tmp_path):
    rng = np.random.default_rng(0)
    columns = {f"{side}_{name}": rng.normal(size=99) for side in "xz" for name in ("id", "a", "b")}
    table = written(tmp_path / "t.csv", **columns, y=rng.choice([1, -1], size=99))
    said = track(monkeypatch, capsys, table)
    assert "warning: id looks like" in said
    assert (
        track(monkeypatch, capsys, table, "--features", "!id", "--overwrite") == "2 features, standardized: a, b\n"
    )
    assert run(monkeypatch, "score", str(tmp_path / "run"), str(table)) in (0, None)  # which leaves out the same
    assert "99 pairs: accuracy" in capsys.readouterr().err


def test_going_on_says_it_again_and_ends_alike(monkeypatch, capsys, table):
    assert track(monkeypatch, capsys, table, "--label", "kind")
    whole = contents(table.parent / "run")
    text = table.read_text()
    table.write_text("".join(text.splitlines(keepends=True)[:80]))
    track(monkeypatch, capsys, table, "--label", "kind", "--overwrite")
    table.write_text(text)
    said = track(monkeypatch, capsys, table, "--label", "kind", "--resume")
    assert NAMED in said
    assert NUMBERED in said
    assert contents(table.parent / "run") == whole


def test_a_pipe_is_not_waited_for(table):
    folder = table.parent / "run"
    command = [sys.executable, "-m", "ocelad.cli", "track", "-", "--label", "kind", "--out", str(folder)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    lines = table.read_bytes().splitlines(keepends=True)
    process.stdin.write(b"".join(lines[:3]))
    process.stdin.flush()
    patience = time.monotonic() + 60
    while not (folder / "predictions.csv").exists():  # learned, long before it is decided what looks like an id
        assert time.monotonic() < patience
        time.sleep(0.02)
    _, said = process.communicate(b"".join(lines[3:]))
    assert (NAMED + NUMBERED).encode() in said


DATES = "day,a,kind\n2024-01-31,1,x\n2024-02-01,2,o\n2024-02-03,3,x\n"


def test_a_column_of_dates_or_words_is_an_error_that_says_how_to_go_on(monkeypatch, capsys, tmp_path):
    table = tmp_path / "t.csv"
    table.write_text(DATES)
    said = track(monkeypatch, capsys, table, "--label", "kind", code=1)
    assert "line 2, column day: it must be a finite number, got '2024-01-31', a date or a time; " in said
    assert said.endswith("--features '!day' leaves the column out\n")  # and not --skip-bad: all rows are bad
    # nothing has been learned: the advice can be taken without --overwrite
    assert "1 feature, standardized: a\n" in track(
        monkeypatch, capsys, table, "--label", "kind", "--features", "!day"
    )
    assert "there is a run in" in track(monkeypatch, capsys, table, "--label", "kind", code=1)


def test_a_run_that_has_learned_something_is_not_lost(monkeypatch, capsys, tmp_path):
    table = tmp_path / "t.csv"
    table.write_text("a,kind\n1,x\n2,o\nnone,x\n")
    said = track(monkeypatch, capsys, table, "--label", "kind", code=1)
    assert (
        "line 4, column a: it must be a finite number, got 'none'; --skip-bad --resume sets such rows aside\n"
        in said
    )
    assert "there is a run in" in track(monkeypatch, capsys, table, "--label", "kind", code=1)
    assert track(monkeypatch, capsys, table, "--label", "kind", "--resume", "--skip-bad")


def test_of_a_column_that_is_no_feature_no_such_advice_is_given(monkeypatch, capsys, tmp_path):
    (tmp_path / "t.csv").write_text("x_a,z_a,y\n1,2,maybe\n")
    said = track(monkeypatch, capsys, tmp_path / "t.csv", code=1)
    assert "column y: it must be 1" in said
    assert "--features" not in said


def test_what_is_said_when_it_is_stopped_goes_on_as_it_is(monkeypatch, capsys, table):
    monkeypatch.chdir(table.parent)
    track(monkeypatch, capsys, table, "--label", "kind", "--features", "!user_id", "--out", "a whole")
    begin = Run.begin

    def stopped(run, *words):
        begin(run, *words)
        signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(Run, "begin", stopped)
        words = ["--label", "kind", "--features", "!user_id", "--overwrite", "--out", "a run"]
        said = track(patch, capsys, table, *words, code=130)
    command = said.partition("Stopped; this goes on:\n")[2].splitlines()[0]
    assert command.endswith(" --label kind --features '!user_id' --out 'a run' --resume")
    name, *words = shlex.split(command)
    assert name == "ocelad"
    assert run(monkeypatch, *words) in (0, None)
    assert contents(Path("a run")) == contents(Path("a whole"))


def test_what_goes_on_with_a_new_input_has_seen_some_of_it():
    """--new-input again would learn the same rows twice."""
    with click.Context(click.Command("track"), info_name="track") as context:
        context.meta[GIVEN] = ["b.csv", "--resume", "--new-input", "--out", "run"]
        assert resuming() == "ocelad track b.csv --out run --resume"


def test_features_that_a_run_did_not_have_are_named(monkeypatch, capsys, table):
    track(monkeypatch, capsys, table, "--label", "kind", "--features", "!a")
    for words, change in (([], "a is new"), (["--features", "!b", "--features", "!a"], "b is missing")):
        said = track(monkeypatch, capsys, table, "--label", "kind", "--resume", *words, code=1)
        assert f"a run goes on only as it began: form features: {change}\n" in said
    said = track(monkeypatch, capsys, table, "--label", "kind", "--resume", "--features", "!user_id", code=1)
    assert "form features: a is new, user_id is missing\n" in said


EMPTY = {
    "no rows": ("a,kind\n", [], 0, "t.csv: there are no rows after the header"),
    "one row": ("a,kind\n1,x\n", [], 0, "a labelled row is compared with earlier ones, and there are none"),
    "bad rows": ("a,kind\nq,x\n", ["--skip-bad"], 1, "all rows are bad: "),
}


@pytest.mark.parametrize("case", EMPTY)
def test_an_input_without_comparisons_says_so(monkeypatch, capsys, tmp_path, case):
    text, words, code, message = EMPTY[case]
    (tmp_path / "t.csv").write_text(text)
    assert message in track(monkeypatch, capsys, tmp_path / "t.csv", "--label", "kind", *words, code=code)


def test_going_on_without_new_rows_says_so(monkeypatch, capsys, table):
    track(monkeypatch, capsys, table, "--label", "kind")
    said = track(monkeypatch, capsys, table, "--label", "kind", "--resume", "--standardize")  # as it is anyway
    assert "there are no rows that the run has not seen" in said


@pytest.mark.filterwarnings("default")
def test_what_drowns_the_others_is_warned_of_in_the_words_of_the_command(monkeypatch, capsys, tmp_path):
    a, b, price = np.random.default_rng(0).normal(size=(3, 200))
    table = written(tmp_path / "t.csv", a=a, b=b, price=1000 * price, kind=a > 0)
    said = track(monkeypatch, capsys, table, "--label", "kind", "--no-standardize").splitlines()
    assert said[1].startswith("warning: feature 'price' is about ")
    assert said[1].endswith("can hardly count; --standardize measures each in its own unit")
    assert len(said) == 2


def test_labels_that_are_no_classes_are_told(monkeypatch, capsys, tmp_path):
    rng = np.random.default_rng(0)
    table = written(tmp_path / "t.csv", a=rng.normal(size=9), price=rng.normal(size=9))
    said = track(monkeypatch, capsys, table, "--label", "price")
    assert "--label price: rows that were compared all have one label, or all have different ones" in said


@pytest.mark.parametrize(
    ("labels", "warned"),
    [
        ("a" * 50 + "b" * 50, True),
        ("c" * 10 + "a" * 40 + "b" * 50, True),
        ("a" * 50 + "b" * 49 + "a", False),  # comes again
        ("a" * 91 + "b" * 9, False),  # may be chance
        ("a" * 100, False),
        ("ab" * 50, False),
    ],
)
def test_rows_that_are_sorted_by_label_are_warned_of(monkeypatch, capsys, tmp_path, labels, warned):
    table = written(tmp_path / "t.csv", a=np.random.default_rng(0).normal(size=100), kind=labels)
    said = track(monkeypatch, capsys, table, "--label", "kind")
    advice = "shuffle them, unless that is the order in which they came"
    assert (f"warning: rows are sorted by --label kind: {advice}\n" in said) == warned
    with table.open("a") as file:
        file.write("0,b\n" * 20)
    assert "sorted" not in track(monkeypatch, capsys, table, "--label", "kind", "--resume")  # which is not known


def test_a_table_without_a_header_is_told(monkeypatch, capsys, tmp_path):
    table = tmp_path / "t.csv"
    table.write_text("5.1,3.5,1.4,0.2,setosa\n4.9,3.0,1.4,0.2,setosa\n")
    hint = "5.1, 3.5, 1.4, 0.2, setosa (line 1 must have the names of the columns)"
    assert f"there is no column kind: there are {hint}" in track(
        monkeypatch, capsys, table, "--label", "kind", code=1
    )
    assert f"there is no column y, only {hint}" in track(monkeypatch, capsys, table, code=1)


@pytest.mark.parametrize(
    ("header", "words", "message"),
    [
        ("a,b,CLASS", ["--label", "class"], "there is no column class: did you mean CLASS?"),
        ("a b class", ["--label", "class"], "there is only one, 'a b class': separate cells by , ; or tab"),
        (
            "a,b,kind",
            ["--label", "kind", "--features", "!a,!b"],
            "there are a, b, kind; repeat the option for each",
        ),
        ("a,b,kind", ["--label", "kind", "--features", "!c"], "no column matches '!c': there are a, b, kind\n"),
    ],
)
def test_a_column_that_is_not_there(monkeypatch, capsys, tmp_path, header, words, message):
    (tmp_path / "t.csv").write_text(f"{header}\n")
    assert message in track(monkeypatch, capsys, tmp_path / "t.csv", *words, code=1)


def test_of_many_columns_some_are_listed(monkeypatch, capsys, tmp_path):
    names = [f"f{k}" for k in range(64)]
    (tmp_path / "t.csv").write_text(",".join([*names, "kind"]) + "\n")
    said = track(monkeypatch, capsys, tmp_path / "t.csv", code=1)
    assert "only f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, ..., kind; for labelled rows, give --label" in said
