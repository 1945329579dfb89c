"""Strategies from sums on Spark are those from one process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession

import penstock as pk
from penstock.runtime.learning import learned
from penstock.spark import collect
from penstock.spark.training.fitting import espice_of, pspice_of
from tests.spark.frames import events, frame_of


@pytest.mark.parametrize("text", ["SEQ(A a, B b) WHERE a.v < b.v WITHIN 5 s PARTITION BY card"])
def test_the_same_utilities(spark: SparkSession, tmp_path: Path, text: str) -> None:
    query, table = pk.parse(f"PATTERN {text}"), events(1500)
    on_spark = espice_of(collect(frame_of(spark, table, tmp_path), query, seq="id"))
    in_process = learned("espice", [(query, 1.0)], table)
    assert on_spark.types is not None
    assert in_process.types is not None
    order = [in_process.types.index(name) for name in on_spark.types]
    np.testing.assert_array_equal(on_spark.strategy.utilities, in_process.strategy.utilities[order])  # type: ignore
    np.testing.assert_allclose(on_spark.strategy.shares.sum(), 1)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "text",
    [
        "SEQ(A a, B b, C c) WHERE a.v < b.v WITHIN 5 s PARTITION BY card",
        "SEQ(A a, B b, C c) WHERE a.v < c.v WITHIN 2 s",  # in slices of time
    ],
)
def test_the_same_transitions(spark: SparkSession, tmp_path: Path, text: str) -> None:
    query, table = pk.parse(f"PATTERN {text}"), events(1500)
    model = collect(frame_of(spark, table, tmp_path), query, seq="id", model="transition")
    on_spark, in_process = pspice_of(model).strategy, learned("pspice", [(query, 1.0)], table).strategy
    np.testing.assert_allclose(on_spark.matrices[0], in_process.matrices[0])  # type: ignore[attr-defined]
    assert np.diff(on_spark.matrices[0].diagonal()).any(), "nothing moves"  # type: ignore[attr-defined]
    assert model.queries[0].sums["reach"] == reach_by_hand(table, query)
    utilities = on_spark.run_utilities(0)
    assert utilities[2].mean() > utilities[1].mean() > 0, "what is nearer to its end completes more often"


def reach_by_hand(table: Any, query: Any) -> int:
    rows = [(row["card"] if query.partition else 0, row["ts"].timestamp()) for row in table.to_pylist()]
    within = query.within.us / 1e6 + 1e-9
    return sum(k == key and 0 <= at - ts <= within for n, (key, at) in enumerate(rows) for k, ts in rows[: n + 1])
