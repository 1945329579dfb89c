"""SELECT: FIRST, STRICT, LAST, CUMULATIVE and policies per variable. CONSUME is in test_consume.py."""

from __future__ import annotations

import pytest

from tests.reference.answers import found


def select(policy: str, pattern: str, events: str) -> str:
    within = "" if " WITHIN " in pattern else " WITHIN 1 h"
    return found(f"{pattern}{within} SELECT {policy}", events)


# --- FIRST ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "events", "expected"),
    [
        ("SEQ(A a, B b)", "A0 A1 B2 B3", "0 2 | 1 2"),
        ("SEQ(A a, B b)", "A0 X1 B2", "0 2"),
        ("SEQ(A a, B b)", "B0 A1", ""),
        ("SEQ(A a, B b) WITHIN 2 s", "A0 B2", "0 2"),
        ("SEQ(A a, B b) WITHIN 2 s", "A0 B3", ""),
        ("SEQ(A a, B b) WITHIN 3 EVENTS", "A0 X1 B2", "0 2"),
        ("SEQ(A a, B b) WITHIN 3 EVENTS", "A0 X1 X2 B3", ""),
        ("SEQ(A a, B b) WHERE b.x > a.x", "A0(x=5) B1(x=3) B2(x=9) B3(x=9)", "0 2"),
        ("SEQ(A a, B b) WHERE a.x > 1", "A0(x=1) A1(x=2) B2", "1 2"),
        ("SEQ(A a, B b, C c) WHERE c.x = b.x", "A0 B1(x=1) B2(x=2) C3(x=2)", ""),  # it never branches
        ("AND(A a, B b)", "B0 B1 A2 A3", "2 0 | 2 1"),
        ("SEQ(A a, ANY(2, B b, C c, D d))", "A0 D1 B2 C3", "0 2 - 1"),
        ("(SEQ(A a, B b)){2}", "A0 A1 B2 A3 B4", "0,3 2,4 | 1,3 2,4"),
    ],
)
def test_first_takes_the_first_event_that_it_can(pattern: str, events: str, expected: str) -> None:
    assert select("FIRST", pattern, events) == expected


@pytest.mark.parametrize(
    ("pattern", "events", "expected"),
    [
        # each element is asked about at once
        ("SEQ(A a, B+ b[], C c) WHERE b[i].x > 1", "A0 B1(x=1) B2(x=2) C3", "0 2 3"),
        ("SEQ(A a, B+ b[], C c) WHERE b[i].x > b[i-1].x", "A0 B1(x=5) B2(x=3) B3(x=7) C4", "0 1,3 4"),
        ("SEQ(A a, B+ b[], C c) WHERE SUM(b[..i].x) <= 5", "A0 B1(x=3) B2(x=3) B3(x=2) C4", "0 1,3 4"),
        ("SEQ(A a, B+ b[], C c) WHERE b[first].x > 1", "A0 B1(x=1) B2(x=2) B3(x=0) C4", "0 2,3 4"),
        ("SEQ(A a, B+ b[], C c) WHERE b[2].x > 1", "A0 B1(x=1) B2(x=1) B3(x=2) B4(x=0) C5", "0 1,3,4 5"),
        # all of them and the last, when the step after is taken
        ("SEQ(A a, B+ b[], C c) WHERE COUNT(b[]) > 1", "A0 B1 C2 B3 C4", "0 1,3 4"),
        ("SEQ(A a, B+ b[], C c) WHERE COUNT(b[]) < 2", "A0 B1 B2 C3", ""),
        ("SEQ(A a, B+ b[], C c) WHERE AVG(b[].x) >= c.x", "A0 B1(x=1) C2(x=2) B3(x=3) C4(x=2)", "0 1,3 4"),
        ("SEQ(A a, B+ b[], C c) WHERE b[last].x = c.x", "A0 B1(x=1) B2(x=2) C3(x=1) C4(x=2)", "0 1,2 4"),
        ("SEQ(A a, B+ b[], C c) WHERE b[last].x > 1", "A0 B1(x=1) C2 B3(x=2) C4", "0 1,3 4"),
        ("SEQ(A a, B* b[], C c) WHERE COUNT(b[]) > 0", "A0 C1 B2 C3", "0 2 3"),
        # or when no more elements fit into the list
        ("SEQ(A a, B{2} b[], C c) WHERE SUM(b[].x) = 5", "A0 B1(x=1) B2(x=1) B3(x=4) C4", "0 1,3 4"),
        ("SEQ(A a, B{1,2} b[], C c) WHERE b[last].x = 4", "A0 B1(x=1) B2(x=1) B3(x=4) C4", "0 1,3 4"),
        # or at the end, if nothing must follow
        ("SEQ(A a, B+ b[]) WHERE COUNT(b[]) = 2", "A0 B1 B2 B3", ""),
        ("SEQ(A a, B+ b[]) WHERE COUNT(b[]) = 3", "A0 B1 B2 B3", "0 1,2,3"),
        ("SEQ(A a, B{1,3} b[]) WHERE COUNT(b[]) <> 3", "A0 B1 B2 B3", "0 1,2"),
    ],
)
def test_first_asks_conjuncts_when_they_are_decided(pattern: str, events: str, expected: str) -> None:
    assert select("FIRST", pattern, events) == expected


