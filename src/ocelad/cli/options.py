"""What options have in common. Nothing is imported here that takes time, so that help comes at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

Option = Callable[[Any], Any]


def option(name: str, default: Any, words: str, also: tuple[str, ...] = (), **more: Any) -> Option:
    """An option whose default, if it has one, is shown; of a tuple, as words between commas."""
    if isinstance(default, tuple):
        default = ",".join(map(str, default))
    return click.option(f"--{name}", *also, **{"default": default, "show_default": True, "help": words, **more})


def count(name: str, default: int | None, words: str, **more: Any) -> Option:
    """A whole number from 1 on."""
    return option(name, default, words, type=click.IntRange(1), **more)
