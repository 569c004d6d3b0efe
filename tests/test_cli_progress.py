"""Bars on a terminal; in files, logs and pipes a plain line now and then, or nothing."""

import sys

import pytest

from ocelad.cli import progress as module
from ocelad.cli.progress import Lines, progress, say
from test_cli import run


def test_there_is_no_bar_where_there_is_no_terminal(capsys):
    with progress(range(5), "here", unit=" pieces") as bar:
        assert list(bar) == list(range(5))
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("terminal")
def test_there_is_one_on_a_terminal(capsys):
    with progress(range(5), "here", unit=" pieces") as bar:
        assert list(bar) == list(range(5))
    assert "here: 100%" in capsys.readouterr().err


def test_no_standard_error_is_no_terminal(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    assert list(progress(range(3))) == [0, 1, 2]
    say("nobody hears it")


def test_what_takes_long_says_so_in_plain_lines(monkeypatch, capsys):
    now = [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    with Lines(None, "trial 1", total=300, initial=10, unit=" steps") as lines:
        for seconds in (59.0, 1.0, 30.0, 30.0):
            now[0] += seconds
            lines.set_postfix_str("error 0.1")
            lines.update(20)
    assert capsys.readouterr().err == "trial 1: 50 of 300 steps: error 0.1\ntrial 1: 90 of 300 steps: error 0.1\n"


@pytest.mark.usefixtures("terminal")
def test_the_bar_of_a_run_shows_all_measures(monkeypatch, capsys, tmp_path):
    (tmp_path / "t.csv").write_text("x_a,z_a,y\n" + "0,1,1\n0,9,-1\n3,3.5,1\n" * 20)
    assert run(monkeypatch, "track", str(tmp_path / "t.csv"), "--out", str(tmp_path / "run")) in (0, None)
    said = capsys.readouterr().err
    for word in ("t.csv: 60 in 00:", "accuracy 0.", "(majority 0.667)", "AUC ", "log loss ", "calibration error "):
        assert word in said
