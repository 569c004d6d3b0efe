"""An error about a file names the option that it came from, the file, and why, before anything is read."""

import errno
import os
import re
from pathlib import Path

import numpy as np
import pytest

from ocelad import MetricTracker, files, save
from ocelad.cli.failures import writing
from ocelad.track import outputs
from streams import comparisons
from test_cli import run


@pytest.fixture(name="folder")
def fixture_folder(monkeypatch, tmp_path):
    pairs, y = comparisons(seed=0, steps=60, n=2)
    lines = [
        "x_a,x_b,z_a,z_b,y",
        *(",".join(map(str, [*r, s])) for r, s in zip(pairs.reshape(-1, 4), y, strict=True)),
    ]
    (tmp_path / "pairs.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "points.csv").write_text("a,b,kind\n1,2,x\n2,1,o\n3,2,x\n")
    (tmp_path / "items.csv").write_text("id,a,b\np,1,2\nq,2,1\n")
    (tmp_path / "ids.csv").write_text("id_a,id_b,y\np,q,1\n")
    (tmp_path / "header.csv").write_text("a,b,kind\n")
    (tmp_path / "a file").write_text("mine")
    (tmp_path / "a folder").mkdir()
    tracker = MetricTracker().partial_fit(pairs, y)
    tracker.feature_names_in_ = np.array(["a", "b"], dtype=object)
    save(tracker, tmp_path / "t.ocelad")
    monkeypatch.chdir(tmp_path)
    return tmp_path


SAID = {
    "track none.csv": "TABLE: there is no file none.csv",
    "track a\\ folder --format csv": "TABLE: a folder is a folder, and a file is needed",
    "track ids.csv --items none.csv": "--items: there is no file none.csv",
    "track pairs.csv --out a\\ file": "'--out': a file is a file, and a folder is needed",
    "track none.csv --out a\\ file": "'--out': a file is a file",  # before anything is read
    "track pairs.csv --out a\\ file/run": "--out: cannot write a file/run: Not a directory",
    "embed none.ocelad points.csv": "TRACKER: there is no file none.ocelad",
    "embed t.ocelad none.csv": "TABLE: there is no file none.csv",
    "embed t.ocelad none.csv --out a\\ folder": "'--out': a folder is a folder, and a file is needed",
    "embed t.ocelad points.csv --out none/c.csv": "'--out': there is no folder none",
    "score t.ocelad none.csv": "TABLE: there is no file none.csv",
    "score t.ocelad ids.csv --items none.csv": "--items: there is no file none.csv",
    "score t.ocelad none.csv --out a\\ folder": "'--out': a folder is a folder, and a file is needed",
    "plot t.ocelad --points none.csv --label kind": "--points: there is no file none.csv",
    "plot t.ocelad --out a\\ folder": "'--out': a folder is a folder, and a file is needed",
    "plot t.ocelad --out none/f.png": "'--out': there is no folder none",
    "plot t.ocelad --points header.csv --label kind": "header.csv: there are no rows after the header",
    "label none.csv": "TABLE: there is no file none.csv",
    "label items.csv --save none/t.ocelad": "--save: there is no folder",
    "label items.csv --answers a\\ folder": "is a folder, and a file is needed",
    "label header.csv": "header.csv: two or more items are needed, there are none",
    "demo --out a\\ file": "is a file",
    "track ids.csv --items header.csv": "items need a column id",
}


@pytest.mark.parametrize("words", SAID)
def test_what_is_wrong_with_a_file_is_said_with_its_option(monkeypatch, capsys, folder, words):
    given = [word.replace("\0", " ") for word in words.replace("\\ ", "\0").split()]
    before = sorted(path.name for path in folder.rglob("*"))
    assert run(monkeypatch, *given) in (1, 2)
    error = " ".join(capsys.readouterr().err.split())
    assert SAID[words] in error
    assert "Errno" not in error
    assert sorted(path.name for path in folder.rglob("*")) == before


def test_a_table_without_rows_says_so(monkeypatch, capsys, folder):
    assert run(monkeypatch, "embed", "t.ocelad", "header.csv") in (0, None)
    assert "header.csv: there are no rows after the header" in capsys.readouterr().err
    (folder / "none.csv").write_text("x_a,x_b,z_a,z_b,y\n")
    assert run(monkeypatch, "score", "t.ocelad", "none.csv") in (0, None)
    assert "none.csv: there are no rows after the header" in capsys.readouterr().err
    (folder / "i.csv").write_text("id,a,b\n")
    assert run(monkeypatch, "track", "ids.csv", "--items", "i.csv") == 1
    assert "--items: i.csv: it has a header and no rows" in capsys.readouterr().err


class Full:
    """A file on a disk that is full."""

    def __init__(self, file):
        self._file = file

    def write(self, _):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def __getattr__(self, name):
        return getattr(self._file, name)


@pytest.mark.usefixtures("folder")
def test_a_full_disk_names_the_file_and_the_option(monkeypatch, capsys):
    write = outputs.Output.write

    def full(output, lines):
        lines = list(lines)
        write(output, lines[:1])
        if lines:
            output._file = Full(output._file)
            write(output, lines[1:])

    monkeypatch.setattr(outputs.Output, "write", full)
    assert run(monkeypatch, "track", "pairs.csv", "--out", "run") == 1
    path = os.path.join("run", "predictions.csv")
    assert f"Error: --out: cannot write {path}: No space left on device" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["embed", "t.ocelad", "points.csv"], ["score", "t.ocelad", "pairs.csv"]])
