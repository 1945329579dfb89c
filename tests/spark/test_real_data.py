"""Recorded streams: a batch, a stream and one process find the same in them. The data lie beside the repository."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
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
FILES = 4
FRAUD = """
    PATTERN SEQ(payment a, payment b, payment c)
    WHERE a.TX_AMOUNT < b.TX_AMOUNT AND b.TX_AMOUNT < c.TX_AMOUNT AND c.TX_AMOUNT > 3 * a.TX_AMOUNT
    WITHIN 12 h
    PARTITION BY CUSTOMER_ID
    RETURN c.TX_AMOUNT - a.TX_AMOUNT AS rise
"""
LEADERS = (
    "PATTERN SEQ(AAPL a, MSFT b, AMZN c) WHERE a.close > a.open AND b.close > b.open AND c.close > c.open WITHIN 3 min"
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


def ids(frame: DataFrame, variables: str) -> Counter[Any]:
    lists = frame.selectExpr(*(f"transform({v}, e -> e.id) AS {v}" for v in variables)).collect()
    return Counter(tuple(tuple(row[v]) for v in variables) for row in lists)


@pytest.mark.parametrize(("text", "make"), [(FRAUD, payments), (LEADERS, bars)], ids=["payments", "bars"])
def test_a_batch_and_a_stream_find_what_one_process_finds(
    spark: SparkSession, tmp_path: Path, text: str, make: Any
) -> None:
    table, query = make(), pk.parse(text, "recorded")
    engine = pk.Engine(query, seq="id")
    found = engine.process(table) + engine.flush()
    expected = Counter(tuple(match[v] for v in "abc") for match in found)
    assert len(expected) > 50
    files(table, tmp_path / "in", FILES)
    events = spark.read.parquet(str(tmp_path / "in"))
    assert ids(events.transform(detect(query, seq="id")), "abc") == expected
    reader = spark.readStream.schema(events.schema).option("maxFilesPerTrigger", 1)
    stream = reader.parquet(str(tmp_path / "in")).transform(detect(query, seq="id"))
    run_stream(spark, stream, tmp_path / "out", tmp_path / "checkpoint")
    assert ids(spark.read.parquet(str(tmp_path / "out")), "abc") == expected
