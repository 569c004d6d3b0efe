"""Raw arrays for compiled code: a pointer and the lengths of the inner axes, and nothing else.

What numba makes of a numpy array carries an owner, strides and the number of elements; it counts references to
every slice, and accepts negative indices. Compiling all that takes most of the time that kernels take to compile,
and running it as long as a small step. A raw array is what kernels need: ``x[i]`` and ``x[i, j]`` are elements or
rows of a contiguous array that the caller keeps alive, without bounds checks. Kernels are written for either.
"""
# mypy: disallow-untyped-calls=False, disallow-untyped-decorators=False
# (numba has no types for its extension API)

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from numba import types
from numba.extending import lower_builtin, models, register_model, type_callable


def view(buffer: Any, at: int, shape: tuple[int, ...]) -> Any:
    """An array of this shape within a buffer; in compiled code, a raw one."""
    return np.ndarray(shape, buffer.dtype, buffer, buffer.itemsize * at)


class RawArray(types.Type):
    """The type of raw arrays."""

    def __init__(self, dtype: Any, ndim: int) -> None:
        self.dtype, self.ndim = dtype, ndim
        super().__init__(name=f"RawArray({dtype}, {ndim})")

    def at(self, index: Any) -> Any:
        """The type of what is at an index."""
        rest = self.ndim - len(_types_of(index))
        return RawArray(self.dtype, rest) if rest else self.dtype


@register_model(RawArray)
class _Model(models.StructModel):
    """All lengths but the first, which no address depends on."""

    def __init__(self, manager: Any, kind: Any) -> None:
        lengths = [(f"length{axis}", types.intp) for axis in range(1, kind.ndim)]
        super().__init__(manager, kind, [("data", types.CPointer(kind.dtype)), *lengths])


def _types_of(index: Any) -> Any:
    return getattr(index, "types", (index,))  # a tuple, or one integer


@type_callable(operator.getitem)
def _type_get(_context: Any) -> Any:
    return lambda array, index: array.at(index) if isinstance(array, RawArray) else None


@type_callable(operator.setitem)
def _type_set(_context: Any) -> Any:
    def typed(array: Any, index: Any, value: Any) -> Any:  # noqa: ARG001
        return types.none(array, index, array.dtype) if isinstance(array, RawArray) else None

    return typed


@type_callable(view)
def _type_view(_context: Any) -> Any:
    return lambda buffer, at, shape: RawArray(buffer.dtype, len(shape))  # noqa: ARG005


def _integers(context: Any, builder: Any, kind: Any, value: Any) -> list[Any]:
    """The integers of an index or a shape."""
    kinds = _types_of(kind)
    single = isinstance(kind, types.Integer)
    values = [value] if single else [builder.extract_value(value, k) for k in range(len(kinds))]
    return [context.cast(builder, v, k, types.intp) for v, k in zip(values, kinds, strict=True)]


def _address(context: Any, builder: Any, signature: Any, args: Any) -> tuple[Any, list[Any]]:
    """The address of an element or row, and the lengths of the axes that are left."""
    array = context.data_model_manager[signature.args[0]]
    data, *lengths = (array.get(builder, args[0], k) for k in range(signature.args[0].ndim))
    indices = _integers(context, builder, signature.args[1], args[1])
    offset = indices[0]
    for axis, length in enumerate(lengths, start=1):
        offset = builder.mul(offset, length, flags=["nsw"])
        if axis < len(indices):
            offset = builder.add(offset, indices[axis], flags=["nsw"])
    return builder.gep(data, [offset], inbounds=True), lengths[len(indices) :]


def _struct(context: Any, builder: Any, kind: Any, data: Any, lengths: list[Any]) -> Any:
    model = context.data_model_manager[kind]
    value = model.set(builder, context.get_constant_undef(kind), data, 0)
    for k, length in enumerate(lengths, start=1):
        value = model.set(builder, value, length, k)
    return value


@lower_builtin(operator.getitem, RawArray, types.Integer)
@lower_builtin(operator.getitem, RawArray, types.BaseTuple)
def _lower_get(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    address, lengths = _address(context, builder, signature, args)
    kind = signature.return_type
    return (
        _struct(context, builder, kind, address, lengths) if isinstance(kind, RawArray) else builder.load(address)
    )


@lower_builtin(operator.setitem, RawArray, types.Integer, types.Any)
@lower_builtin(operator.setitem, RawArray, types.BaseTuple, types.Any)
def _lower_set(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    address, _ = _address(context, builder, signature, args)
    builder.store(args[2], address)
    return context.get_dummy_value()


@lower_builtin(view, types.Array, types.Integer, types.BaseTuple)
def _lower_view(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    buffer, at, shape = signature.args
    data = context.make_array(buffer)(context, builder, args[0]).data
    start = context.cast(builder, args[1], at, types.intp)
    lengths = _integers(context, builder, shape, args[2])[1:]
    return _struct(context, builder, signature.return_type, builder.gep(data, [start]), lengths)
