"""What Windows has not: the same by other means, here with a Windows that is made up."""

import ast
import errno
import io
import os
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import SimpleNamespace

import pytest

import ocelad
from ocelad import cli, files
from ocelad.cli import keys
from ocelad.files import atomic_write
from ocelad.folder_lock import BEYOND, lock_file
from ocelad.label import Answer, AnswersFile

POSIX = {"fcntl", "termios", "tty", "pty", "pwd", "grp", "resource", "syslog", "posix"}
"""Modules that Windows has not."""

ONLY_POSIX = {"fork", "getuid", "geteuid", "mkfifo", "setsid", "killpg", "getpgid", "nice", "sched_getaffinity"}


@pytest.fixture(name="windows")
def fixture_windows(monkeypatch):
    """No fcntl, and a msvcrt that locks bytes."""
    locked = set()

    def locking(file, mode, size):
        assert (mode, size) == (2, 1)
        place = os.fstat(file).st_ino, os.lseek(file, 0, os.SEEK_CUR)
        if place in locked:
            raise OSError(errno.EACCES, "Permission denied")
        locked.add(place)

    monkeypatch.setitem(sys.modules, "fcntl", None)
    monkeypatch.setitem(sys.modules, "msvcrt", SimpleNamespace(locking=locking, LK_NBLCK=2))
    return locked


def test_an_open_file_is_locked_beyond_its_end(windows, tmp_path):
    with (tmp_path / "file").open("wb") as file:
        lock_file(file.fileno())
        assert windows == {(os.fstat(file.fileno()).st_ino, BEYOND)}
        file.write(b"at the beginning")
        with pytest.raises(BlockingIOError):
            lock_file(file.fileno())
    assert (tmp_path / "file").read_bytes() == b"at the beginning"


@pytest.mark.usefixtures("windows")
def test_one_process_answers_into_a_file_at_a_time(tmp_path):
    with AnswersFile(tmp_path / "a.csv", ["x", "y"]) as file:
        file.append(Answer(0, 1, 1))
        with pytest.raises(OSError, match="someone else is answering into this file"):
            AnswersFile(tmp_path / "a.csv", ["x", "y"])
    assert (tmp_path / "a.csv").read_text() == "id_a,id_b,y\nx,y,1\n"


@pytest.mark.parametrize(("times", "there"), [(2, "new"), (99, "old")])
def test_a_file_that_is_being_read_is_replaced_when_it_is_free(monkeypatch, tmp_path, times, there):
    replace, left = os.replace, [times]

    def busy(source, target):
        left[0] -= 1
        if left[0] >= 0:
            raise PermissionError(errno.EACCES, "it is in use", source, None, target)
        replace(source, target)

    monkeypatch.setattr(files, "WINDOWS", True)
    monkeypatch.setattr(files, "PAUSES", (0.0,) * 5)
    monkeypatch.setattr(os, "replace", busy)
    (tmp_path / "file").write_text("old")
    try:
        with atomic_write(tmp_path / "file", text=True) as file:
            file.write("new")
    except PermissionError:
        assert times == 99
    assert (tmp_path / "file").read_text() == there
    assert os.listdir(tmp_path) == ["file"]


def test_keys_are_read_from_a_console(monkeypatch):
    typed = iter(["Y", "\xe0", "H", "\x03", "q"])  # an arrow is two, and the third is Ctrl-C
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setitem(sys.modules, "termios", None)
    monkeypatch.setitem(sys.modules, "msvcrt", SimpleNamespace(getwch=lambda: next(typed)))
    spec = spec_from_file_location("keys_of_windows", keys.__file__)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    with module.Keys() as console:
        assert [console.read() for _ in range(4)] == ["y", "", keys.END, "q"]


@pytest.mark.parametrize(("terminal", "expected"), [(True, b"na?ve ?"), (False, "naïve 猫".encode())])
def test_any_letter_can_be_printed(terminal, expected):
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    out.isatty = lambda: terminal
    cli.take_any_letter(out, None, io.StringIO())  # which has no encoding
    out.write("naïve 猫")
    out.flush()
    assert out.buffer.getvalue() == expected


def sources():
    root = Path(ocelad.__file__).parent
    return [path for path in root.rglob("*.py") if "spark" not in path.parts]  # which needs Linux or macOS


@pytest.mark.parametrize("path", sources(), ids=lambda path: path.name)
def test_what_windows_has_not_is_asked_for_first(path):
    """A module is imported, or a function called, only behind a test of the platform or of whether it is there."""
    text = path.read_text(encoding="utf-8")
    assert "/proc/" not in text
    for node in ast.parse(text).body:
        if isinstance(node, ast.Import):
            assert not POSIX & {name.name for name in node.names}
        if isinstance(node, ast.ImportFrom):
            assert node.module not in POSIX
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Attribute) and node.attr in ONLY_POSIX:
            assert f'hasattr(os, "{node.attr}")' in text
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ("read_text", "write_text"):
            assert node.args or node.keywords, (
                f"line {node.lineno}: without an encoding it is another one elsewhere"
            )
