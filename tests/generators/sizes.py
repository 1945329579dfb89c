"""How long a stream may be so that the reference matcher, which tries everything, is done with it soon.

It fills the places of every shape one after the other, so its work is the number of partly filled shapes. That number
follows from polynomials in the number of events, which are built along the pattern.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from math import comb

from penstock.pattern import ast
from penstock.reference.events import Event
from penstock.testing import SECOND_US
from tests.generators.streams import MAX_EVENTS

MAX_WORK = 1000
MIN_EVENTS = 3

Counts = tuple[float, ...]  # by the number of events that are placed
Share = Callable[[tuple[str, ...]], float]


def cut(query: ast.Query, events: list[Event]) -> list[Event]:
    """Return as much of a stream as the reference matcher can take."""
    counts = Counter(event.type for event in events)

    def share(types: tuple[str, ...]) -> float:
        return sum(counts[name] for name in types) / len(events) if types else 1.0

    windows = 1 if query.window is None else 3
    for length in range(len(events), MIN_EVENTS, -2):
        if windows * _work(query, share, length) <= MAX_WORK:
            return events[:length]
    return events[:MIN_EVENTS]


def _work(query: ast.Query, share: Share, length: int) -> float:
    """Return about how many shapes will be filled, wholly or partly."""
    reach = min(length, _reach(query.within))
    size = _Sizing(share, reach).of(query.pattern)
    # Subsets of the first events in reach, and those that end with a later event.
    return sum(size.shapes) + sum(
        count * (comb(reach, placed) + (length - reach) * (comb(reach - 1, placed - 1) if placed else 0))
        for placed, count in enumerate(_plus(size.partly, size.whole))
    )


def _reach(within: ast.Span | None) -> int:
    """Return about how many events are within reach of one."""
    if isinstance(within, ast.CountSpan):
        return within.events
    return MAX_EVENTS if within is None else 2 + int(1.5 * within.us / SECOND_US)


@dataclass(frozen=True)
class _Size:
    """How many shapes a pattern has, and in how many ways they are filled wholly and only partly."""

    shapes: Counts
    whole: Counts
    partly: Counts = ()

    def __or__(self, other: _Size) -> _Size:
        return _Size(_plus(self.shapes, other.shapes), _plus(self.whole, other.whole), _plus(self.partly, other.partly))


_NOTHING = _Size((1.0,), (1.0,))


class _Sizing:
    """Sizes patterns, of which at most so many events can be in reach of each other."""

    def __init__(self, share: Share, reach: int) -> None:
        self._share = share
        self._reach = reach

    def of(self, pattern: ast.Pattern) -> _Size:
        match pattern:
            case ast.Event(types=types):
                return _Size((0.0, 1.0), (0.0, self._share(types)), (1.0,))
            case ast.Sequence(parts=parts):
                return reduce(self._then, map(self.of, parts), _NOTHING)
            case ast.Conjunction(parts=parts):
                return reduce(self._beside, map(self.of, parts), _NOTHING)
            case ast.Disjunction(parts=parts):
                return reduce(_Size.__or__, map(self.of, parts))
            case ast.AnyOf(count=count, parts=parts):
                chosen = combinations(list(map(self.of, parts)), count)
                return reduce(_Size.__or__, (reduce(self._beside, some, _NOTHING) for some in chosen))
            case ast.Option(part=part):
                return _NOTHING | self.of(part)
            case ast.Repetition(part=part, low=low, high=high):
                return self._repeated(self.of(part), low, self._reach if high is None else min(high, self._reach))
        return _NOTHING

    def _then(self, one: _Size, other: _Size, in_any_order: bool = False) -> _Size:
        rests = sum(other.shapes)
        return _Size(
            self._times(one.shapes, other.shapes, False),
            self._times(one.whole, other.whole, in_any_order),
            _plus(self._times(one.whole, other.partly, in_any_order), tuple(count * rests for count in one.partly)),
        )

    def _beside(self, one: _Size, other: _Size) -> _Size:
        return self._then(one, other, in_any_order=True)

    def _repeated(self, once: _Size, low: int, high: int) -> _Size:
        found, so_far = _Size((), ()), _NOTHING
        for rounds in range(high + 1):
            if rounds >= low:
                found |= so_far
            so_far = self._then(so_far, once)
            if not any(so_far.shapes):
                break
        return found

    def _times(self, one: Counts, other: Counts, in_any_order: bool) -> Counts:
        found = [0.0] * min(max(len(one) + len(other) - 1, 0), self._reach + 1)
        for placed, count in enumerate(one):
            if count:
                for more, count_more in enumerate(other[: max(len(found) - placed, 0)]):
                    found[placed + more] += count * count_more * (comb(placed + more, placed) if in_any_order else 1)
        return tuple(found)


def _plus(one: Counts, other: Counts) -> Counts:
    longer, shorter = (one, other) if len(one) >= len(other) else (other, one)
    return tuple(map(float.__add__, longer, shorter + (0.0,) * (len(longer) - len(shorter))))
