"""Ctrl-C and SIGTERM, heard at a moment at which nothing is lost."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from ..track.run import Stopped


class Stopping:
    """While it is entered, both signals end the wait for input; while a comparison is learned, they can wait."""

    def __init__(self) -> None:
        self.signal = 0
        self._waits = False

    def __enter__(self) -> Stopping:
        self._before: dict[int, Any] = {s: signal.signal(s, self._hear) for s in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _hear(self, number: int, _: FrameType | None) -> None:
        self.signal = number
        if self._waits:
            raise Stopped

    @contextmanager
    def waiting(self) -> Iterator[None]:
        self._waits = True
        try:
            if self.signal:
                raise Stopped
            yield
        finally:
            self._waits = False
