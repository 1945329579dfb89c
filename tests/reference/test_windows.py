"""WITHIN, PARTITION BY, WINDOW, LIMIT and DISTINCT."""

from __future__ import annotations

import pytest

from penstock.pattern.parser import parse
from penstock.reference import Event, find
from penstock.testing import SECOND_US, stream
from tests.reference.answers import found


def in_seconds(answer: str) -> str:
    """An answer with the names of time windows in seconds instead of microseconds."""
    matches = (match.split(": ") for match in answer.split(" | ") if match)
    return " | ".join(f"{int(window) / SECOND_US:g}: {bound}" for window, bound in matches)


@pytest.mark.parametrize(
    ("query", "events", "expected"),
    [
        ("SEQ(A a, B b) WITHIN 5 s", "A0@1 B1@6", "0 1"),
        ("SEQ(A a, B b) WITHIN 5 s", "A0@1 B1@6.000001", ""),
        ("SEQ(A a, B b) WITHIN 1 us", "A0@1 B1@1.000001", "0 1"),
        ("SEQ(A a, B b) WITHIN 1 us", "A0@1 B1@1.000002", ""),
        ("AND(A a, B b, C c) WITHIN 5 s", "B0@1 A1@3 C2@6", "1 0 2"),
        ("AND(A a, B b, C c) WITHIN 5 s", "B0@1 A1@3 C2@6.000001", ""),
        ("A+ a[] WITHIN 2 s", "A0 A1 A3", "0 | 0,1 | 1 | 1,3 | 3"),
        ("SEQ(A? a, B b) WITHIN 5 s", "A0@1 B1@9", "- 1"),
        ("SEQ(A a, B b) WITHIN 3 EVENTS", "A0 X1 B2", "0 2"),
        ("SEQ(A a, B b) WITHIN 3 EVENTS", "A0 X1 X2 B3", ""),
        ("SEQ(A a, B b) WITHIN 3 EVENTS", "A10@0 X20@50 B30@999", "10 30"),  # positions, not numbers or times
        ("SEQ(A a, B b) WITHIN 1 EVENTS", "A0 B1", ""),
        ("A a WITHIN 1 EVENTS", "A0 A1", "0 | 1"),
        ("A+ a[] WITHIN 2 EVENTS", "A0 A1 A2", "0 | 0,1 | 1 | 1,2 | 2"),
        ("AND(A a, B b) WITHIN 2 EVENTS", "B0 A1 X2 B3", "1 0"),
    ],
)
def test_within(query: str, events: str, expected: str) -> None:
    assert found(query, events) == expected


@pytest.mark.parametrize(
    ("window", "events", "expected"),
    [
        # SEQ(A a, B b): windows by their start in seconds
        ("10 s EVERY 5 s", "A6 B9", "0: 6 9 | 5: 6 9"),
        ("10 s EVERY 5 s", "A4 B9", "0: 4 9"),
        ("10 s EVERY 5 s", "A4 B10", ""),
        ("10 s EVERY 5 s", "A5 B14", "5: 5 14"),
        ("10 s EVERY 10 s", "A6 B9", "0: 6 9"),
        ("10 s", "A6 B9 A10 B11", "0: 6 9 | 10: 10 11"),
        ("10 s", "A0 B9@9.999999", "0: 0 9"),  # half open
        ("10 s", "A0 B10", ""),
        ("10 s EVERY 3 s", "A6 B9", "0: 6 9 | 3: 6 9 | 6: 6 9"),
        ("2 s EVERY 5 s", "A0 B1 A2 B3 A4 B5 A6 B7", "0: 0 1"),  # gaps
        ("2 s EVERY 5 s", "A5 B6", "5: 5 6"),
        ("2 s EVERY 5 s", "A6 B7", ""),
    ],
)
def test_time_windows(window: str, events: str, expected: str) -> None:
    assert in_seconds(found(f"SEQ(A a, B b) WITHIN 1 h WINDOW {window}", events)) == expected


def test_time_windows_before_time_0() -> None:
    events = [Event("A", ts * SECOND_US, number) for number, ts in enumerate([-6, -5, 0, 4])]
    answer = found("SEQ(A a, A b) WITHIN 1 h WINDOW 10 s EVERY 5 s", events)
    assert in_seconds(answer) == "-10: 0 1 | -5: 1 2 | -5: 1 3 | -5: 2 3 | 0: 2 3"


