"""WHERE on lists: elements, ranges, aggregates, rounds of groups."""

from __future__ import annotations

import pytest

from penstock.errors import QueryError
from tests.reference.answers import found


def each(pattern: str, where: str, events: str) -> str:
    return found(f"{pattern} WHERE {where} WITHIN 1 h", events)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        # on A0(x=1) A1(x=3) A2(x=2)
        ("a[i].x > 1", "1 | 1,2 | 2"),
        ("a.x > 1", "1 | 1,2 | 2"),
        ("a[i].x > a[i-1].x", "0 | 0,1 | 0,2 | 1 | 2"),
        ("a[i].x = a[i-1].x + 2", "0 | 0,1 | 1 | 2"),
        ("a[first].x = 1", "0 | 0,1 | 0,1,2 | 0,2"),
        ("a[1].x = 1", "0 | 0,1 | 0,1,2 | 0,2"),
        ("a[last].x = 2", "0,1,2 | 0,2 | 1,2 | 2"),
        ("a[2].x = 3", "0 | 0,1 | 0,1,2 | 1 | 2"),  # vacuous for one element
        ("a[3].x = 3", "0 | 0,1 | 0,2 | 1 | 1,2 | 2"),
        ("a[9].x = 3", "0 | 0,1 | 0,1,2 | 0,2 | 1 | 1,2 | 2"),
        ("a[first].x < a[last].x", "0,1 | 0,1,2 | 0,2"),
        ("a[i].x <= a[last].x", "0 | 0,1 | 0,2 | 1 | 2"),
        ("NOT (a[i].x = 3)", "0 | 0,2 | 2"),
        ("a[i].x = 1 OR a[i].x = 3", "0 | 0,1 | 1"),
        # aggregates
        ("COUNT(a[]) >= 2", "0,1 | 0,1,2 | 0,2 | 1,2"),
        ("SUM(a[].x) = 4", "0,1"),
        ("AVG(a[].x) = 2", "0,1 | 0,1,2 | 2"),
        ("MIN(a[].x) = 2", "1,2 | 2"),
        ("MAX(a[].x) = 3", "0,1 | 0,1,2 | 1 | 1,2"),
        ("COUNT(a[].x) = 3", "0,1,2"),
        ("COUNT(a[].y) = 0 AND COUNT(a[]) = 3", "0,1,2"),
        ("a[i].x > AVG(a[].x) - 1", "0 | 0,2 | 1 | 1,2 | 2"),
        ("MAX(a[].ts) - MIN(a[].ts) = 2 s", "0,1,2 | 0,2"),
        # ranges
        ("SUM(a[..i-1].x) < a[i].x", "0 | 0,1 | 0,2 | 1 | 2"),
        ("SUM(a[..i].x) <= 3", "0 | 0,2 | 1 | 2"),
        ("COUNT(a[..i-1]) < 2", "0 | 0,1 | 0,2 | 1 | 1,2 | 2"),
        ("COUNT(a[..i]) < 2", "0 | 1 | 2"),
        ("AVG(a[..i-1].x) < a[i].x", "0 | 0,1 | 0,2 | 1 | 2"),  # vacuous for the first
        ("AVG(a[..i].x) <= 2", "0 | 0,1 | 0,1,2 | 0,2 | 2"),
        ("MIN(a[..i-1].x) >= a[i].x", "0 | 1 | 1,2 | 2"),
        ("MAX(a[..i-1].x) < a[i].x", "0 | 0,1 | 0,2 | 1 | 2"),
        ("MAX(a[..i].x) = a[i].x", "0 | 0,1 | 0,2 | 1 | 2"),
        ("SUM(a[..i-1].x) = 0", "0 | 1 | 2"),
        ("COUNT(a[..i-1].x) = 0", "0 | 1 | 2"),
    ],
)
def test_elements_ranges_and_aggregates(where: str, expected: str) -> None:
    assert each("A+ a[]", where, "A0(x=1) A1(x=3) A2(x=2)") == expected


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        # on A0 A1(x=4): values that are missing are skipped
        ("COUNT(a[]) = 2", "0,1"),
        ("COUNT(a[].x) = 1", "0,1 | 1"),
        ("COUNT(a[].x) = 0", "0"),
        ("SUM(a[].x) = 4", "0,1 | 1"),
        ("SUM(a[].x) = 0", "0"),
        ("AVG(a[].x) = 4", "0,1 | 1"),
        ("AVG(a[].x) <> 4", ""),  # of none that is there: missing, and so false
        ("NOT (AVG(a[].x) = 4)", "0"),
        ("MIN(a[].x) <= 4", "0,1 | 1"),
        ("MAX(a[].x) >= 4", "0,1 | 1"),
        ("MIN(a[..i-1].x) = a[i].x", "0 | 1"),
        ("a[i].x = 4", "1"),
        ("a[first].x = 4", "1"),
        ("a[last].x = 4", "0,1 | 1"),
    ],
)
def test_missing_elements(where: str, expected: str) -> None:
    assert each("A+ a[]", where, "A0(x=null) A1(x=4)") == expected


