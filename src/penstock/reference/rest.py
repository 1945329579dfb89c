"""What is left of a pattern while a run goes through it, event by event.

`steps` says which variables may take the next event and what is left then; `endings` says in which ways what is left
may be matched by nothing. Both are the textbook derivative of a regular expression, with interleaving for AND and ANY.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import combinations, product
from typing import TypeAlias

from penstock.pattern import ast
from penstock.reference.events import Forbidden

Rounds: TypeAlias = tuple[int, ...]


@dataclass(frozen=True)
class Passed:
    """What a run leaves behind without an event: lists that are there (perhaps of none), negations that apply."""

    lists: frozenset[str] = frozenset()
    forbidden: tuple[Forbidden, ...] = ()

    def __add__(self, other: Passed) -> Passed:
        return Passed(self.lists | other.lists, self.forbidden + other.forbidden)


@dataclass(frozen=True)
class Whole:
    """A pattern of which nothing is matched yet, in a round of the repetitions around it."""

    pattern: ast.Pattern
    rounds: Rounds = ()


@dataclass(frozen=True)
class InOrder:
    """Rests of which each must be done before the next."""

    parts: tuple[Rest, ...] = ()


@dataclass(frozen=True)
class Interleaved:
    """Rests that go on side by side."""

    parts: tuple[Rest, ...]


@dataclass(frozen=True)
class Members:
    """`count` more of these members of ANY."""

    count: int
    parts: tuple[ast.Pattern, ...]
    rounds: Rounds


@dataclass(frozen=True)
class Loop:
    """A repetition before its round `number`."""

    repetition: ast.Repetition
    number: int
    rounds: Rounds


Rest: TypeAlias = Whole | InOrder | Interleaved | Members | Loop


@dataclass(frozen=True)
class Step:
    """An event that may come next, what is left after it and what is passed on the way to it."""

    event: ast.Event
    rounds: Rounds
    rest: Rest
    passed: Passed = Passed()


def _opened(rest: Whole) -> Rest | None:
    """The rest that a composite pattern stands for; None for an event, a negation, an option and OR."""
    match rest.pattern:
        case ast.Sequence(parts=parts):
            return InOrder(tuple(Whole(part, rest.rounds) for part in parts))
        case ast.Conjunction(parts=parts):
            return Interleaved(tuple(Whole(part, rest.rounds) for part in parts))
        case ast.AnyOf(count=count, parts=parts):
            return Members(count, parts, rest.rounds)
        case ast.Repetition() as repetition:
            return Loop(repetition, 1, rest.rounds)
    return None


def _lists(repetition: ast.Repetition) -> Passed:
    return Passed(frozenset(event.variable for event in ast.events(repetition.part)))


def steps(rest: Rest) -> Iterator[Step]:
    """Yield the steps that may come next, in the order of the text."""
    match rest:
        case Whole(pattern=ast.Event() as event, rounds=rounds):
            yield Step(event, rounds, InOrder())
        case Whole(pattern=ast.Option(part=part), rounds=rounds):
            yield from steps(Whole(part, rounds))
        case Whole(pattern=ast.Disjunction(parts=branches), rounds=rounds):
            for branch in branches:
                yield from steps(Whole(branch, rounds))
        case Whole():
            opened = _opened(rest)
            yield from steps(opened) if opened else ()
        case InOrder(parts=(first, *others)):
            for step in steps(first):
                yield Step(step.event, step.rounds, InOrder((step.rest, *others)), step.passed)
            for ending in endings(first):
                for step in steps(InOrder(tuple(others))):
                    yield Step(step.event, step.rounds, step.rest, ending + step.passed)
        case Interleaved(parts=rests):
            for place, one in enumerate(rests):
                for step in steps(one):
                    rest_of_all = (*rests[:place], step.rest, *rests[place + 1 :])
                    yield Step(step.event, step.rounds, Interleaved(rest_of_all), step.passed)
        case Members(count=count, parts=members, rounds=rounds) if count > 0:
            for place, member in enumerate(members):
                others_left = Members(count - 1, (*members[:place], *members[place + 1 :]), rounds)
                for step in steps(Whole(member, rounds)):
                    yield Step(step.event, step.rounds, Interleaved((step.rest, others_left)), step.passed)
        case Loop(repetition=repetition, number=number, rounds=rounds):
            if repetition.high is None or number <= repetition.high:
                later = Loop(repetition, number + 1, rounds)
                for step in steps(Whole(repetition.part, (*rounds, number))):
                    passed = _lists(repetition) + step.passed
                    yield Step(step.event, step.rounds, InOrder((step.rest, later)), passed)


def endings(rest: Rest) -> list[Passed]:
    """Return the ways in which what is left may be matched by no further event; none if it cannot."""
    match rest:
        case Whole(pattern=ast.Event()):
            return []
        case Whole(pattern=ast.Negation() as negation, rounds=rounds):
            return [Passed(forbidden=(Forbidden(negation, rounds),))]
        case Whole(pattern=ast.Option(part=part), rounds=rounds):
            return [Passed(), *endings(Whole(part, rounds))]
        case Whole(pattern=ast.Disjunction(parts=branches), rounds=rounds):
            return [ending for branch in branches for ending in endings(Whole(branch, rounds))]
        case Whole():
            opened = _opened(rest)
            return endings(opened) if opened else []
        case InOrder(parts=parts) | Interleaved(parts=parts):
            return [reduce(Passed.__add__, ways, Passed()) for ways in product(*map(endings, parts))]
        case Members(count=count, parts=members, rounds=rounds):
            chosen = combinations([Whole(member, rounds) for member in members], count)
            return [ending for some in chosen for ending in endings(Interleaved(some))]
        case Loop(repetition=repetition, number=number):
            return [_lists(repetition)] if number > repetition.low else []


def open_variables(rest: Rest, asked: Rounds = ()) -> set[str]:
    """Return the variables to which events may still be bound in a round; in the empty round: in any."""
    match rest:
        case Whole(pattern=ast.Negation()):
            return set()
        case Whole(pattern=pattern, rounds=rounds):
            negated = {n.event.variable for n in ast.walk(pattern) if isinstance(n, ast.Negation)}
            is_asked = rounds[: len(asked)] == asked[: len(rounds)]
            return {event.variable for event in ast.events(pattern)} - negated if is_asked else set()
        case InOrder(parts=parts) | Interleaved(parts=parts):
            return set().union(*(open_variables(part, asked) for part in parts))
        case Members(count=count, parts=members, rounds=rounds):
            return set().union(*(open_variables(Whole(m, rounds), asked) for m in members)) if count else set()
        case Loop(repetition=repetition, number=number, rounds=rounds):
            is_over = repetition.high is not None and number > repetition.high
            is_past = len(asked) > len(rounds) and asked[len(rounds)] < number
            return set() if is_over or is_past else open_variables(Whole(repetition.part, rounds), asked)