def test_a_file_that_may_not_be_written_names_the_option(monkeypatch, capsys, folder, words):
    def refused(path, *_, **__):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    monkeypatch.setattr("ocelad.cli.common.open", refused, raising=False)
    assert run(monkeypatch, *words, "--out", "new.csv") == 1
    assert "Error: --out: cannot write new.csv: Permission denied" in capsys.readouterr().err
    assert not (folder / "new.csv").exists()


@pytest.mark.usefixtures("folder")
def test_a_full_disk_that_is_noticed_at_the_end_names_the_file(monkeypatch, capsys):
    class Buffered(Full):
        def write(self, data):
            return self._file.write(data)

        def close(self):
            self._file.close()
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    write = outputs.Output.write

    def buffered(output, lines):
        write(output, lines)
        if output._file is not None and not isinstance(output._file, Buffered):
            output._file = Buffered(output._file)

    monkeypatch.setattr(outputs.Output, "write", buffered)
    assert run(monkeypatch, "track", "pairs.csv", "--out", "run") == 1
    path = os.path.join("run", "predictions.csv")
    assert f"Error: --out: cannot write {path}: No space left on device" in capsys.readouterr().err


@pytest.mark.usefixtures("folder")
def test_a_full_disk_names_the_figure(monkeypatch, capsys):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("matplotlib.figure.Figure.savefig", full)
    assert run(monkeypatch, "plot", "t.ocelad", "--out", "new.png") == 1
    assert capsys.readouterr().err == "Error: --out: cannot write new.png: No space left on device\n"


def test_a_folder_that_may_not_be_written_to_is_said(monkeypatch, capsys, folder):
    (folder / "a folder" / ".lock").mkdir()  # which cannot be opened, either
    monkeypatch.setattr(os, "access", lambda path, *_: str(path) != "a folder")
    assert run(monkeypatch, "track", "pairs.csv", "--out", "a folder") == 1
    assert "Error: --out: cannot write a folder: Permission denied\n" in capsys.readouterr().err


@pytest.mark.usefixtures("folder")
def test_only_a_folder_that_is_not_there_is_said_to_be_missing():
    missing, there = str(Path("none", "f.csv")), str(Path("a folder", "f.csv"))
    for path, message in (
        (missing, "--out: there is no folder none"),
        (there, f"--out: cannot write {there}: No such file or directory"),
    ):
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"), writing("--out"):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)


@pytest.mark.usefixtures("folder")
def test_only_what_is_about_a_file_is_said_to_be(monkeypatch, capsys):
    def locked(*_):
        raise OSError("another run is under way")

    monkeypatch.setattr("ocelad.cli.track.lock_folder", locked)
    assert run(monkeypatch, "track", "pairs.csv", "--out", "run") == 1
    assert "Error: another run is under way" in capsys.readouterr().err


def test_an_error_keeps_the_name_that_it_has(tmp_path):
    with pytest.raises(FileNotFoundError) as caught, files.named(tmp_path / "this"):
        open(tmp_path / "other")  # noqa: SIM115
    assert caught.value.filename == str(tmp_path / "other")
    with pytest.raises(OSError, match="own words"), files.named(tmp_path / "this"):
        raise OSError("own words")


def test_no_error_of_a_file_has_its_number(monkeypatch, capsys, folder):
    def refused(*_):
        raise PermissionError(errno.EACCES, "Permission denied", "somewhere.csv")

    monkeypatch.setattr("ocelad.cli.track.Stopping.__enter__", refused)
    assert run(monkeypatch, "track", str(folder / "pairs.csv")) == 1
    assert capsys.readouterr().err == "Error: somewhere.csv: Permission denied\n"
