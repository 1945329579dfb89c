"""The engine that the kernel is measured against finds what the reference matcher finds, on the benchmark's queries."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as pk
from penstock.reference import Event, find

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))  # its scripts import each other by their bare names
cases, plain_engine, streams = map(import_module, ("cases", "plain_engine", "streams"))
Spec, Step = plain_engine.Spec, plain_engine.Step

# Each case of the benchmark, on a stream so small and dense that the reference is quick and finds some matches.
SMALL = {
    "rising sum, EACH": (cases.rising_sum(60, "EACH", 0, data_set="DS4"), 90),
    "rising sum, FIRST": (cases.rising_sum(60, "FIRST", 0, data_set="DS4"), 90),
    "kleene": (cases.kleene(30, 0, data_set="DS4"), 60),
    "rising stocks": (cases.rising_stocks(10, 6, 0, 1.001), 150),
    "same id": (cases.same_id(4, 0, per_key=12), 80),
    "any at stop, EACH": (cases.any_at_stop(2, 6, "EACH", 0), 24),
    "any at stop, FIRST": (cases.any_at_stop(2, 6, "FIRST", 0), 24),
    "any in reach, EACH": (cases.any_in_reach(50, 0.2, "EACH", 0, reach=300, members=6), 60),
    "any in reach, FIRST": (cases.any_in_reach(50, 0.2, "FIRST", 0, reach=300, members=6), 60),
    "ten steps, EACH": (cases.ten_steps(14, 140, "EACH", 0, percent=0.01), 270),
    "ten steps, FIRST": (cases.ten_steps(14, 140, "FIRST", 0, percent=0.01), 300),
}


def plain(spec: Any, stream: dict[str, Any], batch: int = 7) -> list[Any]:
    engine, rows = plain_engine.PlainEngine(spec), plain_engine.rows(stream)
    return [found for at in range(0, len(rows), batch) for found in engine.process(rows[at : at + batch])]


def reference(text: str, stream: dict[str, Any]) -> set[Any]:
    names = [name for name in stream if name not in ("type", "ts")]
    events = [
        Event(kind, ts, seq, dict(zip(names, values, strict=True)))
        for ts, seq, kind, *values in plain_engine.rows(stream)
    ]
    return {(match.window, frozenset(match.bindings)) for match in find(pk.parse(text), events)}


@pytest.mark.parametrize("name", SMALL)
def test_finds_what_the_reference_finds(name: str) -> None:
    case, events = SMALL[name]
    stream = case.stream(events)
    found = plain(case.spec, stream)
    assert len(found) == len(plain_engine.as_matches(found)), "a match was found twice"
    assert plain_engine.as_matches(found) == reference(case.text, stream)
    assert found, "nothing to compare"


@pytest.mark.parametrize("consume", ["a", "b", "c", "b, c"])
@pytest.mark.parametrize("b", ["B b", "B+ b[]"])
def test_consumption_at_binding(consume: str, b: str) -> None:
    stream = streams.exponential(60, "DS4")
    steps = tuple(
        Step((name,), (name.upper(),), consumes=name in consume, repeats=name == "b" and "+" in b) for name in "abc"
    )
    text = f"PATTERN SEQ(A a, {b}, C c) WITHIN 60 s SELECT FIRST CONSUME {consume}"
    found = plain(Spec(steps, 60_000_000, greedy=False), stream)
    assert plain_engine.as_matches(found) == reference(text, stream)
    assert found


def test_within_counts_events() -> None:
    stream = streams.exponential(60, "DS4")
    steps = tuple(Step((name,), (name.upper(),)) for name in "abc")
    found = plain(Spec(steps, 8, by_count=True), stream)
    assert plain_engine.as_matches(found) == reference("PATTERN SEQ(A a, B b, C c) WITHIN 8 EVENTS", stream)
    assert found


@pytest.mark.parametrize("case", cases.CASES, ids=lambda case: f"{case.name} {case.policy}")
def test_the_cases_of_the_benchmark_are_queries(case: Any) -> None:
    pk.validate(pk.parse(case.text))
    stream = case.stream(5_000)
    assert np.all(np.diff(stream["ts"]) >= 0)
    again = case.stream(5_000)
    assert all(np.array_equal(column, again[name]) for name, column in stream.items())


def test_refuses_what_it_would_get_wrong() -> None:
    a, b = Step(("a",), ("A",)), Step(("b",), ("B",), repeats=True)
    with pytest.raises(ValueError, match="end"):
        Spec((a, b), 1)
    with pytest.raises(ValueError, match="share a type"):
        Spec((b, b, a), 1)
    with pytest.raises(ValueError, match="FIRST"):
        Spec((Step(("a",), ("A",), consumes=True), Step(("b",), ("B",))), 1)


def test_counts_the_runs_that_are_asked() -> None:
    steps = (Step(("a",), ("A",)), Step(("b",), ("B",)))
    engine = plain_engine.PlainEngine(Spec(steps, 10))
    engine.process([(0, 0, "A"), (1, 1, "A"), (2, 2, "B"), (3, 3, "X"), (11, 4, "B")])
    assert (engine.checks, engine.created) == (2 + 1, 2)  # the run of the first A has ended and was swept
