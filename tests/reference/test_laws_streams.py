"""Laws of the stream: what shifting, numbering, adding, dropping, partitions and windows do to the matches.

See docs/language.md, sections 1 and 7, and SEMANTICS.md, section 8, for what shedding may do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from penstock.pattern import ast
from penstock.pattern.ast import Policy
from penstock.pattern.parser import parse
from penstock.reference import Event, Match, find
from penstock.testing import SECOND_US, stream
from tests.generators import Case, Profile, cases
from tests.reference.laws import Told, found, in_order, last_event, law, places, tell

WINDOWS = Profile(window=100, partition=5, returns=False)
# Under which shedding invents nothing: each match stands by itself, and by nothing but its own events.
BY_ITSELF = Profile(
    negation=0,
    previous=False,
    count_within=False,
    count_window=False,
    policies=(Policy.EACH,),
    per_variable=0,
    consume=0,
    limit=False,
    distinct=False,
    returns=False,
)


@st.composite
def _with_numbers(draw: DrawFn, profile: Profile, most: int, count: int = 1) -> tuple[Case, list[int]]:
    """Draw a case and some numbers from 0 to a most."""
    return draw(cases(profile)), [draw(st.integers(0, most)) for _ in range(count)]


# --- times and numbers --------------------------------------------------------------------------------------


@law(_with_numbers(Profile(clock=False), most=5), examples=200)
def test_shifting_all_times_changes_nothing(example: tuple[Case, list[int]]) -> bool:
    """A constant added to all times changes no match; windows by time only move, by a multiple of EVERY.

    Without conditions on the time itself, as `a.ts % 4 s`.
    """
    case, (number,) = example
    window = case.query.window
    is_by_clock = window is not None and window.on is None and isinstance(window.length, ast.TimeSpan)
    shift_us = (number - 3) * (_every(window) if window and is_by_clock else 1_234_567)
    later = [replace(event, ts=event.ts + shift_us) for event in case.events]
    matches = tell(case.query, case.events)
    moved = {(key, at + shift_us if at is not None and is_by_clock else at, bound) for key, at, bound in matches}
    assert tell(case.query, later) == moved
    return bool(matches) and bool(shift_us)


@law(cases(), examples=200)
def test_only_the_order_of_numbers_matters(case: Case) -> bool:
    """Other numbers in the same order give the same matches, with these numbers. Where none is told from a constant."""
    renumbered = [replace(event, seq=7 * event.seq + 1000) for event in case.events]
    is_named_by_number = case.query.window is not None and case.query.window.on is not None

    def with_new_numbers(match: Told) -> Told:
        key, window, bindings = match
        bound = frozenset((name, tuple(7 * seq + 1000 for seq in numbers)) for name, numbers in bindings)
        return key, 7 * window + 1000 if window is not None and is_named_by_number else window, bound

    matches = tell(case.query, case.events)
    assert tell(case.query, renumbered) == set(map(with_new_numbers, matches))
    return bool(matches)


NOT_STRICT = tuple(policy for policy in Policy if policy is not Policy.STRICT)


@law(
    _with_numbers(
        Profile(wildcard=False, count_within=False, count_window=False, policies=NOT_STRICT), most=13, count=3
    ),
    examples=200,
)
def test_events_of_other_types_change_nothing(example: tuple[Case, list[int]]) -> bool:
    """An event of a type that the query does not name changes no match.

    With WITHIN and WINDOW by time, without `*` and STRICT.
    """
    case, numbers = example
    strangers = [_stranger(case.events[number % len(case.events)], number) for number in numbers if case.events]
    matches = found(case.query, case.events)
    assert matches == found(case.query, case.events + list({event.seq: event for event in strangers}.values()))
    return bool(matches)


def _stranger(near: Event, number: int) -> Event:
    """Return an event of no known type, at the time of another or beside it."""
    ts = near.ts + (0, 0, 1, -1, SECOND_US)[number % 5]
    return Event("Z", ts, -1 - number if number % 2 else 1000 + number, near.attributes)


# --- PARTITION BY and WINDOW --------------------------------------------------------------------------------


@law(cases(Profile(partition=100, returns=False)))
def test_a_partition_is_a_stream_of_its_own(case: Case) -> bool:
    """PARTITION BY x finds what is found in the events of each value of x that is there. For all queries."""
    names = [name.text for name in case.query.partition]
    keys = {tuple(event.attributes[name] for name in names) for event in case.events}
    alone = replace(case.query, partition=())
    union = {
        replace(match, key=key)
        for key in keys
        if None not in key
        for match in found(alone, [e for e in case.events if tuple(e.attributes[name] for name in names) == key])
    }
    matches = found(case.query, case.events)
    assert matches == union
    return bool(matches)


@law(cases(replace(WINDOWS, previous=False, partition=0, limit=False, distinct=False)))
def test_a_window_is_a_stream_of_its_own(case: Case) -> bool:
    """What is found in a window is what is found without WINDOW in its events.

    Without `prev`, which looks out of the window, LIMIT and DISTINCT.
    """
    assert case.query.window is not None
    alone = replace(case.query, window=None)
    by_window = {
        replace(match, window=start)
        for start, events in _windows(case.query.window, in_order(case.events)).items()
        for match in found(alone, events)
    }
    matches = found(case.query, case.events)
    assert matches == by_window
    return bool(matches)


def _every(window: ast.Window) -> int:
    every = window.every or window.length
    return every.us if isinstance(every, ast.TimeSpan) else every.events


def _windows(window: ast.Window, events: list[Event]) -> dict[int, list[Event]]:
    """Return the events of each window by its name, from the table in docs/language.md."""
    length, every = window.length, _every(window)
    if window.on is not None:
        opening = ast.Query(window.on.event, window.on.where, ast.CountSpan(1), source="")
        opened = [at for at, event in enumerate(events) if found(opening, [event])]
        if isinstance(length, ast.CountSpan):
            return {events[at].seq: events[at : at + length.events] for at in opened}
        return {events[at].seq: [e for e in events[at:] if e.ts < events[at].ts + length.us] for at in opened}
    if isinstance(length, ast.CountSpan):
        return {start: events[start : start + length.events] for start in range(0, len(events), every)}
    if not events:
        return {}
    first, last = events[0].ts // every - length.us // every - 1, events[-1].ts // every
    starts = [number * every for number in range(first, last + 1)]
    return {start: [e for e in events if start <= e.ts < start + length.us] for start in starts}


@law(_with_numbers(replace(WINDOWS, limit=False, distinct=False), most=1))
def test_limit_keeps_the_first_matches_of_each_window(example: tuple[Case, list[int]]) -> bool:
    """LIMIT n keeps n matches of a window, or all if there are fewer, and a larger n keeps them too.

    Where a match is known with its last event (EACH and LAST without negation), the others end no earlier.
    Without DISTINCT.
    """
    case, (number,) = example
    every = found(case.query, case.events)
    few, more = (found(replace(case.query, limit=number + 1 + extra), case.events) for extra in (0, 1))
    assert few <= more <= every
    counts = Counter((match.key, match.window) for match in every)
    assert Counter((m.key, m.window) for m in few) == {key: min(count, number + 1) for key, count in counts.items()}
    has_negation = any(isinstance(node, ast.Negation) for node in ast.walk(case.query.pattern))
    if case.query.select.policy in (Policy.EACH, Policy.LAST) and not has_negation:
        at = places(case.events)
        for one in few:
            rest = [other for other in every - few if (other.key, other.window) == (one.key, one.window)]
            assert all(last_event(one, at) <= last_event(other, at) for other in rest)
    return len(few) < len(every)


@law(cases(WINDOWS), examples=200)
def test_distinct_keeps_the_match_of_the_earliest_window(case: Case) -> bool:
    """DISTINCT keeps, of the matches that differ in the window only, that of the earliest. For all queries."""
    assert case.query.window is not None
    with_repeats, distinct = (
        found(replace(case.query, window=replace(case.query.window, distinct=value)), case.events)
        for value in (False, True)
    )
    at = places(case.events)

    def start(match: Match) -> int:
        assert match.window is not None
        return at[match.window] if case.query.window and case.query.window.on else match.window

    earliest: dict[tuple[Any, ...], Match] = {}
    for match in sorted(with_repeats, key=start):
        earliest.setdefault((match.key, match.bindings), match)
    assert distinct == frozenset(earliest.values())
    return len(distinct) < len(with_repeats)


# --- shedding -----------------------------------------------------------------------------------------------


@law(_with_numbers(BY_ITSELF, most=2**14 - 1))
def test_shedding_invents_no_match(example: tuple[Case, list[int]]) -> bool:
    """Dropping any events gives a part of the matches.

    EACH, without negation, `prev`, CONSUME, LIMIT, and WITHIN and WINDOW by count; and without DISTINCT, as the
    earliest window may be one that a dropped event opened.
    """
    case, (kept,) = example
    left = [event for at, event in enumerate(case.events) if kept >> at & 1]
    every, some = tell(case.query, case.events), tell(case.query, left)
    assert some <= every
    return bool(some) and some < every


INVENTED: dict[str, tuple[str, str, int]] = {
    "FIRST": ("SEQ(A a, B b) WITHIN 9 s SELECT FIRST", "A1 B2 B3", 2),
    "LAST": ("SEQ(A a, B b) WITHIN 9 s SELECT LAST", "A1 A2 B3", 2),
    "CUMULATIVE": ("SEQ(A a, B b) WITHIN 9 s SELECT CUMULATIVE", "A1 A2 B3", 2),
    "STRICT": ("SEQ(A a, B b) WITHIN 9 s SELECT STRICT", "A1 C2 B3", 2),
    "per variable": ("SEQ(A a, B b) WITHIN 9 s SELECT EACH, LAST a", "A1 A2 B3", 2),
    "CONSUME": ("SEQ(A a, B b) WITHIN 9 s CONSUME ALL", "A1 B2 B3", 2),
    "NOT": ("SEQ(A a, NOT C c, B b) WITHIN 9 s", "A1 C2 B3", 2),
    "prev": ("A a WHERE a.x > prev(a.x) WITHIN 9 s", "A1(x=1) A2(x=9) A3(x=2)", 2),
    "WITHIN by count": ("SEQ(A a, B b) WITHIN 2 EVENTS", "A1 C2 B3", 2),
    "WINDOW by count": ("SEQ(A a, B b) WITHIN 9 s WINDOW 2 EVENTS", "A1 C2 B3", 2),
    "LIMIT": ("SEQ(A a, B b) WITHIN 9 s WINDOW 60 s LIMIT 1 PER WINDOW", "A1 B2 B3", 2),
    "DISTINCT": ("B b WITHIN 9 s WINDOW 9 s ON A DISTINCT", "A1 A2 B3", 1),
}


@pytest.mark.parametrize(("text", "events", "dropped"), INVENTED.values(), ids=INVENTED.keys())
def test_shedding_can_invent_matches(text: str, events: str, dropped: int) -> None:
    """Of each condition of the law above, an example in which it does not hold without it."""
    query = parse(f"PATTERN {text}")
    left: Callable[[Event], bool] = lambda event: event.seq != dropped  # noqa: E731
    assert not find(query, filter(left, stream(events))) <= find(query, stream(events))
