"""What options have in common. Nothing is imported here that takes time, so that help comes at once."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

Option = Callable[[Any], Any]

FEATURES = "Feature columns, such as 'f*', or '!id' for all but id. [default: all of numbers]"

_RANGE = re.compile(r"; 0?[x<>=0-9]+(?=\]$)| *\[[x<>=0-9]+\]$")
"""What click says of the least and the greatest number, which its errors say, too."""

OTHERS = "Options"
"""The group of options that are in no other."""


GIVEN = "ocelad.given"
"""Where a context has the words that the command was given."""


class Grouped(click.Command):
    """A command whose help shows options group by group: see `group`. It keeps the words that it was given."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        context.meta[GIVEN] = list(args)
        return super().parse_args(context, args)

    def format_options(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(context):
            record = param.get_help_record(context)
            if record is not None and isinstance(param, click.Option):
                words = _RANGE.sub("", record[1])
                groups.setdefault(getattr(param, "group", OTHERS), []).append((record[0], words))
        for name, records in groups.items():
            with formatter.section(name):
                formatter.write_dl(records)


def group(name: str, *options: Option) -> Option:
    """Options under a heading of their own in the help of a `Grouped` command, in this order."""

    def decorate(command: Any) -> Any:
        before = {id(param) for param in _params(command)}
        for each in reversed(options):
            command = each(command)
        for param in _params(command):
            if id(param) not in before:
                param.group = name
        return command

    return decorate


def _params(command: Any) -> list[Any]:
    """Of a function, as `click.option` leaves them, or of a command."""
    return list(getattr(command, "__click_params__", ()) or getattr(command, "params", ()))


def resuming() -> str:
    """The command that is running, to be typed again with --resume: its input is known by then, and not new."""
    context = click.get_current_context()
    given = [word for word in context.meta[GIVEN] if word not in ("--overwrite", "--resume", "--new-input")]
    end = given.index("--") if "--" in given else len(given)
    return shlex.join(["ocelad", str(context.info_name), *given[:end], "--resume", *given[end:]])


def option(name: str, default: Any, words: str, also: tuple[str, ...] = (), **more: Any) -> Option:
    """An option whose default, if it has one, is shown; of a tuple, as words between commas."""
    if isinstance(default, tuple):
        default = ",".join(map(str, default))
    number = isinstance(more.get("type"), click.types.IntParamType | click.types.FloatParamType)
    if number and "metavar" not in more:
        more["metavar"] = "N" if isinstance(more["type"], click.types.IntParamType) else "X"
    return click.option(f"--{name}", *also, **{"default": default, "show_default": True, "help": words, **more})


def count(name: str, default: int | None, words: str, **more: Any) -> Option:
    """A whole number from 1 on."""
    return option(name, default, words, type=click.IntRange(1), **more)


def flag(name: str, words: str, **more: Any) -> Option:
    """Something that is said or not."""
    return click.option(f"--{name}", is_flag=True, help=words, **more)


def to_folder(_context: Any, _param: Any, path: str) -> str:
    """The callback of an option that names a folder to write to."""
    if Path(path).exists() and not Path(path).is_dir():
        raise click.BadParameter(f"{path} is a file, and a folder is needed")
    return path


def to_file(_context: Any, _param: Any, path: str | None) -> str | None:
    """The callback of an option that names a file to write to, or - for standard output."""
    if path is not None and path != "-":
        if Path(path).is_dir():
            raise click.BadParameter(f"{path} is a folder, and a file is needed")
        if not Path(path).parent.is_dir():
            raise click.BadParameter(f"there is no folder {Path(path).parent}")
    return path
