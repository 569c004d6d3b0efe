"""Ctrl-C between two steps, never within one: half a step would leave learners and weights at odds."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def undivided() -> Iterator[None]:
    """Hear Ctrl-C only when all of this is done, or at once if it is pressed again meanwhile.

    >>> try:
    ...     with undivided():
    ...         signal.raise_signal(signal.SIGINT)
    ...         print("still here")
    ... except KeyboardInterrupt:
    ...     print("heard")
    still here
    heard
    """
    usual, pressed = signal.getsignal(signal.SIGINT), False

    def hold(*_: object) -> None:
        nonlocal pressed
        pressed = not pressed
        if not pressed:  # the second time
            signal.signal(signal.SIGINT, usual)
            signal.raise_signal(signal.SIGINT)

    held = usual is not None  # else it belongs to a program around Python
    if held:
        try:
            signal.signal(signal.SIGINT, hold)
        except ValueError:  # another thread than the main one, which alone hears it
            held = False
    try:
        yield
    finally:
        if held:
            signal.signal(signal.SIGINT, usual)
        if pressed:
            signal.raise_signal(signal.SIGINT)
