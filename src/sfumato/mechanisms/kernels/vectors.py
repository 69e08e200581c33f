"""Short vectors: sixteen 32-bit numbers or eight doubles at once, for loops that the compiler does not vectorize.

A value of these types is a vector register, or several if the processor's registers are shorter. It exists only in
compiled code. Arrays load and store whole vectors, so the caller must provide room for all elements.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import models, register_model

from sfumato.mechanisms.kernels.compile import instruction

__all__ = [
    "EIGHT",
    "SIXTEEN",
    "Vector",
    "count_reached",
    "raise_reached",
    "store",
    "sum_and_difference",
    "three_levels_within",
    "vector_at",
    "zeros",
]

#: Eight doubles or sixteen 32-bit numbers inside compiled code.
Vector: TypeAlias = Any

EIGHT, SIXTEEN = np.uint64(8), np.uint64(16)

_NUMBER, _DOUBLE = ir.IntType(32), ir.DoubleType()
_NUMBERS, _DOUBLES = ir.VectorType(_NUMBER, int(SIXTEEN)), ir.VectorType(_DOUBLE, int(EIGHT))


class _Numbers(types.Type):
    """Numba type of sixteen 32-bit numbers."""

    def __init__(self) -> None:
        super().__init__(name="sixteen numbers")


class _Doubles(types.Type):
    """Numba type of eight doubles."""

    def __init__(self) -> None:
        super().__init__(name="eight doubles")


@register_model(_Numbers)
class _NumbersModel(models.PrimitiveModel):
    """Memory model of sixteen 32-bit numbers."""

    def __init__(self, manager: Any, fe_type: Any) -> None:
        super().__init__(manager, fe_type, _NUMBERS)  # type: ignore[no-untyped-call]


@register_model(_Doubles)
class _DoublesModel(models.PrimitiveModel):
    """Memory model of eight doubles."""

    def __init__(self, manager: Any, fe_type: Any) -> None:
        super().__init__(manager, fe_type, _DOUBLES)  # type: ignore[no-untyped-call]


_numbers, _doubles = _Numbers(), _Doubles()


# -- both ------------------------------------------------------------------------------------------------


@instruction
def vector_at(typing_context: Any, array: Any, start: Any) -> Any:  # noqa: ARG001
    """Return the vector that an array of 32-bit numbers or doubles holds from ``start`` on."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load(_place(context, builder, signature, arguments), align=array.dtype.bitwidth // 8)

    return (_doubles if array.dtype == types.float64 else _numbers)(array, types.uint64), generate


@instruction
def store(typing_context: Any, array: Any, start: Any, vector: Any) -> Any:  # noqa: ARG001
    """Write a vector to an array from ``start`` on."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _place(context, builder, signature, arguments)
        builder.store(arguments[2], place, align=array.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(array, types.uint64, vector), generate


def _place(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Return a pointer to the vector at an index of an array."""
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    kind = _DOUBLES if signature.args[0].dtype == types.float64 else _NUMBERS
    return builder.bitcast(builder.gep(array.data, [arguments[1]]), kind.as_pointer())


# -- sixteen numbers -------------------------------------------------------------------------------------


@instruction
def zeros(typing_context: Any) -> Any:  # noqa: ARG001
    """Return sixteen zeros."""
    return _numbers(), lambda *_: _constant([0] * int(SIXTEEN))


@instruction
def count_reached(typing_context: Any, counts: Any, numbers: Any, least: Any) -> Any:  # noqa: ARG001
    """Return the counts, incremented wherever a number is at least ``least``."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        counts, numbers, least = arguments
        reached = builder.icmp_unsigned(">=", numbers, _everywhere(builder, least))
        return builder.add(counts, builder.zext(reached, _NUMBERS))

    return _numbers(_numbers, _numbers, types.uint64), generate


@instruction
def raise_reached(typing_context: Any, numbers: Any, least: Any, place: Any) -> Any:  # noqa: ARG001
    """Return the numbers, with those after ``place`` incremented if they are at least ``least``."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        numbers, least, place = arguments
        after = builder.icmp_unsigned(">", _constant(range(int(SIXTEEN))), _everywhere(builder, place))
        reached = builder.icmp_unsigned(">=", numbers, _everywhere(builder, least))
        return builder.add(numbers, builder.zext(builder.and_(after, reached), _NUMBERS))

    return _numbers(_numbers, types.uint64, types.uint64), generate


def _constant(numbers: Any) -> Any:
    """Return a constant vector of sixteen numbers."""
    return ir.Constant(_NUMBERS, [ir.Constant(_NUMBER, number) for number in numbers])


def _everywhere(builder: Any, number: Any) -> Any:
    """Return a vector with one number, which fits 32 bits, in all sixteen places."""
    nothing = ir.Constant(_NUMBERS, ir.Undefined)
    first = builder.insert_element(nothing, builder.trunc(number, _NUMBER), ir.Constant(_NUMBER, 0))
    return builder.shuffle_vector(first, nothing, _constant([0] * int(SIXTEEN)))


# -- eight doubles ---------------------------------------------------------------------------------------


@instruction
def sum_and_difference(typing_context: Any, left: Any, right: Any) -> Any:  # noqa: ARG001
    """Return left + right and left - right."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pair = builder.fadd(*arguments), builder.fsub(*arguments)
        return context.make_tuple(builder, signature.return_type, pair)

    return types.UniTuple(_doubles, 2)(_doubles, _doubles), generate  # type: ignore[no-untyped-call]


@instruction
def three_levels_within(typing_context: Any, doubles: Any) -> Any:  # noqa: ARG001
    """Return the Walsh-Hadamard transform of eight doubles: with distance h, place i becomes x[i XOR h] ± x[i]."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        (vector,) = arguments
        for half in (1, 2, 4):
            partners = ir.Constant(ir.VectorType(_NUMBER, 8), [ir.Constant(_NUMBER, i ^ half) for i in range(8)])
            signs = ir.Constant(_DOUBLES, [ir.Constant(_DOUBLE, -1.0 if i & half else 1.0) for i in range(8)])
            crossed = builder.shuffle_vector(vector, ir.Constant(_DOUBLES, ir.Undefined), partners)
            vector = builder.fadd(crossed, builder.fmul(vector, signs))
        return vector

    return _doubles(_doubles), generate
