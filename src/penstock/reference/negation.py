"""Negation: is there an event where none may be? (docs/language.md, section 2)"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from penstock.pattern import ast
from penstock.reference.conditions import World, forbids
from penstock.reference.events import Binding, Bound, Forbidden


@dataclass(frozen=True)
class Neighbours:
    """The variables in sequence before and after a negation, each with the repetitions that it shares with it."""

    before: dict[str, int]
    after: dict[str, int]


def _neighbours(pattern: ast.Pattern, negation: ast.Negation) -> Neighbours:
    """Return what the sequences around a negation put before and after it."""
    found = Neighbours({}, {})
    repetitions = 0
    for parent, child in _path(pattern, negation):
        repetitions += isinstance(parent, ast.Repetition)
        if isinstance(parent, ast.Sequence):
            place = [part is child for part in parent.parts].index(True)
            for part in parent.parts[:place]:
                found.before.update(dict.fromkeys(_bindable(part), repetitions))
            for part in parent.parts[place + 1 :]:
                found.after.update(dict.fromkeys(_bindable(part), repetitions))
    return found


def _path(pattern: ast.Node, target: ast.Node) -> list[tuple[ast.Node, ast.Node]]:
    """The (parent, child) pairs from the top down to a node; empty if it is not below."""
    for child in ast.children(pattern):
        if child is target:
            return [(pattern, child)]
        below = _path(child, target)
        if below:
            return [(pattern, child), *below]
    return []


def _bindable(pattern: ast.Pattern) -> Iterator[str]:
    if isinstance(pattern, ast.Event):
        yield pattern.variable
    elif not isinstance(pattern, ast.Negation):
        for child in ast.children(pattern):
            yield from _bindable(child)  # type: ignore[arg-type]  # below a pattern there are only patterns


def _bound_to(variables: dict[str, int], binding: Binding, rounds: tuple[int, ...]) -> list[int]:
    """The events bound to these variables, in the same round of the repetitions that they share with the negation."""
    return sorted(
        b.at
        for b in binding.bound
        if b.variable in variables and b.rounds[: variables[b.variable]] == rounds[: variables[b.variable]]
    )


@dataclass(frozen=True)
class Negations:
    """The negations of a query, ready to be asked about bindings.

    `naming` holds, per negated variable, the conjuncts that name it (SAME names them all), `around` its neighbours.
    """

    within: ast.Span
    naming: Mapping[str, tuple[ast.Expression, ...]]
    around: Mapping[str, Neighbours]

    def is_leading(self, forbidden: Forbidden, binding: Binding) -> bool:
        """Return whether no event is bound before it."""
        return not self._bound_before(forbidden, binding)

    def is_trailing(self, forbidden: Forbidden, binding: Binding) -> bool:
        """Return whether no event is bound after it."""
        return not self._bound_after(forbidden, binding)

    def span(self, forbidden: Forbidden, binding: Binding, world: World, window: range) -> range:
        """Return the positions at which no such event may be."""
        before, after = self._bound_before(forbidden, binding), self._bound_after(forbidden, binding)
        first, last = binding.positions[0], binding.positions[-1]
        low = before[-1] + 1 if before else world.stream.reach_back(last, self.within)
        high = after[0] if after else world.stream.reach_on(first, self.within)
        return range(max(low, window.start), min(high, window.stop))

    def is_violated(self, forbidden: Forbidden, binding: Binding, world: World, span: range) -> bool:
        """Return whether an event in the span satisfies all conjuncts that name the negated variable."""
        event = forbidden.negation.event
        return any(
            all(
                forbids(conjunct, binding, world, Bound(event.variable, forbidden.rounds, at))
                for conjunct in self.naming[event.variable]
            )
            for at in world.stream.of_types(event.types, span.start, max(span.start, span.stop))
        )

    def _bound_before(self, forbidden: Forbidden, binding: Binding) -> list[int]:
        return _bound_to(self.around[forbidden.negation.event.variable].before, binding, forbidden.rounds)

    def _bound_after(self, forbidden: Forbidden, binding: Binding) -> list[int]:
        return _bound_to(self.around[forbidden.negation.event.variable].after, binding, forbidden.rounds)


def negations(query: ast.Query, within: ast.Span) -> Negations:
    """Gather the negations of a query."""
    found = [node for node in ast.walk(query.pattern) if isinstance(node, ast.Negation)]
    conjuncts = ast.conjuncts(query.where)
    naming = {
        n.event.variable: tuple(
            c for c in conjuncts if isinstance(c, ast.Same) or n.event.variable in ast.variables_of(c)
        )
        for n in found
    }
    return Negations(within, naming, {n.event.variable: _neighbours(query.pattern, n) for n in found})
