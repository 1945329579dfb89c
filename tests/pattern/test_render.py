"""The canonical text: what it looks like, and where it needs parentheses and back quotes."""

from __future__ import annotations

import pytest

from penstock.pattern import ast
from penstock.pattern.parser import parse
from penstock.pattern.render import render, render_clauses, render_expression, render_pattern, render_span
from tests.pattern.test_parser import EXPRESSIONS, PATTERNS

CANONICAL_PATTERNS = {
    "A a": "A a",
    "A A": "A",
    "A": "A",
    "A|B x": "A|B x",
    "* x": "* x",
    "`A` `limit`": "A `limit`",
    "`Limit`": "`Limit`",
    "`BRK.B` b": "`BRK.B` b",
    "`a``b`": "`a``b`",
    "(A a; B b)": "SEQ(A a, B b)",
    "A a AND B b OR C c": "OR(AND(A a, B b), C c)",
    "any(2; A a; B b)": "ANY(2, A a, B b)",
    "SEQ(A a)": "SEQ(A a)",
    "AND(AND(A, B), C)": "AND(AND(A, B), C)",
    "KLEENE(A a)": "A+ a[]",
    "A+ A[]": "A+",
    "A{0,} a": "A* a[]",
    "A{2,5} a": "A{2,5} a[]",
    "A{3,3} a": "A{3} a[]",
    "A{2,} a": "A{2,} a[]",
    "A{0,1} a": "A{0,1} a[]",
    "** x[]": "** x[]",
    "A|B? x": "A|B? x",
    "SEQ(A a, B b)+": "(SEQ(A a, B b))+",
    "(A+ a[])*": "(A+ a[])*",
    "((A a)?){2}": "(A? a){2}",
    "SEQ(A, !B, C)": "SEQ(A, NOT B, C)",
    "(NOT B)?": "(NOT B)?",
}
CANONICAL_EXPRESSIONS = {
    "a.x+b.x*c.x": "a.x + b.x * c.x",
    "(a.x+b.x)*c.x": "(a.x + b.x) * c.x",
    "(a.x-b.x)-c.x": "a.x - b.x - c.x",
    "a.x-(b.x-c.x)": "a.x - (b.x - c.x)",
    "a.x*(b.x*c.x)": "a.x * (b.x * c.x)",
    "a.x*(b.x+c.x)%2": "a.x * (b.x + c.x) % 2",
    "-(a.x+b.x)": "-(a.x + b.x)",
    "-a.x*b.x": "-a.x * b.x",
    "-(a.x*b.x)": "-(a.x * b.x)",
    "a.x - -b.x": "a.x - -b.x",
    "- -a.x": "-(-a.x)",
    "- - -5": "-(-(-5))",
    "a.x == b.x": "a.x = b.x",
    "a.x != b.x": "a.x <> b.x",
    "a.x = b.x = c.x": "a.x = b.x AND b.x = c.x",
    "a.x = b.x = c.x AND d.x": "(a.x = b.x AND b.x = c.x) AND d.x",
    "a.x OR b.x = c.x = d.x": "a.x OR b.x = c.x AND c.x = d.x",
    "(a.x = 1) = TRUE": "(a.x = 1) = TRUE",
    "(a.x OR b.x) AND (c.x OR d.x)": "(a.x OR b.x) AND (c.x OR d.x)",
    "(a.x AND b.x) OR (c.x AND d.x)": "a.x AND b.x OR c.x AND d.x",
    "a.x AND (b.x AND c.x)": "a.x AND (b.x AND c.x)",
    "(a.x OR b.x) OR c.x": "(a.x OR b.x) OR c.x",
    "NOT a.x > 3": "NOT (a.x > 3)",
    "NOT a.x IN (1)": "NOT (a.x IN (1))",
    "NOT a.x AND b.x": "NOT a.x AND b.x",
    "NOT (a.x AND b.x)": "NOT (a.x AND b.x)",
    "NOT NOT a.x": "NOT NOT a.x",
    "NOT (a.x) + 1": "NOT a.x + 1",
    "(NOT a.x) + 1": "(NOT a.x) + 1",
    "-(NOT a.x)": "-(NOT a.x)",
    "a.x ∉ (1, -2)": "a.x NOT IN (1, -2)",
    "a.x + 1 IN (a.y = 1, 2)": "a.x + 1 IN (a.y = 1, 2)",
    "(a.x IN (1)) IN (TRUE)": "(a.x IN (1)) IN (TRUE)",
    "a.x IN REMOTE[a.user]": "a.x IN REMOTE[user, a.user]",
    "REMOTE[cards, a.card + 1].limit": "REMOTE[cards, a.card + 1].limit",
    "REMOTE[`on`, a.`on`].`a b`": "REMOTE[`on`, a.on].`a b`",
    "[x, f(`y z`)]": "SAME[x, f(`y z`)]",
    "same[`limit`]": "SAME[limit]",
    '"it\'s"': "'it''s'",
    "'say \"hi\"'": "'say \"hi\"'",
    "true": "TRUE",
    "10k": "10000",
    "2.50": "2.5",
    "1e3": "1000.0",
    "1e300": "1e+300",
    "60 s": "1 min",
    "90 s": "90 s",
    "1.5 h": "90 min",
    "14 days": "2 w",
    "1000000 us": "1 s",
    "1001 us": "1001 us",
    "0 w": "0 s",
    "a[ i ].x": "a[i].x",
    "a[ i - 1 ].`limit`": "a[i-1].limit",
    "a[FIRST].x": "a[first].x",
    "`limit`[3].x": "`limit`[3].x",
    "count(a[])": "COUNT(a[])",
    "sum(a[..i - 1].x)": "SUM(a[..i-1].x)",
    "PREV(a.x)": "prev(a.x)",
    "Abs(a.x, (1))": "Abs(a.x, 1)",
    "`as`()": "`as`()",
}


