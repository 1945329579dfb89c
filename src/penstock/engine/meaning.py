"""Which functions are the same: those that come from another process are new objects each time, and do the same."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from types import CodeType, FunctionType
from typing import Any


class Known:
    """A function that is equal to others of the same code, defaults and values that it names.

    Examples:
        >>> def made():
        ...     return lambda a, b: a * a + b
        >>> Known(made()) == Known(made()), Known(made()) == Known(lambda a, b: a * a - b)
        (True, False)
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self._meaning = meaning(function)

    def __hash__(self) -> int:
        return hash(self._meaning)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Known) and self._meaning == other._meaning


def meaning(function: Callable[..., Any]) -> Hashable:
    """Return what is the same for functions that do the same; the function itself, or its place, if nobody can tell."""
    try:
        found = _meaning(function, ())
        hash(found)
    except (TypeError, ValueError):  # it names something that may change, or that is not there yet
        return "id", id(function)
    return found


def _meaning(value: Any, around: tuple[Any, ...]) -> Hashable:
    """Return that of a function, or of a value that one names; `around` are the functions that name it."""
    if any(value is each for each in around):
        return "around", next(place for place, each in enumerate(around) if each is value)
    if not isinstance(value, FunctionType):
        return type(value), repr(value) if isinstance(value, float) else value  # 0.0 is not -0.0
    inside, code = (*around, value), value.__code__
    cells = [cell.cell_contents for cell in value.__closure__ or ()]
    named = sorted({name for name in _names(code) if name in value.__globals__})
    parts = [*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values(), *cells]
    parts += [value.__globals__[name] for name in named]
    return code, tuple(named), tuple(value.__kwdefaults__ or ()), tuple(_meaning(each, inside) for each in parts)


def _names(code: CodeType) -> Iterator[str]:
    """Yield the names that a function uses, with those of functions inside it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
