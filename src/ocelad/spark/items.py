"""Comparisons of items that are known by ids: the points come from a table of items."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def join_items(
    events: DataFrame, items: DataFrame, *, a: str = "a", b: str = "b", id: str = "id", point: str = "point"
) -> DataFrame:
    """Comparisons with columns x and z, for `track`, `backfill` or `score`, in place of the ids of two items.

    An id that is not among the items leaves a null, and `track` puts the row aside with that reason.

    Parameters
    ----------
    events
        Comparisons, streaming or not.
    items
        A DataFrame that is not streaming, with a row for each item. Spark lists its files when the query starts:
        start it again to find new ones.
    a, b
        The columns of ids in ``events``.
    id, point
        The columns of ids, no two of them the same, and of points, arrays of numbers, in ``items``.

    Examples
    --------
    >>> items = spark.createDataFrame([("p", [0.0, 1.0]), ("q", [1.0, 1.0])], ["id", "point"])  # doctest: +SKIP
    >>> asked = spark.createDataFrame([("ann", 1, "p", "q", -1)], ["key", "seq", "a", "b", "y"])  # doctest: +SKIP
    >>> join_items(asked, items).first().asDict()  # doctest: +SKIP
    {'key': 'ann', 'seq': 1, 'y': -1, 'x': [0.0, 1.0], 'z': [1.0, 1.0]}
    """
    if taken := {"x", "z"} & set(events.columns):
        raise ValueError(f"events must have no column {min(taken)!r}: it is to have the points of items")
    for own, other in ((a, "x"), (b, "z")):
        table = items.select(F.col(id).alias(own), F.col(point).alias(other))
        events = events.join(table, own, "left")
    return events.drop(a, b)
