"""Ctrl-C between two steps, never within one: half a step would leave learners and weights at odds."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_holding: list[object] = []  # whoever holds it back just now


@contextmanager
def hold_interrupts() -> Iterator[Callable[[], None]]:
    """Hear Ctrl-C only when all of this is done, or at once if it is pressed again meanwhile.

    Within one another only the outermost holds it back, and gives a function to call wherever it may be heard.

    >>> try:
    ...     with hold_interrupts() as pause:
    ...         signal.raise_signal(signal.SIGINT)
    ...         print("still here")
    ...         pause()
    ...         print("never here")
    ... except KeyboardInterrupt:
    ...     print("heard")
    still here
    heard
    """
    usual: Any = None if _holding else signal.getsignal(signal.SIGINT)
    pressed, held = False, usual is not None  # else it belongs to a program around Python, or is held already

    def hold(*_: object) -> None:
        nonlocal pressed
        pressed = not pressed
        if not pressed:  # the second time
            hear()

    def hear() -> None:
        signal.signal(signal.SIGINT, usual)
        signal.raise_signal(signal.SIGINT)

    def pause() -> None:
        nonlocal pressed
        if pressed:
            pressed = False
            hear()
            signal.signal(signal.SIGINT, hold)

    if held:
        try:
            signal.signal(signal.SIGINT, hold)
            _holding.append(pause)
        except ValueError:  # another thread than the main one, which alone hears it
            held = False
    try:
        yield pause
    finally:
        if held:
            _holding.clear()
            signal.signal(signal.SIGINT, usual)
        if pressed:
            signal.raise_signal(signal.SIGINT)
