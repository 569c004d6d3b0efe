"""Where the arrays of a stack are: what Python allocates, kernels find by address."""

from __future__ import annotations

from ...learner import Array, Integers
from .codes import (
    AT_E,
    AT_F,
    AT_FEATURES,
    AT_G,
    AT_INDEX,
    AT_LANE,
    AT_LOSSES,
    AT_META,
    AT_OPTIONS,
    AT_OUT,
    AT_S,
    AT_SCALARS,
    AT_STATE,
    AT_V,
    AT_VEC,
    AT_Z,
    FIELDS,
    HEIGHT,
    INDICES,
    LANES,
    LONG,
    META,
    OPTIONS,
    PANELS,
    ROOM,
    ROWS,
    SCALARS,
    SLOTS,
    VECTORS,
    WIDTH,
)
from .jit import array_at, floats_at, integers_at, kernel

Stack = tuple[Array, Array, Array, Array, Integers, Array, Array, Array, Integers]
Scratch = tuple[Array, Array, Array, Array, Array, Array, Integers]


@kernel
def arrays(where: Integers) -> tuple[Stack, Scratch]:
    """The arrays of a stack, by their addresses."""
    slots, rows, room, height = where[SLOTS], where[ROWS], where[ROOM], where[HEIGHT]
    panels, long = where[PANELS], where[LONG]
    tall = max(room, height)
    stack = (
        array_at(floats_at(where[AT_E]), (slots, rows, tall)),
        array_at(floats_at(where[AT_F]), (slots, height, room if height > 0 else 0)),
        array_at(floats_at(where[AT_S]), (slots, room)),
        array_at(floats_at(where[AT_SCALARS]), (slots, SCALARS)),
        array_at(integers_at(where[AT_META]), (META, slots)),
        array_at(floats_at(where[AT_LOSSES]), (slots,)),
        array_at(floats_at(where[AT_STATE]), (slots, FIELDS)),
        array_at(floats_at(where[AT_OPTIONS]), (OPTIONS,)),
        array_at(integers_at(where[AT_FEATURES]), (slots, 2, rows if height > 0 else 0)),
    )
    scratch = (
        array_at(floats_at(where[AT_VEC]), (VECTORS, long)),
        array_at(floats_at(where[AT_Z]), (slots, room + 8)),
        array_at(floats_at(where[AT_G]), (height + 8,)),
        array_at(floats_at(where[AT_LANE]), (LANES,)),
        array_at(floats_at(where[AT_V]), (panels, tall + 4, min(WIDTH, room))),
        array_at(floats_at(where[AT_OUT]), (panels, 5 * WIDTH)),
        array_at(integers_at(where[AT_INDEX]), (INDICES, long)),
    )
    return stack, scratch
