"""An engine with the events that its matches will show: tables of events in, tables of results out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.plan.tables import Ints
from penstock.spark.worker.events import Kept, Malformed, Rows
from penstock.spark.worker.results import Results
from penstock.spark.worker.spec import SEQ, Spec

CHUNK = 1 << 16  # events that an engine gets at once: enough to be fast, few enough to stay small


class Matching:
    """Finds matches in rows that are in order.

    Args:
        spec: the detection.
    """

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.engine = spec.engine()
        self.next = 0  # the number of the next event, if they are counted
        keys = [*spec.keys, *(name.text for query, _ in spec.queries for name in query.partition)]
        self._names = list(dict.fromkeys([*spec.event, *keys, *([spec.arrival] if spec.arrival else [])]))
        self._read = list(dict.fromkeys([spec.type, spec.time, *spec.read]))
        self.kept = Kept(self._empty(), np.zeros(0, np.int64), spec.seq is None)

    def _empty(self) -> pa.Table:
        return pa.schema([self.spec.events.field(name) for name in self._names]).empty_table()

    def process(self, rows: Rows, results: Results) -> Iterator[pa.Table]:
        """Process rows that follow those before; yield results."""
        rows, doubled = self._without_doubles(rows)
        yield from results.malformed(doubled)
        results.counts.processed += results.count_own(rows.ts)
        rows = self._with_keys(rows)
        for start in range(0, len(rows), CHUNK):
            part = rows.slice(start, min(start + CHUNK, len(rows)))
            seq = self._numbers(part)
            self.kept.add(part.table.select(self._names), seq)
            batch = part.table.select(self._read).append_column(SEQ, pa.array(seq))
            yield from results.matches(self.engine.process(batch), self.kept)
            self.kept.forget(self.engine.kept())
        results.counts.runs = self.engine.work["runs"]

    def advance(self, ts: int, results: Results) -> Iterator[pa.Table]:
        """Let time pass; yield what is known then. No row before this time may follow."""
        yield from results.matches(self.engine.advance(ts), self.kept)

    def flush(self, results: Results) -> Iterator[pa.Table]:
        """End the stream; yield what only that completes."""
        yield from results.matches(self.engine.flush(), self.kept)

    def _numbers(self, rows: Rows) -> Ints:
        if self.spec.seq is not None:
            return rows.tie
        first, self.next = self.next, self.next + len(rows)
        return np.arange(first, self.next, dtype=np.int64)

    def _with_keys(self, rows: Rows) -> Rows:
        """Leave out rows without a key, which PARTITION BY has in no partition."""
        has_key = np.ones(len(rows), np.bool_)
        for name in self.spec.keys:
            column = rows.table.column(name)
            if column.null_count or pa.types.is_floating(column.type):
                has_key &= ~np.array(column.is_null(nan_is_null=True).combine_chunks(), np.bool_)
        return rows.where(has_key)

    def _without_doubles(self, rows: Rows) -> tuple[Rows, Malformed | None]:
        """Part off the rows whose number an earlier event has, as far as it is remembered."""
        if self.spec.seq is None:
            return rows, None
        is_double = self.kept.is_known(rows.tie)
        order = np.argsort(rows.tie, kind="stable")
        is_double[order[1:]] |= rows.tie[order[1:]] == rows.tie[order[:-1]]
        if not is_double.any():
            return rows, None
        reasons = pa.repeat(f"another event has the same {self.spec.seq}", int(is_double.sum()))
        return rows.where(~is_double), Malformed(rows.table.filter(pa.array(is_double)), reasons)

    # --- snapshots --------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return all that must survive, for `penstock.engine.snapshots.pack`."""
        return {
            "engine": _as_array(self.engine.snapshot()),
            "next": self.next,
            "kept": packed(self.kept.table),
            "seq": self.kept.seq,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self.engine = self.spec.restored(state["engine"].tobytes())
        self.next = int(state["next"])
        self.kept = Kept(unpacked(state["kept"]), state["seq"].copy(), self.spec.seq is None)


def packed(table: pa.Table) -> Any:
    """Return a table as an array of bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return _as_array(sink.getvalue())


def unpacked(data: Any) -> pa.Table:
    """Return the table that `packed` made bytes of."""
    return pa.ipc.open_stream(pa.py_buffer(data)).read_all()


def _as_array(data: Any) -> Any:
    return np.frombuffer(data, np.uint8)