@pytest.mark.parametrize(
    ("pattern", "events", "expected"),
    [
        # what is bound for the first time goes before another element
        ("SEQ(A a, B+ b[], B c)", "A0 B1 B2 B3", "0 1 2"),
        ("SEQ(A a, B* b[], B c)", "A0 B1 B2", "0 1 2"),
        ("SEQ(A a, AND(B+ b[], B c), D d)", "A0 B1 B2 B3 D4", "0 1,3 2 4"),
        ("SEQ(A a, B+ b[], B? c, D d)", "A0 B1 B2 B3 D4", "0 1 2 4"),
        # then the order of the text
        ("SEQ(A a, OR(B b, B c))", "A0 B1", "0 1 -"),
        ("SEQ(A a, AND(B b, B c))", "A0 B1 B2", "0 1 2"),
        ("SEQ(A a, ANY(1, B b, B c))", "A0 B1", "0 1 -"),
        ("SEQ(A a, B? b, B? c, D d)", "A0 B1 D2", "0 1 - 2"),
        ("SEQ(A a, ANY(2, B b, SEQ(C c, B d)))", "A0 C1 B2 B3", "0 2 1 3"),
        ("SEQ(A a, AND(B+ b[], B+ c[]), D d)", "A0 B1 B2 B3 B4 D5", "0 1,3,4 2 5"),
        ("SEQ((SEQ(X x, X? y)){2,3}, Z z)", "X0 X1 X2 X3 Z4", "0,2,3 1 4 | 1,3 2 4"),
        # if one of the ways is open
        ("SEQ(A a, OR(B b, B c)) WHERE b.x > 1", "A0 B1(x=1)", "0 - 1"),
        ("SEQ(A a, B+ b[], B c) WHERE c.x > 1", "A0 B1(x=1) B2(x=1) B3(x=2)", "0 1,2 3"),
    ],
)
def test_first_prefers(pattern: str, events: str, expected: str) -> None:
    assert select("FIRST", pattern, events) == expected


@pytest.mark.parametrize(
    ("pattern", "events", "expected"),
    [
        ("SEQ(A a, B+ b[], C c)", "A0 B1 B2 C3 B4", "0 1,2 3"),
        ("SEQ(A a, B* b[], C c)", "A0 C1 B2", "0 - 1"),
        ("SEQ(A a, B{2,} b[], C c)", "A0 B1 C2 B3 C4", "0 1,3 4"),
        ("SEQ(A a, B{1,2} b[], C c)", "A0 B1 B2 B3 C4", "0 1,2 4"),
        # nothing must follow: until the span ends
        ("SEQ(A a, B+ b[]) WITHIN 5 s", "A0 B1 B2 B6", "0 1,2"),
        ("SEQ(A a, B+ b[]) WITHIN 3 EVENTS", "A0 B1 X2 B3", "0 1"),
        ("SEQ(A a, B+ b[]) WITHIN 5 s", "A0 B6", ""),
        ("SEQ(A a, B* b[]) WITHIN 5 s", "A0 B6", "0 -"),
        ("SEQ(A a, B{2,3} b[])", "A0 B1", ""),
        ("SEQ(A a, B{1,2} b[])", "A0 B1 B2 B3", "0 1,2"),
        ("SEQ(A a, B+ b[])", "A0 B1 A2 B3", "0 1,3 | 2 3"),
        ("A+ a[] WITHIN 2 s", "A0 A1 A5", "0,1 | 1 | 5"),
        ("(SEQ(A a, B b))+", "A0 B1 A2 B3", "0,2 1,3 | 2 3"),
        ("(SEQ(A a, B b))+", "A0 B1 A2", ""),  # it took A2, and then no B came
        # an option that may end it
        ("SEQ(A a, B? b)", "A0 B1 B2", "0 1"),
        ("SEQ(A a, B? b) WITHIN 5 s", "A0 B6", "0 -"),
        ("SEQ(A a, B? b)", "A0", "0 -"),
        ("SEQ(A a, (SEQ(B b, C c))?)", "A0 B1", ""),  # it took B1, and then no C came
        ("SEQ(A a, B? b, C c)", "A0 C1 B2", "0 - 1"),
        ("SEQ(A a, B? b, C c)", "A0 B1 C2", "0 1 2"),
    ],
)
def test_first_lists_and_options(pattern: str, events: str, expected: str) -> None:
    assert select("FIRST", pattern, events) == expected


