"""Normalization keeps the meaning: the reference matcher finds the same matches before and after."""

from __future__ import annotations

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from penstock.pattern import ast
from penstock.pattern.normal import as_query, normalize
from penstock.pattern.parser import parse
from penstock.pattern.validate import problems
from penstock.reference import Event, find

PATTERNS = """
SEQ(A a, B b, C c)
SEQ(A a, B? b, C c)
AND(A a, B b, C? c)
OR(SEQ(A a, B b), SEQ(B c, A d))
SEQ(A a, OR(B b, C c), A|B d)
ANY(2, A a, B b, C c)
SEQ(A+ a[], B b)
SEQ(A* a[], B b, C* c[])
SEQ(A+ a[], B+ b[])
AND(A+ a[], B b)
(SEQ(A a, B? b)){1,2}
(SEQ(A a, OR(B b, C c)))+
SEQ((SEQ(A+ a[], B b)){1,2}, C c)
OR(A{2} a[], SEQ(B b, C+ c[]))
ANY(2, A+ a[], B b, SEQ(C c, A? d))
SEQ(A a, NOT B b, C c)
SEQ(A a, NOT B b, C c, A d)
SEQ(OR(A a, B b), NOT C c, A|B d)
SEQ(OR(A a, B b), NOT C c, OR(A d, B e))
SEQ(NOT B b, A a, C? c)
SEQ(A? a, NOT B b, C c)
SEQ(A* a[], NOT B b, C c)
SEQ(ANY(1, A a, C c), NOT B b, A d)
SEQ(A+ a[], NOT B b, C c)
(SEQ(A a, NOT B b, C c)){1,2}
SEQ(A a, (SEQ(B b, NOT A d, C c))*)
SEQ(A a, OR(SEQ(NOT B b, C c), B d))
AND(A a, SEQ(B b, NOT A d, C c))
""".strip().splitlines()
POLICIES = [
    "", "SELECT FIRST", "SELECT STRICT", "SELECT LAST", "SELECT CUMULATIVE", "CONSUME ALL", "SELECT FIRST CONSUME ALL",
]  # fmt: skip
LITERALS = ["1", "2", "1 + 1", "2 us", "1 / 0", "abs(-2)", "-1", "3 % 2"]
CONSTANTS = ["TRUE", "FALSE", "1 < 2", "2 us IN (1, 2)", "1 / 0 = 1", "NOT 1 = 1", "'a' = 'a'"]


def values_of(name: str, is_list: bool, is_negated: bool) -> list[str]:
    if is_negated or not is_list:
        return [f"{name}.x", f"{name}.y", f"prev({name}.x)"]
    single = [f"{name}[{index}].x" for index in ("first", "last", "2")]
    ranging = [f"{name}.x", f"{name}[i].y", f"{name}[i-1].x", f"SUM({name}[..i-1].x)", f"prev({name}.x)"]
    return [*single, *ranging, f"COUNT({name}[])", f"MAX({name}[].x)", f"SUM({name}[].x)"]


def conditions(pattern: str) -> st.SearchStrategy[str]:
    query = parse(f"PATTERN {pattern} WITHIN 1 s")
    found: list[str] = []
    for event in ast.events(query.pattern):
        found += values_of(event.variable, _is_list(query.pattern, event), _is_negated(query.pattern, event))
    value = st.sampled_from(found) | st.sampled_from(LITERALS)
    plain = st.builds("{} {} {}".format, value, st.sampled_from(["=", "<>", "<", ">="]), value)
    other = st.builds("{} {} ({}, {})".format, value, st.sampled_from(["IN", "NOT IN"]), value, value)
    flag = st.builds("{}.flag".format, st.sampled_from([event.variable for event in ast.events(query.pattern)]))
    leaf = plain | other | flag | st.sampled_from(CONSTANTS)
    nested = st.recursive(
        leaf,
        lambda inner: (
            st.builds("({} AND {})".format, inner, inner)
            | st.builds("({} OR {})".format, inner, inner)
            | st.builds("(NOT {})".format, inner)
            | st.builds("(({}) = ({}))".format, inner, inner)
        ),
        max_leaves=4,
    )
    same = st.sampled_from(["SAME[x]", "SAME[x, y]", "SAME[abs(x)]", "SAME[type]"])
    return st.lists(nested | same, min_size=1, max_size=3).map(", ".join)


def _is_list(pattern: ast.Pattern, event: ast.Event) -> bool:
    return any(event in ast.walk(node) for node in ast.walk(pattern) if isinstance(node, ast.Repetition))


