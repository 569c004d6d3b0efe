"""The comparisons of ``ocelad spark-demo``: users who change their minds, each at times of their own.

Comparison t of user k says "similar" if its points differ by less than 1 in the feature that matters to k then,

    j = (jumps of k until t) mod N,        jumps at FIRST + (STRIDE k mod PERIOD), and every PERIOD from there.

A file has the next ``ROWS`` comparisons of each user. Its number determines what is in it, so that a run that was
killed goes on with the file that would have come next.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..files import atomic_write
from ..protocols import Integers

N, ROWS = 4, 40

FIRST = 200
"""Comparisons before anybody jumps: an alarm has to know first what is usual."""

PERIOD, STRIDE = 400, 157  # without a common divisor, so that jumps are spread evenly


def latest_jump(user: Integers, t: Integers) -> Integers:
    """The comparison with which the notion of a user changed, at t or before; -1 if it has not yet.

    >>> latest_jump(np.array([0, 0, 0, 1]), np.array([199, 200, 700, 700])).tolist()
    [-1, 200, 600, 357]
    """
    first = _first_jump(user)
    return np.where(t < first, -1, t - (t - first) % PERIOD)


def _first_jump(user: Integers) -> Integers:
    return FIRST + STRIDE * user % PERIOD


def comparisons(number: int, users: int) -> dict[str, NDArray[Any]]:
    """What is in a file: user, seq, which counts the comparisons of a user, x, z and y."""
    rng = np.random.default_rng(number)
    user, seq = np.tile(np.arange(users), ROWS), np.repeat(np.arange(ROWS) + number * ROWS, users)
    x, z = rng.normal(size=(2, len(user), N))
    matters = np.maximum(0, (seq - _first_jump(user)) // PERIOD + 1) % N
    apart = np.abs(x - z)[np.arange(len(user)), matters]
    return {"user": user, "seq": seq, "x": x, "z": z, "y": np.where(apart < 1, 1, -1)}


def write_file(folder: Path, number: int, users: int) -> None:
    """Write a file, which appears whole or not at all: Spark takes what it sees, and takes it once."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = comparisons(number, users)
    key = [f"user {user}" for user in rows.pop("user").tolist()]
    table = pa.table({"key": key, **{name: list(rows[name]) for name in rows}})
    with atomic_write(folder / f"{number:06}.parquet") as file:
        pq.write_table(table, file)
