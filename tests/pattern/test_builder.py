"""The builder: for each row of docs/language.md's tables, the same query as from text; and what it refuses."""

from __future__ import annotations

import copy
from datetime import timedelta
from fractions import Fraction
from typing import Any

import pytest

from penstock.errors import PenstockError, QueryError
from penstock.pattern import ast
from penstock.pattern import builder as pk
from penstock.pattern.parser import MAX_DEPTH, parse
from penstock.pattern.render import render

a, b, c, d = pk.event("A", "a"), pk.event("B", "b"), pk.event("C", "c"), pk.event("D", "d")
s = pk.event("S", "s")
lists = b.plus()
half: Any = Fraction(1, 2)

PATTERNS: list[tuple[str, pk.Part]] = [
    ("A a", a),
    ("A", pk.event("A")),
    ("A|B x", pk.event(["A", "B"], "x")),
    ("* x", pk.event("*", "x")),
    ("`*` x", pk.event(["*"], "x")),
    ("`BRK.B` `limit`", pk.event("BRK.B", "limit")),
    ("SEQ(A a, B b)", pk.seq(a, b)),
    ("(A a; B b; C c)", pk.seq(a, b, c)),
    ("SEQ(A a)", pk.seq(a)),
    ("AND(A a, B b)", pk.all_of(a, b)),
    ("A a AND B b AND C c", pk.all_of(a, b, c)),
    ("OR(A a, B b)", pk.one_of(a, b)),
    ("A a OR B b AND C c", pk.one_of(a, pk.all_of(b, c))),
    ("ANY(2, A a, B b, C c)", pk.any_of(2, a, b, c)),
    ("A+ a[]", a.plus()),
    ("A* a[]", a.star()),
    ("A{2,5} a[]", a.times(2, 5)),
    ("A{0,1} a[]", a.times(0, 1)),
    ("A{3} a[]", a.times(3)),
    ("A{2,} a[]", a.times(2, None)),
    ("KLEENE(A a)", a.plus()),
    ("(A a, B b)+", pk.seq(a, b).plus()),
    ("(A a, B b)*", pk.seq(a, b).star()),
    ("(A a, B b){2,5}", pk.seq(a, b).times(2, 5)),
    ("(A+ a[])+", a.plus().plus()),
    ("A? a", a.optional()),
    ("(A a AND B b)?", pk.all_of(a, b).optional()),
    ("SEQ(A a, NOT B b, C c)", pk.seq(a, ~b, c)),
]


@pytest.mark.parametrize(("text", "part"), PATTERNS)
def test_patterns(text: str, part: pk.Part) -> None:
    assert pk.query(part) == parse(f"PATTERN {text}")


