"""CONSUME, with every policy: at binding for runs, at emission for matches."""

from __future__ import annotations

from collections import Counter

import pytest

from penstock.pattern.parser import parse
from penstock.reference import find
from penstock.testing import stream
from tests.reference.answers import found


def select(policy: str, pattern: str, events: str) -> str:
    return found(f"{pattern} WITHIN 1 h SELECT {policy}", events)


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        # SEQ(A a, B b) on A0 A1 B2 B3
        ("EACH CONSUME NONE", "0 2 | 0 3 | 1 2 | 1 3"),
        ("EACH CONSUME ZERO", "0 2 | 0 3 | 1 2 | 1 3"),
        ("EACH CONSUME ALL", "0 2 | 1 3"),
        ("EACH CONSUME a", "0 2 | 1 2"),
        ("EACH CONSUME b", "0 2 | 0 3"),
        ("EACH CONSUME a, b", "0 2 | 1 3"),
        ("FIRST", "0 2 | 1 2"),
        ("FIRST CONSUME ALL", "0 2 | 1 3"),
        ("FIRST CONSUME a", "0 2 | 1 2"),
        ("FIRST CONSUME b", "0 2 | 1 3"),
        ("STRICT CONSUME ALL", "1 2"),
        ("LAST", "1 2 | 1 3"),
        ("LAST CONSUME ALL", "1 2"),
        ("LAST CONSUME a", "1 2"),
        ("LAST CONSUME b", "1 2 | 1 3"),
        ("CUMULATIVE", "0,1 2 | 0,1 3"),
        ("CUMULATIVE CONSUME ALL", "0,1 2"),
        ("CUMULATIVE CONSUME a", "0,1 2"),
        ("CUMULATIVE CONSUME b", "0,1 2 | 0,1 3"),
        ("EACH, LAST a CONSUME ALL", "1 2"),
        ("EACH, FIRST a CONSUME b", "0 2 | 0 3"),
    ],
)
def test_two_steps(policy: str, expected: str) -> None:
    assert select(policy, "SEQ(A a, B b)", "A0 A1 B2 B3") == expected


@pytest.mark.parametrize(
    ("policy", "pattern", "events", "expected"),
    [
        # the oldest run takes the event, even if it comes to nothing
        ("FIRST", "SEQ(A a, B b, C c) WHERE c.x = a.x", "A0(x=1) A1(x=2) B2 C3(x=2)", "1 2 3"),
        ("FIRST CONSUME b", "SEQ(A a, B b, C c) WHERE c.x = a.x", "A0(x=1) A1(x=2) B2 C3(x=2)", ""),
        ("FIRST CONSUME b", "SEQ(A a, B b, C c) WHERE c.x = a.x", "A0(x=1) A1(x=2) B2 B3 C4(x=2)", "1 3 4"),
        ("FIRST", "SEQ(A a, B b, NOT N n) WHERE n.x = a.x", "A0(x=1) A1(x=2) B2 N3(x=1)", "1 2"),
        ("FIRST CONSUME b", "SEQ(A a, B b, NOT N n) WHERE n.x = a.x", "A0(x=1) A1(x=2) B2 N3(x=1)", ""),
        ("FIRST CONSUME b", "SEQ(A a, B b) WHERE b.x = a.x", "A0(x=1) A1(x=2) B2(x=2)", "1 2"),
        ("FIRST CONSUME ALL", "SEQ(A a, B b, C c)", "A0 A1 B2 C3 B4 C5", "0 2 3 | 1 4 5"),
        ("FIRST CONSUME c", "SEQ(A a, B b, C c)", "A0 A1 B2 C3 C4", "0 2 3 | 1 2 4"),
        # a consuming variable takes only what no run has taken; what it takes, no other gets
        ("FIRST CONSUME NONE", "SEQ(A|B a, B b)", "A0 B1 B2", "0 1 | 1 2"),
        ("FIRST CONSUME a", "SEQ(A|B a, B b)", "A0 B1 B2", "0 1"),
        ("FIRST CONSUME b", "SEQ(A|B a, B b)", "A0 B1 B2", "0 1"),
        ("FIRST CONSUME ALL", "SEQ(A|B a, B b)", "A0 B1 B2 B3", "0 1 | 2 3"),
        # one run per event, if its first variable consumes
        ("FIRST CONSUME ALL", "OR(A a, A b)", "A0", "0 -"),
        ("FIRST CONSUME a", "OR(A a, A b)", "A0", "0 -"),
        ("FIRST CONSUME b", "OR(A a, A b)", "A0", "0 -"),
        ("FIRST CONSUME ALL", "AND(A a, A b)", "A0 A1", "0 1"),
        ("FIRST CONSUME a", "SEQ(A+ a[], B b)", "A0 A1 B2", "0,1 2"),
        ("FIRST CONSUME b", "SEQ(A+ a[], B b)", "A0 A1 B2 B3", "0,1 2 | 1 3"),
        ("FIRST CONSUME b", "SEQ(A a, B+ b[], C c)", "A0 A1 B2 B3 C4", "0 2,3 4"),
        # STRICT: an event that it may not take ends the run
        ("STRICT", "SEQ(A+ a[], B b)", "A0 A1 B2", "0,1 2 | 1 2"),
        ("STRICT CONSUME ALL", "SEQ(A+ a[], B b)", "A0 A1 B2", "0,1 2"),
        ("STRICT CONSUME a", "SEQ(A+ a[], B b)", "A0 A1 B2", "0,1 2"),
        ("STRICT CONSUME b", "SEQ(A+ a[], B b)", "A0 A1 B2 B3", "0,1 2"),
    ],
)
def test_at_binding(policy: str, pattern: str, events: str, expected: str) -> None:
    assert select(policy, pattern, events) == expected


