"""Random queries are valid, cover the language, and are quick to draw and to answer."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from random import Random
from time import process_time

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings

from penstock.pattern import ast
from penstock.pattern.parser import parse
from penstock.pattern.render import render
from penstock.pattern.schema import Schema
from penstock.pattern.validate import validate
from penstock.reference import Match
from penstock.reference import find as find_matches
from tests.generators import FUNCTIONS, REMOTES, SCHEMA, Case, cases, features, seeded
from tests.generators.streams import MAX_EVENTS

DRAWS = 2000
LEAST = 20


def _matches(case: Case) -> frozenset[Match]:
    return find_matches(case.query, case.events, functions=FUNCTIONS, remotes=REMOTES)


@pytest.fixture(scope="module")
def drawn() -> list[tuple[Case, bool, float]]:
    """Cases with whether they have a match and how many seconds it took to find out."""
    answers = []
    for case in seeded(DRAWS):
        start = process_time()
        has_match = bool(_matches(case))
        answers.append((case, has_match, process_time() - start))
    return answers


def test_two_of_five_cases_have_a_match(drawn: list[tuple[Case, bool, float]]) -> None:
    assert sum(has_match for _, has_match, _ in drawn) >= 0.4 * DRAWS


def test_nearly_all_are_answered_in_50_ms(drawn: list[tuple[Case, bool, float]]) -> None:
    assert sum(seconds < 0.05 for _, _, seconds in drawn) >= 0.98 * DRAWS


def test_a_case_is_drawn_in_2_ms() -> None:
    start = process_time()
    assert len(list(seeded(500))) == 500
    assert process_time() - start < 500 * 0.002


def test_every_construct_occurs_with_and_without_matches(drawn: list[tuple[Case, bool, float]]) -> None:
    """Every construct, policy and form of window, with and without a match; where negations stand, in sum."""
    counts = {has: Counter[str]() for has in (True, False)}
    for case, has_match, _ in drawn:
        counts[has_match].update(features.of_query(case.query))
    expected = features.CONSTRUCTS | features.CLAUSES
    assert {each: (counts[True][each], counts[False][each]) for each in expected
            if min(counts[True][each], counts[False][each]) < LEAST} == {}  # fmt: skip
    both = counts[True] + counts[False]
    assert {each: both[each] for each in features.NEGATIONS if both[each] < LEAST} == {}
    assert set(both) == expected | features.NEGATIONS


def test_every_construct_occurs_in_every_other(drawn: list[tuple[Case, bool, float]]) -> None:
    counts = Counter(nesting for case, _, _ in drawn for nesting in features.nestings(case.query))
    assert set(counts) == features.NESTINGS
    assert {each: count for each, count in counts.items() if count < LEAST} == {}


def test_every_word_of_conditions_occurs(drawn: list[tuple[Case, bool, float]]) -> None:
    counts = Counter(word for case, _, _ in drawn for word in features.words(case.query))
    assert set(counts) == features.WORDS
    assert {each: count for each, count in counts.items() if count < LEAST} == {}


def test_streams_have_all_lengths_ties_gaps_and_missing_values(drawn: list[tuple[Case, bool, float]]) -> None:
    streams = [case.events for case, _, _ in drawn]
    assert {len(events) for events in streams} == set(range(MAX_EVENTS + 1))
    assert {event.type for events in streams for event in events} == {"A", "B", "C", "D"}
    gaps = Counter(later.ts - event.ts for events in streams for event, later in pairwise(events))
    assert min(gaps[0], gaps[1], gaps[7_000_000]) > DRAWS / 10
    for name in ("n", "x", "k", "flag"):
        assert sum(event.value(name) is None for events in streams for event in events) > DRAWS / 10
    assert any([e.seq for e in events] != sorted(e.seq for e in events) for events in streams)


@settings(max_examples=150, deadline=None)
@given(cases())
def test_a_drawn_query_is_valid_and_can_be_written(case: Case) -> None:
    validate(case.query, Schema.model_validate(SCHEMA), strict=False)
    assert parse(render(case.query)) == case.query


def test_a_seed_gives_the_same_cases_again() -> None:
    assert list(map(repr, seeded(20, seed=7))) == list(map(repr, seeded(27)))[7:]


def test_cases_shrink() -> None:
    """Of a case of which only the match matters, one variable and one event are left."""
    quick = settings(max_examples=100, phases=(Phase.generate, Phase.shrink), suppress_health_check=list(HealthCheck))
    case = find(cases(), lambda each: bool(_matches(each)), settings=quick, random=Random(0))
    assert case.query.pattern == ast.Event(("A",), "a")
    assert (case.query.where, case.query.window, len(case.events)) == (None, None, 1)
