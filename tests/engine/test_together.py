"""Queries that begin alike run as one, and find what each finds alone: in pieces, restored, parted, in windows."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

import penstock as pk
from penstock.engine.hooks import Hooks
from penstock.engine.matcher import TooManyRunsError
from penstock.engine.matches import Matches
from penstock.engine.together import Together
from penstock.pattern import ast
from penstock.pattern.ast import Policy
from penstock.plan.callees import names_called
from penstock.plan.prefixes import may_be_empty, renamed, why_alone
from penstock.reference import Event
from tests.engine.comparing import again, as_lists, engine_of, in_order, pieces, rows
from tests.generators.cases import case
from tests.generators.choices import Choices, Drawn, Seeded
from tests.generators.profile import Profile

PROFILE = Profile(
    top="sequence", negation=0, policies=(Policy.EACH,), per_variable=0, consume=0, limit=False, distinct=False,
    returns=False, window=30, partition=15,
)  # fmt: skip


def eligible(query: ast.Query) -> ast.Query:
    """Return a query that shares a beginning with others: it calls nothing, and has a last event."""
    assert isinstance(query.pattern, ast.Sequence)
    called = [each for each in ast.conjuncts(query.where) if not any(names_called(replace(query, where=each)))]
    parts = query.pattern.parts
    parts = (*parts, ast.Event(("A", "B"), "at_last")) if may_be_empty(parts[-1]) else parts
    return replace(query, pattern=ast.Sequence(parts), where=condition(called), source=None)


def condition(conjuncts: list[ast.Expression]) -> ast.Expression | None:
    return ast.And(tuple(conjuncts)) if len(conjuncts) > 1 else conjuncts[0] if conjuncts else None


def family(choices: Choices, base: ast.Query) -> list[ast.Query]:
    """Return queries that begin as one does: with some of its steps, and other ones of other queries behind them."""
    found, steps = [base], parts_of(base)
    for number in range(1 + choices.below(3)):
        begun = steps[: 1 + choices.below(len(steps))]
        other = eligible(case(choices, PROFILE).query)
        other_names = {event.variable: f"o{number}_{event.variable}" for event in ast.events(other.pattern)}
        names = {event.variable: f"{event.variable}{number}" for event in ast.events(base.pattern)}
        bound = {event.variable for part in begun for event in ast.events(part)}
        conjuncts = [renamed(c, names) for c in ast.conjuncts(base.where) if set(ast.variables_of(c)) <= bound]
        conjuncts += [renamed(c, other_names) for c in ast.conjuncts(other.where) if ast.variables_of(c)]
        begun = tuple(renamed(part, names) for part in begun)
        ends = tuple(renamed(part, other_names) for part in parts_of(other))
        if isinstance(begun[0], ast.Event) and isinstance(ends[-1], ast.Event) and choices.chance(50):
            first, last = (ast.Attribute(each.variable, "n") for each in (begun[0], ends[-1]))
            conjuncts.append(ast.Comparison("<=", first, last))
        found.append(replace(base, pattern=ast.Sequence(begun + ends), where=condition(conjuncts)))
    return [replace(each, name=f"q{k}") for k, each in enumerate(found)]


def parts_of(query: ast.Query) -> tuple[ast.Pattern, ...]:
    assert isinstance(query.pattern, ast.Sequence)
    return query.pattern.parts


def alike(choices: Choices) -> tuple[list[ast.Query], list[Event]]:
    """Return queries that begin alike, and a stream."""
    base = case(choices, PROFILE)
    return family(choices, eligible(base.query)), in_order(base.events)


def compare(queries: list[ast.Query], events: list[Event], random: Random) -> int:
    """Compare queries that begin alike with each alone; return how many ran together."""
    engine, matches, most = engine_of(queries, plan=random.choice(["automaton", "auto"])), Matches(), 0
    parts_at, had = random.randrange(8), 0
    for number, piece in enumerate(pieces(events, sorted(random.sample(range(14), 4)))):
        matches += engine.process(as_lists(piece))
        most, had = max(most, sum(map(len, engine.together))), had + len(piece)
        if random.random() < 0.3:
            engine = again(engine)
        if number == parts_at:
            runs = Counter(rows(engine.runs()))
            assert not engine.together
            assert runs == Counter(row for query in queries for row in rows(open_runs(query, events[:had])))
    told = Counter(rows(matches + engine.flush()))
    alone = Counter(row for query in queries for row in rows(engine_of(query).process(as_lists(events))))
    assert told == alone, f"{queries}\n{events}"
    return most


def open_runs(query: ast.Query, events: list[Event]) -> Matches:
    """Return the runs that a query has alone after some events."""
    engine = engine_of(query, plan="automaton")
    engine.process(as_lists(events))
    return engine.runs()


@st.composite
def drawn(draw: DrawFn) -> tuple[list[ast.Query], list[Event]]:
    return alike(Drawn(draw))


@given(drawn(), st.integers(0, 1000))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_queries_that_begin_alike_find_what_each_finds_alone(
    chosen: tuple[list[ast.Query], list[Event]], seed: int
) -> None:
    compare(*chosen, Random(seed))


@pytest.mark.parametrize("first", range(0, 300, 100))
def test_many_that_begin_alike_find_what_each_finds_alone(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the time, events are dropped as soon as nothing needs them."""
    together = 0
    for seed in range(first, first + 100):
        monkeypatch.setattr("penstock.engine.detector._RECLAIM_FROM", 1 if seed % 2 else 4096)
        monkeypatch.setattr("penstock.engine.detector._RECLAIM_BATCHES", 0)
        together += compare(*alike(Seeded(seed)), Random(seed)) > 1
    assert together > 25


