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
        for binding in _fill(shape, asked, world, window, Binding((), shape.lists, shape.forbidden)):
            if not any(
                asked.negations.is_violated(f, binding, world, asked.negations.span(f, binding, world, window))
                for f in binding.forbidden
            ):
                yield binding


def _fill(shape: Shape, asked: Question, world: World, window: range, partial: Binding) -> Iterator[Binding]:
    """Put events into the places that are left, first place first, and drop what cannot become a match."""
    filled = len(partial.bound)
    if not _conjuncts_hold(shape, asked, world, partial):
        return
    if filled == len(shape.slots):
        yield partial
        return
    slot = shape.slots[filled]
    for at in _candidates(slot, shape, asked, world, window, partial):
        bound = Bound(slot.event.variable, slot.rounds, at)
        yield from _fill(shape, asked, world, window, Binding((*partial.bound, bound), shape.lists, shape.forbidden))


def _conjuncts_hold(shape: Shape, asked: Question, world: World, partial: Binding) -> bool:
    """Return whether the conjuncts hold whose variables have just got all their events."""
    filled = len(partial.bound)
    to_come = {slot.event.variable for slot in shape.slots[filled:]}
    newest = {partial.bound[-1].variable} if partial.bound else set()
    for conjunct in asked.conjuncts:
        named = set(ast.variables_of(conjunct))
        is_due = isinstance(conjunct, ast.Same) or (named & newest and not named & to_come)
        if (is_due or filled == len(shape.slots)) and not holds(conjunct, partial, world):
            return False
    return True


def _candidates(
    slot: Slot, shape: Shape, asked: Question, world: World, window: range, partial: Binding
) -> Iterator[int]:
    """Yield the events of the slot's type that are in order and in reach of those already placed."""
    placed = dict(zip(shape.slots, (b.at for b in partial.bound), strict=False))
    low, high = window.start, window.stop
    for at in placed.values():
        low = max(low, world.stream.reach_back(at, asked.within))
        high = min(high, world.stream.reach_on(at, asked.within))
    for other, at in placed.items():
        if (other, slot) in shape.order:
            low = max(low, at + 1)
        if (slot, other) in shape.order:
            high = min(high, at)
    used = set(placed.values())
    return (at for at in world.stream.of_types(slot.event.types, low, max(low, high)) if at not in used)
