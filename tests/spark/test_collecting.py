"""What `collect` sums up is what the definitions say, however rows are parted, shuffled and cut."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql import types as st

import penstock as pk
from penstock.pattern import ast
from penstock.pattern.variables import variables
from penstock.reference import Event, find
from penstock.reference.conditions import World
from penstock.reference.events import Stream
from penstock.reference.windows import partitions, windows
from penstock.spark.columns import Columns, DetectError
from penstock.spark.detecting import spec_of
from penstock.spark.parting import SLICES_PER_REACH
from penstock.spark.training.collecting import collect, model_of, parted_by, reach_of_sums
from penstock.spark.training.contributions import WHOLE
from penstock.spark.training.models import Model
from penstock.spark.training.observing import Sums
from penstock.spark.training.watching import CollectWorker, as_rows
from penstock.spark.worker.batch import SLICE
from penstock.spark.worker.spec import Spec
from penstock.testing import stream
from tests.generators import EVERYTHING, FUNCTIONS, REMOTES, SCHEMA, Profile, seeded
from tests.spark.frames import events, frame_of
from tests.spark.simulating import FIELDS, table_of

SHARES, CASES = 3, 120
POSITIONS = 4
Totals = Counter[tuple[int, str, str | None, int]]


# --- the definitions, slowly ----------------------------------------------------------------------------------------


def bins_of(position: int, size: int, count: int) -> list[int]:
    """Return the bins whose part of a window a position has to do with; if they share, the one it begins in."""
    covered = [b for b in range(count) if b * size // count == position]
    return covered if size < count else [position * count // size]


def by_definition(query: ast.Query, history: Sequence[Event], positions: int = POSITIONS) -> Totals:
    """Return what is to be counted, from the reference matcher, event by event and window by window."""
    found = find(query, history, functions=FUNCTIONS, remotes=REMOTES)
    named = {event.seq: event for event in history}
    totals: Totals = Counter()
    totals[0, "matches", None, 0] = len(found)
    for key, members in partitions(query, history).items():
        world = World(Stream(members), variables(query.pattern), FUNCTIONS, REMOTES)
        places = {event.seq: place for place, event in enumerate(world.stream.events)}
        totals.update((0, "seen", event.type, 0) for event in members)
        matches = [match for match in found if match.key == key]
        if query.window is None:
            _add_spans(totals, query, matches, named, places, positions)
            continue
        for name, there in windows(query.window, world):
            bound = Counter(seq for m in matches if m.window == name for _, seqs in m.bindings for seq in seqs)
            totals[0, "windows", None, 0] += 1
            totals[0, "window_events", None, 0] += len(there)
            for position, at in enumerate(there):
                event = world.stream.events[at]
                covered = bins_of(position, len(there), positions)
                for number, place in enumerate(covered):
                    part = WHOLE // len(covered) + (number < WHOLE % len(covered))
                    totals[0, "event_parts", event.type, place] += part
                    totals[0, "contribution_parts", event.type, place] += part * bound[event.seq]
                    totals[0, "events", event.type, place] += 1
                    totals[0, "contributions", event.type, place] += bound[event.seq]
                    totals[0, "contributing", event.type, place] += bound[event.seq] > 0
    return +totals


def _add_spans(
    totals: Totals, query: ast.Query, matches: Sequence[Any], named: dict[int, Event], places: dict[int, int], size: int
) -> None:
    there: Counter[tuple[int, int]] = Counter()
    for match in matches:
        seqs = [seq for _, bound in match.bindings for seq in bound]
        for seq in seqs:
            if isinstance(query.within, ast.CountSpan):
                passed, length = places[seq] - min(places[each] for each in seqs), query.within.events
            else:
                assert query.within is not None
                passed, length = named[seq].ts - match.first_ts, max(1, query.within.us)
            there[seq, min(passed * size // length, size - 1)] += 1
    for (seq, place), count in there.items():
        totals[0, "contributions", named[seq].type, place] += count
        totals[0, "contributing", named[seq].type, place] += 1
    totals.update((0, "matched", named[seq].type, 0) for seq in {seq for seq, _ in there})


# --- the same, as Spark's workers do it -------------------------------------------------------------------------------


def spec_for(*queries: ast.Query, by: tuple[str, ...] = ()) -> Spec:
    fields = tuple(st.StructField(name, kind) for name, kind in FIELDS.items())
    asked, keys = parted_by([replace(query, returns=(), source=None) for query in queries], by)
    columns = Columns("type", "ts", "seq", None, keys, ("type", "ts", "seq"), fields)
    spec = spec_of([(query, 1.0) for query in asked], columns, pk.Schema.model_validate(SCHEMA), keeps_partitions=True)
    options: dict[str, Any] = {"functions": FUNCTIONS, "remotes": REMOTES}
    return replace(spec, counting=None, reach=reach_of_sums(asked), **options)


def way_of(spec: Spec) -> str:
    return "key" if spec.by else "whole" if spec.reach is None else "slices"


def parted(spec: Spec, table: pa.Table, random: Random, pieces: int) -> tuple[int | None, list[pa.Table]]:
    """Return the rows of each partition, in any order, and how long slices are."""
    table = table.take(pa.array(random.sample(range(len(table)), len(table)), pa.int64()))
    length = None
    if spec.by:
        keys = zip(*(table.column(name).to_pylist() for name in spec.by), strict=True)
        number = [sum(map(ord, repr(key))) % pieces for key in keys]
    elif spec.reach is None:
        number = [0] * len(table)
    else:
        before, after = spec.reach
        length = random.choice([SLICES_PER_REACH, 1]) * max(before + after, 1)
        ts = table.column("ts").to_pylist()
        pairs = [
            (row, each)
            for row in range(len(table))
            for each in range((ts[row] - after) // length, (ts[row] + before) // length + 1)
        ]
        table = table.take(pa.array([row for row, _ in pairs], pa.int64()))
        table = table.append_column(SLICE, pa.array([each for _, each in pairs], pa.int64()))
        number = [each % pieces for _, each in pairs]
    return length, [table.filter(pa.array([each == piece for each in number], pa.bool_())) for piece in range(pieces)]


def collected(spec: Spec, history: Sequence[Event], random: Random, pieces: int, **options: Any) -> Totals:
    length, tables = parted(spec, table_of(history, spec), random, pieces)
    worker = CollectWorker(spec, length, random.choice([0, 1 << 20]), positions=POSITIONS, **options)
    totals: Totals = Counter()
    for table in tables:
        totals += totals_of(worker(table.to_batches(max_chunksize=random.choice([1, 3, 1000]))))
    return totals


def totals_of(batches: Iterable[pa.RecordBatch]) -> Totals:
    totals: Totals = Counter()
    for row in (row for batch in batches for row in batch.to_pylist()):
        totals[row["query"], row["name"], row["type"], row["place"]] += row["sum"]
    return totals


def of_queries(totals: Totals) -> Totals:
    return Counter({place: count for place, count in totals.items() if place[0] >= 0})


@pytest.fixture
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let little be looked at together, and much be forgotten: streams of tests are short."""
    monkeypatch.setattr("penstock.spark.training.watching.CHUNK", 3)
    monkeypatch.setattr("penstock.engine.detector._RECLAIM_FROM", 2)
    monkeypatch.setattr("penstock.spark.training.contributions._PAIRS", 5)
    monkeypatch.setattr("penstock.spark.training.contributions._GATHER", 1)


