"""A pattern as the set of its shapes: which places there are, and which must come before which.

A shape is what is left of a pattern when every choice is made: which branch of OR, which members of ANY, how many
rounds of a repetition, whether an option is taken. An assignment puts one event into each place of one shape.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from penstock.pattern import ast
from penstock.reference.events import Forbidden


@dataclass(frozen=True)
class Slot:
    """A place for one event."""

    event: ast.Event
    rounds: tuple[int, ...]


@dataclass(frozen=True)
class Shape:
    """Places, the pairs (earlier, later) of places in order, the lists that are there, the negations that apply."""

    slots: tuple[Slot, ...] = ()
    order: frozenset[tuple[Slot, Slot]] = frozenset()
    lists: frozenset[str] = frozenset()
    forbidden: tuple[Forbidden, ...] = ()


def shapes(pattern: ast.Pattern, most: int, rounds: tuple[int, ...] = ()) -> Iterator[Shape]:
    """Yield the shapes of a pattern that have at most `most` places."""
    match pattern:
        case ast.Event():
            if most >= 1:
                yield Shape((Slot(pattern, rounds),))
        case ast.Negation():
            yield Shape(forbidden=(Forbidden(pattern, rounds),))
        case ast.Option(part=part):
            yield Shape()
            yield from shapes(part, most, rounds)
        case ast.Disjunction(parts=parts):
            for part in parts:
                yield from shapes(part, most, rounds)
        case ast.Sequence(parts=parts):
            yield from _all_of([(part, rounds) for part in parts], most, in_order=True)
        case ast.Conjunction(parts=parts):
            yield from _all_of([(part, rounds) for part in parts], most, in_order=False)
        case ast.AnyOf(count=count, parts=parts):
            for chosen in combinations(parts, count):
                yield from _all_of([(part, rounds) for part in chosen], most, in_order=False)
        case ast.Repetition():
            yield from _repeated(pattern, most, rounds)


def _repeated(pattern: ast.Repetition, most: int, rounds: tuple[int, ...]) -> Iterator[Shape]:
    lists = frozenset(event.variable for event in ast.events(pattern.part))
    high = most if pattern.high is None else min(most, pattern.high)
    for count in range(pattern.low, high + 1):
        every_round = [(pattern.part, (*rounds, number)) for number in range(1, count + 1)]
        for shape in _all_of(every_round, most, in_order=True):
            yield Shape(shape.slots, shape.order, shape.lists | lists, shape.forbidden)


def _all_of(parts: list[tuple[ast.Pattern, tuple[int, ...]]], most: int, in_order: bool) -> Iterator[Shape]:
    if not parts:
        yield Shape()
        return
    (part, rounds), *others = parts
    for first in shapes(part, most, rounds):
        for rest in _all_of(others, most - len(first.slots), in_order):
            between = {(a, b) for a in first.slots for b in rest.slots} if in_order else set()
            yield Shape(
                first.slots + rest.slots,
                first.order | rest.order | between,
                first.lists | rest.lists,
                first.forbidden + rest.forbidden,
            )
