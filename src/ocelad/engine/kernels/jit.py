"""How every kernel is compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba
from numba import types
from numba.extending import intrinsic

if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
    raise ImportError("NUMBA_DISABLE_JIT is set, and ocelad's kernels work only if they are compiled: unset it")

njit: Any = numba.njit  # its types say less than ours, and change from release to release

F = TypeVar("F", bound=Callable[..., Any])


def _compiled(function: F, fastmath: set[str], inner: bool = True, **more: object) -> F:
    # what Python and C would need to call a kernel takes a quarter of the time that compiling takes
    wrappers = {"no_cpython_wrapper": inner, "no_cfunc_wrapper": True}
    options = {"nogil": True, "error_model": "numpy", "fastmath": fastmath, **wrappers, **more}
    try:
        return njit(cache=True, **options)(function)
    except RuntimeError:  # no folder to keep the compiled code in: compile in every process
        return njit(**options)(function)


def kernel(function: F) -> F:
    """Compiled on first use and cached; IEEE arithmetic as written, division by zero included.

    It is for other kernels alone: were Python to call it, the process would end.
    """
    return _compiled(function, set())


def entry(function: F) -> F:
    """The same, for Python to call."""
    return _compiled(function, set(), inner=False)


def sums(function: F) -> F:
    """A kernel of plain sums of products, which may be added up in any order."""
    return _compiled(function, {"reassoc", "contract"})


def part(function: F) -> F:
    """A kernel, but copied into its few callers first: the compiler then looks at it once less."""
    return _compiled(function, set(), inline="always")


Mode = bool | None
"""An argument that says what else there is, or None: then the compiler leaves out what it is not None for."""


def _pointer(kind: Any) -> Any:
    def at(_context: Any, _address: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.inttoptr(args[0], context.get_value_type(signature.return_type))

        pointer: Any = types.CPointer
        return pointer(kind)(types.int64), code

    return intrinsic(at)


# Arrays made at an address (`array_at`) are not counted by anyone. Counting references, with an atomic
# instruction for every slice, would take as long as a small step; and an address passes from Python at no cost.
array_at: Any = numba.carray  # type: ignore[attr-defined]
floats_at, integers_at = _pointer(types.float64), _pointer(types.int64)


def _apart(_context: Any) -> Any:
    def code(context: Any, builder: Any, _signature: Any, _args: Any) -> Any:
        builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return types.void(), code


# Called first in a long kernel: the compiler then leaves it a function, and does not copy it to all its callers.
apart: Any = intrinsic(_apart)
