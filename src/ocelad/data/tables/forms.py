"""What the rows of a table say: comparisons of two points, of two items, or labelled points to be compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ...learner import Array
from ...metric.partners import Strategy, check, partners
from .cells import Columns, matching
from .rows import BadRow, Row, Rows


@dataclass(frozen=True, eq=False)
class Block:
    """Comparisons, in order: pairs of shape (m, 2, n), labels, and the lines they come from.

    A labelled row is compared with earlier rows: those are the ``others``, 0 where there is none.
    """

    pairs: Array
    y: np.ndarray[Any, np.dtype[np.int64]]
    lines: list[int]
    others: list[int]


class Form(Protocol):
    """How rows become comparisons of points with these features."""

    @property
    def features(self) -> Sequence[str]: ...

    def parse(self, row: Row, /) -> Any:
        """What a row says, or a `BadRow`."""

    def block(self, parsed: Sequence[Any], /) -> Block: ...

    def state(self) -> Any:
        """What is remembered of earlier rows, in words of JSON."""

    def restore(self, state: Any, /) -> None: ...


@dataclass(frozen=True)
class Pairs:
    """A comparison of two points: columns x_* and z_*, and y unless only distances are asked for."""

    features: tuple[str, ...]
    points: Columns
    y: Columns | None

    def parse(self, row: Row) -> tuple[int, list[float], int]:
        return row.line, self.points.numbers(row), 0 if self.y is None else self.y.sign(row)

    def block(self, parsed: Sequence[tuple[int, list[float], int]]) -> Block:
        lines, numbers, y = zip(*parsed, strict=True)
        return Block(np.array(numbers).reshape(len(y), 2, -1), np.array(y), list(lines), [0] * len(y))

    def state(self) -> None:
        return None

    def restore(self, state: Any) -> None:
        pass


@dataclass(frozen=True)
class ByItems:
    """A comparison of two items by their names: columns id_a and id_b, and y unless not asked for."""

    features: tuple[str, ...]
    items: Mapping[str, list[float]]
    ids: Columns
    y: Columns | None

    def parse(self, row: Row) -> tuple[int, list[float], int]:
        names = self.ids.words(row)
        for column, name in zip(self.ids.names, names, strict=True):
            if name not in self.items:
                raise BadRow(row, f"there is no item {name!r}", column)
        a, b = names
        return row.line, self.items[a] + self.items[b], 0 if self.y is None else self.y.sign(row)

    block = Pairs.block
    state = Pairs.state
    restore = Pairs.restore


class Labelled:
    """Labelled points: each is compared with earlier ones, similar iff their labels are the same.

    Parameters
    ----------
    points, label, within
        The columns; rows are compared only if they have the same cells in ``within``.
    strategy, memory, count, seed
        With which of the last ``memory`` rows, how many, and the seed of the draw: see
        `SupervisedMetricTracker`.
    """

    def __init__(
        self,
        points: Columns,
        label: Columns,
        within: Columns,
        strategy: Strategy = "balanced",
        memory: int = 128,
        count: int = 2,
        seed: int = 0,
    ) -> None:
        self.features, self.points, self.label, self.within = points.names, points, label, within
        self.strategy, self.memory, self.count = check(strategy), memory, count
        self._random, self._number = np.random.RandomState(seed), 0
        self._recent: list[tuple[int, list[float], str, list[str]]] = []

    def parse(self, row: Row) -> tuple[int, list[float], str, list[str]]:
        return row.line, self.points.numbers(row), self.label.words(row)[0], self.within.words(row)

    def block(self, parsed: Sequence[tuple[int, list[float], str, list[str]]]) -> Block:
        seen, both = len(self._recent), [*self._recent, *parsed]
        lines, numbers, names, groups = zip(*both, strict=True)
        labels = np.unique(names, return_inverse=True)[1]
        within = np.unique(["\x1f".join(group) for group in groups], return_inverse=True)[1]
        new, old = partners(
            labels, seen, self.strategy, self.memory, self.count, self._random, self._number, within
        )
        self._recent, self._number = both[-self.memory :], self._number + len(parsed)
        points = np.array(numbers)
        return Block(
            np.stack([points[new], points[old]], axis=1),
            np.where(labels[new] == labels[old], 1, -1),
            [lines[k] for k in new],
            [lines[k] for k in old],
        )

    def state(self) -> Any:
        kind, keys, *rest = self._random.get_state(legacy=True)
        return {"random": [kind, keys.tolist(), *rest], "number": self._number, "recent": self._recent}

    def restore(self, state: Any) -> None:
        kind, keys, *rest = state["random"]
        self._random.set_state((kind, np.array(keys, dtype=np.uint32), *rest))
        self._number = int(state["number"])
        self._recent = [(line, numbers, label, within) for line, numbers, label, within in state["recent"]]


def form_of(
    header: Sequence[str], known: Mapping[str, list[float]] | None = None, features: Sequence[str] = (), y: bool = True
) -> Pairs | ByItems:
    """How the columns of a table of comparisons are meant; ``known`` are items, ``features`` those that are theirs.

    >>> form_of(["x_a", "x_b", "z_b", "z_a", "y"]).features
    ('a', 'b')
    """
    outcome = Columns.of(header, ["y"]) if "y" in header else None
    if y and outcome is None:
        raise ValueError(f"there is no column y: there are {', '.join(header)}")
    if {"id_a", "id_b"} <= set(header):
        if known is None:
            raise ValueError("columns id_a and id_b need the items' table: --items FILE")
        return ByItems(tuple(features), known, Columns.of(header, ["id_a", "id_b"]), outcome)
    sides = [[name[2:] for name in header if name.startswith(side)] for side in ("x_", "z_")]
    if not sides[0] or set(sides[0]) != set(sides[1]):
        odd = sorted(set(sides[0]) ^ set(sides[1]))
        raise ValueError(
            f"column {'z_' if odd[0] in sides[0] else 'x_'}{odd[0]} is missing"
            if odd
            else "comparisons need columns x_*, z_* and y, or id_a, id_b and y; for labelled rows, say --label COLUMN"
        )
    both = [f"{side}{name}" for side in ("x_", "z_") for name in sides[0]]
    return Pairs(tuple(sides[0]), Columns.of(header, both), outcome)


def items(rows: Rows, features: Iterable[str] = ()) -> tuple[list[str], dict[str, list[float]]]:
    """The features and the points of a table of items, by their column ``id``."""
    if "id" not in rows.header:
        raise ValueError(f"{rows.name}: items need a column id: there are {', '.join(rows.header)}")
    names = matching(rows.header, list(features) or ["*"])
    points = Columns.of(rows.header, [name for name in names if name != "id"])
    key, found = Columns.of(rows.header, ["id"]), {}
    for piece in rows.pieces():
        for row in piece:
            try:
                if row.problem is not None:
                    raise BadRow(row, row.problem)
                name = key.words(row)[0]
                if name in found:
                    raise BadRow(row, f"item {name!r} is there twice", "id")
                found[name] = points.numbers(row)
            except BadRow as error:
                raise ValueError(f"{rows.name}: {error}") from None
            rows.used.add(row.raw, row.lines)
    return list(points.names), found
