"""eSPICE from sums on Spark is eSPICE from one process."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import SparkSession

import penstock as pk
from penstock.runtime.learning import learned
from penstock.spark import collect
from penstock.spark.training.fitting import espice_of
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
