"""Help comes at once, and fits a screen or is in groups."""

import statistics
import subprocess
import sys
import time

import click
import pytest
from click.testing import CliRunner

from ocelad import cli
from ocelad.cli.options import Grouped, group, option

SCREEN = 40


def commands():
    for name in cli.COMMANDS:
        command = cli.main.get_command(None, name)
        yield name, command
        if isinstance(command, click.Group):
            yield from ((f"{name} {part}", each) for part, each in command.commands.items())


@pytest.mark.parametrize(("name", "command"), list(commands()))
def test_help_fits_a_screen_or_is_in_groups(name, command):
    lines = CliRunner().invoke(cli.main, [*name.split(), "--help"], terminal_width=80).output.splitlines()
    groups = {getattr(param, "group", None) for param in command.params if isinstance(param, click.Option)}
    assert len(lines) <= SCREEN or len(groups) > 1


def test_options_are_shown_in_their_groups_and_order():
    @click.command(cls=Grouped)
    @click.argument("table")
    @group("Input", option("one", 1, "First."), option("two", None, "Second."))
    @click.option("--three", help="Third.")
    @group("Output", option("four", None, "Fourth."))
    def command(**_):
        """Do it."""

    assert CliRunner().invoke(command, ["--help"]).output.splitlines() == [
        "Usage: command [OPTIONS] TABLE",
        "",
        "  Do it.",
        "",
        "Input:",
        "  --one INTEGER  First.  [default: 1]",
        "  --two TEXT     Second.",
        "",
        "Options:",
        "  --three TEXT  Third.",
        "  --help        Show this message and exit.",
        "",
        "Output:",
        "  --four TEXT  Fourth.",
    ]


def test_help_imports_little():
    code = "import sys; from ocelad.cli import main; main(['-h'], standalone_mode=False); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules = done.stdout.splitlines()[-1].split()
    assert not {"numpy", "numba", "sklearn", "tqdm", "threadpoolctl", "matplotlib"} & set(modules)


def test_help_takes_no_longer_than_three_starts_of_python():
    def seconds(*words):
        start = time.perf_counter()
        subprocess.run([sys.executable, *words], capture_output=True, check=True)
        return time.perf_counter() - start

    ratios = [seconds("-m", "ocelad.cli", "-h") / seconds("-c", "import click") for _ in range(7)]
    assert statistics.median(ratios) < 3.0


def test_help_says_what_a_number_is_for_and_not_how_large_it_may_be():
    said = CliRunner().invoke(cli.main, ["track", "--help"], terminal_width=80).output
    assert "--per-row N      Take N of them for each row.  [default: 2]\n" in said
    assert "x>" not in said
    assert "<=x" not in said
    headings = [line for line in said.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert headings[-2:] == ["For researchers:", "Options:"]
    assert len(said.splitlines()) < 75


@pytest.mark.parametrize(("name", "command"), list(commands()))
def test_every_option_says_what_it_is(name, command):
    for param in command.params:
        if isinstance(param, click.Option):
            assert param.help, (name, param.name)
            assert not param.help.startswith("Of "), (name, param.name)
