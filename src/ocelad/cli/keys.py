"""Single keys from a terminal, which is left as it was found; lines, where standard input is none."""

from __future__ import annotations

import os
import re
import select
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any

END = "\x04"
"""Ctrl-D, or the end of the input."""

SEQUENCE = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|O.|)")
"""What a terminal sends for an arrow, say: several letters that are none."""


class Lines:
    """A word per line."""

    single = False

    def __enter__(self) -> Lines:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def read(self) -> str:
        """The next word, in small letters; `END` at the end."""
        line = sys.stdin.readline()
        return line.strip().lower() if line else END


if sys.platform == "win32":
    import msvcrt

    class Keys:
        """Keys of a console as they are pressed."""

        single = True

        def __init__(self, again: Callable[[], None] = lambda: None) -> None:
            pass

        def __enter__(self) -> Keys:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def read(self) -> str:
            key = msvcrt.getwch()
            if key in "\x00\xe0":  # an arrow, say, is two
                msvcrt.getwch()
                return ""
            return END if key in "\x03\x1a" else key.lower()  # Ctrl-C and Ctrl-Z

else:
    import termios
    import tty

    class Keys:
        """Keys of a terminal as they are pressed, without Enter.

        Ctrl-C and Ctrl-Z are signals as ever. Who stops the process by Ctrl-Z gets the terminal back as it was;
        when it goes on, ``again`` is called.
        """

        single = True

        def __init__(self, again: Callable[[], None] = lambda: None) -> None:
            self._terminal, self._again = sys.stdin.fileno(), again
            self._typed = ""

        def __enter__(self) -> Keys:
            self._usual = termios.tcgetattr(self._terminal)
            self._stop: Any = signal.getsignal(signal.SIGTSTP)
            self._signalled, signals = self._pipe = os.pipe()
            for end in self._pipe:
                os.set_blocking(end, False)
            self._woken = signal.set_wakeup_fd(signals, warn_on_full_buffer=False)
            try:
                if self._stop is not signal.SIG_IGN:
                    signal.signal(signal.SIGTSTP, self._pause)
                self._listen()
            except BaseException:
                self._leave()
                raise
            return self

        def __exit__(
            self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
        ) -> None:
            self._leave()

        def _leave(self) -> None:
            self._restore()
            signal.signal(signal.SIGTSTP, self._stop)
            signal.set_wakeup_fd(self._woken)
            for end in self._pipe:
                os.close(end)

        def _listen(self) -> None:
            tty.setcbreak(self._terminal, termios.TCSADRAIN)  # what has been typed ahead counts

        def _restore(self) -> None:
            with suppress(termios.error):  # the terminal may be gone
                termios.tcsetattr(self._terminal, termios.TCSADRAIN, self._usual)

        def _pause(self, *_: object) -> None:
            self._restore()
            signal.signal(signal.SIGTSTP, signal.SIG_DFL)
            signal.raise_signal(signal.SIGTSTP)  # it stops here, until someone lets it go on
            signal.signal(signal.SIGTSTP, self._pause)
            self._listen()
            self._again()

        def read(self) -> str:
            """The next key, as a small letter; nothing if it means nothing, and `END` at the end."""
            if not self._typed:
                try:
                    self._wait()
                    typed = os.read(self._terminal, 1024)
                except OSError:  # the terminal is gone
                    return END
                self._typed = SEQUENCE.sub("", typed.decode("utf-8", "replace")) if typed else END
            key, self._typed = self._typed[:1], self._typed[1:]
            return key.lower()

        def _wait(self) -> None:
            """Until a key is pressed. Reading at once would not see a signal that comes just before."""
            while self._terminal not in (ready := select.select([self._terminal, self._signalled], [], [])[0]):
                if ready:
                    os.read(self._signalled, 1024)  # its handler has been called by then


def reader(again: Callable[[], None]) -> Keys | Lines:
    """Keys, if standard input is a terminal, otherwise lines."""
    return Keys(again) if sys.stdin is not None and sys.stdin.isatty() else Lines()
