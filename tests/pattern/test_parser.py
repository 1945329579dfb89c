"""The parser, construct by construct in the order of docs/language.md, with every accepted spelling."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.errors import QueryError
from penstock.pattern import ast
from penstock.pattern.parser import parse, parse_span
from penstock.pattern.variables import RESERVED

A, B, C = (ast.Event((name.upper(),), name) for name in "abc")
AX, BX, CX = (ast.Attribute(name, "x") for name in "abc")
MIN_US = 60_000_000


def pattern(text: str) -> ast.Pattern:
    return parse(f"PATTERN {text}").pattern


def where(text: str) -> ast.Expression | None:
    return parse(f"PATTERN A a WHERE {text}").where


def clause(text: str, field: str) -> Any:
    return getattr(parse(f"PATTERN A a {text}"), field)


# --- patterns -----------------------------------------------------------------------------------------------

PATTERNS: list[tuple[ast.Pattern, list[str]]] = [
    (A, ["A a", "(A a)", "((A a))", "`A` `a`", "A\ta", "A -- a type\n a # a name", "(\r\nA\x0ba\x0c)"]),
    (ast.Event(("A",), "A"), ["A", "A A", "`A`"]),
    (ast.Event(("A", "B"), "x"), ["A|B x", "A | B x", "A|`B` x"]),
    (ast.Event((), "x"), ["* x", "×x"]),
    (ast.Event(("BRK.B",), "b"), ["`BRK.B` b"]),
    (ast.Event(("a`b",), "limit"), ["`a``b` `limit`"]),
    (ast.Event(("été",), "ñ"), ["été ñ"]),
    (ast.Sequence((A, B)), [
        "SEQ(A a, B b)", "SEQ(A a; B b)", "(A a, B b)", "(A a; B b)", "seq (A a,B b)", "Seq((A a), B b)",
    ]),
    (ast.Sequence((A, B, C)), ["SEQ(A a, B b, C c)", "(A a; B b, C c)"]),
    (ast.Sequence((A,)), ["SEQ(A a)"]),
    (ast.Conjunction((A, B)), [
        "AND(A a, B b)", "A a AND B b", "A a ∧ B b", "A a and B b", "∧(A a; B b)", "(A a AND B b)",
    ]),
    (ast.Conjunction((A, B, C)), ["AND(A a, B b, C c)", "A a AND B b ∧ C c"]),
    (ast.Conjunction((A, ast.Conjunction((B, C)))), ["AND(A a, AND(B b, C c))", "A a AND (B b AND C c)"]),
    (ast.Conjunction((A,)), ["AND(A a)"]),
    (ast.Disjunction((A, B)), ["OR(A a, B b)", "A a OR B b", "A a ∨ B b", "∨(A a, B b)", "(A a or B b)"]),
    (ast.Disjunction((A, ast.Conjunction((B, C)))), ["OR(A a, AND(B b, C c))", "A a OR B b AND C c"]),
    (ast.Conjunction((ast.Disjunction((A, B)), C)), ["AND(OR(A a, B b), C c)", "(A a OR B b) AND C c"]),
    (ast.AnyOf(2, (A, B, C)), ["ANY(2, A a, B b, C c)", "any(2; A a; B b; C c)"]),
    (ast.AnyOf(1, (A,)), ["ANY(1, A a)"]),
    (ast.Repetition(A, 1, None), ["A+ a[]", "A+ a", "A + a[ ]", "(A a)+", "KLEENE(A a)", "A{1,} a[]", "kleene(A a)"]),
    (ast.Repetition(A, 0, None), ["A* a[]", "A× a[]", "(A a)*", "A{0,} a[]"]),
    (ast.Repetition(A, 2, 5), ["A{2,5} a[]", "A{ 2 , 5 } a", "(A a){2,5}"]),
    (ast.Repetition(A, 3, 3), ["A{3} a[]", "A{3,3} a[]", "(A a){3}"]),
    (ast.Repetition(A, 2, None), ["A{2,} a[]"]),
    (ast.Repetition(A, 0, 1), ["A{0,1} a[]"]),
    (ast.Repetition(ast.Event(("A",), "A"), 1, None), ["A+", "A+ A[]", "KLEENE(A)"]),
    (ast.Repetition(ast.Event((), "x"), 0, None), ["** x[]"]),
    (ast.Repetition(ast.Sequence((A, B)), 1, None), [
        "(A a, B b)+", "SEQ(A a, B b)+", "(SEQ(A a, B b))+", "KLEENE((A a, B b))",
    ]),
    (ast.Repetition(ast.Sequence((A, B)), 0, None), ["(A a, B b)*"]),
    (ast.Repetition(ast.Sequence((A, B)), 2, 5), ["(A a, B b){2,5}"]),
    (ast.Repetition(ast.Repetition(A, 1, None), 1, None), ["(A+ a[])+", "KLEENE(A a)+", "KLEENE(KLEENE(A a))"]),
    (ast.Option(A), ["A? a", "(A a)?"]),
    (ast.Option(ast.Sequence((A, B))), ["(A a, B b)?", "SEQ(A a, B b)?"]),
    (ast.Sequence((A, ast.Negation(B), C)), [
        "SEQ(A a, NOT B b, C c)", "SEQ(A a, !B b, C c)", "SEQ(A a, NEG(B b), C c)", "SEQ(A a, ¬B b, C c)",
        "(A a; not (B b); C c)", "SEQ(A a, NEG B b, C c)", "SEQ(A a, ! (B b), C c)",
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("expected", "spellings"), PATTERNS)
def test_patterns(expected: ast.Pattern, spellings: list[str]) -> None:
    for text in spellings:
        assert pattern(text) == expected, text


# --- conditions ---------------------------------------------------------------------------------------------


def number(value: float) -> ast.Number:
    return ast.Number(value)


def equal(left: ast.Expression, right: ast.Expression) -> ast.Comparison:
    return ast.Comparison("=", left, right)


def less(left: ast.Expression, right: ast.Expression) -> ast.Comparison:
    return ast.Comparison("<", left, right)


EXPRESSIONS: list[tuple[ast.Expression, list[str]]] = [
    (AX, ["a.x", "a . x", "`a`.x", "a.`x`", "(a.x)", "((a.x))"]),
    (ast.Attribute("a", "limit"), ["a.limit", "a.`limit`"]),
    (ast.Attribute("a", "unit price"), ["a.`unit price`"]),
    (ast.Arithmetic("+", AX, BX), ["a.x + b.x", "a.x+b.x"]),
    (ast.Arithmetic("-", AX, BX), ["a.x - b.x", "a.x-b.x", "a.x − b.x"]),
    (ast.Arithmetic("*", AX, BX), ["a.x * b.x", "a.x × b.x"]),
    (ast.Arithmetic("/", AX, BX), ["a.x / b.x"]),
    (ast.Arithmetic("%", AX, BX), ["a.x % b.x"]),
    (ast.Arithmetic("+", AX, ast.Arithmetic("*", BX, CX)), ["a.x + b.x * c.x", "a.x + (b.x * c.x)"]),
    (ast.Arithmetic("*", ast.Arithmetic("+", AX, BX), CX), ["(a.x + b.x) * c.x"]),
    (ast.Arithmetic("-", ast.Arithmetic("-", AX, BX), CX), ["a.x - b.x - c.x", "(a.x - b.x) - c.x"]),
    (ast.Arithmetic("-", AX, ast.Arithmetic("-", BX, CX)), ["a.x - (b.x - c.x)"]),
    (ast.Arithmetic("%", ast.Arithmetic("/", AX, BX), CX), ["a.x / b.x % c.x"]),
    (ast.Minus(AX), ["-a.x", "- a.x", "−a.x"]),
    (ast.Minus(number(5)), ["-5", "- 5"]),
    (ast.Minus(ast.Minus(AX)), ["- -a.x", "-(-a.x)"]),
    (ast.Arithmetic("*", ast.Minus(AX), BX), ["-a.x * b.x"]),
    (equal(AX, BX), ["a.x = b.x", "a.x == b.x", "a.x=b.x"]),
    (ast.Comparison("<>", AX, BX), ["a.x <> b.x", "a.x != b.x", "a.x ≠ b.x"]),
    (less(AX, BX), ["a.x < b.x"]),
    (ast.Comparison("<=", AX, BX), ["a.x <= b.x", "a.x ≤ b.x"]),
    (ast.Comparison(">", AX, BX), ["a.x > b.x"]),
    (ast.Comparison(">=", AX, BX), ["a.x >= b.x", "a.x ≥ b.x"]),
    (ast.And((equal(AX, BX), equal(BX, CX))), ["a.x = b.x = c.x", "a.x = b.x AND b.x = c.x", "a.x = b.x, b.x == c.x"]),
    (ast.And((less(AX, BX), ast.Comparison("<=", BX, CX))), ["a.x < b.x <= c.x"]),
    (equal(less(AX, BX), ast.Boolean(True)), ["(a.x < b.x) = TRUE"]),
    (ast.Membership(AX, (number(1), number(2))), ["a.x IN (1, 2)", "a.x ∈ (1,2)", "a.x in (1, (2))"]),
    (ast.Membership(AX, (number(1),), negated=True), ["a.x NOT IN (1)", "a.x ∉ (1)", "a.x not in (1)", "a.x ¬ ∈ (1)"]),
    (ast.Membership(AX, ast.Remote("s", BX)), ["a.x IN REMOTE[s, b.x]", "a.x ∈ remote[s, b.x]"]),
    (ast.Membership(AX, ast.Remote("s", BX), negated=True), ["a.x NOT IN REMOTE[s, b.x]", "a.x ∉ REMOTE[s, b.x]"]),
    (ast.Membership(AX, (ast.Remote("s", BX),)), ["a.x IN (REMOTE[s, b.x])"]),
    (ast.And((AX, BX)), ["a.x AND b.x", "a.x ∧ b.x", "a.x and b.x", "a.x, b.x", "(a.x AND b.x)"]),
    (ast.And((AX, BX, CX)), ["a.x AND b.x AND c.x", "a.x, b.x, c.x"]),
    (ast.And((ast.And((AX, BX)), CX)), ["(a.x AND b.x) AND c.x", "a.x AND b.x, c.x"]),
    (ast.Or((AX, BX)), ["a.x OR b.x", "a.x ∨ b.x", "a.x or b.x"]),
    (ast.Or((AX, ast.And((BX, CX)))), ["a.x OR b.x AND c.x", "a.x OR (b.x AND c.x)"]),
    (ast.And((ast.Or((AX, BX)), CX)), ["(a.x OR b.x) AND c.x", "a.x OR b.x, c.x"]),
    (ast.Not(AX), ["NOT a.x", "¬a.x", "!a.x", "not (a.x)"]),
    (ast.Not(less(AX, BX)), ["NOT a.x < b.x", "NOT (a.x < b.x)"]),
    (ast.And((ast.Not(AX), BX)), ["NOT a.x AND b.x"]),
    (ast.Not(ast.Not(AX)), ["NOT NOT a.x"]),
    (ast.Text("x"), ["'x'", '"x"']),
    (ast.Text("it's"), ["'it''s'", '"it\'s"']),
    (ast.Text('say "hi"'), ["'say \"hi\"'", '"say ""hi"""']),
    (ast.Text("-- no comment # here"), ["'-- no comment # here'"]),
    (ast.Text("two\nlines"), ["'two\nlines'"]),
    (ast.Text(""), ["''", '""']),
    (ast.Boolean(True), ["TRUE", "true"]),
    (ast.Boolean(False), ["FALSE", "False"]),
    (ast.Call("abs", (AX,)), ["abs(a.x)", "abs (a.x)", "`abs`(a.x)"]),
    (ast.Call("dist", (AX, BX, number(1), number(2))), ["dist(a.x, b.x, 1, 2)"]),
    (ast.Call("now", ()), ["now()"]),
    (ast.Call("min", (AX, number(5))), ["min(a.x, 5)"]),
    (ast.Call("limit", (AX,)), ["`limit`(a.x)"]),
    (ast.Same((ast.SameKey("x"),)), ["SAME[x]", "[x]", "same[ x ]", "[`x`]"]),
    (ast.Same((ast.SameKey("x"), ast.SameKey("limit"))), ["SAME[x, limit]", "[x, limit]"]),
    (ast.Same((ast.SameKey("x", "f"), ast.SameKey("y"))), ["SAME[f(x), y]", "[f(x), y]"]),
    (ast.Previous(AX), ["prev(a.x)", "PREV(a.x)"]),
    (ast.Previous(ast.Attribute("a", "x", "i")), ["prev(a[i].x)"]),
    (ast.Remote("s", AX), ["REMOTE[s, a.x]", "remote[s,a.x]", "REMOTE[`s`, a.x]"]),
    (ast.Remote("x", AX), ["REMOTE[a.x]", "REMOTE[x, a.x]"]),
    (ast.Remote("cards", AX, "limit"), ["REMOTE[cards, a.x].limit", "REMOTE[cards, a.x].`limit`"]),
    (ast.Remote("s", ast.Arithmetic("+", AX, number(1))), ["REMOTE[s, a.x + 1]"]),
    (ast.Attribute("a", "x", "i"), ["a[i].x", "a[ i ] . x"]),
    (ast.Attribute("a", "x", "i-1"), ["a[i-1].x", "a[i - 1].x", "a[i − 1].x"]),
    (ast.Attribute("a", "x", "first"), ["a[first].x", "a[FIRST].x"]),
    (ast.Attribute("a", "x", "last"), ["a[last].x", "a[Last].x"]),
    (ast.Attribute("a", "x", 3), ["a[3].x", "a[ 3 ].x"]),
    (ast.Aggregate("COUNT", "a"), ["COUNT(a[])", "count(a[ ])"]),
    (ast.Aggregate("COUNT", "a", "x"), ["COUNT(a[].x)"]),
    (ast.Aggregate("SUM", "a", "x"), ["SUM(a[].x)", "sum(a[].x)"]),
    (ast.Aggregate("AVG", "a", "x"), ["AVG(a[].x)"]),
    (ast.Aggregate("MIN", "a", "x"), ["MIN(a[].x)", "min(a[].x)"]),
    (ast.Aggregate("MAX", "a", "x"), ["MAX(a[].x)"]),
    (ast.Aggregate("SUM", "a", "x", "i-1"), ["SUM(a[..i-1].x)", "SUM(a[ .. i - 1 ].x)"]),
    (ast.Aggregate("SUM", "a", "x", "i"), ["SUM(a[..i].x)"]),
    (ast.Aggregate("COUNT", "a", None, "i"), ["COUNT(a[..i])"]),
]  # fmt: skip


