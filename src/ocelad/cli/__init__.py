"""The ``ocelad`` command, a file per subcommand. It needs ``pip install "ocelad[cli,plots]"``."""

from __future__ import annotations

import sys

try:
    import click
    import threadpoolctl  # noqa: F401
    import tqdm  # noqa: F401
except ImportError:
    sys.exit('The ocelad command needs a few small packages: pip install "ocelad[cli,plots]"')

from .demo import demo
from .embed import embed
from .info import info
from .plot import plot
from .score import score
from .study import study
from .text import text
from .track import track
from .warmup import warmup


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="ocelad")
def main() -> None:
    """Track a similarity function while it changes."""


for command in (demo, track, embed, score, plot, info, study, warmup):
    main.add_command(command)
study.add_command(text)
