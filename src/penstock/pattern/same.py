"""SAME as equalities of pairs.

`SAME[x]` says that x is equal over all events of a match. Written as conjuncts of two variables each:

- Two variables: `a.x = b.x`, for *every* pair. A chain `a = b, b = c` would lose a link where b is unbound (OR, ANY,
  `?`); a pair with an unbound variable is vacuous, and what is left still links all that are bound.
- A list: `b[i].x = b[i-1].x`. Neighbours over all rounds, so all elements are equal; vacuous for the first.
- A list and another variable: `a.x = b[first].x`. Vacuous for an empty list, and enough for any other, as its
  elements are equal among themselves. Nothing here ranges over rounds but a list alone, so lists side by side,
  nested or in one group are all alike, and a round that does not bind a variable does not matter.
- A negated variable n: `n.x = a.x` with *one* variable a that is bound wherever n is asked about. The bound events
  are equal anyway, so what equals one equals all; and a run can tell as soon as the nearest is bound. If no variable
  is sure to be bound, with each. Never with another negated one.

One event alone is equal to itself, even if its x is missing; of two, a missing x makes the equality false.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations

from penstock.pattern import ast
from penstock.pattern.variables import Variable


def equalities(same: ast.Same, pattern: ast.Pattern, scope: Mapping[str, Variable]) -> list[ast.Expression]:
    """Return conjuncts that say together what SAME says.

    Args:
        same: the conjunct.
        pattern: the pattern of its query.
        scope: the pattern's variables.

    Examples:
        >>> from penstock.pattern.parser import parse
        >>> from penstock.pattern.render import render_expression
        >>> from penstock.pattern.variables import variables
        >>> pattern = parse("PATTERN SEQ(A a, NOT B b, C+ c[]) WITHIN 1 s").pattern
        >>> for each in equalities(ast.Same((ast.SameKey("x"),)), pattern, variables(pattern)):
        ...     print(render_expression(each))
        c[i].x = c[i-1].x
        a.x = c[first].x
        b.x = a.x
    """
    positive = [name for name, variable in scope.items() if not variable.negated]
    pairs: list[tuple[str, ast.Index, str, ast.Index]] = [
        (name, "i", name, "i-1") for name in positive if scope[name].is_list
    ]
    pairs += [(one, _index(scope[one]), other, _index(scope[other])) for one, other in combinations(positive, 2)]
    for name in (name for name, variable in scope.items() if variable.negated):
        anchor = _anchor(pattern, name)
        pairs += [(name, None, other, _index(scope[other])) for other in ([anchor] if anchor else positive)]
    return [
        ast.Comparison("=", _key(key, one, at), _key(key, other, there), position=same.position)
        for key in same.keys
        for one, at, other, there in pairs
    ]


def _index(variable: Variable) -> ast.Index:
    return "first" if variable.is_list else None


def _key(key: ast.SameKey, variable: str, index: ast.Index) -> ast.Expression:
    attribute = ast.Attribute(variable, key.attribute, index, position=key.position)
    return attribute if key.function is None else ast.Call(key.function, (attribute,), position=key.position)


def _anchor(pattern: ast.Pattern, negated: str) -> str | None:
    """Return the nearest variable that is bound wherever a negation is asked about, one before it if there is one."""
    before: list[str] = []
    after: list[str] = []
    elsewhere: list[str] = []
    for parent, index in reversed(_path(pattern, negated) or []):
        if isinstance(parent, ast.Sequence):
            before += reversed([name for part in parent.parts[:index] for name in _sure(part)])
            after += [name for part in parent.parts[index + 1 :] for name in _sure(part)]
        elif isinstance(parent, ast.Conjunction):
            others = parent.parts[:index] + parent.parts[index + 1 :]
            elsewhere += [name for part in others for name in _sure(part)]
    return next(iter([*before, *after, *elsewhere]), None)


def _path(node: ast.Node, negated: str) -> list[tuple[ast.Node, int]] | None:
    """Return the nodes around a negation, outermost first, and which of their parts leads to it."""
    if isinstance(node, ast.Negation):
        return [] if node.event.variable == negated else None
    for index, child in enumerate(ast.children(node)):
        path = _path(child, negated)
        if path is not None:
            return [(node, index), *path]
    return None


def _sure(pattern: ast.Pattern) -> Iterator[str]:
    """Yield the variables that are bound by every match of a pattern."""
    match pattern:
        case ast.Event(variable=variable):
            yield variable
        case ast.Sequence(parts=parts) | ast.Conjunction(parts=parts):
            for part in parts:
                yield from _sure(part)
        case ast.AnyOf(count=count, parts=parts) if count == len(parts):
            for part in parts:
                yield from _sure(part)
        case ast.Repetition(part=part, low=low) if low > 0:
            yield from _sure(part)
