"""The events of an operator: their types, windows and attributes, in the order of the stream."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.engine.arrow import columns_of
from penstock.engine.batches import SEQ, TIME, TYPE, Reader
from penstock.engine.intake import Intake, attributes
from penstock.pattern import ast
from penstock.plan.layout import EVENT_HIGH, EVENT_LOW, EVENT_PART, EVENT_POS, EVENT_TS
from penstock.plan.planning import plan as planned
from penstock.plan.tables import Floats, Ints
from penstock.plan.terms import Calls
from penstock.runtime.splitting import WINDOW, SplitError, previous_name
from penstock.shedding.positions import expanded
from penstock.shedding.reach import events_within
from penstock.shedding.views import View

PAIR_BITS = 20  # of a pair's number: which of its event's windows it is
_CHANGE = "change_"


class Stream:
    """Takes batches of events; shows slices of them as pairs of an event and a window, and as batches for an engine.

    Args:
        queries: that have the same WINDOW, or none.
        is_split: whether windows are matched on their own.
        names: of types, as a model has them; the last one, "", stands for all that it does not know.
    """

    def __init__(self, queries: Sequence[ast.Query], *, is_split: bool, names: tuple[str, ...] = ()) -> None:
        if is_split and any(query.window != queries[0].window for query in queries):
            raise SplitError("the queries of an operator must have the same WINDOW")
        plans = [planned(query, Calls.DERIVED) for query in queries]
        self.is_split = is_split
        self._names = tuple(dict.fromkeys(name for plan in plans for name in attributes(plan)))
        self.reader = Reader(self._names)
        self._types = names
        for name in names[:-1]:
            self.reader.types.add(name)  # so they have the numbers that the model knows them by
        self._intake = Intake(plans[0], self.reader)
        self._columns = plans[0].terms.columns
        window = queries[0].window
        self._length = window.length if window is not None else None
        self.size = 0
        empty = np.zeros(0, np.int64)
        self.types, self.times, self.numbers = empty, empty, empty
        self.low, self.high, self.places = empty, empty, empty
        self.columns: dict[str, Floats] = {}  # numeric attributes, and how they have changed
        self.starts, self._sizes = empty, empty  # of windows: place of the first event; size, 0 if not known yet
        self._ends = empty  # the places behind them
        self.work = np.zeros(1, np.int64)  # events and pairs before each event, and in all
        self._raw: dict[str, Any] = {}

    def take(self, batch: Any) -> None:
        """Take the events of a whole stream, in order."""
        columns = columns_of(batch, {TYPE, TIME, SEQ, *self._names})[1]
        read = self.reader.read(batch)
        taken = self._intake.take(read)
        self.size = read.size
        self.types, self.times, self.numbers = read.types, read.ts, read.seq
        if self._types:
            self.types = np.minimum(read.types, len(self._types) - 1)
        self.places = taken.events[EVENT_POS]
        self._raw = {name: _compact(column) for name, column in columns.items() if name not in (TIME, SEQ, TYPE)}
        self._raw[TYPE] = pa.DictionaryArray.from_arrays(pa.array(read.types, pa.int32()), pa.array(self._read_names()))
        for name in self._names:
            if read.kinds.get(name) in ("int", "float", "bool"):
                self.columns[name] = read.columns[name]
        for place, column in enumerate(self._columns):
            if column.is_previous:
                before = taken.columns[place]
                self._raw[previous_name(column.name)] = before
                with np.errstate(divide="ignore", invalid="ignore"):
                    self.columns[_CHANGE + column.name] = self.columns[column.name] / before - 1
        if self.is_split:
            self._note_windows(taken.events[EVENT_LOW], taken.events[EVENT_HIGH])
        else:
            self.low = self.high = np.arange(self.size)
            self.starts, self._sizes = self.places, np.ones(self.size, np.int64)
        self.work = np.concatenate([[0], np.cumsum(1 + np.maximum(self.high - self.low + 1, 0))])

    def _note_windows(self, low: Ints, high: Ints) -> None:
        """Number windows from 0 on, without gaps, in the order in which they open; note where each begins."""
        is_in = high >= low
        first = int(low[is_in].min()) if is_in.any() else 0
        count = int(high[is_in].max()) - first + 1 if is_in.any() else 0
        begins = np.full(count, self.size, np.int64)
        rows = np.flatnonzero(is_in)
        opened = np.maximum.accumulate(np.concatenate([[first - 1], high[rows][:-1]])) if len(rows) else rows
        new = np.maximum(high[rows] - np.maximum(opened, low[rows] - 1), 0)
        numbers = expanded(np.maximum(opened, low[rows] - 1) + 1, new) - first
        begins[numbers] = np.repeat(rows, new)
        used = begins < self.size
        compact = np.cumsum(used) - 1
        self.low = np.where(is_in, compact[np.where(is_in, low - first, 0)], 0) if count else np.zeros_like(low)
        self.high = np.where(is_in, compact[np.where(is_in, high - first, 0)], -1) if count else low - 1
        self.starts = begins[used]
        ends = np.searchsorted(self.low[is_in], np.arange(len(self.starts)), side="right")
        last = np.concatenate([rows, [self.size]])[ends] if len(rows) else ends
        self._sizes = np.maximum(np.minimum(last, self.size) - self.starts, 1)
        self._ends = self.starts + self._sizes

    @property
    def sizes(self) -> Ints:
        """How many events each window has."""
        return self._sizes

    def expected_size(self, now: int, stop: int | None = None) -> int:
        """Return how many events a window is expected to have when event `now` comes.

        A window of a number of events has that many. For others it is the mean of the last windows that were over;
        before there is one, as many as the first has had so far, with the events before `stop` or with this one.
        """
        if isinstance(self._length, ast.CountSpan):
            return self._length.events
        if not self.is_split:
            return 1
        over = int(self._ends.searchsorted(now, side="right"))
        if not over:
            return max(1, (stop or now + 1) - int(self.starts[0])) if len(self.starts) else 1
        return max(1, round(float(self._sizes[max(0, over - 20) : over].mean())))

    def reach(self, query: ast.Query, stop: int) -> float | None:
        """Return how many events of the same key are within WITHIN before one of events 0 .. stop-1, on average.

        None if windows are matched on their own: there runs end with their window.
        """
        if self.is_split:
            return None
        if isinstance(query.within, ast.CountSpan):
            return float(query.within.events)
        assert isinstance(query.within, ast.TimeSpan), "a query without WITHIN is refused"
        plan = planned(replace(query, window=None), Calls.DERIVED)  # asked is its partition alone
        reader = Reader(attributes(plan))
        rows = np.arange(min(stop, self.size))
        events = Intake(plan, reader).take(reader.read(self.batch(rows, self.low[rows]))).events
        counts = events_within(events[EVENT_PART], events[EVENT_TS], query.within.us)
        return float(counts.mean()) if len(counts) else 1.0

    def view(self, start: int, stop: int) -> View:
        """Return events start .. stop-1 and their pairs."""
        counts = np.maximum(self.high[start:stop] - self.low[start:stop] + 1, 0)
        rows, windows = np.repeat(np.arange(stop - start), counts), expanded(self.low[start:stop], counts)
        positions = self.places[start + rows] - self.starts[windows]
        return View(
            self.types[start:stop], self.times[start:stop], self.numbers[start:stop],
            {name: column[start:stop] for name, column in self.columns.items()},
            rows, windows, positions, np.array([self.expected_size(start, stop)]), counts,
        )  # fmt: skip

    def batch(self, rows: Ints, windows: Ints) -> dict[str, Any]:
        """Return pairs as a batch; the number of a pair says its event and which of its windows it is."""
        chosen = pa.array(rows)
        columns = {name: column.take(chosen) if isinstance(column, pa.Array | pa.ChunkedArray) else column[rows]
                   for name, column in self._raw.items()}  # fmt: skip
        numbers = rows << PAIR_BITS | (windows - self.low[rows])
        extra = {WINDOW: windows} if self.is_split else {}
        return {TIME: self.times[rows], SEQ: numbers, **columns, **extra}

    def of_pairs(self, numbers: Ints) -> tuple[Ints, Ints]:
        """Return the events and the windows of pairs."""
        rows = numbers >> PAIR_BITS
        return rows, self.low[rows] + (numbers & ((1 << PAIR_BITS) - 1))

    @property
    def names(self) -> tuple[str, ...]:
        """The types; the last one, "", stands for all others."""
        return self._types or (*self._read_names(), "")

    def _read_names(self) -> list[str]:
        return [self.reader.types[code] for code in range(len(self.reader.types))]


def _compact(column: Any) -> Any:
    """Return a column in one piece, texts as numbers of texts: so some of its rows are taken fastest."""
    array = column if isinstance(column, pa.Array | pa.ChunkedArray) else pa.array(column)
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    is_text = pa.types.is_string(array.type) or pa.types.is_large_string(array.type)
    return array.dictionary_encode() if is_text else array
