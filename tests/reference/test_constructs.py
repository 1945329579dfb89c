"""Every construct of the pattern language: what it matches, what it only nearly matches, and each inside each other."""

from __future__ import annotations

import pytest

from penstock.errors import QueryError
from tests.reference.answers import found


def each(pattern: str, events: str) -> str:
    return found(f"{pattern} WITHIN 1 h", events)


@pytest.mark.parametrize(
    ("pattern", "events", "expected"),
    [
        ("A a", "A0 B1 A2", "0 | 2"),
        ("A", "A0 B1 A2", "0 | 2"),
        ("A|B x", "A0 B1 C2", "0 | 1"),
        ("* x", "A0 B1", "0 | 1"),
        ("`A` `in`", "A0", "0"),
        ("A a", "B0", ""),
        ("A a", "", ""),
    ],
)
def test_one_event(pattern: str, events: str, expected: str) -> None:
    assert each(pattern, events) == expected


@pytest.mark.parametrize("pattern", ["SEQ(A a, B b)", "SEQ(A a; B b)", "(A a, B b)", "seq(A a, B b)"])
@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ("A0 B1", "0 1"),
        ("A0 C1 B2", "0 2"),
        ("B0 A1", ""),
        ("A0 A1", ""),
        ("A0 A1 B2 B3", "0 2 | 0 3 | 1 2 | 1 3"),
        ("B1 A0", "0 1"),  # the order of the input does not matter
        ("A5@1 B0@2", "5 0"),  # time comes before number
        ("A0@5 B1@5", "0 1"),  # number breaks ties
        ("B0@5 A1@5", ""),
    ],
)
def test_sequence(pattern: str, events: str, expected: str) -> None:
    assert each(pattern, events) == expected


@pytest.mark.parametrize(
    ("pattern", "events", "expected"),
    [
        ("SEQ(A a, A b)", "A0 A1 A2", "0 1 | 0 2 | 1 2"),
        ("SEQ(A a, A b)", "A0", ""),
        ("SEQ(A a)", "A0", "0"),
        ("SEQ(A a, B b, C c)", "A0 B1 C2", "0 1 2"),
        ("SEQ(A a, B b, C c)", "A0 C1 B2", ""),
        ("SEQ(A|B x, B|C y)", "B0 B1 A2 C3", "0 1 | 0 3 | 1 3 | 2 3"),
    ],
)
def test_longer_sequences(pattern: str, events: str, expected: str) -> None:
    assert each(pattern, events) == expected


@pytest.mark.parametrize("pattern", ["AND(A a, B b)", "A a AND B b", "A a ∧ B b", "ANY(2, A a, B b)"])
@pytest.mark.parametrize(
    ("events", "expected"),
    [("A0 B1", "0 1"), ("B0 A1", "1 0"), ("A0 A1", ""), ("B0@5 A1@5", "1 0")],
)
def test_conjunction(pattern: str, events: str, expected: str) -> None:
    assert each(pattern, events) == expected


@pytest.mark.parametrize(
    ("pattern", "events", "expected"),
    [
        ("AND(A a, A b)", "A0", ""),
        ("AND(A a, A b)", "A0 A1", "0 1 | 1 0"),
        ("AND(A|B x, B|C y)", "B0", ""),
        ("AND(A|B x, B|C y)", "B0 B1", "0 1 | 1 0"),
        ("AND(* x, B b)", "B0", ""),
        ("AND(A a, AND(A b, A c))", "A0 A1", ""),
        ("AND(A a, SEQ(A b, A c))", "A0 A1 A2", "0 1 2 | 1 0 2 | 2 0 1"),
        ("ANY(2, A a, A b)", "A0", ""),
        ("ANY(2, A a, A b, A c)", "A0 A1", "- 0 1 | - 1 0 | 0 - 1 | 0 1 - | 1 - 0 | 1 0 -"),
        ("AND(A{2} a[], A b)", "A0 A1", ""),
        ("AND(A{2} a[], A b)", "A0 A1 A2", "0,1 2 | 0,2 1 | 1,2 0"),
    ],
)
def test_no_event_is_used_twice(pattern: str, events: str, expected: str) -> None:
    assert each(pattern, events) == expected


@pytest.mark.parametrize("pattern", ["OR(A a, B b)", "A a OR B b", "A a ∨ B b", "ANY(1, A a, B b)"])
@pytest.mark.parametrize(("events", "expected"), [("A0 B1", "- 1 | 0 -"), ("C0", ""), ("B0", "- 0")])
def test_disjunction(pattern: str, events: str, expected: str) -> None:
    assert each(pattern, events) == expected


