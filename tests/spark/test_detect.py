"""`detect` on real Spark sessions: a batch, a stream with restarts, and one process find the same."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import penstock as pk
from penstock.spark import DetectError, detect, output
from tests.spark.frames import events, frame_of, in_one_process, on_spark

TEXTS = {
    "pairs": "SEQ(A a, B b) WHERE a.v < b.v WITHIN 10 s PARTITION BY card RETURN b.v - a.v AS gap",
    "same": "SEQ(A a, B b, C c) WHERE SAME[card] AND a.v < c.v WITHIN 20 s",
    "no key": "SEQ(A a, B b, C c) WHERE a.v < b.v AND b.v < c.v WITHIN 4 s",
    "last not": "SEQ(A a, B b, NOT C c) WITHIN 5 s PARTITION BY card",
    "list": "SEQ(A a, B+ b[], C c) WHERE b[i].v > b[i-1].v WITHIN 5 s PARTITION BY card SELECT FIRST RETURN COUNT(b[])",
    "windows": "SEQ(A a, B b) WITHIN 8 s PARTITION BY card WINDOW 8 s EVERY 4 s SELECT LAST CONSUME ALL",
    "counted": "SEQ(A a, B b) WITHIN 6 EVENTS PARTITION BY card",
    "strict": "SEQ(A a, B b) WITHIN 5 s PARTITION BY card SELECT STRICT",
}
QUERIES = {name: pk.parse(f"PATTERN {text}", name) for name, text in TEXTS.items()}
KEYED = [QUERIES[name] for name in ("pairs", "same", "last not", "list", "windows", "counted", "strict")]
END = {"id": 10**9, "type": "end", "ts": 1_800_000_000_000_000, "card": "0"}  # lets all time pass


def files(table: pa.Table, folder: Path, count: int, first: int = 0) -> None:
    """Write events as a number of files, in order: Spark reads them by the times at which they were changed."""
    folder.mkdir(exist_ok=True)
    size = -(-len(table) // count)
    for number in range(count):
        path = folder / f"{first + number:04}.parquet"
        pq.write_table(table.slice(number * size, size), path)
        os.utime(path, (1_700_000_000 + first + number,) * 2)


def ended(table: pa.Table) -> pa.Table:
    """Return events, then one that is late enough for all to be known."""
    end = {name: pa.array([END.get(name)], pa.int64() if name == "ts" else kind) for name, kind in _kinds(table)}
    end["ts"] = end["ts"].cast(table.schema.field("ts").type)
    return pa.concat_tables([table, pa.table(end)])


def _kinds(table: pa.Table) -> list[tuple[str, pa.DataType]]:
    return [(each.name, each.type) for each in table.schema]


def run_stream(spark: SparkSession, frame: DataFrame, out: Path, checkpoint: Path) -> Any:
    """Process all that is there, and end."""
    writer = frame.writeStream.format("parquet").option("path", str(out)).option("checkpointLocation", str(checkpoint))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    return query


@pytest.mark.parametrize("name", TEXTS)
def test_a_batch_finds_what_one_process_finds(spark: SparkSession, tmp_path: Path, name: str) -> None:
    table = events(400)
    frame = frame_of(spark, table, tmp_path).orderBy(sf.rand(1))
    found = frame.transform(detect(QUERIES[name], seq="id"))
    expected = in_one_process(QUERIES[name], table)
    assert expected, "the query finds nothing in these events"
    assert on_spark(found, [QUERIES[name]]) == expected


def test_a_stream_with_restarts_finds_what_one_process_finds(spark: SparkSession, tmp_path: Path) -> None:
    table = events(600)
    expected = in_one_process(KEYED, table)
    source, out, checkpoint = tmp_path / "in", tmp_path / "out", tmp_path / "checkpoint"
    source.mkdir()
    reader = spark.readStream.schema(frame_of(spark, table, tmp_path / "all").schema)
    frame = reader.option("maxFilesPerTrigger", 2).parquet(str(source))
    found = frame.transform(detect(KEYED, by="card", seq="id"))
    rows = 0
    for first in (0, 200, 400):
        last = ended(table.slice(first)) if first == 400 else table.slice(first, 200)
        files(last, source, 4, first)
        query = run_stream(spark, found, out, checkpoint)
        rows += sum(progress.observedMetrics["penstock"].rows or 0 for progress in query.recentProgress)
    assert on_spark(spark.read.parquet(str(out)), KEYED) == expected
    assert rows == len(table) + 1


def test_rows_out_of_order_wait_for_the_watermark(spark: SparkSession, tmp_path: Path) -> None:
    table = events(300)
    at = table.column("ts").cast(pa.int64()).to_pylist()
    mixed = sorted(range(len(table)), key=lambda row: at[row] + (row * 7919) % 2_000_000)
    shuffled = ended(table.take(pa.array(mixed)))
    files(shuffled, tmp_path / "in", 5)
    frame = spark.readStream.schema(frame_of(spark, table, tmp_path / "all").schema)
    stream = frame.option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in"))
    found = stream.transform(detect(QUERIES["pairs"], seq="id", watermark="2 s"))
    run_stream(spark, found, tmp_path / "out", tmp_path / "checkpoint")
    matches = spark.read.parquet(str(tmp_path / "out"))
    assert on_spark(matches, [QUERIES["pairs"]]) == in_one_process(QUERIES["pairs"], table)
    assert all(row.gap == row.b[0].v - row.a[0].v for row in matches.collect())


def test_late_and_malformed_rows_come_out_with_their_reason(spark: SparkSession, tmp_path: Path) -> None:
    schema = "type string, ts timestamp, card string, v bigint, id bigint"
    good = "A 2024-01-01T00:00:10 x 1 1", "B 2024-01-01T00:00:12 x 2 2"
    bad = "A - x 1 3", "- 2024-01-01T00:00:13 x 1 4", "B 2024-01-01T00:00:14 x 9007199254740993 5"
    more = "A 2024-01-01T00:00:01 x 1 6", "Zzz 2024-01-01T00:00:20 x 1 7", "B 2024-01-01T00:00:14 x 3 2"
    for number, lines in enumerate([good + bad, more, [f"B 2024-01-01T00:00:21 {'y' * 50_000_000} 3 8"]]):
        rows = [[None if part == "-" else part for part in line.split(" ")] for line in lines]
        table = pa.table(
            {
                "type": pa.array([row[0] for row in rows]),
                "ts": pa.array([row[1] for row in rows]).cast(pa.timestamp("us")).cast(pa.timestamp("us", "UTC")),
                "card": pa.array([row[2] for row in rows]),
                "v": pa.array([int(str(row[3])) for row in rows]),
                "id": pa.array([int(str(row[4])) for row in rows]),
            }
        )
        files(table, tmp_path / "in", 1, number)
    stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in"))
    found = stream.transform(detect(QUERIES["pairs"], seq="id", outputs=["matches", "late", "malformed"]))
    query = run_stream(spark, found, tmp_path / "out", tmp_path / "checkpoint")
    results = spark.read.parquet(str(tmp_path / "out"))
    malformed = {row.id: row.reason for row in output(results, "malformed").collect()}
    assert malformed == {
        2: "another event has the same id",
        3: "no ts: an event needs a time",
        4: "no type: an event needs a type",
        5: "v is beyond 2**53, not exact as a float: give it as text",
    }
    assert [(row.id, "watermark" in row.reason) for row in output(results, "late").collect()] == [(6, True)]
    assert [(row.a[0].id, row.b[0].id) for row in output(results, "matches").collect()] == [(1, 2)]
    counts = [progress.observedMetrics["penstock"] for progress in query.recentProgress if progress.numInputRows]
    assert [c.rows for c in counts] == [5, 3, 1]
    assert all(c.rows == c.processed + c.late + c.malformed + c.shed for c in counts)


def test_one_key_with_most_of_the_rows_is_no_trouble(spark: SparkSession, tmp_path: Path) -> None:
    table = events(5_000, keys=3)
    mostly = pa.array(["hot" if row % 10 else key for row, key in enumerate(table.column("card").to_pylist())])
    table = table.set_column(3, "card", mostly)
    found = frame_of(spark, table, tmp_path).transform(detect(QUERIES["pairs"], seq="id"))
    assert on_spark(found, [QUERIES["pairs"]]) == in_one_process(QUERIES["pairs"], table)


def test_spark_connect_gives_the_same(connect: SparkSession, tmp_path: Path) -> None:
    table = events(300)
    expected = in_one_process(KEYED, table)
    frame = frame_of(connect, table, tmp_path / "all")
    asked = detect(KEYED, by=sf.col("card"), seq="id", time=sf.col("ts"))
    assert on_spark(frame.transform(asked), KEYED) == expected
    files(ended(table), tmp_path / "in", 3)
    stream = connect.readStream.schema(frame.schema).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in"))
    run_stream(connect, stream.transform(asked), tmp_path / "out", tmp_path / "checkpoint")
    assert on_spark(connect.read.parquet(str(tmp_path / "out")), KEYED) == expected


def test_times_may_be_whole_microseconds(spark: SparkSession, tmp_path: Path) -> None:
    table = events(100)
    frame = frame_of(spark, table, tmp_path).withColumn("ts", sf.unix_micros("ts"))
    found = on_spark(frame.transform(detect(QUERIES["pairs"], seq="id")), [QUERIES["pairs"]])
    assert found == in_one_process(QUERIES["pairs"], table)


# --- mistakes -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"time": "tss"}, "time='tss': there is no such column\n  fix: did you mean 'ts'?"),
        (
            {"type": "v"},
            "type='v': the column is of type bigint; it must be texts\n"
            "  fix: give another column, or type=sf.col('v').cast(\"string\")",
        ),
        ({"by": "x", "seq": "id"}, "by=['x'], but pairs says PARTITION BY card\n  fix: leave by= out, or PARTITION BY"),
        (
            {"watermark": "10 parsecs"},
            "'10 parsecs' is no duration\n  fix: write it as in '10 seconds', '5 min', '1.5 s'",
        ),
    ],
)
def test_mistakes_are_told_before_anything_runs(spark: SparkSession, tmp_path: Path, options: Any, told: str) -> None:
    frame = frame_of(spark, events(5), tmp_path)
    with pytest.raises(DetectError) as error:
        frame.transform(detect(QUERIES["pairs"], **options))
    assert str(error.value) == told


def test_a_column_that_is_no_key_is_told(spark: SparkSession, tmp_path: Path) -> None:
    frame = frame_of(spark, events(5), tmp_path)
    with pytest.raises(DetectError) as error:
        frame.transform(detect(QUERIES["pairs"], by=sf.array("card").alias("cards")))
    assert str(error.value) == (
        "by='cards': a column of type array<string> is no key\n"
        "  fix: give a column of texts, numbers, truth values or times, such as a field of it"
    )


def test_a_query_that_does_not_fit_the_frame_is_told_as_penstock_check_tells(
    spark: SparkSession, tmp_path: Path
) -> None:
    frame = frame_of(spark, events(5), tmp_path)
    with pytest.raises(pk.QueryError, match="A has no attribute vv") as error:
        frame.transform(detect(pk.parse("PATTERN SEQ(A a, B b) WHERE a.vv < b.x WITHIN 1 s")))
    assert "did you mean a.v?" in str(error.value)


def test_names_that_spark_does_not_tell_apart(spark: SparkSession, tmp_path: Path) -> None:
    frame = frame_of(spark, events(5), tmp_path)
    query = pk.parse("PATTERN SEQ(A a, B b, C A) WITHIN 5 s", "both")
    with pytest.raises(
        DetectError, match="there is a column a and a column A, which Spark does not tell apart\n  fix:"
    ):
        frame.transform(detect(query))


def test_a_checkpoint_of_another_query_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    table = events(50)
    files(table, tmp_path / "in", 1)
    schema = frame_of(spark, table, tmp_path / "all").schema
    stream = spark.readStream.schema(schema).parquet(str(tmp_path / "in"))
    run_stream(spark, stream.transform(detect(QUERIES["pairs"], seq="id")), tmp_path / "out", tmp_path / "checkpoint")
    files(table.slice(0, 0), tmp_path / "in", 1, 1)
    files(ended(table.slice(0, 0)), tmp_path / "in", 1, 2)
    changed = pk.parse(f"PATTERN {TEXTS['pairs']}".replace("10 s", "11 s"), "pairs")
    with pytest.raises(Exception, match="belongs to another detection"):
        run_stream(spark, stream.transform(detect(changed, seq="id")), tmp_path / "out", tmp_path / "checkpoint")
