"""NOT: over which span, against which events, and what the conjuncts on it say."""

from __future__ import annotations

import pytest

from tests.reference.answers import found

# --- the span -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("select", ["EACH", "FIRST"])
@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ("A0 C1", "0 1"),
        ("A0 B1 C2", ""),
        ("B0 A1 C2", "1 2"),
        ("A0 C1 B2", "0 1"),
        ("A0 B1 A2 C3", "2 3"),
        ("A0@5 B1@5 C2@5", ""),  # at the same time, but between by number
        ("B0@5 A1@5 C2@5", "1 2"),
        ("A0@5 C1@5 B2@5", "0 1"),
    ],
)
def test_in_the_middle(select: str, events: str, expected: str) -> None:
    assert found(f"SEQ(A a, NOT B b, C c) WITHIN 1 h SELECT {select}", events) == expected


@pytest.mark.parametrize(
    ("pattern", "events", "expected"),
    [
        # several in a row
        ("SEQ(A a, NOT M m, NOT N n, C c)", "A0 C1", "0 1"),
        ("SEQ(A a, NOT M m, NOT N n, C c)", "A0 M1 C2", ""),
        ("SEQ(A a, NOT M m, NOT N n, C c)", "A0 N1 C2", ""),
        ("SEQ(A a, NOT N n, B b, NOT M m, C c)", "A0 M1 B2 N3 C4", "0 2 4"),
        ("SEQ(A a, NOT N n, B b, NOT M m, C c)", "A0 B1 M2 C3", ""),
        # of several types, of any type
        ("SEQ(A a, NOT M|N n, C c)", "A0 N1 C2", ""),
        ("SEQ(A a, NOT M|N n, C c)", "A0 B1 C2", "0 2"),
        ("SEQ(A a, NOT * n, C c)", "A0 C1 C2", "0 1"),
        # from the last event before to the first after
        ("SEQ(AND(A a, B b), NOT N n, AND(C c, D d))", "B0 N1 A2 C3 N4 D5", "2 0 3 5"),
        ("SEQ(AND(A a, B b), NOT N n, AND(C c, D d))", "A0 B1 N2 C3 D4", ""),
        ("SEQ(A+ a[], NOT N n, C c)", "A0 N1 A2 C3", "0,2 3 | 2 3"),
        ("SEQ(A a, NOT N n, B+ b[])", "A0 B1 N2 B3", "0 1 | 0 1,3"),
        ("SEQ((SEQ(A a, B b))+, NOT N n, C c)", "A0 B1 N2 A3 B4 C5", "0 4 5 | 0,3 1,4 5 | 3 4 5"),
        # beside optional parts and lists of none
        ("SEQ(A a, B? b, NOT N n, C c)", "A0 N1 B2 C3", "0 2 3"),
        ("SEQ(A a, NOT N n, B? b, C c)", "A0 B1 N2 C3", "0 1 3"),
        ("SEQ(A a, B* b[], NOT N n, C c)", "A0 N1 B2 C3", "0 2 3"),
        ("SEQ(A a, NOT N n, B* b[], C c)", "A0 B1 N2 C3", "0 1 3"),
        # in branches
        ("OR(SEQ(A a, NOT N n, B b), C c)", "A0 N1 B2 C3", "- - 3"),
        ("SEQ(X x, OR(SEQ(NOT N n, A a), B b))", "N0 X1 A2", "1 2 -"),
        ("SEQ(X x, OR(SEQ(NOT N n, A a), B b))", "X0 N1 A2 B3", "0 - 3"),
        ("SEQ(OR(SEQ(A a, NOT N n), B b), C c)", "A0 N1 B2 C3", "- 2 3"),
        ("SEQ(OR(SEQ(A a, NOT N n), B b), C c)", "A0 C1 N2", "0 - 1"),
        ("SEQ(OR(A a, SEQ(NOT N n, B b)), C c)", "N0 B1 A2 C3", "2 - 3"),
        ("OR(SEQ(A a, NOT N n), B b)", "A0 N1 B2", "- 2"),
        # in repeated groups, per round
        ("(SEQ(A a, NOT N n, B b)){2}", "N0 A1 B2 N3 A4 B5 N6", "1,4 2,5"),
        ("(SEQ(A a, NOT N n, B b)){2}", "A0 N1 B2 A3 B4", ""),
        ("SEQ(X x, (SEQ(A a, NOT N n, B b))+, Y y)", "X0 N1 A2 B3 N4 Y5", "0 2 3 5"),
        ("(SEQ(A a, NOT N n, B+ b[])){2}", "A0 B1 N2 B3 A4 B5", "0,4 1,3,5 | 0,4 1,5"),
        ("(SEQ(X x, (SEQ(A a, NOT N n, B b))+)){2}", "X0 A1 B2 N3 X4 A5 B6", "0,4 1,5 2,6"),
        # an event that is bound elsewhere forbids like any other
        ("AND(SEQ(A a, NOT B b, C c), B d)", "A0 B1 C2", ""),
        ("AND(SEQ(A a, NOT B b, C c), B d)", "A0 C1 B2", "0 1 2"),
    ],
)
def test_which_events_are_around_it(pattern: str, events: str, expected: str) -> None:
    assert found(f"{pattern} WITHIN 1 h", events) == expected


