"""A query that is run over a history to be observed: rows in, sums out. Nothing here knows Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa

from penstock.engine.batches import Reader
from penstock.engine.functions import Functions
from penstock.engine.intake import Intake, attributes
from penstock.engine.matches import Matches
from penstock.pattern import ast
from penstock.plan.layout import EVENT_BEFORE, EVENT_TS
from penstock.plan.planning import plan
from penstock.plan.tables import Bools, Ints
from penstock.plan.terms import Calls
from penstock.spark.training.contributions import contributions
from penstock.spark.training.observing import Observer, ObserverOf, Seen, Steps, Subject, Sums, add_up
from penstock.spark.training.transitions import Transitions
from penstock.spark.worker.batch import BatchWorker
from penstock.spark.worker.events import Rows
from penstock.spark.worker.matching import CHUNK
from penstock.spark.worker.results import Counts
from penstock.spark.worker.sorting import Sorter
from penstock.spark.worker.spec import SEQ, Spec
from penstock.spark.worker.windows import only_windows

ALL_QUERIES = -1  # the place of sums that belong to no query
SUMS_SCHEMA = pa.schema(
    [("query", pa.int32()), ("name", pa.string()), ("type", pa.string()), ("place", pa.int32()), ("sum", pa.int64())]
)
# What each kind of model is made of.
MODELS: dict[str, ObserverOf] = {"contribution": contributions, "transition": Transitions}


def observers_of(subject: Subject, model: str, *, runs: bool) -> list[Observer]:
    """Return what observes a query for a model, and its runs if that is asked for."""
    return [MODELS[model](subject), *([Steps(subject)] if runs else [])]


@cache
def states_of(query: ast.Query) -> int:
    """Return how many states the automaton of a query has."""
    return len(plan(query, Calls.DERIVED).automaton.states)


class Watching:
    """Runs one query over a history, with observers.

    Args:
        query: with its weight.
        spec: the detection, of which it takes the columns and options.
        observers: what observes it.
        subject: what they observe.
    """

    def __init__(
        self, query: tuple[ast.Query, float], spec: Spec, observers: Sequence[Observer], subject: Subject
    ) -> None:
        self.observers, self.subject = observers, subject
        self.engine = replace(spec, queries=(query,)).engine()
        windows = only_windows(query[0])
        self._reader = Reader(attributes(windows), type=spec.type, time=spec.time, seq=SEQ)
        functions = Functions(spec.functions, spec.remotes, self._reader.texts)
        self._intake = Intake(windows, self._reader, functions)

    def process(self, batch: pa.Table) -> None:
        """Take events that follow."""
        seen = self._seen(batch)
        hooks = [each for each in (observer.hooks(seen) for observer in self.observers) if each is not None]
        assert len(hooks) <= 1, "one observer of a query may ask the engine to count"
        self._take(seen, self.engine.process(batch, hooks[0] if hooks else None))
        kept = self.engine.kept()
        for observer in self.observers:
            observer.forget(kept)

    def _seen(self, batch: pa.Table) -> Seen:
        read = self._reader.read(batch)
        taken = self._intake.take(read)
        nobody = np.zeros(0, np.int64)
        self._intake.forget_windows(nobody, nobody)  # nothing asks what they were called
        events = taken.events[:EVENT_BEFORE]
        return Seen(len(batch), taken.rows, read.types[taken.rows], events, self.subject.is_own(events[EVENT_TS]))

    def _take(self, seen: Seen | None, found: Matches) -> None:
        chunks = [chunk.laid_out() for _, chunk in found.chunks if len(chunk)]
        for observer in self.observers:
            observer.take(seen, chunks)

    def end(self) -> None:
        """Take note that no more events will follow."""
        self._take(None, self.engine.flush())
        for observer in self.observers:
            observer.end()

    def sums(self, place: int) -> Sums:
        """Return what was counted, as the sums of the query at this place among the queries."""
        found: Sums = {}
        for observer in self.observers:
            for name, counts in observer.counted().items():
                if observer.shapes[name] is None:
                    found[place, name, None] = counts
                else:
                    found |= {(place, name, self._reader.types[code]): row for code, row in enumerate(counts)}
        return found


class Numbering:
    """Gives events their numbers: the users', without those that an earlier event has; or counted.

    Args:
        spec: the detection.
    """

    def __init__(self, spec: Spec) -> None:
        self._spec, self._next = spec, 0
        self._read = list(dict.fromkeys([spec.type, spec.time, *spec.read]))

    def batches(self, rows: Rows, known: Ints) -> tuple[list[pa.Table], Ints]:
        """Return rows as batches for an engine, and the times of those that were left out.

        Args:
            rows: in order, after those before.
            known: numbers of events that are remembered.
        """
        is_double = self._doubles(rows, known)
        rows, left_out = rows.where(~is_double), rows.ts[is_double]
        table = rows.table.select(self._read).append_column(SEQ, pa.array(self._numbers(rows)))
        return [table.slice(start, CHUNK) for start in range(0, len(table), CHUNK)], left_out

    def _doubles(self, rows: Rows, known: Ints) -> Bools:
        if self._spec.seq is None:
            return np.zeros(len(rows), np.bool_)
        is_double: Bools = np.isin(rows.tie, known)
        order = np.argsort(rows.tie, kind="stable")
        is_double[order[1:]] |= rows.tie[order[1:]] == rows.tie[order[:-1]]
        return is_double

    def _numbers(self, rows: Rows) -> Ints:
        if self._spec.seq is not None:
            return rows.tie
        first, self._next = self._next, self._next + len(rows)
        return np.arange(first, self._next, dtype=np.int64)


@dataclass(frozen=True)
class CollectWorker(BatchWorker):
    """Sums up a partition; what `mapInArrow` calls. Like a `BatchWorker`, and its rows are sums and not matches.

    Attributes:
        model: the name of what the sums are for.
        positions: how many bins positions are put into.
        runs: whether runs are counted, too.
    """

    model: str = "contribution"
    positions: int = 100
    runs: bool = False

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the sums."""
        counts, total = Counts(), Sums()
        with TemporaryDirectory(prefix="penstock-") as folder:
            sorters = self._sorters(batches, Path(folder), counts)
            for number in sorted(sorters):
                self._sum_up(sorters.pop(number), number, counts, total)
        add_up(total, {(ALL_QUERIES, name, None): np.array([getattr(counts, name)]) for name in ("rows", "malformed")})
        yield as_rows(total)

    def _sum_up(self, sorter: Sorter, number: int, counts: Counts, total: Sums) -> None:
        """Add what is counted in a slice of time, or in all of the partition."""
        span = None if self.slice_us is None else (number * self.slice_us, (number + 1) * self.slice_us)
        watched = [self._watching(place, span) for place in range(len(self.spec.queries))]
        numbering, results = Numbering(self.spec), self._results(counts, number)
        for rows in sorter.sorted():
            known = np.concatenate([each.engine.kept() for each in watched])
            tables, left_out = numbering.batches(rows, known)
            counts.malformed += results.count_own(left_out)
            for table in tables:
                for each in watched:
                    each.process(table)
        for place, each in enumerate(watched):
            each.end()
            add_up(total, each.sums(place))

    def _watching(self, place: int, span: tuple[int, int] | None) -> Watching:
        query = self.spec.queries[place]
        subject = Subject(query[0], self.positions, states_of(query[0]), span)
        return Watching(query, self.spec, observers_of(subject, self.model, runs=self.runs), subject)


def as_rows(sums: Sums) -> pa.RecordBatch:
    """Return sums as rows: what is not zero, cell by cell."""
    query, name, kind, place, values = [], [], [], [], []
    for (number, array, of_type), counts in sums.items():
        places = np.flatnonzero(counts)
        query.append(np.full(len(places), number, np.int32))
        name += [array] * len(places)
        kind += [of_type] * len(places)
        place.append(places.astype(np.int32))
        values.append(counts[places])
    columns = [np.concatenate(query), name, kind, np.concatenate(place), np.concatenate(values)]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, SUMS_SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SUMS_SCHEMA)
