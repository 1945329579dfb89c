"""Open runs: what a query waits for after some events."""

from __future__ import annotations

import pytest

from tests.reference.answers import open_runs


@pytest.mark.parametrize(
    ("query", "events", "expected"),
    [
        ("SEQ(A a, B b, C c) WITHIN 1 h SELECT FIRST", "A0 B1 A2", "0 1 - | 2 - -"),
        ("SEQ(A a, B b, C c) WITHIN 1 h SELECT EACH", "A0 B1 A2", "0 - - | 0 1 - | 2 - -"),
        ("SEQ(A a, B b, C c) WITHIN 1 h SELECT LAST", "A0 B1 A2", "0 - - | 0 1 - | 2 - -"),
        ("SEQ(A a, B b, C c) WITHIN 1 h SELECT STRICT", "A0 B1", "0 1 -"),
        ("SEQ(A a, B b, C c) WITHIN 1 h SELECT STRICT", "A0 B1 X2", ""),
        ("SEQ(A a, B b) WITHIN 1 h SELECT FIRST", "", ""),
        ("SEQ(A a, B b) WITHIN 1 h SELECT FIRST", "B0", ""),
        ("SEQ(A a, B b) WITHIN 1 h SELECT FIRST CONSUME ALL", "A0 A1 B2", "1 -"),
        # whole, and what may still be longer
        ("SEQ(A a, B b) WITHIN 1 h SELECT FIRST", "A0 B1", ""),
        ("SEQ(A a, B b) WITHIN 1 h SELECT EACH", "A0 B1", "0 -"),
        ("SEQ(A a, B+ b[]) WITHIN 1 h SELECT FIRST", "A0 B1", "0 1"),
        ("SEQ(A a, B+ b[]) WITHIN 1 h SELECT EACH", "A0 B1", "0 - | 0 1"),
        ("SEQ(A a, B{2} b[]) WITHIN 1 h SELECT FIRST", "A0 B1 B2", ""),
        ("SEQ(A a, B? b) WITHIN 1 h SELECT FIRST", "A0", "0 -"),
        ("AND(A a, B b) WITHIN 1 h SELECT FIRST", "B0", "- 0"),
        ("ANY(2, A a, B b, C c) WITHIN 1 h SELECT FIRST", "C0", "- - 0"),
        # in the span
        ("SEQ(A a, B b) WITHIN 2 s", "A0 X2", "0 -"),
        ("SEQ(A a, B b) WITHIN 2 s", "A0 X2@2.000001", ""),
        ("SEQ(A a, B b) WITHIN 3 EVENTS", "A0 X1 X2", "0 -"),
        ("SEQ(A a, B b) WITHIN 3 EVENTS", "A0 X1 X2 X3", ""),
        # in windows and partitions
        ("SEQ(A a, B b) WITHIN 1 h WINDOW 4 EVENTS EVERY 2 EVENTS", "A0 X1 A2", "0: 0 - | 0: 2 - | 2: 2 -"),
        ("SEQ(A a, B b) WITHIN 1 h WINDOW 2 EVENTS", "A0 X1 A2", "2: 2 -"),
        ("SEQ(A a, B b) WITHIN 1 h WINDOW 2 s", "A0 A2", "2000000: 2 -"),
        ("SEQ(A a, B b) WITHIN 1 h WINDOW 2 s ON S", "S0 A1 S2 A3", "2: 3 -"),
        ("SEQ(A a, B b) WITHIN 1 h PARTITION BY k", "A0(k=1) A1(k=2) A2", "0 - | 1 -"),
    ],
)
def test_open(query: str, events: str, expected: str) -> None:
    assert open_runs(query, events) == expected


@pytest.mark.parametrize("select", ["EACH", "FIRST"])
@pytest.mark.parametrize(
    ("query", "events", "expected"),
    [
        ("SEQ(A a, NOT N n, B b) WITHIN 1 h", "A0 N1", ""),
        ("SEQ(A a, NOT N n, B b) WITHIN 1 h", "A0 N1 A2", "2 -"),
        ("SEQ(A a, NOT N n, B b, C c) WITHIN 1 h", "A0 B1 N2", {"FIRST": "0 1 -", "EACH": "0 1 -"}),
        # not while its conjuncts can still change
        ("SEQ(A a, NOT N n, B b) WHERE n.x = a.x WITHIN 1 h", "A0(x=1) N1(x=1)", ""),
        ("SEQ(A a, NOT N n, B b) WHERE n.x = a.x WITHIN 1 h", "A0(x=1) N1(x=2)", "0 -"),
        ("SEQ(A a, NOT N n, B b) WHERE n.x = b.x WITHIN 1 h", "A0 N1(x=1)", "0 -"),
        # not if there is another way
        ("SEQ(A a, B? b, NOT N n, C c) WITHIN 1 h", "A0 N1", "0 - -"),
        ("SEQ(A a, OR(SEQ(NOT N n, B b), C c)) WITHIN 1 h", "A0 N1", "0 - -"),
        ("SEQ(A+ a[], NOT N n, C c) WITHIN 1 h", "A0 N1", "0 -"),
        ("(SEQ(A a, NOT N n, B b)){2} WITHIN 1 h", "A0 B1 N2", {"FIRST": "0 1", "EACH": "0 1"}),
        ("(SEQ(A a, NOT N n, B b)){2} WITHIN 1 h", "A0 B1 A2 N3", {"FIRST": "", "EACH": "0 1"}),
        # first or last in the sequence
        ("SEQ(NOT N n, A a, B b) WITHIN 1 h", "N0 A1", "1 -"),
        ("SEQ(A a, B+ b[], NOT N n) WITHIN 1 h", "A0 B1 N2", {"FIRST": "0 1", "EACH": "0 - | 0 1"}),
        ("SEQ(A a, B b, NOT N n) WITHIN 1 h", "A0 B1", {"FIRST": "", "EACH": "0 -"}),
        # in the window
        ("SEQ(A a, NOT N n, B b) WITHIN 1 h WINDOW 2 EVENTS EVERY 1 EVENTS", "N0 A1", "0: 1 - | 1: 1 -"),
    ],
)
def test_abandoned(query: str, events: str, expected: str | dict[str, str], select: str) -> None:
    wanted = expected if isinstance(expected, str) else expected[select]
    assert open_runs(f"{query} SELECT {select}", events) == wanted


def test_what_users_registered() -> None:
    query = "SEQ(A a, B b) WHERE double(a.x) IN REMOTE[even, 1] WITHIN 1 h"
    registered = {"functions": {"double": lambda x: 2 * x}, "remotes": {"even": {1: {2, 4}}}}
    assert open_runs(query, "A0(x=1) A1(x=3)", **registered) == "0 -"
