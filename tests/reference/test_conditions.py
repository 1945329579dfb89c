"""WHERE: missing values, vacuity, prev, SAME and REMOTE. See also test_values.py and test_lists.py."""

from __future__ import annotations

import math
from typing import Any

import pytest

from penstock.reference import Event
from tests.reference.answers import found


def holds(where: str, attributes: str, **registered: Any) -> bool:
    """Whether a condition on one event `A a` at time 0 is true."""
    return found(f"A a WHERE {where} WITHIN 1 h", f"A0({attributes})", **registered) == "0"


def each(pattern: str, where: str, events: str, **registered: Any) -> str:
    return found(f"{pattern} WHERE {where} WITHIN 1 h", events, **registered)


# --- missing values -------------------------------------------------------------------------------------------

OPERATORS = ["=", "<>", "<", "<=", ">", ">="]


@pytest.mark.parametrize("attributes", ["x=null", "x=nan", ""])
@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("written", ["a.x {} 3", "3 {} a.x", "a.x {} a.x", "a.x {} a.y", "-a.x {} 3", "a.x + 1 {} 0"])
def test_a_comparison_with_a_missing_value_is_false(written: str, operator: str, attributes: str) -> None:
    assert not holds(written.format(operator), attributes)
    assert holds(f"NOT ({written.format(operator)})", attributes)  # logic has two values


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize(
    "missing",
    [
        "1 / a.zero", "a.zero / a.zero", "a.zero % a.zero", "5 % a.zero", "sqrt(a.minus)", "ln(a.zero)", "ln(a.minus)",
        "pow(a.minus, 0.5)", "pow(a.zero, -1)", "a.x + 1", "1 - a.x", "a.x * 0", "a.x / 2", "a.x % 2", "-a.x",
        "abs(a.x)", "max(1, a.x)", "dist(0, 0, 1, a.x)", "prev(a.zero)", "prev(a.x)", "a.text + a.text", "a.text * 2",
        "a.text - 1", "a.text / 2", "a.text % 2", "-a.text",
    ],
)  # fmt: skip
def test_what_gives_a_missing_value(missing: str, operator: str) -> None:
    assert not holds(f"{missing} {operator} 3", "zero=0, minus=-1, text=%s")
    assert holds(f"NOT ({missing} {operator} 3)", "zero=0, minus=-1, text=%s")


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("a.x IN (1, 2)", False),
        ("a.x NOT IN (1, 2)", False),
        ("NOT (a.x IN (1, 2))", True),
        ("NOT (a.x NOT IN (1, 2))", True),
        ("a.y IN (a.x, 1)", True),
        ("a.x = 1 OR a.y = 1", True),
        ("a.y = 1 AND NOT (a.x = 1)", True),
        ("NOT (a.x = 1 AND a.y = 1)", True),
        ("NOT (a.x = 1 OR a.y = 1)", False),
    ],
)
def test_logic_and_membership_with_a_missing_value(where: str, expected: bool) -> None:
    assert holds(where, "x=null, y=1") is expected


@pytest.mark.parametrize(
    ("flag", "where", "expected"),
    [
        (True, "a.flag", True),
        (False, "a.flag", False),
        (None, "a.flag", False),
        (None, "NOT a.flag", True),
        (None, "NOT NOT a.flag", False),
        (None, "a.flag = TRUE", False),
        (None, "a.flag = FALSE", False),
        (False, "a.flag = FALSE", True),
        (True, "a.flag <> FALSE", True),
        (None, "a.flag OR a.type = 'A'", True),
    ],
)
def test_booleans(flag: bool | None, where: str, expected: bool) -> None:
    assert (found(f"A a WHERE {where} WITHIN 1 h", [Event("A", 0, 0, {"flag": flag})]) == "0") is expected


# --- vacuity --------------------------------------------------------------------------------------------------
# A conjunct that can apply to no match is refused before it is run; the matcher does not rely on that.