def _is_negated(pattern: ast.Pattern, event: ast.Event) -> bool:
    return any(node.event == event for node in ast.walk(pattern) if isinstance(node, ast.Negation))


@st.composite
def queries(draw: st.DrawFn) -> str:
    pattern = draw(st.sampled_from(PATTERNS))
    where, policy = draw(conditions(pattern)), draw(st.sampled_from(POLICIES))
    return f"PATTERN {pattern} WHERE {where} WITHIN 6 EVENTS {policy}"


values = st.sampled_from([1, 1, 1, 2, None])
attributes = st.fixed_dictionaries({"x": values, "y": values, "flag": st.sampled_from([None, True, True, False])})
streams = st.lists(st.tuples(st.sampled_from("ABC"), attributes), min_size=2, max_size=7).map(
    lambda rows: [Event(kind, seq, seq, row) for seq, (kind, row) in enumerate(rows)]
)


def check(text: str, events: list[Event]) -> None:
    query = parse(text)
    normal = normalize(query)
    assert find(as_query(normal), events) == find(query, events)
    assert normalize(as_query(normal)).conjuncts == normal.conjuncts


@given(queries(), streams)
@settings(max_examples=50, deadline=None)
def test_normal_form_finds_the_same_matches(text: str, events: list[Event]) -> None:
    assume(not problems(parse(text)))
    check(text, events)


@pytest.mark.slow
@given(queries(), streams)
@settings(max_examples=2_000, deadline=None)
def test_normal_form_finds_the_same_matches_at_length(text: str, events: list[Event]) -> None:
    assume(not problems(parse(text)))
    check(text, events)


@pytest.mark.parametrize("pattern", PATTERNS)
@given(st.sampled_from(["SAME[x]", "SAME[x, y]", "SAME[abs(x)]"]), st.sampled_from(POLICIES), streams)
@settings(max_examples=15, deadline=None)
def test_same_means_its_pairs(pattern: str, same: str, policy: str, events: list[Event]) -> None:
    check(f"PATTERN {pattern} WHERE {same} WITHIN 6 EVENTS {policy}", events)


# --- conditions alone, on every stream of an A and perhaps a B or two ----------------------------------------

SMALL = [{"x": x, "flag": flag} for x in (1, 2, None) for flag in (True, None)]
SMALL_STREAMS = [[("A", first), *[("B", second)] * count] for first in SMALL for second in SMALL for count in (0, 1, 2)]
ALL_STREAMS = [
    Event(kind, 0, 10 * stream + number, {**row, "stream": stream})
    for stream, rows in enumerate(SMALL_STREAMS)
    for number, (kind, row) in enumerate(rows)
]


def small_query(where: str, pattern: str = "SEQ(A a, B? b)") -> str:
    return f"PATTERN {pattern} WHERE {where} WITHIN 6 EVENTS PARTITION BY stream"


@st.composite
def small_queries(draw: st.DrawFn) -> str:
    pattern, b = draw(st.sampled_from([("SEQ(A a, B? b)", "b.x"), ("SEQ(A a, B* b[])", "b[2].x")]))
    leaf = st.sampled_from([*CONSTANTS, "TRUE", "FALSE", "a.flag", "b.flag", "a.x > 1", f"{b} > 1", f"{b} NOT IN (1)"])
    nested = st.recursive(
        leaf,
        lambda inner: (
            st.builds("({} AND {})".format, inner, inner)
            | st.builds("({} OR {})".format, inner, inner)
            | st.builds("(NOT {})".format, inner)
            | st.builds("(({}) = ({}))".format, inner, inner)
        ),
        max_leaves=6,
    )
    return small_query(draw(nested), pattern)


@given(small_queries())
@settings(max_examples=50, deadline=None)
@example(small_query("(a.x > 1 AND b.x > 1) OR FALSE"))
@example(small_query("(b.x > 1 AND FALSE) OR a.x > 1"))
@example(small_query("(TRUE AND a.flag) = (b.x > 1)"))
@example(small_query("(NOT NOT a.flag) = (b.x > 1)"))
@example(small_query("a.x > 1 OR 1 / 0 <> 1"))
@example(small_query("a.x > 1 OR 1 NOT IN (1)"))
@example(small_query("a.x > 1 OR NOT (b.x > 1 OR TRUE)"))
def test_folding_keeps_the_meaning(text: str) -> None:
    assume(not problems(parse(text)))
    check(text, ALL_STREAMS)
