"""``ocelad label`` on a terminal: keys without Enter, and a terminal that is left as it was found."""

import os
import re
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress

import pytest

from test_label import answers, fixture_table  # noqa: F401

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="a pseudo-terminal is of POSIX")
if sys.platform != "win32":
    import termios

    from ocelad.cli.keys import Keys

# A session of its own, whose terminal is standard input: so that Ctrl-C and Ctrl-Z reach it.
ALONE = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.executable, [sys.executable, "-m", "ocelad.cli", *sys.argv[1:]])
"""

# And a little shell in it, which has one job, and says how the terminal is whenever that stops or ends.
SHELL = """
import fcntl, os, signal, subprocess, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
usual = termios.tcgetattr(0)
job = subprocess.Popen([sys.executable, "-m", "ocelad.cli", *sys.argv[1:]], process_group=0)
for word in ("stopped", "ended"):
    os.tcsetpgrp(0, job.pid)
    os.killpg(job.pid, signal.SIGCONT)
    _, status = os.waitpid(job.pid, os.WUNTRACED)
    os.tcsetpgrp(0, os.getpgrp())
    print("shell:", word, os.WIFSTOPPED(status), termios.tcgetattr(0) == usual, flush=True)
"""


class Terminal:
    """A terminal with a person in front of it."""

    def __init__(self, script, *words):
        self.outside, self.inside = os.openpty()
        self.usual = termios.tcgetattr(self.inside)
        self.seen, self._used = "", 0
        command = [sys.executable, "-c", script, "label", *map(str, words)]
        ends = {"stdin": self.inside, "stdout": self.inside, "stderr": self.inside}
        self.process = subprocess.Popen(command, start_new_session=True, **ends)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.outside)
        os.close(self.inside)

    def read(self, patience):
        if not select.select([self.outside], [], [], patience)[0]:
            return False
        with suppress(OSError):
            self.seen += os.read(self.outside, 65536).decode()
        return True

    def wait_for(self, words):
        """What was shown up to these words, since it was last waited for."""
        end = time.monotonic() + 60
        while (found := re.search(words, self.seen[self._used :])) is None:
            assert time.monotonic() < end, self.seen
            self.read(1.0)
        shown = self.seen[self._used : self._used + found.end()]
        self._used += found.end()
        return shown

    def press(self, keys):
        os.write(self.outside, keys.encode())

    def code(self):
        """How it ended, and whether the terminal is as it was."""
        end = time.monotonic() + 60
        while self.process.poll() is None:
            assert time.monotonic() < end, self.seen
            self.read(0.1)
        while self.read(0.1):
            pass
        return self.process.returncode, termios.tcgetattr(self.inside) == self.usual


def said(table):
    return [line.split(",")[2] for line in answers(table).read_text().splitlines()[1:]]


def test_keys_need_no_enter_and_those_typed_ahead_count(table):
    with Terminal(ALONE, table) as terminal:
        terminal.press("y")  # before it has begun
        terminal.wait_for(r"similar\? yes")
        for key, word in (
            ("n", "no"),
            ("u", "unsure"),
            ("\x7f", "undo"),
            ("Y", "yes"),
            ("p", "undo"),
            ("n", "no"),
        ):
            terminal.wait_for(r"similar\? ")
            terminal.press(key)
            assert terminal.wait_for(word)
        terminal.press("\x1b[A\x1bOBny\x1bx")  # arrows, and Escape, mean nothing
        terminal.wait_for(r"similar\? yes")
        terminal.wait_for("'x' is none of")
        terminal.press("q")
        terminal.wait_for("quit")
        assert terminal.code() == (0, True)
        assert "the answers; the same command goes on" in terminal.seen
    assert said(table) == ["1", "-1", "-1", "-1", "1"]


@pytest.mark.parametrize(("key", "code"), [("\x03", 130), ("\x04", 0)], ids=["Ctrl-C", "Ctrl-D"])
def test_to_leave_in_any_way_keeps_everything(table, tmp_path, key, code):
    saved = tmp_path / "tracker.ocelad"
    with Terminal(ALONE, table, "--aim", "groups", "--save", saved) as terminal:
        terminal.press("yn")
        terminal.wait_for(r"3\.[\s\S]*similar\? ")
        terminal.press(key)
        assert terminal.code() == (code, True)
        assert "Traceback" not in terminal.seen
        assert "2 answered: 1 similar, 1 different" in terminal.seen
    assert said(table) == ["1", "-1"]
    assert saved.exists()
    assert table.with_name("items.groups.csv").exists()


def test_who_is_told_to_stop_leaves_the_terminal_in_order(table):
    with Terminal(ALONE, table) as terminal:
        terminal.press("y")
        terminal.wait_for(r"2\.[\s\S]*similar\? ")
        terminal.process.send_signal(signal.SIGTERM)
        assert terminal.code() == (143, True)
        assert "1 answered: 1 similar" in terminal.seen
    assert said(table) == ["1"]


def test_ctrl_z_gives_the_terminal_back_and_goes_on_with_the_same_question(table):
    with Terminal(SHELL, table) as terminal:
        terminal.press("y")
        terminal.wait_for(r"2\.\s")
        asked = terminal.wait_for(r"similar\? ")
        terminal.press("\x1a")
        terminal.wait_for("shell: stopped True True")
        assert asked.strip() in terminal.wait_for(r"similar\? ")
        terminal.press("nq")  # without Enter
        terminal.wait_for("shell: ended False True")
        assert terminal.code() == (0, True)
    assert said(table) == ["1", "-1"]


def test_an_error_leaves_the_terminal_in_order(monkeypatch):
    outside, inside = os.openpty()
    usual, stop = termios.tcgetattr(inside), signal.getsignal(signal.SIGTSTP)

    def fail():
        with Keys() as keys:
            assert termios.tcgetattr(inside) != usual
            os.write(outside, b"y")
            assert keys.read() == "y"
            raise RuntimeError("nobody has thought of this")

    with open(inside) as file:
        monkeypatch.setattr("sys.stdin", file)
        with pytest.raises(RuntimeError):
            fail()
        assert termios.tcgetattr(inside) == usual
        assert signal.getsignal(signal.SIGTSTP) is stop
    os.close(outside)


def test_a_terminal_that_is_gone_is_the_end(monkeypatch):
    outside, inside = os.openpty()
    with open(inside) as file:
        monkeypatch.setattr("sys.stdin", file)
        with Keys() as keys:
            os.close(outside)
            assert keys.read() == "\x04"