@pytest.mark.parametrize(
    ("window", "events", "expected"),
    [
        # A a: windows by the position of their start
        ("3 EVENTS EVERY 2 EVENTS", "A10 A11 A12 A13", "0: 10 | 0: 11 | 0: 12 | 2: 12 | 2: 13"),
        ("3 EVENTS EVERY 2 EVENTS", "A10 X11 X12 X13 X14 A15", "0: 10 | 4: 15"),
        ("2 EVENTS EVERY 3 EVENTS", "A10 A11 A12 A13", "0: 10 | 0: 11 | 3: 13"),
        ("2 EVENTS", "A10 A11 A12", "0: 10 | 0: 11 | 2: 12"),
        ("2 EVENTS EVERY 1 EVENTS", "A10 A11", "0: 10 | 0: 11 | 1: 11"),
        ("9 EVENTS", "", ""),
    ],
)
def test_count_windows(window: str, events: str, expected: str) -> None:
    assert found(f"A a WITHIN 1 h WINDOW {window}", events) == expected


@pytest.mark.parametrize(
    ("pattern", "window", "events", "expected"),
    [
        ("SEQ(A a, B b)", "5 s ON S s WHERE s.v > 3", "S1(v=4) A2 B5 B6", "1: 2 5"),
        ("SEQ(A a, B b)", "5 s ON S s WHERE s.v > 3", "S1(v=3) A2 B5", ""),
        ("SEQ(A a, B b)", "5 s ON S s WHERE s.v > 3", "S1 A2 B5", ""),
        ("SEQ(A a, B b)", "5 s ON S s WHERE s.v > 3 AND s.w = 1", "S1(v=4, w=2) A2 B5", ""),
        ("SEQ(A a, B b)", "5 s ON S", "S1 A2 S3 A4 B5", "1: 2 5 | 1: 4 5 | 3: 4 5"),
        ("SEQ(S s, A a)", "5 s ON S", "S1 A2", "1: 1 2"),  # the opening event is in it
        ("SEQ(A a, B b)", "5 s ON S", "A0@1 S1@1 B2@1", ""),  # what is before it is not
        ("SEQ(A a, B b)", "5 s ON S", "S0@1 A1@1 B2@1", "0: 1 2"),
        ("SEQ(A a, B b)", "5 s ON S", "S0@1 A1@1 B2@5.999999", "0: 1 2"),
        ("SEQ(A a, B b)", "5 s ON S", "S0@1 A1@1 B2@6", ""),
        ("SEQ(A a, B b)", "3 EVENTS ON S", "S0 A1 B2 B3", "0: 1 2"),
        ("SEQ(A a, B b)", "3 EVENTS ON S", "S0 A1 X2 B3", ""),
        ("SEQ(A a, B b)", "5 s ON A", "A0 B1", "0: 0 1"),
        ("SEQ(A a, B b)", "5 s ON S|A x WHERE x.v > 3", "S0(v=4) A1(v=4) B2", "0: 1 2 | 1: 1 2"),
        ("B b", "2 s ON * x", "A0 B1", "0: 1 | 1: 1"),
        ("B b", "5 s ON S s WHERE s.v > prev(s.v)", "S0(v=1) S1(v=2) B2", "1: 2"),
        ("B b", "5 s ON S s WHERE double(s.v) > 3", "S0(v=1) S1(v=2) B2", "1: 2"),
        ("B b", "5 s ON S s WHERE s.v IN REMOTE[hot, 1]", "S0(v=1) S1(v=2) B2", "1: 2"),
    ],
)
def test_windows_that_an_event_opens(pattern: str, window: str, events: str, expected: str) -> None:
    query = f"{pattern} WITHIN 1 h WINDOW {window}"
    assert found(query, events, functions={"double": lambda v: 2 * v}, remotes={"hot": {1: [2]}}) == expected


