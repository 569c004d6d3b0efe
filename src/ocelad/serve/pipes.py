"""The side of a child process: messages come by standard input, and go by standard output.

A child ignores Ctrl-C and SIGTERM, which a terminal or a supervisor sends to all processes at once: the front
drains, and closes the pipe; then the child ends. It also does when the front is killed.
"""

from __future__ import annotations

import os
import signal
import sys

from .frames import Frame, Frames

AT_ONCE = 1 << 20


class Pipes:
    """Both pipes, in a process that nothing else may print in."""

    def __init__(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        self._in, self._out = os.dup(0), os.dup(1)
        os.dup2(2, 1)  # what is printed by mistake goes to standard error
        sys.stdout = sys.stderr
        self._frames = Frames()

    def wait_to_begin(self) -> None:
        """The first message says that all is in place."""
        if not self.receive():
            sys.exit(0)

    def receive(self) -> list[Frame]:
        """Wait for messages: all that have come; none when the front has gone."""
        while data := os.read(self._in, AT_ONCE):
            found = self._frames.feed(data)
            if found:
                return found
        return []

    def send(self, data: bytes) -> None:
        """Write it all; if nobody is there to read, this process is not needed any more."""
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._out, view) :]
        except OSError:  # a broken pipe, which Windows calls an invalid argument
            sys.exit(0)
