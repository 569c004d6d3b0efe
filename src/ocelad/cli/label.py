"""``ocelad label``: ask a person which items are similar."""

from __future__ import annotations

from typing import Any

import click

from .options import FEATURES, Grouped, count, flag, group, option


@click.command(cls=Grouped)
@click.argument("table")
@group(
    "Items",
    option("id", None, "The column that names items. [default: id, or else the line's number]", metavar="COLUMN"),
    option("features", None, FEATURES, multiple=True, metavar="PATTERN"),
    option("show", None, "Columns to show. [default: all, or what fits]", multiple=True, metavar="PATTERN"),
)
@group(
    "Questions",
    option(
        "aim",
        "metric",
        "Ask for what is similar in general, or for the groups of these items.",
        type=click.Choice(["metric", "groups"]),
    ),
    count("questions", None, "Stop after N questions. [default: when you quit, or all is known]"),
    count("candidates", 4, "Ask the least certain of N random pairs, if the aim is the metric."),
    flag("no-implied", "a like b and b like c does not mean that a is like c."),
    option("seed", 0, "Seed of all random choices.", type=click.IntRange(0, 2**32 - 1)),
)
@group(
    "Output",
    option("answers", None, "Where answers are kept. [default: items.answers.csv of items.csv]", metavar="FILE"),
    option("save", None, "Write the tracker there, as ocelad.save does.", metavar="FILE"),
    option("groups", None, "With --aim groups: where they go. [default: items.groups.csv]", metavar="FILE"),
)  # fmt: skip
def label(**options: Any) -> None:
    """Ask which items of TABLE are similar, and learn from the answers.

    Two items are shown; press y (similar), n (different), u (unsure: asked again later), p (undo: the previous
    question again), d (I judge differently now) or q (quit). The next question is the one that teaches most, or
    with --aim groups, the one that places an item in its group. Columns of numbers are features, others are only
    shown.

    \b
    ocelad label items.csv --id name --save tracker.ocelad
    ocelad label items.csv --aim groups --groups groups.csv
    ocelad label items.csv < replies.txt

    Each answer is on the disk before the next question is asked, and the same command goes on where it stopped, as
    if it had not. Ctrl-C and Ctrl-D quit. If standard input is no terminal, it has an answer per line.
    """
    from .labelling import ask  # which takes a second to import, and help needs none of it

    ask(**options)