@pytest.mark.parametrize("pattern", ["SEQ(A* a[], B b)", "SEQ(A{0,2} a[], B b)", "SEQ((SEQ(A a, C c))*, B b)"])
@pytest.mark.parametrize(
    ("where", "is_kept"),
    [
        ("COUNT(a[]) = 0", True),
        ("COUNT(a[]) > 0", False),
        ("COUNT(a[].x) = 0", True),
        ("SUM(a[].x) = 0", True),
        ("SUM(a[].x) <> 0", False),
        ("AVG(a[].x) > 5", True),
        ("MIN(a[].x) > 5", True),
        ("MAX(a[].x) > 5", True),
        ("SUM(a[].x) + MAX(a[].x) > 5", True),
        ("a[i].x > 5", True),
        ("a[first].x > 5", True),
        ("SUM(a[..i].x) > 5", True),
    ],
)
def test_empty_list(pattern: str, where: str, is_kept: bool) -> None:
    assert bool(each(pattern, where, "B0")) is is_kept


@pytest.mark.parametrize(
    ("pattern", "where", "events", "expected"),
    [
        ("SEQ(A a, B+ b[])", "b[i].x > a.x", "A0(x=1) B1(x=1) B2(x=2)", "0 2"),
        ("SEQ(A+ a[], B+ b[])", "MAX(a[].x) < b[i].x", "A0(x=1) A1(x=5) B2(x=3) B3(x=6)",
         "0 2 | 0 2,3 | 0 3 | 0,1 3 | 1 3"),
        ("SEQ(A+ a[], B+ b[])", "COUNT(a[]) = COUNT(b[])", "A0 A1 B2 B3", "0 2 | 0 3 | 0,1 2,3 | 1 2 | 1 3"),
        ("SEQ(A+ a[], B+ b[])", "a[last].x = b[first].x", "A0(x=1) A1(x=2) B2(x=2) B3(x=1)",
         "0 3 | 0,1 2 | 0,1 2,3 | 1 2 | 1 2,3"),
        ("AND(A{2} a[], B b)", "a[1].ts < b.ts < a[2].ts", "A0 B1 A2 B3", "0,2 1"),
        ("SEQ(A{2} a[], B b)", "a[i].x < b.x AND a[first].x > a[last].x", "A0(x=1) A1(x=2) A2(x=0) B3(x=2)", "0,2 3"),
    ],
)  # fmt: skip
def test_lists_and_others(pattern: str, where: str, events: str, expected: str) -> None:
    assert each(pattern, where, events) == expected


