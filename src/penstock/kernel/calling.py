"""Calls out of the kernel: user functions by their address, a block of rows at a time.

A *block function* is C: `int64 f(double *arguments, int64 stride, int64 count, double *results)`. Argument k of row i
is `arguments[k * stride + i]`; the results may take the place of the first argument. It returns how many rows it has
done: a compiled one stops at a row that it cannot do (an argument is a text, the function raises), and Python does that
row. Addresses are data, among the constants of a query (below 2**53, so a float has them exactly): a new function needs
no new kernel.
"""

from __future__ import annotations

import ctypes
import math
import warnings
from collections.abc import Callable
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import carray, cfunc, config, njit, types  # type: ignore[attr-defined]  # carray is public
from numba.core.errors import NumbaError
from numba.extending import intrinsic
from numba.np.unsafe.ndarray import to_fixed_tuple

from penstock.kernel.compiling import part
from penstock.plan.layout import CALL_ARITY, CALL_COMPILED, CALL_PYTHON, TEXT_HIGH, TEXT_LOW
from penstock.plan.tables import Floats

BLOCK_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
IS_COMPILING: bool = not config.DISABLE_JIT  # type: ignore[attr-defined]  # numba sets it when it is loaded
_POINTER = types.CPointer(types.float64)  # type: ignore[no-untyped-call]
_SIGNATURE = types.int64(_POINTER, types.int64, types.int64, _POINTER)


# --- the kernel's side ----------------------------------------------------------------------------------------


def _call_at(typing: Any, address: Any, stack: Any, offset: Any, stride: Any, count: Any) -> Any:
    """Call the block function at an address on `stack`, from its element `offset` on; return how many rows it did."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        where, array, first, width, rows = values
        start = builder.gep(context.make_array(signature.args[1])(context, builder, array).data, [first])
        number = context.get_value_type(types.int64)
        kind = ir.FunctionType(number, [start.type, number, number, start.type])
        return builder.call(builder.inttoptr(where, kind.as_pointer()), [start, width, rows, start])

    return types.int64(types.int64, stack, types.int64, types.int64, types.int64), generate


def _call_at_in_python(address: int, stack: Floats, offset: int, stride: int, count: int) -> int:
    place = stack.ctypes.data + 8 * int(offset)
    return int(BLOCK_FUNCTION(int(address))(place, int(stride), int(count), place))


call_at: Callable[..., int] = intrinsic(_call_at) if IS_COMPILING else _call_at_in_python


@part
def call_block(constants: Floats, call: int, stack: Floats, offset: int, stride: int, count: int) -> None:
    """Put the results of a call in place of its first arguments, which are at `offset`, the next `stride` behind it."""
    compiled, python = int(constants[call + CALL_COMPILED]), int(constants[call + CALL_PYTHON])
    done = 0
    while done < count:
        if compiled != 0:
            done += call_at(compiled, stack, offset + done, stride, count - done)
        if done < count:
            rows = count - done if compiled == 0 else 1
            call_at(python, stack, offset + done, stride, rows)
            done += rows


@part
def arity_of(constants: Floats, call: int) -> int:
    """Return how many arguments a call has."""
    return int(constants[call + CALL_ARITY])


# --- user functions as block functions ------------------------------------------------------------------------


class Compiled(NamedTuple):
    """A function as a block function: where it is, the type of its results, and what must live as long as it."""

    address: int
    kind: str  # bool, int, float
    code: Any


class CannotCompileError(Exception):
    """Why a function cannot be compiled, in one line."""


def compile_block(function: Callable[..., Any], arity: int) -> Compiled:
    """Compile a function of so many numbers.

    Raises:
        CannotCompileError: with the reason.
    """
    inner: Any = njit(error_model="python")(function) if isinstance(function, FunctionType) else function
    numbers = (types.float64,) * arity
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            kind = "float"
            if hasattr(inner, "compile") and hasattr(inner, "overloads"):
                inner.compile(numbers)
                kind = _kind(inner.overloads[numbers].signature.return_type)
            code = cfunc(_SIGNATURE)(_block_of(inner, arity))
    except CannotCompileError:
        raise
    except Exception as error:  # numba fails in many ways on code that it does not know
        raise CannotCompileError(_reason(error)) from error
    assert code.address, "what was compiled has an address"
    return Compiled(int(code.address), kind, code)


def _block_of(function: Any, arity: int) -> Callable[..., Any]:
    """Return the block function in Python, for numba."""
    as_tuple: Any = to_fixed_tuple  # to numba a function of two arguments

    @njit(error_model="python")
    def row(values: Any, i: int) -> float:
        result = function(*as_tuple(values[:, i], arity))
        return math.nan if result is None else result + 0.0  # a truth value too becomes a number

    @njit(error_model="python")
    def row_of_none(values: Any, i: int) -> float:
        result = function()
        return math.nan if result is None else result + 0.0

    one = row if arity else row_of_none

    def block(arguments: Any, stride: int, count: int, results: Any) -> int:
        values, out = carray(arguments, (max(arity, 1), stride)), carray(results, (count,))
        for i in range(count):
            is_missing = False
            for k in range(arity):
                if TEXT_LOW <= values[k, i] < TEXT_HIGH:
                    return i
                is_missing = is_missing or math.isnan(values[k, i])
            if is_missing:
                out[i] = math.nan
                continue
            try:
                result = one(values, i)
            except Exception:  # Python will raise it, with all that it says
                return i
            if TEXT_LOW <= result < TEXT_HIGH:
                return i
            out[i] = result
        return count

    return block


def _kind(returned: Any) -> str:
    inner = returned.type if isinstance(returned, types.Optional) else returned
    for kind, name in ((types.Boolean, "bool"), (types.Integer, "int"), (types.Float, "float")):
        if isinstance(inner, kind):
            return name
    raise CannotCompileError(f"of numbers it returns {returned}, not a number")


def _reason(error: Exception) -> str:
    """Return the first line of what numba says that says something."""
    lines = [line.strip() for line in str(error).splitlines()]
    told = [line for line in lines if line and not line.startswith(("Failed in nopython", "[1", "Use of unsupported"))]
    kind = "" if isinstance(error, NumbaError) else f"{type(error).__name__}: "
    if len(told) > 1 and told[0].endswith(":"):
        told[0] = f"{told[0]} {told[1].removeprefix('>>> ')}"
    return kind + (told[0] if told else type(error).__name__)


def address_of(function: Any) -> int:
    """Return where a callback of ctypes is."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def rows_at(arguments: int, stride: int, count: int, arity: int) -> list[Floats]:
    """Return the arguments of a block function as arrays."""
    size = stride * (arity - 1) + count if arity else 0
    flat = results_at(arguments, size)
    return [flat[k * stride : k * stride + count] for k in range(arity)]


def results_at(results: int, count: int) -> Floats:
    """Return where a block function writes, as an array."""
    memory: Any = (ctypes.c_double * count).from_address(results)
    return np.frombuffer(memory, np.float64)