@pytest.mark.parametrize(("text", "canonical"), CANONICAL_PATTERNS.items())
def test_patterns(text: str, canonical: str) -> None:
    pattern = parse(f"PATTERN {text}").pattern
    assert render_pattern(pattern) == canonical
    assert parse(f"PATTERN {canonical}").pattern == pattern


@pytest.mark.parametrize(("text", "canonical"), CANONICAL_EXPRESSIONS.items())
def test_expressions(text: str, canonical: str) -> None:
    where = parse(f"PATTERN A WHERE {text}").where
    assert where is not None
    assert render_expression(where) == canonical
    assert parse(f"PATTERN A WHERE {canonical}").where == where


@pytest.mark.parametrize("pattern", [pattern for pattern, _ in PATTERNS])
def test_every_construct_of_a_pattern(pattern: ast.Pattern) -> None:
    assert parse(f"PATTERN {render_pattern(pattern)}").pattern == pattern


@pytest.mark.parametrize("expression", [expression for expression, _ in EXPRESSIONS])
def test_every_construct_of_an_expression(expression: ast.Expression) -> None:
    assert parse(f"PATTERN A WHERE {render_expression(expression)}").where == expression


FULL = """\
PATTERN SEQ(A a, B+ b[])
WHERE a.x < b[i].x AND SAME[k]
WITHIN 5 min
PARTITION BY card, `unit price`
WINDOW 15 s ON S|T s WHERE s.v > 3 DISTINCT
LIMIT 2 PER WINDOW
SELECT EACH, LAST b, FIRST `limit`
CONSUME a, `all`
RETURN a.x, COUNT(b[]) AS `as`"""


def test_a_clause_per_line() -> None:
    squeezed = (
        FULL.replace("\n", " ").lower().replace("seq(a a, b+ b[])", "SEQ(A a, B+ b[])").replace("on s|t", "on S|T")
    )
    assert render(parse(squeezed)) == FULL
    assert list(render_clauses(parse(FULL))) == [
        "PATTERN", "WHERE", "WITHIN", "PARTITION BY", "WINDOW", "LIMIT", "SELECT", "CONSUME", "RETURN",
    ]  # fmt: skip


def test_what_says_nothing_is_left_out() -> None:
    assert render(parse("PATTERN A WITHIN 8 EVENTS SELECT EACH CONSUME NONE")) == "PATTERN A\nWITHIN 8 EVENTS"


@pytest.mark.parametrize(
    "text",
    [
        "WINDOW 250 s",
        "WINDOW 250 s EVERY 10 s",
        "WINDOW 20 EVENTS EVERY 2 EVENTS DISTINCT",
        "WINDOW 1 min ON S",
        "CONSUME ALL",
    ],
)
def test_other_forms_of_clauses(text: str) -> None:
    assert render(parse(f"PATTERN A {text}")) == f"PATTERN A\n{text}"


def test_spans() -> None:
    assert render_span(ast.TimeSpan(604_800_000_000)) == "1 w"
    assert render_span(ast.TimeSpan(0)) == "0 s"
    assert render_span(ast.CountSpan(1)) == "1 EVENTS"


def test_the_deepest_queries_are_their_text() -> None:
    for text in ("NOT " * 98 + "a.x", "- " * 98 + "a.x", "a.x" + " + 1" * 97, "f(" * 98 + "a.x" + ")" * 98):
        query = parse(f"PATTERN A a WHERE {text}")
        assert parse(render(query)) == query
    infix = "A a0"
    for number in range(1, 49):
        infix = f"({infix} AND B b{number}) OR C c{number}"
    query = parse(f"PATTERN {infix}")
    assert parse(render(query)) == query
