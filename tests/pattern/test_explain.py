"""Queries in words: where each condition is checked, what the variables are, what the clauses say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from penstock.pattern.explain import explain, explain_json
from penstock.pattern.parser import parse
from penstock.pattern.render import render
from penstock.pattern.schema import Schema

QUERIES = sorted((Path(__file__).parents[1] / "queries").glob("*.cep"))


def checked(pattern: str, condition: str) -> tuple[list[str], str]:
    facts = explain_json(parse(f"PATTERN {pattern} WHERE {condition} WITHIN 1 min"))
    (conjunct,) = facts["conjuncts"]
    return conjunct["checked_at"], conjunct["checked"]


@pytest.mark.parametrize(
    ("pattern", "condition", "at", "words"),
    [
        ("SEQ(A a, B b)", "a.x > 1", ["a"], "at a"),
        ("SEQ(A a, B b)", "b.x > a.x", ["b"], "at b"),
        ("SEQ(A a, B b)", "1 < 2", [], "at once: it names no event"),
        ("SEQ(A a, B b)", "SAME[x]", ["a", "b"], "at every variable: equal for all events of a match"),
        ("AND(A a, B b)", "a.x < b.x", ["a", "b"], "when a and b are bound"),
        ("SEQ(X x, AND(A a, B b))", "x.x < a.x", ["a"], "at a"),
        ("SEQ(AND(A a, B b), C c)", "a.x + b.x < c.x", ["c"], "at c"),
        ("OR(A a, B b)", "a.x = b.x", [], "never: it names variables of different branches of OR"),
        ("SEQ(A a, NOT B b, C c)", "a.x = b.x", ["b"], "says which b forbid the match"),
        ("SEQ(A a, B+ b[])", "a.x < b[i].x", ["b"], "at b, for each element"),
        ("SEQ(A a, B+ b[])", "a.x < b[i-1].x", ["b"], "at b, for each element"),
        ("SEQ(A a, B+ b[])", "a.x < b[first].x", ["b"], "at b"),
        ("SEQ(A a, B+ b[])", "SUM(b[..i].x) < a.x", ["b"], "at b, for each element"),
        ("SEQ(A a, B+ b[])", "COUNT(b[]) > 5", ["b"], "at b, when no more elements can come"),
        ("SEQ(A a, B+ b[])", "b[last].x > a.x", ["b"], "at b, when no more elements can come"),
        ("SEQ(A a, B+ b[], C c)", "COUNT(b[]) > c.x", ["c"], "at c"),
        ("AND(A a, B+ b[])", "COUNT(b[]) > a.x", ["a", "b"], "when a and b are bound and no more elements can come"),
        ("(SEQ(A a, B b))+", "a[i].x < b[i].x", ["b"], "at b, for each element"),
        ("(SEQ(A a, B b))+", "b[i-1].x < a[i].x", ["a"], "at a, for each element"),
        ("(SEQ(A a, B b))+", "a[last].x < b[i].x", ["b"], "at b, when no more elements can come"),
    ],
)
def test_where_a_condition_is_checked(pattern: str, condition: str, at: list[str], words: str) -> None:
    assert checked(pattern, condition) == (at, words)


def variable(pattern: str, name: str) -> dict[str, Any]:
    facts = explain_json(parse(f"PATTERN {pattern} WITHIN 1 min"))
    return next(each for each in facts["variables"] if each["name"] == name)


@pytest.mark.parametrize(
    ("pattern", "types", "is_list", "negated", "optional"),
    [
        ("SEQ(A a, B b)", ["A"], False, False, False),
        ("SEQ(A|B a, C c)", ["A", "B"], False, False, False),
        ("SEQ(* a, C c)", [], False, False, False),
        ("SEQ(A+ a[], C c)", ["A"], True, False, False),
        ("SEQ((SEQ(A a, B b))+, C c)", ["A"], True, False, False),
        ("SEQ(X x, NOT A a, C c)", ["A"], False, True, False),
        ("SEQ(A? a, C c)", ["A"], False, False, True),
        ("OR(A a, C c)", ["A"], False, False, True),
        ("ANY(1, A a, C c)", ["A"], False, False, True),
        ("ANY(2, A a, C c)", ["A"], False, False, False),
    ],
)
def test_what_a_variable_is(pattern: str, types: list[str], is_list: bool, negated: bool, optional: bool) -> None:
    found = variable(pattern, "a")
    assert (found["types"], found["list"], found["negated"], found["optional"]) == (types, is_list, negated, optional)


def test_the_attributes_of_a_variable_are_those_that_the_query_asks_for() -> None:
    text = "PATTERN SEQ(A a, B b) WHERE SAME[id], a.x < 1 WITHIN 1 s PARTITION BY shop RETURN b.y, a.x"
    found = {each["name"]: list(each["attributes"]) for each in explain_json(parse(text))["variables"]}
    assert found == {"a": ["shop", "id", "x"], "b": ["shop", "id", "y"]}


def test_a_schema_adds_the_types_of_attributes() -> None:
    schema = Schema.model_validate({"types": {"A": {"x": "float"}, "*": {"id": "string"}}})
    query = parse("PATTERN SEQ(A a, * b) WHERE SAME[id], a.x < 1 WITHIN 1 s")
    assert "one event of type A; id (string), x (float)" in explain(query, schema)
    assert "one event of any type; id (string)" in explain(query, schema)


def test_clauses_in_words() -> None:
    text = (
        "PATTERN SEQ(A a, B b, C c) WITHIN 8 EVENTS PARTITION BY shop WINDOW 250 s ON S s WHERE s.v > 3 DISTINCT "
        "LIMIT 2 PER WINDOW SELECT EACH, LAST a, CUMULATIVE b CONSUME a, b RETURN a.x AS first, b.x"
    )
    clauses = explain(parse(text)).partition("Clauses\n")[2]
    assert [line.strip() for line in clauses.splitlines()] == [
        "WITHIN        all events of a match in 8 consecutive events",
        "PARTITION BY  each shop is matched as if it were the only one",
        "WINDOW        250 s, from each S s with s.v > 3; a match in several windows counts once, in the earliest",
        "LIMIT         of each window the first 2 to be known",
        "SELECT        EACH: every assignment that satisfies the query, once",
        "of those that agree on their last event and all other variables: the last a, all b",
        "CONSUME       a, b: an event bound there is in at most one match",
        "RETURN        first, b.x",
    ]


@pytest.mark.parametrize(
    ("window", "words"),
    [
        ("WINDOW 250 s EVERY 10 s", "250 s, one every 10 s"),
        ("WINDOW 8 EVENTS EVERY 2 EVENTS", "8 events, one every 2 events"),
        ("WINDOW 8 EVENTS", "8 events, one after the other"),
        ("WINDOW 8 EVENTS ON S", "8 events, from each S"),
    ],
)
def test_windows_in_words(window: str, words: str) -> None:
    assert f"  WINDOW   {words}\n" in explain(parse(f"PATTERN SEQ(A a, B b) WITHIN 5 EVENTS {window}"))


@pytest.mark.parametrize("policy", ["EACH", "FIRST", "LAST", "CUMULATIVE", "STRICT"])
def test_every_policy_has_words(policy: str) -> None:
    assert f"  SELECT   {policy}: " in explain(parse(f"PATTERN SEQ(A a, B b) WITHIN 1 s SELECT {policy}"))


@pytest.mark.parametrize("path", QUERIES, ids=lambda path: path.stem)
def test_every_query_of_the_papers_is_explained(path: Path) -> None:
    query = parse(path.read_text(encoding="utf-8"), path.stem)
    facts = json.loads(json.dumps(explain_json(query)))
    assert facts["name"] == path.stem
    assert parse(facts["query"], path.stem) == query
    text = explain(query)
    assert text.startswith(render(query))
    assert all(each["text"] in text for each in facts["conjuncts"])
