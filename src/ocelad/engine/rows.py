"""Rows of differences, dense or sparse, for learners that need them dense."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from scipy import sparse

from ..protocols import Array

DENSE = 1 << 20  # numbers that a block of sparse rows may have once it is dense


def dense_blocks(rows: Any) -> Iterator[tuple[slice, Array]]:
    """Rows for the engine, in order, dense: all at once, or sparse ones in small blocks."""
    if not sparse.issparse(rows):
        yield slice(0, len(rows)), rows
        return
    step = max(1, DENSE // rows.shape[1])
    for start in range(0, rows.shape[0], step):
        part = slice(start, min(start + step, rows.shape[0]))
        yield part, rows[part].toarray()
