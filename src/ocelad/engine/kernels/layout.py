"""The memory layout: two flat buffers hold the state of a stack of learners, two more are scratch.

One function lays the arrays out, in Python and in compiled code alike. In compiled code they are raw arrays,
for counting references to every slice would take as long as a small step.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ...compiled import kernel
from ...protocols import Array, Integers
from ...raw_array import view

# the first entries of the integers: sizes; the clock; comparisons that dictionaries share, and their features
N, SLOTS, CAPACITY, HEIGHT, TIME, LEVELS, RECENT, SEEN, HEADER = range(9)

# entries of ``options``
STEP, STRENGTH, THRESHOLD_STEP, CAPPED, BASE, CONTINUES, LOSS, MAX_RANK, RULE, RATE, SHARE, RESET = range(12)
OPTIONS = 12

# codes of margin losses and combiners; without a rule, Python updates the weights
HINGE, SQUARED_HINGE, LOGISTIC = range(3)
FIXED_SHARE, OCELAD_MEAN, OCELAD_MIXTURE, NO_RULE = range(4)

# columns of ``combiner``, as the fields of `ocelad.weights` have it
LOG_WEIGHT, SPAN, ENDLESS, FIELDS = range(4)

# rows of ``features``: those that are in a dictionary, one after the other; whether each is
LIST, MARK = range(2)

RECENT_CAPACITY = 64  # recent comparisons that all dictionaries share


class Stack(NamedTuple):
    """The learners: each has a slot, and each level a learner (``order``). Slot 0 holds the origin.

    M = sigma (I - Q Q') + Q diag(eigenvalues) Q', Q being the first columns of ``columns``; or, where there are
    dictionaries, those and recent comparisons, combined by ``factors``.
    """

    columns: Array  # slot, feature, column
    factors: Array  # slot, row, column
    eigenvalues: Array  # slot, column
    sigma: Array
    mu: Array
    discarded: Array  # what was cut off to stay within max_rank
    debt: Array  # the work that compressing the dictionary would have saved
    losses: Array  # by level, as the next two
    lengths: Array
    combiner: Array
    recent: Array  # feature, comparison: scaled to length one
    options: Array
    order: Integers  # the slot of each level
    rank: Integers
    own: Integers  # columns of its own that a dictionary has
    since: Integers  # the first recent comparison that it has too
    touched: Integers  # features that it has
    features: Integers  # slot, LIST or MARK; the last are those of the recent comparisons
    header: Integers


def stack_sizes(n: int, slots: int, capacity: int, height: int) -> tuple[int, int]:
    """The lengths of the two buffers of a stack."""
    rows = n if height > 0 else 0
    floats = slots * (n * capacity + height * capacity + capacity + 6 + FIELDS) + rows * RECENT_CAPACITY + OPTIONS
    return floats, HEADER + 5 * slots + (slots + 1) * 2 * rows


def lay_out(floats: Any, integers: Any) -> Stack:
    """The arrays of a stack."""
    n, slots, capacity, height = integers[N], integers[SLOTS], integers[CAPACITY], integers[HEIGHT]
    rows = n if height > 0 else 0
    tall, wide = slots * n * capacity, slots * height * capacity
    at = tall + wide + slots * capacity
    lists = at + slots * (6 + FIELDS)
    columns, factors = view(floats, 0, (slots, n, capacity)), view(floats, tall, (slots, height, capacity))
    s, of = view(floats, tall + wide, (slots, capacity)), view(floats, at, (6, slots))
    combiner, recent = view(floats, at + 6 * slots, (slots, FIELDS)), view(floats, lists, (rows, RECENT_CAPACITY))
    options, header = view(floats, lists + rows * RECENT_CAPACITY, (OPTIONS,)), view(integers, 0, (HEADER,))
    has, features = view(integers, HEADER, (5, slots)), view(integers, HEADER + 5 * slots, (slots + 1, 2, rows))
    numbers, indices = (of[0], of[1], of[2], of[3], of[4], of[5]), (has[0], has[1], has[2], has[3], has[4])
    return Stack(columns, factors, s, *numbers, combiner, recent, options, *indices, features, header)


stack_of = kernel(lay_out)