CONDITIONS: list[tuple[str, pk.Value]] = [
    ("a.x + b.x", a.x + b.x),
    ("a.x - 1", a.x - 1),
    ("1 - a.x", 1 - a.x),
    ("2 + a.x", 2 + a.x),
    ("2 * a.x", 2 * a.x),
    ("2 / a.x", 2 / a.x),
    ("2 % a.x", 2 % a.x),
    ("a.x * b.x / 2 % 3", a.x * b.x / 2 % 3),
    ("a.x * (b.x + 1)", a.x * (b.x + 1)),
    ("-a.x", -a.x),
    ("a.x = b.x", a.x == b.x),
    ("a.x <> 'x'", a.x != "x"),
    ("a.x < 2.5", a.x < 2.5),
    ("a.x <= -1", a.x <= -1),
    ("a.x > b.x", a.x > b.x),
    ("a.x >= b.x", a.x >= b.x),
    ("5 < a.x", pk.literal(5) < a.x),
    ("a.x > 5", 5 < a.x),  # noqa: SIM300  # Python turns it round
    ("a.x = b.x = c.x", (a.x == b.x) & (b.x == c.x)),
    ("a.x IN (1, 2)", a.x.is_in([1, 2])),
    ("a.x IN (1, b.x)", a.x.is_in((1, b.x))),
    ("a.x NOT IN (1)", a.x.not_in({1})),
    ("a.x IN REMOTE[s, a.k]", a.x.is_in(pk.remote("s", a.k))),
    ("a.x IN REMOTE[s, a.k].members", a.x.is_in(pk.remote("s", a.k).members)),
    ("a.x NOT IN REMOTE[s, a.k]", a.x.not_in(pk.remote("s", a.k))),
    ("a.x IN (REMOTE[s, a.k])", a.x.is_in([pk.remote("s", a.k)])),
    ("a.x AND b.x AND c.x", a.x & b.x & c.x),
    ("a.x AND (b.x AND c.x)", a.x & (b.x & c.x)),
    ("a.x OR b.x OR c.x", a.x | b.x | c.x),
    ("a.x OR b.x AND c.x", a.x | b.x & c.x),
    ("(a.x OR b.x) AND c.x", (a.x | b.x) & c.x),
    ("NOT a.x", ~a.x),
    ("NOT (a.x > 3) AND b.x", ~(a.x > 3) & b.x),
    ("a.x = 10k", a.x == 10_000),
    ("b.ts - a.ts > 5 min", b.ts - a.ts > timedelta(minutes=5)),
    ("b.ts - a.ts > 5 min", b.ts - a.ts > pk.duration("5 min")),
    ("a.ts % 24 h >= 6 h", a.ts % pk.duration("24 h") >= pk.duration(timedelta(hours=6))),
    ("a.x = -5 s", a.x == timedelta(seconds=-5)),
    ("a.x = 'it''s'", a.x == "it's"),
    ("a.x = TRUE", a.x == True),  # noqa: E712  # it makes a condition
    ("FALSE", pk.literal(False)),
    ("a.x = 0.5", a.x == half),
    ("abs(a.x)", pk.call("abs", a.x)),
    ("dist(a.x, a.y, 1, 2.0)", pk.call("dist", a.x, a.y, 1, 2.0)),
    ("now()", pk.call("now")),
    ("SAME[x]", pk.same("x")),
    ("[x, f(y)]", pk.same("x", ("f", "y"))),
    ("prev(a.x)", pk.prev(a.x)),
    ("prev(b[i].x)", pk.prev(lists["i"].x)),
    ("REMOTE[s, a.k]", pk.remote("s", a.k)),
    ("REMOTE[s, 'k']", pk.remote("s", "k")),
    ("REMOTE[cards, a.card].limit", pk.remote("cards", a.card).limit),
    ("REMOTE[cards, a.card].is_in", pk.remote("cards", a.card).attr("is_in")),
    ("REMOTE[a.user]", pk.remote(a.user)),
    ("b[i].x > b[i-1].x", lists["i"].x > lists["i-1"].x),
    ("b[i - 1].x", lists["i - 1"].x),  # type: ignore[index]  # blanks do no harm
    ("b[first].x < b[last].x", lists["first"].x < lists["last"].x),
    ("b[3].x", lists[3].x),
    ("b[3].attr", lists[3].attr("attr")),
    ("COUNT(b[])", pk.count(lists)),
    ("COUNT(b[].x)", pk.count(lists.x)),
    ("COUNT(b[..i])", pk.count(lists, upto="i")),
    ("SUM(b[].x)", pk.total(lists.x)),
    ("AVG(b[].x)", pk.average(lists.x)),
    ("MIN(b[].x)", pk.minimum(lists.x)),
    ("MAX(b[].x)", pk.maximum(lists.x)),
    ("SUM(b[..i-1].x)", pk.total(lists.x, upto="i-1")),
    ("a.plus + a.attr + a.`unit price` + a._x", a.attr("plus") + a.attr("attr") + a.attr("unit price") + a.attr("_x")),
    ("a.limit", a.limit),
    ("d.x", (~d).x),
    ("d.x", d.optional().x),
]


@pytest.mark.parametrize(("text", "value"), CONDITIONS)
def test_conditions(text: str, value: pk.Value) -> None:
    assert pk.query(a, where=value) == parse(f"PATTERN A a WHERE {text}")


CLAUSES: list[tuple[str, dict[str, Any]]] = [
    ("", {"where": []}),
    ("WHERE a.x, b.x", {"where": [a.x, b.x]}),
    ("WHERE a.x AND b.x, c.x", {"where": [a.x & b.x, c.x]}),
    ("WHERE a.x", {"where": [a.x]}),
    ("WITHIN 5 min", {"within": "5 min"}),
    ("WITHIN 5 min", {"within": timedelta(minutes=5)}),
    ("WITHIN 8 EVENTS", {"within": "8 events"}),
    ("WITHIN 8 EVENTS", {"within": 8}),
    ("PARTITION BY card", {"partition": "card"}),
    ("PARTITION BY card, `unit price`", {"partition": ["card", "unit price"]}),
    ("WINDOW 250 s", {"window": "250 s"}),
    ("WINDOW 250 s", {"window": pk.window("250 s")}),
    ("WINDOW 250 s EVERY 10 s", {"window": pk.window("250 s", every=timedelta(seconds=10))}),
    ("WINDOW 1200 EVENTS EVERY 20 EVENTS", {"window": pk.window(1200, every=20)}),
    ("WINDOW 15 s ON S s", {"window": pk.window("15 s", on=s)}),
    ("WINDOW 15 s ON S s WHERE s.v > 3", {"window": pk.window("15 s", on=s, where=s.v > 3)}),
    ("WINDOW 15 s ON S s WHERE s.v AND s.w", {"window": pk.window("15 s", on=s, where=[s.v, s.w])}),
    ("WINDOW 1200 EVENTS ON S DISTINCT", {"window": pk.window(1200, on=pk.event("S"), distinct=True)}),
    ("LIMIT 1 PER WINDOW", {"limit": 1}),
    ("SELECT EACH", {}),
    *((f"SELECT {policy}", {"select": policy.lower()}) for policy in ast.Policy),
    ("SELECT EACH, LAST b, CUMULATIVE c", {"select": {"b": "LAST", c: ast.Policy.CUMULATIVE}}),
    ("CONSUME NONE", {"consume": "none"}),
    ("CONSUME NONE", {"consume": []}),
    ("CONSUME ALL", {"consume": "ALL"}),
    ("CONSUME a, b, `all`", {"consume": ["a", lists, "all"]}),
    ("RETURN a.x AS y, COUNT(b[]) AS `as`", {"returns": {"y": a.x, "as": pk.count(lists)}}),
    ("RETURN a.x, b.x AS y, 1", {"returns": [a.x, ("y", b.x), 1]}),
]


