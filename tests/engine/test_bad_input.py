"""What bad input gets: a clear error or the documented result; and the engine works on as if it had never come."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import penstock as pk
from penstock.engine.batches import BatchError
from penstock.engine.engine import Engine
from penstock.engine.queries import EngineError
from tests.engine.comparing import rows

QUERIES = {
    "plain": "PATTERN SEQ(A a, B b) WHERE a.k = b.k AND a.x < b.x WITHIN 1 h",
    "general": "PATTERN SEQ(A a, NOT N n, B b) WHERE a.k = b.k AND n.k = b.k AND a.x < b.x WITHIN 1 h SELECT FIRST",
    "partitions": "PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 1 h PARTITION BY k SELECT LAST",
}
FIRST = {"type": ["A", "A", "B"], "ts": [10, 20, 30], "seq": [1, 2, 3], "k": ["u", "w", "u"], "x": [1.0, 2.0, 3.0]}
LATER = {
    "type": ["N", "B", "A", "B"],
    "ts": [40] * 4,
    "seq": [4, 5, 6, 7],
    "k": ["u", "w", "v", "v"],
    "x": [0, 5, 6, 7],
}
BATCH = {"type": ["A", "B"], "ts": [30, 31], "seq": [8, 9], "k": ["new text", "w"], "x": [1.0, 9.0]}


def changed(**columns: Any) -> dict[str, Any]:
    return {name: column for name, column in {**BATCH, **columns}.items() if column is not None}


BAD: dict[str, tuple[Any, str]] = {
    "unknown column": (changed(x=None, X=[1.0, 2.0]), "column 'x': is missing; the batch has 'type', 'ts', 'seq', 'k'"),
    "no columns": ({}, "column 'type': is missing"),
    "wrong type of times": (changed(ts=[30.5, 31.5]), "column 'ts': times are of type double"),
    "wrong type of types": (changed(type=[1, 2]), "column 'type': types are of type int64\n  fix: give texts"),
    "wrong type of numbers": (changed(seq=["8", "9"]), "column 'seq': numbers are of type string"),
    "lists as an attribute": (changed(x=[[1.0], [2.0]]), "column 'x': "),
    "texts that were numbers": (pa.table(changed(x=["1", "2"])), "column 'x': is text here and was number"),
    "unsorted": (changed(ts=[31, 30]), "row 1 (ts 30, seq 9) is before row 0 (ts 31, seq 8)\n  fix: sort the batch"),
    "unsorted at the same time": (changed(ts=[31, 31], seq=[9, 8]), "is before row 0 (ts 31, seq 9)"),
    "before the last batch": (changed(ts=[29, 31]), "starts (ts 29, seq 8) , not after the end of the batch before"),
    "the last event again": (changed(ts=[30, 31], seq=[3, 4]), "not after the end of the batch before (ts 30, seq 3)"),
    "the same number twice": (
        changed(seq=[8, 8]),
        "rows 0 and 1 have the same number, 8\n  fix: number events uniquely",
    ),
    "no numbers any more": (changed(seq=None), "column 'seq': is missing"),
    "columns of different lengths": (changed(x=[1.0]), "columns differ in length"),
    "an event without a type": (changed(type=["A", None]), "row 1 has no type"),
    "an event without a time": (pd.DataFrame(changed(ts=[30, None])), "column 'ts': "),
    "no batch": (5, "int"),
    "rows instead of columns": ([{"type": "A", "ts": 1}], "list"),
}


def started(query: str) -> Engine:
    engine = Engine(pk.parse(QUERIES[query]))
    engine.process(pa.table(FIRST))
    return engine


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("problem", BAD)
def test_a_bad_batch_is_refused_and_changes_nothing(query: str, problem: str) -> None:
    batch, told = BAD[problem]
    engine, untouched = started(query), started(query)
    with pytest.raises(BatchError) as caught:
        engine.process(batch)
    assert told.replace(") ,", "),") in str(caught.value)
    assert engine.snapshot() == untouched.snapshot()
    assert engine.work == untouched.work
    after = untouched.process(pa.table(LATER))
    assert rows(engine.process(pa.table(LATER))) == rows(after)
    assert len(after)


@pytest.mark.parametrize("query", QUERIES)
def test_a_number_that_was_used_in_an_earlier_batch(query: str) -> None:
    """Numbers are looked for within a batch only: to remember all that ever came would take memory without bound."""
    engine = started(query)
    matches = engine.process(changed(ts=[31, 32], seq=[2, 9]))
    assert all(match["b"] == (9,) for match in matches)


def test_process_after_flush() -> None:
    engine = started("plain")
    engine.flush()
    with pytest.raises(EngineError, match=r"the stream is over: flush\(\) was called"):
        engine.process(LATER)


@pytest.mark.parametrize("missing", [None, math.nan])
@pytest.mark.parametrize("kind", ["lists", "arrays"])
def test_an_event_without_a_key_is_in_no_partition(missing: Any, kind: str) -> None:
    engine = Engine(pk.parse("PATTERN SEQ(A a, B b) WITHIN 3 EVENTS PARTITION BY k"))
    keys: Any = [1.5, missing, missing, 1.5]
    matches = engine.process(
        {"type": ["A", "A", "B", "B"], "ts": range(4), "k": keys if kind == "lists" else np.array(keys, np.float64)}
    )
    assert [match.events for match in matches] == [{"a": (0,), "b": (3,)}]
    assert engine.work["without_key"] == 2
    assert engine.work["events"] == 2


@pytest.mark.parametrize("missing", [None, math.nan])
def test_a_missing_value_equals_nothing(missing: Any) -> None:
    engine = Engine(pk.parse("PATTERN SEQ(A a, B b) WHERE a.k = b.k WITHIN 1 h"))
    keys = [missing, 1.5, missing, 1.5]
    (match,) = engine.process({"type": ["A", "A", "B", "B"], "ts": range(4), "k": keys})
    assert match.events == {"a": (1,), "b": (3,)}


def test_a_text_of_ten_megabytes() -> None:
    engine = Engine(pk.parse("PATTERN SEQ(A a, B b) WHERE a.k = b.k WITHIN 1 h RETURN a.k AS k"))
    long, other = "x" * 10_000_000, "x" * 9_999_999 + "y"
    engine.process({"type": ["A", "A"], "ts": [0, 1], "k": [long, other]})
    engine = Engine.restore(engine.snapshot())
    (match,) = engine.process({"type": ["B"], "ts": [2], "k": ["x" * 9_999_999 + "y"]})
    assert match.events == {"a": (1,), "b": (2,)}
    assert match.values["k"] == other


@pytest.mark.parametrize("clause", ["WHERE a.k = b.k WITHIN 1 h", "WITHIN 1 h PARTITION BY k"])
def test_a_million_distinct_values(clause: str) -> None:
    """Each is a key of its own; the events that come again find theirs."""
    size = 1_000_000
    engine = Engine(pk.parse(f"PATTERN SEQ(A a, B b) {clause}"))
    names = pa.array(np.arange(size)).cast(pa.string())
    engine.process(pa.table({"type": ["A"] * size, "ts": np.arange(size), "k": names}))
    again = [3, 999_999, 123_456]
    batch = {"type": ["B"] * 4, "ts": [size] * 4, "k": [*map(str, again), "never seen"]}
    assert [match["a"] for match in engine.process(batch)] == [(3,), (999_999,), (123_456,)]


def test_a_million_distinct_types() -> None:
    size = 1_000_000
    engine = Engine(pk.parse("PATTERN SEQ(T777777 a, T999999 b) WITHIN 1 h"))
    names = [f"T{number}" for number in range(size)]
    (match,) = engine.process(pa.table({"type": names, "ts": np.arange(size)}))
    assert match.events == {"a": (777_777,), "b": (999_999,)}


@pytest.mark.parametrize("x", [math.inf, -math.inf, 1e308, -0.0, 5e-324])
def test_extreme_numbers_are_numbers(x: float) -> None:
    engine = Engine(pk.parse("PATTERN SEQ(A a, B b) WHERE a.x = b.x AND a.x <= b.x AND NOT a.x < b.x WITHIN 1 h"))
    assert len(engine.process({"type": ["A", "B"], "ts": [0, 1], "x": [x, x]})) == 1
