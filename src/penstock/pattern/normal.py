"""The normal form of a query's conditions: explicit, without constants, a conjunct at a time.

For programs that want to know what a query asks for; the plan works from WHERE itself. Each pass below keeps the
matches as they are:

1. `SAME` becomes equalities of pairs.
2. `b.x` of a list becomes `b[i].x`.
3. Constants are folded, durations become microseconds (`penstock.pattern.folding`).
4. What is true is dropped, what is said twice is said once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from penstock.pattern import ast
from penstock.pattern.folding import fold
from penstock.pattern.references import groups_of, names, references
from penstock.pattern.same import equalities
from penstock.pattern.variables import Variable, variables


@dataclass(frozen=True)
class Conjunct:
    """One condition of a normal form.

    Args:
        expression: the condition; it holds no SAME, no duration and no list without an index.
        variables: the variables that it names, in the order of its text.
        negated: the negated variable among them, if there is one: the conjunct says which events forbid.
        groups: the repetitions whose rounds it ranges over, outermost first, by their number in
            `penstock.pattern.variables`; it is asked once per round of the innermost.
    """

    expression: ast.Expression
    variables: tuple[str, ...]
    negated: str | None = None
    groups: tuple[int, ...] = ()


@dataclass(frozen=True)
class Normal:
    """A query in normal form.

    Args:
        query: the query as it was given; everything but its conditions counts.
        conjuncts: WHERE.
        opening: the WHERE of WINDOW … ON.
    """

    query: ast.Query
    conjuncts: tuple[Conjunct, ...]
    opening: tuple[Conjunct, ...] = ()


def normalize(query: ast.Query) -> Normal:
    """Return the normal form of a valid query. RETURN stays as it is: its text names its columns.

    Args:
        query: a query in which `validate` finds no problem.

    Examples:
        >>> from penstock.pattern.parser import parse
        >>> normal = normalize(parse("PATTERN SEQ(A a, NOT B b, C+ c[]) WHERE SAME[id], c.x > 2 * 5 s WITHIN 1 h"))
        >>> for conjunct in normal.conjuncts:
        ...     print(conjunct.variables, conjunct.negated, conjunct.groups)
        ('c',) None (1,)
        ('a', 'c') None ()
        ('b', 'a') b ()
        ('c',) None (1,)
        >>> normal.conjuncts[-1].expression.right
        Number(value=10000000)
    """
    scope = variables(query.pattern)
    on = query.window.on if query.window else None
    own = {on.event.variable: Variable(on.event, (), negated=False)} if on else {}
    return Normal(
        query,
        _conjuncts(query.where, query.pattern, scope),
        _conjuncts(on.where, on.event, own) if on else (),
    )


def as_query(normal: Normal) -> ast.Query:
    """Return a query that says what a normal form says.

    Examples:
        >>> from penstock.pattern.parser import parse
        >>> query = parse("PATTERN SEQ(A a, B b) WHERE a.x < 2 + 3 AND TRUE WITHIN 1 s")
        >>> as_query(normalize(query)) == parse("PATTERN SEQ(A a, B b) WHERE a.x < 5 WITHIN 1 s")
        True
    """
    query, window = normal.query, normal.query.window
    if window is not None and window.on is not None:
        window = replace(window, on=replace(window.on, where=_joined(normal.opening)))
    return replace(query, where=_joined(normal.conjuncts), window=window, source=None)


def _joined(conjuncts: tuple[Conjunct, ...]) -> ast.Expression | None:
    items = tuple(conjunct.expression for conjunct in conjuncts)
    return ast.And(items) if len(items) > 1 else items[0] if items else None


def _conjuncts(
    where: ast.Expression | None, pattern: ast.Pattern, scope: Mapping[str, Variable]
) -> tuple[Conjunct, ...]:
    found: list[ast.Expression] = []
    for conjunct in ast.conjuncts(where):
        if isinstance(conjunct, ast.Same):
            found += equalities(conjunct, pattern, scope)
        else:
            found += _split(fold(_indexed(conjunct, scope)))
    said = dict.fromkeys(each for each in found if each != ast.Boolean(True))
    return tuple(_conjunct(each, scope) for each in said)


def _conjunct(expression: ast.Expression, scope: Mapping[str, Variable]) -> Conjunct:
    named = ast.variables_of(expression)
    negated = next((name for name in named if scope[name].negated), None)
    ranges = (groups_of(ref, scope[ref.variable]) for ref in references(expression))
    return Conjunct(expression, named, negated, max(ranges, key=len, default=()))


def _split(expression: ast.Expression) -> Iterator[ast.Expression]:
    """Yield the conjuncts that say together what one conjunct says.

    Folding may bring an AND to the top: `(a.x > 1 AND b.x > 2) OR 1 > 2`. As two conjuncts it would apply where only
    one of a and b is there; as one it must not look like two, hence the double negation.
    """
    if not isinstance(expression, ast.And):
        yield expression
    elif len({names(item) for item in expression.items}) == 1:
        for item in expression.items:
            yield from _split(item)
    else:
        yield ast.Not(ast.Not(expression, position=expression.position), position=expression.position)


def _indexed(node: Any, scope: Mapping[str, Variable]) -> Any:
    """Return an expression in which each element of a list has its index, and no negated event has one."""
    if isinstance(node, ast.Attribute):
        variable = scope[node.variable]
        if variable.negated:
            return replace(node, index=None)
        return replace(node, index="i") if variable.is_list and node.index is None else node
    if isinstance(node, tuple):
        return tuple(_indexed(item, scope) for item in node)
    if isinstance(node, ast.Node):
        changed = {name: _indexed(value, scope) for name, value in vars(node).items() if name != "position"}
        return replace(node, **changed)
    return node
