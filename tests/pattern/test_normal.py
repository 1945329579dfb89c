"""The normal form: what becomes of SAME, lists and constants."""

from __future__ import annotations

import pytest

from penstock.pattern import ast
from penstock.pattern.folding import fold, is_never_true
from penstock.pattern.normal import Conjunct, as_query, normalize
from penstock.pattern.parser import parse
from penstock.pattern.render import render_expression
from penstock.pattern.validate import problems


def conjuncts_of(pattern: str, where: str) -> list[str]:
    normal = normalize(parse(f"PATTERN {pattern} WHERE {where} WITHIN 1 s"))
    return [render_expression(each.expression) for each in normal.conjuncts]


@pytest.mark.parametrize(
    ("pattern", "where", "expected"),
    [
        pytest.param("SEQ(A a, B b)", "SAME[x]", ["a.x = b.x"], id="a pair"),
        pytest.param("SEQ(A a, B? b, C c)", "[x]", ["a.x = b.x", "a.x = c.x", "b.x = c.x"], id="every pair"),
        pytest.param("SEQ(A a, B b)", "SAME[x, f(y)]", ["a.x = b.x", "f(a.y) = f(b.y)"], id="every key"),
        pytest.param("A a", "SAME[x]", [], id="one event is equal to itself"),
        pytest.param("A+ a[]", "SAME[x]", ["a[i].x = a[i-1].x"], id="a list"),
        pytest.param(
            "SEQ(A a, B* b[])", "SAME[f(x)]", ["f(b[i].x) = f(b[i-1].x)", "f(a.x) = f(b[first].x)"], id="list and event"
        ),
        pytest.param(
            "SEQ(A+ a[], B+ b[])",
            "SAME[x]",
            ["a[i].x = a[i-1].x", "b[i].x = b[i-1].x", "a[first].x = b[first].x"],
            id="lists side by side",
        ),
        pytest.param(
            "(SEQ(A+ a[], B? b))+",
            "SAME[x]",
            ["a[i].x = a[i-1].x", "b[i].x = b[i-1].x", "a[first].x = b[first].x"],
            id="a list in a group",
        ),
    ],
)
def test_same_becomes_pairs(pattern: str, where: str, expected: list[str]) -> None:
    assert conjuncts_of(pattern, where) == expected


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        pytest.param("SEQ(A a, NOT B b, C c)", ["b.x = a.x"], id="the nearest before"),
        pytest.param("SEQ(A a, C c, NOT B b)", ["b.x = c.x"], id="the last before"),
        pytest.param("SEQ(OR(A a, D d), NOT B b, C c, E e)", ["b.x = c.x"], id="else the nearest after"),
        pytest.param("SEQ(A* a[], NOT B b, C+ c[])", ["b.x = c[first].x"], id="a list that may be empty is not sure"),
        pytest.param("OR(SEQ(A a, NOT B b), C c)", ["b.x = a.x"], id="sure in the branch is enough"),
        pytest.param("SEQ(OR(A a, D d), NOT B b, C? c)", ["b.x = a.x", "b.x = d.x", "b.x = c.x"], id="none is sure"),
        pytest.param("AND(A a, SEQ(C? c, D d, NOT B b, E e))", ["b.x = d.x"], id="the enclosing sequence first"),
        pytest.param("SEQ(ANY(2, A a, C c), NOT B b)", ["b.x = c.x"], id="all members are chosen"),
        pytest.param("SEQ(ANY(1, A a, C c), NOT B b)", ["b.x = a.x", "b.x = c.x"], id="one of the members is chosen"),
        pytest.param("AND(A a, SEQ(OR(C c, D d), NOT B b, OR(E e, F f)))", ["b.x = a.x"], id="else elsewhere"),
        pytest.param("SEQ(A a, NOT B b, NOT C c, D d)", ["b.x = a.x", "c.x = a.x"], id="no two negated"),
        pytest.param("(SEQ(A a, NOT B b, C c))+", ["b.x = a[first].x"], id="in a group"),
    ],
)
def test_same_ties_a_negated_event_to_one_that_is_there(pattern: str, expected: list[str]) -> None:
    normal = normalize(parse(f"PATTERN {pattern} WHERE SAME[x] WITHIN 1 s"))
    assert [render_expression(each.expression) for each in normal.conjuncts if each.negated] == expected


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("b.x > 1", ["b[i].x > 1"]),
        ("b.x > b[i-1].x", ["b[i].x > b[i-1].x"]),
        ("prev(b.x) > f(b.y)", ["prev(b[i].x) > f(b[i].y)"]),
        ("b.x IN REMOTE[s, b.y]", ["b[i].x IN REMOTE[s, b[i].y]"]),
        ("b[first].x > b[3].x AND SUM(b[].x) > 1", ["b[first].x > b[3].x", "SUM(b[].x) > 1"]),
        ("a.x > 1", ["a.x > 1"]),
    ],
)
def test_lists_get_their_index(where: str, expected: list[str]) -> None:
    assert conjuncts_of("SEQ(A a, B+ b[])", where) == expected