@pytest.mark.parametrize(
    ("pattern", "events", "expected"),
    [
        ("OR(A a, A b)", "A0", "- 0 | 0 -"),
        ("AND(A a, A b)", "A0 A1", "0 1 | 1 0"),
        ("SEQ(A? a, B b)", "A0 B1", "- 1 | 0 1"),
        ("SEQ(A? a, A b)", "A0 A1", "- 0 | - 1 | 0 1"),
        ("SEQ(A* a[], B b)", "A0 A1 B2", "- 2 | 0,1 2 | 1 2"),
        ("ANY(1, A a, A b)", "A0", "- 0 | 0 -"),
        ("SEQ(A|B a, B b)", "B0 B1", "0 1"),
    ],
)
def test_first_opens_a_run_per_variable(pattern: str, events: str, expected: str) -> None:
    assert select("FIRST", pattern, events) == expected


@pytest.mark.parametrize(
    ("pattern", "events", "expected"),
    [
        # an event that a negation forbids is not taken; the run waits for another
        ("SEQ(A a, NOT N n, B b) WHERE n.x = b.x", "A0 N1(x=1) B2(x=1) B3(x=2)", "0 3"),
        ("SEQ(A a, NOT N n, B b, C c) WHERE n.x = c.x", "A0 N1(x=1) B2 C3(x=1) C4(x=2)", "0 2 4"),
        ("SEQ(A a, NOT N n, B b, C c) WHERE n.x = b.x", "A0 N1(x=1) B2(x=1) B3(x=2) C4", "0 3 4"),
        ("SEQ(A a, NOT N n, B+ b[], C c) WHERE n.x > b.x", "A0 N1(x=5) B2(x=1) B3(x=9) C4", "0 2,3 4"),
        ("SEQ(A a, NOT N n, B+ b[], C c) WHERE n.x > b[first].x", "A0 N1(x=5) B2(x=1) B3(x=9) C4", "0 3 4"),
        ("SEQ(A a, NOT N n, B+ b[], C c) WHERE n.x > COUNT(b[])", "A0 N1(x=2) B2 C3 B4 C5", "0 2,4 5"),
        ("(SEQ(A a, NOT N n, C c, D d)){2} WHERE n.x < d.x", "A0 C1 D2(x=1) A3 N4(x=9) C5 D6(x=1)", "0,3 1,5 2,6"),
        ("(SEQ(A a, NOT N n, C c)){2} WHERE n.x < c.x", "A0 C1(x=0) A2 N3(x=1) C4(x=2) C5(x=1)", "0,2 1,5"),
        ("(SEQ(A a, NOT N n, C c)){2} WHERE n.x = a[i].x", "A0(x=1) C1 A2(x=2) N3(x=1) C4", "0,2 1,4"),
        ("(SEQ(A a, NOT N n, C c, D? d))+ WHERE n.x < d.x", "A0 N1(x=5) C2 A3 D4(x=5)", "0 2 4"),
        # first and last in the sequence
        ("SEQ(NOT N n, A a, B b) WITHIN 5 s", "N0@0 A1@1 B2@2 B3@5.5", "1 3"),
        ("SEQ(NOT N n, A a, B+ b[]) WITHIN 5 s", "N0@0 A1@1 B2@2 B3@5.5", "1 2,3"),
        ("SEQ(NOT N n, A a, B+ b[]) WITHIN 5 s", "N0@0 A1@1 B2@2 B3@4.5", ""),
        ("SEQ(A a, B b, NOT N n) WITHIN 5 s", "A0 B1 N2 B3", ""),
        ("SEQ(A a, B b, NOT N n) WITHIN 5 s", "A0 B1 B3 N6", "0 1"),
    ],
)  # fmt: skip
def test_first_with_negation(pattern: str, events: str, expected: str) -> None:
    assert select("FIRST", pattern, events) == expected


