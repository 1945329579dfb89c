"""One bucket of keys in a stream: rows wait here to be put in order, then an engine gets them."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.engine.snapshots import SnapshotError, pack, unpack
from penstock.plan.tables import Bools
from penstock.spark.worker.events import Rows, read
from penstock.spark.worker.matching import Matching
from penstock.spark.worker.packing import NONE as _START
from penstock.spark.worker.packing import WHY, as_bytes, from_bytes
from penstock.spark.worker.results import Counts, Results
from penstock.spark.worker.shedding import Shedder
from penstock.spark.worker.sorting import joined
from penstock.spark.worker.spec import Spec

VERSION = 3  # before 3, buckets had other names in the checkpoint
_LIVE: OrderedDict[bytes, Bucket] = OrderedDict()  # the buckets of this process, by the head of their last snapshot
_MOST_LIVE = 64


@dataclass(frozen=True)
class Given:
    """What a micro-batch brings to a bucket.

    Attributes:
        tables: rows, as they came.
        newest_us: the newest time in the whole batch, of all buckets.
        passed: rows that no query asks about, for the counts.
        now_us: the time of the batch.
        overdue: rows that were shed before the shuffle because they could not be on time; for the counts.
        early: those that the strategy gave up there, likewise.
        shed: these rows with the reason, if they are to be shown.
        is_quiet: whether no row came at all, to no bucket.
    """

    tables: list[pa.Table]
    newest_us: int
    passed: int = 0
    now_us: int = _START
    overdue: int = 0
    early: int = 0
    shed: tuple[pa.Table, ...] = ()
    is_quiet: bool = False

    @classmethod
    def of(cls, packed: Iterable[Mapping[str, Any]], now_us: int = _START) -> Given:
        """Return what packs have brought, row by row; `now_us` is the time of the batch, if they do not tell it."""
        rows = list(packed)
        tables, shed = ([from_bytes(row[name]) for row in rows if row[name] is not None] for name in ("rows", "shed"))
        passed, overdue, early = (sum(int(row[name]) for row in rows) for name in ("passed", "overdue", "early"))
        newest, now = (max((int(row[name]) for row in rows), default=_START) for name in ("newest", "now"))
        return cls(tables, newest, passed, max(now, now_us), overdue, early, tuple(shed), not rows)


class Bucket:
    """The events of some keys.

    Args:
        spec: the detection.
        names: of all buckets (penstock.spark.worker.placing).
        blob: a snapshot, to go on from there.

    Raises:
        SnapshotError: it is of another detection, or no snapshot.

    Attributes:
        waiting: rows that are not in order yet: with a watermark, those that are not before it.
        passed_us: no event before this time is taken any more.
        last: time and tie of the last event that the engine has had.
        newest_us: the newest time of the stream; later than that of its last event, if none has come for long.
        clock_us: when that was so: the time of the batch that brought the last event, or of one that let time pass.
        shedder: decides what is shed, if a bound is to be kept.
    """

    def __init__(self, spec: Spec, names: Sequence[int], blob: bytes | None = None) -> None:
        self.spec, self.names = spec, list(names)
        state = None if blob is None else self._checked(unpack(blob))
        self.matching = Matching(spec, state)
        self.shedder = None if spec.shed is None else Shedder(spec, self._shedding_of(state))
        if state is None:
            nothing = np.zeros(0, np.int64)
            self.waiting = Rows(spec.events.empty_table(), nothing, nothing, np.zeros(0) if spec.shed else None)
            self.passed_us = self.newest_us = self.clock_us = _START
            self.last = _START, _START
            return
        waiting = from_bytes(state["waiting"])
        has_worth = "waiting_worth" in state and spec.shed is not None and self._is_of_this_strategy(state)
        worth = state["waiting_worth"].copy() if has_worth else None
        self.waiting = Rows(waiting, state["waiting_ts"].copy(), state["waiting_tie"].copy(), worth)
        self.passed_us, self.newest_us = int(state["passed_us"]), int(state["newest_us"])
        self.clock_us = int(state.get("clock_us", _START))
        self.last = int(state["last"][0]), int(state["last"][1])

    @classmethod
    def of(cls, spec: Spec, names: Sequence[int], blob: bytes | None) -> Bucket:
        """Return a bucket as a snapshot has it, or a new one.

        A worker that made the snapshot still has the bucket: restoring it would take longer than a small batch.
        """
        live = None if blob is None else _LIVE.pop(_name(blob), None)
        if live is not None and _options(live.spec) == _options(spec):
            return live
        return cls(spec, names, blob)

    @staticmethod
    def forget_live() -> None:
        """Forget the buckets of this process: the next ones are restored from their snapshots."""
        _LIVE.clear()

    def step(self, given: Given, started_ns: int) -> Iterator[pa.Table]:
        """Take the rows of a micro-batch.

        Args:
            given: what it brings.
            started_ns: when work on it began.
        """
        gone = given.overdue + given.early
        counts = Counts(
            rows=given.passed + gone, processed=given.passed, shed=gone, shed_early=gone, shed_overdue=given.overdue
        )
        results = Results(self.spec, counts)
        self._tell_time(given)
        for table in given.shed:
            yield from results.shown_as_shed(table.drop_columns([WHY]), table.column(WHY).combine_chunks())
        come = []
        for table in given.tables:
            rows, malformed = read(table, self.spec)
            counts.rows += len(table)
            yield from results.malformed(malformed)
            is_late = self._is_late(rows)
            if is_late.any():
                yield from results.late(rows.table.filter(pa.array(is_late)), self._why_late())
            come.append(rows.where(~is_late))
        if self.shedder is not None:
            lags = [np.zeros(0, np.int64), *(self.shedder.shed.lags(rows.table, given.now_us) for rows in come)]
            # A batch without rows is none to learn from: how long the one before took, nobody has waited to know.
            now = self.shedder.rates.at if given.is_quiet else given.now_us
            self.shedder.begin(now, np.concatenate(lags))
        yield from self.matching.process(self._released(come), results, self.shedder)
        yield from self.matching.advance(self.passed_us, results)
        counts.held = len(self.waiting)
        counts.work_us = (time.perf_counter_ns() - started_ns) // 1000
        if self.shedder is not None and not given.is_quiet:
            self.shedder.end()
        yield results.counted()

    def _tell_time(self, given: Given) -> None:
        """Take note of how far the stream is: events tell, or else the clock, when none has come for long."""
        if given.newest_us > _START:
            self.newest_us, self.clock_us = max(self.newest_us, given.newest_us), given.now_us
        elif self.spec.idle_us is not None and self.clock_us > _START:
            quiet = given.now_us - self.clock_us
            if quiet >= self.spec.idle_us:
                self.newest_us, self.clock_us = self.newest_us + quiet, given.now_us

    def patience_ms(self, now_us: int) -> int:
        """Return how long to wait for events from now on before time passes without them: the same for all buckets."""
        assert self.spec.idle_us is not None, "only events tell the time"
        since = self.clock_us if self.clock_us > _START else now_us
        return max(1, -((now_us - since - self.spec.idle_us) // 1000))

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
            idle = "" if self.spec.idle_us is None else ", or none had come for as long as idle=… says"
            return f"an event of an earlier micro-batch was later{idle}; detect(…, watermark=…) waits for such rows"
        return "it came after the watermark had passed its time"

    # --- snapshots --------------------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Return all that must survive."""
        blob = pack(
            {
                "version": VERSION,
                "spec": self.spec.text,
                "names": np.array(self.names, np.int64),
                "passed_us": self.passed_us,
                "last": np.array(self.last, np.int64),
                "newest_us": self.newest_us,
                "waiting": np.frombuffer(as_bytes(self.waiting.table), np.uint8),
                "waiting_ts": self.waiting.ts,
                "waiting_tie": self.waiting.tie,
                **({} if self.spec.idle_us is None else {"clock_us": self.clock_us}),
                **({} if self.waiting.worth is None else {"waiting_worth": self.waiting.worth}),
                **({} if self.shedder is None else {"shedding": self.shedder.state(), "model": self._model()}),
                **self.matching.state(),
            }
        )
        _LIVE[_name(blob)] = self
        while len(_LIVE) > _MOST_LIVE:
            _LIVE.popitem(last=False)
        return blob

    def _model(self) -> list[str]:
        """Return which strategy the state of shedding is of, and the types that it tells by number."""
        assert self.spec.shed is not None, "there is no model"
        return [self.spec.shed.strategy.name, *(self.spec.shed.types or ())]

    def _shedding_of(self, state: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        """Return the state of shedding to go on from, with what it holds for a model like this one only.

        The model itself is never in the state: it is what `detect` was told.
        """
        if state is None or "shedding" not in state:
            return None
        given: Mapping[str, Any] = state["shedding"]
        if not self._is_of_this_strategy(state):
            return {**given, "strategy": {}, "units": None}
        return given if state.get("model", self._model()) == self._model() else {**given, "strategy": {}}

    def _is_of_this_strategy(self, state: Mapping[str, Any]) -> bool:
        """Whether a state is of shedding with the same strategy, whatever its model; older ones do not tell."""
        return bool(state.get("model", self._model())[0] == self._model()[0])

    def _checked(self, state: dict[str, Any]) -> dict[str, Any]:
        """Refuse a state of another detection."""
        if state.get("version") != VERSION:
            raise SnapshotError(
                f"the checkpoint has format {state.get('version')}; this penstock reads {VERSION}\n"
                "  fix: go on with the penstock that wrote it, or start from a new checkpoint"
            )
        self.spec.check_same(state["spec"])
        before, now = state["names"].tolist(), self.names
        if len(before) != len(now):
            raise SnapshotError(
                f"the checkpoint has {len(before)} buckets, and detect now asks for {len(now)}\n"
                f"  fix: detect(…, buckets={len(before)})"
            )
        if before != now:  # names are by the number of partitions; the state of the other buckets would not be found
            raise SnapshotError(
                "the checkpoint was made with another spark.sql.shuffle.partitions\n"
                "  fix: set it to what it was when the stream was started"
            )
        return state


def _name(blob: Any) -> bytes:
    """Return the head of a snapshot, which holds its checksum."""
    return bytes(blob[:26])


def _options(spec: Spec) -> tuple[Any, ...]:
    """Return what a bucket that is still here must have been told, to be taken for that of a snapshot."""
    return spec.text, spec.watermark_us, spec.idle_us, None if spec.shed is None else spec.shed.token
