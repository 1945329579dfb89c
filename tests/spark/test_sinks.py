"""Sinks that write each batch once."""

from __future__ import annotations

import io
import json
import os
import pickle
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import penstock as pk
from penstock.spark import detect
from penstock.spark.sinks.once import (
    CheckpointId,
    Fanout,
    FilesByBatch,
    Lines,
    ParquetByBatch,
    SinkError,
    keys_of,
    local,
    own,
)

START_US = 1_700_000_000_000_000


def numbers(spark: SparkSession, *given: int) -> DataFrame:
    return spark.createDataFrame([(each,) for each in given], "n int")


def content(spark: SparkSession, folder: Path) -> list[tuple[int, int]]:
    return sorted((row.batch_id, row.n) for row in spark.read.parquet(str(folder)).collect())


class TestWithoutSpark:
    @pytest.mark.parametrize(
        ("path", "expected"),
        [
            ("/a b/c", "/a b/c"), ("file:/a/b", "/a/b"), ("file:///a/b", "/a/b"), ("/a:b/c", "/a:b/c"),
            ("hdfs://host/a", None), ("s3a://bucket/a", None),
        ],
    )  # fmt: skip
    def test_local_paths(self, path: str, expected: str | None) -> None:
        assert local(path) == (None if expected is None else Path(expected))
        assert local("a") == Path.cwd() / "a"

    def test_a_folder_is_one_streams(self, tmp_path: Path) -> None:
        own(tmp_path, "one")
        own(tmp_path, "one")
        with pytest.raises(SinkError, match="holds the batches of another checkpoint"):
            own(tmp_path, "two")

    def test_a_folder_with_batches_that_nobody_owns(self, tmp_path: Path) -> None:
        (tmp_path / "batch_id=00000000").mkdir()
        with pytest.raises(SinkError, match="fix: go on from that checkpoint, or write into another folder"):
            own(tmp_path, "one")

    def test_sinks_travel(self, tmp_path: Path) -> None:
        """Spark Connect sends what `foreachBatch` calls to its server."""
        sinks = Fanout({"matches": ParquetByBatch(tmp_path, CheckpointId(tmp_path)), "late": Lines("late")})
        assert set(pickle.loads(pickle.dumps(sinks)).sinks) == {"matches", "late"}


