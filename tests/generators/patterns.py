"""Random patterns: every construct inside every other, as far as docs/language.md, section 2, allows it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain, count
from string import ascii_lowercase

from penstock.pattern import ast
from tests.generators.choices import Choices
from tests.generators.profile import Profile

TYPES = ("A", "B", "C", "D")
MAX_DEPTH = 4

_SIZES = (1, 2, 2, 3, 3, 4, 5, 4)
_LIKELY_TYPES = ("A", "B", "C", "D", "A", "B")
_BOUNDS: tuple[tuple[int, int | None], ...] = (
    (1, None), (1, 2), (2, 2), (1, None), (2, 3), (1, None), (2, None), (1, 1), (1, 3), (3, 3), (2, None),
)  # fmt: skip
_BOUNDS_WITH_NONE: tuple[tuple[int, int | None], ...] = (*_BOUNDS, *((0, None), (0, 1), (0, 2), (0, None)) * 4)
# What a leaf and a larger part become, if they must bind an event and if they need not.
_LEAVES = ("event",) * 14 + ("repetition",) * 5 + ("group",) * 2
_FREE_LEAVES = ("event",) * 6 + ("repetition",) * 5 + ("option",) * 6 + ("group",) * 3
_GROUPS = ("sequence",) * 7 + ("and",) * 3 + ("or",) * 3 + ("any",) * 3 + ("repetition",) * 4
_FREE_GROUPS = (*_GROUPS[:16], "or", "or", "or") + ("repetition",) * 9 + ("option",) * 9
# In how many of 100 places of a SEQ a negation stands: at its ends and between its parts, if it is the whole pattern
# and if it is inside something else.
_IN_THE_WHOLE = (11, 16)
_INSIDE = (18, 45)


@dataclass(frozen=True)
class Place:
    """Where a part stands: whether it must bind an event, and whether a negation may be its first or last part."""

    must_bind: bool = True
    may_lead: bool = True
    may_trail: bool = True


IN_GROUP = Place(may_lead=False, may_trail=False)


class Patterns:
    """Draws one pattern; its variables are called a, b, c, … in the order of the text."""

    def __init__(self, choices: Choices, profile: Profile) -> None:
        self._choices = choices
        self._profile = profile
        self._names = chain(ascii_lowercase, (f"v{number}" for number in count(1)))
        self._types = [name for name in _LIKELY_TYPES if name in TYPES[: profile.types]]

    def pattern(self) -> ast.Pattern:
        """Return a pattern that needs at least one event."""
        top = self._profile.top
        sizes = [size for size in _SIZES if (1 if top is None else 2) <= size <= self._profile.leaves]
        leaves = self._choices.pick(sizes)
        return self._part(leaves, Place(), 0) if top is None else self._group(top, self._split(leaves), Place(), 0)

    def event(self) -> ast.Event:
        """Return an event with a new variable."""
        kind = self._choices.below(12)
        types: tuple[str, ...] = (self._choices.pick(self._types),)
        if kind == 11 and self._profile.wildcard:
            types = ()
        elif kind >= 9:
            types = tuple(self._choices.shuffled(TYPES[: self._profile.types])[:2])
        return ast.Event(types, next(self._names))

    def _part(self, leaves: int, place: Place, depth: int) -> ast.Pattern:
        if leaves == 1:
            return self._leaf(place, depth)
        kind = self._kind(_GROUPS if place.must_bind else _FREE_GROUPS, depth)
        if kind in ("repetition", "option"):
            return self._wrapped(kind, leaves, place, depth)
        return self._group(kind, self._split(leaves), place, depth)

    def _leaf(self, place: Place, depth: int) -> ast.Pattern:
        kind = self._kind(_LEAVES if place.must_bind else _FREE_LEAVES, depth)
        if kind == "group":
            return self._group(self._choices.pick(("sequence", "sequence", "and", "or", "any")), [1], place, depth)
        if kind in ("repetition", "option"):
            return self._wrapped(kind, 1, place, depth)
        return self.event()

    def _kind(self, kinds: tuple[str, ...], depth: int) -> str:
        kind = self._choices.pick(kinds + ("repetition",) * 5 * (self._profile.repetition - 1))
        is_refused = kind in ("repetition", "option") and not self._profile.repetition
        return kinds[0] if depth >= MAX_DEPTH or is_refused else kind

    def _wrapped(self, kind: str, leaves: int, place: Place, depth: int) -> ast.Pattern:
        if kind == "option":
            return ast.Option(self._part(leaves, place, depth + 1))
        low, high = self._choices.pick(_BOUNDS if place.must_bind else _BOUNDS_WITH_NONE)
        return ast.Repetition(self._part(leaves, IN_GROUP, depth + 1), low, high)

    def _split(self, leaves: int) -> list[int]:
        """Cut a number of leaves into those of two or three parts."""
        first = 1 + self._choices.below(leaves - 1)
        rest = leaves - first
        if rest > 1 and self._choices.chance(50):
            second = 1 + self._choices.below(rest - 1)
            return [first, second, rest - second]
        return [first, rest]

    def _group(self, kind: str, sizes: list[int], place: Place, depth: int) -> ast.Pattern:
        if kind == "sequence":
            return self._sequence(sizes, place, depth)
        if kind == "or":
            return ast.Disjunction(tuple(self._part(size, place, depth + 1) for size in sizes))
        if kind == "any":
            parts = tuple(self._part(size, IN_GROUP, depth + 1) for size in sizes)
            return ast.AnyOf(1 + self._choices.below(len(parts)), parts)
        places = [replace(IN_GROUP, must_bind=must) for must in self._must_bind(len(sizes), place)]
        return ast.Conjunction(tuple(map(self._part, sizes, places, [depth + 1] * len(sizes))))

    def _must_bind(self, count: int, place: Place) -> list[bool]:
        """Choose which parts must bind an event; at least one of them if the whole must."""
        free = [self._choices.chance(40) for _ in range(count)]
        if place.must_bind and all(free):
            free[self._choices.below(count)] = False
        return [not each for each in free]

    def _sequence(self, sizes: list[int], place: Place, depth: int) -> ast.Pattern:
        musts = self._must_bind(len(sizes), place)
        parts: list[ast.Pattern] = []
        for number in range(len(sizes) + 1):
            may_lead = place.may_lead or any(musts[:number])
            if may_lead and (place.may_trail or any(musts[number:])):
                at_an_end, between = _INSIDE if depth else _IN_THE_WHOLE
                parts += self._negations(between if 0 < number < len(sizes) else at_an_end)
            if number < len(sizes):
                may_trail = place.may_trail or any(musts[number + 1 :])
                parts.append(self._part(sizes[number], Place(musts[number], may_lead, may_trail), depth + 1))
        return ast.Sequence(tuple(parts))

    def _negations(self, percent: int) -> Iterator[ast.Negation]:
        for _ in range(2):
            if not self._choices.chance(min(percent * self._profile.negation, 60)):
                break
            yield ast.Negation(self.event())


def walk(pattern: ast.Pattern, choices: Choices) -> list[str]:
    """Return the types of events that would match a pattern, in order, for a stream that holds a match."""
    match pattern:
        case ast.Event(types=types):
            return [choices.pick(types or TYPES)]
        case ast.Sequence(parts=parts):
            return [type_ for part in parts for type_ in walk(part, choices)]
        case ast.Conjunction(parts=parts):
            return [type_ for part in choices.shuffled(parts) for type_ in walk(part, choices)]
        case ast.AnyOf(count=count, parts=parts):
            return [type_ for part in choices.shuffled(parts)[:count] for type_ in walk(part, choices)]
        case ast.Disjunction(parts=parts):
            return walk(choices.pick(parts), choices)
        case ast.Option(part=part):
            return walk(part, choices) if choices.chance(50) else []
        case ast.Repetition(part=part, low=low, high=high):
            rounds = low + choices.below(3 if high is None else min(3, high - low + 1))
            return [type_ for _ in range(rounds) for type_ in walk(part, choices)]
    return []
