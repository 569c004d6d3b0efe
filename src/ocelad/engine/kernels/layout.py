"""Where the arrays of a stack are: what Python allocates, kernels find by address."""

from __future__ import annotations

from ...protocols import Array, Integers
from .codes import (
    AT_A,
    AT_COPIES,
    AT_E,
    AT_F,
    AT_FEATURES,
    AT_G,
    AT_INDEX,
    AT_L,
    AT_LANE,
    AT_LOSSES,
    AT_META,
    AT_OPTIONS,
    AT_S,
    AT_SCALARS,
    AT_STATE,
    AT_U,
    AT_V,
    AT_VEC,
    AT_WORK,
    AT_Z,
    COPIES,
    FIELDS,
    HEIGHT,
    INDICES,
    LANES,
    LONG,
    META,
    OPTIONS,
    PANELS,
    RING,
    ROOM,
    ROWS,
    SCALARS,
    SLOTS,
    TERMS,
    VECTORS,
    WIDTH,
)
from .jit import array_at, floats_at, integers_at, kernel

Stack = tuple[Array, Array, Array, Array, Integers, Array, Array, Array, Integers, Array, Array, Array]
Scratch = tuple[Array, Array, Array, Array, Array, Array, Integers, Array]


@kernel
def arrays(where: Integers) -> tuple[Stack, Scratch]:
    """The arrays of a stack, by their addresses."""
    slots, rows, room, height = where[SLOTS], where[ROWS], where[ROOM], where[HEIGHT]
    panels, long, wide = where[PANELS], where[LONG], (room + 7) // 8 * 8
    stack = (
        array_at(floats_at(where[AT_E]), (slots, rows, room)),
        array_at(floats_at(where[AT_F]), (slots, height, room if height > 0 else 0)),
        array_at(floats_at(where[AT_S]), (slots, room)),
        array_at(floats_at(where[AT_SCALARS]), (slots, SCALARS)),
        array_at(integers_at(where[AT_META]), (META, slots)),
        array_at(floats_at(where[AT_LOSSES]), (slots,)),
        array_at(floats_at(where[AT_STATE]), (slots, FIELDS)),
        array_at(floats_at(where[AT_OPTIONS]), (OPTIONS,)),
        array_at(integers_at(where[AT_FEATURES]), (slots + 1, 2, rows if height > 0 else 0)),
        array_at(floats_at(where[AT_U]), (rows if height > 0 else 0, RING)),
        array_at(floats_at(where[AT_L]), (slots, where[TERMS], room)),
        array_at(floats_at(where[AT_A]), (slots, where[TERMS])),
    )
    scratch = (
        array_at(floats_at(where[AT_VEC]), (VECTORS, long)),
        array_at(floats_at(where[AT_Z]), (slots, room + 8)),
        array_at(floats_at(where[AT_G]), (height + 8,)),
        array_at(floats_at(where[AT_LANE]), (LANES,)),
        array_at(floats_at(where[AT_V]), (panels, max(room, height) + 8, min(WIDTH, wide))),
        array_at(floats_at(where[AT_COPIES]), (COPIES, wide)),
        array_at(integers_at(where[AT_INDEX]), (INDICES, long)),
        array_at(floats_at(where[AT_WORK]), (where[TERMS] + 6, long)),
    )
    return stack, scratch