# --- STRICT ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "events", "expected"),
    [
        ("SEQ(A a, B b)", "A0 B1 A2 X3 B4", "0 1"),
        ("SEQ(A a, B b)", "A0 A1 B2", "1 2"),
        ("SEQ(A a, B b) WHERE b.x > 1", "A0 B1(x=0) B2(x=2)", ""),
        ("SEQ(A a, B b) WITHIN 1 s", "A0 B2", ""),
        ("AND(A a, B b)", "B0 A1 X2 B3", "1 0"),
        ("SEQ(A a, B+ b[], C c)", "A0 B1 B2 C3", "0 1,2 3"),
        ("SEQ(A a, B+ b[], C c)", "A0 B1 X2 C3", ""),
        ("SEQ(A a, B+ b[], C c) WHERE COUNT(b[]) > 1", "A0 B1 C2 B3 C4", ""),
        # complete when it ends
        ("SEQ(A a, B+ b[])", "A0 B1 B2 X3 B4", "0 1,2"),
        ("SEQ(A a, B+ b[])", "A0 B1 B2", "0 1,2"),
        ("SEQ(A a, B? b)", "A0 X1 B2", "0 -"),
        ("SEQ(A a, B? b)", "A0 B1", "0 1"),
        ("SEQ(A a, B{2,} b[])", "A0 B1 X2 B3", ""),
        ("A+ a[]", "A0 A1 X2 A3", "0,1 | 1 | 3"),
        ("A+ a[] WHERE a[i].x > a[i-1].x", "A0(x=1) A1(x=2) A2(x=1) A3(x=5)", "0,1 | 1 | 2,3 | 3"),
        # negation
        ("SEQ(A a, B b, NOT N n)", "A0 B1 X2", "0 1"),
        ("SEQ(A a, B b, NOT N n)", "A0 B1 X2 N3", ""),
        ("SEQ(NOT N n, A a, B b)", "N0 A1 B2", ""),
        # next to each other in the partition
        ("SEQ(A a, B b) WITHIN 1 h PARTITION BY k", "A0(k=1) B1(k=2) B2(k=1)", "0 2"),
        ("SEQ(A a, B b) WITHIN 1 h PARTITION BY k", "A0(k=1) X1(k=1) B2(k=1)", ""),
        ("SEQ(A a, B b) WITHIN 1 h WINDOW 2 EVENTS", "A0 B1 A2 X3 B4", "0: 0 1"),
    ],
)
def test_strict(pattern: str, events: str, expected: str) -> None:
    assert select("STRICT", pattern, events) == expected


# --- LAST -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "events", "expected"),
    [
        ("SEQ(A a, B b)", "A0 A1 B2 B3", "1 2 | 1 3"),
        ("SEQ(A a, B b, C c)", "A0 B1 A2 B3 C4", "2 3 4"),
        ("SEQ(A a, B b, C c)", "A0 B1 B2 A3 C4", "0 2 4"),
        ("SEQ(A a, B b) WHERE a.x = b.x", "A0(x=1) A1(x=2) B2(x=1)", "0 2"),
        ("SEQ(A a, NOT N n, B b)", "A0 B1 A2 N3 B4", "0 1"),
        ("SEQ(A a, B b, NOT N n) WITHIN 3 s", "A0 A1 B2 N4", "0 2"),
        # from the last event backwards: the later one, then the longer match
        ("SEQ(A a, B+ b[])", "A0 B1 B2", "0 1 | 0 1,2"),
        ("A+ a[]", "A0 A1", "0 | 0,1"),
        ("SEQ(A? a, B b)", "A0 B1", "0 1"),
        ("AND(A a, B b)", "A0 B1 A2", "0 1 | 2 1"),
        ("OR(SEQ(A a, B b), SEQ(A c, C d, B e))", "A0 C1 B2", "- - 0 1 2"),
        # the same events: from the last variable backwards
        ("AND(A a, A b)", "A0 A1", "0 1"),
        ("OR(A a, A b)", "A0", "- 0"),
        ("AND(A{2} a[], A b)", "A0 A1 A2", "0,1 2"),
        ("AND(A a, A{2} b[])", "A0 A1 A2", "0 1,2"),
    ],
)
def test_last(pattern: str, events: str, expected: str) -> None:
    assert select("LAST", pattern, events) == expected


