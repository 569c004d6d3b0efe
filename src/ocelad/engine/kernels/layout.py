"""The memory layout: three flat buffers hold the state of a pool of experts, others are scratch.

One function lays the arrays out, in Python and in compiled code alike. In compiled code they are raw arrays,
for counting references to every slice would take as long as a small step.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ...compiled import kernel
from ...platt import PARAMETERS
from ...protocols import Array, Integers
from ...raw_array import view

# the first entries of the integers: sizes, of which the last three are the number of feature maps, and of each the
# features and the experts; the clock; comparisons that dictionaries share, and their features; comparisons that
# replayed experts have been given
N, SLOTS, CAPACITY, HEIGHT, REPLAYED, MEMORY, FIXED, MAPS, MAPPED, PER_MAP, TIME = range(11)
LEVELS, RECENT, SEEN, STORED, HEADER = range(11, 16)
SIZES = TIME  # that many of them

# entries of ``options``
STEP, STRENGTH, THRESHOLD_STEP, CAPPED, BASE, CONTINUES, LOSS, MAX_RANK, RULE, RATE, SHARE, RESET = range(12)
BETWEEN, OPTIONS = range(12, 14)

# codes of margin losses and combiners; without a rule, Python updates the weights
HINGE, SQUARED_HINGE, LOGISTIC = range(3)
FIXED_SHARE, OCELAD_MEAN, OCELAD_MIXTURE, GROUPED_SHARE, NO_RULE = range(5)

# columns of ``combiner``, as the fields of `ocelad.weights` have it
LOG_WEIGHT, SPAN, ENDLESS, FIELDS = range(4)

# rows of ``features``: those that are in a dictionary, one after the other; whether each is
LIST, MARK = range(2)

RECENT_CAPACITY = 64  # recent comparisons that all dictionaries share

# columns of ``settings`` and ``numbers`` of a replayed expert, and the rank of its metric
WINDOW, ANEW, PRIOR, FLOOR, SETTINGS = range(5)
B, AVERAGE_B, MOMENT_B, SQUARE_B, SQUARE_L, STEPS, START, EXCESS, ZERO, NUMBERS = range(10)
RANK = 4

# rows of ``calibration``: of the mixture's margin and probability, of the Euclidean distance, then of each level
MARGIN, PROBABILITY, EUCLID, LEVEL = range(4)


class Stack(NamedTuple):
    """The experts: those that replay windows, the Euclidean distance, if there are such, then the levels of RICE.
    Each level has a learner (``order``), and each learner a slot. Slot 0 holds the origin.

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
    lengths: Array  # by level
    losses: Array  # by expert, as the next
    combiner: Array
    calibration: Array  # row, parameter
    numbers: Array  # replayed expert, number
    settings: Array  # replayed expert, setting
    recent: Array  # feature, comparison: scaled to length one
    options: Array
    order: Integers  # the slot of each level
    rank: Integers
    own: Integers  # columns of its own that a dictionary has
    since: Integers  # the first recent comparison that it has too
    touched: Integers  # features that it has
    features: Integers  # slot, LIST or MARK; the last are those of the recent comparisons
    header: Integers
    L: Array  # replayed expert, row, feature of those that it is shown: the given ones, or those of a map
    average: Array
    moment: Array  # of Adam, the first; the second is one number for all of L, and one for b
    ring: Array  # comparison, feature, given ones and then those of each map: those that are replayed
    labels: Array  # of each, y times its weight


def stack_sizes(
    n: int,
    slots: int,
    capacity: int,
    height: int,
    replayed: int,
    memory: int,
    fixed: int,
    maps: int,
    mapped: int,
    _per_map: int,
) -> tuple[int, int, int]:
    """The lengths of the three buffers of a stack: floats, integers, and floats of single precision."""
    rows, experts = n if height > 0 else 0, fixed + slots
    floats = slots * (n * capacity + height * capacity + capacity + 5) + rows * RECENT_CAPACITY + OPTIONS
    floats += experts * (1 + FIELDS) + (LEVEL + slots) * PARAMETERS + replayed * (NUMBERS + SETTINGS)
    integers = HEADER + 5 * slots + (slots + 1) * 2 * rows
    return floats, integers, 3 * replayed * RANK * max(n, mapped) + memory * (n + maps * mapped + 1)


def lay_out(floats: Any, integers: Any, singles: Any) -> Stack:
    """The arrays of a stack."""
    n, slots, capacity, height = integers[N], integers[SLOTS], integers[CAPACITY], integers[HEIGHT]
    replayed, memory, experts = integers[REPLAYED], integers[MEMORY], integers[FIXED] + slots
    rows, tall, wide = n if height > 0 else 0, slots * n * capacity, slots * height * capacity
    columns, factors = view(floats, 0, (slots, n, capacity)), view(floats, tall, (slots, height, capacity))
    at = tall + wide
    eigenvalues, of = view(floats, at, (slots, capacity)), view(floats, at + slots * capacity, (5, slots))
    at += slots * (capacity + 5)
    losses, combiner = view(floats, at, (experts,)), view(floats, at + experts, (experts, FIELDS))
    at += experts * (1 + FIELDS)
    calibration = view(floats, at, (LEVEL + slots, PARAMETERS))
    at += (LEVEL + slots) * PARAMETERS
    numbers, settings = (
        view(floats, at, (replayed, NUMBERS)),
        view(floats, at + replayed * NUMBERS, (replayed, SETTINGS)),
    )
    at += replayed * (NUMBERS + SETTINGS)
    recent, options = (
        view(floats, at, (rows, RECENT_CAPACITY)),
        view(floats, at + rows * RECENT_CAPACITY, (OPTIONS,)),
    )
    has, features = view(integers, HEADER, (5, slots)), view(integers, HEADER + 5 * slots, (slots + 1, 2, rows))
    header, long, width = (
        view(integers, 0, (HEADER,)),
        max(n, integers[MAPPED]),
        n + integers[MAPS] * integers[MAPPED],
    )
    shape, size = (replayed, RANK, long), replayed * RANK * long
    L, average = view(singles, 0, shape), view(singles, size, shape)
    moment, ring = view(singles, 2 * size, shape), view(singles, 3 * size, (memory, width))
    labels = view(singles, 3 * size + memory * width, (memory,))
    by_slot, by_level = (of[0], of[1], of[2], of[3], of[4]), (has[0], has[1], has[2], has[3], has[4])
    by_expert, kept = (losses, combiner, calibration, numbers, settings), (L, average, moment, ring, labels)
    return Stack(
        columns, factors, eigenvalues, *by_slot, *by_expert, recent, options, *by_level, features, header, *kept
    )


stack_of = kernel(lay_out)