@pytest.mark.parametrize(
    ("pattern", "where", "events", "expected"),
    [
        ("OR(A a, B b)", "a.x > 5, b.x > 5", "A0(x=9) B1(x=1)", "0 -"),
        ("OR(A a, B b)", "a.x > b.x", "A0(x=1) B1(x=9)", "- 1 | 0 -"),
        ("OR(A a, B b)", "a.x > 5 OR b.x > 5", "A0(x=1) B1(x=1)", "- 1 | 0 -"),  # one conjunct, never whole
        ("OR(A a, B b)", "NOT (a.x < b.x)", "A0 B1", "- 1 | 0 -"),
        ("OR(A a, B b)", "a.x IN (1, b.x)", "A0 B1", "- 1 | 0 -"),
        ("OR(A a, B b)", "max(a.x, b.x) > 5", "A0 B1", "- 1 | 0 -"),
        ("OR(A a, B b)", "prev(a.x) > b.x", "A0 B1", "- 1 | 0 -"),
        ("OR(A a, B b)", "a.x > REMOTE[r, b.x]", "A0 B1", "- 1 | 0 -"),
        ("ANY(2, A a, B b, C c)", "a.x < b.x", "A0(x=9) B1(x=1) C2", "- 1 2 | 0 - 2"),
        ("SEQ(A a, B? b)", "b.x > 5", "A0 B1(x=1)", "0 -"),
        ("SEQ(A a, B? b)", "b.x > 5", "A0 B1", "0 -"),  # there, but missing: false
        ("SEQ(A a, B? b, C c)", "a.x < b.x < c.x", "A0(x=3) B1(x=1) C2(x=2)", "0 - 2"),
        ("SEQ(A a, B? b, C c)", "a.x < c.x < b.x", "A0(x=3) B1(x=1) C2(x=2)", ""),  # a chain is several conjuncts
        ("SEQ(A{2,3} a[], B b)", "a[3].x > b.x", "A0 A1 A2 B3", "0,1 3 | 0,2 3 | 1,2 3"),
        ("SEQ(A* a[], B b)", "a[last].x > b.x", "A0(x=1) B1(x=1)", "- 1"),
        ("SEQ(A* a[], B b)", "a[first].x > b.x", "A0(x=1) B1(x=1)", "- 1"),
        ("SEQ(A* a[], B b)", "a[i].x > b.x", "A0(x=1) B1(x=1)", "- 1"),
        ("SEQ(A* a[], B b)", "AVG(a[].x) > b.x", "A0(x=1) B1(x=1)", "- 1"),
        ("SEQ(A* a[], B b)", "COUNT(a[]) > b.x", "A0 B1(x=0)", "0 1"),  # of none, it is 0, not absent
        ("OR(SEQ(A a, B+ b[]), C c)", "COUNT(b[]) > 1", "A0 B1 B2 C3", "- - 3 | 0 1,2 -"),
        ("OR(SEQ(A a, B* b[]), C c)", "SUM(b[].x) > 1", "A0 B1(x=1) C2", "- - 2"),
    ],
)
def test_a_conjunct_is_vacuous_where_something_is_not_there(
    pattern: str, where: str, events: str, expected: str
) -> None:
    assert each(pattern, where, events) == expected


# --- prev -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "events", "expected"),
    [
        ("A a WHERE a.x > prev(a.x) WITHIN 1 h", "A0(x=1) B1(x=9) A2(x=2) A3(x=1)", "2"),
        ("* s WHERE s.x > prev(s.x) WITHIN 1 h", "A0(x=1) B1(x=0) A2(x=2) B3(x=0)", "2"),  # of its own type
        ("A a WHERE a.x > prev(a.x) WITHIN 1 h", "A0(x=1) A1 A2(x=2)", ""),  # the previous one misses x
        ("A a WHERE a.x > prev(a.x) WITHIN 1 s", "A0(x=1) A9(x=2)", "9"),  # however long ago
        ("A a WHERE a.x > prev(a.x) WITHIN 1 h", "A1@5(x=2) A0@5(x=1)", "1"),
        ("A a WHERE a.x > prev(a.x) WITHIN 1 h WINDOW 1 EVENTS", "A0(x=1) A1(x=2)", "1: 1"),
        ("A a WHERE a.x > prev(a.x) WITHIN 1 h WINDOW 1 s", "A0(x=1) A1(x=2)", "1000000: 1"),
        ("A a WHERE a.x > prev(a.x) WITHIN 1 h", "A0(k=p, x=5) A1(k=q, x=0) A2(k=p, x=3)", "2"),
        ("A a WHERE a.x > prev(a.x) WITHIN 1 h PARTITION BY k", "A0(k=p, x=5) A1(k=q, x=0) A2(k=p, x=3)", ""),
        ("A a WHERE a.x > prev(a.x) WITHIN 1 h PARTITION BY k", "A0(k=p, x=5) A1(k=q, x=9) A2(k=p, x=6)", "2"),
        ("A+ a[] WHERE a[i].x > prev(a[i].x) WITHIN 1 h", "A0(x=1) A1(x=5) A2(x=3)", "1"),
        ("A+ a[] WHERE prev(a[last].x) = 5 WITHIN 1 h", "A0(x=1) A1(x=5) A2(x=3)", "0,1,2 | 0,2 | 1,2 | 2"),
        ("SEQ(A a, B b) WHERE prev(b.x) = a.x WITHIN 1 h", "B0(x=1) A1(x=1) B2 B3", "1 2"),
        ("SEQ(A a, NOT N n, B b) WHERE n.x > prev(n.x) WITHIN 1 h", "N0(x=1) A1 N2(x=1) B3 N4(x=2) B5", "1 3"),
        ("SEQ(A a, B? b) WHERE prev(b.ts) > a.ts WITHIN 1 h", "A0 B1 B2", "0 - | 0 2"),
    ],
)
def test_prev(query: str, events: str, expected: str) -> None:
    assert found(query, events) == expected