@pytest.mark.parametrize(
    ("pattern", "events", "expected"),
    [
        ("OR(A a, A b)", "A0", "- 0 | 0 -"),  # two assignments
        ("ANY(2, A a, B b, C c)", "C0 A1", "1 - 0"),
        ("ANY(2, A a, B b, C c)", "A0 B1 C2", "- 1 2 | 0 - 2 | 0 1 -"),
        ("ANY(2, A a, B b, C c)", "A0 A1", ""),
        ("any(3, A a, B b, C c)", "C0 A1 B2", "1 2 0"),
        ("any(3, A a, B b, C c)", "C0 A1", ""),
    ],
)
def test_choice(pattern: str, events: str, expected: str) -> None:
    assert each(pattern, events) == expected


@pytest.mark.parametrize(
    ("pattern", "events", "expected"),
    [
        ("A+ a[]", "A0 B1 A2", "0 | 0,2 | 2"),
        ("A+ a[]", "B0", ""),
        ("KLEENE(A a)", "A0 B1 A2", "0 | 0,2 | 2"),
        ("A+ a[]", "A1@5 A0@5", "0 | 0,1 | 1"),  # in stream order
        ("A|B+ a[]", "A0 B1", "0 | 0,1 | 1"),
        ("SEQ(A* a[], B b)", "A0 A1 B2", "- 2 | 0 2 | 0,1 2 | 1 2"),
        ("SEQ(A* a[], B b)", "B0 A1", "- 0"),
        ("A{2} a[]", "A0 A1 A2", "0,1 | 0,2 | 1,2"),
        ("A{2} a[]", "A0", ""),
        ("A{2,} a[]", "A0 A1 A2", "0,1 | 0,1,2 | 0,2 | 1,2"),
        ("A{2,3} a[]", "A0 A1 A2 A3", "0,1 | 0,1,2 | 0,1,3 | 0,2 | 0,2,3 | 0,3 | 1,2 | 1,2,3 | 1,3 | 2,3"),
        ("A{2,3} a[]", "A0", ""),
        ("SEQ(A{0,1} a[], B b)", "A0 A1 B2", "- 2 | 0 2 | 1 2"),
        ("A{1000000000} a[]", "A0 A1", ""),
        ("A{1,1000000000} a[]", "A0 A1", "0 | 0,1 | 1"),
    ],
)
def test_list(pattern: str, events: str, expected: str) -> None:
    assert each(pattern, events) == expected


@pytest.mark.parametrize(
    ("pattern", "events", "expected"),
    [
        ("(SEQ(A a, B b))+", "A0 B1 A2 B3", "0 1 | 0 3 | 0,2 1,3 | 2 3"),
        ("(SEQ(A a, B b))+", "A0 A1 B2 B3", "0 2 | 0 3 | 1 2 | 1 3"),  # rounds do not overlap
        ("(A a, B b){2}", "A0 B1 A2 B3", "0,2 1,3"),
        ("(A a, B b){2}", "A0 A1 B2 B3", ""),
        ("(SEQ(A a, B b)){2,3}", "A0 B1 A2 B3", "0,2 1,3"),
        ("(SEQ(A a, B b)){3,4}", "A0 B1 A2 B3 A4 B5", "0,2,4 1,3,5"),
        ("(SEQ(A a, B b)){1,2}", "A0 B1 A2 B3 A4 B5", "0 1 | 0 3 | 0 5 | 0,2 1,3 | 0,2 1,5 | 0,4 1,5 | 0,4 3,5 | 2 3 | "
         "2 5 | 2,4 3,5 | 4 5"),
        ("SEQ((SEQ(A a, B b))*, C c)", "A0 B1 C2", "- - 2 | 0 1 2"),
        ("(AND(A a, B b)){2}", "A0 B1 B2 A3", "0,3 1,2"),
        ("(AND(A a, B b)){2}", "A0 A1 B2 B3", ""),
        ("(OR(A a, B b)){2}", "A0 B1", "0 1"),
        ("(OR(A a, B b)){2}", "A0 A1", "0,1 -"),
        ("(OR(A a, B b)){2}", "A0", ""),
        ("(ANY(1, A a, B b)){2}", "B0 A1", "1 0"),
        ("(A+ a[])+", "A0 A1", "0 | 0,1 | 1"),  # two ways to read 0,1 are one match
        ("(A{2} a[]){2}", "A0 A1 A2 A3", "0,1,2,3"),
        ("(A{2} a[]){2}", "A0 A1 A2", ""),
        ("(SEQ(A a, B+ b[]))+", "A0 B1 A2 B3", "0 1 | 0 1,3 | 0 3 | 0,2 1,3 | 2 3"),
        ("(SEQ(A a, B? b)){2}", "A0 B1 A2", "0,2 - | 0,2 1"),
        ("(SEQ(A a, (SEQ(B b, C c))+)){2}", "A0 B1 C2 B3 C4 A5 B6 C7",
         "0,5 1,3,6 2,4,7 | 0,5 1,6 2,7 | 0,5 1,6 4,7 | 0,5 3,6 4,7"),
    ],
)  # fmt: skip
def test_repeated_group(pattern: str, events: str, expected: str) -> None:
    assert each(pattern, events) == expected


