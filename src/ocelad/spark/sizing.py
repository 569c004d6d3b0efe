"""How many cores, how much state and how much checkpoint a fleet on Spark needs.

    CPU = c x batches + a x keys touched + b x comparisons,
    keys touched in a batch of m comparisons = K (1 - exp(-m / K)).

a, b and c are measured (`benchmarks/spark.py`); the size of a state is that of a tracker that has learned so much.
A batch writes every bucket that it touches, all of it, as ASCII, eight characters for seven bytes: the volume of
checkpoints is states times batches.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .. import validation as validate
from ..state import pack
from ..tracker import MetricTracker

DAY = 86_400.0
BUCKET = 4e6
"""Bytes that a bucket should have: from 1 to 10 MB."""

INDEX = 60
"""Bytes of a bucket's index for each key."""


@dataclass(frozen=True)
class Cost:
    """CPU seconds on Spark of a key that is touched, and of a comparison."""

    key: float
    comparison: float


COSTS = {"rice": Cost(0.20e-3, 15e-6), "pool": Cost(0.55e-3, 28e-6)}
"""At n = 25, of RICE alone and, roughly, of a pool that replays 256; see docs/spark.md."""

CORE = 2.7e9
"""Bytes of memory for each core: Java's, two workers' and those of a batch; see docs/spark.md."""

BATCH = 1.1
"""CPU seconds of a batch with next to nothing in it."""

ASCII = 8 / 7
"""Characters for each byte of a state."""


@dataclass(frozen=True)
class Size:
    """What a fleet needs."""

    cores: float
    """Busy on average; have twice as many."""
    memory: float
    """Bytes of all processes on twice as many cores."""
    state: float
    """Bytes of all trackers."""
    key: float
    """Bytes of one."""
    checkpoint: float
    """Bytes a day."""
    buckets: int


def size(
    keys: float, per_day: float, n: int, *, memory: int | None = None, trigger: float = 3600.0, t: int = 1000
) -> Size:
    """What a fleet of so many keys and comparisons a day needs.

    Parameters
    ----------
    keys, per_day
        How many keys there are, and comparisons of all of them.
    n
        The number of features.
    memory
        How many comparisons each tracker can replay; None for RICE alone.
    trigger
        Seconds between batches.
    t
        How many comparisons a key has learned: states grow with its logarithm.

    Examples
    --------
    >>> fleet = size(1e6, 1e9, 25)
    >>> fleet.buckets, round(fleet.state / 1e9), round(fleet.checkpoint / 1e12, 1)
    (8192, 20, 0.5)
    """
    for name, value in (("keys", keys), ("per_day", per_day), ("trigger", trigger)):
        validate.number(value, name, positive=True)
    key = ASCII * (state_bytes(n, memory, validate.integer(t, "t")) + INDEX)
    batches = DAY / trigger
    touched = keys * -math.expm1(-per_day / batches / keys)
    cost = COSTS["rice" if memory is None else "pool"]
    cores = (BATCH * batches + cost.key * touched * batches + cost.comparison * per_day) / DAY
    buckets = 2 ** max(4, math.ceil(math.log2(max(1.0, keys * key / BUCKET))))
    written = min(1.0, -math.expm1(-touched / buckets))  # the share of buckets with a key that is touched
    return Size(cores, CORE * math.ceil(2.0 * cores), keys * key, key, keys * key * written * batches, buckets)


def state_bytes(n: int, memory: int | None = None, t: int = 1000) -> int:
    """Bytes of a tracker that has learned t comparisons, in which three features matter.

    >>> 2000 < state_bytes(10, t=1000) < state_bytes(10, memory=256, t=1000)
    True
    """
    tracker = MetricTracker.rice() if memory is None else MetricTracker(memory=memory)
    rng = np.random.default_rng(0)
    pairs = rng.normal(size=(t, 2, n))
    square = np.square(pairs[:, 0, :3] - pairs[:, 1, :3]).sum(axis=1)
    return len(pack(tracker.partial_fit(pairs, np.where(square < np.median(square), 1, -1))))
