"""Runs that ended without a match come out once each, however rows are parted, cut and run again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import penstock as pk
from penstock.engine.snapshots import SnapshotError
from penstock.pattern import ast
from penstock.reference import Event
from penstock.spark import DetectError, detect, output
from penstock.spark.outputs import layout_of
from penstock.spark.worker.bucket import Bucket
from penstock.spark.worker.results import BY, COUNTS, ENDED, MATCHES, OUTPUT, WHY
from penstock.spark.worker.spec import Spec
from tests.engine.comparing import as_lists, engine_of, in_order
from tests.generators import Case, seeded
from tests.spark.frames import events, frame_of, in_one_process, on_spark
from tests.spark.simulating import batched, spec_for, streamed, table_of
from tests.spark.test_detect import END as LAST_ROW
from tests.spark.test_detect import ended as with_end
from tests.spark.test_detect import files, run_stream
from tests.spark.test_workers import DELAY_US, END, START

SECOND = 1_000_000
SHARES, CASES = 2, 600
TEXTS = (
    "SEQ(A a, B b, C c) WITHIN 4 s",
    "SEQ(A a, B b, C c) WHERE a.n < b.n WITHIN 4 s SELECT FIRST",
    "SEQ(A a, NOT D d, B b, C c) WHERE a.n < b.n WITHIN 3 s",
    "SEQ(A a, NOT D d, C c) WITHIN 5 s SELECT FIRST RETURN c.n - a.n AS gap",
    "SEQ(A a, B+ b[], C c) WHERE b[i].n > b[i-1].n WITHIN 3 s SELECT FIRST",
    "SEQ(A a, B b) WITHIN 2 s SELECT STRICT",
    "SEQ(A a, B b, C c) WITHIN 4 s SELECT LAST",
    "SEQ(A a, NOT D d, B b) WITHIN 3 s WINDOW 4 s EVERY 2 s",
    "SEQ(A a, B b) WITHIN 4 s SELECT FIRST CONSUME ALL",
    "SEQ(A a, B b) WITHIN 5 EVENTS",
)


def told_by(engine: pk.Engine) -> Counter[Any]:
    """Return the runs that an engine reports."""
    return Counter(
        (m.query, m.key, m.window, m.first_ts, m.last_ts, *sorted(m.events.items()), why, named(why, by))
        for m, why, by in engine.ended()
    )


def named(why: str, by: int) -> int | None:
    return by if why == "abandoned" else None


def told_in(table: pa.Table, query: ast.Query) -> Counter[Any]:
    """Return the runs in a table of results in the same form, but for those of the end itself."""
    layout, found = layout_of(query), Counter[Any]()
    for row in table.filter(pc.equal(table.column(OUTPUT), ENDED)).to_pylist():
        bound = {v: tuple(event["seq"] for event in row[v]) for v in layout.variables if row[v] is not None}
        assert all(row[name] is None for name in ("known_ts", "detected_ts", "event", "reason", *layout.returns))
        if any(END.seq in seqs for seqs in bound.values()):
            continue
        key, times = tuple(row[name] for name in layout.keys), (_us(row["first_ts"]), _us(row["last_ts"]))
        found[(row["query"], key, _us(row["window"]), *times, *sorted(bound.items()), row[WHY], row[BY])] += 1
    return found


def _us(time: Any) -> Any:
    return round(time.timestamp() * 1e6) if isinstance(time, datetime) else time


def in_one(query: ast.Query, rows: Sequence[Event]) -> Counter[Any]:
    engine = engine_of(query, ended=True)
    engine.process(as_lists(in_order(rows)))
    engine.flush()
    return told_by(engine)


def plain(seeds: range) -> list[tuple[int, Case]]:
    """Return the cases whose runs tell how they end."""
    found = []
    for seed, case in zip(seeds, seeded(len(seeds), seeds.start), strict=True):
        try:
            engine_of(case.query, ended=True)
        except pk.EngineError:
            continue
        found.append((seed, case))
    return found


def counts_events(query: ast.Query) -> bool:
    """Whether runs end by events, not by time: those of an unfinished stream stay open."""
    return any(isinstance(node, ast.CountSpan) for node in ast.walk(query))


def stream_of(count: int, seed: int) -> list[Event]:
    random, ts, found = Random(seed), START, []
    for seq in range(count):
        ts += random.choice([0, SECOND // 5, SECOND, 3 * SECOND // 2])
        attributes = {"n": random.randint(0, 9), "k": random.choice("pqr")}
        found.append(Event(random.choice("AAABBCD"), ts, seq, attributes))
    return found


def cut(rows: list[Event], spec: Spec, random: Random) -> list[pa.Table]:
    """Return the micro-batches of a stream, whose end comes last; with a watermark, rows are out of order."""
    if spec.watermark_us is not None:
        rows = sorted(rows, key=lambda event: event.ts + random.randrange(DELAY_US))
    cuts = sorted(random.randint(0, len(rows)) for _ in range(random.randint(0, 4)))
    parts = [rows[a:b] for a, b in zip([0, *cuts], [*cuts, len(rows)], strict=True)]
    return [table_of(part, spec) for part in [*parts, [END]]]


# --- the workers, without Spark -----------------------------------------------------------------------------------


@pytest.mark.parametrize("share", range(SHARES))
def test_a_batch_in_partitions_tells_what_one_process_tells(share: int) -> None:
    size = CASES // SHARES
    ways: Counter[str] = Counter()
    for seed, case in plain(range(220_000 + share * size, 220_000 + (share + 1) * size)):
        spec = spec_for(case.query, ended=True)
        expected = in_one(case.query, case.events)
        ways["key" if spec.by else "whole" if spec.reach is None else "slices"] += bool(expected)
        found = batched(spec, table_of(case.events, spec), Random(seed), in_memory_bytes=seed % 2 * 10**6)
        assert told_in(found, case.query) == expected, f"seed {seed}: {case!r}"
    assert min(ways[way] for way in ("key", "slices", "whole")) >= 3, f"too few cases of a kind: {ways}"


@pytest.mark.parametrize("watermark_us", [None, DELAY_US])
@pytest.mark.parametrize("share", range(SHARES))
def test_a_stream_in_micro_batches_tells_what_one_process_tells(share: int, watermark_us: int | None) -> None:
    size, told = CASES // SHARES, 0
    for seed, case in plain(range(230_000 + share * size, 230_000 + (share + 1) * size)):
        if counts_events(case.query):
            continue
        random, spec = Random(seed), spec_for(case.query, ended=True, watermark_us=watermark_us)
        found = streamed(spec, cut(in_order(case.events), spec, random), random)
        expected = in_one(case.query, case.events)
        told += bool(expected)
        assert told_in(found, case.query) == expected, f"seed {seed}: {case!r}"
    assert told >= 10


@pytest.mark.parametrize("key", ["", " PARTITION BY k"])
@pytest.mark.parametrize("text", TEXTS)
def test_a_long_stream(text: str, key: str) -> None:
    """Slices, chunks and states with many runs, some of them over several slices."""
    head, within, rest = text.partition(" WITHIN ")
    amount, unit, *more = rest.split(" ")
    query, random = pk.parse(" ".join([f"PATTERN {head}{within}{amount} {unit}{key}", *more]), "long"), Random(text)
    rows = stream_of(300, len(text))
    expected = in_one(query, rows)
    assert expected.total() > 50
    spec = spec_for(query, ended=True)
    whole = batched(spec, table_of(rows, spec), random)
    assert told_in(whole, query) == expected
    assert counted(whole) == expected.total()
    if not counts_events(query):
        spec = spec_for(query, ended=True, watermark_us=DELAY_US)
        found = streamed(spec, cut(rows, spec, random), random)
        assert told_in(found, query) == expected
        assert counted(found) == len(found.filter(pc.equal(found.column(OUTPUT), ENDED)))
    matches = batched(spec_for(query), table_of(rows, spec), random)
    assert whole.column(OUTPUT).to_pylist().count(MATCHES) == matches.column(OUTPUT).to_pylist().count(MATCHES)


def counted(table: pa.Table) -> int:
    return sum(row["ended"] for row in table.column(COUNTS).to_pylist() if row is not None)


def test_runs_end_without_rows_of_their_key() -> None:
    """What another key brings, or a type that no query names, lets time pass."""
    query = pk.parse("PATTERN SEQ(A a, B b) WITHIN 1 s PARTITION BY k")
    spec = spec_for(query, ended=True)
    batches = [[Event("A", START, 0, {"k": "p"})], [Event("Z", START + SECOND, 1, {"k": "q"})]]
    still = streamed(spec, [table_of(part, spec) for part in batches], Random(0))
    assert not told_in(still, query)
    batches[1] = [Event("Z", START + SECOND + 1, 1, {"k": "q"})]
    over = streamed(spec, [table_of(part, spec) for part in batches], Random(0))
    assert told_in(over, query) == {(None, ("p",), None, START, START, ("a", (0,)), "timed out", None): 1}


def test_a_checkpoint_keeps_to_what_was_asked() -> None:
    query = pk.parse("PATTERN SEQ(A a, B b) WITHIN 1 s")
    asked, unasked = spec_for(query, ended=True), spec_for(query)
    for before, after in ((asked, unasked), (unasked, asked)):
        with pytest.raises(SnapshotError, match="columns or `ended`"):
            Bucket.of(after, [0], Bucket(before, [0]).snapshot())


def test_without_numbers_nobody_is_named() -> None:
    """Numbers that are counted inside mean nothing to users."""
    query = pk.parse("PATTERN SEQ(A a, NOT D d, B b) WITHIN 1 s")
    rows = [Event("A", START, 0, {}), Event("D", START + 1, 1, {})]
    for seq, by in (("seq", 1), (None, None)):
        spec = spec_for(query, ended=True, seq=seq)
        found = batched(spec, table_of(rows, spec), Random(0))
        (row,) = found.filter(pc.equal(found.column(OUTPUT), ENDED)).to_pylist()
        assert (row[WHY], row[BY]) == ("abandoned", by)


# --- on Spark -----------------------------------------------------------------------------------------------------

QUERIES = [
    pk.parse("PATTERN SEQ(A a, NOT D d, B b) WHERE a.v < b.v WITHIN 5 s PARTITION BY card RETURN a.v AS v", "one"),
    pk.parse("PATTERN SEQ(A a, C c) WITHIN 8 s PARTITION BY card WINDOW 8 s EVERY 4 s SELECT FIRST", "two"),
]
NO_KEY = pk.parse("PATTERN SEQ(A a, NOT D d, B b, C c) WHERE a.v < c.v WITHIN 4 s", "no key")


def told_on(frame: DataFrame) -> Counter[Any]:
    found: Counter[Any] = Counter()
    for row in frame.drop("first_ts", "last_ts").collect():
        values = row.asDict(recursive=True)
        bound = {
            name: tuple(event["id"] for event in value) for name, value in values.items() if isinstance(value, list)
        }
        if any(LAST_ROW["id"] in ids for ids in bound.values()):
            continue
        key = (values["card"],) if "card" in values else ()
        window = values["window"] and row.window.timestamp() * 1e6
        found[(row.query, key, window, tuple(sorted(bound.items())), row.why, row.by)] += 1
    return found


def expected_of(queries: Any, table: pa.Table) -> Counter[Any]:
    engine = pk.Engine(queries, seq="id", ended=True)
    engine.process(table)
    engine.flush()
    return Counter(
        (m.query, m.key, m.window, tuple(sorted(m.events.items())), why, named(why, by))
        for m, why, by in engine.ended()
    )


@pytest.mark.parametrize("queries", [QUERIES, [NO_KEY]], ids=["by key", "in slices"])
def test_a_batch_on_spark(spark: SparkSession, tmp_path: Path, queries: list[ast.Query]) -> None:
    table = events(400)
    frame = frame_of(spark, table, tmp_path).orderBy(sf.rand(1))
    results = frame.transform(detect(queries, seq="id", ended=True))
    ended, expected = output(results, "ended"), expected_of(queries, table)
    assert {key[4] for key in expected} == {"abandoned", "timed out"}
    assert told_on(ended) == expected
    assert on_spark(output(results, "matches"), queries) == in_one_process(queries, table)
    keys = ["card"] if queries is QUERIES else []
    variables = ["a", "b", "c"]
    assert sorted(ended.columns) == sorted(["query", *keys, "window", "first_ts", "last_ts", *variables, "why", "by"])
    assert "why" not in output(results, "matches").columns


def test_a_stream_on_spark_with_restarts(spark: SparkSession, tmp_path: Path) -> None:
    table = events(300)
    source, out, checkpoint = tmp_path / "in", tmp_path / "out", tmp_path / "checkpoint"
    source.mkdir()
    reader = spark.readStream.schema(frame_of(spark, table, tmp_path / "all").schema)
    stream = reader.option("maxFilesPerTrigger", 2).parquet(str(source))
    found = stream.transform(detect(QUERIES, seq="id", outputs=["matches", "ended"], watermark="1 s"))
    counted = 0
    for first in (0, 150):
        last = with_end(table.slice(first)) if first else table.slice(0, 150)
        files(last, source, 4, first)
        query = run_stream(spark, found, out, checkpoint)
        counted += sum(progress.observedMetrics["penstock"].ended or 0 for progress in query.recentProgress)
    results, expected = spark.read.parquet(str(out)), expected_of(QUERIES, table)
    assert told_on(output(results, "ended")) == expected
    assert counted == output(results, "ended").count()
    assert on_spark(output(results, "matches"), QUERIES) == in_one_process(QUERIES, table)


def test_what_cannot_be_is_told_before_anything_runs(spark: SparkSession, tmp_path: Path) -> None:
    frame = frame_of(spark, events(5), tmp_path)
    general = pk.parse("PATTERN SEQ(A a, B b, NOT C c) WITHIN 5 s", "last not")
    with pytest.raises(pk.EngineError, match=r"the query 'last not' needs the general one: .*\n  fix"):
        frame.transform(detect(general, ended=True))
    taken = pk.parse("PATTERN SEQ(A a, B b) WITHIN 5 s RETURN b.v AS why", "taken")
    with pytest.raises(DetectError, match="RETURN column is called why, which penstock uses"):
        frame.transform(detect(taken, ended=True))
    late = frame.transform(detect(taken, outputs=["matches", "late"]))
    assert "why" in output(late, "matches").columns
    with pytest.raises(
        DetectError, match=r"there is no output 'ended'\n  fix: detect\(…, outputs=\['matches', 'ended'"
    ):
        output(late, "ended")
