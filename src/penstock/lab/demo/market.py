"""The stream and the query of the demo: quotes of several markets, and leaders that others follow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import penstock as pk
from penstock.lab.generators.stocks import Stocks
from penstock.pattern import ast
from penstock.spark import generated

MARKETS = ("Paris", "London")  # keys that Spark's hash puts into different buckets, so that two cores have work
LEADERS, FOLLOWERS, EPISODES = 100, 40, 27

TEXT = """
    PATTERN SEQ(* leader, * first, * second)
    WHERE leader.change * first.change > 0 AND sqrt(abs(leader.change * first.change)) > 0.01
      AND leader.change * second.change > 0 AND sqrt(abs(leader.change * second.change)) > 0.01
      AND leader.type <> first.type AND leader.type <> second.type AND first.type <> second.type
    WITHIN 5 h PARTITION BY market SELECT FIRST
"""
WORDS = (
    "In each of two markets: a symbol moves, then two others move the same way (by 1 % in the geometric mean with the "
    "first), within 5 hours. 250 symbols quote once a minute; 100 lead and 40 follow. Each quote is compared with "
    "tens of thousands of open runs, so the query is the load, not Spark."
)
VARIABLES = ("leader", "first", "second")


def query() -> ast.Query:
    """Return the query."""
    return pk.parse(TEXT, "followed")


def role(symbol: str) -> str:
    """Return what a symbol is in the stream.

    Examples:
        >>> role("MLE3"), role("C7"), role("C77")
        ('leaders', 'followers', 'others')
    """
    if symbol.startswith("MLE"):
        return "leaders"
    return "followers" if int(symbol[1:]) <= FOLLOWERS else "others"


def quotes(spark: Any, rows: int) -> Any:
    """Return the quotes of all markets, made by Spark's workers, with how much each has changed."""
    each = []
    for seed, market in enumerate(MARKETS, 1):
        stream = Stocks(seed=seed, leaders=LEADERS, followers=FOLLOWERS, episodes=EPISODES)
        each.append(generated(spark, stream, rows // len(MARKETS)).selectExpr("*", f"'{market}' AS market"))
    joined = each[0]
    for frame in each[1:]:
        joined = joined.unionAll(frame)
    before = "lag(close) OVER (PARTITION BY market, type ORDER BY ts)"
    return joined.selectExpr("type", "ts", "market", f"round(coalesce(close / {before} - 1, 0.0), 5) AS change")


def written(spark: Any, rows: int, history: int, folder: Path) -> tuple[Path, Path]:
    """Write the first quotes as a history and the rest as a stream, in order; return where."""
    table: pa.Table = quotes(spark, rows).toArrow().sort_by([("ts", "ascending"), ("market", "ascending")])
    past, future = folder / "history.parquet", folder / "stream.parquet"
    pq.write_table(table.slice(0, history), past)
    pq.write_table(table.slice(history), future)
    return past, future
