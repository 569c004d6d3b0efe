"""One step of a bucket: rows as they came in, learned or refused, and a line of output for each.

A row that has been learned before, or that comes too late, is dropped and counted, also where it has come again in
a worse state: it has no line of its own, for whoever keeps lines by key and seq must not lose the good one.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import numpy as np

from .bucket import Bucket, Learned
from .options import FleetOptions
from .rows import NO_SEQ, Reasons, Rows, check_lengths, check_scale, usual_length

Line = tuple[Any, int | None, str]
"""Key, seq and reason."""


class Outcome(NamedTuple):
    """What has become of some rows."""

    blob: bytes | None
    """The bucket after them; None if they have changed nothing."""
    t: int
    learned: Learned
    refused: list[Line]
    dropped: int
    """How many rows came again, or too late."""


def learn(options: FleetOptions, blob: bytes | None, rows: Rows, name: str = "bucket") -> Outcome:
    """Learn rows by the trackers of a bucket; ``name`` is what errors call it.

    >>> from ocelad.spark.rows import Ragged, check
    >>> x, z, y = Ragged.of([[0.0, 1.0], [0.0]]), Ragged.of([[1.0, 1.0], [0.5]]), np.array([1.0, 1.0])
    >>> u, reasons = check(np.zeros(2, bool), np.zeros(2, bool), x, z, y)
    >>> rows = Rows(["ann"], np.array([0, 0]), np.array([1, 2]), u, y, reasons)
    >>> done = learn(FleetOptions(n_features=2), None, rows)
    >>> done.t, done.learned.seq, done.refused
    (1, array([1]), [('ann', 2, 'x and z have 1 numbers, expected 2')])
    """
    bucket, reasons = Bucket(options, blob, name), rows.reasons.copy()
    n = bucket.n_features or usual_length(rows.u, reasons)
    if n is not None:
        check_lengths(rows.u, reasons, n)
    good = np.flatnonzero(reasons == None)  # noqa: E711 element by element
    u = rows.u.dense(good, n) if n is not None else np.zeros((0, 0))
    if len(good):
        reasons[good] = check_scale(u, options.begun(u.shape[1])._scale)
        kept = reasons[good] == None  # noqa: E711
        good, u = good[kept], u[kept]
    bad, late = _refused(bucket, rows, reasons)
    learned = bucket.learn(rows.keys, rows.of[good], rows.seq[good], u, rows.y[good])
    better = set(zip(learned.keys, learned.seq.tolist(), strict=True)) if bad else set()
    refused = [line for line in bad if line[:2] not in better]
    late += sum(count for line, count in bad.items() if line[:2] in better)
    blob = bucket.write() if len(learned.seq) else None
    return Outcome(blob, bucket.t, learned, refused, dropped=len(good) - len(learned.seq) + late)


def _refused(bucket: Bucket, rows: Rows, reasons: Reasons) -> tuple[Counter[Line], int]:
    """Rows that have a reason and have not been learned before, and how often each is there, in an order that does
    not depend on that of the rows; and how many have been learned."""
    lines, late = Counter[Line](), 0
    for row in np.flatnonzero(reasons != None).tolist():  # noqa: E711
        key, seq, reason = rows.key(row), None if reasons[row] == NO_SEQ else int(rows.seq[row]), reasons[row]
        if seq is None or not bucket.has_learned(key, seq):
            lines[key, seq, reason] += 1
        else:
            late += 1
    return Counter({line: lines[line] for line in sorted(lines, key=repr)}), late
