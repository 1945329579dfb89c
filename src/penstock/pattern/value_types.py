"""Which types of values go together, and what comes out.

The types are those of a schema: int, float, string, bool, time, duration. None is a type that is not known.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from penstock.pattern.functions import NUMBERS
from penstock.pattern.variables import VALUE_TYPES

Type: TypeAlias = str | None


@dataclass(frozen=True)
class SetOf:
    """A set of values of one type, which only IN can ask."""

    item: str


_SPELLED = {
    "int": "a number", "float": "a number", "string": "a string", "bool": "a boolean", "time": "a time",
    "duration": "a duration",
}  # fmt: skip
# Besides numbers with numbers.
_ARITHMETIC = {
    ("time", "+", "duration"): "time",
    ("duration", "+", "time"): "time",
    ("duration", "+", "duration"): "duration",
    ("time", "-", "time"): "duration",
    ("time", "-", "duration"): "time",
    ("duration", "-", "duration"): "duration",
    ("duration", "*", "number"): "duration",
    ("number", "*", "duration"): "duration",
    ("duration", "/", "number"): "duration",
    ("duration", "/", "duration"): "float",
    ("time", "%", "duration"): "duration",
    ("duration", "%", "duration"): "duration",
}


def spelled(value_type: Type) -> str:
    """Return a type in words; int and float are both numbers."""
    return "something" if value_type is None else _SPELLED[value_type]


def fits(given: Type, wanted: Type) -> bool:
    """Return whether a value can stand where one of another type is wanted; int and float mix freely."""
    return given is None or wanted is None or given == wanted or {given, wanted} <= NUMBERS


def common(types: Iterable[Type]) -> Type:
    """Return the type that fits all of these; None if there is none, or one is not known.

    Examples:
        >>> common(["int", "float"]), common(["time", "time"]), common(["int", "string"])
        ('float', 'time', None)
    """
    found = set(types)
    if len(found) == 1:
        return found.pop()
    return "float" if found and found <= NUMBERS else None


def is_comparable(left: Type, right: Type) -> bool:
    """Return whether two values can be compared.

    There is no literal for a time, so a time also compares with a number: of microseconds since 1970.
    """
    return fits(left, right) or (left == "time" and right in NUMBERS) or (right == "time" and left in NUMBERS)


def arithmetic(left: Type, operator: str, right: Type) -> tuple[bool, Type]:
    """Return whether two values can be calculated with, and the type of the result.

    Examples:
        >>> arithmetic("time", "-", "time"), arithmetic("int", "/", "int"), arithmetic("string", "+", None)
        ((True, 'duration'), (True, 'float'), (False, None))
    """
    lefts = VALUE_TYPES if left is None else (left,)
    rights = VALUE_TYPES if right is None else (right,)
    results = {_result(one, operator, other) for one in lefts for other in rights} - {None}
    return bool(results), results.pop() if len(results) == 1 else None


def _result(left: str, operator: str, right: str) -> Type:
    if {left, right} <= NUMBERS:
        return "int" if left == right == "int" and operator != "/" else "float"
    kinds = ["number" if each in NUMBERS else each for each in (left, right)]
    return _ARITHMETIC.get((kinds[0], operator, kinds[1]))