class TestFiles:
    def test_a_batch_that_is_there_stays_as_it_is(self, spark: SparkSession, tmp_path: Path) -> None:
        folder = tmp_path / "a folder"
        sink = ParquetByBatch(folder)
        assert sink.write(numbers(spark, 1, 2), 0)
        assert sink.write(numbers(spark, 3), 12)
        before = sorted(folder.rglob("*.parquet"))
        assert not sink.write(numbers(spark, 4), 12)
        assert not ParquetByBatch(folder).write(numbers(spark, 4), 0)
        assert sorted(folder.rglob("*.parquet")) == before
        assert sorted(path.name for path in folder.iterdir()) == ["batch_id=00000000", "batch_id=00000012"]
        assert content(spark, folder) == [(0, 1), (0, 2), (12, 3)]

    def test_attempts_that_did_not_end_are_not_read_and_go(self, spark: SparkSession, tmp_path: Path) -> None:
        ParquetByBatch(tmp_path).write(numbers(spark, 1), 0)
        left = tmp_path / "_attempt-00000001-0"
        shutil.copytree(tmp_path / "batch_id=00000000", left)
        assert content(spark, tmp_path) == [(0, 1)]
        ParquetByBatch(tmp_path).write(numbers(spark, 2), 1)
        assert not left.exists()
        assert content(spark, tmp_path) == [(0, 1), (1, 2)]

    def test_an_attempt_that_fails_leaves_nothing(self, spark: SparkSession, tmp_path: Path) -> None:
        broken = numbers(spark, 1).withColumn("n", sf.expr("raise_error('no')"))
        with pytest.raises(Exception, match="no"):
            ParquetByBatch(tmp_path).write(broken, 0)
        assert list(tmp_path.iterdir()) == []

    def test_another_attempt_that_was_first(
        self, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        rename = os.rename

        def late(source: Any, target: Any) -> None:
            shutil.copytree(source, target)
            rename(source, target)

        monkeypatch.setattr("penstock.spark.sinks.once.os.rename", late)
        assert not ParquetByBatch(tmp_path).write(numbers(spark, 1), 0)
        assert content(spark, tmp_path) == [(0, 1)]

    def test_a_folder_that_cannot_be_made(self, spark: SparkSession, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        with pytest.raises(SinkError, match="cannot be written"):
            ParquetByBatch(tmp_path / "file" / "folder").write(numbers(spark, 1), 0)

    def test_a_column_of_the_same_name(self, spark: SparkSession, tmp_path: Path) -> None:
        with pytest.raises(SinkError, match="fix: rename it"):
            ParquetByBatch(tmp_path).write(numbers(spark, 1).withColumn("batch_id", sf.lit(1)), 0)

    def test_elsewhere_a_batch_is_replaced(
        self, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("penstock.spark.sinks.once.local", lambda path: None)
        sink = ParquetByBatch(f"file://{tmp_path}")
        assert sink.write(numbers(spark, 1, 2), 0)
        assert sink.write(numbers(spark, 3, 4), 1)
        assert sink.write(numbers(spark, 3), 1)
        assert content(spark, tmp_path) == [(0, 1), (0, 2), (1, 3)]
        assert {path.name for path in tmp_path.glob("batch_id=*")} == {"batch_id=00000000", "batch_id=00000001"}

    def test_json_keeps_microseconds(self, spark: SparkSession, tmp_path: Path) -> None:
        FilesByBatch(tmp_path, "json").write(spark.range(1).select(sf.expr("timestamp_micros(1)").alias("at")), 0)
        text = "".join(file.read_text() for file in tmp_path.glob("*/*.json"))
        assert json.loads(text) == {"at": "1970-01-01T00:00:00.000001Z"}


class Kept(ParquetByBatch):
    """Remembers which batches were written."""

    written: list[int]

    def write(self, frame: DataFrame, batch_id: int) -> bool:
        found = super().write(frame, batch_id)
        if found:
            self.written = [*getattr(self, "written", []), batch_id]
        return found


def write_events(folder: Path, number: int) -> None:
    """Write five pairs, and a row without a type."""
    times: Any = pa.array([START_US + (20 * number + k) * 1_000_000 for k in range(11)])
    types = pa.array([*["A", "B"] * 5, None])
    folder.mkdir(exist_ok=True)
    file = folder / f"{number}.parquet"
    pq.write_table(pa.table({"type": types, "ts": times.cast(pa.timestamp("us", "UTC")), "k": ["x"] * 11}), file)
    os.utime(file, (1_700_000_000 + number,) * 2)


def test_a_stream_whose_driver_died_before_spark_knew(spark: SparkSession, tmp_path: Path) -> None:
    """A batch that is run again is worked off, so that the stream goes on, but not written again."""
    for number in range(2):
        write_events(tmp_path / "in", number)
    rows = spark.readStream.schema("type string, ts timestamp, k string").option("maxFilesPerTrigger", 1)
    query = pk.parse("PATTERN SEQ(A a, B b) WITHIN 1 s PARTITION BY k", "pairs")
    state, wanted = tmp_path / "state", ["matches", "malformed"]
    found = rows.parquet(str(tmp_path / "in")).transform(detect(query, buckets=2, outputs=wanted))

    def run() -> list[list[int]]:
        sinks = {name: Kept(tmp_path / name, CheckpointId(state)) for name in wanted}
        writer = found.writeStream.foreachBatch(Fanout(sinks)).option("checkpointLocation", str(state))
        writer.trigger(availableNow=True).start().awaitTermination()
        return [getattr(sink, "written", []) for sink in sinks.values()]

    def died_after(batch: int) -> None:
        """Leave all as it is when a batch is written and Spark does not know it yet."""
        for path in (state / "commits").glob(f"*{batch}*"):
            path.unlink()

    assert run() == [[0, 1], [0, 1]]
    died_after(1)
    write_events(tmp_path / "in", 2)
    assert run() == [[2], [2]]
    died_after(2)
    shutil.rmtree(tmp_path / "malformed" / "batch_id=00000002")  # and before it was written to the second sink
    assert run() == [[], [2]]
    for name, count in (("matches", 5), ("malformed", 1)):
        counts = spark.read.parquet(str(tmp_path / name)).groupBy("batch_id").count()
        assert sorted(counts.collect()) == [(0, count), (1, count), (2, count)]


def test_on_connect_the_server_writes(connect: SparkSession, tmp_path: Path) -> None:
    write_events(tmp_path / "in", 0)
    rows = connect.readStream.schema("type string, ts timestamp, k string").parquet(str(tmp_path / "in"))
    query = pk.parse("PATTERN SEQ(A a, B b) WITHIN 1 s PARTITION BY k", "pairs")
    found = rows.transform(detect(query, buckets=2, outputs=["matches", "malformed"]))
    name = CheckpointId(tmp_path / "state")
    sinks = Fanout({each: ParquetByBatch(tmp_path / each, name) for each in ("matches", "malformed")})
    writer = found.writeStream.foreachBatch(sinks).option("checkpointLocation", str(tmp_path / "state"))
    writer.trigger(availableNow=True).start().awaitTermination()
    assert [len(pq.read_table(tmp_path / each)) for each in ("matches", "malformed")] == [5, 1]
    assert (tmp_path / "matches" / "_checkpoint").read_text().strip() == name(connect)


def test_lines(spark: SparkSession) -> None:
    stream = io.StringIO()
    Lines("late", stream).write(numbers(spark, 7), 0)
    assert stream.getvalue() == '{"output":"late","n":7}\n'


def test_keys_stand_between_query_and_window(spark: SparkSession) -> None:
    assert keys_of(spark.createDataFrame([], "query string, card string, shop int, window int, a int")) == [
        "card",
        "shop",
    ]
    assert keys_of(spark.createDataFrame([], "card string")) == []