# --- by hand ------------------------------------------------------------------------------------------------------

TEXTS = (
    "PATTERN SEQ(A a, B b, C c) WHERE a.v < b.v AND b.v < c.v WITHIN 60 us",
    "PATTERN SEQ(A x, B y, D z) WHERE x.v < y.v AND z.v > 3 WITHIN 60 us",
    "PATTERN SEQ(A a, B b) WITHIN 60 us",
    "PATTERN SEQ(A a, B b, C c) WHERE a.v < b.v WITHIN 60 us SELECT FIRST",
    "PATTERN SEQ(A a, B b, C c) WHERE a.v < b.v WITHIN 61 us",
)


def queries(*texts: str) -> list[ast.Query]:
    return [pk.parse(text, f"q{number}") for number, text in enumerate(texts)]


def events(size: int, types: str = "ABCD", seed: int = 0) -> dict[str, Any]:
    numbers = np.random.default_rng(seed)
    return {"type": numbers.choice(list(types), size), "ts": np.arange(size), "v": numbers.integers(0, 10, size)}


def told(*engines: pk.Engine, size: int = 400) -> list[str]:
    return sorted(f"{match}" for engine in engines for match in engine.process(events(size)))


def test_only_what_is_the_same_for_all_is_shared() -> None:
    engine = pk.Engine(queries(*TEXTS), plan="automaton")
    assert told(engine) == told(*(pk.Engine(query) for query in queries(*TEXTS)))
    assert engine.together == [(0, 1, 2)]  # not FIRST, and not another WITHIN


def test_what_is_done_together_counts_once() -> None:
    two = queries(*TEXTS[:2])
    engine, alone = pk.Engine(two, plan="automaton"), [pk.Engine(query, plan="automaton") for query in two]
    assert told(engine) == told(*alone)
    done = [each.work for each in alone]
    assert engine.work["events"] == sum(work["events"] for work in done)
    assert engine.work["matches"] == sum(work["matches"] for work in done)
    assert engine.work["runs_created"] == done[0]["runs_created"] == done[1]["runs_created"]  # all are of the beginning
    before = engine.work
    engine.runs()
    after = engine.work
    assert not engine.together
    assert {name: after[name] for name in ("events", "checks", "runs_created", "matches")} == {
        name: before[name] for name in ("events", "checks", "runs_created", "matches")
    }


