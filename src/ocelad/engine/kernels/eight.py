"""Eight numbers that the processor handles together, in registers.

The compiler makes vector instructions of plain loops, but narrower ones than it could, and keeps in memory what
such a loop adds up. Where many sums grow at once that takes most of the time; variables of this type stay in
registers. Where the processor has no room for eight, it takes several instructions.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import binding, ir
from numba import types
from numba.extending import intrinsic, models, overload, register_model

Eight = Any  # as far as Python is concerned

_VECTOR = ir.VectorType(ir.DoubleType(), 8)
_WORDS = ir.VectorType(ir.IntType(64), 8)
_INDEX = ir.IntType(32)


def _roomy() -> bool:
    try:
        return bool(binding.get_host_cpu_features().get("avx512f"))
    except RuntimeError:  # nobody knows
        return False


ROOMY = _roomy()
"""Whether registers have room for some twenty of them; elsewhere for half a dozen."""


class _Eight(types.Type):
    def __init__(self) -> None:
        named: Any = super().__init__  # numba says little of its types
        named("Eight")


@register_model(_Eight)
class _InRegisters(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        made: Any = super().__init__
        made(manager, kind, _VECTOR)


_EIGHT: Any = _Eight()


def _place(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """Where that entry of an array is which has this index, a number or several."""
    array, index = context.make_array(signature.args[0])(context, builder, args[0]), args[1]
    axes = signature.args[0].ndim
    several = [builder.extract_value(index, axis) for axis in range(axes)] if axes > 1 else [index]
    at = several[0]
    for axis in range(1, axes):
        at = builder.add(builder.mul(at, builder.extract_value(array.shape, axis)), several[axis])
    return builder.bitcast(builder.gep(array.data, [at]), _VECTOR.as_pointer())


def _index(array: Any) -> Any:
    several: Any = types.UniTuple
    return types.intp if array.ndim == 1 else several(types.intp, array.ndim)


def _copies(builder: Any, kind: Any, x: Any) -> Any:
    nothing = ir.Constant(kind, ir.Undefined)
    first = builder.insert_element(nothing, x, ir.Constant(_INDEX, 0))
    return builder.shuffle_vector(first, nothing, ir.Constant(ir.VectorType(_INDEX, 8), [0] * 8))


def _eight(_context: Any, _x: Any) -> Any:
    def code(_target: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return _copies(builder, _VECTOR, args[0])

    return _EIGHT(types.float64), code


def _spread(_context: Any, array: Any, _at: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = builder.bitcast(_place(context, builder, signature, args), ir.DoubleType().as_pointer())
        return _copies(builder, _VECTOR, builder.load(place))

    return _EIGHT(array, _index(array)), code


def _load(_context: Any, array: Any, _at: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load(_place(context, builder, signature, args), align=8)

    return _EIGHT(array, _index(array)), code


def _store(_context: Any, array: Any, _at: Any, _x: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store(args[2], _place(context, builder, signature, args), align=8)
        return context.get_dummy_value()

    return types.void(array, _index(array), _EIGHT), code


def _store_some(_context: Any, array: Any, _at: Any, _x: Any, _count: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        numbers, flags = ir.Constant(_WORDS, list(range(8))), ir.VectorType(ir.IntType(1), 8)
        first = builder.icmp_signed("<", numbers, _copies(builder, _WORDS, args[3]))
        kind = ir.FunctionType(ir.VoidType(), [_VECTOR, _VECTOR.as_pointer(), _INDEX, flags])
        masked = builder.module.declare_intrinsic("llvm.masked.store.v8f64.p0v8f64", (), kind)
        place = _place(context, builder, signature, args)
        builder.call(masked, [args[2], place, ir.Constant(_INDEX, 8), first])
        return context.get_dummy_value()

    return types.void(array, _index(array), _EIGHT, types.int64), code


def _fetch(_context: Any, array: Any, _at: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        anywhere, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [anywhere, number, number, number])
        place = builder.bitcast(_place(context, builder, signature, args), anywhere)
        choices = [ir.Constant(number, choice) for choice in (0, 3, 1)]  # to read, to keep, and data
        builder.call(builder.module.declare_intrinsic("llvm.prefetch", (anywhere,), kind), [place, *choices])
        return context.get_dummy_value()

    return types.void(array, _index(array)), code


def _plus(_context: Any, _total: Any, _x: Any, _y: Any) -> Any:
    def code(_target: Any, builder: Any, _signature: Any, args: Any) -> Any:
        product = builder.fmul(args[1], args[2], flags=("contract",))
        return builder.fadd(args[0], product, flags=("contract",))

    return _EIGHT(_EIGHT, _EIGHT, _EIGHT), code


eight: Any = intrinsic(_eight)
"""eight(x): x eight times."""
spread: Any = intrinsic(_spread)
"""spread(array, at): what a contiguous array has there, eight times; at is not negative, which nobody checks."""
load: Any = intrinsic(_load)
"""load(array, at): what a contiguous array has there, and the seven numbers after it."""
store: Any = intrinsic(_store)
"""store(array, at, x): the reverse."""
store_some: Any = intrinsic(_store_some)
"""store_some(array, at, x, count): the first so many of the eight."""
fetch: Any = intrinsic(_fetch)
"""fetch(array, at): what is there will be needed soon; nothing else changes."""
plus: Any = intrinsic(_plus)
"""plus(total, x, y): total + x y, rounded once where the processor can."""


def _operator(symbol: Callable[..., Any], instruction: Callable[..., Any]) -> None:
    def two(_context: Any, _x: Any, _y: Any) -> Any:
        return _EIGHT(_EIGHT, _EIGHT), lambda _target, builder, _signature, args: instruction(builder, *args)

    compiled: Any = intrinsic(two)

    def typed(x: Any, y: Any) -> Any:
        return (lambda x, y: compiled(x, y)) if isinstance(x, _Eight) and isinstance(y, _Eight) else None

    overload(symbol, strict=False)(typed)


def _lesser(builder: Any, x: Any, y: Any) -> Any:
    return builder.select(builder.fcmp_ordered("<", x, y), x, y)


def _greater(builder: Any, x: Any, y: Any) -> Any:
    return builder.select(builder.fcmp_ordered("<", x, y), y, x)


for _symbol, _instruction in (
    (operator.add, ir.IRBuilder.fadd),
    (operator.sub, ir.IRBuilder.fsub),
    (operator.mul, ir.IRBuilder.fmul),
    (operator.truediv, ir.IRBuilder.fdiv),
    (min, _lesser),
    (max, _greater),
):
    _operator(_symbol, _instruction)


def _absolute(_context: Any, _x: Any) -> Any:
    def code(_target: Any, builder: Any, _signature: Any, args: Any) -> Any:
        bits = builder.and_(builder.bitcast(args[0], _WORDS), ir.Constant(_WORDS, [(1 << 63) - 1] * 8))
        return builder.bitcast(bits, _VECTOR)

    return _EIGHT(_EIGHT), code


def _nonzero(_context: Any, _x: Any) -> Any:
    def code(_target: Any, builder: Any, _signature: Any, args: Any) -> Any:
        zeros = builder.fcmp_ordered("==", args[0], ir.Constant(_VECTOR, [0.0] * 8))
        return builder.select(zeros, ir.Constant(_VECTOR, [1.0] * 8), args[0])

    return _EIGHT(_EIGHT), code


def _root(_context: Any, _x: Any) -> Any:
    def code(_target: Any, builder: Any, _signature: Any, args: Any) -> Any:
        kind = ir.FunctionType(_VECTOR, [_VECTOR])
        return builder.call(builder.module.declare_intrinsic("llvm.sqrt.v8f64", (), kind), args)

    return _EIGHT(_EIGHT), code


def _numbered(_context: Any, _x: Any, _mask: Any, _first: Any) -> Any:
    def code(_target: Any, builder: Any, _signature: Any, args: Any) -> Any:
        mask, first = (_copies(builder, _WORDS, word) for word in args[1:])
        numbers = builder.and_(builder.add(first, ir.Constant(_WORDS, list(range(8)))), mask)
        kept = builder.and_(builder.bitcast(args[0], _WORDS), builder.not_(mask))
        return builder.bitcast(builder.or_(kept, numbers), _VECTOR)

    return _EIGHT(_EIGHT, types.int64, types.int64), code


def _any_less(_context: Any, _x: Any, _y: Any) -> Any:
    def code(_target: Any, builder: Any, _signature: Any, args: Any) -> Any:
        bits = builder.bitcast(builder.fcmp_ordered("<", *args), ir.IntType(8))
        return builder.icmp_unsigned("!=", bits, ir.Constant(ir.IntType(8), 0))

    return types.boolean(_EIGHT, _EIGHT), code


absolute: Any = intrinsic(_absolute)
"""absolute(x): without the signs."""
nonzero: Any = intrinsic(_nonzero)
"""nonzero(x): 1 where it is 0."""
root: Any = intrinsic(_root)
"""root(x): the square root of each."""
numbered: Any = intrinsic(_numbered)
"""numbered(x, mask, first): first, first + 1, ... in the place of those bits of each."""
any_less: Any = intrinsic(_any_less)
"""any_less(x, y): whether any of x is less than that of y."""
