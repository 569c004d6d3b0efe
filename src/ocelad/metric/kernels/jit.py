"""How every kernel is compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

njit: Any = numba.njit  # its types say less than ours, and change from release to release

F = TypeVar("F", bound=Callable[..., Any])


def _compiled(function: F, fastmath: set[str]) -> F:
    options = {"nogil": True, "error_model": "numpy", "fastmath": fastmath}
    try:
        return njit(cache=True, **options)(function)
    except RuntimeError:  # no folder to keep the compiled code in: compile in every process
        return njit(**options)(function)


def kernel(function: F) -> F:
    """Compiled on first use and cached; IEEE arithmetic as written, division by zero included."""
    return _compiled(function, set())


def sums(function: F) -> F:
    """The same, for plain sums of products, which may be added up in any order."""
    return _compiled(function, {"reassoc", "contract"})
