"""The queries of the five papers (tests/queries): each parses, renders to itself and fits its schema."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from penstock.pattern.parser import parse
from penstock.pattern.render import render
from penstock.pattern.schema import Schema
from penstock.pattern.validate import validate

QUERIES = Path(__file__).parents[1] / "queries"
STEMS = sorted(path.stem for path in QUERIES.glob("*.cep"))
IN_THE_PAPERS = """
darling-sec1-pattern1 darling-sec2-pattern2 darling-sec4.3-prices
darling-table1-q1a darling-table1-q2a darling-table1-q3a
darling-table1-q1b darling-table1-q2b darling-table1-q3b darling-table1-q4b
darling-table1-q1c darling-table1-q2c darling-table1-q3c
eires-listing1-fraud eires-listing2-q1 eires-listing2-q2 eires-listing3-bushfire eires-listing4-cluster
espice-sec1-or espice-sec2-qe espice-sec4.1-q1 espice-sec4.1-q2 espice-sec4.1-q3 espice-sec4.1-q4
statebased-example1-bikes
thesis-sec1.1-buses thesis-sec2.1-example1 thesis-sec3.2-markov thesis-sec4.2.6-negation thesis-sec5.2-example
thesis-sec6.1-shoplifting thesis-sec6.2-example2 thesis-sec8.2-op3 thesis-sec8.2-op4
thesis-table3.1-q1 thesis-table3.1-q1-one-conjunct thesis-table3.1-q2 thesis-table3.1-q3 thesis-table3.1-q4
thesis-table3.1-q4-sequence
thesis-table4.2-q1 thesis-table4.2-q2 thesis-table4.2-q3 thesis-table4.2-q4 thesis-table4.2-q5 thesis-table4.2-q6
thesis-table6.4-q1 thesis-table6.4-q2 thesis-table6.4-q3 thesis-table6.4-q4 thesis-table6.4-q5 thesis-table6.4-q6
thesis-table6.4-q7
"""

each_query = pytest.mark.parametrize("stem", STEMS)


def text_of(stem: str) -> str:
    return (QUERIES / f"{stem}.cep").read_text(encoding="utf-8")


def schema_path(stem: str) -> Path:
    """Return the schema beside a query: of its stem, or of the longest dash-separated prefix that has one."""
    parts = stem.split("-")
    for length in range(len(parts), 0, -1):
        path = QUERIES / f"{'-'.join(parts[:length])}.schema.toml"
        if path.exists():
            return path
    raise AssertionError(f"{stem} has no schema")


@cache
def schema_of(path: Path) -> Schema:
    return Schema.read(path)


def test_every_query_of_the_papers_is_there() -> None:
    assert sorted(IN_THE_PAPERS.split()) == STEMS


def test_every_schema_is_used() -> None:
    assert {schema_path(stem) for stem in STEMS} == set(QUERIES.glob("*.schema.toml"))


def test_the_readme_lists_every_query_once() -> None:
    readme = (QUERIES / "README.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"^\| `([^`]+)\.cep` \|", readme, re.MULTILINE)) == STEMS


@each_query
def test_a_query_says_where_it_comes_from(stem: str) -> None:
    comment = text_of(stem).split("\n\n")[0].splitlines()
    assert len(comment) > 1
    assert all(line.startswith("-- ") for line in comment)


@each_query
def test_a_query_parses(stem: str) -> None:
    query = parse(text_of(stem), stem)
    assert query.within is not None


@each_query
def test_a_query_renders_to_itself(stem: str) -> None:
    query = parse(text_of(stem), stem)
    assert parse(render(query), stem) == query


@each_query
def test_a_query_fits_its_schema(stem: str) -> None:
    validate(parse(text_of(stem), stem), schema_of(schema_path(stem)))
