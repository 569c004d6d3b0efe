"""Arrays as compiled code can have them: an address and the lengths of rows, and nothing else.

What numba makes of a numpy array carries an owner, strides and the number of elements along; it counts references
to every slice, and accepts indices from the end. To compile all that takes most of the time that kernels take to
compile, and to run it as long as a small step. A bare array is what kernels need: ``x[i]`` and ``x[i, j]`` are
elements or rows, of a contiguous array that somebody else keeps alive. Kernels are written for either kind.
"""
# mypy: disallow-untyped-calls=False, disallow-untyped-decorators=False
# (numba says nothing of the types of what it is extended by)

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from numba import types
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import lower_builtin, models, register_model, type_callable
from numba.np.arrayobj import make_array


def view(buffer: Any, at: int, shape: tuple[int, ...]) -> Any:
    """An array of this shape within a buffer; in compiled code, a bare one."""
    return np.ndarray(shape, buffer.dtype, buffer, 8 * at)


class Bare(types.Type):
    """The type of bare arrays."""

    def __init__(self, dtype: Any, ndim: int) -> None:
        self.dtype, self.ndim = dtype, ndim
        super().__init__(name=f"Bare({dtype}, {ndim})")

    def at(self, index: Any) -> Any:
        """The type of what is at an index."""
        rest = self.ndim - len(_types_of(index))
        return Bare(self.dtype, rest) if rest else self.dtype


@register_model(Bare)
class _Model(models.StructModel):
    """All lengths but the first, which nothing is computed from."""

    def __init__(self, manager: Any, kind: Any) -> None:
        lengths = [(f"length{axis}", types.intp) for axis in range(1, kind.ndim)]
        super().__init__(manager, kind, [("data", types.CPointer(kind.dtype)), *lengths])


def _types_of(index: Any) -> Any:
    return getattr(index, "types", (index,))  # a tuple, or one integer


_FIRST: Any = {"target": "cpu"}  # looked at before what numba has for other types, which is much


@infer_global(operator.getitem)
class _Get(AbstractTemplate):
    metadata = _FIRST

    def generic(self, args: Any, _: Any) -> Any:
        return signature(args[0].at(args[1]), *args) if isinstance(args[0], Bare) else None


@infer_global(operator.setitem)
class _Set(AbstractTemplate):
    metadata = _FIRST

    def generic(self, args: Any, _: Any) -> Any:
        return signature(types.none, *args[:2], args[0].dtype) if isinstance(args[0], Bare) else None


@type_callable(view)
def _view(_context: Any) -> Any:
    return lambda buffer, at, shape: Bare(buffer.dtype, len(shape))  # noqa: ARG005


def _integers(context: Any, builder: Any, kind: Any, value: Any) -> list[Any]:
    """The integers of an index or a shape."""
    kinds = _types_of(kind)
    values = (
        [value]
        if isinstance(kind, types.Integer)
        else [builder.extract_value(value, k) for k in range(len(kinds))]
    )
    return [context.cast(builder, v, k, types.intp) for v, k in zip(values, kinds, strict=True)]


def _address(context: Any, builder: Any, signature: Any, args: Any) -> tuple[Any, list[Any]]:
    """Where an index leads to, and the lengths of what is there."""
    array = context.data_model_manager[signature.args[0]]
    data, *lengths = (array.get(builder, args[0], k) for k in range(signature.args[0].ndim))
    indices = _integers(context, builder, signature.args[1], args[1])
    offset = indices[0]
    for axis, length in enumerate(lengths, start=1):
        offset = builder.mul(offset, length, flags=["nsw"])
        if axis < len(indices):
            offset = builder.add(offset, indices[axis], flags=["nsw"])
    return builder.gep(data, [offset], inbounds=True), lengths[len(indices) :]


def _bare(context: Any, builder: Any, kind: Any, data: Any, lengths: list[Any]) -> Any:
    model = context.data_model_manager[kind]
    value = model.set(builder, context.get_constant_undef(kind), data, 0)
    for k, length in enumerate(lengths, start=1):
        value = model.set(builder, value, length, k)
    return value


@lower_builtin(operator.getitem, Bare, types.Integer)
@lower_builtin(operator.getitem, Bare, types.BaseTuple)
def _get(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    where, lengths = _address(context, builder, signature, args)
    kind = signature.return_type
    return _bare(context, builder, kind, where, lengths) if isinstance(kind, Bare) else builder.load(where)


@lower_builtin(operator.setitem, Bare, types.Integer, types.Any)
@lower_builtin(operator.setitem, Bare, types.BaseTuple, types.Any)
def _set(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    where, _ = _address(context, builder, signature, args)
    builder.store(args[2], where)
    return context.get_dummy_value()


@lower_builtin(view, types.Array, types.Integer, types.BaseTuple)
def _lower_view(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    buffer, at, shape = signature.args
    data = make_array(buffer)(context, builder, args[0]).data
    start = context.cast(builder, args[1], at, types.intp)
    lengths = _integers(context, builder, shape, args[2])[1:]
    return _bare(context, builder, signature.return_type, builder.gep(data, [start]), lengths)
