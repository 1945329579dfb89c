"""RETURN: the values of a match, and the names of its columns."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.pattern.parser import parse
from penstock.reference import find
from penstock.testing import stream


def returned(query: str, events: str, **registered: Any) -> list[dict[str, Any]]:
    """The RETURN columns of each match, the matches in the order of their events."""
    matches = find(parse(f"PATTERN {query}"), stream(events), **registered)
    return [dict(match.values) for match in sorted(matches, key=lambda match: match.events)]


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        # SEQ(A a, B? b, C+ c[]) on A0(x=1) C1(x=5) C2 C3(x=2), b unbound
        ("a.x", 1),
        ("a.x + 1", 2),
        ("a.ts", 0),
        ("a.type", "A"),
        ("a.y", None),
        ("a.x / 0", None),
        ("a.x > 0", True),
        ("a.y > 0", False),
        ("b.x", None),
        ("b.x > 0", None),
        ("a.x + b.x", None),
        ("c.x", [5, None, 2]),
        ("c[i].x", [5, None, 2]),
        ("c[i].x - a.x", [4, None, 1]),
        ("c[i-1].x", [None, 5, None]),
        ("c[i].ts - c[i-1].ts", [None, 1_000_000, 1_000_000]),
        ("SUM(c[..i].x)", [5, 5, 7]),
        ("MAX(c[..i-1].x)", [None, 5, 5]),
        ("c[first].x", 5),
        ("c[last].x", 2),
        ("c[2].x", None),
        ("c[9].x", None),
        ("COUNT(c[])", 3),
        ("COUNT(c[].x)", 2),
        ("SUM(c[].x)", 7),
        ("AVG(c[].x)", 3.5),
        ("MIN(c[].y)", None),
        ("prev(c[last].ts)", 2_000_000),
        ("prev(a.x)", None),
        ("double(a.x)", 2),
        ("REMOTE[names, a.x]", "one"),
        ("REMOTE[names, a.x + 1]", None),
        ("5 min", 300_000_000),
    ],
)
def test_values(columns: str, expected: Any) -> None:
    query = f"SEQ(A a, B? b, C+ c[]) WITHIN 1 h SELECT FIRST RETURN {columns} AS value"
    registered = {"functions": {"double": lambda x: 2 * x}, "remotes": {"names": {1: "one"}}}
    assert returned(query, "A0(x=1) C1(x=5) C2 C3(x=2)", **registered) == [{"value": expected}]


@pytest.mark.parametrize(
    ("columns", "names"),
    [
        ("a.x", ["a.x"]),
        ("a.x AS price, b.x", ["price", "b.x"]),
        ("b.x - a.x", ["b.x - a.x"]),
        ("a.x AS `b.x`", ["b.x"]),
        ("a.x, a.y, b.x", ["a.x", "a.y", "b.x"]),
    ],
)
def test_names(columns: str, names: list[str]) -> None:
    (match,) = returned(f"SEQ(A a, B b) WITHIN 1 h RETURN {columns}", "A0 B1")
    assert list(match) == names


@pytest.mark.parametrize(
    ("query", "events", "expected"),
    [
        ("A a WITHIN 1 h", "A0", [{}]),
        ("SEQ(A a, B b) WITHIN 1 h RETURN b.x - a.x AS rise", "A0(x=1) B1(x=2) B2(x=4)", [{"rise": 1}, {"rise": 3}]),
        ("SEQ(A* a[], B b) WITHIN 1 h RETURN a.x AS x, COUNT(a[]) AS n, SUM(a[].x) AS s, MAX(a[].x) AS m", "B0",
         [{"x": [], "n": 0, "s": 0, "m": None}]),
        ("OR(A+ a[], B b) WITHIN 1 h RETURN a.x AS x, COUNT(a[]) AS n", "B0", [{"x": [], "n": None}]),
        # rounds
        ("(SEQ(A a, B? b)){2} WITHIN 1 h RETURN a.x AS a, b.x AS b, b.x - a.x AS d", "A0(x=1) A1(x=2) B2(x=5)",
         [{"a": [1, 2], "b": [], "d": [None, None]}, {"a": [1, 2], "b": [5], "d": [None, 3]}]),
        ("(SEQ(A a, B+ b[])){2} WITHIN 1 h SELECT LAST RETURN b.x - a.x AS d",
         "A0(x=1) B1(x=2) A2(x=5) B3(x=6) B4(x=8)", [{"d": [1, 1]}, {"d": [1, 1, 3]}]),
        # what CUMULATIVE gathers is a list
        ("SEQ(A a, B b) WITHIN 1 h SELECT CUMULATIVE RETURN a.x AS a, b.x AS b", "A0(x=1) A1(x=2) B2(x=3)",
         [{"a": [1, 2], "b": [3]}]),
        ("SEQ(A a, B b, C c) WITHIN 1 h SELECT EACH, CUMULATIVE b RETURN a.x AS a, b.x AS b, b.x - a.x AS d",
         "A0(x=1) B1(x=2) B2(x=3) C3", [{"a": 1, "b": [2, 3], "d": [1, 2]}]),
        ("SEQ(A a, B+ b[]) WITHIN 1 h SELECT CUMULATIVE RETURN COUNT(b[]) AS n, b.x AS b", "A0 B1(x=1)",
         [{"n": 1, "b": [1]}]),
        # REMOTE and prev see what the conditions see
        ("A a WITHIN 1 h PARTITION BY k RETURN prev(a.x) AS p", "A0(k=1, x=1) A1(k=2, x=2) A2(k=1, x=3)",
         [{"p": None}, {"p": None}, {"p": 1}]),
    ],
)  # fmt: skip
def test_per_match(query: str, events: str, expected: list[dict[str, Any]]) -> None:
    assert returned(query, events) == expected


def test_times_are_those_of_the_first_and_last_event() -> None:
    (match,) = find(parse("PATTERN AND(A a, B b, C c) WITHIN 1 h"), stream("C0@5 A1@7 B2@9"))
    assert (match.first_ts, match.last_ts) == (5_000_000, 9_000_000)


def test_a_match_is_read_by_variable() -> None:
    (match,) = find(parse("PATTERN SEQ(A a, B? b, C{2} c[]) WITHIN 1 h", "name"), stream("A0 C1 C2"))
    assert (match["a"], match["b"], match["c"], match.events) == ((0,), (), (1, 2), (0, 1, 2))
    assert (match.query, match.key, match.window) == ("name", (), None)
    assert match.bindings == (("a", (0,)), ("c", (1, 2)))
