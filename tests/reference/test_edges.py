"""Streams and queries at the edge of what there is."""

from __future__ import annotations

import pytest

from penstock.errors import QueryError
from penstock.pattern.parser import parse
from penstock.reference import Event, find, runs
from penstock.testing import SECOND_US, stream
from tests.reference.answers import found

POLICIES = ["EACH", "FIRST", "STRICT", "LAST", "CUMULATIVE", "EACH, LAST a"]
CLAUSES = ["", "PARTITION BY k", "WINDOW 5 s EVERY 1 s", "WINDOW 2 EVENTS", "WINDOW 2 s ON A DISTINCT"]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("clause", CLAUSES)
@pytest.mark.parametrize("pattern", ["SEQ(A a, B b)", "SEQ(NOT N n, A a)", "SEQ(A a, NOT N n)", "SEQ(A? a, B b)"])
def test_no_events(pattern: str, clause: str, policy: str) -> None:
    assert found(f"{pattern} WITHIN 5 s {clause} SELECT {policy}", "") == ""


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("pattern", ["A a", "A+ a[]", "SEQ(NOT N n, A a)", "SEQ(A a, NOT N n)", "SEQ(A a, B? b)"])
@pytest.mark.parametrize("within", ["5 s", "1 EVENTS"])
def test_one_event(pattern: str, within: str, policy: str) -> None:
    assert found(f"{pattern} WITHIN {within} SELECT {policy}", "A7").split()[0] == "7"


@pytest.mark.parametrize("policy", POLICIES)
def test_before_time_0(policy: str) -> None:
    events = [Event("A", -3 * SECOND_US, 0), Event("B", -1 * SECOND_US, 1), Event("B", 0, 2)]
    assert "0 1" in found(f"SEQ(A a, B b) WHERE b.ts - a.ts = 2 s WITHIN 2 s SELECT {policy}", events)


def test_leading_negation_before_time_0() -> None:
    events = [Event("N", -5 * SECOND_US - 1, 0), Event("A", 0, 1), Event("N", 1, 2), Event("A", 2, 3)]
    assert found("SEQ(NOT N n, A a) WITHIN 5 s", events) == "1"


@pytest.mark.parametrize("call", [find, runs])
def test_two_events_with_one_number_are_refused(call: object) -> None:
    assert callable(call)
    with pytest.raises(ValueError, match="number 1"):
        call(parse("PATTERN A a WITHIN 1 s"), stream("A0 A1 B1"))


@pytest.mark.parametrize("call", [find, runs])
def test_a_query_must_be_valid(call: object) -> None:
    assert callable(call)
    with pytest.raises(QueryError):
        call(parse("PATTERN A a"), stream("A0"))


def test_events_may_come_from_a_generator() -> None:
    assert found("A a WITHIN 1 s PARTITION BY k", (event for event in stream("A0(k=1) A1(k=2)"))) == "0 | 1"


@pytest.mark.parametrize(
    ("pattern", "where", "expected"),
    [
        ("OR(A a, B b)", "b.x > 1", "0 -"),  # only of a variable that is unbound
        ("SEQ(A a, B? b, C* c[])", "b.x > 1 AND c[i].x > 1 AND c[last].x > b.x", "0 - -"),
        ("SEQ(A a, B? b, C* c[])", "COUNT(c[]) = 0 AND SUM(c[].x) = 0", "0 - -"),
        ("A a", "TRUE", "0"),
        ("A a", "REMOTE[limits, 1] > 5", ""),  # of no variable, and not there
        ("A a", "NOT (REMOTE[limits, 1] > 5)", "0"),
    ],
)
def test_conjuncts_on_nothing_that_is_bound(pattern: str, where: str, expected: str) -> None:
    assert found(f"{pattern} WHERE {where} WITHIN 1 s", "A0") == expected


def test_deep_nesting() -> None:
    pattern = "A a"
    for number in range(20):
        pattern = f"OR(SEQ({pattern}, B b{number}), C c{number})"
    answer = found(f"{pattern} WITHIN 1 h", "C0")
    assert len(answer.split(" | ")) == 1


def test_times_far_apart() -> None:
    events = [Event("A", 0, 0), Event("B", 10**17, 1)]
    assert found("SEQ(A a, B b) WITHIN 1000 w WINDOW 1000000 w", events) == ""
    assert found("SEQ(A a, B b) WITHIN 1000000 w WINDOW 1000000 w", events) == "0: 0 1"