@pytest.mark.parametrize("about_runs", ["runs", "open_runs", "drop_runs", "hooks"])
def test_each_has_its_own_runs_when_something_is_about_them(about_runs: str) -> None:
    two = queries(*TEXTS[:2])
    engine, alone = pk.Engine(two, plan="automaton"), [pk.Engine(query, plan="automaton") for query in two]
    assert told(engine, size=40) == told(*alone, size=40)
    assert engine.together
    if about_runs == "runs":
        assert sorted(map(str, engine.runs())) == sorted(str(run) for each in alone for run in each.runs())
    elif about_runs == "open_runs":
        assert [engine.open_runs(k).tolist() for k in (0, 1)] == [each.open_runs().tolist() for each in alone]
    elif about_runs == "drop_runs":
        dropped = engine.drop_runs(5, np.zeros((4, 1)), query=1)
        assert dropped.tolist() == alone[1].drop_runs(5, np.zeros((4, 1))).tolist()
    later = {**events(200, seed=1), "ts": np.arange(40, 240)}
    hooks = Hooks(events=np.arange(200) % 3 == 0) if about_runs == "hooks" else None
    found = sorted(map(str, engine.process(later, hooks)))
    assert found == sorted(str(match) for each in alone for match in each.process(later, hooks))
    assert not engine.together


def test_hooks_from_the_first_batch_on_leave_each_its_own_runs() -> None:
    engine = pk.Engine(queries(*TEXTS[:2]))
    engine.process(events(10), Hooks())
    engine.process({**events(10), "ts": np.arange(10, 20)})
    assert not engine.together


def test_a_snapshot_keeps_queries_together() -> None:
    engine = pk.Engine(queries(*TEXTS), plan="automaton")
    whole = told(engine, size=400)
    engine, found = pk.Engine(queries(*TEXTS), plan="automaton"), Matches()
    for start in range(0, 400, 50):
        engine = pk.Engine.restore(engine.snapshot())
        found += engine.process({name: column[start : start + 50] for name, column in events(400).items()})
        assert engine.together == [(0, 1, 2)]
    assert sorted(map(str, found)) == whole


def test_queries_that_a_tree_is_cheaper_for_go_on_alone() -> None:
    texts = [f"PATTERN SEQ(A a, B b, {last} c) WHERE a.v < b.v AND b.v + 5 < c.v WITHIN 500 us" for last in "DE"]
    engine = pk.Engine(queries(*texts))
    batch = events(20_000, "A" * 199 + "B" * 199 + "DE")
    first = {name: column[:500] for name, column in batch.items()}
    found = len(engine.process(first))
    assert engine.together == [(0, 1)]
    found += len(engine.process({name: column[500:] for name, column in batch.items()}))
    assert engine.together == []
    assert found == sum(len(pk.Engine(query).process(batch)) for query in queries(*texts))


def test_queries_that_run_together_may_have_their_runs_together() -> None:
    batch = {"type": ["A"] * 30, "ts": range(30), "v": [0] * 30}
    pk.Engine(queries(*TEXTS[:2]), max_runs=15).process(batch)
    with pytest.raises(TooManyRunsError):
        pk.Engine(queries(*TEXTS[:2]), max_runs=14).process(batch)


def test_nothing_is_merged_where_nothing_begins_alike() -> None:
    engine = pk.Engine(queries("PATTERN SEQ(A a, B b) WITHIN 1 s", "PATTERN SEQ(B b, A a) WITHIN 1 s"))
    engine.process(events(100))
    assert not any(isinstance(each, Together) for each in engine._running)


@pytest.mark.parametrize(
    "text",
    [
        "SEQ(A a, NOT B b, C c) WITHIN 1 s",
        "SEQ(A a, B b, C? c) WITHIN 1 s",
        "SEQ(A a, B b) WITHIN 1 s CONSUME a",
        "SEQ(A a, B b) WITHIN 1 s SELECT LAST",
        "SEQ(A a, B b) WITHIN 1 s RETURN a.v AS v",
        "SEQ(A a, B b) WITHIN 3 EVENTS PARTITION BY k",
        "SEQ(A a, B b) WHERE REMOTE[r, a.v] > 3 WITHIN 1 s",
        "AND(A a, B b) WITHIN 1 s",
    ],
)
def test_what_shares_no_beginning_says_why(text: str) -> None:
    assert why_alone(pk.parse(f"PATTERN {text}"))
