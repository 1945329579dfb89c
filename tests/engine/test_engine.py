"""The engine as users see it: batches of any size and form, several queries, open runs, the work done, the cache."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import penstock as pk
from penstock.engine.engine import Engine
from penstock.engine.matches import Matches
from penstock.engine.queries import EngineError
from penstock.pattern import ast
from penstock.reference import runs
from penstock.testing import stream
from tests.engine.comparing import FORMS, Row, again, as_lists, case_of, engine_of, in_order, pieces, rows
from tests.generators import EVERYTHING, FUNCTIONS, REMOTES, Case, cases, seeded

CUTS = st.lists(st.integers(0, 14), max_size=6)
FORM_NAMES = st.lists(st.sampled_from(sorted(FORMS)), min_size=7, max_size=7)
CALM = [HealthCheck.too_slow]
NO_NEGATION = replace(EVERYTHING, negation=0)


def at_once(engine: Engine, case: Case) -> Matches:
    return engine.process(as_lists(in_order(case.events))) + engine.flush()


# --- batches --------------------------------------------------------------------------------------------------


def is_ordered(engine: Engine) -> bool:
    """Return whether matches come in one order however the stream is cut.

    Otherwise those that are decided together come together, by partition or by window.
    """
    (detector,) = engine._detectors
    return detector.emission.is_plain or (detector.emission.held is None and not engine.queries[0].partition)


def assert_same(engine: Engine, got: Matches, wanted: Matches) -> None:
    if is_ordered(engine):
        assert rows(got) == rows(wanted)
    assert Counter(rows(got)) == Counter(rows(wanted))


@settings(max_examples=100, deadline=None, suppress_health_check=CALM)
@given(cases(), CUTS, FORM_NAMES)
def test_batches_of_any_size_and_form_give_the_same_matches_in_the_same_order(
    case: Case, cuts: list[int], forms: list[str]
) -> None:
    engine = engine_of(case.query)
    whole, in_pieces, one_by_one = at_once(engine, case), Matches(), Matches()
    engine = engine_of(case.query)
    for piece, form in zip(pieces(case.events, cuts), forms, strict=False):
        in_pieces += engine.process(FORMS[form](piece))
    in_pieces += engine.flush()
    engine = engine_of(case.query)
    for event in in_order(case.events):
        one_by_one += engine.process(as_lists([event]))
    one_by_one += engine.flush()
    assert_same(engine, in_pieces, whole)
    assert_same(engine, one_by_one, whole)


@pytest.mark.parametrize("form", FORMS)
def test_an_empty_batch_changes_nothing(form: str) -> None:
    """Neither before the first event, nor between two, nor at the end."""
    for case in seeded(40):
        engine, untouched = engine_of(case.query), engine_of(case.query)
        for piece in pieces(case.events, [4, 8]):
            assert not engine.process(FORMS[form]([]))
            assert rows(engine.process(FORMS[form](piece))) == rows(untouched.process(FORMS[form](piece)))
            assert engine.work == untouched.work
        assert not engine.process(FORMS[form]([]))
        assert len(again(engine).snapshot()) == len(again(untouched).snapshot())
        assert rows(engine.runs()) == rows(untouched.runs())
        assert rows(engine.flush()) == rows(untouched.flush())


def test_columns_may_have_other_names() -> None:
    query = pk.parse("PATTERN SEQ(A a, B b) WHERE a.ts < b.ts AND a.type = 'A' AND b.seq = 9 WITHIN 1 min")
    engine = Engine(query, type="what", time="when", seq="number")
    engine.process({"what": ["A"], "when": [1], "number": [7]})
    (match,) = again(engine).process({"what": ["B", "B"], "when": [2, 3], "number": [8, 9]})
    assert match.events == {"a": (7,), "b": (9,)}


def test_the_stream_is_over_after_flush() -> None:
    engine = Engine(pk.parse("PATTERN SEQ(A a, NOT N n) WITHIN 1 min"))
    engine.process({"type": ["A"], "ts": [1]})
    assert len(engine.flush()) == 1
    for use in (lambda: engine.process({"type": ["A"], "ts": [2]}), engine.flush, engine.snapshot):
        with pytest.raises(EngineError, match=r"flush\(\) was called\n  fix: make a new Engine"):
            use()


def test_an_engine_needs_a_query() -> None:
    with pytest.raises(EngineError, match="at least one query"):
        Engine([])


def test_a_query_that_is_wrong_is_refused() -> None:
    with pytest.raises(pk.QueryError, match="WITHIN"):
        Engine(replace(pk.parse("PATTERN A a WITHIN 1 s"), within=None))


def returned(*batches: list[object]) -> list[object]:
    """Return what `RETURN a.v` gives of the first value of each batch."""
    engine, matches = Engine(pk.parse("PATTERN SEQ(A a, B b) WITHIN 1 h RETURN a.v AS v")), Matches()
    for number, values in enumerate(batches):
        matches += engine.process({"type": ["A"] * len(values), "ts": [number] * len(values), "v": values})
    matches += engine.process({"type": ["B"], "ts": [9], "v": [None]})
    return [match.values["v"] for match in matches]


def test_values_are_returned_as_what_they_were() -> None:
    assert str(returned([3, 4], [])) == "[3, 4]"
    assert str(returned([3], [1.5])) == "[3.0, 1.5]"
    assert str(returned([1.5], [3])) == "[1.5, 3.0]"
    assert str(returned([True, None], [False])) == "[True, None, False]"
    assert returned(["u"], [None]) == ["u", None]


# --- several queries ------------------------------------------------------------------------------------------


def named(case: Case, name: str) -> ast.Query:
    return replace(case.query, name=name)


@pytest.mark.parametrize("first", range(0, 240, 40))
def test_several_queries_give_the_matches_of_each(first: int) -> None:
    """Forty queries see the stream of each of some of their cases."""
    every = list(seeded(40, first))
    queries = [named(case, f"q{number}") for number, case in enumerate(every)]
    for events in sorted((case.events for case in every), key=len)[-2:]:
        engine, matches = engine_of([(query, 2.0) for query in queries]), Matches()
        for piece in pieces(events, [5, 9]):
            matches += engine.process(as_lists(piece))
        matches += engine.flush()
        for query in queries:
            alone = at_once(engine_of(query), Case(query, events))
            together = [match for match in matches if match.query == query.name]
            assert sorted(map(repr, together)) == sorted(map(repr, alone)), query.source
        assert len(matches) > 10


def test_queries_share_columns_and_texts_but_nothing_else() -> None:
    texts = "A0(k=u,v=1) B1(k=w,v=2) A2(k=w,v=3) B3(k=u,v=0)"
    queries = [
        pk.parse("PATTERN SEQ(A a, B b) WHERE a.k < b.k WITHIN 1 h", "by text"),
        pk.parse("PATTERN SEQ(A a, B b) WHERE a.v < b.v WITHIN 1 h", "by number"),
        pk.parse("PATTERN SEQ(A a, B b) WITHIN 1 h PARTITION BY k", "by key"),
    ]
    matches = Engine(queries).process(as_lists(stream(texts)))
    bound = [(match.query, match["a"] + match["b"]) for match in matches]
    assert bound == [("by text", (0, 1)), ("by number", (0, 1)), ("by key", (0, 3))]


def test_names_and_weights_survive_a_snapshot() -> None:
    query = pk.parse("PATTERN A a WITHIN 1 s", "one")
    engine = again(Engine([(query, 2.5), query]))
    assert list(engine.weights) == [2.5, 1.0]
    assert [each.name for each in engine.queries] == ["one", "one"]
    assert [match.query for match in engine.process({"type": ["A"], "ts": [0]})] == ["one", "one"]


# --- runs and work --------------------------------------------------------------------------------------------


def true_runs(case: Case) -> tuple[set[Row], set[Row]]:
    """Return the runs that there must be, and those that there may be.

    To the reference a partition is a stream of its own; the engine may end a run when an event of another partition
    comes that is out of its reach.
    """
    names = [name.text for name in case.query.partition]
    now = max((e.ts for e in case.events if all(e.value(name) is not None for name in names)), default=0)
    reach = case.query.within.us if isinstance(case.query.within, ast.TimeSpan) else 2**62
    every = runs(case.query, case.events, functions=FUNCTIONS, remotes=REMOTES)
    due = {(run.key, run.window, run.bindings) for run in every if run.first_ts + reach >= now}
    return due, {(run.key, run.window, run.bindings) for run in every}


def open_runs(engine: Engine) -> set[Row]:
    return {(run.key, run.window, tuple(run.events.items())) for run in engine.runs()}


@pytest.mark.parametrize("first", range(0, 500, 100))
def test_runs_are_those_of_the_reference(first: int) -> None:
    """Not with negations: there the engine lists runs that are abandoned already, until it next looks at them."""
    compared = 0
    for seed, case in enumerate(seeded(100, first, NO_NEGATION), start=first):
        engine = engine_of(case.query)
        for piece in pieces(case.events, [seed % 9]):
            engine.process(as_lists(piece))
        due, possible = true_runs(case)
        once = open_runs(engine)
        assert due <= once <= possible, f"seed {seed}: {case!r}"
        assert open_runs(engine) == once, "asking changes nothing"
        assert open_runs(again(engine)) == once
        compared += bool(once)
    assert compared > 20


def test_runs_of_the_worked_example() -> None:
    """SEMANTICS.md, example 3: 8 runs; and example 1: two open runs in the first window."""
    case = case_of("SEQ(req a, avail+ b[], stop c) WITHIN 1 h", "req1 req2 avail3 avail4")
    engine = Engine(case.query)
    engine.process(as_lists(case.events))
    bound = [(run["a"], run["b"]) for run in engine.runs()]
    assert sorted(bound) == [(a, b) for a in ((1,), (2,)) for b in ((), (3,), (3, 4), (4,))]
    windows = "WITHIN 8 EVENTS WINDOW 8 EVENTS EVERY 2 EVENTS SELECT FIRST CONSUME ALL"
    case = case_of(f"SEQ(A a, B b, C c) {windows}", "A0 A1 B2 B3 A4 C5")
    engine = Engine(case.query)
    engine.process(as_lists(case.events))
    first = [dict(run.events) for run in engine.runs() if run.window == 0]
    assert sorted(first, key=str) == [{"a": (1,), "b": (3,)}, {"a": (4,)}]


@pytest.mark.parametrize("select", ["", "SELECT FIRST", "SELECT EACH CONSUME ALL"])
def test_work_is_counted(select: str) -> None:
    query = pk.parse(f"PATTERN SEQ(A a, B b) WHERE a.v < b.v WITHIN 1 h PARTITION BY k {select}")
    engine = Engine(query)
    nothing = {"events": 0, "checks": 0, "runs_created": 0, "matches": 0, "runs": 0, "without_key": 0}
    assert engine.work == nothing
    engine.process(as_lists(stream("A0(k=u,v=1) A1(k=u,v=5) C2(v=1) B3(k=u,v=3) B4(k=w,v=9)")))
    once = engine.work
    assert once == {"events": 4, "checks": 2, "runs_created": 2, "matches": 1, "runs": once["runs"], "without_key": 1}
    assert once["runs"] == (1 if select == "SELECT FIRST" else 2)
    assert again(engine).work == once
    together = Engine([query, replace(query, within=ast.TimeSpan(7_200_000_000))])  # not alike: each has its runs
    together.process(as_lists(stream("A0(k=u,v=1) A1(k=u,v=5) C2(v=1) B3(k=u,v=3) B4(k=w,v=9)")))
    assert together.work == {name: 2 * count for name, count in once.items()}


def test_matches_that_are_found_are_counted_though_not_all_are_emitted() -> None:
    case = case_of("SEQ(A a, B b) WITHIN 1 h SELECT LAST", "A0 A1 A2 B3")
    engine = Engine(case.query)
    assert len(engine.process(as_lists(case.events))) == 1
    assert engine.work["matches"] == 3


# --- the cache on disk ----------------------------------------------------------------------------------------

PROGRAM = """
import penstock as pk
from penstock.kernel import {module} as kernel
engine = pk.Engine(pk.parse("PATTERN {pattern} WITHIN 1 min"))
assert len(engine.process({{"type": ["A", "B"], "ts": [1, 2]}})) == 1
stats = kernel.process.stats
print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
"""


def start(pattern: str, module: str, cache: Path) -> subprocess.Popen[str]:
    """Start a process that finds a match; it prints how often its kernel was in the cache, and how often not."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    environment.pop("NUMBA_DISABLE_JIT", None)
    program = [sys.executable, "-c", PROGRAM.format(pattern=pattern, module=module)]
    return subprocess.Popen(program, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ended(process: subprocess.Popen[str]) -> str:
    out, errors = process.communicate(timeout=600)
    assert process.returncode == 0, errors
    return out.strip()


@pytest.mark.slow
@pytest.mark.parametrize(("pattern", "module"), [("SEQ(A a, B b)", "plain"), ("SEQ(A a, NOT N n, B b)", "machine")])
def test_processes_that_start_at_once_share_the_cache(pattern: str, module: str, tmp_path: Path) -> None:
    both = [start(pattern, module, tmp_path) for _ in range(2)]
    assert [ended(process) for process in both] == ["0 1", "0 1"]
    assert ended(start(pattern, module, tmp_path)) == "1 0"


def test_keys_that_mix_numbers_and_texts_come_out_as_texts() -> None:
    engine = Engine(pk.parse("PATTERN SEQ(A a, B b) WITHIN 1 min PARTITION BY k"))
    matches = engine.process({"type": ["A", "A", "B", "B"], "ts": [1, 2, 3, 4], "k": ["x", 1, "x", 1]})
    assert sorted((match.key, match["a"]) for match in matches) == [(("1",), (1,)), (("x",), (0,))]
