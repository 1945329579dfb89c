"""Values that come late: the same matches as if they had come at once; only later."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock as pk
from penstock.engine.engine import Engine
from penstock.engine.matches import Matches
from penstock.engine.queries import EngineError
from penstock.pattern import ast
from penstock.pattern.parser import parse
from penstock.plan.postponing import looks_up
from tests.engine.comparing import as_lists, difference, pieces
from tests.generators import EVERYTHING, FUNCTIONS, REMOTES, Case
from tests.generators.lookups import POSTPONING, lookup_cases, seeded_lookups

JOINABLE = replace(POSTPONING, repetition=0, negation=0, top="sequence", count_within=False)
ALL_POLICIES = replace(EVERYTHING, leaves=4)

pytestmark = pytest.mark.filterwarnings(
    "ignore::RuntimeWarning", "ignore::penstock.engine.functions.SlowFunctionWarning"
)


class Late:
    """Sources that answer now and then that a value is not there yet, and bring it after some batches, or at the end.

    They remember nothing: the same key may be late again. That is the hardest that a cache can be.
    """

    def __init__(self, random: Random, share: float) -> None:
        self.random, self.share, self.batch = random, share, 0
        self.due: dict[tuple[str, Any], float] = {}  # by source and key: the batch after which it comes

    def sources(self) -> dict[str, Any]:
        return {name: _Source(self, name) for name in REMOTES}

    def ask(self, name: str, key: Any) -> Any:
        assert (name, key) not in self.due, "it is awaited already"
        if self.random.random() >= self.share:
            return REMOTES[name].get(key)
        self.due[name, key] = self.batch + self.random.choice([0, 0, 1, 2, float("inf")])
        return pk.PENDING

    def values(self, is_end: bool) -> Iterator[tuple[str, dict[Any, Any]]]:
        """Yield values that have come, by source, in any order."""
        come = [place for place, batch in self.due.items() if is_end or batch <= self.batch]
        self.random.shuffle(come)
        for name in REMOTES:
            values = {key: REMOTES[name].get(key) for source, key in come if source == name}
            for key in values:
                del self.due[name, key]
            if values:
                yield name, values
        self.batch += 1


class _Source:
    def __init__(self, late: Late, name: str) -> None:
        self.late, self.name = late, name

    def get(self, key: Any) -> Any:
        return self.late.ask(self.name, key)


def found_late(case: Case, random: Random, share: float, restores: float = 0.3, **options: Any) -> Matches:
    """Return what the engine finds in a case that is fed in random pieces, with values that come late."""
    late, matches = Late(random, share), Matches()
    engine = Engine(case.query, functions=FUNCTIONS, remotes=late.sources(), postpone=True, **options)
    cuts = [
        random.randint(0, len(case.events))
        for _ in range(random.choice([0, 3, 2 * len(case.events), 2 * len(case.events)]))
    ]
    for piece in pieces(case.events, cuts):
        matches += engine.process(as_lists(piece))
        if random.random() < restores:
            engine = Engine.restore(engine.snapshot(), functions=FUNCTIONS, remotes=late.sources())
        assert {(each.source, each.key) for each in engine.pending()} == set(late.due)
        for detector in engine._detectors if random.random() < restores else ():
            detector.drop_unneeded()
        for source, values in late.values(is_end=False):
            matches += engine.resolve(source, values)
    while True:
        try:
            return matches + engine.flush()
        except pk.StillPendingError:
            late.share /= 2
            for source, values in late.values(is_end=True):
                matches += engine.resolve(source, values)


def can_postpone(case: Case) -> bool:
    return Engine(case.query, functions=FUNCTIONS, remotes=REMOTES).must_block == [None]


# --- the law --------------------------------------------------------------------------------------------------


@given(case=lookup_cases(), seed=st.integers(0, 2**32), share=st.sampled_from([0.3, 0.7, 1.0]))
@settings(max_examples=150, deadline=None)
def test_late_values_give_the_matches_of_values_that_come_at_once(case: Case, seed: int, share: float) -> None:
    if can_postpone(case):
        told = difference(case, found_late(case, Random(seed), share))
        assert not told, told


@given(case=lookup_cases(JOINABLE), seed=st.integers(0, 2**32), plan=st.sampled_from(["tree", "automaton"]))
@settings(max_examples=60, deadline=None)
def test_trees_postpone_too(case: Case, seed: int, plan: str) -> None:
    if can_postpone(case):
        told = difference(case, found_late(case, Random(seed), 0.6, plan=plan))
        assert not told, told


@given(case=lookup_cases(ALL_POLICIES), seed=st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_what_only_return_looks_up_may_be_late_under_any_policy(case: Case, seed: int) -> None:
    own = tuple(each for each in ast.conjuncts(case.query.where) if not looks_up(each))
    case = Case(replace(case.query, where=ast.And(own) if len(own) > 1 else own[0] if own else None), case.events)
    if can_postpone(case):
        told = difference(case, found_late(case, Random(seed), 0.6))
        assert not told, told


def test_the_cases_are_worth_something() -> None:
    random, kinds, matches = Random(0), Counter[str](), 0
    for seed in range(60):
        case = seeded_lookups(seed)
        if can_postpone(case):
            engine = Engine(case.query, functions=FUNCTIONS, remotes=REMOTES, postpone=True)
            kinds[type(engine._detectors[0].matcher).__name__] += 1
            found = found_late(case, random, 1.0, restores=0.0)
            matches += len(found)
    assert min(kinds["PlainMatcher"], kinds["GeneralMatcher"]) > 10, kinds
    assert matches > 60


# --- what is known when ---------------------------------------------------------------------------------------

QUERY = "PATTERN SEQ(A a, B b, C c) WHERE REMOTE[limits, a.k] < b.v AND a.v < c.v WITHIN 1 min"


class Slow(dict[Any, Any]):
    """A source that has nothing but what it is given; it counts what it is asked."""

    def __init__(self, values: dict[Any, Any] | None = None) -> None:
        super().__init__(values or {})
        self.asked: list[Any] = []

    def get(self, key: Any, default: Any = pk.PENDING) -> Any:
        self.asked.append(key)
        return super().get(key, default)


def batch(text: str, start: int = 0) -> dict[str, list[Any]]:
    """Return events given as `A(x,3)`: type, k and v."""
    found = [each.rstrip(")").replace("(", ",").split(",") for each in text.split()]
    return {
        "type": [each[0] for each in found],
        "ts": [start + place for place in range(len(found))],
        "k": [each[1] for each in found],
        "v": [float(each[2]) for each in found],
    }


def engine_of(text: str, **options: Any) -> tuple[Engine, dict[str, Slow]]:
    sources = {name: Slow() for name in ("limits", "sets")}
    return Engine(parse(text), remotes=sources, postpone=True, **options), sources


def bound(matches: Matches) -> list[tuple[int, ...]]:
    return sorted(tuple(seq for each in match.events.values() for seq in each) for match in matches)


@pytest.mark.parametrize("pattern", ["SEQ(A a, B b, C c)", "SEQ(A a, B b, C c, NOT D d)"])  # plain, general
def test_a_run_ends_when_its_obligation_is_known_not_to_hold(pattern: str) -> None:
    engine, _ = engine_of(QUERY.replace("SEQ(A a, B b, C c)", pattern))
    engine.process(batch("A(x,0) A(y,0) B(z,5)"))
    assert bound(engine.runs()) == [(0,), (0, 2), (1,), (1, 2)]
    engine.resolve("limits", {"x": 7, "nobody": 1})
    assert bound(engine.runs()) == [(0,), (1,), (1, 2)]
    engine.process(batch("B(z,6) B(z,8)", 10))  # of the first A it is known now
    assert bound(engine.runs()) == [(0,), (0, 4), (1,), (1, 2), (1, 3), (1, 4)]
    assert engine.pending() == [("limits", "y", 4, 0)]
    engine.resolve("limits", {"y": 5})
    assert bound(engine.runs()) == [(0,), (0, 4), (1,), (1, 3), (1, 4)]
    found = engine.process(batch("C(z,1)", 20))
    assert bool(len(found)) == ("D" not in pattern)  # else it is known at the end
    assert bound(found + engine.flush()) == [(0, 4, 5), (1, 3, 5), (1, 4, 5)]


def test_a_match_is_held_until_all_that_it_needs_is_there() -> None:
    engine, sources = engine_of(f"{QUERY} RETURN REMOTE[sets, c.k] AS s")
    assert not engine.process(batch("A(x,0) B(y,2) C(z,1)"))
    assert engine.pending() == [("limits", "x", 2, 1)]
    assert sources["sets"].asked == []  # RETURN asks for what is proved
    assert not engine.resolve("limits", {"x": 1})
    assert engine.pending() == [("sets", "z", 0, 1)]
    (match,) = engine.resolve("sets", {"z": "here"})
    assert (match.values, match.known_ts) == ({"s": "here"}, 2)
    assert not engine.pending()
    assert not engine.flush()


def test_the_end_of_the_stream_names_what_is_missing_and_loses_nothing() -> None:
    engine, _ = engine_of(f"{QUERY.replace('C c)', 'C c, NOT D d)')} RETURN REMOTE[limits, c.k] AS s")
    engine.process(batch("A(x,0) B(y,2) C(z,1) A(w,0) A(x,9)"))
    told = r"matches wait for REMOTE\[limits, 'x'\] \(1 match\)\n  fix: engine.resolve"
    for _ in range(2):
        with pytest.raises(pk.StillPendingError, match=told):
            engine.flush()
    with pytest.raises(EngineError, match="stream is over"):
        engine.process(batch("A(x,0)", 90))
    assert not engine.resolve("limits", {"x": 1})
    with pytest.raises(pk.StillPendingError, match=r"REMOTE\[limits, 'z'\]"):
        engine.flush()
    (match,) = engine.resolve("limits", {"z": None})
    assert match.values == {"s": None}
    assert not engine.flush()
    with pytest.raises(EngineError, match="stream is over"):
        engine.resolve("limits", {"w": 1})


def test_a_source_is_asked_once_for_a_key_in_a_batch_and_not_while_it_is_awaited() -> None:
    query = "PATTERN SEQ(A a, B b) WHERE b.v < REMOTE[limits, a.k] AND b.k IN REMOTE[sets, a.k] WITHIN 1 min"
    engine, sources = engine_of(query)
    engine.process(batch("A(x,0) B(p,1) A(x,0) B(p,1)"))
    engine.process(batch("A(x,0) B(p,1)", 10))
    assert (sources["limits"].asked, sources["sets"].asked) == (["x"], ["x"])
    engine.resolve("sets", {"x": {"p"}})
    assert len(engine.resolve("limits", {"x": 9})) == 6
    assert bound(engine.process(batch("B(p,1)", 20))) == [(0, 6), (2, 6), (4, 6)]
    assert (sources["limits"].asked, sources["sets"].asked) == (["x"], ["x"])  # what came late is kept for WITHIN
    engine.process(batch("A(x,0)", 70_000_000))
    assert (sources["limits"].asked, sources["sets"].asked) == (["x"], ["x"])


def test_what_came_late_is_forgotten_when_the_events_before_it_are() -> None:
    engine, sources = engine_of(QUERY)
    answers = engine._functions.answers
    for step in range(200):
        engine.process(batch(f"A(k{step},0) B(z,5)", step * 70_000_000))
        engine.resolve("limits", {f"k{step}": 1})
        for detector in engine._detectors:
            detector.drop_unneeded()
    assert len(answers._late) < 140
    assert not answers.awaited
    assert len(sources["limits"].asked) == 200


# --- what must block ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("clauses", "why"),
    [
        ("WITHIN 1 min SELECT FIRST", "SELECT FIRST chooses"),
        ("WITHIN 1 min SELECT LAST", "SELECT LAST chooses"),
        ("WITHIN 1 min SELECT STRICT", "SELECT STRICT chooses"),
        ("WITHIN 1 min SELECT CUMULATIVE", "SELECT CUMULATIVE chooses"),
        ("WITHIN 1 min SELECT EACH, LAST a", "SELECT per variable chooses"),
        ("WITHIN 1 min CONSUME a", "CONSUME keeps events"),
        ("WITHIN 1 min WINDOW 1 min LIMIT 1 PER WINDOW", "LIMIT counts"),
        ("WITHIN 1 min WINDOW 1 min ON A s WHERE REMOTE[limits, s.k] > 1", "decides where windows start"),
    ],
)
def test_a_query_in_which_matches_depend_on_each_other_must_block(clauses: str, why: str) -> None:
    query = f"PATTERN SEQ(A a, B b) WHERE REMOTE[limits, a.k] < b.v {clauses}"
    engine, sources = engine_of(query)
    (told,) = engine.must_block
    assert told is not None
    assert why in told
    with pytest.raises(pk.MustBlockError, match=f"is not there yet, and the query must block: .*{why}"):
        engine.process(batch("A(x,0) B(x,1)"))
    engine, sources = engine_of(query)
    sources["limits"]["x"] = 0
    engine.process(batch("A(x,0) B(x,1)"))  # what is there does no harm


def test_a_lookup_in_a_negation_must_block() -> None:
    engine, _ = engine_of("PATTERN SEQ(A a, NOT D d, B b) WHERE REMOTE[limits, d.k] < a.v WITHIN 1 min")
    assert engine.must_block == ["a lookup decides what a negation forbids"]


def test_without_lookups_there_is_nothing_to_block() -> None:
    engine = Engine(parse("PATTERN SEQ(A a, B b) WHERE a.v < b.v WITHIN 1 min SELECT FIRST CONSUME ALL"))
    assert engine.must_block == [None]


def test_one_query_must_block_and_another_must_not() -> None:
    sources = {"limits": Slow()}
    queries = [parse(QUERY), parse(f"{QUERY} SELECT FIRST")]
    with pytest.raises(pk.MustBlockError, match="must block: SELECT FIRST"):
        Engine(queries, remotes=sources, postpone=True).process(batch("A(x,0) B(x,1)"))


def test_an_engine_that_was_not_told() -> None:
    engine = Engine(parse(QUERY), remotes={"limits": Slow()})
    with pytest.raises(pk.MustBlockError, match=r"REMOTE\[limits, 'x'\] is not there yet: the engine was not told"):
        engine.process(batch("A(x,0)"))


def test_what_resolve_refuses() -> None:
    engine, _ = engine_of(QUERY)
    with pytest.raises(EngineError, match="there is no remote source 'limit'; there are 'limits', 'sets'"):
        engine.resolve("limit", {})
    with pytest.raises(EngineError, match="PENDING is no value"):
        engine.resolve("limits", {"x": pk.PENDING})


# --- snapshots ------------------------------------------------------------------------------------------------


def test_a_snapshot_has_runs_that_wait_matches_that_wait_and_values_that_came_late() -> None:
    query = """
        PATTERN SEQ(A a, B b) WHERE REMOTE[limits, a.k].low < b.v AND b.k IN REMOTE[sets, a.k] WITHIN 1 min
        RETURN REMOTE[limits, b.k].low AS low
    """
    engine, sources = engine_of(query)
    engine.process(batch("A(x,0) B(p,1) B(q,1)"))
    engine.resolve("limits", {"x": {"low": 0, "names": {"one", "two"}}})
    engine = Engine.restore(engine.snapshot(), remotes=sources)
    assert engine.pending() == [("sets", "x", 1, 2)]
    assert not engine.resolve("sets", {"x": ["p"]})
    engine = Engine.restore(engine.snapshot(), remotes=sources)
    (match,) = engine.resolve("limits", {"p": {"low": 5}})
    assert match.values == {"low": 5}
    assert (sources["limits"].asked, sources["sets"].asked) == (["x", "p"], ["x"])


def test_a_value_that_no_snapshot_can_hold() -> None:
    class Odd:
        def get(self, name: str) -> int:
            return 1

    engine, _ = engine_of("PATTERN SEQ(A a, B b) WHERE REMOTE[limits, a.k].low < b.v WITHIN 1 min")
    engine.process(batch("A(x,0)"))
    engine.resolve("limits", {"x": Odd()})
    with pytest.raises(pk.SnapshotError, match=r"REMOTE\[limits, 'x'\] is a Odd, which a snapshot cannot hold"):
        engine.snapshot()