@pytest.mark.parametrize(
    ("policy", "pattern", "events", "expected"),
    [
        # as matches become known, then by their events
        ("EACH CONSUME ALL", "SEQ(A a, B b, C c)", "A0 A1 B2 B3 C4 C5", "0 2 4 | 1 3 5"),
        ("EACH CONSUME a", "SEQ(A a, B b, C c)", "A0 B1 B2 C3", "0 1 3"),
        ("EACH CONSUME b", "SEQ(A a, B b) WHERE a.x = b.x", "A0(x=1) A1(x=2) B2(x=2)", "1 2"),
        ("EACH CONSUME ALL", "A+ a[]", "A0 A1 A2", "0 | 1 | 2"),
        ("EACH CONSUME ALL", "OR(SEQ(A a, NOT N n), SEQ(A b, B c))", "A0 B1", "- 0 1"),  # known before the span ends
        # what an earlier match holds is not consumed by a later one
        ("EACH", "SEQ(A|B a, B b)", "A0 B1 B2", "0 1 | 0 2 | 1 2"),
        ("EACH CONSUME a", "SEQ(A|B a, B b)", "A0 B1 B2", "0 1"),
        ("EACH CONSUME b", "SEQ(A|B a, B b)", "A0 B1 B2", "0 1 | 0 2"),
        ("EACH CONSUME c", "SEQ(A a, B|C b, C c)", "A0 C1 C2 C3", "0 1 2 | 0 1 3"),
        # LAST is chosen first: a match that is lost is not replaced
        ("LAST CONSUME a", "SEQ(A a, B b)", "A0 A1 B2 B3", "1 2"),
        ("LAST CONSUME ALL", "SEQ(A a, B b)", "A0 B1 A2 B3", "0 1 | 2 3"),
        # CUMULATIVE gathers from what is left
        ("CUMULATIVE CONSUME ALL", "SEQ(A a, B b)", "A0 B1 A2 B3", "0 1 | 2 3"),
        ("CUMULATIVE CONSUME a", "SEQ(A a, B b)", "A0 B1 A2 B3", "0 1 | 2 3"),
        ("CUMULATIVE CONSUME b", "SEQ(A a, B b)", "A0 B1 A2 B3", "0 1 | 0,2 3"),
        ("CUMULATIVE CONSUME b", "SEQ(A a, B b, C c)", "A0 B1 C2 B3 C4", "0 1 2 | 0 3 4"),
        ("CUMULATIVE CONSUME a", "SEQ(A|B a, B b)", "A0 B1 B2", "0 1"),
        # per variable, like LAST
        ("EACH, LAST b CONSUME b", "SEQ(A a, B b, C c)", "A0 A1 B2 B3 C4", "0 3 4"),
        ("EACH, CUMULATIVE b CONSUME b", "SEQ(A a, B b, C c)", "A0 A1 B2 B3 C4", "0 2,3 4"),
    ],
)
def test_at_emission(policy: str, pattern: str, events: str, expected: str) -> None:
    assert select(policy, pattern, events) == expected


def test_every_window_consumes_for_itself() -> None:
    query = "SEQ(A a, B b) WITHIN 1 h WINDOW 4 EVENTS EVERY 2 EVENTS SELECT FIRST CONSUME ALL"
    assert found(query, "X0 A1 A2 B3 B4") == "0: 1 3 | 2: 2 3"


def test_every_partition_consumes_for_itself() -> None:
    query = "SEQ(A a, B b) WITHIN 1 h PARTITION BY k SELECT EACH CONSUME ALL"
    assert found(query, "A0(k=1) A1(k=2) B2(k=2) B3(k=1)") == "0 3 | 1 2"


POLICIES = ["EACH", "FIRST", "STRICT", "LAST", "CUMULATIVE", "EACH, LAST a", "EACH, CUMULATIVE a"]
PATTERNS = ["SEQ(A|B a, B b)", "SEQ(A a, B+ b[])", "AND(A a, A|B b)", "(SEQ(A a, B? b)){1,2}", "SEQ(A a, B b, NOT A c)"]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("consumed", ["a", "b", "ALL"])
def test_a_consumed_event_is_in_at_most_one_match(policy: str, pattern: str, consumed: str) -> None:
    query = parse(f"PATTERN {pattern} WITHIN 3 s SELECT {policy} CONSUME {consumed}")
    matches = find(query, stream("A0 A1 B2 B3 A4 B5 A6 A7 B8"))
    assert matches
    gone = {seq for match in matches for seq in (match.events if consumed == "ALL" else match[consumed])}
    users = Counter(seq for match in matches for seq in set(match.events))
    assert all(users[seq] == 1 for seq in gone)