AT_THE_ENDS = [
    # first: from the last event − WITHIN
    ("SEQ(NOT N n, A a) WITHIN 5 s", "N0@0 A1@5", ""),
    ("SEQ(NOT N n, A a) WITHIN 5 s", "N0@0 A1@5.000001", "1"),
    ("SEQ(NOT N n, A a) WITHIN 5 s", "N0@9 A1@9", ""),
    ("SEQ(NOT N n, A a) WITHIN 5 s", "A0@9 N1@9", "0"),
    ("SEQ(NOT N n, A a, C c) WITHIN 5 s", "N0@0 A1@2 C2@5", ""),
    ("SEQ(NOT N n, A a, C c) WITHIN 5 s", "N0@0 A1@2 C2@5.000001", "1 2"),
    ("SEQ(NOT N n, A a, C c) WITHIN 5 s", "A0@2 N1@3 C2@5", "0 2"),
    ("SEQ(NOT N n, A a, C c) WITHIN 4 EVENTS", "N0 A1 X2 C3", ""),
    ("SEQ(NOT N n, A a, C c) WITHIN 4 EVENTS", "N0 X1 A2 X3 C4", "2 4"),
    ("SEQ(NOT N n, A a) WITHIN 1 EVENTS", "N0 A1", "1"),
    ("SEQ(NOT M m, NOT N n, A a) WITHIN 5 s", "M0@1 N1@2 A2@3", ""),
    ("SEQ(NOT M m, NOT N n, A a) WITHIN 5 s", "M0@1 A1@3", ""),
    # last: to the first event + WITHIN
    ("SEQ(A a, NOT N n) WITHIN 5 s", "A0@0 N1@5", ""),
    ("SEQ(A a, NOT N n) WITHIN 5 s", "A0@0 N1@5.000001", "0"),
    ("SEQ(A a, NOT N n) WITHIN 5 s", "A0@9 N1@9", ""),
    ("SEQ(A a, NOT N n) WITHIN 5 s", "N0@9 A1@9", "1"),
    ("SEQ(A a, C c, NOT N n) WITHIN 5 s", "A0@0 C1@2 N2@5", ""),
    ("SEQ(A a, C c, NOT N n) WITHIN 5 s", "A0@0 C1@2 N2@5.000001", "0 1"),
    ("SEQ(A a, C c, NOT N n) WITHIN 5 s", "A0@0 N1@1 C2@2", "0 2"),
    ("SEQ(A a, C c, NOT N n) WITHIN 4 EVENTS", "A0 C1 X2 N3", ""),
    ("SEQ(A a, C c, NOT N n) WITHIN 4 EVENTS", "A0 C1 X2 X3 N4", "0 1"),
    ("SEQ(A a, NOT N n) WITHIN 1 EVENTS", "A0 N1", "0"),
    ("SEQ(A a, NOT M m, NOT N n) WITHIN 5 s", "A0@0 N1@1", ""),
    ("SEQ(A a, NOT M m, NOT N n) WITHIN 5 s", "A0@0 M1@1", ""),
    # everywhere
    ("SEQ(NOT M m, A a, NOT N n, C c, NOT O o) WITHIN 5 s", "N0@1 A1@2 M2@3 O3@3 C4@4 N5@5", "1 4"),
    ("SEQ(NOT M m, A a, NOT N n, C c, NOT O o) WITHIN 5 s", "A1@2 C4@4 O5@7", ""),
]
BESIDE_A_CHOICE = [  # first or last only if the part beside it is left out
    ("SEQ(A? a, NOT N n, C c) WITHIN 5 s", "N0@0 A1@1 C2@2", "1 2"),
    ("SEQ(A? a, NOT N n, C c) WITHIN 5 s", "A0@0 N1@1 C2@2", ""),
    ("SEQ(A? a, NOT N n, C c) WITHIN 5 s", "N0@0 A1@4 C2@6", "- 2 | 1 2"),
    ("SEQ(A* a[], NOT N n, C c) WITHIN 5 s", "N0@0 A1@1 C2@2", "1 2"),
    ("SEQ(A a, NOT N n, C? c) WITHIN 5 s", "A0@0 C1@1 N2@2", "0 1"),
    ("SEQ(A a, NOT N n, C? c) WITHIN 5 s", "A0@0 C1@1 N2@6", "0 - | 0 1"),
    ("SEQ(A a, NOT N n, C* c[]) WITHIN 5 s", "A0@0 C1@1 N2@2", "0 1"),
    ("OR(SEQ(NOT N n, A a), B b) WITHIN 5 s", "N0 A1 B2", "- 2"),
    ("SEQ(OR(SEQ(NOT N n, A a), B b), C c) WITHIN 5 s", "N0 A1 B2 C3", "- 2 3"),
    ("SEQ(A a, OR(B b, SEQ(C c, NOT N n))) WITHIN 5 s", "A0 C1 B2 N3", "0 2 -"),
]


