"""Columns turned into combinations of columns: a product of matrices, and much of the work of a step."""

from __future__ import annotations

from ...protocols import Array, Integers
from .codes import WIDTH
from .eight import ROOMY, Eight, eight, fetch, load, plus, spread, store, store_some
from .jit import apart, kernel

Rows = tuple[int, int, int, int, int]
Sums = tuple[Eight, Eight, Eight, Eight, Eight]

MANY = 128  # so many rows are not in the cache anyway
FIVE = (0, 1, 2, 3, 4)


@kernel
def _expect(Q: Array, width: int, rows: Integers, first: int, last: int) -> None:
    """Rows that are anywhere in memory, and needed next: they can be on their way meanwhile."""
    for m in range(first, last):
        for x in range(0, width, 8):
            fetch(Q, (rows[m], x))


@kernel
def _five(P: Array, rows: Rows, x: int, v: Eight, sums: Sums) -> Sums:
    """To the sums of five rows, what is in column x of each times v."""
    return (
        plus(sums[0], spread(P, (rows[0], x)), v),
        plus(sums[1], spread(P, (rows[1], x)), v),
        plus(sums[2], spread(P, (rows[2], x)), v),
        plus(sums[3], spread(P, (rows[3], x)), v),
        plus(sums[4], spread(P, (rows[4], x)), v),
    )


@kernel
def _wide(
    P: Array, rows: Rows, x: int, V: Array, at: tuple[int, int, int], sums: tuple[Sums, Sums, Sums]
) -> tuple[Sums, Sums, Sums]:
    """The same for 24 columns."""
    panel, i, lane = at
    return (
        _five(P, rows, x, load(V, at), sums[0]),
        _five(P, rows, x, load(V, (panel, i, lane + 8)), sums[1]),
        _five(P, rows, x, load(V, (panel, i, lane + 16)), sums[2]),
    )


@kernel
def _put(Q: Array, rows: Rows, j: int, sums: Sums) -> None:
    """Into columns j, ..., j + 7 of five rows, as far as there are so many."""
    if j + 8 <= Q.shape[1]:
        store(Q, (rows[0], j), sums[0])
        store(Q, (rows[1], j), sums[1])
        store(Q, (rows[2], j), sums[2])
        store(Q, (rows[3], j), sums[3])
        store(Q, (rows[4], j), sums[4])
    else:
        store_some(Q, (rows[0], j), sums[0], Q.shape[1] - j)
        store_some(Q, (rows[1], j), sums[1], Q.shape[1] - j)
        store_some(Q, (rows[2], j), sums[2], Q.shape[1] - j)
        store_some(Q, (rows[3], j), sums[3], Q.shape[1] - j)
        store_some(Q, (rows[4], j), sums[4], Q.shape[1] - j)


@kernel
def _move(q: Array, width: int, kept: int, target: Integers, before: Array, turned: Array) -> None:
    """The first columns of a row go elsewhere, and what was in columns in use is there again."""
    for j in range(kept):
        turned[j] = q[j]
    for j in range(width):
        q[j] = before[j]
    for j in range(kept):
        q[target[j]] = turned[j]


@kernel
def leave_empty(V: Array, i: int, kept: int) -> None:
    """So that columns which come after those kept become empty."""
    for j in range(kept, (kept + 7) // 8 * 8):
        V[j // WIDTH, i, j % WIDTH] = 0.0


@kernel
def rotate(
    Q: Array,
    U: Array,
    rows: Integers,
    count: int,
    width: int,
    source: Integers,
    k: int,
    more: int,
    V: Array,
    target: Integers,
    kept: int,
    copies: Array,
    some: Integers,
) -> None:
    """The first columns of Q, or ``target``, become sum_i V[i, j] times columns source[i], for j < kept.

    V as `vectors` leaves it; after k columns of Q, which are among its first, come as many of U as ``more`` says.
    Five of the given rows and eight columns at a time, or 24: columns beyond those kept too, up to a multiple of
    eight, become what V says. Where more columns are in use (``width``), these stay, and others go to ``target``.
    """
    apart()
    last, zero = count - 1, eight(0.0)
    none = (zero, zero, zero, zero, zero)
    for m in range(0, count, 5):
        five = (
            *(rows[m], rows[min(m + 1, last)], rows[min(m + 2, last)]),
            *(rows[min(m + 3, last)], rows[min(m + 4, last)]),
        )
        if count > MANY:
            _expect(Q, k, rows, m + 5, min(m + 10, count))
            _expect(U, more and U.shape[1], rows, m + 5, min(m + 10, count))
        for row in range(5):
            e = rows[min(m + row, last)]
            for i in range(0, max(width, k), 8):
                x = min(i, Q.shape[1] - 8)
                store(copies, (row, x), load(Q, (e, x)))
        present = 0
        for i in range(k, k + more):  # of most features, sparse comparisons have nothing
            x = source[i]
            size = abs(U[five[0], x]) + abs(U[five[1], x]) + abs(U[five[2], x]) + abs(U[five[3], x])
            if size + abs(U[five[4], x]) > 0.0:
                some[present] = i
                present += 1
        j = 0
        while j < kept:
            panel, lane = j // WIDTH, j % WIDTH
            if ROOMY and kept - j > 16 and lane <= WIDTH - 24:
                wide = (none, none, none)
                for i in range(k):
                    wide = _wide(copies, FIVE, source[i], V, (panel, i, lane), wide)
                for x in range(present):
                    wide = _wide(U, five, source[some[x]], V, (panel, some[x], lane), wide)
                _put(Q, five, j, wide[0])
                _put(Q, five, j + 8, wide[1])
                _put(Q, five, j + 16, wide[2])
                j += 24
            else:
                sums = none
                for i in range(k):
                    sums = _five(copies, FIVE, source[i], load(V, (panel, i, lane)), sums)
                for x in range(present):
                    sums = _five(U, five, source[some[x]], load(V, (panel, some[x], lane)), sums)
                _put(Q, five, j, sums)
                j += 8
        if kept < width:
            for row in range(min(5, count - m)):
                _move(Q[rows[m + row]], width, kept, target, copies[row], copies[5])
