"""Queries in Python: the same AST as from text, with Python's names and operators.

Examples:
    >>> a, b, c = event("A", "a"), event("B", "b").plus(), event("C", "c")
    >>> built = query(
    ...     seq(a, ~event("D", "d"), b, c),
    ...     where=[a.price < c.price, b["i"].price > b["i-1"].price, count(b) > 5, same("id")],
    ...     within="5 min",
    ...     select="FIRST",
    ...     consume=["a"],
    ...     returns={"rise": c.price - a.price},
    ... )
    >>> from penstock.pattern.render import render
    >>> print(render(built))
    PATTERN SEQ(A a, NOT D d, B+ b[], C c)
    WHERE a.price < c.price AND b[i].price > b[i-1].price AND COUNT(b[]) > 5 AND SAME[id]
    WITHIN 5 min
    SELECT FIRST
    CONSUME a
    RETURN c.price - a.price AS rise
"""

from penstock.pattern.builder.checks import BuilderError
from penstock.pattern.builder.clauses import query, window
from penstock.pattern.builder.functions import average, call, count, maximum, minimum, prev, remote, same, total
from penstock.pattern.builder.parts import Element, EventPart, Part, all_of, any_of, event, one_of, seq
from penstock.pattern.builder.values import Operand, RemoteValue, Value, duration, literal

__all__ = [
    "BuilderError", "Element", "EventPart", "Operand", "Part", "RemoteValue", "Value", "all_of", "any_of", "average",
    "call", "count", "duration", "event", "literal", "maximum", "minimum", "one_of", "prev", "query", "remote", "same",
    "seq", "total", "window",
]  # fmt: skip
