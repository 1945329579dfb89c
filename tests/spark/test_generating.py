"""A made stream is the same on Spark as in one process."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from penstock.lab.generators import Buses, Generator, Soccer, Stocks, Synthetic
from penstock.spark import generated
from penstock.spark.generating import plain


@pytest.mark.parametrize("stream", [Stocks(symbols=30), Soccer(), Buses(buses=40), Synthetic("DS2")], ids=repr)
@pytest.mark.parametrize("partitions", [None, 3])
def test_events_are_those_of_one_process(spark: SparkSession, stream: Generator, partitions: int | None) -> None:
    rows = 2 * stream.block_rows + 17
    made = generated(spark, stream, rows, partitions).toArrow()
    assert made.cast(plain(stream.schema)).equals(stream.table(rows).cast(plain(stream.schema)))


def test_on_connect(connect: SparkSession) -> None:
    stream = Synthetic("DS5", seed=4)
    made = generated(connect, stream, 1000).toArrow()
    assert isinstance(made, pa.Table)
    assert made.cast(plain(stream.schema)).equals(stream.table(1000).cast(plain(stream.schema)))
