"""Made streams on Spark: each worker makes some of the blocks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

BLOCK = "block"


class Blocks(Protocol):
    """A stream that is made block by block, such as those of `penstock.lab.generators`; it must pickle."""

    @property
    def block_rows(self) -> int:
        """How many events each block has."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of a block."""

    def block(self, number: int) -> pa.RecordBatch:
        """Return the events of a block."""


def generated(spark: SparkSession, stream: Blocks, rows: int, partitions: int | None = None) -> DataFrame:
    """Return the first events of a stream, made by the workers.

    Args:
        spark: the session.
        stream: what makes a block from its number.
        rows: how many events.
        partitions: into how many parts the frame is cut, each a run of blocks; by default as many as Spark would make.
            The events do not depend on it.
    """
    blocks = -(-rows // stream.block_rows)
    numbers = spark.range(0, blocks, 1, partitions).withColumnRenamed("id", BLOCK)
    return numbers.mapInArrow(Make(stream, rows), from_arrow_schema(plain(stream.schema)))


@dataclass(frozen=True)
class Make:
    """Makes blocks; what `mapInArrow` calls.

    Attributes:
        stream: what makes a block from its number.
        rows: how many events the stream is cut to.
    """

    stream: Blocks
    rows: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the blocks whose numbers come in."""
        schema = plain(self.stream.schema)
        for batch in batches:
            for number in batch.column(BLOCK).to_pylist():
                left = self.rows - number * self.stream.block_rows
                yield self.stream.block(number).slice(0, left).cast(schema)


def plain(schema: pa.Schema) -> pa.Schema:
    """Return a schema without dictionaries, which Spark does not take."""
    return pa.schema(
        [field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field for field in schema]
    )
