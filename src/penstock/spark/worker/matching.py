"""An engine with the events that its matches will show: tables of events in, tables of results out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.engine.hooks import Hooks
from penstock.engine.matches import Matches
from penstock.plan.tables import Bools, Ints
from penstock.spark.worker.events import Kept, Malformed, Rows
from penstock.spark.worker.judging import Judge
from penstock.spark.worker.packing import as_bytes, from_bytes
from penstock.spark.worker.results import Results
from penstock.spark.worker.shedding import Choice, Shedder, was_shed
from penstock.spark.worker.spec import OVERDUE, SEQ, Spec

CHUNK = 1 << 16  # events that an engine gets at once: enough to be fast, few enough to stay small
_WRITTEN = 256, 1.25  # events, and times as many as are needed, before those are looked for that need not be written


class Matching:
    """Finds matches in rows that are in order.

    Args:
        spec: the detection.
        state: from `state`, to go on from there.
    """

    def __init__(self, spec: Spec, state: Mapping[str, Any] | None = None) -> None:
        self.spec = spec
        self.engine = spec.engine() if state is None else spec.restored(state["engine"].tobytes())
        is_judged = spec.shed is not None and spec.shed.unshed > 0
        self.judge = Judge(None if state is None else state.get("judged")) if is_judged else None
        self.next = 0 if state is None else int(state["next"])  # the number of the next event, if they are counted
        keys = [*spec.keys, *(name.text for query, _ in spec.queries for name in query.partition)]
        self._names = list(dict.fromkeys([*spec.event, *keys, *([spec.arrival] if spec.arrival else [])]))
        self._read = list(dict.fromkeys([spec.type, spec.time, *spec.read]))
        seq = np.zeros(0, np.int64) if state is None else state["seq"].copy()
        self.kept = Kept(self._empty() if state is None else from_bytes(state["kept"]), seq, spec.seq is None)

    def _empty(self) -> pa.Table:
        return pa.schema([self.spec.events.field(name) for name in self._names]).empty_table()

    def process(self, rows: Rows, results: Results, shedder: Shedder | None = None) -> Iterator[pa.Table]:
        """Process rows that follow those before, and shed what a shedder says; yield results."""
        rows, doubled = self._without_doubles(rows)
        yield from results.malformed(doubled)
        results.counts.processed += results.count_own(rows.ts)
        rows = self._with_keys(rows)
        choice, chunk = None, CHUNK
        if shedder is not None:
            choice = shedder.choose(rows, self.engine)
            chunk = min(CHUNK, choice.chunk or CHUNK)
            results.counts.judged_rows += 0 if choice.marked is None else int(choice.marked.sum())
            if shedder.shed.leaves_out:
                is_shed = choice.is_overdue | choice.is_shed
                yield from self._gone(rows, choice, is_shed, results)
                kept = np.flatnonzero(~is_shed)
                rows, choice = rows.where(~is_shed), choice.of(kept)
        for start in range(0, len(rows), chunk):
            part = rows.slice(start, min(start + chunk, len(rows)))
            if shedder is None or choice is None:
                yield from self._matches(self._found(part, None), results)
            else:
                of_part = choice.of(np.arange(start, start + len(part)))
                results.counts.shed_runs += shedder.drop_runs(self.engine, of_part, start, len(part))
                hooks = of_part.hooks(len(self.engine.queries))
                yield from self._matches(self._found(part, hooks, of_part), results)
                is_shed, partly = was_shed(of_part, hooks)
                yield from self._gone(part, of_part, is_shed, results)
                results.counts.shed_partly += int(partly.sum())
            yield from self._ended(results)
            kept_now = self.engine.kept()
            self.kept.forget(kept_now)
            if self.judge is not None:
                self.judge.forget(kept_now)
        results.counts.runs = self.engine.work["runs"]

    def _matches(self, found: Matches, results: Results) -> list[pa.Table]:
        if self.judge is not None:
            self.judge.count(found, results.counts)
        return results.matches(found, self.kept)

    def _found(self, rows: Rows, hooks: list[Hooks] | None, choice: Choice | None = None) -> Matches:
        seq = self._numbers(rows)
        if self.judge is not None and choice is not None and choice.marked is not None and choice.spared is not None:
            self.judge.note(seq, choice.marked, choice.spared)
        self.kept.add(rows.table.select(self._names), seq)
        batch = rows.table.select(self._read).append_column(SEQ, pa.array(seq))
        return self.engine.process(batch, hooks)

    def _gone(self, rows: Rows, choice: Choice, is_shed: Bools, results: Results) -> Iterator[pa.Table]:
        """Yield rows that are shed; they do not count as processed."""
        assert self.spec.shed is not None
        if not is_shed.any():
            return
        results.counts.processed -= int(is_shed.sum())
        for chosen, reason in (
            (choice.is_overdue, OVERDUE),
            (is_shed & ~choice.is_overdue, self.spec.shed.strategy.name),
        ):
            yield from results.shed(rows.table.filter(pa.array(chosen)), reason)

    def advance(self, ts: int, results: Results) -> Iterator[pa.Table]:
        """Let time pass; yield what is known then. No row before this time may follow."""
        yield from self._matches(self.engine.advance(ts), results)
        yield from self._ended(results)

    def flush(self, results: Results) -> Iterator[pa.Table]:
        """End the stream; yield what only that completes."""
        yield from self._matches(self.engine.flush(), results)
        yield from self._ended(results)

    def _ended(self, results: Results) -> Iterator[pa.Table]:
        """Yield the runs that have ended, if they are asked for: now, as long as their events are kept."""
        if self.spec.ended:
            yield from results.ended(self.engine.ended(), self.kept)

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
        engine = np.frombuffer(self.engine.snapshot(), np.uint8)
        self.kept.forget(self.engine.kept(), *_WRITTEN)
        return {
            "engine": engine,
            "next": self.next,
            "kept": np.frombuffer(as_bytes(self.kept.table), np.uint8),
            "seq": self.kept.seq,
            **({} if self.judge is None else {"judged": self.judge.state()}),
        }
