"""RETURN columns are what the reference returns, match by match."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from penstock.engine.returns import Returns
from penstock.pattern.parser import parse
from penstock.plan.terms import NotYetError
from penstock.reference import find
from penstock.testing import stream
from tests.engine.driving import KINDS, EmittingDriver, driven
from tests.generators import EVERYTHING, FUNCTIONS, REMOTES, Case, seeded

CASES = 500
RETURNING = replace(EVERYTHING, returns=True, where=False, repetition=3)


def is_close(a: Any, b: Any) -> bool:
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(is_close, a, b))
    if a is None or b is None or isinstance(a, str) or isinstance(b, str):
        return bool(a == b)
    return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12) and isinstance(a, bool) == isinstance(b, bool)


def is_equal(case: Case, seed: int) -> bool:
    driver = driven(case, seed, pieces=2)
    got = {(m.key, m.window, tuple(m.events.items())): m.values for m in driver.output().of(driver.everything())}
    expected = find(case.query, case.events, functions=FUNCTIONS, remotes=REMOTES)
    assert len(got) == len(expected)
    for match in expected:
        values = got[match.key, match.window, match.bindings]
        if list(values) != list(match.values) or not all(is_close(values[n], match.values[n]) for n in values):
            return False
    return True


def test_columns_are_what_the_reference_returns() -> None:
    compared = 0
    for seed, case in enumerate(seeded(CASES, 0, RETURNING)):
        if case.query.returns:
            try:
                assert is_equal(case, seed), f"seed {seed}: {case!r}"
                compared += 1
            except NotYetError:
                continue
    assert compared > CASES / 6


@pytest.mark.parametrize(
    ("query", "events"),
    [
        # a branch that was not taken has no list; a list of none is there
        ("OR(A+ a[], B b) WITHIN 1 h RETURN a.x AS x, COUNT(a[]) AS n, SUM(a[].x) AS s", "B0 A1(x=2) A2"),
        ("SEQ(A* a[], B b) WITHIN 1 h RETURN a.x AS x, COUNT(a[]) AS n, MAX(a[].x) AS m", "A0(x=2) B1"),
        # rounds
        ("(SEQ(A a, B? b)){2} WITHIN 1 h RETURN a.x AS a, b.x AS b, b.x - a.x AS d", "A0(x=1) A1(x=2) B2(x=5)"),
        ("(SEQ(A a, B+ b[])){2} WITHIN 1 h RETURN b[i].x - a.x AS d, SUM(b[..i-1].x) AS s, b[i-1].x AS p",
         "A0(x=1) B1(x=2) A2(x=5) B3(x=6) B4(x=8)"),
        # texts
        ("SEQ(A+ a[], B b) WITHIN 1 h RETURN MIN(a[].k) AS low, MAX(a[].k) AS high, a[last].k AS k, a[i].k < b.k AS is",
         "A0(k=z) A1(k=m) A2 B3(k=n)"),
        ("SEQ(A+ a[], B b) WITHIN 1 h RETURN a[first].type AS t, SUM(a[].k) AS s, a[i].k + 1 AS none", "A0(k=z) B1"),
        # what CUMULATIVE gathers
        ("SEQ(A a, B+ b[]) WITHIN 1 h SELECT CUMULATIVE RETURN a.x AS a, COUNT(b[]) AS n, b[i-1].x AS p",
         "A0(x=1) A1(x=2) B2(x=3) B3(x=4)"),
        ("SEQ(A a, B b, C c) WITHIN 1 h SELECT EACH, CUMULATIVE b RETURN b.x - a.x AS d", "A0(x=1) B1(x=2) B2(x=3) C3"),
        # windows
        ("SEQ(A a, B b) WITHIN 1 h WINDOW 4 s EVERY 1 s RETURN a.ts AS ts, prev(b.x) AS p", "A0 B1(x=4) B2"),
    ],
)  # fmt: skip
def test_cases_by_hand(query: str, events: str) -> None:
    assert is_equal(Case(parse(f"PATTERN {query}"), stream(events)), 0)


def column(returned: str, events: str = "A0(n=1, x=2.5, k=u) B1(n=2)") -> pa.Array:
    driver = driven(Case(parse(f"PATTERN SEQ(A a, B+ b[]) WITHIN 1 h RETURN {returned}"), stream(events)), 0)
    (found,) = Returns(driver.plan, driver.store, KINDS.get).of(driver.everything())
    return found


@pytest.mark.parametrize(
    ("returned", "kind"),
    [
        ("a.n", pa.int64()),
        ("a.x", pa.float64()),
        ("a.k", pa.string()),
        ("a.flag", pa.bool_()),
        ("a.n > 1", pa.bool_()),
        ("a.n + 1", pa.int64()),
        ("a.n / 2", pa.float64()),
        ("a.ts", pa.int64()),
        ("COUNT(b[])", pa.int64()),
        ("AVG(b[].n)", pa.float64()),
        ("MAX(b[].k)", pa.string()),
        ("b[i].n", pa.list_(pa.int64())),
        ("a.unheard_of", pa.null()),
        ("abs(a.n)", pa.int64()),
        ("sqrt(a.n)", pa.float64()),
    ],
)
def test_types(returned: str, kind: pa.DataType) -> None:
    assert column(returned).type == kind


def test_user_functions_and_remotes_are_refused() -> None:
    for returned in ("double(a.x)", "REMOTE[names, a.x]"):
        with pytest.raises(NotYetError):
            EmittingDriver(parse(f"PATTERN A a WITHIN 1 h RETURN {returned}"))
