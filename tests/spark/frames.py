"""Events for tests on Spark, and what one process finds in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

import penstock as pk
from penstock.pattern import ast

TYPES = ("A", "B", "C", "D")
START_US = 1_700_000_000_000_000


def events(count: int, keys: int = 7, seed: int = 0) -> pa.Table:
    """Return events in order, some of them at the same time, with missing values."""
    random = np.random.default_rng(seed)
    steps = random.choice([0, 200_000, 1_000_000, 1_500_000], count)
    values = random.integers(0, 50, count)
    return pa.table(
        {
            "id": pa.array(np.arange(count), pa.int64()),
            "type": pa.array(random.choice(TYPES, count)),
            "ts": pa.array(START_US + np.cumsum(steps)).cast(pa.timestamp("us", "UTC")),
            "card": pa.array(random.integers(0, keys, count).astype(str)),
            "v": pa.array(values, pa.int64(), mask=random.random(count) < 0.05),
            "x": pa.array(np.round(random.random(count) * 100, 3)),
        }
    )


def frame_of(spark: SparkSession, table: pa.Table, folder: Path) -> DataFrame:
    """Return events as a frame, read from Parquet."""
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, folder / "events.parquet")
    return spark.read.parquet(str(folder))


def in_one_process(queries: Any, table: pa.Table) -> Counter[Any]:
    """Return what an engine finds, by query, key and the ids of events."""
    engine = pk.Engine(queries, seq="id")
    found = engine.process(table.sort_by([("ts", "ascending"), ("id", "ascending")])) + engine.flush()
    return Counter((m.query, m.key, tuple(sorted(m.events.items()))) for m in found)


def on_spark(frame: DataFrame, queries: Any) -> Counter[Any]:
    """Return what a frame of matches holds, in the same form."""
    return matches_in((row.asDict(recursive=True) for row in frame.collect()), queries)


def matches_in(rows: Iterable[dict[str, Any]], queries: Any) -> Counter[Any]:
    """Return matches that are dicts, in the same form."""
    found: Counter[Any] = Counter()
    named = {query.name: query for query in queries}
    for row in rows:
        query = named[row["query"]]
        variables = [event.variable for event in ast.events(query.pattern)]
        bound = {v: tuple(event["id"] for event in row[v]) for v in variables if row.get(v) is not None}
        found[(row["query"], tuple(row[name.text] for name in query.partition), tuple(sorted(bound.items())))] += 1
    return found
