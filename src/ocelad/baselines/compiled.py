"""How the few compiled functions of the baselines are compiled."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import numba

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """On first use, and kept on disk; sums may be added up in any order, and 1 / 0 is infinite."""
    njit: Any = partial(numba.njit, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
    try:
        return njit(cache=True)(function)
    except RuntimeError:  # no folder to keep the compiled code in: compile in every process
        return njit(function)
