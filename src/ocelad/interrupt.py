"""Deferred Ctrl-C: between two steps, never within one, which would leave learners and weights inconsistent."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_holding: list[object] = []  # the block that defers it now


@contextmanager
def hold_interrupts() -> Iterator[Callable[[], None]]:
    """Defer Ctrl-C until the end of the block, or until it is pressed a second time.

    Of nested blocks only the outermost defers it. The function that it gives delivers a Ctrl-C that is pending.

    >>> try:
    ...     with hold_interrupts() as pause:
    ...         signal.raise_signal(signal.SIGINT)
    ...         print("still here")
    ...         pause()
    ...         print("never here")
    ... except KeyboardInterrupt:
    ...     print("interrupted")
    still here
    interrupted
    """
    usual: Any = None if _holding else signal.getsignal(signal.SIGINT)
    pressed, held = False, usual is not None  # else it belongs to a program around Python, or is deferred already

    def hold(*_: object) -> None:
        nonlocal pressed
        pressed = not pressed
        if not pressed:  # the second time
            deliver()

    def deliver() -> None:
        signal.signal(signal.SIGINT, usual)
        signal.raise_signal(signal.SIGINT)

    def pause() -> None:
        nonlocal pressed
        if pressed:
            pressed = False
            deliver()
            signal.signal(signal.SIGINT, hold)

    if held:
        try:
            signal.signal(signal.SIGINT, hold)
            _holding.append(pause)
        except ValueError:  # not the main thread, which alone receives it
            held = False
    try:
        yield pause
    finally:
        if held:
            _holding.clear()
            signal.signal(signal.SIGINT, usual)
        if pressed:
            signal.raise_signal(signal.SIGINT)
