"""Progress of streams: pure conversions, and the listener on real sessions."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import penstock as pk
from penstock.spark import detect
from penstock.spark.progress import Listener, Progress, Totals, quantile_ms
from penstock.spark.worker.results import LATENCIES, LATENCY_MS

COUNTS = {"rows": 100, "processed": 80, "late": 3, "malformed": 2, "shed": 5, "matches": 7, "runs": 11, "held": 20}
REASONS = {
    "shed_early": 3, "shed_overdue": 2, "shed_runs": 40, "shed_partly": 1, "judged_rows": 9,
    "judged": 8, "judged_lost": 2, "ended": 6,
}  # fmt: skip
QUERY, OTHER = UUID(int=1), UUID(int=2)


def histogram(**counts: int) -> list[int]:
    """Return how many are in the bins with these upper bounds in milliseconds, as in `ms5=3`."""
    found = [0] * LATENCIES
    for name, count in counts.items():
        found[LATENCY_MS.index(int(name.removeprefix("ms")))] = count
    return found


class TestQuantiles:
    def test_none_without_matches(self) -> None:
        assert quantile_ms([0] * LATENCIES, 0.5) is None

    def test_spread_evenly_within_a_bin(self) -> None:
        assert quantile_ms(histogram(ms200=4), 0.5) == 175
        assert quantile_ms(histogram(ms200=4), 1.0) == 200
        assert quantile_ms(histogram(ms1=2), 0.5) == 0.5

    def test_across_bins(self) -> None:
        found = histogram(ms100=50, ms500=49, ms1000=1)
        assert quantile_ms(found, 0.5) == 100
        assert quantile_ms(found, 0.99) == 500
        assert quantile_ms(found, 0.995) == 950

    def test_the_last_bin_has_no_upper_bound(self) -> None:
        assert quantile_ms([*[0] * (LATENCIES - 1), 5], 0.5) == 60_000


class TestProgress:
    def test_counts(self) -> None:
        found = Progress.of(
            3, 500, {**COUNTS, "latency": [histogram(ms5=4, ms50=1), histogram(ms50=3)], "work_us": 12}, held_before=10
        )
        assert (found.batch_id, found.seconds, found.rows_per_s) == (3, 0.5, 200)
        assert (found.rows, found.processed, found.late, found.malformed, found.shed) == (100, 80, 3, 2, 5)
        assert (found.matches, found.runs, found.held, found.held_before) == (7, 11, 20, 10)
        assert (found.p50_ms, found.adds_up, found.unaccounted) == (5, True, 0)

    def test_a_batch_without_rows_leaves_nulls(self) -> None:
        found = Progress.of(3, 0, dict.fromkeys([*COUNTS, "latency"]), held_before=20)
        assert (found.rows, found.held, found.rows_per_s, found.p99_ms, found.adds_up) == (0, 20, 0, None, True)

    @pytest.mark.parametrize(("name", "by", "lost"), [("processed", -1, 1), ("late", 2, -2), ("held", -1, 1)])
    def test_what_does_not_add_up(self, name: str, by: int, lost: int) -> None:
        found = Progress.of(3, 500, {**COUNTS, name: COUNTS[name] + by}, held_before=10)
        assert (found.adds_up, found.unaccounted) == (False, lost)

    def test_without_what_was_held_before_only_a_loss_is_sure(self) -> None:
        assert Progress.of(3, 500, COUNTS, None).adds_up
        assert Progress.of(3, 500, COUNTS, None).unaccounted is None
        assert not Progress.of(3, 500, {**COUNTS, "processed": 69}, None).adds_up

    def test_json(self) -> None:
        assert Progress.of(3, 500, {**COUNTS, **REASONS, "latency": [histogram(ms50=4)]}, 10).as_json() == {
            "batch": 3, "seconds": 0.5, "rows_per_s": 200.0, **COUNTS, **REASONS,
            "latency_ms": {"p50": 35.0, "p99": 49.7}, "adds_up": True,
        }  # fmt: skip


def test_totals() -> None:
    totals, one = Totals(), Progress.of(0, 500, {**COUNTS, "latency": [histogram(ms50=4)]}, 10)
    totals.add(one)
    totals.add(replace(one, batch_id=1, held=15))
    assert (totals.batches, totals.seconds, totals.rows, totals.matches, totals.held) == (2, 1.0, 200, 14, 15)
    assert totals.wrong == [1]
    assert totals.as_json()["latency_ms"] == {"p50": 35.0, "p99": 49.7}


class TestListener:
    def test_rows_held_back_are_carried_on(self) -> None:
        found: list[Progress] = []
        listener = Listener(found.append)
        listener.take(QUERY, 0, 1, {"rows": 10, "processed": 6, "held": 4})
        listener.take(OTHER, 0, 1, {"rows": 5, "processed": 5, "held": 0})
        listener.take(QUERY, 1, 1, {"rows": 10, "processed": 14, "held": 0})
        assert [each.held_before for each in found] == [0, 0, 4]
        assert (listener.totals.rows, listener.totals.wrong) == (25, [])

    def test_after_a_restart_it_is_not_known(self) -> None:
        listener = Listener()
        assert listener.take(QUERY, 7, 1, {"rows": 10, "processed": 14}).held_before is None
        assert listener.take(QUERY, 8, 1, {"rows": 10, "processed": 10}).held_before == 0

    def test_says_loudly_what_does_not_add_up(self, caplog: pytest.LogCaptureFixture) -> None:
        listener = Listener()
        with caplog.at_level(logging.ERROR):
            listener.take(QUERY, 0, 1, {"rows": 10, "processed": 8, "late": 1})
        assert caplog.messages == [
            "batch 0 does not add up: 0 held before + 10 rows came in, but 8 processed + 1 late + 0 malformed + 0 shed"
            " + 0 held; please report this as a bug of penstock"
        ]
        assert listener.totals.wrong == [0]

    def test_a_receiver_that_fails_does_not_stop_the_others(self, caplog: pytest.LogCaptureFixture) -> None:
        def fails(progress: Progress) -> None:
            raise ValueError("no")

        found: list[Progress] = []
        Listener(fails, found.append).take(QUERY, 0, 1, {"rows": 1, "processed": 1})
        assert len(found) == 1
        assert "a receiver of progress failed" in caplog.text


def worked_off(frame: DataFrame, batch_id: int) -> None:
    frame.write.format("noop").mode("overwrite").save()


def test_a_real_stream(either: SparkSession, tmp_path: Path) -> None:
    session = either
    start = 1_700_000_000_000_000
    for number in range(2):
        times: Any = pa.array([start + (10 * number + k) * 1_000_000 for k in range(10)]).cast(
            pa.timestamp("us", "UTC")
        )
        table = pa.table({"type": ["A", "B"] * 5, "ts": times, "at": times, "k": ["x"] * 10})
        (tmp_path / "in").mkdir(exist_ok=True)
        pq.write_table(table, tmp_path / "in" / f"{number}.parquet")
    query = pk.parse("PATTERN SEQ(A a, B b) WITHIN 1 s PARTITION BY k", "pairs")
    rows = session.readStream.schema("type string, ts timestamp, at timestamp, k string").parquet(str(tmp_path / "in"))
    found = rows.transform(detect(query, watermark="5 s", arrival="at", buckets=2))
    seen: list[Progress] = []
    listener = Listener(seen.append)
    session.streams.addListener(listener)
    try:
        writer = found.writeStream.foreachBatch(worked_off).option("checkpointLocation", str(tmp_path / "state"))
        writer.trigger(availableNow=True).start().awaitTermination()
        assert listener.ended.wait(60)
    finally:
        session.streams.removeListener(listener)
    (only,) = seen
    assert (only.batch_id, only.rows, only.processed, only.held, only.matches) == (0, 20, 14, 6, 7)
    assert only.adds_up
    assert only.p50_ms == 60_000  # they are years old
    assert only.seconds > 0
