"""What ``ocelad track`` says of the features it takes: which they are, and which look as if they were none."""

from __future__ import annotations

from collections.abc import Sequence

import click

from ..data.tables import Columns, Row
from ..data.tables.identifiers import FirstRows, by_name
from .common import without
from .progress import say

SHOWN = 6
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
    """Says which features there are, and warns, as soon as it is known, of ids, batch numbers and dates.

    Names tell at once. What the first rows tell is said when they have come: nobody waits for them.
    """

    def __init__(self, names: Sequence[str], columns: Columns, standardized: bool) -> None:
        self.names, self.standardized = names, standardized
        self._rows = FirstRows(columns)
        self._warned: set[str] = set()

    def begin(self) -> None:
        names = self.names
        how = ", standardized" * self.standardized
        click.echo(f"{len(names)} feature{'s' * (len(names) > 1)}{how}: {_few(names)}", err=True)
        self._warn(by_name(names))

    def look(self, rows: Sequence[Row], last: bool = False) -> None:
        """Rows as they are read, or that there are no more."""
        found = self._rows.look(rows, last)
        sides = [name[2:] if name not in self.names else name for name in found]
        self._warn([name for name in self.names if name in sides])

    def _warn(self, names: Sequence[str]) -> None:
        new = [name for name in names if name not in self._warned]
        self._warned.update(new)
        if len(new) == 1:
            say(f"warning: {_few(new)} looks like an id, a batch number or a date; {without(new)} leaves it out")
        elif new:
            say(f"warning: {_few(new)} look like ids, batch numbers or dates; {without(new)} leaves them out")


def _few(names: Sequence[str]) -> str:
    return ", ".join(name or "''" for name in names[:SHOWN]) + (", ..." if len(names) > SHOWN else "")
