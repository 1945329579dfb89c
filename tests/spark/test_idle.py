"""Time passes without events, if that is asked for: by the times of batches, and no other clock."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import DataFrame, SparkSession

import penstock as pk
from penstock.engine.snapshots import unpack
from penstock.pattern import ast
from penstock.reference import Event
from penstock.spark import DetectError, detect, output
from penstock.spark.jobs.running import reason_of
from penstock.spark.streaming import Step
from penstock.spark.worker.bucket import VERSION, Bucket
from penstock.spark.worker.packing import BUCKET, Pack, from_bytes
from penstock.spark.worker.results import COUNTS, ENDED, LATE, OUTPUT
from penstock.spark.worker.spec import Spec
from tests.engine.comparing import in_order
from tests.generators import seeded
from tests.spark.frames import events, frame_of
from tests.spark.simulating import _bucket_of, spec_for, table_of
from tests.spark.test_detect import files
from tests.spark.test_ended import counts_events, in_one, plain, told_in
from tests.spark.test_workers import DELAY_US, START, found_in, in_one_process, waits_for_events

SECOND = 1_000_000
DAY = 86_400 * SECOND
IDLE_US = 2 * SECOND
NEVER = 10**12  # ms
CASES = 60
LAST_NOT = pk.parse("PATTERN SEQ(A a, NOT B b) WITHIN 5 s PARTITION BY k", "last not")


@dataclass
class State:
    """What Spark keeps for a bucket, as its function sees it."""

    now_ms: int
    blob: bytes | None = None
    due_ms: int = NEVER

    @property
    def exists(self) -> bool:
        return self.blob is not None

    @property
    def get(self) -> tuple[bytes | None]:
        return (self.blob,)

    def update(self, value: tuple[bytes]) -> None:
        self.blob = value[0]

    def getCurrentProcessingTimeMs(self) -> int:  # noqa: N802 - Spark's name
        return self.now_ms

    def setTimeoutDuration(self, ms: int) -> None:  # noqa: N802 - Spark's name
        assert ms > 0, "Spark refuses it"
        self.due_ms = self.now_ms + ms


@dataclass
class Stream:
    """A stream whose batches begin when the test says so. Steps are run again, from the state that is on disk."""

    spec: Spec
    random: Random
    buckets: int = 3
    states: dict[int, State] = field(default_factory=dict)
    found: list[pa.Table] = field(default_factory=list)
    held: int = 0

    def batch(self, rows: Sequence[Event], now_us: int) -> None:
        """Run a batch: rows for all buckets, and then those whose time is over, as Spark does."""
        now, packs = now_us // 1000, self._packed(rows)
        due = [bucket for bucket, state in self.states.items() if state.due_ms < now]
        calls = {bucket: [pd.DataFrame(mine)] for bucket, mine in packs.items()}
        for bucket in due:
            calls.setdefault(bucket, [pd.DataFrame([], columns=["rows"])])
        counted = [self._call(bucket, frames, now) for bucket, frames in calls.items()]
        if not counted:
            return
        held = sum(each["held"] for each in counted)
        left = sum(each[name] for each in counted for name in ("processed", "late", "malformed", "shed"))
        assert self.held + sum(each["rows"] for each in counted) == left + held
        self.held = held
        assert len({self.time(bucket) for bucket in self.states}) == 1, "buckets do not agree about the time"

    def kept(self, bucket: int) -> dict[str, Any]:
        return _kept(self.states[bucket])

    def time(self, bucket: int) -> tuple[int, int, int]:
        return _times(self.states[bucket])

    def table(self) -> pa.Table:
        return pa.concat_tables(self.found) if self.found else self.spec.results.empty_table()

    def _packed(self, rows: Sequence[Event]) -> dict[int, list[dict[str, Any]]]:
        buckets = self.buckets if self.spec.by else 1
        table = table_of(rows, self.spec)
        table = table.append_column(BUCKET, pa.array(_bucket_of(table, self.spec, buckets)))
        found: dict[int, list[dict[str, Any]]] = {}
        for batch in Pack(self.spec, range(buckets))(table.to_batches()):
            for row in batch.to_pylist():
                found.setdefault(row["bucket"], []).append(row)
        return found

    def _call(self, bucket: int, frames: list[pd.DataFrame], now: int) -> dict[str, Any]:
        buckets = self.buckets if self.spec.by else 1
        before, attempts = self.states.get(bucket, State(now)), []
        for _ in range(1 + (self.random.random() < 0.4)):
            if self.random.random() < 0.4:
                Bucket.forget_live()
            state = State(now, before.blob)
            steps = Step(self.spec, tuple(range(buckets)))((bucket,), iter(frames), state)  # type: ignore[arg-type]
            tables = [from_bytes(packed) for frame in steps for packed in frame["rows"]]
            attempts.append((state, tables))
        assert len({(state.due_ms, _times(state), _told(tables)) for state, tables in attempts}) == 1, (
            "not the same again"
        )
        self.states[bucket], tables = attempts[-1]
        self.found += tables
        (counts,) = [row for table in tables for row in table.column(COUNTS).to_pylist() if row is not None]
        return dict(counts)


def _kept(state: State) -> dict[str, Any]:
    assert state.blob is not None
    return dict(unpack(state.blob))


def _times(state: State) -> tuple[int, int, int]:
    kept = _kept(state)
    return kept["newest_us"], kept["passed_us"], kept.get("clock_us", 0)


def _told(tables: list[pa.Table]) -> str:
    """Return what an attempt gives, but for the times at which it was made."""
    rows = [row for table in tables for row in table.drop_columns(["detected_ts"]).to_pylist()]
    return repr([row | {COUNTS: row[COUNTS] and row[COUNTS] | {"work_us": 0}} for row in rows])


def idle_spec(query: ast.Query, **options: Any) -> Spec:
    return spec_for(query, **{"idle_us": IDLE_US, **options})


def run_in_real_time(spec: Spec, rows: list[Event], random: Random) -> Stream:
    """Rows arrive up to the watermark after their time; batches begin when rows are there, and also when none are.

    As time passes no faster than the clock, and events are late by less than the watermark, none must come out as late.
    """
    delay = spec.watermark_us or 1
    arrived = sorted((event.ts + random.randrange(delay), number, event) for number, event in enumerate(rows))
    stream, start = Stream(spec, random), 0
    while start < len(arrived):
        stop = min(len(arrived), start + random.randint(1, 1 + len(arrived) // 3))
        while stop < len(arrived) and arrived[stop][0] // 1000 == arrived[stop - 1][0] // 1000:
            stop += 1  # Spark's clock would not tell them apart
        now = -(-arrived[stop - 1][0] // 1000) * 1000
        stream.batch([event for _, _, event in arrived[start:stop]], now)
        following = arrived[stop][0] if stop < len(arrived) else now + 40 * SECOND
        while (now := now + random.choice([SECOND, 3 * SECOND, 60 * SECOND, 1800 * SECOND])) < following:
            stream.batch([], now)
        start = stop
    stream.batch([], now + 100 * DAY)
    return stream


# --- without Spark ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("watermark_us", [None, DELAY_US])
def test_a_stream_that_pauses_and_goes_quiet_gives_what_one_process_gives(watermark_us: int | None) -> None:
    decided = 0
    for seed, case in enumerate(seeded(CASES, 210_000), start=210_000):
        spec = idle_spec(case.query, watermark_us=watermark_us)
        if waits_for_events(spec) or not case.events:
            continue
        stream = run_in_real_time(spec, in_order(case.events), Random(seed))
        found, expected = stream.table(), in_one_process(case)
        assert LATE not in found.column(OUTPUT).to_pylist(), f"seed {seed}: {case!r}"
        assert found_in(found, case.query) == expected, f"seed {seed}: {case!r}"
        assert stream.held == 0
        decided += bool(expected)
    assert decided > CASES / 4


def test_runs_time_out() -> None:
    told = 0
    for seed, case in plain(range(230_000, 230_060)):
        if counts_events(case.query) or not case.events:
            continue
        spec = idle_spec(case.query, ended=True, watermark_us=DELAY_US)
        stream = run_in_real_time(spec, in_order(case.events), Random(seed))
        assert told_in(stream.table(), case.query) == in_one(case.query, case.events), f"seed {seed}: {case!r}"
        told += ENDED in stream.table().column(OUTPUT).to_pylist()
    assert told >= 6


def event(kind: str, seconds: float, seq: int, key: str = "p") -> Event:
    return Event(kind, START + round(seconds * SECOND), seq, {"k": key})


def found(stream: Stream, name: str = "matches") -> list[dict[str, Any]]:
    table = stream.table()
    return list(table.filter(pc.equal(table.column(OUTPUT), name)).to_pylist())


def test_when_time_begins_to_pass() -> None:
    stream = Stream(idle_spec(LAST_NOT, watermark_us=SECOND), Random(0))
    stream.batch([event("A", 0, 0), event("A", 0, 1, "q")], START)
    stream.batch([], START + IDLE_US - SECOND)
    assert stream.time(0)[0] == START, "not before `idle` is over"
    stream.batch([], START + 5 * SECOND)
    assert stream.time(0) == (START + 5 * SECOND, START + 4 * SECOND, START + 5 * SECOND)
    assert found(stream) == []
    stream.batch([], START + 5 * SECOND + IDLE_US // 2)
    assert stream.time(0)[0] == START + 5 * SECOND, "and then again when it is over once more"
    stream.batch([], START + 9 * SECOND)
    assert sorted(row["a"][0]["seq"] for row in found(stream)) == [0, 1]
    assert {row["known_ts"] for row in found(stream)} == {datetime.fromtimestamp(START / 1e6 + 5, UTC)}


def test_rows_that_are_before_the_moved_time_are_late() -> None:
    stream = Stream(idle_spec(LAST_NOT, watermark_us=SECOND), Random(0))
    stream.batch([event("A", 0, 0)], START)
    stream.batch([], START + 10 * SECOND)
    rows = [event("B", 8.9, 1), event("B", 9.0, 2), event("A", 11, 3)]
    stream.batch(rows, START + 11 * SECOND)
    assert [row["event"]["seq"] for row in found(stream, LATE)] == [1]
    assert [row["a"][0]["seq"] for row in found(stream)] == [0]
    assert stream.time(0)[0] == START + 11 * SECOND


def test_rows_that_are_no_events_do_not_end_a_pause() -> None:
    stream = Stream(idle_spec(LAST_NOT), Random(0))
    stream.batch([event("A", 0, 0)], START)
    bad = replace(event("A", 0, 1), ts=2**63 - 1)
    for second in range(1, 8):
        stream.batch([bad], START + second * SECOND)
    assert [row["a"][0]["seq"] for row in found(stream)] == [0]
    assert len(found(stream, "malformed")) == 7


def test_without_the_option_nothing_is_asked_and_nothing_is_kept() -> None:
    stream = Stream(spec_for(LAST_NOT), Random(0))
    stream.batch([event("A", 0, 0)], START)
    assert {state.due_ms for state in stream.states.values()} == {NEVER}
    assert "clock_us" not in stream.kept(0)


def test_a_state_from_before_there_was_a_clock_goes_on() -> None:
    """The clock begins with the next rows."""
    stream = Stream(spec_for(LAST_NOT), Random(0))
    stream.batch([event("A", 0, 0)], START)
    assert stream.kept(0)["version"] == VERSION == 3
    stream.spec = idle_spec(LAST_NOT)
    stream.batch([event("C", 1, 1)], START + 100 * SECOND)
    assert stream.time(0) == (START + SECOND, START + SECOND, START + 100 * SECOND)
    stream.batch([], START + 105 * SECOND)
    assert [row["a"][0]["seq"] for row in found(stream)] == [0]


def test_another_length_is_taken_by_buckets_that_are_still_in_memory() -> None:
    stream = Stream(idle_spec(LAST_NOT), Random(0))
    stream.batch([event("A", 0, 0)], START)
    stream.spec = idle_spec(LAST_NOT, idle_us=60 * SECOND)
    stream.batch([], START + 10 * SECOND)
    assert stream.time(0)[0] == START


# --- on Spark -----------------------------------------------------------------------------------------------------

SCHEMA = "type string, ts timestamp, card string, v bigint, id bigint"
ALERT = pk.parse("PATTERN SEQ(A a, NOT B b) WITHIN 2 s PARTITION BY card RETURN a.v AS v", "alert")
PATIENCE_S = 60


def waited(is_so: Callable[[], bool], seconds: float = PATIENCE_S) -> bool:
    last = time.monotonic() + seconds
    while not is_so() and time.monotonic() < last:
        time.sleep(0.2)
    return is_so()


def stop(query: Any) -> None:
    """Stop between two batches, if one does not follow the other: else Spark logs a stack trace of many lines."""
    waited(lambda: not query.status["isTriggerActive"], 3)
    query.stop()


def rows_of(*rows: tuple[str, float, str, int]) -> pa.Table:
    """Return events: types, seconds, cards, numbers."""
    kinds, seconds, cards, numbers = zip(*rows, strict=True)
    ts = pa.array([START + round(second * SECOND) for second in seconds]).cast(pa.timestamp("us", "UTC"))
    whole = pa.array(numbers, pa.int64())
    return pa.table({"type": kinds, "ts": ts, "card": cards, "v": whole, "id": whole})


def asked(stream: DataFrame, **options: Any) -> DataFrame:
    return stream.transform(detect(ALERT, seq="id", outputs=["matches", "late"], watermark="1 s", **options))


def started(stream: DataFrame, folder: Path, **options: Any) -> Any:
    (folder / "out").mkdir(parents=True, exist_ok=True)
    writer = asked(stream, **options).writeStream.format("parquet").option("path", str(folder / "out"))
    return writer.option("checkpointLocation", str(folder / "state")).trigger(processingTime="1 second").start()


def results(frame: DataFrame, folder: Path, name: str) -> list[int]:
    """Return what has come out so far: perhaps nothing, so files need not tell the schema."""
    reader = frame.sparkSession.read.schema(frame.schema)
    return sorted(row.v for row in output(reader.parquet(str(folder / "out")), name).collect())


def counts(query: Any) -> list[Any]:
    return [each.observedMetrics["penstock"] for each in query.recentProgress if each.numInputRows]


def test_an_alert_comes_without_any_further_row(either: SparkSession, tmp_path: Path) -> None:
    spark = either
    files(rows_of(("A", 0, "x", 1), ("A", 0.1, "y", 2), ("B", 1, "y", 3)), tmp_path / "in", 1)
    stream = spark.readStream.schema(SCHEMA).parquet(str(tmp_path / "in"))
    found, waiting, other = asked(stream), tmp_path / "waiting", tmp_path / "other"
    without, query = started(stream, other), started(stream, waiting, idle="1 s")
    assert waited(lambda: results(found, waiting, "matches") == [1])
    without.processAllAvailable()
    assert results(found, other, "matches") == [], "without `idle`, only a further row tells that time has passed"
    stop(without)
    stop(query)
    # It goes on from its checkpoint: what is before the time that has passed is late.
    files(rows_of(("B", 0.5, "x", 4)), tmp_path / "in", 1, 1)
    query = started(stream, waiting, idle="1 s")
    assert waited(lambda: results(found, waiting, "late") == [4])
    if type(spark) is SparkSession:  # a Connect session gives counts another form
        assert waited(lambda: [(each.rows, each.late) for each in counts(query)] == [(1, 1)])
    stop(query)
    assert results(found, waiting, "matches") == [1]


def test_a_checkpoint_keeps_its_idle_or_its_none(spark: SparkSession, tmp_path: Path) -> None:
    files(rows_of(("A", 0, "x", 1)), tmp_path / "in", 1)
    stream = spark.readStream.schema(SCHEMA).parquet(str(tmp_path / "in"))
    query = started(stream, tmp_path)
    query.processAllAvailable()
    stop(query)
    files(rows_of(("A", 1, "x", 2)), tmp_path / "in", 1, 1)
    query = started(stream, tmp_path, idle="1 s")
    with pytest.raises(Exception, match="STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE") as caught:
        query.awaitTermination(PATIENCE_S)
    assert reason_of(str(caught.value)).startswith("the checkpoint was made with `idle` and this job has none, or the")


def test_a_pause_of_nothing_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    frame = frame_of(spark, events(5), tmp_path)
    with pytest.raises(DetectError, match="idle='0 s' is less than a millisecond\n  fix: give the longest pause"):
        frame.transform(detect(ALERT, idle="0 s"))
