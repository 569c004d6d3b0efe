"""Two items side by side, so that one sees at a glance where they differ."""

from __future__ import annotations

from textwrap import wrap

import numpy as np

from ..label import Items

LINES = 5
"""The longest cell that is shown whole, in lines."""

BAR = 8
"""The longest bar: a # for every half standard deviation between two numbers."""


class SideBySide:
    """Two items of a table as text.

    Parameters
    ----------
    items
        The items.
    every
        Show all columns; else, where there are too many, the words and those numbers that differ most.
    """

    def __init__(self, items: Items, every: bool = False) -> None:
        self.items, self.every = items, every
        self._deviation = items.points.std(axis=0)

    def text(self, i: int, j: int, width: int = 80, height: int = 24) -> str:
        """Items number i and j, a line per column: its name, both cells, and how far they are apart."""
        items = self.items
        apart = np.abs(items.points[i] - items.points[j])
        steps = 2 * apart / np.where(self._deviation > 0, self._deviation, np.inf)
        number = dict(zip(items.features, steps.tolist(), strict=True))
        names = self._chosen(number, max(5, height - 8))
        label = min(24, max([4, *map(len, names)]))
        room = max(10, (min(width, 120) - label - BAR - 7) // 2)
        line = "" if items.named else "line "
        lines = [self._line("", label, line + items.ids[i], line + items.ids[j], room, "")]
        for name in names:
            place = items.shown.index(name)
            left, right = items.cells[i][place], items.cells[j][place]
            mark = "" if left == right else "*"
            if name in number:
                mark = "#" * min(BAR, round(number[name]))
            lines.append(self._line(name, label, left, right, room, mark))
        hidden = len(items.shown) - len(names)
        if hidden:
            lines.append(f"  ... and {hidden} columns that differ less; --show chooses")
        return "\n".join(lines)

    def _chosen(self, number: dict[str, float], most: int) -> list[str]:
        """The columns to show, in the table's order."""
        shown = self.items.shown
        if self.every or len(shown) <= most:
            return list(shown)
        numbers = sorted((name for name in shown if name in number), key=lambda name: -number[name])
        words = len(shown) - len(numbers)
        kept = {*numbers[: max(5, most - words)]}
        return [name for name in shown if name in kept or name not in number]

    def _line(self, name: str, label: int, left: str, right: str, room: int, mark: str) -> str:
        columns = [_cut(name, label), *(_folded(cell, room) for cell in (left, right)), [mark]]
        rows = max(map(len, columns))
        padded = [[*column, *[""] * (rows - len(column))] for column in columns]
        return "\n".join(
            f"  {a:<{label}}  {b:<{room}}  {c:<{room}} {d}".rstrip() for a, b, c, d in zip(*padded, strict=True)
        )


def _cut(name: str, label: int) -> list[str]:
    return [name if len(name) <= label else name[: label - 2] + ".."]


def _folded(cell: str, room: int) -> list[str]:
    lines = wrap(cell, room) or [""]
    return lines if len(lines) <= LINES else [*lines[: LINES - 1], lines[LINES - 1][: room - 4] + " ..."]
