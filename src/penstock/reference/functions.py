"""Arithmetic, comparison and the built-in functions, where missing (None) in gives missing out."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import reduce
from typing import Any


def known(value: Any) -> Any:
    """Return a value, or None if it is NaN: both mean missing."""
    return None if isinstance(value, float) and math.isnan(value) else value


def _guarded(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function with missing values, undefined results and NaN as missing."""

    def guarded(*arguments: Any) -> Any:
        if None in arguments:
            return None
        try:
            result = function(*arguments)
        except (ZeroDivisionError, ValueError, TypeError):
            return None
        except OverflowError:
            return math.inf
        return None if isinstance(result, complex) else known(result)

    return guarded


def _of_numbers(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the guarded function, with a text among its arguments as undefined."""
    guarded = _guarded(function)
    return lambda *arguments: None if any(isinstance(a, str) for a in arguments) else guarded(*arguments)


ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": _of_numbers(operator.add),
    "-": _of_numbers(operator.sub),
    "*": _of_numbers(operator.mul),
    "/": _of_numbers(operator.truediv),
    "%": _of_numbers(operator.mod),
}

_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def compare(sign: str, left: Any, right: Any) -> bool:
    """Compare two values; false if one is missing or they cannot be compared."""
    if left is None or right is None:
        return False
    try:
        return bool(_COMPARISONS[sign](left, right))
    except TypeError:
        return False


def _dist(*coordinates: float) -> float:
    half = len(coordinates) // 2
    squares = ((a - b) * (a - b) for a, b in zip(coordinates[:half], coordinates[half:], strict=True))
    return math.sqrt(reduce(operator.add, squares))


def _sign(x: float) -> int:
    return (x > 0) - (x < 0)


def _sum(values: list[Any]) -> Any:
    return reduce(operator.add, values, 0)  # from left to right; sum() would correct for rounding


_BUILT_IN: dict[str, Callable[..., Any]] = {
    "abs": abs,
    "sqrt": math.sqrt,
    "floor": math.floor,
    "ceil": math.ceil,
    "round": round,
    "exp": math.exp,
    "ln": math.log,
    "pow": pow,
    "sign": _sign,
    "min": min,
    "max": max,
    "dist": _dist,
}
FUNCTIONS = {name: _of_numbers(function) for name, function in _BUILT_IN.items()}

# Each takes the list of the values that are there; AVG, MIN and MAX of none are missing.
AGGREGATES: dict[str, Callable[[list[Any]], Any]] = {
    "COUNT": len,
    "SUM": _guarded(_sum),
    "AVG": _guarded(lambda values: _sum(values) / len(values)),
    "MIN": _guarded(min),
    "MAX": _guarded(max),
}