@pytest.mark.parametrize(
    ("query", "events", "expected"),
    [
        # WITHIN bounds the match, WINDOW what is looked at
        ("SEQ(A a, B b) WITHIN 2 s WINDOW 10 s", "A0 B3 A4 B5", "0: 4 5"),
        ("SEQ(A a, B b) WITHIN 1 h WINDOW 2 EVENTS", "A0 X1 B2 A3", ""),
        ("SEQ(A a, B b) WITHIN 2 EVENTS WINDOW 4 EVENTS", "A0 X1 A2 B3", "0: 2 3"),
        # each window is matched on its own
        ("SEQ(A a, B b) WITHIN 1 h WINDOW 2 EVENTS EVERY 1 EVENTS SELECT FIRST", "A0 A1 B2 B3", "1: 1 2"),
        ("SEQ(A a, B b) WITHIN 1 h WINDOW 4 EVENTS EVERY 2 EVENTS SELECT LAST", "A0 A1 A2 B3", "0: 2 3 | 2: 2 3"),
        ("SEQ(A a, B+ b[]) WITHIN 1 h WINDOW 3 EVENTS SELECT FIRST", "A0 B1 B2 B3", "0: 0 1,2"),
        ("SEQ(A a, B? b) WITHIN 1 h WINDOW 1 EVENTS SELECT FIRST", "A0 B1", "0: 0 -"),
    ],
)  # fmt: skip
def test_matching_in_windows(query: str, events: str, expected: str) -> None:
    assert found(query, events) == expected


@pytest.mark.parametrize(
    ("query", "events", "expected"),
    [
        ("SEQ(A a, B b) WITHIN 1 h WINDOW 9 EVENTS LIMIT 1 PER WINDOW", "A0 A1 B2 B3", "0: 0 2"),
        ("SEQ(A a, B b) WITHIN 1 h WINDOW 9 EVENTS LIMIT 3 PER WINDOW", "A0 A1 B2 B3", "0: 0 2 | 0: 0 3 | 0: 1 2"),
        ("SEQ(A a, B b) WITHIN 1 h WINDOW 9 EVENTS LIMIT 9 PER WINDOW", "A0 A1 B2", "0: 0 2 | 0: 1 2"),
        ("A a WITHIN 1 h WINDOW 2 EVENTS LIMIT 1 PER WINDOW", "A0 A1 A2 A3", "0: 0 | 2: 2"),
        ("A a WITHIN 1 h PARTITION BY k WINDOW 9 EVENTS LIMIT 1 PER WINDOW", "A0(k=1) A1(k=2) A2(k=1)", "0: 0 | 0: 1"),
        ("A a WITHIN 1 h WINDOW 9 EVENTS LIMIT 1 PER WINDOW SELECT EACH CONSUME ALL", "A0 A1", "0: 0"),
        # known first: when the last event comes, not when the first did
        ("OR(SEQ(A a, B b), C c) WITHIN 1 h WINDOW 9 EVENTS LIMIT 1 PER WINDOW", "A0 C1 B2", "0: - - 1"),
        # a negation that comes last, and a list that comes last, wait for the end of the span
        ("OR(SEQ(A a, NOT N n), B b) WITHIN 5 s WINDOW 1 h LIMIT 1 PER WINDOW", "A0 B4", "0: - 4"),
        ("OR(SEQ(A a, NOT N n), B b) WITHIN 5 s WINDOW 1 h LIMIT 1 PER WINDOW", "A0 B5", "0: - 5"),
        ("OR(SEQ(A a, NOT N n), B b) WITHIN 5 s WINDOW 1 h LIMIT 1 PER WINDOW", "A0 B6", "0: 0 -"),
        ("OR(SEQ(A a, NOT N n), B b) WITHIN 2 EVENTS WINDOW 1 h LIMIT 1 PER WINDOW", "A0 B1", "0: - 1"),
        ("OR(SEQ(A a, NOT N n), B b) WITHIN 2 EVENTS WINDOW 1 h LIMIT 1 PER WINDOW", "A0 X1 B2", "0: 0 -"),
        ("OR(SEQ(A a, B+ b[]), C c) WITHIN 5 s WINDOW 1 h LIMIT 1 PER WINDOW SELECT FIRST", "A0 B1 C5", "0: - - 5"),
        ("OR(SEQ(A a, B+ b[]), C c) WITHIN 5 s WINDOW 1 h LIMIT 1 PER WINDOW SELECT FIRST", "A0 B1 C6", "0: 0 1 -"),
        ("OR(SEQ(A a, B+ b[]), C c) WITHIN 5 s WINDOW 1 h LIMIT 1 PER WINDOW SELECT EACH", "A0 B1 C5", "0: 0 1 -"),
        ("OR(SEQ(A a, B b, NOT N n), C c) WITHIN 5 s WINDOW 1 h LIMIT 1 PER WINDOW SELECT CUMULATIVE", "A0 A2 B3 C6",
         "0: - - 6"),
        # two ways to read a match count once, and from the one that is known first
        ("(A+ a[])+ WITHIN 1 h WINDOW 9 EVENTS LIMIT 3 PER WINDOW", "A0 A1 A2", "0: 0 | 0: 0,1 | 0: 1"),
        ("OR(SEQ(A a, (SEQ(NOT N n, B? b))?), C c) WITHIN 5 s WINDOW 1 h LIMIT 1 PER WINDOW", "A0 C3", "0: 0 - -"),
        # STRICT knows when the run ends
        ("OR(SEQ(A a, B+ b[]), C c) WITHIN 5 s WINDOW 1 h LIMIT 1 PER WINDOW SELECT STRICT", "A0 B1 C2", "0: 0 1 -"),
    ],
)  # fmt: skip
def test_limit(query: str, events: str, expected: str) -> None:
    assert found(query, events) == expected


