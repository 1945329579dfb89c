"""Recorded streams: a batch, a stream and one process find the same in them. The data lie beside the repository."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import penstock as pk
from penstock.spark import detect
from tests.spark.test_detect import files, run_stream

DATA = Path(__file__).parents[2].parent / "shared" / "data"
FILES = 5
VARIABLES = "abc"
FRAUD = """
    PATTERN SEQ(payment a, payment b, payment c)
    WHERE a.TX_AMOUNT < b.TX_AMOUNT AND b.TX_AMOUNT < c.TX_AMOUNT AND c.TX_AMOUNT > 3 * a.TX_AMOUNT
    WITHIN 12 h
    PARTITION BY CUSTOMER_ID
    RETURN c.TX_AMOUNT - a.TX_AMOUNT AS rise
"""
LEADERS = (
    "PATTERN SEQ(AAPL a, MSFT b, AMZN c) WHERE a.close > a.open AND b.close > b.open AND c.close > c.open WITHIN 3 min "
    "RETURN c.close / a.close AS ratio"
)

pytestmark = pytest.mark.skipif(not DATA.exists(), reason=f"the recorded data are not there: {DATA}")


def payments() -> pa.Table:
    """Return the first card payments."""
    table = pq.read_table(DATA / "card_transactions_simulated_2018.parquet").slice(0, 40_000)
    return table.append_column("kind", pa.repeat("payment", len(table))).rename_columns(
        ["id" if name == "TRANSACTION_ID" else "ts" if name == "TX_DATETIME" else name for name in table.column_names]
        + ["type"]
    )


def bars() -> pa.Table:
    """Return minute bars of some symbols, of two days."""
    table = pq.read_table(DATA / "us_minute_bars_2018.parquet").slice(0, 220_000)
    table = table.filter(pc.is_in(table.column("symbol"), pa.array(["AAPL", "MSFT", "AMZN", "GE", "F"])))
    table = table.rename_columns(["ts", "type", *table.column_names[2:]])
    return table.append_column("id", pa.array(range(len(table)), pa.int64()))


def told(frame: DataFrame, value: str) -> Counter[Any]:
    """Return matches: their events with all that they hold, and the RETURN value."""
    rows = frame.select("known_ts", *VARIABLES, value).collect()
    return Counter(
        (
            row.known_ts,
            *(tuple(tuple(sorted(event.asDict().items())) for event in row[v]) for v in VARIABLES),
            _rounded(row[value]),
        )
        for row in rows
    )


def expected_of(query: Any, table: pa.Table, value: str) -> Counter[Any]:
    """Return what one process finds in the same form; times are as Spark's session shows them."""
    engine = pk.Engine(query, seq="id")
    rows = {row["id"]: tuple(sorted((name, _local(each)) for name, each in row.items())) for row in table.to_pylist()}
    matches = (engine.process(table) + engine.flush()).to_arrow().to_pylist()
    return Counter(
        (_local(row["known_ts"]), *(tuple(rows[seq] for seq in row[v]) for v in VARIABLES), _rounded(row[value]))
        for row in matches
    )


def _local(value: Any) -> Any:
    return value.astimezone().replace(tzinfo=None) if isinstance(value, datetime) and value.tzinfo else value


def _rounded(value: Any) -> Any:
    return value if value is None else round(value, 6)


def cuts(size: int, random: Random) -> list[int]:
    """Return where some files end: between them, any number of rows."""
    return [*sorted(random.randint(0, size) for _ in range(FILES - 1)), size]


@pytest.mark.parametrize(
    ("text", "make", "value"), [(FRAUD, payments, "rise"), (LEADERS, bars, "ratio")], ids=["payments", "bars"]
)
def test_a_batch_and_a_stream_find_what_one_process_finds(
    spark: SparkSession, tmp_path: Path, text: str, make: Any, value: str
) -> None:
    """The stream stops twice and goes on from its checkpoint; where its batches end is left to chance."""
    table, query, random, start = make(), pk.parse(text, "recorded"), Random(text), 0
    expected = expected_of(query, table, value)
    assert expected.total() > 50
    files(table, tmp_path / "all", 2)
    events = spark.read.parquet(str(tmp_path / "all"))
    asked = detect(query, seq="id")
    assert told(events.transform(asked), value) == expected
    (tmp_path / "in").mkdir()
    reader = spark.readStream.schema(events.schema).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in"))
    batches = 0
    for number, stop in enumerate(cuts(len(table), random)):
        files(table.slice(start, stop - start), tmp_path / "in", 1, number)
        start = stop
        if number in (1, 2, FILES - 1):
            query_run = run_stream(spark, reader.transform(asked), tmp_path / "out", tmp_path / "checkpoint")
            batches += sum(each.numInputRows > 0 for each in query_run.recentProgress)
    assert batches == FILES
    assert told(spark.read.parquet(str(tmp_path / "out")), value) == expected