# --- SAME -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "same", "events", "expected"),
    [
        ("SEQ(A a, B b)", "SAME[id]", "A0(id=1) B1(id=2) B2(id=1)", "0 2"),
        ("SEQ(A a, B b)", "[id]", "A0(id=1) B1(id=2) B2(id=1.0)", "0 2"),
        ("SEQ(A a, B b)", "SAME[id]", "A0(id=1) B1(id=x)", ""),
        ("SEQ(A a, B b)", "SAME[id]", "A0 B1", ""),  # both missing: not equal
        ("SEQ(A a, B b)", "SAME[id]", "A0(id=1) B1", ""),
        ("A a", "SAME[id]", "A0", "0"),  # nothing to compare with
        ("SEQ(A a, B b)", "SAME[x, y]", "A0(x=1, y=1) B1(x=1, y=2) B2(x=1, y=1)", "0 2"),
        ("SEQ(A a, B b)", "SAME[abs(x)]", "A0(x=-1) B1(x=1) B2(x=2)", "0 1"),
        ("SEQ(A a, B b)", "SAME[even(x)]", "A0(x=3) B1(x=1) B2(x=2)", "0 1"),
        ("SEQ(A a, B b)", "SAME[even(x)]", "A0 B1", ""),
        ("SEQ(A a, B b, C c)", "SAME[id]", "A0(id=1) B1(id=1) C2(id=2) C3(id=1)", "0 1 3"),
        ("AND(A a, B b)", "SAME[id] AND a.x > b.x", "B0(id=1, x=1) A1(id=1, x=1) A2(id=1, x=2)", "2 0"),
        ("A{2} a[]", "SAME[id]", "A0(id=1) A1(id=2) A2(id=1)", "0,2"),
        ("SEQ(A+ a[], B b)", "SAME[id]", "A0(id=1) A1(id=2) B2(id=1)", "0 2"),
        ("(SEQ(A a, B b)){2}", "SAME[id]", "A0(id=1) B1(id=1) A2(id=2) B3(id=2) A4(id=1) B5(id=1)", "0,4 1,5"),
        # unbound variables take no part
        ("SEQ(A a, B? b, C c)", "SAME[id]", "A0(id=1) B1(id=2) C2(id=1)", "0 - 2"),
        ("SEQ(OR(A a, B b), C c)", "SAME[id]", "A0(id=1) B1(id=2) C2(id=2)", "- 1 2"),
        ("SEQ(A* a[], B b)", "SAME[id]", "A0(id=1) B1(id=2)", "- 1"),
        # negated ones do: only an event with the same value forbids
        ("SEQ(A a, NOT N n, B b)", "SAME[id]", "A0(id=1) N1(id=2) B2(id=1)", "0 2"),
        ("SEQ(A a, NOT N n, B b)", "SAME[id]", "A0(id=1) N1 B2(id=1)", "0 2"),
        ("SEQ(A a, NOT N n, B b)", "SAME[id]", "A0(id=1) N1(id=1) B2(id=1)", ""),
        ("SEQ(A a, NOT N n, B b)", "SAME[x, y]", "A0(x=1, y=1) N1(x=1, y=2) B2(x=1, y=1)", "0 2"),
        ("SEQ(A a, NOT N n, B b)", "SAME[even(x)]", "A0(x=1) N1(x=3) B2(x=5)", ""),
        ("SEQ(A a, NOT N n, B b)", "SAME[id], n.x > 1", "A0(id=1) N1(id=1, x=1) N2(id=2, x=2) B3(id=1)", "0 3"),
        ("SEQ(NOT N n, A a)", "SAME[id]", "N0(id=1) A1(id=1) A2(id=2)", "2"),
        ("SEQ(A a, NOT N n)", "SAME[id]", "A0(id=1) A1(id=2) N2(id=1)", "1"),
    ],
)
@pytest.mark.parametrize("select", ["EACH", "FIRST CONSUME NONE"])
def test_same(pattern: str, same: str, events: str, expected: str, select: str) -> None:
    if select != "EACH" and any(mark in pattern for mark in "?*+{"):
        select = "EACH"  # FIRST would take another part of them
    query = f"{pattern} WHERE {same} WITHIN 1 h SELECT {select}"
    assert found(query, events, functions={"even": lambda x: x % 2 == 0}) == expected


