"""What ``ocelad track`` says of the features it takes: which they are, and which look as if they were none."""

from __future__ import annotations

from collections.abc import Sequence

import click

from ..data.tables import Columns, Row
from ..data.tables.identifiers import FirstRows
from .common import without
from .progress import say

SHOWN = 20
"""How many features are named."""


def scale_of(standardize: bool | None, scale: str | None, paper: bool) -> str | None:
    """The scale that two options ask for, which must not contradict each other; None for the usual one."""
    if standardize is not None:
        if scale is not None and standardize != (scale == "features"):
            said = "--standardize" if standardize else "--no-standardize"
            raise click.UsageError(f"{said} and --scale {scale} contradict each other: say one of them.")
        scale = scale or ("features" if standardize else "none" if paper else "auto")
    return None if scale == ("none" if paper else "features") else scale


class FeaturesSeen:
    """Says which features there are, and warns, when the first rows have come, of ids, batch numbers and dates.

    Nobody waits for these rows: a pipe may be slow.
    """

    def __init__(self, names: Sequence[str], columns: Columns, standardized: bool) -> None:
        self.names, self.standardized = names, standardized
        self._rows = FirstRows(columns, names)

    def begin(self) -> None:
        names = self.names
        how = ", standardized" * self.standardized
        shown = listed(names[:SHOWN]) + (", ..." if len(names) > SHOWN else "")
        click.echo(f"{len(names)} feature{'s' * (len(names) > 1)}{how}: {shown}", err=True)

    def look(self, rows: Sequence[Row], last: bool = False) -> None:
        """Rows as they are read, or that there are no more."""
        found = self._rows.look(rows, last)
        for numbers in sorted(set(found.values())):
            say(f"warning: {warning([name for name in self.names if found.get(name) == numbers], numbers)}")


def warning(names: Sequence[str], numbers: str = "") -> str:
    """That features look like ids, by their names or by the numbers that they have, and how to leave them out."""
    if len(names) == 1:
        why = f"has {numbers}, as an id or a date has" if numbers else "looks like an id, a batch number or a date"
        return f"{listed(names)} {why}; {without(names)} leaves it out"
    why = f"have {numbers}, as ids or dates have" if numbers else "look like ids, batch numbers or dates"
    return f"{listed(names)} {why}; {without(names)} leaves them out"


def listed(names: Sequence[str]) -> str:
    return ", ".join(name or "''" for name in names)
