"""What comes out: one table for everything, in which `output` says what a row is.

Matches, runs that ended without one, late rows, malformed rows, and one row of counts for each piece of work. Spark
gives an operator one output, so they travel together and are parted afterwards (`penstock.spark.outputs`).
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.engine.ended import ABANDONED, Ended
from penstock.engine.matches import Chunk, Layout, Matches
from penstock.plan.tables import Bools, Ints
from penstock.spark.worker.events import Kept, Malformed
from penstock.spark.worker.spec import OVERDUE, Spec
from penstock.spark.worker.times import times

OUTPUT, EVENT, REASON, COUNTS = "output", "event", "reason", "_counts"
MATCHES, LATE, MALFORMED, SHED, ENDED = "matches", "late", "malformed", "shed", "ended"
WHY, BY = "why", "by"  # a run has ended
TIME = pa.timestamp("us", "UTC")
TIMES = dict.fromkeys(("first_ts", "last_ts", "known_ts", "arrived_ts", "detected_ts"), TIME)

COUNTED = (
    "rows", "processed", "late", "malformed", "shed", "shed_early", "shed_overdue", "shed_runs", "shed_partly",
    "judged_rows", "judged", "judged_lost", "matches", "ended", "runs", "held", "work_us",
)  # fmt: skip
# Upper bounds of the latency bins in milliseconds; a last bin has no bound.
LATENCY_MS = (
    1, 2, 5, 10, 20, 50, 100, 150, 200, 250, 300, 350, 400, 450, 500, 550, 600, 650, 700, 750, 800, 900, 1000, 1250,
    1500, 1750, 2000, 2500, 3000, 4000, 5000, 7500, 10_000, 20_000, 30_000, 60_000,
)  # fmt: skip
LATENCIES = len(LATENCY_MS) + 1
COUNTS_TYPE = pa.struct([*((name, pa.int64()) for name in COUNTED), ("latency", pa.list_(pa.int64()))])


@dataclass
class Counts:
    """How many rows a piece of work had, and what became of them.

    rows = processed + late + malformed + shed, where rows that are held back are counted when they leave. Of the rows
    that are shed, `shed_early` are gone before the shuffle, and `shed_overdue` could not be on time any more; the rest
    is what the strategy has chosen. `shed_runs` are runs, and `shed_partly` rows that were hidden from some runs only.
    `judged_rows` are processed rows of keys that are never shed, `judged` their matches, and `judged_lost` those that
    would have been lost otherwise.
    `ended` are runs that ended without a match, if they are asked for.
    """

    rows: int = 0
    processed: int = 0
    late: int = 0
    malformed: int = 0
    shed: int = 0
    shed_early: int = 0
    shed_overdue: int = 0
    shed_runs: int = 0
    shed_partly: int = 0
    judged_rows: int = 0
    judged: int = 0
    judged_lost: int = 0
    matches: int = 0
    ended: int = 0
    runs: int = 0
    held: int = 0
    work_us: int = 0
    latency: Ints = field(default_factory=lambda: np.zeros(LATENCIES, np.int64))

    def as_row(self) -> dict[str, Any]:
        """Return them as a row has them."""
        return {name: getattr(self, name) for name in COUNTED} | {"latency": self.latency.tolist()}


class Results:
    """Makes tables of what was found.

    Args:
        spec: the detection.
        counts: where matches and their latencies are counted.
        span: the stretch of time, without its end, that is of interest: matches and runs that have their last event in
            it, rows of it. Others are someone else's. None if all are.
    """

    def __init__(self, spec: Spec, counts: Counts, span: tuple[int, int] | None = None) -> None:
        self.spec, self.counts, self.span = spec, counts, span
        self._fields = [spec.events.field(name) for name in spec.event]

    def matches(self, found: Matches, kept: Kept) -> list[pa.Table]:
        """Return matches, with their events as `kept` has them."""
        now = int(time.time() * 1e6)
        return [self._of_query(layout, chunk.laid_out(), kept, now) for layout, chunk in found.chunks if len(chunk)]

    def ended(self, ended: Ended, kept: Kept) -> list[pa.Table]:
        """Return runs that ended without a match, likewise."""
        found, first = [], 0
        for layout, later in ended.runs.chunks:
            chunk, stop = later.laid_out(), first + len(later)
            why, by, first = ended.why[first:stop], ended.by[first:stop], stop
            columns, _ = self._bound(layout, chunk, kept)
            has_number = np.array([each == ABANDONED for each in why], np.bool_) & (self.spec.seq is not None)
            told = {
                OUTPUT: pa.repeat(ENDED, len(chunk)),
                "known_ts": None,  # of matches
                WHY: pa.array(why, pa.string()),
                BY: pa.array(by, pa.int64(), mask=~has_number),
            }
            table = self._own(self.table(columns | told, len(chunk)), chunk)
            self.counts.ended += len(table)
            found.append(table)
        return found

    def _of_query(self, layout: Layout, chunk: Chunk, kept: Kept, now: int) -> pa.Table:
        (columns, last), size = self._bound(layout, chunk, kept), len(chunk)
        columns[OUTPUT] = pa.repeat(MATCHES, size)
        columns["detected_ts"] = pa.repeat(pa.scalar(now, pa.int64()), size).cast(TIME)
        if self.spec.arrival is not None:
            arrived, is_missing = times(kept.table.column(self.spec.arrival).take(pa.array(last)), self.spec.arrival)
            columns["arrived_ts"] = pa.array(arrived, pa.int64(), mask=is_missing).cast(TIME)
            counted = ~is_missing & self._is_own(chunk.last_ts)
            bins = np.searchsorted(np.array(LATENCY_MS) * 1000, now - arrived[counted])
            self.counts.latency += np.bincount(bins, minlength=LATENCIES)
        table = self._own(self.table(columns, size), chunk)
        self.counts.matches += len(table)
        return table

    def _bound(self, layout: Layout, chunk: Chunk, kept: Kept) -> tuple[dict[str, Any], Ints]:
        """Return the columns that tell what is bound, and the places of the last events."""
        table = chunk.table(layout)
        shown = replace(layout, keys=self.spec.keys) if self.spec.keys else layout
        names = shown.names()[:1] + shown.names()[1 + len(self.spec.keys) :]  # those of the table
        columns: dict[str, Any] = {}
        first = len(names) - len(layout.variables) - len(layout.returns)
        for place, name in enumerate(names):
            column = table.column(place).combine_chunks()
            is_variable = first <= place < first + len(layout.variables)
            columns[name] = self._events(column, kept) if is_variable else column
        last = kept.places(chunk.seq[chunk.offsets[1:] - 1])
        for name in shown.keys:  # as the events have them, whatever their type
            columns[name] = kept.table.column(name).take(pa.array(last)).combine_chunks()
        return columns, last

    def _own(self, table: pa.Table, chunk: Chunk) -> pa.Table:
        return table if self.span is None else table.filter(pa.array(self._is_own(chunk.last_ts)))

    def _is_own(self, ts: Ints) -> Bools:
        return np.ones(len(ts), np.bool_) if self.span is None else (ts >= self.span[0]) & (ts < self.span[1])

    def count_own(self, ts: Ints) -> int:
        """Return how many times are of interest."""
        return len(ts) if self.span is None else int(self._is_own(ts).sum())

    def _events(self, lists: Any, kept: Kept) -> Any:
        """Return lists of numbers of events as lists of the events."""
        events = kept.table.take(pa.array(kept.places(lists.flatten().to_numpy(zero_copy_only=False))))
        columns = [events.column(field.name).combine_chunks() for field in self._fields]
        structs = pa.StructArray.from_arrays(columns, fields=self._fields)
        return pa.ListArray.from_arrays(lists.offsets, structs, mask=lists.is_null())

    def malformed(self, rows: Malformed | None) -> list[pa.Table]:
        """Return rows that cannot be events."""
        if rows is None:
            return []
        if self.span is not None:
            is_own = pa.array(self._is_own(times(rows.table.column(self.spec.time), self.spec.time)[0]))
            rows = Malformed(rows.table.filter(is_own), rows.reasons.filter(is_own))
        self.counts.malformed += len(rows.table)
        return [self._rows(rows.table, MALFORMED, rows.reasons)]

    def late(self, rows: pa.Table, reason: str) -> list[pa.Table]:
        """Return rows that came too late."""
        if not len(rows):
            return []
        self.counts.late += len(rows)
        return [self._rows(rows, LATE, pa.repeat(reason, len(rows)))]

    def shed(self, rows: pa.Table, reason: str) -> list[pa.Table]:
        """Return rows that were dropped on purpose, if they are asked for."""
        self.counts.shed += len(rows)
        self.counts.shed_overdue += len(rows) if reason == OVERDUE else 0
        return self.shown_as_shed(rows, pa.repeat(reason, len(rows)))

    def shown_as_shed(self, rows: pa.Table, reasons: Any) -> list[pa.Table]:
        """Return rows that were dropped on purpose and are counted already."""
        is_shown = self.spec.shed is not None and self.spec.shed.is_shown
        return [self._rows(rows, SHED, reasons)] if is_shown and len(rows) else []

    def _rows(self, rows: pa.Table, output: str, reasons: Any) -> pa.Table:
        columns = [rows.column(name).combine_chunks() for name in rows.schema.names]
        structs = pa.StructArray.from_arrays(columns, fields=list(rows.schema))
        return self.table({OUTPUT: pa.repeat(output, len(rows)), EVENT: structs, REASON: reasons}, len(rows))

    def counted(self) -> pa.Table:
        """Return the row of the counts."""
        return self.table({COUNTS: pa.array([self.counts.as_row()], COUNTS_TYPE)}, 1)

    def table(self, columns: Mapping[str, Any], size: int) -> pa.Table:
        """Return columns as a table of results: in its order and types, null where there is none."""
        arrays = []
        for each in self.spec.results:
            column = columns.get(each.name)
            if column is None:
                arrays.append(pa.nulls(size, each.type))
            else:
                arrays.append(column if column.type == each.type else column.cast(each.type, safe=False))
        return pa.table(arrays, schema=self.spec.results)