# --- CUMULATIVE -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "events", "expected"),
    [
        ("SEQ(A a, B b)", "A0 A1 B2 B3", "0,1 2 | 0,1 3"),
        ("SEQ(A a, B b) WHERE a.x < b.x", "A0(x=1) A1(x=3) A2(x=1) B3(x=2)", "0,2 3"),
        ("SEQ(A a, B b, C c)", "A0 B1 A2 B3 C4", "0,2 1,3 4"),
        ("SEQ(A a, B b, C c)", "A0 B1 A2 C3", "0 1 3"),  # A2 takes part in no match
        ("SEQ(A a, B+ b[])", "A0 B1 A2 B3", "0 1 | 0,2 1,3"),
        ("OR(A a, A b)", "A0", "0 0"),
        ("SEQ(A? a, B b)", "A0 B1", "0 1"),
        ("SEQ(A a, NOT N n, B b)", "A0 N1 A2 B3", "2 3"),
        ("AND(A a, B b)", "A0 B1 A2", "0 1 | 2 1"),
    ],
)
def test_cumulative(pattern: str, events: str, expected: str) -> None:
    assert select("CUMULATIVE", pattern, events) == expected


# --- per variable ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "pattern", "events", "expected"),
    [
        ("EACH, LAST b", "SEQ(A a, B b, C c)", "A0 A1 B2 B3 C4", "0 3 4 | 1 3 4"),
        ("EACH, FIRST b", "SEQ(A a, B b, C c)", "A0 A1 B2 B3 C4", "0 2 4 | 1 2 4"),
        ("EACH, CUMULATIVE b", "SEQ(A a, B b, C c)", "A0 A1 B2 B3 C4", "0 2,3 4 | 1 2,3 4"),
        ("EACH, LAST a", "SEQ(A a, B b)", "A0 A1 B2 B3", "1 2 | 1 3"),
        ("EACH, FIRST a", "SEQ(A a, B b)", "A0 A1 B2 B3", "0 2 | 0 3"),
        # they agree on the last event
        ("EACH, LAST b", "SEQ(A a, B b)", "A0 B1 B2", "0 1 | 0 2"),
        ("EACH, LAST b", "AND(A a, B b)", "A0 B1 B2 A3", "0 1 | 0 2 | 3 2"),
        # several: from the last one backwards
        ("EACH, LAST a, FIRST b", "SEQ(A a, B b, C c)", "A0 B1 A2 B3 C4", "0 1 4"),
        ("EACH, FIRST a, LAST b", "SEQ(A a, B b, C c)", "A0 B1 A2 B3 C4", "0 3 4"),
        ("EACH, LAST a, LAST b", "SEQ(A a, B b, C c)", "A0 B1 A2 B3 C4", "2 3 4"),
        ("EACH, LAST a, CUMULATIVE b", "SEQ(A a, B b, C c)", "A0 A1 B2 B3 C4", "1 2,3 4"),
        ("EACH, CUMULATIVE a, CUMULATIVE b", "SEQ(A a, B b, C c)", "A0 A1 B2 B3 C4 C5", "0,1 2,3 4 | 0,1 2,3 5"),
        # lists and options
        ("EACH, LAST b", "SEQ(A a, B+ b[], C c)", "A0 B1 B2 C3", "0 1,2 3"),
        ("EACH, LAST b", "SEQ(A a, B? b, C c)", "A0 B1 C2", "0 1 2"),
        ("EACH, CUMULATIVE b", "SEQ(A a, B? b, C c)", "A0 B1 C2", "0 1 2"),
        ("EACH, LAST b", "SEQ(A a, B b, C c) WHERE b.x > 1", "A0 B1(x=2) B2(x=1) C3", "0 1 3"),
    ],
)
def test_per_variable(policy: str, pattern: str, events: str, expected: str) -> None:
    assert select(policy, pattern, events) == expected
