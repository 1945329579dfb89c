"""What Spark's workers do, without Spark: the same functions on the same tables, parted and cut as Spark might."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as st

from penstock.pattern import ast
from penstock.pattern.schema import Schema
from penstock.reference import Event
from penstock.spark.columns import Columns
from penstock.spark.detecting import spec_of
from penstock.spark.keys import keyed
from penstock.spark.parting import SLICES_PER_REACH
from penstock.spark.worker.batch import SLICE, BatchWorker
from penstock.spark.worker.bucket import Bucket, Given
from penstock.spark.worker.packing import BUCKET, Pack
from penstock.spark.worker.results import MATCHES, OUTPUT
from penstock.spark.worker.spec import TIE, Spec
from tests.generators import FUNCTIONS, REMOTES, SCHEMA

FIELDS = {
    "type": st.StringType(), "ts": st.LongType(), "seq": st.LongType(), "n": st.LongType(), "x": st.DoubleType(),
    "k": st.StringType(), "flag": st.BooleanType(),
}  # fmt: skip


def spec_for(query: ast.Query, *, ended: bool = False, **options: Any) -> Spec:
    """Return what workers are told for a query of the generators."""
    fields = tuple(st.StructField(name, kind) for name, kind in FIELDS.items())
    (query,), keys = keyed([query], ())
    columns = Columns("type", "ts", "seq", None, keys, tuple(FIELDS), fields)
    schema = Schema.model_validate(SCHEMA) if isinstance(SCHEMA, dict) else SCHEMA
    spec = spec_of([(query, 1.0)], columns, schema, ended=ended)
    return replace(spec, functions=FUNCTIONS, remotes=REMOTES, **options)


def table_of(events: Sequence[Event], spec: Spec) -> pa.Table:
    """Return events as rows, in their order, as a worker gets them."""
    rows = [{"type": e.type, "ts": e.ts, "seq": e.seq, **e.attributes} for e in events]
    columns = {each.name: pa.array([row.get(each.name) for row in rows], each.type) for each in spec.events}
    return pa.table(columns).append_column(TIE, columns["seq"])


def _bucket_of(table: pa.Table, spec: Spec, buckets: int) -> Any:
    """Return a bucket for each row: the same for the same key, whatever it is."""
    keys = zip(*(table.column(name).to_pylist() for name in spec.by), strict=True) if spec.by else [()] * len(table)
    return np.array([sum(map(ord, repr(key))) % buckets for key in keys], np.int32)


# --- batch ------------------------------------------------------------------------------------------------------


def batched(spec: Spec, table: pa.Table, random: Random, in_memory_bytes: int = 1 << 20) -> pa.Table:
    """Return what `detect` finds in a batch whose rows come in any order, in two partitions."""
    table = table.take(pa.array(random.sample(range(len(table)), len(table)), pa.int64()))
    length = None
    if spec.by:
        parts = _bucket_of(table, spec, 2)
    elif spec.reach is None:
        parts = np.zeros(len(table), np.int32)
    else:
        before, after = spec.reach
        length = SLICES_PER_REACH * max(before + after, 1)
        length = random.choice([length, max(before, after, 1)])  # the least that the slices must be
        table = _sliced(table, before, after, length)
        parts = np.array(table.column(SLICE).to_pylist(), np.int64) % 2
    worker = BatchWorker(spec, length, in_memory_bytes)
    found = [batch for part in (0, 1) for batch in worker(_cut(table.filter(pa.array(parts == part)), random))]
    return pa.Table.from_batches(found, spec.results)


def _sliced(table: pa.Table, before: int, after: int, length: int) -> pa.Table:
    pairs = [
        (row, number)
        for row, ts in enumerate(table.column("ts").to_pylist())
        for number in range((ts - after) // length, (ts + before) // length + 1)
    ]
    rows = pa.array([row for row, _ in pairs], pa.int64())
    return table.take(rows).append_column(SLICE, pa.array([number for _, number in pairs], pa.int64()))


def _cut(table: pa.Table, random: Random) -> Iterator[pa.RecordBatch]:
    return iter(table.to_batches(max_chunksize=random.choice([1, 3, 1000])))


# --- stream -----------------------------------------------------------------------------------------------------


def streamed(
    spec: Spec,
    batches: Iterable[pa.Table],
    random: Random,
    buckets: int = 3,
    restores: float = 0.3,
    each: Callable[[list[pa.Table]], None] = lambda found: None,
) -> pa.Table:
    """Return what `detect` finds in a stream; some steps go on from a state, and some are run twice."""
    states: dict[int, bytes | None] = {}
    found = []
    buckets = buckets if spec.by else 1
    for table in batches:
        table = table.append_column(BUCKET, pa.array(_bucket_of(table, spec, buckets)))
        cut = random.randint(0, len(table))
        packs = [
            list(Pack(spec, range(buckets))(part.to_batches())) for part in (table.slice(0, cut), table.slice(cut))
        ]
        rows = [row for pack in packs for batch in pack for row in batch.to_pylist()]
        for bucket in sorted({row["bucket"] for row in rows}):
            mine = [row for row in rows if row["bucket"] == bucket]
            random.shuffle(mine)
            before = states.get(bucket)
            for _ in range(1 + (random.random() < restores)):  # the second time, from the same state again
                now = Bucket.of(spec, range(buckets), before)
                steps = list(_step(now, mine))
                states[bucket] = now.snapshot()
            each(steps)
            found += steps
            if random.random() < restores:
                Bucket.forget_live()
    return pa.concat_tables(found) if found else spec.results.empty_table()


def _step(bucket: Bucket, rows: list[dict[str, Any]]) -> Iterator[pa.Table]:
    return bucket.step(Given.of(rows), 0)


# --- results ----------------------------------------------------------------------------------------------------


def matches_of(table: pa.Table) -> list[dict[str, Any]]:
    """Return the matches among results."""
    return list(table.filter(pc.equal(table.column(OUTPUT), MATCHES)).to_pylist())