@pytest.mark.parametrize(("text", "clauses"), CLAUSES)
def test_clauses(text: str, clauses: dict[str, Any]) -> None:
    assert pk.query(a, **clauses) == parse(f"PATTERN A a {text}")


def test_a_whole_query() -> None:
    built = pk.query(
        pk.seq(a, ~d, lists, c),
        where=[a.price < c.price, lists["i"].price > lists["i-1"].price, pk.count(lists) > 5, pk.same("id")],
        within="5 min",
        select="FIRST",
        consume=["a"],
        partition=["card"],
        returns={"x": a.price},
        name="rise",
    )
    text = """
        PATTERN SEQ(A a, NOT D d, B+ b[], C c)
        WHERE a.price < c.price, b[i].price > b[i-1].price, COUNT(b[]) > 5, SAME[id]
        WITHIN 5 min PARTITION BY card SELECT FIRST CONSUME a RETURN a.price AS x
    """
    assert built == parse(text, "rise")
    assert parse(render(built), "rise") == built


# --- what is refused ----------------------------------------------------------------------------------------


class TestMistakes:
    @pytest.mark.parametrize(
        "code",
        [
            "a.x < b.x < c.x",
            "a.x > 3 and b.x > 3",
            "a.x > 3 or b.x > 3",
            "not a.x",
            "3 in [a.x]",
            "1 if a.x == 1 else 2",
            'bool(pk.remote("s", a.k))',
        ],
    )
    def test_python_has_no_truth_of_a_value(self, code: str) -> None:
        with pytest.raises(TypeError, match=r"has no truth in Python.*&.*is_in"):
            eval(code)

    def test_python_has_no_truth_of_a_part(self) -> None:
        with pytest.raises(TypeError, match=r"write all_of\(p, q\)"):
            pk.seq(a and b)

    @pytest.mark.parametrize(
        ("code", "message"),
        [
            ("pk.query(a, where=[a == b])", "False is no condition; compare attributes"),
            ('pk.query(a, where="a.x > 3")', "'a.x > 3' is no condition"),
            ("pk.query(a, where=5)", "5 is no condition"),
            ("a.x > 3 & b.x < 5", "3 is no condition; around & and"),
            ("a.x | 3", "3 is no condition"),
            ("a.x & True", "True is no condition"),
            ("True | a.x", "True is no condition"),
            ("a.x == b", "<B b> cannot stand in an expression; of an event, name an attribute"),
            ("a.x == None", "None cannot stand"),
            ("a.x + [1]", "cannot stand in an expression"),
            ('a.x.is_in("abc")', "'abc' is one text"),
            ("a.x.is_in(b.x)", "<b.x> is no set of values"),
            ('pk.seq("A", b)', "'A' is no part of a pattern"),
            ("pk.query(a.x)", "<a.x> is no part of a pattern"),
            ("pk.event(5)", "not iterable"),
            ('pk.event(["A", 5], "x")', "type names are texts, not 5"),
            ('a.times("2")', "must be a whole number, not '2'"),
            ("a.times(True)", "must be a whole number, not True"),
            ("lists[1.5]", "must be a whole number"),
            ("list(lists)", "not iterable"),
            ("pk.prev(a.x + 1)", "prev takes an attribute"),
            ("pk.total(lists)", "SUM takes an attribute"),
            ("pk.count(5)", "COUNT takes an attribute"),
            ("pk.remote(a.x, a.y)", "source names are texts, not <a.x>"),
            ("pk.query(a, within=1.5)", "1.5 is no span"),
            ("pk.query(a, within=True)", "True is no span"),
            ("pk.query(a, select=5)", "a policy is named by a text"),
            ("pk.query(a, consume=a)", "consume takes a list"),
            ("pk.query(a, returns=a.x)", "returns takes a list or a dict"),
            ("hash(a.x)", "unhashable"),
            ("a.x // 2", "unsupported operand"),
        ],
    )
    def test_of_kind(self, code: str, message: str) -> None:
        with pytest.raises(TypeError) as caught:
            eval(code)
        assert message in str(caught.value)

    @pytest.mark.parametrize(
        ("code", "message"),
        [
            ("pk.seq()", "seq() is empty"),
            ("pk.all_of()", "all_of() is empty"),
            ("pk.one_of()", "one_of() is empty"),
            ("pk.any_of(2)", "any_of() is empty"),
            ("pk.any_of(0, a)", "must be at least 1"),
            ("pk.same()", "same() is empty"),
            ("a.x.is_in([])", "nothing to be in"),
            ('pk.event("")', "'' is no type name"),
            (r'pk.event("A", "a\nb")', r"'a\nb' is no variable name"),
            ('a.attr("")', "is no attribute name"),
            ('pk.event(["A", "B"])', "needs a variable"),
            ('pk.event("*")', "needs a variable"),
            ('pk.event([], "x")', "needs a type"),
            ("~a.plus()", "~ takes a single event, not <A+ a[]>"),
            ("~pk.seq(a, b)", "~ takes a single event"),
            ("~~a", "~ takes a single event"),
            ("a.times(5, 2)", "write times(2, 5)"),
            ("a.times(0)", "at least 1"),
            ("a.times(-1, 2)", "at least 0"),
            ("a.times(1, 2**63)", "at most 2**62"),
            ("lists[0]", "the first element is 1"),
            ('lists["next"]', "there is no element 'next'"),
            ('pk.total(lists["i"].x)', "over the whole list"),
            ('pk.count(lists, upto="last")', "upto is 'i-1' or 'i'"),
            ('pk.call("Prev", a.x)', "write prev(a.price)"),
            ('pk.remote("s")', "has no key"),
            ('pk.duration("5 events")', "is no duration"),
            ('a.x == float("nan")', "no number"),
            ('a.x == float("inf")', "no number"),
            ("a.x == 10**300", "no number"),
            ("a.x == timedelta.max", "too long"),
            ("pk.query(a, within=timedelta(seconds=-1))", "cannot be negative"),
            ("pk.query(a, within=0)", "at least 1"),
            ("pk.query(a, limit=0)", "limit must be at least 1"),
            ('pk.query(a, select="FRIST")', "there is no policy 'FRIST'"),
            ('pk.query(a, consume="a")', "write ['a']"),
            ('pk.window("5 s", every="5 s", on=s)', "not both"),
            ('pk.window("5 s", where=s.v)', "give them with on"),
            ('pk.window("5 s", on=s.plus())', "single event"),
            ("pk.query(a, where=deep(MAX_DEPTH))", "nested deeper"),
        ],
    )
    def test_of_value(self, code: str, message: str) -> None:
        with pytest.raises(pk.BuilderError) as caught:
            eval(code)
        assert message in str(caught.value)
        assert isinstance(caught.value, PenstockError)
        assert isinstance(caught.value, ValueError)

    def test_of_spans(self) -> None:
        with pytest.raises(QueryError, match=r"span:1:3: unexpected 'foo'(.|\n)*fix: write a duration"):
            pk.query(a, within="5 foo")

    def test_private_names_are_no_attributes(self) -> None:
        for each in (a, lists["i"], pk.remote("s", a.k)):
            with pytest.raises(AttributeError, match=r"write .attr\('_x'\)"):
                _ = each._x


def deep(levels: int) -> pk.Value:
    value = a.x
    for _ in range(levels):
        value = -value
    return value


def test_parts_and_values_can_be_used_again_and_copied() -> None:
    part = pk.seq(a, b)
    part.plus()
    assert pk.query(part) == parse("PATTERN SEQ(A a, B b)")
    assert pk.query(copy.deepcopy(part)) == pk.query(copy.copy(part))
    assert pk.query(copy.deepcopy(a), where=copy.deepcopy(pk.remote("s", a.k))) == parse(
        "PATTERN A a WHERE REMOTE[s, a.k]"
    )
    assert {a: 1}[a] == 1


def test_the_deepest_query_that_text_can_say_can_be_built() -> None:
    assert pk.query(a, where=deep(MAX_DEPTH - 2)) == parse(f"PATTERN A a WHERE {'- ' * (MAX_DEPTH - 2)}a.x")
