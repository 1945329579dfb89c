"""Matches as users get them: tables, data frames, objects."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from penstock.engine.matches import Matches
from penstock.pattern.parser import parse
from penstock.plan.terms import NotYetError
from penstock.reference import find
from penstock.testing import stream
from tests.engine.driving import driven
from tests.generators import FUNCTIONS, REMOTES, Case, seeded

CASES = 300


def found(query: str, events: str, name: str | None = None) -> Matches:
    driver = driven(Case(parse(f"PATTERN {query}", name), stream(events)), 0)
    return driver.output().of(driver.everything())


def at(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def test_a_table() -> None:
    query = "SEQ(A a, B? b, C+ c[]) WITHIN 1 h PARTITION BY k SELECT FIRST RETURN SUM(c[].n) AS total, a.x"
    table = found(query, "A0(k=p, x=1.5) C2(k=p, n=3) C3(k=p, n=4)", "steps").to_arrow()
    assert table.column_names == [
        "query",
        "k",
        "window",
        "first_ts",
        "last_ts",
        "known_ts",
        "a",
        "b",
        "c",
        "total",
        "a.x",
    ]
    assert table.schema.field("first_ts").type == pa.timestamp("us", "UTC")
    assert table.to_pylist() == [
        {
            "query": "steps", "k": "p", "window": None, "first_ts": at(0), "last_ts": at(3), "known_ts": at(3600),
            "a": [0], "b": None, "c": [2, 3], "total": 7, "a.x": 1.5,
        }
    ]  # fmt: skip


def test_one_row_for_each_window() -> None:
    matches = found("SEQ(A a, B b) WITHIN 1 h WINDOW 4 s EVERY 2 s RETURN b.x AS x", "A2 B3(x=1)")
    assert [(row["window"], row["x"]) for row in matches.to_dicts()] == [(0, 1.0), (2_000_000, 1.0)]
    assert len(matches) == 2


def test_when_a_match_is_known() -> None:
    assert [m.known_ts for m in found("SEQ(A a, NOT N n) WITHIN 5 s", "A1 X20")] == [6_000_000]
    assert [m.known_ts for m in found("SEQ(A a, B b) WITHIN 5 EVENTS", "A1 B3")] == [3_000_000]
    assert [m.known_ts for m in found("SEQ(A a, NOT N n) WITHIN 2 EVENTS", "A1 B3 B4")] == [None]


def test_matches_are_read_one_by_one() -> None:
    (match,) = found("SEQ(A a, B? b, C{2} c[]) WITHIN 1 h PARTITION BY k", "A0(k=1) C1(k=1) C2(k=1)")
    assert (match["a"], match["b"], match["c"], match.key) == ((0,), (), (1, 2), (1,))
    assert (match.query, match.window, match.first_ts, match.last_ts) == (None, None, 0, 2_000_000)


def test_putting_together() -> None:
    one, two = found("A a WITHIN 1 h RETURN a.q AS q", "A0 A1"), found("B b WITHIN 1 h RETURN b.k AS q", "B5(k=u)")
    both = one + two
    assert len(both) == 3
    assert both.to_arrow().column("q").to_pylist() == [None, None, "u"]
    assert both.to_arrow().column("b").to_pylist() == [None, None, [5]]
    both += Matches()
    assert both.as_set() == one.as_set() | two.as_set()
    assert len(Matches()) == 0
    assert Matches().to_arrow().num_rows == 0
    assert found("A a WITHIN 1 h", "B0").to_dicts() == []


def test_names_that_are_taken() -> None:
    query = "SEQ(A a, B k) WITHIN 1 h PARTITION BY k RETURN a.x AS a, k.x AS `window`"
    table = found(query, "A0(k=1) B1(k=1)").to_arrow()
    assert table.column_names == [
        "query", "k", "window", "first_ts", "last_ts", "known_ts", "a", "k_2", "a_2", "window_2",
    ]  # fmt: skip


def test_a_data_frame() -> None:
    frame = found("SEQ(A a, B b) WITHIN 1 h RETURN b.x - a.x AS rise", "A0(x=1) B1(x=3) B2").to_pandas()
    assert frame["rise"].fillna(-1).tolist() == [2.0, -1.0]
    assert [list(each) for each in frame["b"]] == [[1], [2]]
    assert str(frame["first_ts"].dtype) == "datetime64[us, UTC]"


def test_repr() -> None:
    matches = found("SEQ(A a, B+ b[]) WITHIN 1 h PARTITION BY k", "A0(k=p) B1(k=p) B2(k=p)")
    assert repr(matches).splitlines() == ["3 matches", "  key p; a 0; b 1", "  key p; a 0; b 2", "  key p; a 0; b 1, 2"]
    assert repr(found("A a WITHIN 1 h RETURN a.x AS x", "A0(x=1)")) == "1 match\n  a 0; x = 1.0"
    assert repr(found("A a WITHIN 1 h", " ".join(f"A{n}" for n in range(9)))).endswith("\n  … and 4 more")


def test_matches_are_those_of_the_reference() -> None:
    compared = 0
    for seed, case in enumerate(seeded(CASES, 1_000)):
        try:
            driver = driven(case, seed)
            matches = driver.output().of(driver.everything())
        except NotYetError:
            continue
        expected: set[tuple[Any, ...]] = set()
        for m in find(case.query, case.events, functions=FUNCTIONS, remotes=REMOTES):
            expected.add((m.query, m.key, m.window, m.bindings, m.first_ts, m.last_ts))
        assert {row[:-1] for row in matches.as_set()} == expected, f"seed {seed}: {case!r}"
        assert len(matches.to_arrow()) == len(expected)
        compared += 1
    assert compared > CASES / 2
