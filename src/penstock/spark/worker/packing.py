"""Rows as Arrow tables in binary values: what goes through Spark's shuffle and its stateful operator.

Workers that only pack and unpack load neither the engine nor numba.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.arrow_values import numbers
from penstock.plan.tables import Bools
from penstock.spark.worker.spec import Spec
from penstock.spark.worker.times import FAR_AWAY_US, is_null, times

BUCKET = "_penstock_bucket"
NONE = np.iinfo(np.int64).min


@dataclass(frozen=True)
class Pack:
    """Packs the rows of a partition by bucket; what `mapInArrow` calls before the shuffle.

    Attributes:
        spec: the detection.
        buckets: how many there are.
    """

    spec: Spec
    buckets: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield a row for each bucket: the newest time of the partition, and the rows that are the bucket's."""
        given = [batch for batch in batches if batch.num_rows]
        if not given:
            return
        table = pa.Table.from_batches(given)
        ts, has_no_time = times(table.column(self.spec.time), self.spec.time)
        is_no_event = has_no_time | (np.abs(ts) > FAR_AWAY_US) | is_null(table.column(self.spec.type))
        newest = int(np.where(is_no_event, NONE, ts).max())
        counted = self._counted(table, is_no_event)
        passed = len(table) - len(counted)
        of_rows = numbers(counted.column(BUCKET))
        counted = counted.drop_columns([BUCKET])
        order = np.argsort(of_rows, kind="stable")
        starts = np.searchsorted(of_rows[order], np.arange(self.buckets + 1))
        sorted_rows = counted.take(pa.array(order)).combine_chunks() if self.buckets > 1 else counted
        parts = [sorted_rows.slice(starts[b], starts[b + 1] - starts[b]) for b in range(self.buckets)]
        yield pa.record_batch(
            {
                "bucket": pa.array(np.arange(self.buckets, dtype=np.int32)),
                "newest": pa.array([newest] * self.buckets, pa.int64()),
                "passed": pa.array([passed] + [0] * (self.buckets - 1), pa.int64()),
                "rows": pa.array([as_bytes(part) if len(part) else None for part in parts], pa.binary()),
            }
        )

    def _counted(self, table: pa.Table, is_no_event: Bools) -> pa.Table:
        """Leave out rows of types that no query asks about; rows that are no events stay, to be shown as such."""
        if self.spec.counting is None:
            return table
        types = table.column(self.spec.type)
        asked = pc.is_in(types, pa.array(self.spec.counting, types.type))
        return table.filter(pc.or_(asked, pa.chunked_array([pa.array(is_no_event)])))


def as_bytes(table: pa.Table) -> bytes:
    """Return a table as bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def from_bytes(data: Any) -> pa.Table:
    """Return the table that `as_bytes` made bytes of."""
    return pa.ipc.open_stream(data).read_all()


def unpack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Unpack results; what `mapInArrow` calls after the step."""
    for batch in batches:
        for rows in batch.column("rows"):
            yield from pa.ipc.open_stream(rows.as_buffer())
