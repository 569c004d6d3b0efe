"""The dyadic schedule against its definition, and Lemma 5."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocelad.intervals import active, length, opened, opening, partition


def all_intervals(horizon, base):
    """The set I of the paper, up to a horizon, by its definition."""
    return {
        (i * size, (i + 1) * size - 1)
        for j in range(horizon.bit_length())
        for size in [base * 2**j]
        for i in range(1, horizon // size + 1)
    }


@pytest.mark.parametrize("base", [1, 3, 8])
def test_schedule_is_the_set_of_the_paper(base):
    horizon = 300
    intervals = all_intervals(horizon, base)
    for t in range(base, horizon):
        now = sorted(s - q + 1 for q, s in intervals if q <= t <= s)
        assert now == [length(level, base) for level in range(active(t, base))]
        starting = sorted(s - q + 1 for q, s in intervals if q == t)
        assert starting == [length(level, base) for level in range(opening(t, base))]
        assert opened(t, base) == sum(q <= t for q, s in intervals)


def test_nothing_opens_before_the_clock_starts():
    assert [opening(t, base=8) for t in range(8)] == [0] * 8
    assert active(0) == 0


@given(st.integers(1, 10**6), st.integers(0, 10**6), st.sampled_from([1, 2, 8]))
def test_lemma_5(first, more, base):
    first, last = first * base, (first + more + 1) * base - 1
    pieces = partition(first, last, base)
    assert pieces[0][0] == first
    assert pieces[-1][1] == last
    assert all(s + 1 == q for (_, s), (q, _) in pairwise(pieces))
    sizes = [s - q + 1 for q, s in pieces]
    for (q, _), size in zip(pieces, sizes, strict=True):  # each piece is in I
        assert q % size == 0
        assert q >= size
        assert size // base & (size // base - 1) == 0
    top = sizes.index(max(sizes))
    assert all(2 * a <= b for a, b in pairwise(sizes[: top + 1]))
    assert all(2 * b <= a for a, b in pairwise(sizes[top + 1 :]))


def test_partition_refuses_what_is_off_the_grid():
    with pytest.raises(ValueError, match="whole periods of 8"):
        partition(9, 31, base=8)