# --- REMOTE ---------------------------------------------------------------------------------------------------

REMOTES: dict[str, Any] = {
    "limits": {1: 100, 2: None, 3: math.nan},
    "user": {"ann": 100},
    "cards": {1: {"limit": 100, "places": {"de", "fr"}}, 2: {"limit": None}, 3: None},
    "places": {1: {"de", "fr"}, 2: set(), 3: None},
}


@pytest.mark.parametrize(
    ("where", "attributes", "expected"),
    [
        # a value
        ("a.x > REMOTE[limits, a.k]", "x=101, k=1", True),
        ("a.x > REMOTE[limits, a.k]", "x=100, k=1", False),
        ("a.x > REMOTE[limits, a.k]", "x=101, k=2", False),
        ("a.x <> REMOTE[limits, a.k]", "x=101, k=3", False),
        ("a.x <> REMOTE[limits, a.k]", "x=101, k=9", False),
        ("a.x <> REMOTE[limits, a.k]", "x=101", False),
        ("NOT (a.x > REMOTE[limits, a.k])", "x=101, k=9", True),
        ("REMOTE[limits, a.k - 1] / 2 = 50", "k=2", True),
        ("a.x > REMOTE[limits, 1]", "x=101", True),
        ("a.x > REMOTE[a.user]", "x=101, user=ann", True),
        ("a.x > REMOTE[a.user]", "x=101, user=bob", False),
        # a row
        ("a.x > REMOTE[cards, a.k].limit", "x=101, k=1", True),
        ("a.x > REMOTE[cards, a.k].limit", "x=100, k=1", False),
        ("a.x <> REMOTE[cards, a.k].limit", "x=101, k=2", False),
        ("a.x <> REMOTE[cards, a.k].limit", "x=101, k=3", False),
        ("a.x <> REMOTE[cards, a.k].limit", "x=101, k=9", False),
        ("a.x <> REMOTE[cards, a.k].other", "x=101, k=1", False),
        # a set
        ("a.x IN REMOTE[places, a.k]", "x=de, k=1", True),
        ("a.x IN REMOTE[places, a.k]", "x=it, k=1", False),
        ("a.x NOT IN REMOTE[places, a.k]", "x=it, k=1", True),
        ("a.x NOT IN REMOTE[places, a.k]", "x=de, k=1", False),
        ("a.x NOT IN REMOTE[places, a.k]", "x=de, k=2", True),
        ("a.x IN REMOTE[places, a.k]", "x=de, k=3", False),
        ("a.x NOT IN REMOTE[places, a.k]", "x=de, k=3", False),
        ("a.x NOT IN REMOTE[places, a.k]", "x=de, k=9", False),
        ("a.x NOT IN REMOTE[places, a.k]", "k=1", False),
        ("NOT (a.x IN REMOTE[places, a.k])", "x=de, k=9", True),
        ("a.x IN REMOTE[cards, a.k].places", "x=fr, k=1", True),
        ("a.x NOT IN REMOTE[cards, a.k].places", "x=fr, k=2", False),
    ],
)
def test_remote(where: str, attributes: str, expected: bool) -> None:
    assert holds(where, attributes, remotes=REMOTES) is expected


def test_remote_of_a_negated_variable() -> None:
    query = "SEQ(A a, NOT N n, B b) WHERE n.x IN REMOTE[places, a.k] WITHIN 1 h"
    assert found(query, "A0(k=1) N1(x=it) B2 A3(k=1) N4(x=de) B5", remotes=REMOTES) == "0 2"