@pytest.mark.parametrize(
    ("pattern", "where", "events", "expected"),
    [
        # of the same round
        ("(SEQ(A a, B b)){2}", "a[i].x = b[i].x", "A0(x=1) B1(x=1) A2(x=2) B3(x=2)", "0,2 1,3"),
        ("(SEQ(A a, B b)){2}", "a.x = b.x", "A0(x=1) B1(x=1) A2(x=2) B3(x=2)", "0,2 1,3"),
        ("(SEQ(A a, B b)){2}", "a[i].x = b[i].x", "A0(x=1) B1(x=2) A2(x=2) B3(x=1)", ""),
        # of the element before, whatever its round
        ("(SEQ(A a, B b)){2}", "a[i].x > b[i-1].x", "A0(x=0) B1(x=1) A2(x=2) B3(x=9)", "0,2 1,3"),
        ("(SEQ(A a, B b)){2}", "a[i].x > b[i-1].x", "A0(x=9) B1(x=2) A2(x=2) B3(x=0)", ""),
        ("(SEQ(A a, B? b)){3}", "b[i].x > b[i-1].x", "A0 B1(x=5) A2 A3 B4(x=3)", "0,2,3 - | 0,2,3 1 | 0,2,3 4"),
        ("(SEQ(A a, B? b)){3}", "b[i].x > b[i-1].x", "A0 B1(x=3) A2 A3 B4(x=5)",
         "0,2,3 - | 0,2,3 1 | 0,2,3 1,4 | 0,2,3 4"),
        # a round that does not bind one of them
        ("(SEQ(A a, B? b)){2}", "a[i].x < b[i].x", "A0(x=5) A1(x=1) B2(x=2)", "0,1 - | 0,1 2"),
        ("(SEQ(A a, B? b)){2}", "a[i].x < b[i].x", "A0(x=5) B1(x=2) A2(x=1)", "0,2 -"),
        ("(OR(A a, B b)){2}", "a[i].x < b[i].x", "A0(x=9) B1(x=1)", "0 1"),
        ("(OR(A a, B b)){2}", "a[i].x > 5", "A0(x=9) B1(x=1) A2(x=1)", "0 1"),
        ("(ANY(2, A a, B b, C c)){2}", "a[i].x < b[i].x", "A0(x=9) C1 C2 B3(x=1)", "0 3 1,2"),
        # ranges and whole lists over all rounds
        ("(SEQ(A a, B b)){2}", "SUM(b[..i].x) <= a[i].x", "A0(x=1) B1(x=1) A2(x=2) B3(x=1)", "0,2 1,3"),
        ("(SEQ(A a, B b)){2}", "SUM(b[..i].x) <= a[i].x", "A0(x=1) B1(x=1) A2(x=1) B3(x=1)", ""),
        ("(SEQ(A a, B b)){2}", "SUM(b[..i-1].x) < a[i].x", "A0(x=1) B1(x=1) A2(x=2) B3(x=9)", "0,2 1,3"),
        ("(SEQ(A a, B b)){1,2}", "COUNT(a[]) = 2 AND SUM(b[].x) = 3", "A0 B1(x=1) A2 B3(x=2)", "0,2 1,3"),
        ("(SEQ(A a, B b)){2}", "a[first].x = b[last].x", "A0(x=1) B1(x=2) A2(x=3) B3(x=1)", "0,2 1,3"),
        # nested groups
        ("(SEQ(A a, B+ b[])){2}", "b[i].x > a[i].x", "A0(x=1) B1(x=2) A2(x=5) B3(x=3) B4(x=6)", "0,2 1,4"),
        ("(SEQ(A a, B+ b[])){2}", "b.x > a.x", "A0(x=1) B1(x=2) A2(x=5) B3(x=3) B4(x=6)", "0,2 1,4"),
        ("(SEQ(A a, B+ b[])){2}", "b[i].x > b[i-1].x", "A0 B1(x=1) B2(x=3) A3 B4(x=2)", "0,3 1,4"),
        ("(SEQ(A a, B+ b[])){2}", "b[i].x > a[i-1].x", "A0(x=5) B1(x=0) A2(x=9) B3(x=5) B4(x=6)", "0,2 1,4"),
        ("(SEQ(A a, B+ b[])){2}", "COUNT(b[..i]) < 3", "A0 B1 B2 A3 B4", "0,3 1,4 | 0,3 2,4"),
        ("(SEQ(A a, B+ b[])){2}", "SUM(b[].x) = a[i].x", "A0(x=3) B1(x=1) A2(x=3) B3(x=2)", "0,2 1,3"),
        ("(SEQ(X x, (SEQ(A a, B b)){1,2})){2}", "a.v = b.v AND a.v > x.v",
         "X0(v=1) A1(v=2) B2(v=2) A3(v=1) B4(v=1) X5(v=3) A6(v=4) B7(v=4)", "0,5 1,6 2,7"),
        ("SEQ(X x, (SEQ(A a, B b)){2})", "a.v > x.v", "X0(v=1) A1(v=2) B2 A3(v=3) B4", "0 1,3 2,4"),
    ],
)  # fmt: skip
def test_rounds(pattern: str, where: str, events: str, expected: str) -> None:
    assert each(pattern, where, events) == expected


@pytest.mark.parametrize(
    ("pattern", "where"),
    [
        ("SEQ(A+ a[], B+ b[])", "a[i].x < b[i].x"),
        ("SEQ(A+ a[], B+ b[])", "a.x < b.x"),
        ("SEQ(A a, B b)", "a[i].x < b.x"),
        ("SEQ(A a, B b)", "COUNT(a[]) > 1"),
        ("SEQ(A a, NOT M m, NOT N n, B b)", "m.x = n.x"),
    ],
)
def test_refused(pattern: str, where: str) -> None:
    with pytest.raises(QueryError):
        each(pattern, where, "A0 B1")