@pytest.mark.parametrize(("expected", "spellings"), EXPRESSIONS)
def test_expressions(expected: ast.Expression, spellings: list[str]) -> None:
    for text in spellings:
        assert where(text) == expected, text


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", 5), ("007", 7), ("2.5", 2.5), ("5.0", 5.0), ("1e3", 1000.0), ("1.5E-2", 0.015), ("2e+2", 200.0),
        ("10k", 10_000), ("10K", 10_000), ("2M", 2_000_000), ("1.5k", 1500), ("0.5M", 500_000), ("0.0005k", 0.5),
        ("123456789012345678901234567890123", 123456789012345678901234567890123),  # no rounding
        ("0.1234567890123456789012345678901k", 123.4567890123456789), ("1e-999999999", 0.0), ("9" * 300, 10**300 - 1),
    ],
)  # fmt: skip
def test_numbers(text: str, value: float) -> None:
    found = where(text)
    assert found == ast.Number(value)
    assert isinstance(found, ast.Number)
    assert type(found.value) is type(value)


UNITS = {
    1: "us µs μs microsecond microseconds US",
    1_000: "ms millisecond milliseconds",
    1_000_000: "s sec secs second seconds S",
    MIN_US: "min mins minute minutes MIN Min",
    60 * MIN_US: "h hr hrs hour hours",
    1440 * MIN_US: "d day days",
    10080 * MIN_US: "w week weeks Weeks",
}  # fmt: skip


