"""Queries that begin alike, as one query: SEQ(A a, B b, C c) and SEQ(A a, B b, D d) are SEQ(A a, B b, OR(C c, D d)).

Under EACH without consumption a run stays when something is taken from it. So the runs of a common beginning are the
same for all queries that have it, and what follows it are branches of an OR: conditions that name a variable of another
branch say nothing. Each query has at least its last step to itself, so the last event of a match tells whose it is.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

from penstock.pattern import ast
from penstock.plan.callees import names_called

_N = TypeVar("_N", bound=ast.Node)


@dataclass(frozen=True)
class Merged:
    """One query for several.

    Attributes:
        query: it. Its variables have names of their own.
        members: the places of the queries that it is for.
        names: of each of them, what its variables are called here, in the order of its text.
    """

    query: ast.Query
    members: tuple[int, ...]
    names: tuple[tuple[str, ...], ...]


def merged_queries(queries: Sequence[ast.Query]) -> list[Merged]:
    """Return the queries that begin with the same step, and agree in all clauses, as one query each time.

    Examples:
        >>> import penstock as pk
        >>> texts = "SEQ(A a, B b) WHERE a.v < b.v WITHIN 1 s", "SEQ(A x, C c) WITHIN 1 s"
        >>> (merged,) = merged_queries([pk.parse(f"PATTERN {text}") for text in texts])
        >>> print(pk.render(merged.query))
        PATTERN SEQ(A a_0, OR(B b_1, C c_2))
        WHERE a_0.v < b_1.v
        WITHIN 1 s
        >>> merged.names
        (('a_0', 'b_1'), ('a_0', 'c_2'))
    """
    alike: dict[Hashable, list[_Steps]] = {}
    for place, query in enumerate(queries):
        if why_alone(query) is None:
            steps = _Steps(place, query)
            alike.setdefault((steps.clauses, steps.key(0)), []).append(steps)
    return [_Merging(members).merged() for members in alike.values() if len(members) > 1]


def why_alone(query: ast.Query) -> str | None:
    """Return why a query shares no beginning with others; None if it may."""
    pattern, nodes = query.pattern, [] if query.where is None else list(ast.walk(query.where))
    if query.select != ast.Select() or query.consume != ast.Consume():
        return "only under EACH without consumption are runs the same for all"
    if query.returns or query.limit is not None or (query.window is not None and query.window.distinct):
        return "its matches are worked on one by one"
    if not isinstance(pattern, ast.Sequence) or may_be_empty(pattern.parts[-1]):
        return "it is no sequence with a last step that is always there"
    if any(isinstance(node, ast.Negation) for node in ast.walk(pattern)):
        return "it has a negation"
    if any(names_called(query)):
        return "it calls a function or a remote source"
    if query.partition and isinstance(query.within, ast.CountSpan):
        return "with PARTITION BY, WITHIN n EVENTS says nothing about partitions that get no more events"
    is_same_on_top = sum(isinstance(each, ast.Same) for each in ast.conjuncts(query.where))
    if is_same_on_top < sum(isinstance(node, ast.Same) for node in nodes):
        return "SAME is part of another condition"
    return None


def may_be_empty(part: ast.Pattern) -> bool:
    """Return whether a part of a pattern may be matched by no event."""
    match part:
        case ast.Option():
            return True
        case ast.Repetition(part=inner, low=low):
            return low == 0 or may_be_empty(inner)
        case ast.Sequence(parts=parts) | ast.Conjunction(parts=parts):
            return all(map(may_be_empty, parts))
        case ast.Disjunction(parts=parts) | ast.AnyOf(parts=parts):
            return any(map(may_be_empty, parts))
        case _:
            return False


def renamed(node: _N, names: Mapping[str, str]) -> _N:
    """Return a part of a query with other names for its variables."""
    changed: dict[str, Any] = {"position": None}
    for each in fields(node):
        value = getattr(node, each.name)
        if isinstance(value, ast.Node):
            changed[each.name] = renamed(value, names)
        elif isinstance(value, tuple):
            changed[each.name] = tuple(renamed(v, names) if isinstance(v, ast.Node) else v for v in value)
        elif each.name == "variable":
            changed[each.name] = names[value]
    return replace(node, **changed)


class _Steps:
    """A query as steps, each with the conditions that name its variables and none of later ones."""

    def __init__(self, place: int, query: ast.Query) -> None:
        assert isinstance(query.pattern, ast.Sequence)
        self.place, self.query, self.parts = place, query, query.pattern.parts
        of = {event.variable: step for step, part in enumerate(self.parts) for event in ast.events(part)}
        self.variables = tuple(of)
        self.conjuncts: list[list[ast.Expression]] = [[] for _ in self.parts]
        self.others: list[ast.Expression] = []  # those that name no variable: of all, as SAME
        for conjunct in ast.conjuncts(query.where):
            named = [of[name] for name in ast.variables_of(conjunct)]
            (self.conjuncts[max(named)] if named else self.others).append(conjunct)
        self._by_number = {name: str(number) for number, name in enumerate(self.variables)}

    @property
    def clauses(self) -> Hashable:
        """All that must be the same beside the steps."""
        query = self.query
        return query.within, query.partition, query.window, frozenset(self.others)

    def key(self, step: int) -> Hashable:
        """What must be the same for a step to be common; the last one never is."""
        if step == len(self.parts) - 1:
            return self.place
        conjuncts = frozenset(renamed(each, self._by_number) for each in self.conjuncts[step])
        return renamed(self.parts[step], self._by_number), conjuncts


class _Merging:
    """Puts queries together whose first steps are the same."""

    def __init__(self, members: list[_Steps]) -> None:
        self.members = members
        self.names: dict[int, dict[str, str]] = {each.place: {} for each in members}
        self.count = 0  # variables
        self.conjuncts: list[ast.Expression] = list(members[0].others)

    def merged(self) -> Merged:
        pattern = _one(self.parts(self.members, 0))
        conjuncts = tuple(self.conjuncts)
        where = (conjuncts[0] if len(conjuncts) == 1 else ast.And(conjuncts)) if conjuncts else None
        query = replace(self.members[0].query, pattern=pattern, where=where, name=None, source=None)
        names = tuple(tuple(self.names[each.place][name] for name in each.variables) for each in self.members)
        return Merged(query, tuple(each.place for each in self.members), names)

    def parts(self, members: list[_Steps], step: int) -> tuple[ast.Pattern, ...]:
        """Return the steps from one on, of queries whose earlier steps are common."""
        if step == len(members[0].parts):
            return ()
        alike: dict[Hashable, list[_Steps]] = {}
        for each in members:
            alike.setdefault(each.key(step), []).append(each)
        if len(alike) > 1:
            return (ast.Disjunction(tuple(_one(self.parts(some, step)) for some in alike.values())),)
        return (self.step(members, step), *self.parts(members, step + 1))

    def step(self, members: list[_Steps], step: int) -> ast.Pattern:
        """Return a step of one or more queries; name its variables, and add its conditions."""
        for variables in zip(*([e.variable for e in ast.events(each.parts[step])] for each in members), strict=True):
            for each, variable in zip(members, variables, strict=True):
                self.names[each.place][variable] = f"{variables[0]}_{self.count}"
            self.count += 1
        first = members[0]
        self.conjuncts += [renamed(each, self.names[first.place]) for each in first.conjuncts[step]]
        return renamed(first.parts[step], self.names[first.place])


def _one(parts: tuple[ast.Pattern, ...]) -> ast.Pattern:
    return parts[0] if len(parts) == 1 else ast.Sequence(parts)
