"""One bucket of keys in a stream: rows wait here to be put in order, then an engine gets them."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.engine.snapshots import SnapshotError, pack, unpack
from penstock.plan.tables import Bools
from penstock.spark.worker.events import Rows, read
from penstock.spark.worker.matching import Matching
from penstock.spark.worker.packing import NONE as _START
from penstock.spark.worker.packing import as_bytes, from_bytes
from penstock.spark.worker.results import Counts, Results
from penstock.spark.worker.sorting import joined
from penstock.spark.worker.spec import Spec

VERSION = 1
_LIVE: OrderedDict[bytes, Bucket] = OrderedDict()  # the buckets of this process, by the head of their last snapshot
_MOST_LIVE = 64


class Bucket:
    """The events of some keys.

    Args:
        spec: the detection.
        buckets: how many there are in all.
        blob: a snapshot, to go on from there.

    Raises:
        SnapshotError: it is of another detection, or no snapshot.

    Attributes:
        waiting: rows that are not in order yet: with a watermark, those that are not before it.
        passed_us: no event before this time is taken any more.
        last: time and tie of the last event that the engine has had.
        newest_us: the newest time of the stream.
    """

    def __init__(self, spec: Spec, buckets: int, blob: bytes | None = None) -> None:
        self.spec, self.buckets = spec, buckets
        state = None if blob is None else self._checked(unpack(blob))
        self.matching = Matching(spec, state)
        if state is None:
            self.waiting = Rows(spec.events.empty_table(), np.zeros(0, np.int64), np.zeros(0, np.int64))
            self.passed_us = self.newest_us = _START
            self.last = _START, _START
            return
        waiting = from_bytes(state["waiting"])
        self.waiting = Rows(waiting, state["waiting_ts"].copy(), state["waiting_tie"].copy())
        self.passed_us, self.newest_us = int(state["passed_us"]), int(state["newest_us"])
        self.last = int(state["last"][0]), int(state["last"][1])

    @classmethod
    def of(cls, spec: Spec, buckets: int, blob: bytes | None) -> Bucket:
        """Return a bucket as a snapshot has it, or a new one.

        A worker that made the snapshot still has the bucket: restoring it would take longer than a small batch.
        """
        live = None if blob is None else _LIVE.pop(_name(blob), None)
        if live is not None and live.spec.text == spec.text:
            return live
        return cls(spec, buckets, blob)

    @staticmethod
    def forget_live() -> None:
        """Forget the buckets of this process: the next ones are restored from their snapshots."""
        _LIVE.clear()

    def step(self, tables: list[pa.Table], newest_us: int, passed: int, started_ns: int) -> Iterator[pa.Table]:
        """Take the rows of a micro-batch.

        Args:
            tables: the rows, as they came.
            newest_us: the newest time in the whole batch, of all buckets.
            passed: rows that no query asks about, for the counts.
            started_ns: when work on it began.
        """
        counts = Counts(rows=passed, processed=passed)
        results = Results(self.spec, counts)
        self.newest_us = max(self.newest_us, newest_us)
        come = []
        for table in tables:
            rows, malformed = read(table, self.spec)
            counts.rows += len(table)
            yield from results.malformed(malformed)
            is_late = self._is_late(rows)
            if is_late.any():
                yield from results.late(rows.table.filter(pa.array(is_late)), self._why_late())
            come.append(rows.where(~is_late))
        yield from self.matching.process(self._released(come), results)
        yield from self.matching.advance(self.passed_us, results)
        counts.held = len(self.waiting)
        counts.work_us = (time.perf_counter_ns() - started_ns) // 1000
        yield results.counted()

    def _is_late(self, rows: Rows) -> Bools:
        """Return which rows are before what the engine has had; at the same time, users' own numbers tell."""
        is_late: Bools = rows.ts < self.passed_us
        if self.spec.seq is not None:
            is_late |= (rows.ts == self.last[0]) & (rows.tie <= self.last[1])
        return is_late

    def _released(self, come: list[Rows]) -> Rows:
        """Return the rows whose turn has come, in order; keep the others."""
        rows = joined([self.waiting, *come]).sorted()
        self.passed_us = max(self.passed_us, self.newest_us - (self.spec.watermark_us or 0))
        stop = len(rows) if self.spec.watermark_us is None else int(np.searchsorted(rows.ts, self.passed_us))
        if stop:
            self.last = int(rows.ts[stop - 1]), int(rows.tie[stop - 1])
        self.waiting = rows.slice(stop, len(rows))
        return rows.slice(0, stop)

    def _why_late(self) -> str:
        if self.spec.watermark_us is None:
            return "an event of an earlier micro-batch was later; detect(…, watermark=…) waits for such rows"
        return "it came after the watermark had passed its time"

    # --- snapshots --------------------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Return all that must survive."""
        blob = pack(
            {
                "version": VERSION,
                "spec": self.spec.text,
                "buckets": self.buckets,
                "passed_us": self.passed_us,
                "last": np.array(self.last, np.int64),
                "newest_us": self.newest_us,
                "waiting": np.frombuffer(as_bytes(self.waiting.table), np.uint8),
                "waiting_ts": self.waiting.ts,
                "waiting_tie": self.waiting.tie,
                **self.matching.state(),
            }
        )
        _LIVE[_name(blob)] = self
        while len(_LIVE) > _MOST_LIVE:
            _LIVE.popitem(last=False)
        return blob

    def _checked(self, state: dict[str, Any]) -> dict[str, Any]:
        """Refuse a state of another detection."""
        if state.get("version") != VERSION:
            raise SnapshotError(f"the checkpoint has format {state.get('version')}; this penstock reads {VERSION}")
        self.spec.check_same(state["spec"])
        if state["buckets"] != self.buckets:
            raise SnapshotError(
                f"the checkpoint has {state['buckets']} buckets, and detect now asks for {self.buckets}\n"
                f"  fix: detect(…, buckets={state['buckets']})"
            )
        return state


def _name(blob: Any) -> bytes:
    """Return the head of a snapshot, which holds its checksum."""
    return bytes(blob[:26])
