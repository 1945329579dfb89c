"""The built-in functions: how many arguments they take, of which types, and what they give."""

from __future__ import annotations

from dataclasses import dataclass

NUMBERS = frozenset({"int", "float"})
AMOUNTS = NUMBERS | {"duration"}
ORDERED = AMOUNTS | {"time"}
_MANY = range(2, 1_000_000)


@dataclass(frozen=True)
class Function:
    """A built-in function.

    `counts` are the numbers of arguments that it takes, `takes` the types of arguments, `returns` the type of
    its value, or None if that is the type of its arguments.
    """

    counts: range | tuple[int, ...]
    takes: frozenset[str]
    returns: str | None


def counts_text(counts: range | tuple[int, ...]) -> str:
    """Return a number of arguments in words.

    Examples:
        >>> counts_text((4, 6)), counts_text((1,)), counts_text(FUNCTIONS["max"].counts)
        ('4 or 6 arguments', '1 argument', 'at least 2 arguments')
    """
    if counts == (0,):
        return "no arguments"
    if isinstance(counts, range):
        return f"at least {counts.start} arguments"
    return " or ".join(map(str, counts)) + (" argument" if counts == (1,) else " arguments")


FUNCTIONS = {
    "abs": Function((1,), AMOUNTS, None),
    "sqrt": Function((1,), NUMBERS, "float"),
    "floor": Function((1,), NUMBERS, "int"),
    "ceil": Function((1,), NUMBERS, "int"),
    "round": Function((1,), NUMBERS, "int"),
    "exp": Function((1,), NUMBERS, "float"),
    "ln": Function((1,), NUMBERS, "float"),
    "pow": Function((2,), NUMBERS, "float"),
    "sign": Function((1,), AMOUNTS, "int"),
    "min": Function(_MANY, ORDERED, None),
    "max": Function(_MANY, ORDERED, None),
    "dist": Function((4, 6), NUMBERS, "float"),
}
AGGREGATES = ("COUNT", "SUM", "AVG", "MIN", "MAX")
# Names that no user function may have; like those of the aggregates, they may be written in any case.
RESERVED_FUNCTIONS = frozenset(FUNCTIONS) | {"prev", *map(str.lower, AGGREGATES)}


def built_in(name: str) -> Function | None:
    """Return the built-in function of a name, which may be written in any case; None if it is none.

    Examples:
        >>> built_in("ABS") is built_in("abs")
        True
        >>> built_in("overlap") is None
        True
    """
    return FUNCTIONS.get(name.lower())
