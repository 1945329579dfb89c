"""What an expression names: single events, elements of lists and whole lists (docs/language.md, section 3)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from penstock.pattern import ast
from penstock.pattern.variables import Variable

Reference: TypeAlias = ast.Attribute | ast.Aggregate


def references(expression: ast.Expression) -> Iterator[Reference]:
    """Yield everything of a match that an expression names, in the order of the text.

    Examples:
        >>> [ref.variable for ref in references(ast.Minus(ast.Previous(ast.Attribute("a", "x"))))]
        ['a']
    """
    return (node for node in ast.walk(expression) if isinstance(node, Reference))


def names(expression: ast.Expression) -> frozenset[tuple[object, ...]]:
    """Return what must be there for an expression to apply.

    Two expressions with the same names apply to the same matches, in the same rounds. An attribute is not among
    them: if it is missing, the expression applies and has a missing value. `COUNT` and `SUM` are there for an empty
    list, the other aggregates are not.

    Examples:
        >>> from penstock.pattern.parser import parse
        >>> query = parse("PATTERN SEQ(A a, B+ b[]) WHERE a.x > 1 OR a.y > 2, a.x > b[last].x WITHIN 1 s")
        >>> first, second = ast.conjuncts(query.where)
        >>> sorted(names(first)), sorted(names(second))
        ([('a', '')], [('a', ''), ('b', 'last')])
    """
    found: set[tuple[object, ...]] = set()
    for ref in references(expression):
        if isinstance(ref, ast.Attribute):
            found.add((ref.variable, "" if ref.index is None else ref.index))
        else:
            found.add((ref.variable, ref.upto, "sum" if ref.function in ("COUNT", "SUM") else "value"))
    return frozenset(found)


def groups_of(ref: Reference, variable: Variable) -> tuple[int, ...]:
    """Return the repetitions whose rounds a reference ranges over, outermost first; none if it stands for one thing.

    A negated variable in a repeated group is asked about in every round of the group.

    Args:
        ref: an attribute or an aggregate.
        variable: the one that it names.

    Examples:
        >>> from penstock.pattern.parser import parse
        >>> from penstock.pattern.variables import variables
        >>> b = variables(parse("PATTERN (SEQ(A a, B+ b[]))+ WITHIN 1 s").pattern)["b"]
        >>> groups_of(ast.Attribute("b", "x", "i"), b), groups_of(ast.Attribute("b", "x", "last"), b)
        ((1, 2), ())
    """
    if isinstance(ref, ast.Aggregate):
        return variable.groups if ref.upto else ()
    return variable.groups if ref.index in (None, "i", "i-1") else ()
