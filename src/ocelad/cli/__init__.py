"""The ``ocelad`` command, a file per subcommand. It needs ``pip install "ocelad[cli,plots]"``."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any

try:
    import click
    import threadpoolctl  # noqa: F401
    import tqdm  # noqa: F401
except ImportError:
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


class LazyGroup(click.Group):
    """Imports a subcommand when it is called for: that takes seconds, and Ctrl-C is heard from here on."""

    def list_commands(self, _: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, _: click.Context, name: str) -> click.Command | None:
        module = name.replace("-", "_")
        return getattr(import_module(f"{__name__}.{module}"), module) if name in COMMANDS else None

    def invoke(self, context: click.Context) -> Any:
        """What is wrong with an input is said in a line, without a traceback."""
        try:
            return super().invoke(context)
        except BrokenPipeError:  # whoever was reading has gone
            os.dup2(
                os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno()
            )  # else Python tries once more, at its end
            sys.exit(128 + 13)  # as if by SIGPIPE
        except (ValueError, ImportError, OSError, EOFError) as error:
            raise click.ClickException(str(error)) from None

    def format_commands(self, _: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="ocelad")
def main() -> None:
    """Track a similarity function while it changes."""