BY_TIME = Profile(count_within=False, count_window=False, consume=0, limit=False, previous=False, partition=0)


@pytest.mark.usefixtures("small_steps")
@pytest.mark.parametrize("share", range(SHARES))
@pytest.mark.parametrize("profile", [EVERYTHING, BY_TIME], ids=["everything", "by time"])
def test_the_sums_are_those_of_the_definition_however_rows_are_parted(profile: Profile, share: int) -> None:
    first = 500_000 + share * CASES // SHARES
    ways: Counter[str] = Counter()
    for seed, case in enumerate(seeded(CASES // SHARES, first, profile), start=first):
        random, spec = Random(seed), spec_for(case.query)
        ways[way_of(spec)] += 1
        found = collected(spec, case.events, random, random.randint(1, 3))
        assert of_queries(found) == by_definition(case.query, case.events), f"seed {seed}: {case!r}"
        assert found[-1, "rows", None, 0] == len(case.events)
    assert min(ways[way] for way in (("slices",) if profile is BY_TIME else ("key", "slices", "whole"))) >= 1


@pytest.mark.usefixtures("small_steps")
@pytest.mark.parametrize("share", range(SHARES))
@pytest.mark.parametrize("profile", [EVERYTHING, BY_TIME], ids=["everything", "by time"])
def test_runs_are_counted_the_same_however_rows_are_parted(profile: Profile, share: int) -> None:
    first = 520_000 + share * CASES // SHARES
    for seed, case in enumerate(seeded(CASES // SHARES, first, profile), start=first):
        random, spec = Random(seed), spec_for(case.query)
        whole = collected(replace(spec, by=(), reach=None), case.events, random, 1, runs=True)
        assert collected(spec, case.events, random, 3, runs=True) == whole, f"seed {seed}: {case!r}"


# --- by hand ----------------------------------------------------------------------------------------------------------


def model_for(queries: dict[str, float], history: Sequence[Event], **options: Any) -> Model:
    """Return the model of a history that is in one piece."""
    pairs = [(pk.parse(f"PATTERN {text}"), weight) for text, weight in queries.items()]
    spec = spec_for(*(query for query, _ in pairs))
    worker = CollectWorker(spec, positions=POSITIONS, **options)
    totals = [(*place, count) for place, count in totals_of(worker(table_of(history, spec).to_batches())).items()]
    return model_of(pairs, spec.engine().states, totals, "contribution", POSITIONS, **options)


def shown(model: Model, name: str, query: int = 0) -> dict[str, Any]:
    return dict(zip(model.types, model.queries[query].sums[name].tolist(), strict=True))


WINDOWS = "SEQ(A a, B b) WITHIN 4 EVENTS WINDOW 4 EVENTS"
HISTORY = "A0 B1 B2 A3 A4 C5 B6 B7"  # windows: A B B A with the matches 01 02; A C B B with 46 47


def test_contributions_by_position_in_windows() -> None:
    model = model_for({WINDOWS: 1.0}, stream(HISTORY))
    assert shown(model, "events") == {"A": [2, 0, 0, 1], "B": [0, 1, 2, 1], "C": [0, 1, 0, 0]}
    assert shown(model, "contributions") == {"A": [4, 0, 0, 0], "B": [0, 1, 2, 1], "C": [0, 0, 0, 0]}
    assert shown(model, "contributing") == {"A": [2, 0, 0, 0], "B": [0, 1, 2, 1], "C": [0, 0, 0, 0]}
    numbers = {name: int(model.queries[0].sums[name]) for name in ("windows", "window_events", "matches")}
    assert numbers == {"windows": 2, "window_events": 8, "matches": 4}
    assert model.utility().tolist() == [[1, 0, 0, 0], [0, 1, 1, 1], [0, 0, 0, 0]]
    assert model.utility_of_types().tolist() == [2 / 3, 1, 0]
    assert model.shares().tolist() == [[1, 0, 0, 0.5], [0, 0.5, 1, 0.5], [0, 0.5, 0, 0]]


def test_contributions_by_part_of_within() -> None:
    model = model_for({"SEQ(A a, B b) WITHIN 8 s": 1.0}, stream("A0 B1 B5 B8 B9 C10"))
    assert shown(model, "seen") == {"A": 1, "B": 4, "C": 1}
    assert shown(model, "matched") == {"A": 1, "B": 3, "C": 0}
    assert shown(model, "contributions") == {"A": [3, 0, 0, 0], "B": [1, 0, 1, 1], "C": [0, 0, 0, 0]}
    assert shown(model, "contributing") == {"A": [1, 0, 0, 0], "B": [1, 0, 1, 1], "C": [0, 0, 0, 0]}
    assert model.utility().tolist() == [[1, 0, 0, 0], [0.25, 0, 0.25, 0.25], [0, 0, 0, 0]]
    assert model.utility_of_types().tolist() == [1, 0.75, 0]


def test_windows_of_fewer_events_than_bins_are_scaled_up_and_others_down() -> None:
    model = model_for({"* x WITHIN 1 s WINDOW 10 s": 1.0}, stream("A0 B1 A20 B21 C22 A23 B24 A25 B26 C27"))
    assert shown(model, "events") == {  # bins of the first window: A A B B, of the second: AB CA BA BC
        "A": [2, 2, 1, 0],
        "B": [1, 0, 2, 2],
        "C": [0, 1, 0, 1],
    }


@pytest.mark.usefixtures("small_steps")
def test_a_match_that_is_known_long_after_its_window_is_over_counts_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.spark.training.watching.CHUNK", 1)
    model = model_for({"SEQ(A a, NOT B b) WITHIN 20 s WINDOW 8 s": 1.0}, stream("A0 C1 C9 B15 C19 C22 C30 C40"))
    assert shown(model, "contributing") == {"A": [1, 1, 0, 0], "B": [0, 0, 0, 0], "C": [0, 0, 0, 0]}
    assert shown(model, "events")["A"] == [1, 1, 0, 0]


def test_queries_are_weighted() -> None:
    other = "SEQ(C c, B b) WITHIN 4 EVENTS WINDOW 4 EVENTS"
    model = model_for({WINDOWS: 1.0, other: 3.0}, stream(HISTORY))
    assert model.utility(1).tolist() == [[0, 0, 0, 0], [0, 0, 0.5, 1], [0, 1, 0, 0]]
    assert model.utility().tolist() == [[1, 0, 0, 0], [0, 1, 2.5, 4], [0, 3, 0, 0]]


def test_runs_are_counted_by_type_and_state() -> None:
    model = model_for({"SEQ(A a, B b) WHERE a.n < b.n WITHIN 1 min": 1.0}, [
        Event("A", 0, 0, {"n": 1}), Event("A", 1, 1, {"n": 5}), Event("B", 2, 2, {"n": 3}), Event("C", 3, 3, {"n": 3}),
    ], runs=True)  # fmt: skip
    assert model.queries[0].states == ((), ("a",), ("a", "b"))
    assert shown(model, "asked") == {"A": [2, 0, 0], "B": [0, 2, 0], "C": [0, 0, 0]}
    assert shown(model, "taken") == {"A": [2, 0, 0], "B": [0, 1, 0], "C": [0, 0, 0]}


def test_rows_that_are_no_events_are_counted_as_such() -> None:
    spec = spec_for(pk.parse("PATTERN SEQ(A a, B b) WITHIN 5 s"))
    table = table_of([*stream("A0 B1 B2"), Event("B", 3_000_000, 2, {})], spec)  # two events have the number 2
    no_type = table.slice(0, 1).set_column(0, "type", pa.nulls(1, pa.string()))
    found = totals_of(CollectWorker(spec)(pa.concat_tables([table, no_type]).to_batches()))
    assert (found[-1, "rows", None, 0], found[-1, "malformed", None, 0]) == (5, 2)
    assert (found[0, "seen", "A", 0], found[0, "seen", "B", 0], found[0, "matches", None, 0]) == (1, 2, 2)


# --- on Spark ---------------------------------------------------------------------------------------------------------

ON_SPARK = {
    "by key": "SEQ(A a, B b) WHERE a.v < b.v WITHIN 10 s PARTITION BY card WINDOW 20 s EVERY 10 s",
    "slices of spans": "SEQ(A a, B b, C c) WHERE a.v < b.v AND b.v < c.v WITHIN 4 s",
    "slices of windows": "SEQ(A a, B b) WHERE a.v < b.v WITHIN 8 s WINDOW 8 s EVERY 2 s",
    "whole": "SEQ(A a, B b) WITHIN 6 EVENTS SELECT FIRST CONSUME ALL",
}


def in_one_process(frame: DataFrame, table: pa.Table, query: ast.Query, **options: Any) -> Model:
    fields = tuple(frame.schema.fields)
    columns = Columns("type", "ts", "id", None, (), ("type", "ts", "id"), fields)
    schema = pk.Schema.model_validate({"types": {"*": {"v": "int", "card": "string"}}})
    spec = replace(spec_of([(query, 1.0)], columns, schema, keeps_partitions=True), counting=None)
    rows = table.append_column("_tie", table.column("id")).to_batches()
    totals = [(*place, count) for place, count in totals_of(CollectWorker(spec, **options)(rows)).items()]
    return model_of([(query, 1.0)], spec.engine().states, totals, "contribution", options["positions"], runs=True)


@pytest.mark.parametrize("way", ON_SPARK)
def test_spark_sums_up_what_one_process_does(spark: SparkSession, tmp_path: Path, way: str) -> None:
    table, query = events(400), pk.parse(f"PATTERN {ON_SPARK[way]}", way)
    frame = frame_of(spark, table, tmp_path)
    expected = in_one_process(frame, table, query, positions=10, runs=True)
    model = collect(frame.orderBy(sf.rand(1)), query, seq="id", positions=10, runs=True)
    assert int(expected.queries[0].sums["matches"]) > 10
    assert (model.types, model.rows, model.malformed) == (expected.types, 400, 0)
    for name, array in expected.queries[0].sums.items():
        assert model.queries[0].sums[name].tolist() == array.tolist(), name


def test_spark_connect_sums_up_the_same(connect: SparkSession, tmp_path: Path) -> None:
    table, query = events(300), pk.parse(f"PATTERN {ON_SPARK['slices of windows']}")
    frame = frame_of(connect, table, tmp_path)
    expected = in_one_process(frame, table, query, positions=5, runs=True)
    model = collect(frame, query, time=sf.col("ts"), seq="id", positions=5)
    assert model.utility().tolist() == expected.utility().tolist()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"model": "magic"}, "model='magic'\n  fix: give one of 'contribution', 'transition'"),
        ({"positions": 0}, "positions=0\n  fix: give a number of bins, 1 or more"),
        ({"time": "tss"}, "time='tss': there is no such column\n  fix: did you mean 'ts'?"),
    ],
)
def test_mistakes_are_told_before_anything_runs(spark: SparkSession, tmp_path: Path, options: Any, told: str) -> None:
    frame = frame_of(spark, events(5), tmp_path)
    with pytest.raises(DetectError) as error:
        collect(frame, pk.parse("PATTERN SEQ(A a, B b) WITHIN 5 s"), **options)
    assert str(error.value) == told


def test_streams_and_numbers_that_are_not_there_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    frame = frame_of(spark, events(5), tmp_path)
    with pytest.raises(DetectError, match="collect sums up a history, and this is a stream"):
        collect(spark.readStream.schema(frame.schema).parquet(str(tmp_path)), pk.parse("PATTERN A a WITHIN 5 s"))
    with pytest.raises(DetectError, match=r"asks for \.seq, and events have no numbers"):
        collect(frame, pk.parse("PATTERN SEQ(A a, B b) WHERE a.seq < b.seq WITHIN 5 s"))


def test_sums_become_rows_of_what_is_not_zero() -> None:
    sums: Sums = {
        (
            0,
            "seen",
            "A",
        ): np.array([0, 7]),
        (0, "matches", None): np.array([0]),
    }
    assert as_rows(sums).to_pylist() == [{"query": 0, "name": "seen", "type": "A", "place": 1, "sum": 7}]
