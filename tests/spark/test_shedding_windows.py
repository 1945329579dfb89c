"""Shedding from windows on Spark, in the workers: where an event is in its windows decides, across micro-batches."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import penstock as pk
from penstock.pattern import ast
from penstock.runtime.costs import Costs
from penstock.runtime.stream import Stream
from penstock.runtime.training import unshed
from penstock.shedding.strategies.catalogue import STRATEGIES
from penstock.shedding.strategies.espice import Espice
from penstock.spark.columns import DetectError
from penstock.spark.worker.bucket import Bucket, Given
from penstock.spark.worker.events import Rows
from penstock.spark.worker.results import MATCHES, OUTPUT
from penstock.spark.worker.spec import TIE, Spec
from penstock.spark.worker.windows import Positions
from tests.spark.test_shedding_workers import (
    ROWS,
    SECOND,
    adds_up,
    blob_with,
    events,
    packed,
    run_twice,
    shedding,
    slow,
    spec_for,
    step,
)

PATTERN = "PATTERN SEQ(A a, B b, C c) WITHIN 4 s"
OVERLAPPING = pk.parse(f"{PATTERN} PARTITION BY k WINDOW 4 s EVERY 2 s", "overlapping")
APART = pk.parse(f"{PATTERN} PARTITION BY k WINDOW 3 s EVERY 3 s", "apart")
COUNTED = pk.parse(f"{PATTERN} PARTITION BY k WINDOW 60 EVENTS EVERY 20 EVENTS", "counted")
OPENED = pk.parse(f"{PATTERN} PARTITION BY k WINDOW 4 s ON A x WHERE x.v < 10", "opened")
QUERIES = [OVERLAPPING, APART, COUNTED, OPENED]
IN_WINDOWS = sorted(name for name, each in STRATEGIES.items() if each.level in ("window", "run"))
BINS = 4


@pytest.fixture(scope="module")
def history() -> Any:
    query = pk.parse(f"{PATTERN} WINDOW 4 s EVERY 2 s")
    return unshed([(query, 1.0)], events(4000, seed=7), Costs(), is_split=True, bins=BINS).history


def batch(spec: Spec, number: int) -> Rows:
    """Return a micro-batch as it comes to the engine."""
    (row,) = packed(spec, number, 2 * SECOND, 1000)
    table = Given.of([row]).tables[0]
    ts = table.column("ts").cast(pa.int64()).to_numpy()
    return Rows(table.drop_columns([TIE]), ts, table.column(TIE).to_numpy())


def by_hand(query: ast.Query, number: int) -> list[tuple[int, int, int]]:
    """Return (row, window, position) of all events up to a batch, in windows that time or numbers cut."""
    assert query.window is not None
    assert query.window.every is not None
    is_timed = isinstance(query.window.length, ast.TimeSpan)
    length, every = ((each.us if is_timed else each.events) for each in (query.window.length, query.window.every))  # type: ignore[union-attr]
    found, seen, of_key = [], Counter[tuple[int, int]](), Counter[int]()
    for b in range(number + 1):
        raw = events(ROWS, b * ROWS)
        for row, (ts, k) in enumerate(zip(raw["ts"].tolist(), raw["k"].tolist(), strict=True)):
            at = ts if is_timed else of_key[k]
            for window in range((at - length) // every + 1, at // every + 1):
                if is_timed or window >= 0:
                    found.append((b * ROWS + row, window, seen[k, window]))
                    seen[k, window] += 1
            of_key[k] += 1
    return found


@pytest.mark.parametrize("query", [OVERLAPPING, APART, COUNTED], ids=lambda query: query.name)
def test_positions_are_counted_across_batches_and_restarts(query: ast.Query, history: Any) -> None:
    spec = spec_for(shedding("espice", history), query)
    positions = Positions(query, spec)
    found: list[tuple[int, int, int]] = []
    for number in range(4):
        pairs = positions.take(batch(spec, number))
        found += zip(
            (pairs.rows + number * ROWS).tolist(), pairs.windows.tolist(), pairs.positions.tolist(), strict=True
        )
        positions = Positions(query, spec, positions.state())
    assert sorted(found) == sorted(by_hand(query, 3))
    per_key = {"overlapping": 80, "apart": 60, "counted": 60}[query.name or ""]
    assert pairs.sizes.mean() == pytest.approx(per_key, rel=0.15)  # 100 events a second, of five keys


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.name)
def test_positions_are_those_that_a_model_is_learned_with(query: ast.Query, history: Any) -> None:
    spec, raw = spec_for(shedding("espice", history), query), [events(ROWS, number * ROWS) for number in range(4)]
    joined = {name: np.concatenate([each[name] for each in raw]) for name in raw[0]}
    stream = Stream([query], is_split=True)
    stream.take(joined)
    view = stream.view(0, stream.size)
    positions = Positions(query, spec)
    found: list[tuple[int, int]] = []
    for number in range(4):
        pairs = positions.take(batch(spec, number))
        found += zip((pairs.rows + number * ROWS).tolist(), pairs.positions.tolist(), strict=True)
    assert sorted(found) == sorted(zip(view.rows.tolist(), view.positions.tolist(), strict=True))
    assert len(found) > ROWS


def test_windows_are_expected_to_be_as_large_as_those_of_their_key(history: Any) -> None:
    spec = spec_for(shedding("espice", history), APART)
    positions = Positions(APART, spec)
    seconds = np.arange(12)  # key 0 has four events a second, key 1 one
    for second in seconds:
        of_key = {"k": np.array([0, 0, 0, 0, 1]), "ts": second * SECOND + np.arange(5)}
        table = batch(spec, 0).table.slice(0, 5)
        for name, values in of_key.items():
            at = table.schema.get_field_index(name)
            table = table.set_column(at, table.field(name), pa.array(values, pa.int64()).cast(table.field(name).type))
        pairs = positions.take(Rows(table, of_key["ts"], np.arange(5)))
        if second >= 6:
            assert pairs.sizes.tolist() == [12, 12, 12, 12, 3]
        positions = Positions(APART, spec, positions.state())
    parts = np.array([0, 1, 2])
    assert positions._expected(parts).tolist()[:2] == [12, 3]
    assert 3 < positions._expected(parts)[2] < 12, "of a key that is new: as those of all keys"
    older = {name: each for name, each in positions.state().items() if name not in ("means", "overs")}
    assert len(set(Positions(APART, spec, older)._expected(parts).tolist())) == 1, "a state that has none of keys"


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.name)
@pytest.mark.parametrize("name", IN_WINDOWS)
def test_a_batch_that_is_run_again_sheds_the_same(name: str, query: ast.Query, history: Any) -> None:
    spec = spec_for(shedding(name, history), query)
    blob = blob_with(spec, slow(ROWS, 2_000_000))
    first, shed, after, after_again = run_twice(spec, blob)
    assert first["shed"] + first["shed_partly"] > 0, "the test sheds nothing"
    assert len(shed) == first["shed"]
    assert adds_up(first)
    assert after == after_again


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.name)
@pytest.mark.parametrize("name", IN_WINDOWS)
def test_nothing_is_shed_without_need(name: str, query: ast.Query, history: Any) -> None:
    spec = spec_for(shedding(name, history), query)
    counts, shed, _ = step(spec, blob_with(spec, slow(ROWS, 20_000)), packed(spec, 1, 2 * SECOND, 100_000))
    assert (counts["shed"], counts["shed_partly"], shed) == (0, 0, [])
    assert adds_up(counts)


def late_in_windows(types: int) -> Espice:
    """Return a model by which events in the second half of a window are worth nothing."""
    utilities = np.repeat(np.array([[100, 100, 0, 0]]), types, axis=0)
    return Espice(utilities, np.full((types, 4), 5.0))


def with_model(query: ast.Query) -> Spec:
    made = pk.Shedding(bound="1 s", strategy="espice", model=late_in_windows(4), types=("A", "B", "C", "D"))
    return spec_for(made, query)


def test_espice_sheds_by_the_position_in_a_window() -> None:
    spec = with_model(COUNTED)
    counts, _, _ = step(spec, blob_with(spec, slow(ROWS, 600_000)), packed(spec, 1, 60 * SECOND, 1000))
    places = {(row, window): at for row, window, at in by_hand(COUNTED, 1)}
    late = {row for (row, _), at in places.items() if at >= 30 and row >= ROWS}
    assert counts["shed"] == 0, "an event is in the first half of one of its windows"
    assert ROWS / 3 < counts["shed_partly"] <= len(late)


def test_matches_are_missing_only_from_windows_that_an_event_was_shed_from() -> None:
    spec = with_model(COUNTED)
    idle = replace(spec, shed=None)
    found, expected = set[Any](), set[Any]()
    for asked, into in ((spec, found), (idle, expected)):
        blob = blob_with(spec, slow(ROWS, 600_000)) if asked.shed else None
        bucket = Bucket(asked, [0], blob)
        if blob is None:
            list(bucket.step(Given.of(packed(spec, 0, SECOND, 1000)), 0))
        for table in bucket.step(Given.of(packed(spec, 1, 60 * SECOND, 1000)), 0):
            for row in table.to_pylist():
                if row[OUTPUT] == MATCHES:
                    into.add((row["k"], row["window"], *(row[v][0]["id"] for v in "abc")))
    assert found < expected, "under EACH nothing is invented; and something is lost"
    places = {(row, window * 20): at for row, window, at in by_hand(COUNTED, 1)}
    lost = expected - found
    late = [any(places[each, window] >= 30 for each in ids if each >= ROWS) for _, window, *ids in lost]
    assert all(late)
    kept = [all(places[each, window] < 30 for each in ids if each >= ROWS) for _, window, *ids in expected]
    assert sum(kept) <= len(found)


def test_queries_with_different_windows_are_refused(history: Any) -> None:
    from penstock.spark.shedding import _check_windows

    with pytest.raises(DetectError, match="the queries have different ones"):
        _check_windows(STRATEGIES["espice"].fitted(history), [APART, OVERLAPPING])
