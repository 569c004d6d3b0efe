"""How far something is: a bar on a terminal; in a file, a log or a pipe a plain line now and then."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterable, Iterator, Sized
from typing import Any

from tqdm import tqdm

WIDTH = 200
"""Columns of a terminal that does not say how many it has."""

EVERY = 60.0
"""Seconds between plain lines, and before the first."""


def progress(items: Iterable[Any] | None = None, desc: str | None = None, **options: Any) -> Any:
    """A bar of tqdm, or `Lines`, which have as much of its interface as is used here."""
    if on_terminal():
        if not shutil.get_terminal_size((0, 0)).columns:  # one that has no size would show nothing
            options |= {"ncols": WIDTH, "nrows": 20}
        return tqdm(items, desc, **options)
    return Lines(items, desc, **options)


def on_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


def say(words: str) -> None:
    """A line on standard error, also while there is a bar."""
    if sys.stderr is not None:
        tqdm.write(words, file=sys.stderr)


class Lines:
    """Plain lines on standard error."""

    def __init__(
        self,
        items: Iterable[Any] | None = None,
        desc: str | None = None,
        total: int | None = None,
        initial: int = 0,
        unit: str = "it",
        **_: Any,
    ) -> None:
        self.items, self.desc, self.unit, self.n = items, desc or "", unit, initial
        self.total = len(items) if total is None and isinstance(items, Sized) else total
        self._words, self._last = "", time.monotonic()

    def __enter__(self) -> Lines:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[Any]:
        for item in self.items or ():
            yield item
            self.update()

    def update(self, more: float = 1) -> None:
        """So many more are done."""
        self.n += more  # type: ignore[assignment]
        now = time.monotonic()
        if now - self._last >= EVERY and sys.stderr is not None:
            self._last = now
            print(self, file=sys.stderr, flush=True)

    def set_description(self, desc: str, **_: Any) -> None:
        self.desc = desc

    def set_postfix_str(self, words: str, **_: Any) -> None:
        self._words = words

    def close(self) -> None:
        pass

    def __str__(self) -> str:
        of = "" if self.total is None else f" of {self.total}"
        return ": ".join(filter(None, [self.desc, f"{self.n}{of} {self.unit.strip()}", self._words]))
