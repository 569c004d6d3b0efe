"""Blocks of comparisons: rows of differences, dense or sparse, with their labels and weights."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from scipy import sparse

from ..protocols import Array

BLOCK_ENTRIES = 1 << 20  # of a block of sparse rows once it is dense


def dense_blocks(rows: Any) -> Iterator[tuple[slice, Array]]:
    """Rows for the engine, in order, dense: all at once, or sparse ones in small blocks."""
    if not sparse.issparse(rows):
        yield slice(0, len(rows)), rows
        return
    step = max(1, BLOCK_ENTRIES // rows.shape[1])
    for start in range(0, rows.shape[0], step):
        part = slice(start, min(start + step, rows.shape[0]))
        yield part, rows[part].toarray()


def select(part: slice, u: Any, y: Array | None, weight: Array | None) -> tuple[Any, Array | None, Array | None]:
    """The comparisons of a slice."""
    if part == slice(0, u.shape[0]):
        return u, y, weight  # slicing sparse rows is slow
    return u[part], None if y is None else y[part], None if weight is None else weight[part]