def test_a_negated_event_has_no_index() -> None:
    pattern = "(SEQ(A a, NOT B b, C c))+"
    assert conjuncts_of(pattern, "b[i].x > a.x") == conjuncts_of(pattern, "b.x > a[i].x") == ["b.x > a[i].x"]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        # arithmetic
        ("a.x > 1 + 2 * 3", "a.x > 7"),
        ("a.x > 2 - 5", "a.x > -3"),
        ("a.x > -(2 - 5)", "a.x > 3"),
        ("a.x > 7 / 2", "a.x > 3.5"),
        ("a.x > 4 / 2", "a.x > 2.0"),
        ("a.x > -7 % 5", "a.x > 3"),
        ("a.x > abs(-7) + sqrt(9) + floor(1.5) + ceil(1.5) + sign(-2)", "a.x > 12.0"),
        ("f(a.x + (1 + 1)) > 2", "f(a.x + 2) > 2"),
        ("a.x + 1 + 2 > 3", "a.x + 1 + 2 > 3"),
        # durations
        ("b.ts - a.ts > 5 min", "b.ts - a.ts > 300000000"),
        ("b.ts - a.ts > 2 * 1 s", "b.ts - a.ts > 2000000"),
        # conditions
        ("1 < 2", "TRUE"),
        ("'a' <> 'b'", "TRUE"),
        ("TRUE = FALSE", "FALSE"),
        ("(1 < 2 AND 3 < 4) = TRUE", "TRUE"),
        ("2 IN (1, 1 + 1)", "TRUE"),
        ("2 NOT IN (1, 2)", "FALSE"),
        ("a.x IN (1 + 1, 3)", "a.x IN (2, 3)"),
        ("NOT NOT a.flag", "a.flag"),
        ("NOT 1 = 1", "FALSE"),
        # missing
        ("1 / 0 > 2", "FALSE"),
        ("1 / 0 <> 2", "FALSE"),
        ("1 / 0 NOT IN (2)", "FALSE"),
        ("sqrt(-1) > 2", "FALSE"),
        ("NOT 5 % 0 = 1", "TRUE"),
        # AND and OR
        ("a.x > 1 OR 1 > 2", "a.x > 1"),
        ("a.x > 1 OR 1 < 2", "TRUE"),
        ("NOT (a.x > 1 AND 1 < 2)", "NOT (a.x > 1)"),
        ("NOT (a.x > 1 AND (a.y > 2 AND TRUE))", "NOT (a.x > 1 AND a.y > 2)"),
        ("a.x > 1 OR (a.x > 1 OR a.y > 2)", "a.x > 1 OR a.y > 2"),
        ("a.x > 1 AND 1 > 2 OR a.y > 2", "a.y > 2"),
        ("a.x > 1 / 0 OR a.y > 2", "a.y > 2"),
    ],
)
def test_constants_are_folded(where: str, expected: str) -> None:
    query = parse(f"PATTERN SEQ(A a, B b) WHERE {where} WITHIN 1 s")
    assert query.where is not None
    assert render_expression(fold(query.where)) == expected


@pytest.mark.parametrize(
    "where",
    [
        # what is named decides where a condition is vacuous
        "NOT (a.x > 1 OR TRUE)",
        "b.x > 1 AND FALSE OR a.x > 2",
        "a.x + 1 / 0 > b.x",
        "a[2].x > 1 AND FALSE OR a.x > 2",
        # a missing flag is false as a condition, and makes a comparison false
        "(TRUE AND a.flag) = b.flag",
        "(NOT NOT a.flag) = b.flag",
        # too large for an engine's numbers, or not for us to say
        "a.x > 9223372036854775807 + 1",
        "a.x > 1e308 * 10",
        "'a' > 1",
        "TRUE < FALSE",
        "3 NOT IN (1, 1 / 0)",
        "max(1, 2) > a.x",
        "'a' + 1 > a.x",
    ],
)
def test_what_must_not_be_folded_stays(where: str) -> None:
    query = parse(f"PATTERN SEQ(A a, B b) WHERE {where} WITHIN 1 s")
    assert query.where is not None
    assert fold(query.where) == query.where