@pytest.mark.parametrize("select", ["EACH", "FIRST"])
@pytest.mark.parametrize(("query", "events", "expected"), AT_THE_ENDS)
def test_at_the_ends(query: str, events: str, expected: str, select: str) -> None:
    assert found(f"{query} SELECT {select}", events) == expected


@pytest.mark.parametrize(("query", "events", "expected"), BESIDE_A_CHOICE)
def test_beside_a_choice(query: str, events: str, expected: str) -> None:
    assert found(query, events) == expected


@pytest.mark.parametrize(
    ("query", "events", "expected"),
    [
        ("SEQ(A a, NOT N n) WITHIN 5 s", "A2 N3", ""),
        ("SEQ(A a, NOT N n) WITHIN 5 s WINDOW 3 s", "A2 N3", "0: 2"),
        ("SEQ(A a, NOT N n) WITHIN 5 s WINDOW 3 s", "A1 N2", ""),
        ("SEQ(NOT N n, A a) WITHIN 5 s", "N2 A3", ""),
        ("SEQ(NOT N n, A a) WITHIN 5 s WINDOW 3 s", "N2 A3", "3000000: 3"),
        ("SEQ(NOT N n, A a) WITHIN 3 EVENTS WINDOW 2 EVENTS", "X0 N1 A2", "2: 2"),
        ("SEQ(A a, NOT N n) WITHIN 3 EVENTS WINDOW 2 EVENTS", "X0 A1 N2", "0: 1"),
        ("SEQ(A a, NOT N n) WITHIN 5 s WINDOW 2 s ON A", "A0 N2", "0: 0"),
        ("SEQ(A a, NOT N n, C c) WITHIN 1 h PARTITION BY k", "A0(k=1) N1(k=2) C2(k=1)", "0 2"),
        ("SEQ(A a, NOT N n, C c) WITHIN 1 h PARTITION BY k", "A0(k=1) N1 C2(k=1)", "0 2"),
        ("SEQ(A a, NOT N n, C c) WITHIN 1 h PARTITION BY k", "A0(k=1) N1(k=1) C2(k=1)", ""),
        ("SEQ(A a, NOT N n) WITHIN 2 EVENTS PARTITION BY k", "A0(k=1) X1(k=2) N2(k=1)", ""),
    ],
)
def test_only_the_events_of_the_window_and_partition_count(query: str, events: str, expected: str) -> None:
    assert found(query, events) == expected


# --- conjuncts on it ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("select", ["EACH", "FIRST"])
@pytest.mark.parametrize(
    ("where", "events", "expected"),
    [
        # on it alone
        ("b.v > 5", "A0 B1(v=5) C2", "0 2"),
        ("b.v > 5", "A0 B1(v=6) C2", ""),
        ("b.v > 5", "A0 B1(v=0) B2(v=6) C3", ""),
        ("b.v > 5", "A0 B1 C2", "0 2"),  # missing
        ("NOT (b.v > 5)", "A0 B1 C2", ""),
        # naming an earlier variable, a later one, both
        ("b.v > a.v", "A0(v=5) B1(v=5) C2", "0 2"),
        ("b.v > a.v", "A0(v=5) B1(v=6) C2", ""),
        ("b.v > c.v", "A0 B1(v=5) C2(v=5)", "0 2"),
        ("b.v > c.v", "A0 B1(v=6) C2(v=5)", ""),
        ("b.v > c.v", "A0 B1(v=5) C2(v=4) C3(v=9)", "0 3"),
        ("a.v < b.v < c.v", "A0(v=1) B1(v=1) C2(v=9)", "0 2"),
        ("a.v < b.v < c.v", "A0(v=1) B1(v=5) C2(v=9)", ""),
        # all conjuncts, by one event
        ("b.v > 1 AND b.w > 1", "A0 B1(v=2, w=1) C2", "0 2"),
        ("b.v > 1, b.w > 1", "A0 B1(v=2, w=1) B2(v=1, w=2) C3", "0 3"),
        ("b.v > 1 AND b.w > 1", "A0 B1(v=2, w=2) C2", ""),
        ("b.v > 1 OR b.w > 1", "A0 B1(v=2, w=0) C2", ""),
        # others do not matter to it
        ("a.v > 1", "A0(v=2) B1(v=0) C2", ""),
        ("a.v > 1 AND b.v > 1", "A0(v=0) C1", ""),
    ],
)
def test_conjuncts_say_which_events_forbid(where: str, events: str, expected: str, select: str) -> None:
    assert found(f"SEQ(A a, NOT B b, C c) WHERE {where} WITHIN 1 h SELECT {select}", events) == expected


