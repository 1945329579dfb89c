"""Rows in the order of the stream, also where they do not fit into memory: then sorted runs wait on disk."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pyarrow as pa

from penstock.spark.worker.events import Rows
from penstock.spark.worker.spec import TIE

_TS = "_ts"
_BATCH, _BATCH_BYTES = 1 << 14, 1 << 20  # of a run, read at once: a merge holds up to two of these for each run
_MOST_RUNS = 16  # of a size: so many are merged into one, or what a merge holds would grow with the rows


class Sorter:
    """Takes rows in any order and gives them back sorted.

    Args:
        folder: where runs are written; several sorters may use one.
        name: what its files begin with.

    Attributes:
        size: how many rows it has been given.
        pending_bytes: what it holds in memory.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._folder, self._name = folder, name
        self._pending: list[Rows] = []
        self._levels: list[list[Path]] = []  # runs on disk, by how often their rows were merged
        self._written = 0
        self.size = self.pending_bytes = 0

    def add(self, rows: Rows) -> None:
        """Take rows."""
        self._pending.append(rows)
        self.size += len(rows)
        self.pending_bytes += rows.table.nbytes

    def spill(self) -> None:
        """Write what is in memory to disk, as a run."""
        if not self._pending:
            return
        rows = joined(self._pending).sorted()
        self._pending, self.pending_bytes = [], 0
        self._add(self._write(iter([rows])), 0)

    def _add(self, run: Path, level: int) -> None:
        """Take a run; merge those of its level, if they are many."""
        while len(self._levels) <= level:
            self._levels.append([])
        self._levels[level].append(run)
        if len(self._levels[level]) == _MOST_RUNS:
            runs, self._levels[level] = self._levels[level], []
            self._add(self._write(_merged([_Run(path) for path in runs])), level + 1)
            _remove(runs)

    def _write(self, parts: Iterator[Rows]) -> Path:
        """Write rows that are in order as a run."""
        path = self._folder / f"{self._name}.{self._written}.arrow"
        self._written += 1
        with pa.OSFile(str(path), "wb") as sink, ExitStack() as stack:
            writer = None
            for rows in parts:
                table = rows.table.append_column(_TS, pa.array(rows.ts)).append_column(TIE, pa.array(rows.tie))
                writer = writer or stack.enter_context(pa.ipc.new_stream(sink, table.schema))
                most = max(1, _BATCH_BYTES * len(table) // max(1, table.nbytes))
                writer.write_table(table.combine_chunks(), max_chunksize=min(_BATCH, most))
        return path

    def sorted(self) -> Iterator[Rows]:
        """Yield all rows, in order, and forget them."""
        if not any(self._levels):
            if self._pending:
                rows, self._pending = joined(self._pending).sorted(), []
                yield rows
            return
        self.spill()
        runs = [path for level in self._levels for path in level]
        yield from _merged([_Run(path) for path in runs])
        _remove(runs)
        self._levels = []


def _remove(runs: list[Path]) -> None:
    for path in runs:
        path.unlink()


def joined(parts: list[Rows]) -> Rows:
    """Return rows, one part after the other; what is not known to be worth anything stays so (NaN)."""
    if len(parts) == 1:
        return parts[0]
    ts, tie = (np.concatenate([getattr(each, name) for each in parts]) for name in ("ts", "tie"))
    worth = None
    if any(each.worth is not None for each in parts if len(each)):
        worth = np.concatenate([np.full(len(each), np.nan) if each.worth is None else each.worth for each in parts])
    return Rows(pa.concat_tables([each.table for each in parts]), ts, tie, worth)


class _Run:
    """A sorted run on disk, of which the next rows are in memory."""

    def __init__(self, path: Path) -> None:
        self._source = pa.OSFile(str(path), "rb")
        self._reader = pa.ipc.open_stream(self._source)
        self.rows = self._next()
        self.is_over = self.rows is None

    def _next(self) -> Rows | None:
        try:
            table = pa.Table.from_batches([self._reader.read_next_batch()])
        except StopIteration:
            self._source.close()
            return None
        return Rows(table.drop_columns([_TS, TIE]), *(table.column(name).to_numpy() for name in (_TS, TIE)))

    def load(self) -> None:
        """Have more rows in memory, if there are any."""
        more = self._next()
        if more is None:
            self.is_over = True
        else:
            self.rows = more if self.rows is None else joined([self.rows, more])

    def take_before(self, ts: int | None) -> Rows | None:
        """Take the rows in memory that are before a time; all of them, without one."""
        rows = self.rows
        if rows is None:
            return None
        stop = len(rows) if ts is None else int(np.searchsorted(rows.ts, ts))
        self.rows = rows.slice(stop, len(rows)) if stop < len(rows) else None
        return rows.slice(0, stop)


def _merged(runs: list[_Run]) -> Iterator[Rows]:
    """Yield the rows of sorted runs in order, holding a batch of each in memory."""
    while True:
        for run in runs:
            if run.rows is None and not run.is_over:
                run.load()
        open_runs = [run for run in runs if not run.is_over and run.rows is not None]
        # What is before the last row in memory of every run that goes on has no row to come before it.
        sure = min((int(run.rows.ts[-1]) for run in open_runs if run.rows is not None), default=None)
        parts = [part for part in (run.take_before(sure) for run in runs) if part is not None and len(part)]
        if parts:
            yield joined(parts).sorted()
        if sure is None:
            return
        for run in open_runs:
            if run.rows is not None and int(run.rows.ts[-1]) == sure:
                run.load()
