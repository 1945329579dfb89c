"""Which of 64 neighbouring runs fulfil a comparison? The answers are the bits of a number, the lowest the first run's.

Loops that write a byte per answer become vector instructions, too, but take twice as long: here eight runs are compared
at a time, and their answers never leave the registers of the processor. Vectors of eight numbers are what is fastest on
processors with AVX-512; others do them in parts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]  # it has no types
from numba.core import types
from numba.extending import intrinsic
from numba.np import arrayobj

from penstock.kernel.calling import IS_COMPILING
from penstock.plan.tables import Floats

RUNS = 64
_WIDTH = 8
_BITS, _INDEX, _VECTOR = ir.IntType(64), ir.IntType(32), ir.VectorType(ir.DoubleType(), _WIDTH)
_make_array: Any = arrayobj.make_array


def _column(context: Any, builder: Any, kind: Any, registers: Any, slot: Any, at: Any) -> Any:
    """Return where the register `slot` of the run `at` is."""
    array = _make_array(kind)(context, builder, registers)
    width = builder.extract_value(array.shape, 1)
    return builder.gep(array.data, [builder.add(builder.mul(slot, width), at)])


def _eight(builder: Any, column: Any, first: int) -> Any:
    """Return eight numbers of a column."""
    place = builder.gep(column, [ir.Constant(_BITS, first)])
    return builder.load(builder.bitcast(place, _VECTOR.as_pointer()), align=8)


def _eight_times(builder: Any, x: Any) -> Any:
    """Return a vector of the same number."""
    nothing, zeros = ir.Constant(_VECTOR, ir.Undefined), ir.Constant(ir.VectorType(_INDEX, _WIDTH), [0] * _WIDTH)
    return builder.shuffle_vector(builder.insert_element(nothing, x, ir.Constant(_INDEX, 0)), nothing, zeros)


def _as_bits(builder: Any, answers: Callable[[int], Any]) -> Any:
    """Return the answers for all runs; `answers` gives those from a run on, as a vector."""
    bits = ir.Constant(_BITS, 0)
    for first in range(0, RUNS, _WIDTH):
        some = builder.zext(builder.bitcast(answers(first), ir.IntType(_WIDTH)), _BITS)
        bits = builder.or_(bits, builder.shl(some, ir.Constant(_BITS, first)))
    return bits


def _with_numbers(*comparisons: str) -> Any:
    """Return code that compares a column with as many numbers: `f(registers, slot, at, number, …)`."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        column = _column(context, builder, signature.args[0], *values[:3])
        numbers = [_eight_times(builder, x) for x in values[3:]]

        def answers(first: int) -> Any:
            some, each = _eight(builder, column, first), None
            for comparison, number in zip(comparisons, numbers, strict=True):
                answer = builder.fcmp_ordered(comparison, some, number)
                each = answer if each is None else builder.and_(each, answer)
            return each

        return _as_bits(builder, answers)

    return code


def _with_each_other(comparison: str) -> Any:
    """Return code that compares two columns: `f(registers, left, right, at)`."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        registers, left, right, at = values
        one = _column(context, builder, signature.args[0], registers, left, at)
        other = _column(context, builder, signature.args[0], registers, right, at)
        return _as_bits(
            builder,
            lambda first: builder.fcmp_ordered(comparison, _eight(builder, one, first), _eight(builder, other, first)),
        )

    return code


def _at_least(_: Any, registers: Any, slot: Any, at: Any, least: Any) -> Any:
    return types.uint64(registers, types.intp, types.intp, types.float64), _with_numbers(">=")


def _at_most(_: Any, registers: Any, slot: Any, at: Any, most: Any) -> Any:
    return types.uint64(registers, types.intp, types.intp, types.float64), _with_numbers("<=")


def _between(_: Any, registers: Any, slot: Any, at: Any, least: Any, most: Any) -> Any:
    number = types.float64
    return types.uint64(registers, types.intp, types.intp, number, number), _with_numbers(">=", "<=")


def _less(_: Any, registers: Any, left: Any, right: Any, at: Any) -> Any:
    return types.uint64(registers, types.intp, types.intp, types.intp), _with_each_other("<")


def _same(_: Any, registers: Any, left: Any, right: Any, at: Any) -> Any:
    return types.uint64(registers, types.intp, types.intp, types.intp), _with_each_other("==")


def _lowest(_: Any, bits: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.cttz(values[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), code


# --- where numba compiles nothing ----------------------------------------------------------------------------------


def _bits_in_python(answers: Any) -> np.uint64:
    return np.uint64(np.packbits(answers, bitorder="little").view(np.uint64)[0])


def _between_in_python(registers: Floats, slot: int, at: int, least: float, most: float) -> np.uint64:
    some = registers[slot, at : at + RUNS]
    return _bits_in_python((some >= least) & (some <= most))


def _at_least_in_python(registers: Floats, slot: int, at: int, least: float) -> np.uint64:
    return _bits_in_python(registers[slot, at : at + RUNS] >= least)


def _at_most_in_python(registers: Floats, slot: int, at: int, most: float) -> np.uint64:
    return _bits_in_python(registers[slot, at : at + RUNS] <= most)


def _less_in_python(registers: Floats, left: int, right: int, at: int) -> np.uint64:
    return _bits_in_python(registers[left, at : at + RUNS] < registers[right, at : at + RUNS])


def _same_in_python(registers: Floats, left: int, right: int, at: int) -> np.uint64:
    return _bits_in_python(registers[left, at : at + RUNS] == registers[right, at : at + RUNS])


def _lowest_in_python(bits: np.uint64) -> int:
    return (int(bits) & -int(bits)).bit_length() - 1


# Each returns a number of RUNS bits; NaN compares as nothing. `lowest` is the place of the lowest bit of one that is
# not 0.
at_least: Callable[..., Any] = intrinsic(_at_least) if IS_COMPILING else _at_least_in_python
at_most: Callable[..., Any] = intrinsic(_at_most) if IS_COMPILING else _at_most_in_python
between: Callable[..., Any] = intrinsic(_between) if IS_COMPILING else _between_in_python
less: Callable[..., Any] = intrinsic(_less) if IS_COMPILING else _less_in_python
same: Callable[..., Any] = intrinsic(_same) if IS_COMPILING else _same_in_python
lowest: Callable[..., int] = intrinsic(_lowest) if IS_COMPILING else _lowest_in_python
