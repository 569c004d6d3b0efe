"""The ``ocelad`` command, a file per subcommand. It needs ``pip install "ocelad[cli,plots]"``."""

from __future__ import annotations

import io
import os
import sys
import warnings
from importlib import import_module
from importlib.util import find_spec
from typing import Any

try:
    import click

    missing = [name for name in ("threadpoolctl", "tqdm") if find_spec(name) is None]  # help needs none of them
except ImportError:
    missing = ["click"]
if missing:
    sys.exit('The ocelad command needs a few small packages: pip install "ocelad[cli,plots]"')

COMMANDS = {
    "demo": "Track the paper's drifting clusters against the baselines: a table and a figure.",
    "embed": "Give the points of TABLE coordinates in which the metric of TRACKER is the Euclidean distance.",
    "info": "Say what is in PATH: a file of ocelad.save, or the folder of a run of ocelad track, or a file in it.",
    "label": "Ask which items of TABLE are similar, and learn from the answers.",
    "plot": "Draw PATH: the folder of a run of ocelad track, its timeline.csv, or a file of ocelad.save.",
    "score": "Measure the pairs of TABLE with the metric of TRACKER, which does not change.",
    "serve": "Serve a page on which people compare the items of TABLE, and an HTTP API for programs.",
    "spark-demo": (
        "Run a tracker for each of 1,000 users on Spark, on this machine: kill it, start it, nothing is lost."
    ),
    "spark-size": "Say how many cores, how much state and how many buckets a fleet on Spark needs.",
    "study": "Run the paper's experiments, choose their rates, and report on them.",
    "track": "Track the metric behind a table, or behind standard input if TABLE is -.",
    "warmup": "Compile the kernels ahead of time.",
}
"""Subcommands, each in the file of its name, and the first line of their help."""

JOBS = {
    "Learn a metric": ("track", "label", "serve"),
    "Use it": ("embed", "score", "plot", "info"),
    "Experiments": ("demo", "study"),
    "Setting up": ("warmup", "spark-demo", "spark-size"),
}
"""What they are for."""


def take_any_letter(*streams: Any) -> None:
    """Windows prints in an encoding that lacks most letters: a file gets UTF-8, as all tables have, and a terminal
    a question mark for what it cannot show."""
    for stream in streams:
        if not isinstance(stream, io.TextIOWrapper) or stream.encoding.lower() == "utf-8":
            continue
        if stream.isatty():
            stream.reconfigure(errors="replace")
        else:
            stream.reconfigure(encoding="utf-8")


def show_warning(message: Any, *_: Any, **__: Any) -> None:
    """A warning as a command gives it: its options for arguments, and no line of code."""
    from .. import FeatureScaleWarning
    from .progress import say

    words = message
    if isinstance(message, FeatureScaleWarning):
        words = f"{message.args[0]}; --standardize measures each in its own unit"
    say(f"warning: {words}")


class LazyGroup(click.Group):
    """Imports a subcommand when it is called for: that takes seconds, and Ctrl-C is heard from here on."""

    def list_commands(self, _: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, _: click.Context, name: str) -> click.Command | None:
        module = name.replace("-", "_")
        return getattr(import_module(f"{__name__}.{module}"), module) if name in COMMANDS else None

    def invoke(self, context: click.Context) -> Any:
        """What is wrong with an input is said in a line, without a traceback."""
        take_any_letter(sys.stdout, sys.stderr)
        try:
            with warnings.catch_warnings():
                setattr(warnings, "showwarning", show_warning)  # noqa: B010 (a checker takes it for a function)
                return super().invoke(context)
        except BrokenPipeError:  # whoever was reading has gone
            os.dup2(
                os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno()
            )  # else Python tries once more, at its end
            sys.exit(128 + 13)  # as if by SIGPIPE
        except (ValueError, ImportError, OSError, EOFError) as error:
            words = str(error)
            if isinstance(error, OSError) and error.strerror:  # without the number
                words = error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"
            raise click.ClickException(words) from None

    def format_commands(self, _: click.Context, formatter: click.HelpFormatter) -> None:
        for job, names in JOBS.items():
            with formatter.section(job):
                formatter.write_dl([(name, COMMANDS[name]) for name in names])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="ocelad")
def main() -> None:
    """Track a similarity function while it changes.

    Begin with ocelad track TABLE, or with ocelad label TABLE if there are no comparisons yet. Every command
    explains itself with --help.
    """
