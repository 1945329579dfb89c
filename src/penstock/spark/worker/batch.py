"""Detection in a batch frame: what the worker of a partition does.

A partition holds all events of its keys, or of its slices of time. They are sorted here and not by Spark, which takes
twice as long; what does not fit into memory waits on disk.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa

from penstock.engine.arrow_values import numbers
from penstock.spark.worker.events import read
from penstock.spark.worker.matching import Matching
from penstock.spark.worker.results import Counts, Results
from penstock.spark.worker.sorting import Sorter
from penstock.spark.worker.spec import Spec

SLICE = "_penstock_slice"  # the number of the slice of time that a row is for
IN_MEMORY_BYTES = 256 << 20
_GATHER, _GATHER_BYTES = 1 << 18, 32 << 20  # rows that are looked at together: fewer, if they are wide


@dataclass(frozen=True)
class BatchWorker:
    """Finds the matches of a partition; what `mapInArrow` calls.

    Attributes:
        spec: the detection.
        slice_us: how long a slice of time is; None if partitions are by key.
        in_memory_bytes: how much a partition may hold in memory before it goes to disk.
    """

    spec: Spec
    slice_us: int | None = None
    in_memory_bytes: int = IN_MEMORY_BYTES

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the results of a partition."""
        started, counts = time.perf_counter_ns(), Counts()
        with TemporaryDirectory(prefix="penstock-") as folder:
            sorters: dict[int, Sorter] = {}
            for table in _gathered(batches):
                for part in self._sorted_in(table, sorters, Path(folder), counts):
                    yield from part.to_batches()
            for number in sorted(sorters):
                for part in self._matched(sorters.pop(number), self._results(counts, number)):
                    yield from part.to_batches()
        if counts.rows:
            counts.work_us = (time.perf_counter_ns() - started) // 1000
            yield from self._results(counts).counted().to_batches()

    def _results(self, counts: Counts, number: int | None = None) -> Results:
        """Return results that keep to the matches and rows of a slice; all of them, without one."""
        if self.slice_us is None or number is None:
            return Results(self.spec, counts)
        return Results(self.spec, counts, (number * self.slice_us, (number + 1) * self.slice_us))

    def _sorters(self, batches: Iterable[pa.RecordBatch], folder: Path, counts: Counts) -> dict[int, Sorter]:
        """Return the rows of each slice; those that are malformed are counted and left."""
        sorters: dict[int, Sorter] = {}
        for table in _gathered(batches):
            for _ in self._sorted_in(table, sorters, folder, counts):
                pass
        return sorters

    def _sorted_in(
        self, table: pa.Table, sorters: dict[int, Sorter], folder: Path, counts: Counts
    ) -> Iterator[pa.Table]:
        """Give rows to the sorters of their slices; yield those that are malformed."""
        for number, part in self._slices(table):
            rows, malformed = read(part, self.spec)
            results, before = self._results(counts, number), counts.malformed
            yield from results.malformed(malformed)
            counts.rows += results.count_own(rows.ts) + counts.malformed - before
            if number is not None:
                sorters.setdefault(number, Sorter(folder, str(number))).add(rows)
        if sum(sorter.pending_bytes for sorter in sorters.values()) > self.in_memory_bytes:
            for sorter in sorters.values():
                sorter.spill()

    def _slices(self, table: pa.Table) -> Iterator[tuple[int | None, pa.Table]]:
        """Yield the rows of each slice; the number is None for rows that have no time, 0 if there are no slices."""
        if self.slice_us is None:
            yield 0, table
            return
        slices = table.column(SLICE)
        table = table.drop_columns([SLICE])
        is_there = np.array(slices.is_valid())
        of_rows = numbers(slices)
        if not is_there.all():
            yield None, table.filter(pa.array(~is_there))
        for number in np.unique(of_rows[is_there]).tolist():
            yield number, table.filter(pa.array(is_there & (of_rows == number)))

    def _matched(self, sorter: Sorter, results: Results) -> Iterator[pa.Table]:
        matching = Matching(self.spec)
        for rows in sorter.sorted():
            yield from matching.process(rows, results)
        yield from matching.flush(results)


def _gathered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield the rows in tables of a good size: Spark's batches are small."""
    waiting: list[pa.RecordBatch] = []
    size = held = 0
    for batch in batches:
        waiting.append(batch)
        size, held = size + batch.num_rows, held + batch.nbytes
        if size >= _GATHER or held >= _GATHER_BYTES:
            yield pa.Table.from_batches(waiting)
            waiting, size, held = [], 0, 0
    if size:
        yield pa.Table.from_batches(waiting)