@pytest.mark.parametrize(
    ("pattern", "events", "expected"),
    [
        ("SEQ(A a, B? b, C c)", "A0 B1 C2", "0 - 2 | 0 1 2"),
        ("SEQ(A a, B? b, C c)", "A0 B1", ""),
        ("SEQ(A? a, B b)", "B0 A1", "- 0"),
        ("SEQ(A a, (SEQ(B b, C c))?, D d)", "A0 B1 D2", "0 - - 2"),
        ("SEQ(A a, (SEQ(B b, C c))?, D d)", "A0 B1 C2 D3", "0 - - 3 | 0 1 2 3"),
        ("SEQ((AND(A a, B b))?, C c)", "B0 A1 C2", "- - 2 | 1 0 2"),
        ("SEQ((OR(A a, B b))?, C c)", "A0 B1 C2", "- - 2 | - 1 2 | 0 - 2"),
        ("SEQ((ANY(2, A a, B b, C c))?, D d)", "C0 A1 D2", "- - - 2 | 1 - 0 2"),
        ("SEQ((A+ a[])?, B b)", "A0 B1", "- 1 | 0 1"),
        ("SEQ((A? a)?, B b)", "A0 B1", "- 1 | 0 1"),
        ("AND(A a, B? b)", "B0 A1", "1 - | 1 0"),
        ("AND(A a, B* b[])", "B0 A1 B2", "1 - | 1 0 | 1 0,2 | 1 2"),
    ],
)
def test_option(pattern: str, events: str, expected: str) -> None:
    assert each(pattern, events) == expected


@pytest.mark.parametrize("b", ["NOT B b", "!B b", "NEG(B b)", "¬B b", "NEG B b", "not B"])
@pytest.mark.parametrize(("events", "expected"), [("A0 C1", "0 1"), ("A0 B1 C2", "")])
def test_negation(b: str, events: str, expected: str) -> None:
    assert each(f"SEQ(A a, {b}, C c)", events) == expected