@pytest.mark.parametrize(
    ("length", "unit"), [(length, unit) for length, units in UNITS.items() for unit in units.split()]
)
def test_durations(length: int, unit: str) -> None:
    for text in (f"3 {unit}", f"3{unit}", f"3.0\n{unit}"):
        assert where(text) == ast.Duration(3 * length)
        assert clause(f"WITHIN {text}", "within") == ast.TimeSpan(3 * length)


def test_fractions_of_units() -> None:
    assert where("0.5 h") == ast.Duration(30 * MIN_US)
    assert where("0.000001 s") == ast.Duration(1)
    assert where("a.ts % 24 h >= 6 h") == ast.Comparison(
        ">=", ast.Arithmetic("%", ast.Attribute("a", "ts"), ast.Duration(1440 * MIN_US)), ast.Duration(360 * MIN_US)
    )


# --- clauses ------------------------------------------------------------------------------------------------

S = ast.Event(("S",), "s")
EACH, LAST = ast.Policy.EACH, ast.Policy.LAST
CLAUSES: list[tuple[str, Any, list[str]]] = [
    ("where", None, [""]),
    ("within", None, [""]),
    ("within", ast.TimeSpan(5 * MIN_US), ["WITHIN 5 min", "within 300 s"]),
    ("within", ast.CountSpan(8), ["WITHIN 8 EVENTS", "WITHIN 8 events"]),
    ("within", ast.CountSpan(1), ["WITHIN 1 EVENT"]),
    ("within", ast.CountSpan(1_200), ["WITHIN 1.2k EVENTS"]),
    ("partition", (), [""]),
    ("partition", (ast.Name("x"),), ["PARTITION BY x", "partition by `x`"]),
    ("partition", (ast.Name("limit"), ast.Name("unit price")), ["PARTITION BY limit, `unit price`"]),
    ("window", None, [""]),
    ("window", ast.Window(ast.TimeSpan(250_000_000)), ["WINDOW 250 s"]),
    ("window", ast.Window(ast.TimeSpan(250_000_000), ast.TimeSpan(10_000_000)), ["WINDOW 250 s EVERY 10 s"]),
    ("window", ast.Window(ast.CountSpan(1200), ast.CountSpan(20)), ["WINDOW 1200 EVENTS EVERY 20 EVENTS"]),
    ("window", ast.Window(ast.CountSpan(12), on=ast.Opening(ast.Event(("S",), "S"))), ["WINDOW 12 EVENTS ON S"]),
    ("window", ast.Window(ast.TimeSpan(15_000_000), on=ast.Opening(S)), ["WINDOW 15 s ON S s"]),
    ("window", ast.Window(ast.TimeSpan(15_000_000), on=ast.Opening(S, less(ast.Attribute("s", "v"), number(3)))), [
        "WINDOW 15 s ON S s WHERE s.v < 3", "window 15 s on S s where (s.v < 3)",
    ]),
    ("window", ast.Window(ast.TimeSpan(0), on=ast.Opening(ast.Event(("S", "T"), "x"))), ["WINDOW 0 s ON S|T x"]),
    ("window", ast.Window(ast.TimeSpan(0), on=ast.Opening(ast.Event((), "x"))), ["WINDOW 0 s ON * x"]),
    ("window", ast.Window(ast.CountSpan(9), distinct=True), ["WINDOW 9 EVENTS DISTINCT"]),
    ("window", ast.Window(ast.CountSpan(9), ast.CountSpan(3), distinct=True), [
        "WINDOW 9 EVENTS EVERY 3 EVENTS DISTINCT",
    ]),
    ("window", ast.Window(ast.CountSpan(9), on=ast.Opening(S, AX), distinct=True), [
        "WINDOW 9 EVENTS ON S s WHERE a.x DISTINCT",
    ]),
    ("limit", None, [""]),
    ("limit", 1, ["LIMIT 1 PER WINDOW", "limit 1 per window"]),
    ("select", ast.Select(EACH), ["", "SELECT EACH", "select each"]),
    ("select", ast.Select(ast.Policy.FIRST), ["SELECT FIRST"]),
    ("select", ast.Select(LAST), ["SELECT LAST"]),
    ("select", ast.Select(ast.Policy.CUMULATIVE), ["SELECT CUMULATIVE"]),
    ("select", ast.Select(ast.Policy.STRICT), ["SELECT STRICT"]),
    ("select", ast.Select(EACH, (ast.SelectVariable(LAST, "b"),)), ["SELECT EACH, LAST b"]),
    ("select", ast.Select(EACH, (ast.SelectVariable(LAST, "first"), ast.SelectVariable(ast.Policy.CUMULATIVE, "c"))), [
        "SELECT EACH, LAST first, CUMULATIVE c",
    ]),
    ("consume", ast.Consume(), ["", "CONSUME NONE", "CONSUME ZERO", "consume none"]),
    ("consume", ast.Consume(all=True), ["CONSUME ALL", "consume all"]),
    ("consume", ast.Consume(variables=(ast.Name("a"), ast.Name("b"))), ["CONSUME a, b"]),
    ("consume", ast.Consume(variables=(ast.Name("all"),)), ["CONSUME `all`"]),
    ("returns", (), [""]),
    ("returns", (ast.Return(AX), ast.Return(BX, "y")), ["RETURN a.x, b.x AS y", "return a.x, b.x as `y`"]),
]  # fmt: skip


