"""Runs that end without a match: each is reported once, with the reason."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock as pk
from penstock.reference import find
from penstock.testing import stream
from tests.engine.comparing import again, as_lists
from tests.engine.test_ledger import SECOND, SHAPES, Row, Shape, Slow, batch, pieces, streams

NEVER = np.zeros(4), np.ones(4), -1.0  # hidden from no state, and never shed
RETURNS = "PATTERN SEQ(R r, NOT C c, X x) WHERE SAME[id] WITHIN 1 h"


def listed(ended: pk.Ended) -> list[tuple[Any, ...]]:
    return [(tuple(n for seqs in run.events.values() for n in seqs), why, by, run.window) for run, why, by in ended]


def test_worked_example_4() -> None:
    """Thesis 6.1: the run of R0 is abandoned at C1."""
    events = stream("R0(id=1) C1(id=1) X2(id=1) R3(id=1) X4(id=1)")
    for policy in ("EACH", "FIRST"):
        engine = pk.Engine(pk.parse(f"{RETURNS} SELECT {policy}"), ended=True)
        matches = engine.process(as_lists(events))
        assert [match.events for match in matches] == [{"r": (3,), "x": (4,)}]
        ended = engine.ended()
        assert listed(ended) == [((0,), "abandoned", 1, None)]
        assert ended.runs.to_dicts()[0]["r"] == [0]
        assert len(engine.ended()) == 0
        assert {match.bindings for match in find(pk.parse(RETURNS), events)} == {(("r", (3,)), ("x", (4,)))}


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if not shape.window], ids=str)
@settings(max_examples=40, deadline=None)
@given(rows=streams(), seed=st.integers(0, 2**20))
def test_every_run_that_neither_moves_on_nor_matches_ends_once(shape: Shape, rows: list[Row], seed: int) -> None:
    slow, random, got = Slow(shape), Random(seed), []
    for number, row in enumerate(rows):
        slow.number = number
        if not (shape.keyed and row[3] is None):
            slow.add(row, *NEVER)
    for runs in slow.runs.values():
        slow.end(runs)
    engine, matches = pk.Engine(shape.query, ended=True), 0
    for start, stop in pieces(len(rows), random):
        matches += len(engine.process(batch(rows[start:stop])))
        if random.random() < 0.5:
            got += listed(engine.ended())
            engine = again(engine)
    matches += len(engine.flush())
    got += listed(engine.ended())
    assert Counter(got) == Counter((*each, None) for each in slow.ended)
    assert matches == slow.moves[2, 3]


FIRSTS = [
    "PATTERN SEQ(A a, B b, C c) WHERE a.v < b.v WITHIN 20 s {} SELECT FIRST",
    "PATTERN SEQ(A a, B b, C c) WITHIN 20 s {} SELECT FIRST CONSUME ALL",
    "PATTERN SEQ(A a, B b, NOT X n, C c) WHERE a.v < b.v WITHIN 20 s {} SELECT FIRST",
    "PATTERN SEQ(A a, B b, NOT X n, C c) WITHIN 20 s {} SELECT FIRST CONSUME b",
    "PATTERN SEQ(A a, B+ b[], C c) WHERE a.v < b[i].v WITHIN 3 s {} SELECT FIRST",
]
EACHS = [
    "PATTERN SEQ(A a, B b, C c) WHERE a.v < b.v WITHIN 20 s {} SELECT EACH",
    "PATTERN SEQ(A a, B b, NOT X n, C c) WHERE a.v < b.v WITHIN 20 s {} SELECT EACH",
    "PATTERN SEQ(A a, B+ b[]) WHERE a.v < b[i].v WITHIN 2 s {} SELECT EACH",
]


def ended_apart(text: str, rows: list[Row], shed: list[int]) -> list[tuple[Any, ...]]:
    """Return what ends in each window by itself."""
    ended: list[tuple[Any, ...]] = []
    for window in range(-2, rows[-1][1] // SECOND + 1 if rows else 0):
        left = [
            (k, row)
            for k, (row, bits) in enumerate(zip(rows, shed, strict=True))
            if window * SECOND <= row[1] < (window + 3) * SECOND and not bits >> (window - row[1] // SECOND + 2) & 1
        ]
        alone = pk.Engine(pk.parse(text.format("")), ended=True)
        alone.process(batch([row for _, row in left]) | {"seq": [k for k, _ in left]})
        alone.flush()
        ended += [(*each[:3], window * SECOND) for each in listed(alone.ended())]
    return ended


@pytest.mark.parametrize(("text", "sheds"), [*((e, False) for e in EACHS + FIRSTS), *((e, True) for e in FIRSTS)])
@settings(max_examples=30, deadline=None)
@given(rows=streams(), seed=st.integers(0, 2**20))
def test_a_run_ends_window_by_window(text: str, sheds: bool, rows: list[Row], seed: int) -> None:
    rows, random = rows[:30], Random(seed)
    shed = [random.choice([0, 0, 1, 2, 5, 7]) if sheds else 0 for _ in rows]
    engine, got = pk.Engine(pk.parse(text.format("WINDOW 3 s EVERY 1 s")), ended=True), []
    for start, stop in pieces(len(rows), random):
        hooks = pk.Hooks(windows=np.array(shed[start:stop], np.int64)) if sheds else None
        engine.process(batch(rows[start:stop]) | {"seq": list(range(start, stop))}, hooks)
        if random.random() < 0.5:
            got += listed(engine.ended())
            engine = again(engine)
    engine.flush()
    got += listed(engine.ended())
    assert Counter(got) == Counter(ended_apart(text, rows, shed))


def test_many_runs_end() -> None:
    """More than there is room for at first; elements are reclaimed and events dropped meanwhile."""
    random, shape = Random(4), Shape(negated=True, keyed=True, within=1)
    rows: list[Row] = [(random.choice("AAABBX"), k * 1_000, random.randint(0, 3), k % 3) for k in range(12_000)]
    slow, engine, got = Slow(shape), pk.Engine(shape.query, ended=True), Counter[tuple[Any, ...]]()
    for start in range(0, len(rows), 3_000):
        engine.process(batch(rows[start : start + 3_000]))
        got += Counter(listed(engine.ended()))
    engine.flush()
    got += Counter(listed(engine.ended()))
    for row in rows:
        slow.add(row, *NEVER)
    for runs in slow.runs.values():
        slow.end(runs)
    assert got == Counter((*each, None) for each in slow.ended)
    assert got.total() > 10_000
    assert engine.kept().size < 12_000


def test_time_that_passes_without_events_ends_runs() -> None:
    engine = pk.Engine(pk.parse("PATTERN SEQ(A a, B b) WITHIN 1 s"), ended=True)
    engine.process({"type": ["A", "A"], "ts": [0, SECOND]})
    assert len(engine.ended()) == 0
    engine.advance(SECOND + 1)
    assert listed(engine.ended()) == [((0,), "timed out", -1, None)]
    engine.flush()
    assert listed(engine.ended()) == [((1,), "timed out", -1, None)]


def test_runs_that_are_dropped_have_not_ended() -> None:
    engine = pk.Engine(pk.parse("PATTERN SEQ(A a, B b) WITHIN 1 s"), ended=True)
    engine.process({"type": ["A", "A", "Z"], "ts": [0, SECOND, SECOND + 1]})
    assert engine.drop_runs(1, np.ones((3, 1))).tolist() == [0, 1, 0]
    engine.flush()
    assert listed(engine.ended()) == [((0,), "timed out", -1, None)]


def test_several_queries() -> None:
    queries = [
        pk.parse("PATTERN SEQ(A a, B b) WITHIN 1 s", "one"),
        pk.parse("PATTERN SEQ(C c, NOT A n, D d) WITHIN 1 s", "two"),
    ]
    engine = pk.Engine(queries, ended=True)
    engine.process({"type": ["C", "A"], "ts": [0, 1]})
    engine.flush()
    assert [(run.query, why, by) for run, why, by in engine.ended()] == [
        ("one", "timed out", -1),
        ("two", "abandoned", 1),
    ]


def test_what_cannot_be_is_refused() -> None:
    query = pk.parse("PATTERN SEQ(A a, B b) WITHIN 1 s")
    with pytest.raises(pk.EngineError, match="ended=True"):
        pk.Engine(query).ended()
    with pytest.raises(pk.EngineError, match="tree"):
        pk.Engine(query, plan="tree", ended=True)
    with pytest.raises(pk.EngineError, match=r"the query 'late' needs the general one: .*\n  fix"):
        pk.Engine(pk.parse("PATTERN SEQ(A a, B b, NOT C c) WITHIN 1 s", "late"), ended=True)
    remote = pk.parse("PATTERN SEQ(A a, B b) WHERE REMOTE[s, a.k] < b.v WITHIN 1 s")
    with pytest.raises(pk.EngineError, match="either"):
        pk.Engine(remote, remotes={"s": {}}, postpone=True, ended=True)
    engine = pk.Engine(query, ended=True)
    engine.process({"type": ["A", "Z"], "ts": [0, 2 * SECOND]})
    with pytest.raises(pk.EngineError, match=r"call ended\(\) before snapshot\(\)"):
        engine.snapshot()
    assert len(engine.ended()) == 1
    assert len(pk.Engine.restore(engine.snapshot()).ended()) == 0