def test_a_condition_on_b_alone_does_not_come_out_of_one_on_a_and_b() -> None:
    # As two conjuncts, b.x > 2 would apply where a is not there.
    assert conjuncts_of("SEQ(A? a, B b)", "(a.x > 1 AND b.x > 2) OR FALSE") == ["NOT NOT (a.x > 1 AND b.x > 2)"]
    assert conjuncts_of("SEQ(A? a, B b)", "(a.x > 1 AND a.y > 2) OR FALSE") == ["a.x > 1", "a.y > 2"]


def test_what_is_true_or_said_twice_goes() -> None:
    assert conjuncts_of("SEQ(A a, B b)", "TRUE AND a.x > 1 AND (b.x > 1 OR TRUE), a.x > 1 + 0") == ["a.x > 1"]
    assert conjuncts_of("SEQ(A a, B b)", "TRUE") == []


def test_what_is_false_stays() -> None:
    normal = normalize(parse("PATTERN SEQ(A a, B b) WHERE 1 > 2 WITHIN 1 s"))
    assert normal.conjuncts == (Conjunct(ast.Boolean(False), ()),)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("d.x > a.x", [(("d", "a"), None, ())]),
        ("b.x > a.x", [(("b", "a"), None, (1,))]),
        ("c.x > b.x", [(("c", "b"), None, (1, 2))]),
        ("b[i-1].x > c[last].x", [(("b", "c"), None, (1,))]),
        ("MAX(b[..i-1].x) > c[last].x", [(("b", "c"), None, (1,))]),
        ("MAX(b[].x) > c[last].x", [(("b", "c"), None, ())]),
        ("n.x > a.x", [(("n", "a"), "n", (1,))]),
        ("a.x < n.x AND m.x > 1", [(("a", "n"), "n", (1,)), (("m",), "m", ())]),
    ],
)
def test_a_conjunct_tells_what_it_is_about(where: str, expected: list[object]) -> None:
    pattern = "SEQ(A a, (SEQ(B b, C+ c[], NOT N n, B e))+, NOT M m, D d)"
    normal = normalize(parse(f"PATTERN {pattern} WHERE {where} WITHIN 1 s"))
    assert [(each.variables, each.negated, each.groups) for each in normal.conjuncts] == expected


def test_the_condition_of_an_opening_event_is_normalized_too() -> None:
    text = "PATTERN SEQ(A+ s[], B b) WHERE s.x > 1 WITHIN 1 s WINDOW 1 s ON S s WHERE s.x > 1 + 1 AND TRUE"
    normal = normalize(parse(text))
    assert [render_expression(each.expression) for each in normal.opening] == ["s.x > 2"]
    window = as_query(normal).window
    assert window is not None
    assert window.on is not None
    assert window.on.where == normal.opening[0].expression


def test_as_query_keeps_everything_but_the_conditions() -> None:
    text = """
        PATTERN SEQ(A a, B+ b[]) WHERE b.x > 1 + 1, TRUE WITHIN 1 s PARTITION BY id WINDOW 5 s EVERY 1 s DISTINCT
        LIMIT 1 PER WINDOW SELECT EACH, LAST a CONSUME a RETURN b.x, 1 + 1 AS two
    """
    query = as_query(normalize(parse(text, "named")))
    assert query == parse(text.replace("b.x > 1 + 1, TRUE", "b[i].x > 2"), "named")
    assert query.source is None
    assert problems(query) == ()


def test_as_query_of_no_condition_has_none() -> None:
    assert as_query(normalize(parse("PATTERN A a WHERE TRUE WITHIN 1 s"))).where is None


@pytest.mark.parametrize(
    ("where", "is_never"),
    [("1 > 2", True), ("a.x / 0 > 1", True), ("-(a.x % (1 - 1)) IN (1)", True), ("NOT (b.x > 1 OR TRUE)", True),
     ("a.x > 1 AND 1 / (1 / 0) > 2", True), ("a.x / 1 > 1", False), ("a.x > 1", False), ("1 < 2", False)],
)  # fmt: skip
def test_a_condition_that_is_false_wherever_it_applies_is_never_true(where: str, is_never: bool) -> None:
    condition = parse(f"PATTERN SEQ(A a, B? b) WHERE {where} WITHIN 1 s").where
    assert condition is not None
    assert is_never_true(condition) is is_never


def test_a_number_from_python_that_no_float_holds_stays() -> None:
    huge = ast.Arithmetic("/", ast.Number(10**400), ast.Number(1))
    condition = ast.Comparison(">", ast.Attribute("a", "x"), huge)
    assert fold(condition) == condition
