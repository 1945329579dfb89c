"""Rows as Arrow tables in binary values: what goes through Spark's shuffle and its stateful operator.

Workers that only pack and unpack load neither the engine nor numba.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.arrow_values import numbers
from penstock.plan.tables import Bools, Ints
from penstock.spark.worker.settling import settle
from penstock.spark.worker.spec import NOW, OVERDUE, SPARED, WORTH, Spec
from penstock.spark.worker.times import FAR_AWAY_US, is_null, times

BUCKET = "_penstock_bucket"
WHY = "_penstock_why"  # why a row was shed
NONE = np.iinfo(np.int64).min


@dataclass(frozen=True)
class Pack:
    """Packs the rows of a partition by bucket; what `mapInArrow` calls before the shuffle.

    Attributes:
        spec: the detection.
        names: of the buckets, for Spark (penstock.spark.worker.placing).
    """

    spec: Spec
    names: Sequence[int]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield a row for each bucket: the newest time of the partition, and the rows that are the bucket's.

        What is counted for all buckets is counted for the first one; it shows the rows that are shed here, too.
        """
        settle()
        given = [batch for batch in batches if batch.num_rows]
        if not given:
            return
        table = pa.Table.from_batches(given)
        ts, has_no_time = times(table.column(self.spec.time), self.spec.time)
        is_no_event = has_no_time | (np.abs(ts) > FAR_AWAY_US) | is_null(table.column(self.spec.type))
        newest = int(np.where(is_no_event, NONE, ts).max())
        is_counted = self._is_counted(table, is_no_event)
        passed = len(table) - int(is_counted.sum())
        early = Early.of(self.spec, table, ts, is_no_event, is_counted)
        parts = self._parted(early.rows)
        buckets, rest = len(self.names), [0] * (len(self.names) - 1)
        yield pa.record_batch(
            {
                "bucket": pa.array(self.names, pa.int32()),
                "newest": pa.array([newest] * buckets, pa.int64()),
                "passed": pa.array([passed, *rest], pa.int64()),
                "now": pa.array([early.now] * buckets, pa.int64()),
                "overdue": pa.array([early.overdue, *rest], pa.int64()),
                "early": pa.array([early.early, *rest], pa.int64()),
                "rows": pa.array([as_bytes(part) if len(part) else None for part in parts], pa.binary()),
                "shed": pa.array(
                    [None if early.shed is None else as_bytes(early.shed)] + [None] * len(rest), pa.binary()
                ),
            }
        )

    def _parted(self, table: pa.Table) -> list[pa.Table]:
        """Return the rows of each bucket."""
        of_rows, buckets = numbers(table.column(BUCKET)), len(self.names)
        table = table.drop_columns([BUCKET])
        order = np.argsort(of_rows, kind="stable")
        starts = np.searchsorted(of_rows[order], np.arange(buckets + 1))
        sorted_rows = table.take(pa.array(order)).combine_chunks() if buckets > 1 else table
        return [sorted_rows.slice(starts[b], starts[b + 1] - starts[b]) for b in range(buckets)]

    def _is_counted(self, table: pa.Table, is_no_event: Bools) -> Bools:
        """Leave out rows of types that no query asks about; rows that are no events stay, to be shown as such."""
        if self.spec.counting is None:
            return np.ones(len(table), np.bool_)
        types = table.column(self.spec.type)
        asked = pc.is_in(types, pa.array(self.spec.counting, types.type))
        return np.array(asked.combine_chunks(), np.bool_) | is_no_event


@dataclass(frozen=True)
class Early:
    """The rows of a partition that go on, and what was shed before.

    Attributes:
        rows: that go on, with what they are worth if a strategy has said so.
        now: the time of the micro-batch; NONE if nobody asks.
        overdue: how many rows could not be on time any more.
        early: how many rows the strategy gave up.
        shed: these rows, with the reason; None if there are none, or if nobody wants to see them.
    """

    rows: pa.Table
    now: int = NONE
    overdue: int = 0
    early: int = 0
    shed: pa.Table | None = None

    @classmethod
    def of(cls, spec: Spec, table: pa.Table, ts: Ints, is_no_event: Bools, is_counted: Bools) -> Early:
        """Shed what need not go through the shuffle."""
        shed = spec.shed
        if shed is None:
            return cls(table if is_counted.all() else table.filter(pa.array(is_counted)))
        from penstock.spark.worker.early import chosen, worths  # strategies, which need numba

        now = int(table.column(NOW)[0].as_py())
        table = table.drop_columns([NOW])
        worth = worths(table, spec.type, ts, ~is_no_event, shed)
        is_overdue, is_early, spared = chosen(table, now, ~is_no_event & is_counted, worth, shed, spec.by)
        if spared.any():
            worth = np.where(spared, SPARED, np.zeros(len(table)) if worth is None else worth)
        is_gone = is_overdue | is_early
        gone = None
        if shed.is_shown and is_gone.any():
            why = np.where(is_overdue, OVERDUE, f"{shed.strategy.name}, before the shuffle")[is_gone].tolist()
            gone = table.filter(pa.array(is_gone)).select(spec.events.names).append_column(WHY, pa.array(why))
        if worth is not None:
            table = table.append_column(WORTH, pa.array(worth))
        return cls(table.filter(pa.array(is_counted & ~is_gone)), now, int(is_overdue.sum()), int(is_early.sum()), gone)


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
    settle()
    for batch in batches:
        for rows in batch.column("rows"):
            yield from pa.ipc.open_stream(rows.as_buffer())