@pytest.mark.parametrize(("field", "expected", "spellings"), CLAUSES)
def test_clauses(field: str, expected: Any, spellings: list[str]) -> None:
    for text in spellings:
        assert clause(text, field) == expected, text


def test_a_whole_query() -> None:
    query = parse(
        """
        PATTERN SEQ(A a, B b)   -- two events
        WHERE a.x < b.x         # that rise
        WITHIN 5 min PARTITION BY card WINDOW 8 EVENTS LIMIT 1 PER WINDOW
        SELECT FIRST CONSUME a RETURN b.x
        """,
        "rise",
    )
    assert query == ast.Query(
        ast.Sequence((A, B)), less(AX, BX), ast.TimeSpan(5 * MIN_US), (ast.Name("card"),),
        ast.Window(ast.CountSpan(8)), 1, ast.Select(ast.Policy.FIRST), ast.Consume(variables=(ast.Name("a"),)),
        (ast.Return(BX),), "rise",
    )  # fmt: skip


@pytest.mark.parametrize("word", sorted(RESERVED))
def test_a_reserved_word_is_an_attribute_as_it_is_and_a_name_in_back_quotes(word: str) -> None:
    for spelled in (word, word.lower(), word.title()):
        assert where(f"a.{spelled} + REMOTE[s, 1].{spelled}") is not None
        assert where(f"[{spelled}]") == ast.Same((ast.SameKey(spelled),))
        assert pattern(f"`{spelled}`") == ast.Event((spelled,), spelled)
        with pytest.raises(QueryError):
            pattern(f"SEQ(A {spelled})")


WORDS = "i first last each all none zero by per events min s k prev sum ſEQ İN ıN fİrst"


@pytest.mark.parametrize("word", WORDS.split())
def test_other_words_are_names_everywhere(word: str) -> None:
    text = f"PATTERN {word} {word} WHERE {word}.{word} = {word}({word}.{word}) AND {word}[i].x = 1 RETURN 1 AS {word}"
    if word == "prev":
        text = text.replace("prev(", "f(")
    query = parse(text)
    assert query.pattern == ast.Event((word,), word)
    assert query.returns[0].name == word


# re's IGNORECASE takes ſ for s, İ and ı for i, and the Kelvin sign for k.
@pytest.mark.parametrize("text", ["5 mİn", "5 ſ", "5 hourſ", "5 K", "5 EVENTſ"])
def test_units_are_ascii(text: str) -> None:
    with pytest.raises(QueryError):
        parse_span(text)


@pytest.mark.parametrize("text", ["SELECT FİRST", "SELECT LAſT", "SELECT ſTRICT", "WHERE a[fırst].x = 1", "WITHİN 5 s"])
def test_keywords_are_ascii(text: str) -> None:
    with pytest.raises(QueryError):
        parse(f"PATTERN A a {text}")
