"""What goes into the reference matcher and what comes out: events, the ordered stream, bindings, matches."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.pattern import ast
from penstock.reference.functions import known


@dataclass(frozen=True)
class Event:
    """One row of the stream: its type, time in microseconds, unique number and attributes.

    Examples:
        >>> Event("A", ts=1_000_000, seq=1, attributes={"price": 12.5}).attributes["price"]
        12.5
    """

    type: str
    ts: int
    seq: int
    attributes: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def value(self, name: str) -> Any:
        """Return an attribute, or `ts`, `seq` or `type`; None if it is missing (null, NaN)."""
        if name in ("ts", "seq", "type"):
            return getattr(self, name)
        return known(self.attributes.get(name))


class Stream:
    """Events in order. Everywhere below, an event is meant by its position here, so < is "before"."""

    def __init__(self, events: Iterable[Event]) -> None:
        self.events = sorted(events, key=lambda event: (event.ts, event.seq))
        self._times = [event.ts for event in self.events]
        self._by_type: dict[str, list[int]] = {}
        for at, event in enumerate(self.events):
            self._by_type.setdefault(event.type, []).append(at)

    def __len__(self) -> int:
        return len(self.events)

    def of_types(self, types: tuple[str, ...], low: int, high: int) -> list[int]:
        """Return the positions in [low, high) of events of these types (none: of any type), in order."""
        if not types:
            return list(range(low, high))
        lists = (self._by_type.get(name, []) for name in dict.fromkeys(types))
        return sorted(at for each in lists for at in each[bisect_left(each, low) : bisect_left(each, high)])

    def since(self, ts: int) -> int:
        """Return the position of the first event at `ts` or later."""
        return bisect_left(self._times, ts)

    def until(self, ts: int) -> int:
        """Return the position after the last event at `ts` or earlier."""
        return bisect_right(self._times, ts)

    def previous(self, at: int) -> int | None:
        """Return the position of the event of the same type before this one."""
        same = self._by_type[self.events[at].type]
        index = bisect_left(same, at)
        return same[index - 1] if index else None

    # WITHIN, in its two units (docs/language.md, section 4)

    def reach_back(self, last: int, span: ast.Span) -> int:
        """Return the first position that may be in a match whose last event is `last`."""
        if isinstance(span, ast.TimeSpan):
            return self.since(self.events[last].ts - span.us)
        return max(0, last - (span.events - 1))

    def reach_on(self, first: int, span: ast.Span) -> int:
        """Return the position after the last that may be in a match whose first event is `first`."""
        if isinstance(span, ast.TimeSpan):
            return self.until(self.events[first].ts + span.us)
        return min(len(self), first + span.events)


@dataclass(frozen=True)
class Bound:
    """An event bound to a variable. `rounds` are the rounds of the repetitions around the variable, outermost first."""

    variable: str
    rounds: tuple[int, ...]
    at: int


@dataclass(frozen=True)
class Forbidden:
    """A negation that applies: that of a branch that was taken, in a round of the repetitions around it."""

    negation: ast.Negation
    rounds: tuple[int, ...]


@dataclass(frozen=True)
class Binding:
    """A match, whole or partial.

    `lists` are the list variables whose branch was taken: a list of none is there, one of another branch is not.
    """

    bound: tuple[Bound, ...] = ()
    lists: frozenset[str] = frozenset()
    forbidden: tuple[Forbidden, ...] = ()

    @property
    def positions(self) -> list[int]:
        """The positions of its events, in order."""
        return sorted(b.at for b in self.bound)

    def of(self, variable: str) -> list[Bound]:
        """Return what is bound to a variable, in order."""
        return sorted((b for b in self.bound if b.variable == variable), key=lambda b: b.at)


@dataclass(frozen=True)
class Match:
    """A match as users see it.

    `bindings` holds, per bound variable in the order of the text, the numbers (`seq`) of its events. Two matches
    are equal if query, partition key, window and bindings are; times and RETURN values follow from them.
    """

    query: str | None
    key: tuple[Any, ...]
    window: int | None
    bindings: tuple[tuple[str, tuple[int, ...]], ...]
    first_ts: int = field(default=0, compare=False)
    last_ts: int = field(default=0, compare=False)
    values: Mapping[str, Any] = field(default_factory=dict, compare=False)

    def __getitem__(self, variable: str) -> tuple[int, ...]:
        return dict(self.bindings).get(variable, ())

    @property
    def events(self) -> tuple[int, ...]:
        """The numbers of all its events, ascending."""
        return tuple(sorted(seq for _, numbers in self.bindings for seq in numbers))