NESTED = [
    ("SEQ(X x, SEQ(A a, B b))", "X0 A1 B2", "0 1 2"),
    ("SEQ(X x, SEQ(A a, B b))", "A0 X1 B2", ""),
    ("SEQ(X x, AND(A a, B b))", "X0 B1 A2", "0 2 1"),
    ("SEQ(X x, AND(A a, B b))", "B0 X1 A2", ""),
    ("SEQ(AND(A a, B b), AND(C c, D d))", "B0 A1 D2 C3", "1 0 3 2"),
    ("SEQ(AND(A a, B b), AND(C c, D d))", "A0 C1 B2 D3", ""),
    ("SEQ(X x, OR(A a, B b), Y y)", "X0 B1 Y2", "0 - 1 2"),
    ("SEQ(X x, OR(A a, B b), Y y)", "B0 X1 Y2", ""),
    ("SEQ(X x, ANY(2, A a, B b, C c), Y y)", "X0 C1 A2 Y3", "0 2 - 1 3"),
    ("SEQ(X x, ANY(2, A a, B b, C c), Y y)", "C0 X1 A2 Y3", ""),
    ("SEQ(X x, A{2} a[], Y y)", "X0 A1 A2 Y3", "0 1,2 3"),
    ("SEQ(X x, A{2} a[], Y y)", "X0 A1 Y2 A3", ""),
    ("SEQ(X x, (SEQ(A a, B b)){2}, Y y)", "X0 A1 B2 A3 B4 Y5", "0 1,3 2,4 5"),
    ("SEQ(X x, (SEQ(A a, B b)){2}, Y y)", "X0 A1 B2 A3 Y4 B5", ""),
    ("AND(SEQ(A a, B b), C c)", "A0 C1 B2", "0 2 1"),
    ("AND(SEQ(A a, B b), C c)", "B0 A1 C2", ""),
    ("AND(OR(A a, B b), C c)", "C0 B1", "- 1 0"),
    ("AND(OR(A a, B b), C c)", "A0 B1", ""),
    ("AND(ANY(2, A a, B b, C c), D d)", "C0 D1 A2", "2 - 0 1"),
    ("AND(ANY(2, A a, B b, C c), D d)", "C0 D1", ""),
    ("AND(A{2} a[], B b)", "A0 B1 A2", "0,2 1"),
    ("AND(A{2} a[], B b)", "A0 B1", ""),
    ("AND((SEQ(A a, B b)){2}, C c)", "A0 B1 C2 A3 B4", "0,3 1,4 2"),
    ("AND(SEQ(A a, NOT N n, B b), C c)", "A0 C1 B2", "0 2 1"),
    ("AND(SEQ(A a, NOT N n, B b), C c)", "A0 C1 N2 B3", ""),
    ("OR(SEQ(A a, B b), C c)", "A0 C1 B2", "- - 1 | 0 2 -"),
    ("OR(SEQ(A a, B b), C c)", "B0 A1", ""),
    ("OR(AND(A a, B b), ANY(2, C c, D d, E e))", "B0 A1 E2 C3", "- - 3 - 2 | 1 0 - - -"),
    ("OR(OR(A a, B b), C c)", "B0", "- 0 -"),
    ("OR(A{2} a[], B b)", "A0 B1 A2", "- 1 | 0,2 -"),
    ("OR((SEQ(A a, B b))+, C c)", "A0 B1", "0 1 -"),
    ("SEQ(OR(A? a, B b), C c)", "B0 C1", "- - 1 | - 0 1"),
    ("SEQ(A a, OR(SEQ(NOT N n, B b), C c))", "A0 N1 B2 C3", "0 - 3"),
    ("ANY(2, SEQ(A a, B b), AND(C c, D d), E e)", "A0 E1 B2", "0 2 - - 1"),
    ("ANY(2, SEQ(A a, B b), AND(C c, D d), E e)", "D0 A1 C2 B3", "1 3 2 0 -"),
    ("ANY(2, SEQ(A a, B b), AND(C c, D d), E e)", "B0 E1 A2", ""),
    ("ANY(2, A{2} a[], B b, C c)", "A0 B1 A2", "0,2 1 -"),
    ("ANY(2, A{2} a[], B b, C c)", "A0 B1", ""),
    ("ANY(2, OR(A a, B b), C c)", "C0 B1", "- 1 0"),
    ("ANY(2, ANY(1, A a, B b), C c)", "C0 B1", "- 1 0"),
    ("ANY(2, (SEQ(A a, B b)){2}, C c, D d)", "A0 B1 D2 A3 B4", "0,3 1,4 - 2"),
    ("ANY(2, SEQ(A a, NOT N n, B b), C c)", "A0 N1 B2 C3", ""),
    ("ANY(2, SEQ(A a, NOT N n, B b), C c)", "A0 B1 N2 C3", "0 1 3"),
    ("SEQ(A a, (SEQ(B b, NOT N n, C c))?, D d)", "A0 B1 N2 C3 D4", "0 - - 4"),
    ("(SEQ(A a, NOT N n, B b)){2}", "A0 B1 N2 A3 B4", "0,3 1,4"),
    ("(SEQ(A a, NOT N n, B b)){2}", "A0 B1 A2 N3 B4", ""),
]


@pytest.mark.parametrize(("pattern", "events", "expected"), NESTED)
def test_nesting(pattern: str, events: str, expected: str) -> None:
    assert each(pattern, events) == expected


@pytest.mark.parametrize(
    "pattern",
    [
        "A* a[]",
        "SEQ(A? a, B? b)",
        "SEQ(NOT A a)",
        "(A* a[])+",
        "(SEQ(A? a, B? b)){2}",
        "ANY(1, A? a, B b)",
        "ANY(3, A a, B b)",
        "AND(A a, NOT B b)",
        "OR(A a, NOT B b)",
        "AND(SEQ(NOT B b, A a), C c)",
        "ANY(1, SEQ(A a, NOT B b), C c)",
        "(SEQ(A a, NOT B b))+",
        "SEQ(X x, (SEQ(A? a, NOT B b, C c))+)",
        "SEQ(A a, B a)",
    ],
)
def test_refused(pattern: str) -> None:
    with pytest.raises(QueryError):
        each(pattern, "A0 B1")
