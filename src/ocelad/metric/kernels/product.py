"""Columns turned into combinations of columns: a product of matrices, and much of the work of a step."""

from __future__ import annotations

from ...learner import Array, Integers
from .codes import WIDTH
from .eight import ROOMY, Eight, eight, fetch, load, plus, store, store_some
from .jit import apart, kernel

Sums = tuple[Eight, Eight, Eight, Eight, Eight]

MANY = 128  # so many rows are not in the cache anyway


@kernel
def _expect(Q: Array, width: int, rows: Integers, first: int, last: int) -> None:
    """Rows that are anywhere in memory, and needed next: they can be on their way meanwhile."""
    for m in range(first, last):
        for x in range(0, width, 8):
            fetch(Q, (rows[m], x))


@kernel
def _five(
    P: Array,
    rows: tuple[int, int, int, int, int],
    x: int,
    v: Eight,
    sums: Sums,
) -> Sums:
    """To the sums of five rows, what is in column x of each times v."""
    return (
        plus(sums[0], eight(P[rows[0], x]), v),
        plus(sums[1], eight(P[rows[1], x]), v),
        plus(sums[2], eight(P[rows[2], x]), v),
        plus(sums[3], eight(P[rows[3], x]), v),
        plus(sums[4], eight(P[rows[4], x]), v),
    )


@kernel
def _wide(
    P: Array,
    rows: tuple[int, int, int, int, int],
    x: int,
    V: Array,
    at: tuple[int, int, int],
    sums: tuple[Sums, Sums, Sums],
) -> tuple[Sums, Sums, Sums]:
    """The same for 24 columns."""
    panel, i, lane = at
    return (
        _five(P, rows, x, load(V, at), sums[0]),
        _five(P, rows, x, load(V, (panel, i, lane + 8)), sums[1]),
        _five(P, rows, x, load(V, (panel, i, lane + 16)), sums[2]),
    )


@kernel
def _put(out: Array, j: int, sums: Sums) -> None:
    store(out, (0, j), sums[0])
    store(out, (1, j), sums[1])
    store(out, (2, j), sums[2])
    store(out, (3, j), sums[3])
    store(out, (4, j), sums[4])


@kernel
def rotate(
    Q: Array,
    U: Array,
    rows: Integers,
    count: int,
    source: Integers,
    k: int,
    more: int,
    V: Array,
    target: Integers,
    kept: int,
    out: Array,
    some: Integers,
) -> None:
    """Columns target[j] of Q become sum_i V[i, j] times columns source[i], for j < kept. V as `vectors` leaves it.

    After k columns of Q come as many of U as ``more`` says.
    Five of the given rows and eight columns at a time, or 24.
    """
    apart()
    last, ordered, zero = count - 1, True, eight(0.0)
    none = (zero, zero, zero, zero, zero)
    for j in range(kept):
        ordered &= target[j] == j
    for m in range(0, count, 5):
        five = (
            *(rows[m], rows[min(m + 1, last)], rows[min(m + 2, last)]),
            *(rows[min(m + 3, last)], rows[min(m + 4, last)]),
        )
        if count > MANY:
            _expect(Q, k, rows, m + 5, min(m + 10, count))
            _expect(U, more and U.shape[1], rows, m + 5, min(m + 10, count))
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
                    wide = _wide(Q, five, source[i], V, (panel, i, lane), wide)
                for i in some[:present]:
                    wide = _wide(U, five, source[i], V, (panel, i, lane), wide)
                _put(out, j, wide[0])
                _put(out, j + 8, wide[1])
                _put(out, j + 16, wide[2])
                j += 24
            else:
                sums = none
                for i in range(k):
                    sums = _five(Q, five, source[i], load(V, (panel, i, lane)), sums)
                for i in some[:present]:
                    sums = _five(U, five, source[i], load(V, (panel, i, lane)), sums)
                _put(out, j, sums)
                j += 8
        for row in range(5):
            e = rows[min(m + row, last)]
            if ordered:
                for j in range(0, kept, 8):
                    store_some(Q, (e, j), load(out, (row, j)), kept - j)
            else:
                for j in range(kept):
                    Q[e, target[j]] = out[row, j]