@pytest.mark.parametrize(
    ("query", "events", "expected"),
    [
        ("SEQ(A a, B b) WITHIN 1 h WINDOW 4 EVENTS EVERY 1 EVENTS DISTINCT", "X0 A1 B2 B3", "0: 1 2 | 0: 1 3"),
        ("SEQ(A a, B b) WITHIN 1 h WINDOW 3 EVENTS EVERY 1 EVENTS DISTINCT", "X0 A1 B2 B3", "0: 1 2 | 1: 1 3"),
        ("SEQ(A a, B b) WITHIN 1 h WINDOW 5 s ON S DISTINCT", "S9@0 S8@1 A2 B3", "9: 2 3"),
        ("SEQ(A a, B b) WITHIN 1 h WINDOW 5 s ON S", "S9@0 S8@1 A2 B3", "8: 2 3 | 9: 2 3"),
        ("OR(A a, A b) WITHIN 1 h WINDOW 2 EVENTS EVERY 1 EVENTS DISTINCT", "X0 A1", "0: - 1 | 0: 1 -"),
    ],
)
def test_distinct(query: str, events: str, expected: str) -> None:
    assert found(query, events) == expected


# --- partitions -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "events", "expected"),
    [
        ("SEQ(A a, B b) WITHIN 1 h PARTITION BY k", "A0(k=1) B1(k=2) B2(k=1)", "0 2"),
        ("SEQ(A a, B b) WITHIN 1 h PARTITION BY k", "A0 B1 A2(k=null) B3(k=nan)", ""),  # in no partition
        ("SEQ(A a, B b) WITHIN 1 h PARTITION BY k, l", "A0(k=1, l=1) B1(k=1, l=2) B2(k=1, l=1) B3(k=1)", "0 2"),
        ("SEQ(A a, B b) WITHIN 1 h PARTITION BY type", "A0 B1", ""),
        ("SEQ(A a, A b) WITHIN 1 h PARTITION BY type", "A0 B1 A2", "0 2"),
        # positions count inside the partition, and events without key do not count
        ("SEQ(A a, B b) WITHIN 2 EVENTS PARTITION BY k", "A0(k=1) X1(k=2) X2 B3(k=1)", "0 3"),
        ("SEQ(A a, B b) WITHIN 2 EVENTS PARTITION BY k", "A0(k=1) X1(k=1) B2(k=1)", ""),
        ("SEQ(A a, A b) WITHIN 1 h PARTITION BY k WINDOW 2 EVENTS", "A0(k=1) A1(k=2) A2(k=1) A3(k=2)",
         "0: 0 2 | 0: 1 3"),
        ("SEQ(A a, A b) WITHIN 1 h PARTITION BY k WINDOW 5 s ON A", "A0(k=1) A1(k=2) A2(k=1)", "0: 0 2"),
    ],
)  # fmt: skip
def test_partition(query: str, events: str, expected: str) -> None:
    assert found(query, events) == expected


def test_a_match_has_the_key_of_its_partition() -> None:
    query = parse("PATTERN A a WITHIN 1 h PARTITION BY k, l")
    assert {match.key for match in find(query, stream("A0(k=1, l=x) A1(k=2, l=x)"))} == {(1, "x"), (2, "x")}
