"""Each rule of `validate`: a query that breaks it, with the place, and the same query mended."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.errors import QueryError
from penstock.pattern import ast
from penstock.pattern.parser import parse
from penstock.pattern.render import render
from penstock.pattern.schema import Schema
from penstock.pattern.structure import MAX_VARIABLES
from penstock.pattern.validate import CHECKS, STRICT_CHECKS, problems, validate
from penstock.reference import find
from penstock.reference.find import column_name
from tests.generators import FUNCTIONS, REMOTES, seeded

GOLDEN = Path(__file__).parent / "golden_validate"
SPLIT = "write one conjunct per branch, with AND between: each applies where its branch is taken"
SCHEMA = Schema.read(GOLDEN / "rules.toml")


def rules(name: str) -> list[tuple[str, str, str]]:
    """Read a file of rules: a code, a bad query and a good one, each group of three lines."""
    lines = [line.strip() for line in (GOLDEN / name).read_text(encoding="utf-8").splitlines()]
    said = [line.replace("\\n", "\n") for line in lines if line and not line.startswith("#")]
    return list(zip(said[0::3], said[1::3], said[2::3], strict=True))


WITHOUT_SCHEMA = rules("rules_without_schema.txt")
WITH_SCHEMA = rules("rules_with_schema.txt")


def check(code: str, bad: str, good: str, schema: Schema | None) -> None:
    """Check a query in which @ marks the place of its only problem, and the same query mended."""
    text = bad.replace("@", "")
    before = bad[: bad.index("@")]
    found = problems(parse(text), schema, strict=True)
    places = [(each.code, each.position.line, each.position.column) for each in found]
    assert places == [(code, before.count("\n") + 1, len(before) - before.rfind("\n"))]
    assert all(each.fix and each.message for each in found)
    assert problems(parse(good), schema, strict=True) == ()


def where(condition: str, pattern: str = "SEQ(A a, B b)") -> str:
    return f"PATTERN {pattern} WHERE {condition} WITHIN 1 s"


@pytest.mark.parametrize(("code", "bad", "good"), WITHOUT_SCHEMA)
def test_what_is_wrong_without_a_schema(code: str, bad: str, good: str) -> None:
    check(code, bad, good, None)


@pytest.mark.parametrize(("code", "bad", "good"), WITH_SCHEMA)
def test_what_is_wrong_with_a_schema(code: str, bad: str, good: str) -> None:
    check(code, bad, good, SCHEMA)


@pytest.mark.parametrize(("code", "bad", "good"), WITH_SCHEMA)
def test_names_and_types_are_not_checked_without_a_schema(code: str, bad: str, good: str) -> None:
    if code not in ("not-boolean", "argument-count"):
        assert problems(parse(bad.replace("@", ""))) == ()


@pytest.mark.parametrize(("code", "bad", "good"), WITHOUT_SCHEMA)
def test_structure_is_checked_with_a_schema_too(code: str, bad: str, good: str) -> None:
    schema = Schema.model_validate({"types": {"*": {"x": "int"}}})
    assert code in [each.code for each in problems(parse(bad.replace("@", "")), schema, strict=True)]


@pytest.mark.parametrize(("code", "bad", "good"), WITHOUT_SCHEMA)
def test_what_can_be_run_to_no_purpose_is_only_refused_strictly(code: str, bad: str, good: str) -> None:
    query = parse(bad.replace("@", ""))
    is_strict = code in ("never-applies", "never-there", "too-short")
    assert (problems(query, strict=False) == ()) == is_strict
    if is_strict:
        validate(query, strict=False)
    with pytest.raises(QueryError):
        validate(query, strict=True)


def test_what_is_refused_strictly_is_to_no_purpose() -> None:
    """A conjunct that never applies can go, a column that is never there is null, too short a span holds no match."""
    told: Counter[str] = Counter()
    for case in seeded(400):
        query = parse(render(case.query))
        for problem in problems(query, strict=True):
            matches = find(query, case.events, functions=FUNCTIONS, remotes=REMOTES)
            told[problem.code] += len(matches)
            if problem.code == "never-applies":
                left = tuple(each for each in ast.conjuncts(query.where) if each.position != problem.position)
                assert len(left) == len(ast.conjuncts(query.where)) - 1
                mended = replace(query, where=ast.And(left) if left else None)
                assert matches == find(mended, case.events, functions=FUNCTIONS, remotes=REMOTES)
            if problem.code == "never-there":
                (column,) = (each for each in query.returns if each.expression.position == problem.position)
                values = [match.values[column_name(column)] for match in matches]
                assert all(value is None or value == [None] * len(value) for value in values)
    assert told["too-short"] == 0 < min(told["never-applies"], told["never-there"])


def test_too_many_variables() -> None:
    parts = [f"A a{n}" for n in range(MAX_VARIABLES)]
    assert problems(parse(f"PATTERN SEQ({', '.join(parts)}) WITHIN 1 s")) == ()
    text = f"PATTERN SEQ({', '.join([*parts, 'B b'])}) WITHIN 1 s"
    (found,) = problems(parse(text))
    assert (found.code, found.position.column) == ("too-many-variables", text.index("B b") + 1)


def test_a_schema_of_common_attributes_allows_any_type() -> None:
    schema = Schema.model_validate({"types": {"*": {"x": "int"}}})
    assert problems(parse(where("a.x > b.x", "SEQ(Foo a, Bar|Baz b)")), schema) == ()
    assert [each.code for each in problems(parse(where("a.y > 1", "Foo a")), schema)] == ["unknown-attribute"]


def test_numbers_of_different_types_in_one_variable_are_numbers() -> None:
    schema = Schema.model_validate({"types": {"A": {"x": "int"}, "B": {"x": "float"}}})
    assert problems(parse(where("a.x > 1 AND SAME[x]", "SEQ(A|B a, B b)")), schema) == ()


def test_one_mistake_is_told_once() -> None:
    text = where("a.z + 1 > 'x' AND a.z AND (b.x < a.z < 5) AND abs(a.z) < 5 s")
    found = problems(parse(text), SCHEMA)
    assert [each.code for each in found] == ["unknown-attribute"] * 4


def test_all_problems_come_at_once_in_the_order_of_the_text() -> None:
    text = "PATTERN SEQ(A a, NOT D d, B a) WHERE a.z > e.x AND 1 > 2 SELECT FIRST, LAST q CONSUME d RETURN d.x"
    found = problems(parse(text), SCHEMA)
    assert [each.code for each in found] == [
        "unknown-type", "duplicate-variable", "unknown-attribute", "unknown-variable", "never-true", "no-within",
        "select-base", "unknown-variable", "negated-variable", "negated-variable",
    ]  # fmt: skip
    with pytest.raises(QueryError) as raised:
        validate(parse(text, "mine"), SCHEMA)
    assert raised.value.problems == found
    assert str(raised.value).count("mine:1:") == len(found)


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        (where("a.nmae = 'x'"), "did you mean a.name?"),
        (where("a.NAME = 'x'"), "did you mean a.name?"),
        (where("price.x > 1", "SEQ(A prices, B b)"), "did you mean prices?"),
        (where("q.x > 1"), "there are a, b"),
        (where("REMOTE[limitz, a.id] > 1"), "did you mean limits?"),
        (where("REMOTE[cards, a.id].limits > 1"), "did you mean limit?"),
        (where("a.took > 5"), "give the number a unit, as in 5 s"),
        (where("a.x = '5'"), "write 5 without quotes"),
        (where("a.name = 5"), "write it as a text: '5'"),
        (where("SUM(a.x) > 5"), "of a list, write SUM(a[].x)"),
        (where("COUNT(a[]) > 1"), "repeat it: A+ a[]"),
        ("PATTERN SEQ(A a, B a, C a2) WITHIN 1 s", "call one of them a3"),
        ("PATTERN SEQ(`limit` a) WITHIN 1 s", "there are A, B, C"),
        (where("a.x > 10,000"), "numbers take no commas: write 10000 or 10k"),
        (where("a.x > 1,000,000 AND b.x > 1"), "numbers take no commas: write 1000000 or 1M"),
        (where("a.x > 1,234.5000"), "numbers take no commas: write 1234.5000"),
        (where("a.x > 10, 000"), "compare it with something"),
        (where("a.x > 1 OR b.x > 2", "OR(A a, B b)"), "write one conjunct per branch: a.x > 1 AND b.x > 2"),
        (where("a.x > 1 OR b.x > 2 OR c.x > 3", "OR(SEQ(A a, A c), B b)"), SPLIT),
        (where("(a.x > 1 OR c.x > 3) OR b.x > 2", "OR(SEQ(A a, A c), B b)"), SPLIT),
        (where("a.x > b.x", "OR(A a, B b)"), SPLIT),
        (where("a.x > b.x", "ANY(1, A a, B b)"), "write conjuncts that name at most 1 of them each, with AND between"),
        ("PATTERN A{3} a[] WITHIN 2 EVENTS", "write at least 3 EVENTS"),
    ],
)
def test_the_fix_is_concrete(text: str, fix: str) -> None:
    assert fix in [each.fix for each in problems(parse(text), SCHEMA, strict=True)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            where("a.x > b.x", "OR(A a, B b)"),
            "a and b are never there together: they are of different branches of an OR",
        ),
        (
            where("a.x > b.x", "(OR(A a, B b))+"),
            "a and b are never there together in a round: they are of different branches of an OR",
        ),
        (
            where("a.x > b.x + c.x", "ANY(2, A a, B b, C c)"),
            "ANY binds only 2 of a, b, c: they are never there together",
        ),
    ],
)
def test_it_is_said_why_a_conjunct_never_applies(text: str, message: str) -> None:
    assert [each.message for each in problems(parse(text), SCHEMA, strict=True)] == [message]


def test_names_that_stand_twice_or_nowhere_are_told_alone() -> None:
    text = "PATTERN OR(SEQ(A a, B b), SEQ(C a, D d)) WHERE a.x > b.x WITHIN 1 s"
    assert [each.code for each in problems(parse(text), strict=True)] == ["duplicate-variable"]
    text = "PATTERN OR(A a, B b) WHERE a.x > c.x WITHIN 1 s"
    assert [each.code for each in problems(parse(text), strict=True)] == ["unknown-variable"]


def test_a_query_without_text_gets_the_places_of_its_rendered_text() -> None:
    sequence = ast.Sequence((ast.Event(("A",), "a"), ast.Event(("B",), "a")))
    query = ast.Query(sequence, within=ast.TimeSpan(5_000_000), name="built")
    (found,) = problems(query)
    assert (found.code, found.position.line, found.position.column) == ("duplicate-variable", 1, 18)
    with pytest.raises(QueryError) as raised:
        validate(query)
    assert str(raised.value).splitlines()[:3] == [
        "built:1:18: the variable a is used twice; first at 1:13",
        "    PATTERN SEQ(A a, B a)",
        "                     ^^^",
    ]


def test_nodes_without_a_place_are_told_at_the_start() -> None:
    query = ast.Query(ast.Repetition(ast.Event(("A",), "a"), 0, None), within=ast.CountSpan(5), source="PATTERN A*")
    assert [(each.code, each.position.start) for each in problems(query)] == [("empty-pattern", 0)]


def test_a_valid_query_passes() -> None:
    validate(parse("PATTERN SEQ(A a, B+ b[]) WHERE a.x < b.x WITHIN 5 min"), SCHEMA)


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.query")), ids=lambda path: path.stem)
def test_golden_texts(path: Path) -> None:
    schema = Schema.read(GOLDEN / "schema.toml")
    with pytest.raises(QueryError) as raised:
        validate(parse(path.read_text(encoding="utf-8"), path.name), schema)
    assert f"{raised.value}\n" == path.with_suffix(".errors").read_text(encoding="utf-8")


def test_there_are_golden_texts() -> None:
    assert {path.stem for path in GOLDEN.glob("*.query")} == {path.stem for path in GOLDEN.glob("*.errors")} != set()


def test_every_check_is_in_the_tuple_once() -> None:
    checks = (*CHECKS, *STRICT_CHECKS)
    assert len(set(checks)) == len(checks)
