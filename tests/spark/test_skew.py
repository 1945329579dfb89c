"""One key with most of the rows, and rows that are wide: memory stays bounded, whatever the size of the input."""

from __future__ import annotations

import multiprocessing
import resource
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from penstock.pattern.parser import parse
from penstock.spark.worker.batch import _GATHER_BYTES, BatchWorker, _gathered
from penstock.spark.worker.results import MATCHES, OUTPUT
from penstock.spark.worker.spec import TIE, Spec
from tests.spark.simulating import spec_for, table_of
from tests.spark.test_workers import START

IN_MEMORY = 2 << 20
SIZE = 20_000  # rows of a batch
SMALL, LARGE = 960_000, 3_840_000  # rows
WIDTH = 150  # bytes of text in a row
MAY_GROW = 0.2  # of what the larger input has more than the smaller one


def batches(spec: Spec, count: int) -> Iterator[pa.RecordBatch]:
    """Yield pairs of an A and a B, in no order; nine of ten are of one key."""
    schema = pa.schema([*spec.events, pa.field(TIE, pa.int64())])
    texts = pa.array([f"{number:04}" + "x" * (WIDTH - 4) for number in range(10)])
    for start in range(0, count, SIZE):
        seq = np.arange(start, start + SIZE, dtype=np.int64) * 7919 % count
        columns = {
            "type": pa.array(["A", "B"]).take(pa.array(seq % 2)),
            "ts": START + seq * 1000,
            "seq": seq,
            "n": np.where(seq % 20 < 18, 0, seq % 20),
            "k": texts.take(pa.array(np.where(seq % 20 < 18, 0, 1 + seq // 20 % 9))),
            TIE: seq,
        }
        arrays = [pa.array(columns[f.name], f.type) if f.name in columns else pa.nulls(SIZE, f.type) for f in schema]
        yield pa.record_batch(arrays, schema=schema)


def peak_of(count: int) -> tuple[int, int, int]:
    """Return how many matches a partition has, how many of them are pairs, and the most bytes this process has had."""
    spec = spec_for(parse("PATTERN SEQ(A a, B b) WITHIN 1 ms PARTITION BY k"))
    found = pairs = 0
    for batch in BatchWorker(spec, in_memory_bytes=IN_MEMORY)(batches(spec, count)):
        matches = batch.filter(pc.equal(batch.column(OUTPUT), MATCHES))
        first, second = (
            pc.struct_field(pc.list_flatten(matches.column(name)), "seq").to_numpy(zero_copy_only=False)
            for name in ("a", "b")
        )
        found, pairs = found + len(matches), pairs + int((first + 1 == second).sum())
    return found, pairs, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere, the most memory is told in other units")
def test_one_key_with_most_of_the_rows_takes_no_more_memory_for_more_rows() -> None:
    """In a process of its own: what it has had at most never falls."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        peak_of_small, peak_of_large = (pool.submit(peak_of, count).result() for count in (SMALL, LARGE))
    assert peak_of_small[:2] == (SMALL // 2, SMALL // 2)
    assert peak_of_large[:2] == (LARGE // 2, LARGE // 2)
    grown, more = peak_of_large[2] - peak_of_small[2], (LARGE - SMALL) * WIDTH
    assert grown < MAY_GROW * more, f"{grown:,} more for {more:,} bytes"


def test_wide_rows_are_looked_at_few_at_a_time() -> None:
    """Spark's batches are of 10,000 rows: of 20 kB each, 262,144 rows would be 5 GB."""
    spec = spec_for(parse("PATTERN SEQ(A a, B b) WITHIN 1 ms PARTITION BY k"))
    row = table_of([], spec).schema.empty_table()
    wide = pa.array(["x" * 20_000] * 500)
    columns = [wide if name == "k" else pa.nulls(500, row.schema.field(name).type) for name in row.column_names]
    batch = pa.record_batch(columns, schema=row.schema)
    tables = list(_gathered(iter([batch] * 13)))
    assert sum(map(len, tables)) == 13 * 500
    assert max(table.nbytes for table in tables) < _GATHER_BYTES + batch.nbytes
    assert len(tables) == 4
    narrow = pa.record_batch([pa.nulls(10, each.type) for each in row.schema], schema=row.schema)
    assert len(list(_gathered(iter([narrow] * 13)))) == 1