@pytest.mark.parametrize(
    ("pattern", "where", "events", "expected"),
    [
        # a far variable
        ("SEQ(A a, NOT N n, C c, D d)", "n.v = d.v", "A0 N1(v=1) C2 D3(v=1) D4(v=2)", "0 2 4"),
        ("SEQ(X x, A a, NOT N n, C c)", "n.v = x.v", "X0(v=1) X1(v=2) A2 N3(v=1) C4", "1 2 4"),
        # at the ends
        ("SEQ(NOT N n, A a)", "n.v > a.v", "N0(v=5) A1(v=4) A2(v=5)", "2"),
        ("SEQ(A a, NOT N n)", "n.v > a.v", "A0(v=4) A1(v=5) N2(v=5)", "1"),
        # vacuous: an unbound variable leaves nothing that says which events are harmless
        ("SEQ(A? a, NOT N n, C c)", "n.v > a.v", "N0(v=1) C1", ""),
        ("SEQ(A? a, NOT N n, C c)", "n.v > a.v", "A0(v=5) N1(v=1) C2", "0 2"),
        ("SEQ(OR(A a, B b), NOT N n, C c)", "n.v > a.v", "A0(v=5) B1 N2(v=1) C3", "0 - 3"),
        # lists: against every element, against an aggregate
        ("SEQ(A+ a[], NOT N n, C c)", "n.v > a[i].v", "A0(v=1) A1(v=9) N2(v=5) C3", "0,1 3 | 1 3"),
        ("SEQ(A+ a[], NOT N n, C c)", "n.v > a.v", "A0(v=1) A1(v=9) N2(v=5) C3", "0,1 3 | 1 3"),
        ("SEQ(A+ a[], NOT N n, C c)", "n.v > SUM(a[].v)", "A0(v=1) A1(v=9) N2(v=9.5) C3", "0,1 3"),
        ("SEQ(A+ a[], NOT N n, C c)", "n.v > a[last].v", "A0(v=1) A1(v=9) N2(v=5) C3", "0,1 3 | 1 3"),
        ("SEQ(A* a[], NOT N n, C c)", "n.v > COUNT(a[])", "N0(v=0) C1", "- 1"),
        ("SEQ(A* a[], NOT N n, C c)", "n.v > COUNT(a[])", "N0(v=1) C1", ""),
        # repeated groups: against its own round
        ("(SEQ(A a, NOT N n, C c)){2}", "n.v = a.v", "A0(v=1) N1(v=2) C2 A3(v=2) C4", "0,3 2,4"),
        ("(SEQ(A a, NOT N n, C c)){2}", "n.v = a.v", "A0(v=1) C1 A2(v=2) N3(v=1) C4", "0,2 1,4"),
        ("(SEQ(A a, NOT N n, C c)){2}", "n.v = a[i].v", "A0(v=1) C1 A2(v=2) N3(v=2) C4", ""),
        ("(SEQ(A a, NOT N n, C c)){2}", "n.v = c.v", "A0 N1(v=2) C2(v=1) A3 C4(v=2)", "0,3 2,4"),
        ("(SEQ(A a, NOT N n, C c)){2}", "n.v = a[first].v", "A0(v=1) C1 A2(v=2) N3(v=1) C4", ""),
        ("(SEQ(A a, NOT N n, C c)){2}", "n.v < a[i-1].v", "A0(v=5) C1 A2 N3(v=5) C4", "0,2 1,4"),
        ("(SEQ(A a, NOT N n, C c)){2}", "n.v < a[i-1].v", "A0(v=5) C1 A2 N3(v=4) C4", ""),
        ("(SEQ(A a, NOT N n, C c)){2}", "n.v < a[i-1].v", "A0(v=5) N1(v=9) C2 A3 C4", ""),  # nothing before: vacuous
        ("(SEQ(X x, (SEQ(A a, NOT N n, C c)){1,2})){2}", "n.v = x.v", "X0(v=1) A1 N2(v=2) C3 X4(v=2) A5 C6",
         "0,4 1,5 3,6"),
        ("(SEQ(X x, (SEQ(A a, NOT N n, C c)){1,2})){2}", "n.v = x.v", "X0(v=1) A1 C2 X3(v=2) A4 N5(v=2) C6", ""),
    ],
)  # fmt: skip
def test_conjuncts_that_name_others(pattern: str, where: str, events: str, expected: str) -> None:
    assert found(f"{pattern} WHERE {where} WITHIN 1 h", events) == expected
