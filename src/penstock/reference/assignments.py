"""SELECT EACH, the declarative base: put events into the places of every shape, keep what satisfies the query."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from penstock.pattern import ast
from penstock.pattern.variables import variables
from penstock.reference.conditions import World, holds
from penstock.reference.events import Binding, Bound
from penstock.reference.negation import Negations, negations
from penstock.reference.shapes import Shape, Slot, shapes


@dataclass(frozen=True)
class Known:
    """A match and when it becomes known, in the order of the stream."""

    binding: Binding
    when: tuple[float, float]


@dataclass(frozen=True)
class Question:
    """A query taken apart: its pattern, WITHIN, and WHERE as conjuncts on the match and on negated variables."""

    pattern: ast.Pattern
    within: ast.Span
    conjuncts: tuple[ast.Expression, ...]
    negations: Negations

    def known(self, binding: Binding, world: World, at: float | None) -> Known:
        """Return a match with the moment at which it becomes known.

        That is at the event at a position (or, between two positions, just before one), unless only the end of its
        span can tell: if `at` is None, or if a negation waits for it.
        """
        events, first = world.stream.events, binding.positions[0]
        if at is not None and not any(self.negations.is_trailing(f, binding) for f in binding.forbidden):
            return Known(binding, (events[math.ceil(at)].ts, at))
        if isinstance(self.within, ast.TimeSpan):
            return Known(binding, (events[first].ts + self.within.us, math.inf))
        last = first + self.within.events - 1
        return Known(binding, (events[last].ts if last < len(events) else math.inf, last + 0.5))


def question(query: ast.Query) -> Question:
    """Take a query apart."""
    assert query.within is not None, "validate the query first"
    known = variables(query.pattern)
    positive = tuple(
        conjunct
        for conjunct in ast.conjuncts(query.where)
        if not any(known[name].negated for name in ast.variables_of(conjunct))
    )
    return Question(query.pattern, query.within, positive, negations(query, query.within))


def assignments(asked: Question, world: World, window: range) -> Iterator[Binding]:
    """Yield every assignment of a window's events that satisfies the query; one may come more than once."""
    longest = max((world.stream.reach_on(at, asked.within) - at for at in window), default=0)
    for shape in shapes(asked.pattern, most=min(longest, len(window))):
        filling = _Filling(shape, _due(shape, asked.conjuncts), asked.within, world, window)
        for binding in filling.bindings(Binding((), shape.lists, shape.forbidden)):
            if not any(
                asked.negations.is_violated(f, binding, world, asked.negations.span(f, binding, world, window))
                for f in binding.forbidden
            ):
                yield binding


def _due(shape: Shape, conjuncts: tuple[ast.Expression, ...]) -> list[list[ast.Expression]]:
    """Return, by the number of places that are filled, the conjuncts whose variables have then got all their events.

    SAME can be asked at any number. What names no place of the shape is asked at the end.
    """
    due: list[list[ast.Expression]] = [[] for _ in range(len(shape.slots) + 1)]
    for conjunct in conjuncts:
        named = ast.variables_of(conjunct)
        places = [number for number, slot in enumerate(shape.slots, start=1) if slot.event.variable in named]
        when = range(1, len(due)) if isinstance(conjunct, ast.Same) else [max(places, default=len(shape.slots))]
        for number in when:
            due[number].append(conjunct)
    return due


@dataclass(frozen=True)
class _Filling:
    """The search for events that fit into the places of a shape, first place first. `due` is from `_due`."""

    shape: Shape
    due: list[list[ast.Expression]]
    within: ast.Span
    world: World
    window: range

    def bindings(self, partial: Binding) -> Iterator[Binding]:
        """Put events into the places that are left, and drop what cannot become a match."""
        filled = len(partial.bound)
        if not all(holds(conjunct, partial, self.world) for conjunct in self.due[filled]):
            return
        if filled == len(self.shape.slots):
            yield partial
            return
        slot = self.shape.slots[filled]
        for at in self._candidates(slot, partial):
            bound = Bound(slot.event.variable, slot.rounds, at)
            yield from self.bindings(Binding((*partial.bound, bound), partial.lists, partial.forbidden))

    def _candidates(self, slot: Slot, partial: Binding) -> Iterator[int]:
        """Yield the events of the slot's type that are in order and in reach of those already placed."""
        placed = dict(zip(self.shape.slots, (b.at for b in partial.bound), strict=False))
        low, high = self.window.start, self.window.stop
        for at in placed.values():
            low = max(low, self.world.stream.reach_back(at, self.within))
            high = min(high, self.world.stream.reach_on(at, self.within))
        for other, at in placed.items():
            if (other, slot) in self.shape.order:
                low = max(low, at + 1)
            if (slot, other) in self.shape.order:
                high = min(high, at)
        used = set(placed.values())
        return (at for at in self.world.stream.of_types(slot.event.types, low, max(low, high)) if at not in used)
